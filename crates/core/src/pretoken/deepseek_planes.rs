//! The split of DeepSeek by bit maps. Beside what [`super::planes`] has, the rules of `deepseek.rs` become:
//!
//! - where CJK begins or ends: a start. A number is a start, or the third after one, and whatever follows one is.
//! - word character (letter or mark): a start if no such is before, unless it is joined: by white space before, or, if it
//!   is a letter of ASCII, by a symbol of ASCII before that starts a pre-token. After letters so joined, any other word
//!   character is a start.
//! - space: numbers and CJK after it are the end of the text.
//!
//! Contractions are no matter. What is neither of these (controls, unassigned) is flagged.

use super::deepseek::{is_cjk, next_end};
use super::planes::{Before, Rules, Word, next, number_flags, number_starts, symbol_starts, trailing};
use crate::simd::{Classify, Planes};
use crate::unicode::{NUMBER, OTHER, class_of, decode_at, kind_of};

/// The rules of DeepSeek V3.
#[derive(Clone, Copy)]
pub(super) struct Deepseek;

impl Rules for Deepseek {
    #[inline(always)]
    fn starts<const WIDE: bool>(
        self,
        classify: impl Classify,
        word: Word<'_>,
        planes: &Planes,
        before: &mut Before,
    ) -> (u64, u64) {
        let Planes { lower, upper, number, space, blank, newline, non_ascii, tail, .. } = *planes;
        let (inside, first) = (word.inside(), !tail);

        let white = space | newline;
        let ascii_letter = (lower | upper) & !non_ascii;
        let mut letter = lower | upper;
        if WIDE {
            letter |= planes.shared | planes.han & !number;
        }
        let symbol = !(letter | number | white);
        let mut symbol_start = symbol_starts(symbol, blank, first, before);
        let (mut cjk, mut zone_start) = (0, 0);
        if WIDE {
            cjk = cjk_of(classify, word, before);
            zone_start = cjk ^ next(cjk, before.zone);
            symbol_start |= symbol & zone_start;
        }
        let led = ascii_letter & next(symbol_start & !non_ascii, before.prefix);
        let letter_start = letter & !next(letter | space, before.letter | before.space) & !led;
        // Adding carries the first of the letters that a symbol leads over the others, on to what follows them.
        let (sum, over) = ascii_letter.overflowing_add(led);
        let (sum, over_too) = sum.overflowing_add(before.led);
        let after_led = letter & sum & !ascii_letter;
        before.led = u64::from(over | over_too);
        let number_start = number_starts(number, number & !non_ascii, before);
        let newline_start = newline & !next(white | symbol, before.space | before.newline | before.symbol);
        let ahead = (white | number | cjk | !inside) >> 1 | ahead(word, space) << 63;
        let space_start = space & !(next(space, before.space) & ahead);
        let mut starts = letter_start | after_led | number_start | symbol_start | newline_start | space_start;
        starts |= zone_start;
        let after_newline = space & first & next(newline, before.newline);
        let is_symbol = |code_point| class_of(code_point) == OTHER && !is_cjk(code_point);
        starts = word.between_newlines(space, newline, after_newline, is_symbol, starts);
        let mut flags = if symbol & !non_ascii == 0 { 0 } else { symbol & controls(classify, word) };
        if WIDE {
            flags |= word.flags(planes, before) | number_flags(number, non_ascii, before);
            flags |= no_symbols(word, symbol & non_ascii & first);
        }
        flags &= first & inside;
        starts &= first & !flags;
        before.prefix = (symbol_start & !non_ascii) >> 63;
        before.zone = cjk >> 63;
        before.letter = letter >> 63;
        before.number = number >> 63;
        before.space = space >> 63;
        before.newline = newline >> 63;
        before.symbol = symbol >> 63;
        before.symbol_or_blank = (symbol | blank) >> 63;
        before.non_ascii = non_ascii >> 63;
        (starts & inside, flags)
    }

    #[inline(always)]
    fn next_end(self, text: &[u8], at: usize) -> usize {
        next_end(text, at)
    }
}

/// The characters of [`is_cjk`]: U+3040 to U+30FF and U+4E00 to U+9FA5, which is E3 81 80 to E3 83 BF and E4 B8 80 to
/// E9 BE A5.
#[inline(always)]
fn cjk_of(classify: impl Classify, word: Word<'_>, before: &mut Before) -> u64 {
    let bytes = |offset: usize| word.window[offset..].first_chunk().expect("three bytes more than 64");
    let range = |offset, low, high| classify.range(bytes(offset), low, high);
    let mut lead = 0;
    if range(0, 0xe3, 0xe9) != 0 {
        let e3 = range(0, 0xe3, 0xe3) & range(1, 0x81, 0x83);
        let e4 = range(0, 0xe4, 0xe4) & range(1, 0xb8, 0xbf);
        let mut e9 = range(0, 0xe9, 0xe9);
        if e9 != 0 {
            e9 &= range(1, 0x80, 0xbd) | range(1, 0xbe, 0xbe) & range(2, 0x80, 0xa5);
        }
        lead = e3 | e4 | range(0, 0xe5, 0xe8) | e9;
    }
    let cjk = lead | lead << 1 | lead << 2 | before.zone_tail;
    before.zone_tail = lead >> 62 | lead >> 63;
    cjk
}

/// One if the zone ends after the word or the next character is white space; perhaps one as well where no two spaces are
/// before.
#[inline(always)]
fn ahead(word: Word<'_>, space: u64) -> u64 {
    if space >> 62 != 3 { 0 } else { u64::from(ends_zone(word)) }
}

#[inline(never)]
fn ends_zone(word: Word<'_>) -> bool {
    let mut at = word.base + 64;
    // The last space may go on there.
    while word.text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80) {
        at += 1;
    }
    if at >= word.text.len() {
        return true;
    }
    let code_point = decode_at(word.text, at).0;
    kind_of(code_point) == NUMBER || is_cjk(code_point) || super::scan::is(kind_of(code_point), super::scan::WHITE)
}

/// Control characters of ASCII, and some of its white space.
#[inline(always)]
fn controls(classify: impl Classify, word: Word<'_>) -> u64 {
    let bytes = word.window.first_chunk().expect("a window is longer");
    classify.range(bytes, 0, 0x1f) | classify.range(bytes, 0x7f, 0x7f)
}

/// Those of `places`, first bytes of characters, that are no symbols. There are few: punctuation.
#[inline(always)]
fn no_symbols(word: Word<'_>, mut places: u64) -> u64 {
    let mut found = 0;
    while places != 0 {
        let at = trailing(places);
        places &= places - 1;
        if kind_of(decode_at(word.window, at).0) == OTHER {
            found |= 1 << at;
        }
    }
    found
}
