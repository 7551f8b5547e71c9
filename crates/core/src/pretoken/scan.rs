//! What the scanners share: characters by their kind ([`crate::unicode::kind_of`]), and the runs that occur in every
//! pattern.
//!
//! Sets of kinds are bit sets. A scanner is a function from a pre-token's start to its end; see [`fill`].

use super::Batch;
use crate::unicode::{
    CASELESS, LOWER, MARK, NEWLINE, NUMBER, OTHER, SPACE, SYMBOL, UPPER, decode_at, kind_of, kind_of_byte,
};

/// `\p{L}`.
pub(super) const LETTERS: u16 = set(&[UPPER, LOWER, CASELESS]);
/// `[\p{L}\p{M}]`.
pub(super) const LETTERS_AND_MARKS: u16 = LETTERS | set(&[MARK]);
/// `\p{N}`.
pub(super) const NUMBERS: u16 = set(&[NUMBER]);
/// `\s`.
pub(super) const WHITE: u16 = set(&[SPACE, NEWLINE]);
/// `[^\s\p{L}\p{N}]`.
pub(super) const NO_WORD: u16 = set(&[OTHER, SYMBOL, MARK]);

/// A set of kinds.
pub(super) const fn set(kinds: &[u8]) -> u16 {
    let mut bits = 0;
    let mut i = 0;
    while i < kinds.len() {
        bits |= 1 << kinds[i];
        i += 1;
    }
    bits
}

/// Whether `kind` is in the set `kinds`.
#[inline(always)]
pub(super) const fn is(kind: u8, kinds: u16) -> bool {
    kinds >> kind & 1 == 1
}

/// Fills `batch` from `at` with what `next_end` says; see [`super::Pattern::fill`].
#[inline(always)]
pub(super) fn fill(text: &[u8], mut at: usize, batch: &mut Batch, next_end: impl Fn(&[u8], usize) -> usize) -> usize {
    while at < text.len() && !batch.is_full() {
        let end = next_end(text, at);
        batch.push(at, end);
        at = end;
    }
    at
}

/// The kind of the character at `at` and the position after it.
#[inline(always)]
pub(super) fn step(text: &[u8], at: usize) -> (u8, usize) {
    let byte = text[at];
    if byte < 0x80 {
        return (kind_of_byte(byte), at + 1);
    }
    let (code_point, len) = decode_at(text, at);
    (kind_of(code_point), at + len)
}

/// Whether there is a character at `at`, and of one of `kinds`.
#[inline(always)]
pub(super) fn is_at(text: &[u8], at: usize, kinds: u16) -> bool {
    at < text.len() && is(step(text, at).0, kinds)
}

/// The end of the run of characters of `kinds` from `at`.
#[inline(always)]
pub(super) fn run(text: &[u8], mut at: usize, kinds: u16) -> usize {
    while at < text.len() {
        let (kind, next) = step(text, at);
        if !is(kind, kinds) {
            break;
        }
        at = next;
    }
    at
}

/// The end of at most `most` numbers from `at`.
#[inline(always)]
pub(super) fn digits(text: &[u8], mut at: usize, most: usize) -> usize {
    for _ in 0..most {
        if at == text.len() {
            break;
        }
        let (kind, next) = step(text, at);
        if kind != NUMBER {
            break;
        }
        at = next;
    }
    at
}

/// The end of `[\r\n]*` from `at`, or of `[\r\n/]*`.
#[inline(always)]
pub(super) fn line_ends(text: &[u8], mut at: usize, with_slash: bool) -> usize {
    while at < text.len() && (matches!(text[at], b'\r' | b'\n') || with_slash && text[at] == b'/') {
        at += 1;
    }
    at
}

/// A run of white space: where its parts end.
pub(super) struct White {
    /// Where the run ends.
    pub end: usize,
    /// Where the last character of the run begins.
    pub last: usize,
    /// Where the last newline of the run ends, if there is one.
    pub after_newline: Option<usize>,
}

/// The run of white space at `start`, which is not empty.
#[inline(always)]
pub(super) fn white(text: &[u8], start: usize) -> White {
    let mut white = White { end: start, last: start, after_newline: None };
    while white.end < text.len() {
        let (kind, next) = step(text, white.end);
        match kind {
            NEWLINE => white.after_newline = Some(next),
            SPACE => {}
            _ => break,
        }
        white.last = white.end;
        white.end = next;
    }
    white
}

impl White {
    /// `\s+(?!\S)|\s+`: leaves one character for what follows, if something follows and there is one to leave.
    #[inline(always)]
    pub(super) fn before(&self, start: usize, text_end: usize) -> usize {
        if self.end < text_end && self.last > start { self.last } else { self.end }
    }

    /// `\s*[\r\n]+|\s+(?!\S)|\s+`: up to the last newline, else as [`White::before`].
    #[inline(always)]
    pub(super) fn lines(&self, start: usize, text_end: usize) -> usize {
        self.after_newline.unwrap_or_else(|| self.before(start, text_end))
    }
}

/// `'s|'t|'re|'ve|'m|'ll|'d` at `at`, in lower case only; `at` if none is there.
#[inline]
pub(super) fn contraction_as_written(text: &[u8], at: usize) -> usize {
    match text[at..] {
        [b'\'', b's' | b't' | b'm' | b'd', ..] => at + 2,
        [b'\'', b'r' | b'v', b'e', ..] | [b'\'', b'l', b'l', ..] => at + 3,
        _ => at,
    }
}
