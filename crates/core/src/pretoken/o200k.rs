//! The splits of the o200k family: o200k, gpt-oss, Llama 4, and Mistral's Tekken, by [`Rules`].
//!
//! Rule, first alternative that matches: a word, with one character before it that is neither letter, number nor newline
//! and perhaps a contraction after; up to so many numbers; symbols, with a space before and newlines or slashes after;
//! white space. A word is `U* L+` or else `U+ L*`, as in `kimi`, which has the argument; Han is like any other letter
//! here.

use super::kimi::contraction;
use super::scan::{NO_WORD, NUMBERS, digits, is, is_at, line_ends, run, set, step, white};
use crate::unicode::{CASELESS, LOWER, MARK, NEWLINE, NUMBER, SPACE, UPPER, kind_of};

/// What the members of the family differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// See [`super::Pattern::name`].
    pub(super) name: &'static str,
    /// A word takes a contraction after it.
    pub(super) contractions: bool,
    /// Most numbers of a pre-token.
    pub(super) digits: usize,
}

/// o200k, gpt-oss, Llama 4.
pub(super) const O200K: Rules = Rules { name: "o200k", contractions: true, digits: 3 };
/// Mistral's Tekken.
pub(super) const TEKKEN: Rules = Rules { name: "tekken", contractions: false, digits: 1 };

/// `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`.
const LOWER_RUN: u16 = set(&[LOWER, CASELESS, MARK]);

/// The end of the pre-token that starts at `at`.
#[inline]
pub(super) fn next_end(rules: &Rules, text: &[u8], at: usize) -> usize {
    let (kind, next) = step(text, at);
    match kind {
        LOWER | UPPER | CASELESS | MARK => word(rules, text, at).unwrap_or(next),
        NUMBER => digits(text, next, rules.digits - 1),
        NEWLINE => white(text, at).lines(at, text.len()),
        SPACE => match word(rules, text, next) {
            Some(end) => end,
            None if text[at] == b' ' && is_at(text, next, NO_WORD) => symbols_end(text, next),
            None => white(text, at).lines(at, text.len()),
        },
        _ => word(rules, text, next).unwrap_or_else(|| symbols_end(text, next)),
    }
}

/// Where the word from `start` ends, or None if none begins there.
#[inline]
fn word(rules: &Rules, text: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    // Where `U* L+` would end if no lower-case letter follows the U-run.
    let mut last_shared = None;
    while at < text.len() {
        let (kind, next) = step(text, at);
        match kind {
            UPPER => {}
            CASELESS | MARK => last_shared = Some(next),
            LOWER => return Some(suffix(rules, text, run(text, next, LOWER_RUN))),
            _ => break,
        }
        at = next;
    }
    let end = last_shared.unwrap_or(at);
    (end > start).then(|| suffix(rules, text, end))
}

#[inline(always)]
fn suffix(rules: &Rules, text: &[u8], at: usize) -> usize {
    if rules.contractions { contraction(text, at) } else { at }
}

#[inline(always)]
fn symbols_end(text: &[u8], at: usize) -> usize {
    line_ends(text, run(text, at, NO_WORD), true)
}

/// See [`super::Pattern::is_hard_boundary`]:
///
/// - nothing but white space goes on to a space, nothing but a number to a number;
/// - numbers are followed by their like only, letters by letters, marks and a quote;
/// - after a newline, nothing goes on but white space and slashes; and white space that ends with a newline is no matter
///   of `\s+(?!\S)`, which would ask whether the text goes on.
pub(super) fn is_hard_boundary(rules: &Rules, before: u32, here: u32) -> bool {
    let (left, right) = (kind_of(before), kind_of(here));
    match left {
        SPACE => false,
        NEWLINE => !matches!(right, SPACE | NEWLINE) && here != u32::from(b'/'),
        NUMBER => !is(right, NUMBERS),
        LOWER | UPPER | CASELESS => match right {
            LOWER | UPPER | CASELESS | MARK => false,
            _ => !rules.contractions || here != u32::from(b'\''),
        },
        _ => matches!(right, SPACE | NUMBER),
    }
}
