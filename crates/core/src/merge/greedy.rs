//! BPE by longest match, repaired where two neighbours are not valid (lemma 2 of [`crate::merge`]).
//!
//! Walk from the left with the longest token at each place. If it is not valid beside the token before it, try the
//! next shorter token that is a prefix of it; if none is left, that place is a dead end: mark it, take back the
//! token before and shorten that one. The first cover that reaches the end is the BPE result, since
//! the valid cover is unique.
//!
//! # Complexity
//! A place is marked dead at most once and never entered again, so the work is O(n * d), where d is the
//! number of tokens that are prefixes of one token: 60 and more in runs of one character. There the same
//! two tokens meet again and again, so in long pieces the outcome of the last meetings is kept ([`Memo`]).
//! Scratch: n bits and the ids.

use super::{MergeTables, NONE, Parts, Scratch};
use crate::num::ix;

/// Pieces of at least this many bytes use the memo.
const MEMO_BYTES: usize = 256;
const MEMO_SLOTS: usize = 64;

/// Of recent meetings of a token and the longest token after it: the first token of the prefix chain that was valid.
///
/// Holds only what follows from the vocabulary, and is emptied for each piece, since threads serve several
/// vocabularies.
#[derive(Debug)]
pub struct Memo {
    /// `(token before, longest token here, valid token)`; by a hash of the first two.
    slots: [(u32, u32, u32); MEMO_SLOTS],
}

impl Default for Memo {
    fn default() -> Self {
        Memo { slots: [(NONE, NONE, NONE); MEMO_SLOTS] }
    }
}

impl Memo {
    fn slot(&mut self, last: u32, longest: u32) -> &mut (u32, u32, u32) {
        let hash = last.wrapping_mul(0x9e37_79b1) ^ longest.wrapping_mul(0x85eb_ca77);
        &mut self.slots[ix(hash >> 26)]
    }
}

/// Leaves the BPE result of `piece` (not empty) in `scratch.tokens`. Needs [`MergeTables::greedy`].
pub fn merge_greedy(tables: &MergeTables, piece: &[u8], scratch: &mut Scratch) {
    let parts = &tables.parts[..];
    let Scratch { tokens, dead, memo, .. } = scratch;
    tokens.clear();
    dead.clear();
    dead.resize(piece.len() / 64 + 1, 0);
    let long = piece.len() >= MEMO_BYTES;
    if long {
        *memo = Memo::default();
    }
    let mut at = 0;
    // The longest token at `at`, while none of its prefixes has been refused for a dead end; else NONE.
    let mut head = longest(tables, piece, at);
    let mut candidate = head;
    loop {
        let end = at + ix(parts[ix(candidate)].len);
        let valid = match tokens.last() {
            None => true,
            Some(&last) if long && head != NONE && *memo.slot(last, head) == (last, head, candidate) => true,
            Some(&last) => is_valid_pair(tables, parts, last, candidate),
        };
        if valid && is_open(dead, end) {
            if let (true, Some(&last)) = (long && head != NONE, tokens.last()) {
                *memo.slot(last, head) = (last, head, candidate);
            }
            tokens.push(candidate);
            at = end;
            if at == piece.len() {
                return;
            }
            head = longest(tables, piece, at);
            candidate = head;
            if let (true, Some(&last)) = (long, tokens.last()) {
                let known = *memo.slot(last, head);
                if (known.0, known.1) == (last, head) {
                    candidate = known.2;
                }
            }
            continue;
        }
        if valid {
            // Refused for a dead end, which is a fact of this place, not of the two tokens.
            head = NONE;
        }
        let mut shorter = parts[ix(candidate)].prefix;
        while shorter == NONE {
            // No token is left to try here: a dead end, unless this is the start of the piece.
            dead[at / 64] |= 1 << (at % 64);
            let last = tokens.pop().expect("a piece has a valid cover: its BPE result");
            at -= ix(parts[ix(last)].len);
            shorter = parts[ix(last)].prefix;
            head = NONE;
        }
        candidate = shorter;
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
