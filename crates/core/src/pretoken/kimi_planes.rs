//! The Kimi split by bit maps: all pre-token starts of 64 bytes at once, word after word of 64 bytes.
//!
//! A run of words begins at a pre-token start, so nothing needs to be carried into the first (no alternative looks
//! behind); each further word gets from the one before what its first rules look at ([`Before`]). In the maps all bytes
//! of a character have its class, so that "before" is one bit to the left for characters of any length. The rules of
//! `kimi.rs` become:
//!
//! - word character (letter or mark): a start if no such is before, unless it is joined by a prefix: white space before, or
//!   a symbol before that stands alone (no symbol and no blank before it). Inside a run of them, upper after lower is a start.
//! - number: a start if no number is before, and after each third digit.
//! - symbol: a start if no symbol is before and no blank (a blank starts the pre-token then).
//! - Han: a start if no Han is before.
//! - newline: a start if neither symbol nor white space is before. After a symbol it belongs to that; after white space
//!   to the run.
//! - space: a start if it is the first of its run of white space; if something other than white space is after it; or if
//!   the last newline of the run is before it. A space after newlines that belong to a symbol is a start.
//!
//! Three things need a second look, in the few words that have them: contractions ([`super::kimi::contraction`]), spaces
//! between two newlines, which are no start after all, and runs of more than three digits.
//!
//! Rare characters have rules that these do not cover; [`flags`] finds them. The pre-token that holds one, or
//! ends before one, goes to the scanner, and a new run of words begins after it.
//!
//! All rules but those for spaces look behind only: what is decided up to a flag stays right whatever the flagged
//! character does. Tests compare this with the scanner on every text that they have; the scanner is the twin.

use super::Batch;
use super::kimi::{contraction, next_end};
use crate::num::ix;
use crate::simd::{Classify, Planes, Task, WINDOW};
use crate::unicode::{NEWLINE, OTHER, SPACE, class_of, class_of_byte, decode_at};

/// Texts shorter than this go to the scanner: a word of bit maps would cost more.
const MIN_BYTES: usize = 12;

/// Fills `batch` from `at`; see [`super::Pattern::fill`].
pub(super) struct Fill<'a, C> {
    pub classify: C,
    pub text: &'a [u8],
    pub at: usize,
    pub batch: &'a mut Batch,
}

impl<C: Classify> Task for Fill<'_, C> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        fill(self.classify, self.text, self.at, self.batch)
    }
}

#[inline(always)]
fn fill<C: Classify>(classify: C, text: &[u8], mut at: usize, batch: &mut Batch) -> usize {
    while at < text.len() && !batch.is_full() {
        at = if text.len() - at < MIN_BYTES {
            let end = next_end(text, at);
            batch.push(at, end);
            end
        } else {
            words(classify, text, at, batch)
        };
    }
    at
}

/// Pre-tokens from `origin` on, until the text ends, the batch is full or the scanner had to help; where to go on.
#[inline(always)]
fn words<C: Classify>(classify: C, text: &[u8], origin: usize, batch: &mut Batch) -> usize {
    let mut before = Before::default();
    let mut base = origin;
    batch.start(origin);
    while base < text.len() {
        let mut padded = [0u8; WINDOW];
        let window = match text[base..].first_chunk::<WINDOW>() {
            Some(window) => window,
            None => {
                let rest = &text[base..];
                padded[..rest.len()].copy_from_slice(rest);
                &padded
            }
        };
        let word = Word { text, origin, base };
        let mut planes = classify.ascii(window.first_chunk().expect("a window is longer"));
        let (mut starts, flags);
        if planes.non_ascii | before.non_ascii == 0 {
            (starts, flags) = word.starts::<false>(&planes, &mut before);
        } else {
            before.class = classify.characters(window, before.class, &mut planes);
            (starts, flags) = word.starts::<true>(&planes, &mut before);
        }
        if base == origin {
            starts &= !1;
        }
        if flags != 0 {
            // The pre-tokens that start before the flag; the scanner ends the last of them.
            starts &= below(trailing(flags));
        }
        batch.cut(base, starts);
        if batch.is_full() {
            return batch.pending();
        }
        if flags != 0 {
            return by_scanner(text, batch, None);
        }
        base += 64;
    }
    by_scanner(text, batch, Some(text.len()))
}

/// Ends the pending pre-token, at `end` or where the scanner says; where to go on.
#[inline(always)]
fn by_scanner(text: &[u8], batch: &mut Batch, end: Option<usize>) -> usize {
    let at = batch.pending();
    let end = end.unwrap_or_else(|| next_end(text, at));
    batch.push(at, end);
    end
}

/// What a word needs to know of the word before it: zeros, at the first. Where nothing else is said, one or zero: the
/// top bit there.
#[derive(Default)]
struct Before {
    letter: u64,
    lower: u64,
    /// Caseless letters and marks.
    shared: u64,
    number: u64,
    han: u64,
    space: u64,
    newline: u64,
    symbol: u64,
    symbol_or_blank: u64,
    non_ascii: u64,
    /// A prefix of several bytes may go over the end: not the top bit, but what is carried out of it.
    prefix: u64,
    /// Top two bits of the digits that have a digit before.
    two_digits: u64,
    /// Top three bits of the starts among numbers.
    number_starts: u64,
    /// Class of the character that the last byte is of, if that is not ASCII.
    class: u8,
    /// Where the last contraction ends, in bytes of the text; 0 if there was none.
    contraction: usize,
}

/// Where a word is.
#[derive(Clone, Copy)]
struct Word<'a> {
    text: &'a [u8],
    /// The pre-token start with which the run of words began, in bytes.
    origin: usize,
    /// The word's first byte.
    base: usize,
}

/// `bits`, one place on; the first comes from the word before.
#[inline(always)]
fn next(bits: u64, before: u64) -> u64 {
    bits << 1 | before
}

/// By byte: whether a character that begins with it is white space. 2 if that depends on what follows.
const WHITE_LEAD: [u8; 256] = {
    let mut white = [0; 256];
    let mut byte: u8 = 0;
    while byte < 0x80 {
        white[byte as usize] = matches!(class_of_byte(byte), SPACE | NEWLINE) as u8;
        byte += 1;
    }
    white[0xc2] = 2;
    white[0xe1] = 2;
    white[0xe2] = 2;
    white[0xe3] = 2;
    white
};

impl Word<'_> {
    /// The starts in the word and its flagged characters, as bits. `WIDE`: there may be characters that are not ASCII.
    #[inline(always)]
    fn starts<const WIDE: bool>(self, planes: &Planes, before: &mut Before) -> (u64, u64) {
        let Planes { lower, upper, space, blank, newline, quote, tail, shared, han, .. } = *planes;
        let inside = inside(self.text.len() - self.base);
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
        let symbol_start = symbol & first & !next(symbol | blank, before.symbol_or_blank);
        let joined;
        if WIDE {
            // A symbol may have several bytes: adding carries its first bit over the others, on to the next character.
            let (sum, over) = (symbol_start | tail).overflowing_add(symbol_start);
            let (sum, over_too) = sum.overflowing_add(before.prefix);
            joined = next(letter | space, before.letter | before.space) | sum;
            before.prefix = u64::from(over | over_too);
        } else {
            joined = next(letter | space | symbol_start, before.letter | before.space | before.prefix);
            before.prefix = symbol_start >> 63;
        }
        let letter_start = letter & !joined | upper & next(lower, before.lower);
        let number_start = number_starts(number, number & !planes.non_ascii, before);
        let newline_start = newline & !next(white | symbol, before.space | before.newline | before.symbol);
        let ahead = (white | !inside) >> 1 | self.white_ahead(space) << 63;
        let space_start = space & !(next(space, before.space) & ahead);
        let mut starts = letter_start | number_start | symbol_start | newline_start | space_start;
        if WIDE {
            starts |= han & !next(han, before.han);
        }
        starts = self.between_newlines(space, newline, space & first & next(newline, before.newline), starts);
        // Only those with a letter on both sides can be contractions.
        let quotes = quote & next(letter, before.letter) & (letter >> 1 | 1 << 63);
        if quotes != 0 || before.contraction > self.base {
            (starts, before.contraction) = self.contractions(quotes, letter, before.contraction, starts);
        } else if before.contraction == self.base {
            starts |= letter & 1;
        }
        let flags = if WIDE { flags(planes, before, number, symbol) & first & inside } else { 0 };
        if WIDE {
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

    /// One if the character after the word is white space, or there is none; where that does not matter, since no space
    /// is before it, perhaps one as well.
    #[inline(always)]
    fn white_ahead(self, space: u64) -> u64 {
        let at = self.base + 64;
        match self.text.get(at).map(|&byte| WHITE_LEAD[usize::from(byte)]) {
            None => 1,
            Some(2) => u64::from(space >> 63 == 1 && class_of(decode_at(self.text, at).0) == SPACE),
            Some(white) => u64::from(white),
        }
    }

    /// Takes back the starts at spaces that follow a newline and have another one after them, but for those whose
    /// newlines before belong to a symbol.
    #[inline(always)]
    fn between_newlines(self, space: u64, newline: u64, after_newline: u64, mut starts: u64) -> u64 {
        // Adding carries the first bit of each run of spaces on to the place after it.
        let (sum, over) = space.overflowing_add(after_newline);
        let mut ends = sum & !space & newline;
        while ends != 0 {
            let end = trailing(ends);
            ends &= ends - 1;
            starts = self.take_back(after_last(after_newline & below(end)), starts);
        }
        if over && self.newline_after_spaces() {
            starts = self.take_back(after_last(after_newline), starts);
        }
        starts
    }

    /// Takes back the start at bit `place - 1`, a space after newlines, if these do not belong to a symbol.
    #[inline(never)]
    fn take_back(self, place: usize, starts: u64) -> u64 {
        let bit = place - 1;
        let mut at = self.base + bit;
        while at > self.origin && matches!(self.text[at - 1], b'\r' | b'\n') {
            at -= 1;
        }
        if at > self.origin {
            at -= 1;
            while self.text[at] & 0xc0 == 0x80 && at > self.origin {
                at -= 1;
            }
            if class_of(decode_at(self.text, at).0) == OTHER {
                return starts;
            }
        }
        starts & !(1 << bit)
    }

    /// True if a newline ends the spaces with which the next word begins.
    fn newline_after_spaces(self) -> bool {
        let mut at = self.base + 64;
        // The last space may go on there.
        while self.text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80) {
            at += 1;
        }
        while at < self.text.len() {
            let (code_point, len) = decode_at(self.text, at);
            match class_of(code_point) {
                SPACE => at += len,
                class => return class == NEWLINE,
            }
        }
        false
    }

    /// Corrects the starts around `quotes`, which have a word character before them: a contraction belongs to the word
    /// before, and what follows it begins another. The second result is where the last contraction ends.
    #[inline(never)]
    fn contractions(self, mut quotes: u64, letter: u64, mut last: usize, mut starts: u64) -> (u64, usize) {
        let mut apply = |from: usize, end: usize| {
            starts &= !(inside(end) & !below(from));
            if end < 64 {
                starts |= letter & 1 << end;
            }
        };
        if last >= self.base {
            apply(0, last - self.base);
        }
        while quotes != 0 {
            let quote = trailing(quotes);
            quotes &= quotes - 1;
            let at = self.base + quote;
            // Right after a contraction no word ends, so there is no second one.
            if at != last {
                let end = contraction(self.text, at);
                if end != at {
                    last = end;
                    apply(quote, end - self.base);
                }
            }
        }
        (starts, last)
    }
}

/// Starts among numbers: the first of a run, and after each third digit.
#[inline(always)]
fn number_starts(number: u64, digit: u64, before: &mut Before) -> u64 {
    let mut starts = number & !next(number, before.number);
    let two_digits = digit & next(digit, before.number & !before.non_ascii);
    let long = two_digits & (two_digits << 2 | before.two_digits);
    if long != 0 {
        let mut third = (starts << 3 | before.number_starts) & long;
        while third != 0 {
            starts |= third;
            third = third << 3 & long;
        }
    }
    before.two_digits = two_digits >> 62;
    before.number_starts = starts >> 61;
    starts
}

/// Characters that the rules by bit maps do not cover, as bits of their first bytes (others mean nothing):
///
/// - upper after caseless or mark: whether a word ends there depends on what stands further on, on both sides;
/// - a mark after a symbol: it may belong to that or begin a word;
/// - Han that is neither letter nor number: it may belong to symbols;
/// - a Han number after a number, which may go on with it; two numbers of which one is not an ASCII digit;
/// - a space of several bytes after a space, since "the one before the last" is not one bit back.
#[inline(always)]
fn flags(planes: &Planes, before: &Before, number: u64, symbol: u64) -> u64 {
    let wide_number = number & planes.non_ascii;
    let after_number = next(number, before.number);
    planes.upper & next(planes.shared, before.shared)
        | planes.mark & next(symbol, before.symbol)
        | planes.han_other
        | planes.number & planes.han & after_number
        | wide_number & after_number
        | number & next(wide_number, before.number & before.non_ascii)
        | planes.space & planes.non_ascii & next(planes.space, before.space)
}

/// Bits below `bit`, which is less than 64.
#[inline(always)]
fn below(bit: usize) -> u64 {
    (1u64 << bit) - 1
}

/// The lowest `len` bits; all from 64 on.
#[inline(always)]
fn inside(len: usize) -> u64 {
    if len >= 64 { u64::MAX } else { below(len) }
}

#[inline(always)]
fn trailing(bits: u64) -> usize {
    ix(bits.trailing_zeros())
}

/// The place after the highest bit, 0 if there is none.
#[inline(always)]
fn after_last(bits: u64) -> usize {
    64 - ix(bits.leading_zeros())
}
