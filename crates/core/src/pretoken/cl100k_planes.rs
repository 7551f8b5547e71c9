//! The splits of the cl100k family by bit maps. Beside what [`super::planes`] has, the rules of `cl100k.rs` become:
//!
//! - letter: a start if no such is before, unless it is joined by a prefix: white space before, or a symbol before that
//!   stands alone (no symbol and no blank before it).
//! - number: a start if it is the only one of its pre-token.
//!
//! A contraction is a pre-token where a symbol would start one.

use super::cl100k::{Rules, next_end};
use super::kimi::contraction;
use super::planes::{Before, Contraction, Word, joined, next, number_flags, number_starts, symbol_starts};
use super::scan::{LETTERS, contraction_as_written};
use crate::simd::{Classify, Planes};
use crate::unicode::{MARK, OTHER, class_of};

impl super::planes::Rules for &Rules {
    #[inline(always)]
    fn starts<const WIDE: bool>(
        self,
        _: impl Classify,
        word: Word<'_>,
        planes: &Planes,
        before: &mut Before,
    ) -> (u64, u64) {
        let Planes { lower, upper, number, space, blank, newline, quote, non_ascii, tail, .. } = *planes;
        let (inside, first) = (word.inside(), !tail);

        let white = space | newline;
        let mut letter = lower | upper;
        let marks_are_letters = self.letters != LETTERS;
        if WIDE {
            letter |= planes.shared & if marks_are_letters { !0 } else { !planes.mark } | planes.han & !number;
        }
        let symbol = !(letter | number | white);
        let symbol_start = symbol_starts(symbol, blank, first, before);
        let letter_start = letter & !joined::<WIDE>(letter | space, symbol_start, tail, before);
        let by_three = self.digits > 1;
        let number_start = if by_three { number_starts(number, number & !non_ascii, before) } else { number };
        let newline_start = newline & !next(white | symbol, before.space | before.newline | before.symbol);
        let space_start = word.space_starts(space, white, before);
        let mut starts = letter_start | number_start | symbol_start | newline_start | space_start;
        let after_newline = space & first & next(newline, before.newline);
        let is_symbol = |code_point| match class_of(code_point) {
            MARK => !marks_are_letters,
            class => class == OTHER,
        };
        starts = word.between_newlines(space, newline, after_newline, is_symbol, starts);
        let quotes = quote & symbol_start & (letter >> 1 | 1 << 63);
        let find = if self.any_case { contraction } else { contraction_as_written };
        starts = word.contractions(Contraction::Whole, quotes, letter, find, before, starts);
        let mut flags = 0;
        if WIDE {
            flags = word.flags(planes, before);
            if by_three {
                flags |= number_flags(number, non_ascii, before);
            }
            flags &= first & inside;
            starts &= first & !flags;
        }
        if self.whole_end {
            starts = word.whole_end(white, before, starts & inside);
        }
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
        next_end(self, text, at)
    }
}
