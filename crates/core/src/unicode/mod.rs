//! Character classes, as the split patterns need them.
//!
//! [`class_of`] maps a code point to one of eleven classes; they partition all code points along
//! every distinction that the Kimi pattern makes. The data (`tables.rs`) is generated from
//! `regex-syntax` 0.8.11, Unicode 16.0.0, the tables behind `tiktoken` 0.14.0. Another Unicode
//! version would change ids: `tests/unicode.rs` compares all 1,114,112 code points with the
//! pinned crate, and `cargo run -p kizami-core --example generate_unicode` writes the file anew.
//!
//! [`kind_of`] does the same for all other patterns: these set Han not apart, but some of them symbols.
//!
//! Cost: two loads a lookup, about 40 KB of tables each.

#[rustfmt::skip]
mod kind_tables;
#[rustfmt::skip]
mod tables;

pub use tables::UNICODE_VERSION;

use crate::num::ix;

/// None of the classes below: punctuation, symbols, controls, unassigned, private use.
pub const OTHER: u8 = 0;
/// `\p{Lu}` and `\p{Lt}`.
pub const UPPER: u8 = 1;
/// `\p{Ll}`.
pub const LOWER: u8 = 2;
/// `\p{Lm}` and `\p{Lo}` outside Han: letters that may stand in either half of a word.
pub const CASELESS: u8 = 3;
/// `\p{M}` outside Han.
pub const MARK: u8 = 4;
/// `\p{N}` outside Han.
pub const NUMBER: u8 = 5;
/// `\s` but for the two of [`NEWLINE`].
pub const SPACE: u8 = 6;
/// `\r` and `\n`.
pub const NEWLINE: u8 = 7;
/// `\p{Han}` and a letter.
pub const HAN_LETTER: u8 = 8;
/// `\p{Han}` and a number, such as U+3007.
pub const HAN_NUMBER: u8 = 9;
/// `\p{Han}` and neither: radicals, reading marks.
pub const HAN_OTHER: u8 = 10;

/// `[\p{P}\p{S}]`: a kind, not a class.
pub const SYMBOL: u8 = 11;

/// Names of the classes, by value.
pub const CLASS_NAMES: [&str; 11] = [
    "other",
    "upper",
    "lower",
    "caseless",
    "mark",
    "number",
    "space",
    "newline",
    "han_letter",
    "han_number",
    "han_other",
];

/// The class of a code point; [`OTHER`] for surrogates and above U+10FFFF.
#[inline(always)]
#[must_use]
pub const fn class_of(code_point: u32) -> u8 {
    let block = (code_point >> 8) as usize;
    if block >= tables::BLOCK_OF.len() {
        return OTHER;
    }
    tables::BLOCKS[tables::BLOCK_OF[block] as usize][(code_point & 0xff) as usize]
}

/// The kind of a code point: [`SYMBOL`] or, with Han like any other script, a class from [`UPPER`] to [`NEWLINE`], or
/// [`OTHER`].
#[inline(always)]
#[must_use]
pub const fn kind_of(code_point: u32) -> u8 {
    let block = (code_point >> 8) as usize;
    if block >= kind_tables::BLOCK_OF.len() {
        return OTHER;
    }
    kind_tables::BLOCKS[kind_tables::BLOCK_OF[block] as usize][(code_point & 0xff) as usize]
}

/// The kind of an ASCII byte; bytes from 0x80 give the kind of the Latin-1 code point.
#[inline(always)]
#[must_use]
pub const fn kind_of_byte(byte: u8) -> u8 {
    kind_tables::BLOCKS[0][byte as usize]
}

/// Code points of a page: those whose UTF-8 differs in the last byte only.
pub const PAGE: usize = 64;

/// The classes of a page: of the code points from `64 * number` on. [`OTHER`] above U+10FFFF.
#[inline(always)]
#[must_use]
pub fn page(number: u32) -> &'static [u8; PAGE] {
    let Some(&block) = tables::BLOCK_OF.get(ix(number >> 2)) else {
        return &[OTHER; PAGE];
    };
    let (pages, _) = tables::BLOCKS[usize::from(block)].as_chunks();
    &pages[ix(number & 3)]
}

/// The class of an ASCII byte; bytes from 0x80 give the class of the Latin-1 code point.
#[inline(always)]
#[must_use]
pub const fn class_of_byte(byte: u8) -> u8 {
    tables::BLOCKS[0][byte as usize]
}

/// Decodes the character that starts at `at`: code point and length in bytes.
///
/// `text` must be UTF-8 and `at` a character start below `text.len()`; every caller gets its text
/// from the transcoders of `text`. On anything else the result is some code point, not UB.
#[inline(always)]
#[must_use]
pub fn decode_at(text: &[u8], at: usize) -> (u32, usize) {
    let lead = text[at];
    if lead < 0x80 {
        return (u32::from(lead), 1);
    }
    let tail = |k: usize| u32::from(text.get(at + k).copied().unwrap_or(0) & 0x3f);
    match lead {
        0..0xe0 => ((u32::from(lead & 0x1f) << 6) | tail(1), 2),
        0xe0..0xf0 => ((u32::from(lead & 0x0f) << 12) | (tail(1) << 6) | tail(2), 3),
        _ => ((u32::from(lead & 0x07) << 18) | (tail(1) << 12) | (tail(2) << 6) | tail(3), 4),
    }
}

/// Whitespace as Python's `str.isspace` has it: `White_Space` and U+001C to U+001F.
///
/// The published path cuts long runs by this test, not by the pattern's `\s`.
#[inline(always)]
#[must_use]
pub fn is_python_space(code_point: u32) -> bool {
    match code_point {
        0..0x80 => matches!(code_point, 9..=13 | 28..=32),
        _ => class_of(code_point) == SPACE,
    }
}
