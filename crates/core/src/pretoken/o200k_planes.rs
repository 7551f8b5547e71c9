//! The splits of the o200k family by bit maps. Beside what [`super::planes`] has, the rules of `o200k.rs` become:
//!
//! - word character (letter or mark): a start if no such is before, unless it is joined by a prefix: white space before, or
//!   a symbol before that stands alone (no symbol and no blank before it). Inside a run of them, upper after lower is a start;
//!   upper after caseless or mark is as [`after_shared`] says.
//! - number: a start if it is the only one of its pre-token.
//! - newlines after a symbol, and slashes after these: none is a start, and what follows a slash has no symbol before it.
//!
//! A contraction belongs to the word before it.

use super::kimi::contraction;
use super::o200k::{Rules, next_end};
use super::planes::{Before, Contraction, Word, joined, next, number_flags, number_starts, symbol_starts, trailing};
use crate::simd::{Classify, Planes};
use crate::unicode::{OTHER, class_of};

impl super::planes::Rules for &Rules {
    #[inline(always)]
    fn starts<const WIDE: bool>(
        self,
        classify: impl Classify,
        word: Word<'_>,
        planes: &Planes,
        before: &mut Before,
    ) -> (u64, u64) {
        let Planes { lower, upper, number, space, blank, newline, quote, non_ascii, tail, .. } = *planes;
        let (inside, first) = (word.inside(), !tail);

        let white = space | newline;
        let mut letter = lower | upper;
        // Han has no case.
        let shared = if WIDE { planes.shared | planes.han & !number } else { 0 };
        letter |= shared;
        let symbol = !(letter | number | white);
        let line_end = line_ends(classify, word, symbol, newline, before);
        // What newlines took is no symbol to what follows.
        let symbol = symbol & !line_end;
        let symbol_start = symbol_starts(symbol, blank, first, before);
        let joined = joined::<WIDE>(letter | space, symbol_start, tail, before);
        let mut letter_start = letter & !joined | upper & next(lower, before.lower);
        let by_three = self.digits > 1;
        let number_start = if by_three { number_starts(number, number & !non_ascii, before) } else { number };
        let newline_start = newline & !line_end & !next(white | symbol, before.space | before.newline | before.symbol);
        let space_start = word.space_starts(space, white, before);
        let mut flags = 0;
        if WIDE {
            let places = upper & next(shared, before.shared) & first;
            if places != 0 {
                let (starts, unclear) = after_shared(places, planes, shared);
                letter_start |= starts;
                flags = unclear;
            }
        }
        let mut starts = letter_start | number_start | symbol_start | newline_start | space_start;
        let after_newline = space & first & next(newline, before.newline);
        let is_symbol = |code_point| class_of(code_point) == OTHER;
        starts = word.between_newlines(space, newline, after_newline, is_symbol, starts);
        if self.contractions {
            // Only those with a letter on both sides can be contractions.
            let quotes = quote & next(letter, before.letter) & (letter >> 1 | 1 << 63);
            starts = word.contractions(Contraction::Suffix, quotes, letter, contraction, before, starts);
        }
        if WIDE {
            // A mark after a symbol may belong to that or begin a word.
            flags |= word.flags(planes, before) | planes.mark & next(symbol, before.symbol);
            if by_three {
                flags |= number_flags(number, non_ascii, before);
            }
            flags &= first & inside;
            starts &= first & !flags;
        }
        before.letter = letter >> 63;
        before.lower = lower >> 63;
        before.shared = shared >> 63;
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

/// `[\r\n/]*` after symbols, from its first newline on: slashes before that are symbols like any other.
#[inline(always)]
fn line_ends(classify: impl Classify, word: Word<'_>, symbol: u64, newline: u64, before: &mut Before) -> u64 {
    let seeds = newline & next(symbol, before.symbol) | before.line_end;
    if seeds == 0 {
        return 0;
    }
    let slash = classify.range(word.window.first_chunk().expect("a window is longer"), b'/', b'/');
    let run = newline | slash;
    let seeds = seeds & run;
    // Adding carries each seed over the rest of its run; a second seed of a run is left out by that.
    let taken = (run.wrapping_add(seeds) ^ run | seeds) & run;
    before.line_end = taken >> 63;
    taken
}

/// Starts among uppers that come after caseless letters or marks (`places`), and those of which that cannot be said here.
///
/// A word is `U* L+` or else `U+ L*`, and what is both, shared, says not where its word is. If a lower is before it, that is in
/// `L+`, and an upper starts another word. If not, it is in `U*` with the uppers that follow; the word goes on if after
/// these there is something for `L+`, and else ends with the shared.
#[inline(never)]
fn after_shared(mut places: u64, planes: &Planes, shared: u64) -> (u64, u64) {
    let Planes { lower, upper, quote, .. } = *planes;
    let (mut starts, mut unclear) = (0, 0);
    while places != 0 {
        let at = trailing(places);
        let bit = places & places.wrapping_neg();
        places &= places - 1;
        let run = if at == 0 { 0 } else { (shared << (64 - at)).leading_ones() };
        let begin = at - crate::num::ix(run);
        // At the beginning of the word, or behind what may be a contraction: the scanner knows.
        if begin < 4 || quote >> (begin - 4) & 0xf != 0 {
            unclear |= bit;
        } else if lower >> (begin - 1) & 1 == 1 {
            starts |= bit;
        } else {
            let end = at + crate::num::ix((upper >> at).trailing_ones());
            if end >= 64 {
                unclear |= bit;
            } else if (lower | shared) >> end & 1 == 0 {
                starts |= bit;
            }
        }
    }
    (starts, unclear)
}
