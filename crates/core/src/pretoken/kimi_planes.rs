//! The Kimi split by bit maps. Beside what [`super::planes`] has, the rules of `kimi.rs` become:
//!
//! - word character (letter or mark): a start if no such is before, unless it is joined by a prefix: white space before, or
//!   a symbol before that stands alone (no symbol and no blank before it). Inside a run of them, upper after lower is a start.
//! - Han: a start if no Han is before.
//!
//! A contraction belongs to the word before it.

use super::kimi::{contraction, next_end};
use super::planes::{Before, Contraction, Rules, Word, joined, next, number_flags, number_starts, symbol_starts};
use crate::simd::{Classify, Planes};
use crate::unicode::{OTHER, class_of};

/// The rules of the Kimi line.
#[derive(Clone, Copy)]
pub(super) struct Kimi;

impl Rules for Kimi {
    #[inline(always)]
    fn starts<const WIDE: bool>(
        self,
        _: impl Classify,
        word: Word<'_>,
        planes: &Planes,
        before: &mut Before,
    ) -> (u64, u64) {
        let Planes { lower, upper, space, blank, newline, quote, tail, shared, han, .. } = *planes;
        let inside = word.inside();
        let first = !tail;

        let white = space | newline;
        let mut letter = lower | upper;
        let mut number = planes.number;
        let mut symbol = !(letter | number | white);
        if WIDE {
            letter |= shared;
            number &= !han;
            symbol &= !(shared | han);
        }
        let symbol_start = symbol_starts(symbol, blank, first, before);
        let joined = joined::<WIDE>(letter | space, symbol_start, tail, before);
        let letter_start = letter & !joined | upper & next(lower, before.lower);
        let number_start = number_starts(number, number & !planes.non_ascii, before);
        let newline_start = newline & !next(white | symbol, before.space | before.newline | before.symbol);
        let space_start = word.space_starts(space, white, before);
        let mut starts = letter_start | number_start | symbol_start | newline_start | space_start;
        if WIDE {
            starts |= han & !next(han, before.han);
        }
        let after_newline = space & first & next(newline, before.newline);
        let is_symbol = |code_point| class_of(code_point) == OTHER;
        starts = word.between_newlines(space, newline, after_newline, is_symbol, starts);
        // Only those with a letter on both sides can be contractions.
        let quotes = quote & next(letter, before.letter) & (letter >> 1 | 1 << 63);
        starts = word.contractions(Contraction::Suffix, quotes, letter, contraction, before, starts);
        let mut flags = 0;
        if WIDE {
            flags = (flags_of(planes, before, number, symbol) | word.flags(planes, before)) & first & inside;
            starts &= first & !flags;
            before.shared = shared >> 63;
            before.han = han >> 63;
            before.non_ascii = planes.non_ascii >> 63;
        } else {
            (before.shared, before.han, before.non_ascii) = (0, 0, 0);
        }
        before.letter = letter >> 63;
        before.lower = lower >> 63;
        before.number = number >> 63;
        before.space = space >> 63;
        before.newline = newline >> 63;
        before.symbol = symbol >> 63;
        before.symbol_or_blank = (symbol | blank) >> 63;
        (starts & inside, flags)
    }

    #[inline(always)]
    fn next_end(self, text: &[u8], at: usize) -> usize {
        next_end(text, at)
    }
}

/// Characters that the rules by bit maps do not cover, beside those of [`Word::flags`]:
///
/// - upper after caseless or mark: whether a word ends there depends on what stands further on, on both sides;
/// - a mark after a symbol: it may belong to that or begin a word;
/// - a Han number after a number, which may go on with it; two numbers of which one is not an ASCII digit.
#[inline(always)]
fn flags_of(planes: &Planes, before: &Before, number: u64, symbol: u64) -> u64 {
    planes.upper & next(planes.shared, before.shared)
        | planes.mark & next(symbol, before.symbol)
        | planes.number & planes.han & next(number, before.number)
        | number_flags(number, planes.non_ascii, before)
}
