//! The split of GPT-2 by bit maps. The rules of `gpt2.rs` become:
//!
//! - letter, number, all else: a start if none of its sort is before and no blank (a blank starts the pre-token then).
//! - white space: a start if it is the first of its run, or if something else is after it.
//!
//! A contraction is a pre-token where other sorts would start one.

use super::gpt2::next_end;
use super::planes::{Before, Contraction, Rules, Word, next, symbol_starts};
use super::scan::contraction_as_written;
use crate::simd::{Classify, Planes};

/// The rules of GPT-2.
#[derive(Clone, Copy)]
pub(super) struct Gpt2;

impl Rules for Gpt2 {
    #[inline(always)]
    fn starts<const WIDE: bool>(
        self,
        _: impl Classify,
        word: Word<'_>,
        planes: &Planes,
        before: &mut Before,
    ) -> (u64, u64) {
        let Planes { lower, upper, number, blank, newline, quote, tail, .. } = *planes;
        let (inside, first) = (word.inside(), !tail);

        let white = planes.space | newline;
        let mut letter = lower | upper;
        if WIDE {
            letter |= planes.shared & !planes.mark | planes.han & !number;
        }
        let symbol = !(letter | number | white);
        let symbol_start = symbol_starts(symbol, blank, first, before);
        let letter_start = letter & !next(letter | blank, before.letter | before.blank);
        let number_start = number & !next(number | blank, before.number | before.blank);
        let white_start = word.space_starts(white, white, before);
        let mut starts = letter_start | number_start | symbol_start | white_start;
        let quotes = quote & symbol_start & (letter >> 1 | 1 << 63);
        starts = word.contractions(Contraction::Whole, quotes, letter, contraction_as_written, before, starts);
        let mut flags = 0;
        if WIDE {
            let after_newline = planes.space & planes.non_ascii & next(newline, before.newline);
            flags = (word.flags(planes, before) | after_newline) & first & inside;
            starts &= first & !flags;
        }
        before.letter = letter >> 63;
        before.number = number >> 63;
        before.space = white >> 63;
        before.newline = newline >> 63;
        before.blank = blank >> 63;
        before.symbol_or_blank = (symbol | blank) >> 63;
        before.non_ascii = planes.non_ascii >> 63;
        (starts & inside, flags)
    }

    #[inline(always)]
    fn next_end(self, text: &[u8], at: usize) -> usize {
        next_end(text, at)
    }
}
