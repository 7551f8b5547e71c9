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
use crate::num::{ix, to_u32};

/// Pieces of at least this many bytes use hints.
const HINT_BYTES: usize = 256;
const HINT_SLOTS: usize = 64;
/// Marks a token on the stack that a hint put there: its longer rivals have not been tried.
const HINTED: u32 = 1 << 31;

/// What was chosen lately: after a token, where a certain token is the longest that fits.
#[derive(Debug)]
pub struct Hints {
    /// By a hash of the token before and of the longest token here.
    slots: [Hint; HINT_SLOTS],
}

#[derive(Debug, Clone, Copy)]
struct Hint {
    last: u32,
    longest: u32,
    chosen: u32,
    /// Length of the token chosen, in bytes.
    len: u32,
}

impl Default for Hints {
    fn default() -> Self {
        Hints { slots: [Hint { last: NONE, longest: NONE, chosen: NONE, len: 0 }; HINT_SLOTS] }
    }
}

impl Hints {
    fn slot(&mut self, last: u32, longest: u32) -> &mut Hint {
        let hash = last.wrapping_mul(0x9e37_79b1) ^ longest.wrapping_mul(0x85eb_ca77);
        &mut self.slots[ix(hash >> 26)]
    }
}

/// Leaves the BPE result of `piece` (not empty) in `scratch.tokens`, and in `scratch.starts` where each starts. Needs [`MergeTables::greedy`].
pub fn merge_greedy(tables: &MergeTables, piece: &[u8], scratch: &mut Scratch) {
    let Scratch { tokens, starts, dead, hints, .. } = scratch;
    tokens.clear();
    starts.clear();
    dead.clear();
    dead.resize(piece.len() / 64 + 1, 0);
    let long = piece.len() >= HINT_BYTES;
    let mut at = 0;
    // The longest token at `at` and its end; the token to try, with its mark, and its end.
    let mut head = longest(tables, piece, at);
    let (mut candidate, mut end) = head;
    // Whether the last token is the longest at its place.
    let mut last_is_longest = false;
    loop {
        let token = candidate & !HINTED;
        let last = tokens.last().map(|&last| last & !HINTED);
        if is_open(dead, end) && last.is_none_or(|last| is_valid_pair(tables, last, token, last_is_longest)) {
            if let (true, Some(last)) = (long, last) {
                *hints.slot(last, head.0) = Hint { last, longest: head.0, chosen: token, len: to_u32(end - at) };
            }
            tokens.push(candidate);
            starts.push(to_u32(at));
            last_is_longest = token == head.0;
            at = end;
            if at == piece.len() {
                break;
            }
            head = longest(tables, piece, at);
            (candidate, end) = head;
            if long {
                let &mut Hint { last, longest, chosen, len } = hints.slot(token, head.0);
                if (last, longest) == (token, head.0) && chosen != head.0 {
                    (candidate, end) = (chosen | HINTED, at + ix(len));
                }
            }
            continue;
        }
        let mut rival = if candidate & HINTED != 0 { Some(head) } else { shorter(tables, piece, at, candidate, end) };
        while rival.is_none() {
            // No token is left to try here: a dead end. Take back the token before and try its next rival.
            dead[at / 64] |= 1 << (at % 64);
            let (refused, start) = tokens.pop().zip(starts.pop()).expect("a piece has a valid cover: its BPE result");
            end = at;
            at = ix(start);
            head = longest(tables, piece, at);
            last_is_longest = false;
            rival = if refused & HINTED != 0 { Some(head) } else { shorter(tables, piece, at, refused, end) };
        }
        (candidate, end) = rival.expect("the loop ends with one");
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
fn longest(tables: &MergeTables, piece: &[u8], at: usize) -> (u32, usize) {
    tables.trie.longest(piece, at, piece.len()).unwrap_or_else(|| (tables.bytes[usize::from(piece[at])], at + 1))
}

/// The next shorter token and its end, after `token` from `at` to `end`.
#[inline(always)]
fn shorter(tables: &MergeTables, piece: &[u8], at: usize, token: u32, end: usize) -> Option<(u32, usize)> {
    let parts = tables.parts(token);
    match parts.shorter_by() {
        _ if parts.prefix() == token => None,
        Parts::FAR => tables.trie.longest(piece, at, end - 1),
        bytes => Some((parts.prefix(), end - bytes)),
    }
}

/// Whether BPE of the bytes of `a` and `b` is `[a, b]`.
///
/// Undoes both tokens join by join, latest first, and looks at the border whether BPE would have joined
/// across it before that. A join across the border with a rank below the one undone comes first: invalid.
///
/// If `a` is known to be the longest token where it stands, `a` and `b` together are none.
#[inline]
#[must_use]
pub fn is_valid_pair(tables: &MergeTables, mut a: u32, mut b: u32, a_is_longest: bool) -> bool {
    if !a_is_longest && tables.pairs.get(a, b).is_some() {
        return false;
    }
    // Single bytes come first: while either token can be undone, the later one can.
    while a.max(b) >= tables.singles {
        // On the right of the border an equal rank would come second. Which of the two is later is as good as random:
        // both are looked up, and one is taken without a branch.
        let (left, right) = (tables.parts(b).left(), tables.parts(a).right());
        let limit = if a > b { a } else { b + 1 };
        (a, b) = if a > b { (right, b) } else { (a, left) };
        if tables.pairs.makes_below(a, b, limit) {
            return false;
        }
    }
    true
}
