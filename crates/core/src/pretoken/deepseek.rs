//! The split of DeepSeek V3 and V4: three patterns one after the other, each on the pieces of the one before.
//!
//! 1. [`NUMBER_STAGE`] sets numbers apart, up to three at a time;
//! 2. [`CJK_STAGE`] sets apart runs of the main block of Han, of hiragana and of katakana;
//! 3. [`WORD_STAGE`] splits the rest, and the runs of stage 2 once more. It does not match everything: text between its
//!    matches is a pre-token, too.
//!
//! So a text falls into zones (numbers, CJK, the rest), and stage 3 sees no further than its zone: a space before a number
//! ends its piece. No number is in the CJK ranges, and what a zone is follows from each character alone.

use super::scan::{LETTERS_AND_MARKS, digits, is, set};
use crate::unicode::{NEWLINE, NUMBER, OTHER, SPACE, SYMBOL, decode_at, kind_of, kind_of_byte};

/// The first pattern.
#[cfg(feature = "general-pattern")]
pub(super) const NUMBER_STAGE: &str = r"\p{N}{1,3}";
/// The second pattern.
#[cfg(feature = "general-pattern")]
pub(super) const CJK_STAGE: &str = "[一-龥\u{3040}-ゟ゠-ヿ]+";
/// The third pattern; its newlines are characters, not escapes.
#[cfg(feature = "general-pattern")]
pub(super) const WORD_STAGE: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|"##,
    "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|",
    " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|",
    r"\s+(?!\S)|\s+"
);

const SYMBOLS: u16 = set(&[SYMBOL]);

/// Whether stage 2 matches the character.
#[inline(always)]
pub(super) fn is_cjk(code_point: u32) -> bool {
    matches!(code_point, 0x3040..=0x30ff | 0x4e00..=0x9fa5)
}

/// A text from some place on, up to the end of a zone that is not numbers.
#[derive(Clone, Copy)]
struct Zone<'a> {
    text: &'a [u8],
    cjk: bool,
}

impl Zone<'_> {
    /// The kind of the character at `at` and the position after it; None at the end of the zone.
    #[inline(always)]
    fn step(self, at: usize) -> Option<(u8, usize)> {
        let &byte = self.text.get(at)?;
        let (kind, next, cjk) = if byte < 0x80 {
            (kind_of_byte(byte), at + 1, false)
        } else {
            let (code_point, len) = decode_at(self.text, at);
            (kind_of(code_point), at + len, is_cjk(code_point))
        };
        (kind != NUMBER && cjk == self.cjk).then_some((kind, next))
    }

    #[inline(always)]
    fn is_at(self, at: usize, kinds: u16) -> bool {
        self.step(at).is_some_and(|(kind, _)| is(kind, kinds))
    }

    #[inline(always)]
    fn run(self, mut at: usize, kinds: u16) -> usize {
        while let Some((kind, next)) = self.step(at) {
            if !is(kind, kinds) {
                break;
            }
            at = next;
        }
        at
    }

    /// ` ?[\p{P}\p{S}]+[\r\n]*` after its optional space.
    #[inline(always)]
    fn symbols(self, at: usize) -> usize {
        self.run(self.run(at, SYMBOLS), set(&[NEWLINE]))
    }

    /// `\s*[\r\n]+|\s+(?!\S)|\s+`; here the text ends with the zone.
    fn white_space(self, start: usize) -> usize {
        let (mut at, mut last, mut after_newline) = (start, start, None);
        let goes_on = loop {
            match self.step(at) {
                None => break false,
                Some((NEWLINE, next)) => after_newline = Some(next),
                Some((SPACE, _)) => {}
                Some(_) => break true,
            }
            last = at;
            at = self.step(at).map_or(at, |(_, next)| next);
        };
        match after_newline {
            Some(end) => end,
            None if goes_on && last > start => last,
            None => at,
        }
    }

    /// What no alternative matches: characters of no use, until one of them is a prefix or something else comes.
    fn gap(self, mut at: usize) -> usize {
        while let Some((OTHER, next)) = self.step(at) {
            if self.is_at(next, LETTERS_AND_MARKS) {
                break;
            }
            at = next;
        }
        at
    }
}

/// The end of the pre-token that starts at `at`.
#[inline]
pub(super) fn next_end(text: &[u8], at: usize) -> usize {
    let (code_point, len) = decode_at(text, at);
    let (kind, next) = (kind_of(code_point), at + len);
    let zone = Zone { text, cjk: is_cjk(code_point) };
    match kind {
        NUMBER => digits(text, next, 2),
        NEWLINE => zone.white_space(at),
        SPACE if zone.is_at(next, LETTERS_AND_MARKS) => zone.run(next, LETTERS_AND_MARKS),
        SPACE if text[at] == b' ' && zone.is_at(next, SYMBOLS) => zone.symbols(next),
        SPACE => zone.white_space(at),
        // All ASCII symbols are in the class with which the first alternative begins.
        SYMBOL if len == 1 && text.get(next).is_some_and(u8::is_ascii_alphabetic) => {
            next + text[next..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count()
        }
        SYMBOL => zone.symbols(next),
        OTHER if zone.is_at(next, LETTERS_AND_MARKS) => zone.run(next, LETTERS_AND_MARKS),
        OTHER => zone.gap(next),
        _ => zone.run(next, LETTERS_AND_MARKS),
    }
}

/// See [`super::Pattern::is_hard_boundary`]:
///
/// - where a zone ends;
/// - letters and marks are followed by their like only;
/// - nothing but white space goes on to a space;
/// - after a newline, nothing but white space goes on.
pub(super) fn is_hard_boundary(before: u32, here: u32) -> bool {
    let zone = |code_point, kind| (kind == NUMBER, is_cjk(code_point));
    let (left, right) = (kind_of(before), kind_of(here));
    if zone(before, left) != zone(here, right) {
        return true;
    }
    match left {
        NUMBER | SPACE => false,
        NEWLINE => !matches!(right, SPACE | NEWLINE),
        OTHER | SYMBOL => right == SPACE,
        _ => !is(right, LETTERS_AND_MARKS),
    }
}
