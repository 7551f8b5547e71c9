//! BPE by longest match, repaired where two neighbours are not valid (lemma 2 of [`crate::merge`]).
//!
//! Walk from the left with the longest token at each place. If it is not valid beside the token before it, try the
//! next shorter token that is a prefix of it; if none is left, that place is a dead end: mark it, take back the
//! token before and shorten that one. The first cover that reaches the end is the BPE result, since
//! the valid cover is unique.
//!
//! # Hints
//! Longest first is the wrong order where the result is regular and its tokens are not the longest: in a run of `=`
//! it would look far ahead from every place before it turned back. So in long pieces the choice made after a token
//! and before a text is kept ([`Hints`]), and tried first when the two meet again. Any order is exact: a place is
//! given up only when all its tokens have been tried.
//!
//! # Complexity
//! A place is marked dead at most once and never entered again, so the work is O(n * d), where d is the
//! number of tokens that are prefixes of one token. Scratch: n bits and the ids.

use super::{MergeTables, NONE, Parts, Scratch};
use crate::num::ix;

/// Pieces of at least this many bytes use hints.
const HINT_BYTES: usize = 256;
const HINT_SLOTS: usize = 64;
/// Marks a token on the stack that a hint put there: its longer rivals have not been tried.
const HINTED: u32 = 1 << 31;

/// What was chosen lately: after a token, where a certain token is the longest that fits.
#[derive(Debug)]
pub struct Hints {
    /// `(token before, longest token here, token chosen)`; by a hash of the first two.
    slots: [(u32, u32, u32); HINT_SLOTS],
}

impl Default for Hints {
    fn default() -> Self {
        Hints { slots: [(NONE, NONE, NONE); HINT_SLOTS] }
    }
}

impl Hints {
    fn slot(&mut self, last: u32, longest: u32) -> &mut (u32, u32, u32) {
        let hash = last.wrapping_mul(0x9e37_79b1) ^ longest.wrapping_mul(0x85eb_ca77);
        &mut self.slots[ix(hash >> 26)]
    }
}

/// Leaves the BPE result of `piece` (not empty) in `scratch.tokens`. Needs [`MergeTables::greedy`].
pub fn merge_greedy(tables: &MergeTables, piece: &[u8], scratch: &mut Scratch) {
    let parts = &tables.parts[..];
    let Scratch { tokens, dead, hints, .. } = scratch;
    tokens.clear();
    dead.clear();
    dead.resize(piece.len() / 64 + 1, 0);
    let long = piece.len() >= HINT_BYTES;
    let mut at = 0;
    // The longest token at `at`, and the token to try, with its mark.
    let mut head = longest(tables, piece, at);
    let mut candidate = head;
    loop {
        let token = candidate & !HINTED;
        let end = at + ix(parts[ix(token)].len);
        let last = tokens.last().map(|&last| last & !HINTED);
        if is_open(dead, end) && last.is_none_or(|last| is_valid_pair(tables, parts, last, token)) {
            if let (true, Some(last)) = (long, last) {
                *hints.slot(last, head) = (last, head, token);
            }
            tokens.push(candidate);
            at = end;
            if at == piece.len() {
                break;
            }
            head = longest(tables, piece, at);
            candidate = head;
            if long {
                let &mut (last, longest, chosen) = hints.slot(token, head);
                if (last, longest) == (token, head) && chosen != head {
                    candidate = chosen | HINTED;
                }
            }
            continue;
        }
        candidate = if candidate & HINTED != 0 { head } else { parts[ix(token)].prefix };
        while candidate == NONE {
            // No token is left to try here: a dead end. Take back the token before and try its next rival.
            dead[at / 64] |= 1 << (at % 64);
            let refused = tokens.pop().expect("a piece has a valid cover: its BPE result");
            at -= ix(parts[ix(refused & !HINTED)].len);
            head = longest(tables, piece, at);
            candidate = if refused & HINTED != 0 { head } else { parts[ix(refused)].prefix };
        }
    }
    if long {
        for token in tokens {
            *token &= !HINTED;
        }
    }
}

#[inline(always)]
fn is_open(dead: &[u64], at: usize) -> bool {
    dead[at / 64] >> (at % 64) & 1 == 0
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
