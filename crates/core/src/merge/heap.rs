//! BPE by priority queue: for vocabularies that do not allow [`super::greedy`], and as its check.
//!
//! # Invariants
//! 1. Live parts tile the piece; `next` and `prev` link them in order.
//! 2. A queue entry `(rank, left part)` is stale if that part is gone, or if the token that the part and its
//!    neighbour now make is another. Stale entries are skipped.
//!
//! # Complexity
//! O(n log n): each join adds at most two entries.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{MergeTables, NONE, Scratch};
use crate::num::{ix, to_u32};

/// Memory of [`merge_heap`].
#[derive(Debug, Default)]
pub struct HeapScratch {
    /// `(token that a join gives, start of its left part)`.
    queue: BinaryHeap<Reverse<(u32, u32)>>,
    /// By start of a part: its token, or [`NONE`] where no part starts.
    token: Vec<u32>,
    /// By start of a part: start of the next part, or the length of the piece.
    next: Vec<u32>,
    /// By start of a part: start of the part before, or [`NONE`].
    prev: Vec<u32>,
}

impl HeapScratch {
    pub(super) fn capacity(&self) -> usize {
        self.queue.capacity().max(self.token.capacity())
    }
}

/// Leaves the BPE result of `piece` (not empty) in `scratch.tokens`.
pub fn merge_heap(tables: &MergeTables, piece: &[u8], scratch: &mut Scratch) {
    scratch.tokens.clear();
    scratch.tokens.extend(piece.iter().map(|&b| tables.bytes[usize::from(b)]));
    join_all(&mut scratch.tokens, |l, r| tables.pairs.get(l, r), &mut scratch.heap);
}

/// Joins adjacent ids until `pair` knows none; lowest result first, leftmost among equals.
pub(crate) fn join_all(state: &mut Vec<u32>, pair: impl Fn(u32, u32) -> Option<u32>, scratch: &mut HeapScratch) {
    let n = to_u32(state.len());
    let HeapScratch { queue, token, next, prev } = scratch;
    queue.clear();
    token.clear();
    token.append(state);
    next.clear();
    next.extend(1..=n);
    prev.clear();
    prev.extend((0..n).map(|i| if i == 0 { NONE } else { i - 1 }));
    for i in 1..n {
        if let Some(joined) = pair(token[ix(i - 1)], token[ix(i)]) {
            queue.push(Reverse((joined, i - 1)));
        }
    }
    while let Some(Reverse((joined, left))) = queue.pop() {
        let right = next[ix(left)];
        if token[ix(left)] == NONE || right == n {
            continue;
        }
        if pair(token[ix(left)], token[ix(right)]) != Some(joined) {
            continue;
        }
        token[ix(left)] = joined;
        token[ix(right)] = NONE;
        let after = next[ix(right)];
        next[ix(left)] = after;
        if after < n {
            prev[ix(after)] = left;
            if let Some(more) = pair(joined, token[ix(after)]) {
                queue.push(Reverse((more, left)));
            }
        }
        let before = prev[ix(left)];
        if before != NONE
            && let Some(more) = pair(token[ix(before)], joined)
        {
            queue.push(Reverse((more, before)));
        }
    }
    state.extend(token.iter().filter(|t| **t != NONE));
}
