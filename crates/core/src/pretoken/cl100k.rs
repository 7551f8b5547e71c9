//! The splits of the cl100k family: cl100k, Llama 3, GLM-4, Qwen 2 to 3.5, and more, by [`Rules`].
//!
//! Rule, first alternative that matches: a contraction; letters, with one character before them that is neither letter,
//! number nor newline; up to so many numbers; symbols, with a space before and newlines after; white space. A mark is a
//! symbol or a letter, see [`Rules::letters`].
//!
//! With the mark as a letter, it could also be the optional character before letters; the match is then the same.

use super::kimi::contraction;
use super::scan::{
    LETTERS, LETTERS_AND_MARKS, NO_WORD, NUMBERS, WHITE, contraction_as_written, digits, is, is_at, line_ends, run,
    step, white,
};
use crate::unicode::{NEWLINE, NUMBER, SPACE, kind_of};

/// What the members of the family differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// See [`super::Pattern::name`].
    pub(super) name: &'static str,
    /// Contractions in upper and lower case (and with U+017F for `s`), not in lower case only.
    pub(super) any_case: bool,
    /// What words are made of: `\p{L}` or `[\p{L}\p{M}]`. What is neither that, number nor white space is a symbol.
    pub(super) letters: u16,
    /// Most numbers of a pre-token.
    pub(super) digits: usize,
    /// White space at the end of the text is one pre-token, newlines or not: `\s++$` before the other alternatives.
    pub(super) whole_end: bool,
}

/// Llama 3, GLM-4, and cl100k as the Hugging Face file of it has it.
pub(super) const LLAMA3: Rules =
    Rules { name: "llama3", any_case: true, letters: LETTERS, digits: 3, whole_end: false };
/// cl100k as tiktoken spells it today.
pub(super) const CL100K: Rules = Rules { name: "cl100k", whole_end: true, ..LLAMA3 };
/// The same with contractions in lower case only.
pub(super) const LOWER_CASE: Rules = Rules { name: "cl100k-lower", any_case: false, ..LLAMA3 };
/// Qwen 2 and 3.
pub(super) const QWEN2: Rules = Rules { name: "qwen2", digits: 1, ..LLAMA3 };
/// Qwen 3.5.
pub(super) const QWEN3_5: Rules = Rules { name: "qwen3.5", letters: LETTERS_AND_MARKS, ..QWEN2 };

/// The end of the pre-token that starts at `at`.
#[inline]
pub(super) fn next_end(rules: &Rules, text: &[u8], at: usize) -> usize {
    let (kind, next) = step(text, at);
    if is(kind, rules.letters) {
        return run(text, next, rules.letters);
    }
    match kind {
        NUMBER => digits(text, next, rules.digits - 1),
        NEWLINE => white_space(rules, text, at),
        SPACE if is_at(text, next, rules.letters) => run(text, next, rules.letters),
        SPACE if text[at] == b' ' && is_at(text, next, symbols(rules)) => symbols_end(rules, text, next),
        SPACE => white_space(rules, text, at),
        _ => {
            let end = if rules.any_case { contraction(text, at) } else { contraction_as_written(text, at) };
            if end > at {
                end
            } else if is_at(text, next, rules.letters) {
                run(text, next, rules.letters)
            } else {
                symbols_end(rules, text, next)
            }
        }
    }
}

#[inline(always)]
fn symbols(rules: &Rules) -> u16 {
    NO_WORD & !rules.letters
}

#[inline(always)]
fn symbols_end(rules: &Rules, text: &[u8], at: usize) -> usize {
    line_ends(text, run(text, at, symbols(rules)), false)
}

#[inline(always)]
fn white_space(rules: &Rules, text: &[u8], at: usize) -> usize {
    let white = white(text, at);
    if rules.whole_end && white.end == text.len() { white.end } else { white.lines(at, text.len()) }
}

/// See [`super::Pattern::is_hard_boundary`]:
///
/// - letters and numbers are followed by their like only, in a pre-token;
/// - symbols by symbols, newlines, and letters (of which one may be the prefix);
/// - after a newline, nothing but white space goes on; and white space that ends with a newline is no matter of
///   `\s+(?!\S)`, which would ask whether the text goes on.
pub(super) fn is_hard_boundary(rules: &Rules, before: u32, here: u32) -> bool {
    let (left, right) = (kind_of(before), kind_of(here));
    if is(left, rules.letters) {
        return !is(right, rules.letters);
    }
    match left {
        NUMBER => !is(right, NUMBERS),
        NEWLINE => !is(right, WHITE),
        SPACE => false,
        _ => matches!(right, SPACE | NUMBER),
    }
}
