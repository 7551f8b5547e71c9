//! BPE by longest match, repaired where two neighbours are not valid (lemma 2 of [`crate::merge`]).
//!
//! Walk from the left with the longest token at each place. If it is not valid beside the token before it, try the
//! next shorter token that is a prefix of it; if none is left, that place is a dead end: mark it, take back the
//! token before and shorten that one. The first cover that reaches the end is the BPE result, since
//! the valid cover is unique.
//!
//! # Complexity
//! A place is marked dead at most once and never entered again, so the work is O(n * d), where d is the
//! number of tokens that are prefixes of one token. Scratch: n bits and the ids.

use super::{MergeTables, NONE, Parts, Scratch};
use crate::num::ix;

/// Leaves the BPE result of `piece` (not empty) in `scratch.tokens`. Needs [`MergeTables::greedy`].
#[inline]
pub fn merge_greedy(tables: &MergeTables, piece: &[u8], scratch: &mut Scratch) {
    let parts = &tables.parts[..];
    let Scratch { tokens, dead, .. } = scratch;
    tokens.clear();
    dead.clear();
    dead.resize(piece.len() / 64 + 1, 0);
    let mut at = 0;
    let mut candidate = longest(tables, piece, at);
    loop {
        let len = ix(parts[ix(candidate)].len);
        let end = at + len;
        let open = dead[end / 64] >> (end % 64) & 1 == 0;
        if open && tokens.last().is_none_or(|&last| is_valid_pair(tables, parts, last, candidate)) {
            tokens.push(candidate);
            at = end;
            if at == piece.len() {
                return;
            }
            candidate = longest(tables, piece, at);
            continue;
        }
        let mut shorter = parts[ix(candidate)].prefix;
        while shorter == NONE {
            // No token is left to try here: a dead end, unless this is the start of the piece.
            dead[at / 64] |= 1 << (at % 64);
            let last = tokens.pop().expect("a piece has a valid cover: its BPE result");
            at -= ix(parts[ix(last)].len);
            shorter = parts[ix(last)].prefix;
        }
        candidate = shorter;
    }
}

#[inline(always)]
fn longest(tables: &MergeTables, piece: &[u8], at: usize) -> u32 {
    match tables.trie.longest(piece, at, piece.len()) {
        Some((token, _)) => token,
        None => tables.bytes[usize::from(piece[at])],
    }
}

/// Whether BPE of the bytes of `a` and `b` is `[a, b]`.
///
/// Undoes both tokens join by join, latest first, and looks at the border whether BPE would have joined
/// across it before that. A join across the border with a rank below `limit` comes first: invalid.
#[inline]
fn is_valid_pair(tables: &MergeTables, parts: &[Parts], mut a: u32, mut b: u32) -> bool {
    let mut limit = u32::MAX;
    loop {
        if tables.pairs.get(a, b).is_some_and(|joined| joined < limit) {
            return false;
        }
        // Undo the later of the two last joins. On the right of the border an equal rank would come second.
        if a > b {
            limit = a;
            a = parts[ix(a)].right;
            if a == limit {
                limit = b + 1;
                b = parts[ix(b)].left;
                if b + 1 == limit {
                    return true;
                }
            }
        } else {
            limit = b + 1;
            b = parts[ix(b)].left;
            if b + 1 == limit {
                limit = a;
                a = parts[ix(a)].right;
                if a == limit {
                    return true;
                }
            }
        }
    }
}
