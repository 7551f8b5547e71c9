//! Splits by bit maps: all pre-token starts of 64 bytes at once, word after word of 64 bytes. One file a family
//! (`*_planes.rs`) has its [`Rules`]; here is what they share.
//!
//! A run of words begins at a pre-token start, so nothing needs to be carried into the first (no rule looks further
//! behind); each further word gets from the one before what its first rules look at ([`Before`]). In the maps all bytes
//! of a character have its class, so that "before" is one bit to the left for characters of any length.
//!
//! Rules that most families have, as starts:
//!
//! - number: a start if no number is before, and after each third digit.
//! - symbol: a start if no symbol is before and no blank (a blank starts the pre-token then).
//! - newline: a start if neither symbol nor white space is before. After a symbol it belongs to that; after white space
//!   to the run.
//! - space: a start if it is the first of its run of white space; if something other than white space is after it; or if
//!   the last newline of the run is before it. A space after newlines that belong to a symbol is a start.
//!
//! Some things need a second look, in the few words that have them: contractions, spaces between two newlines, which are
//! no start after all, and runs of more than three digits.
//!
//! Rare characters have rules that these do not cover; they are flagged. The pre-token that holds one, or ends before one,
//! goes to the scanner, and a new run of words begins after it. All rules but those for spaces look behind only, and these
//! ask ahead for white space alone: what is decided up to a flag stays right whatever the flagged character does. Tests
//! compare each family with its scanner, the twin, on every text that they have.

use super::{Batch, scan};
use crate::num::ix;
use crate::simd::{Classify, Form, Level, Planes, Task, WINDOW};
use crate::unicode::{NEWLINE, SPACE, class_of, class_of_byte, decode_at};

/// Texts shorter than this go to the scanner: a word of bit maps would cost more.
const MIN_BYTES: usize = 12;

/// What a family has of its own.
pub(super) trait Rules: Copy {
    /// The starts in the word and its flagged characters, as bits: see [`Word::flags`]. `WIDE`: there may be characters
    /// that are not ASCII. What the next word needs goes to `before`.
    fn starts<const WIDE: bool>(
        self,
        classify: impl Classify,
        word: Word<'_>,
        planes: &Planes,
        before: &mut Before,
    ) -> (u64, u64);

    /// The scanner: the end of the pre-token that starts at `at`.
    fn next_end(self, text: &[u8], at: usize) -> usize;
}

/// Fills `batch` from `at`; see [`super::Pattern::fill`].
#[inline(always)]
pub(super) fn fill(level: Level, rules: impl Rules, text: &[u8], at: usize, batch: &mut Batch) -> usize {
    match level.0 {
        Form::Scan => scan::fill(text, at, batch, |text, at| rules.next_end(text, at)),
        Form::Scalar => level.run(Fill { classify: crate::simd::Scalar, rules, text, at, batch }),
        #[cfg(target_arch = "x86_64")]
        Form::Avx2(classify) => level.run(Fill { classify, rules, text, at, batch }),
        #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
        Form::Neon => level.run(Fill { classify: crate::simd::Neon, rules, text, at, batch }),
    }
}

struct Fill<'a, C, R> {
    classify: C,
    rules: R,
    text: &'a [u8],
    at: usize,
    batch: &'a mut Batch,
}

impl<C: Classify, R: Rules> Task for Fill<'_, C, R> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let Fill { classify, rules, text, mut at, batch } = self;
        while at < text.len() && !batch.is_full() {
            at = if text.len() - at < MIN_BYTES {
                let end = rules.next_end(text, at);
                batch.push(at, end);
                end
            } else {
                words(classify, rules, text, at, batch)
            };
        }
        at
    }
}

/// Pre-tokens from `origin` on, until the text ends, the batch is full or the scanner had to help; where to go on.
#[inline(always)]
fn words(classify: impl Classify, rules: impl Rules, text: &[u8], origin: usize, batch: &mut Batch) -> usize {
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
        let word = Word { text, window, origin, base };
        let mut planes = classify.ascii(window.first_chunk().expect("a window is longer"));
        let (mut starts, flags);
        if planes.non_ascii | before.non_ascii == 0 {
            (starts, flags) = rules.starts::<false>(classify, word, &planes, &mut before);
        } else {
            before.class = classify.characters(window, before.class, &mut planes);
            (starts, flags) = rules.starts::<true>(classify, word, &planes, &mut before);
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
            return by_scanner(rules, text, batch, None);
        }
        base += 64;
    }
    by_scanner(rules, text, batch, Some(text.len()))
}

/// Ends the pending pre-token, at `end` or where the scanner says; where to go on.
#[inline(always)]
fn by_scanner(rules: impl Rules, text: &[u8], batch: &mut Batch, end: Option<usize>) -> usize {
    let at = batch.pending();
    let end = end.unwrap_or_else(|| rules.next_end(text, at));
    batch.push(at, end);
    end
}

/// What a word needs to know of the word before it: zeros, at the first. Where nothing else is said, one or zero: the
/// top bit there. What a family does not use costs it nothing.
#[derive(Default)]
pub(super) struct Before {
    pub letter: u64,
    pub lower: u64,
    /// Caseless letters and marks.
    pub shared: u64,
    pub number: u64,
    pub han: u64,
    pub space: u64,
    pub newline: u64,
    pub blank: u64,
    pub symbol: u64,
    pub symbol_or_blank: u64,
    pub non_ascii: u64,
    /// A prefix of several bytes may go over the end: not the top bit, but what is carried out of it.
    pub prefix: u64,
    /// Newlines after symbols, and what else belongs to these then.
    pub line_end: u64,
    /// Of the part of a text that has rules of its own.
    pub zone: u64,
    /// The first two bits, where the last character of such a part goes over the end.
    pub zone_tail: u64,
    /// Letters of ASCII that follow a symbol go on to the end: what is carried out of it.
    pub led: u64,
    /// Whether the white space at the end of the text has begun.
    ended: bool,
    /// Where the run of white space that was looked at last ends, in bytes of the text.
    white_end: usize,
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
pub(super) struct Word<'a> {
    pub text: &'a [u8],
    /// The word and a little more, zeros behind the text.
    pub window: &'a [u8; WINDOW],
    /// The pre-token start with which the run of words began, in bytes.
    pub origin: usize,
    /// The word's first byte.
    pub base: usize,
}

/// Where a contraction is, to those that stand before and after it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Contraction {
    /// It belongs to the word before.
    Suffix,
    /// It is a pre-token.
    Whole,
}

/// `bits`, one place on; the first comes from the word before.
#[inline(always)]
pub(super) fn next(bits: u64, before: u64) -> u64 {
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
    /// The bits that are in the text.
    #[inline(always)]
    pub fn inside(self) -> u64 {
        inside(self.text.len() - self.base)
    }

    /// Starts among spaces, as above. `white` is white space. Not yet right for spaces between newlines.
    #[inline(always)]
    pub fn space_starts(self, space: u64, white: u64, before: &Before) -> u64 {
        let ahead = (white | !self.inside()) >> 1 | self.white_ahead(space) << 63;
        space & !(next(space, before.space) & ahead)
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
    pub fn between_newlines(
        self,
        space: u64,
        newline: u64,
        after_newline: u64,
        is_symbol: impl Fn(u32) -> bool,
        mut starts: u64,
    ) -> u64 {
        // Adding carries the first bit of each run of spaces on to the place after it.
        let (sum, over) = space.overflowing_add(after_newline);
        let mut ends = sum & !space & newline;
        while ends != 0 {
            let end = trailing(ends);
            ends &= ends - 1;
            starts = self.take_back(after_last(after_newline & below(end)), &is_symbol, starts);
        }
        if over && self.newline_after_spaces() {
            starts = self.take_back(after_last(after_newline), is_symbol, starts);
        }
        starts
    }

    /// Takes back the start at bit `place - 1`, a space after newlines, if these do not belong to a symbol.
    #[inline(never)]
    fn take_back(self, place: usize, is_symbol: impl Fn(u32) -> bool, starts: u64) -> u64 {
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
            if is_symbol(decode_at(self.text, at).0) {
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

    /// Leaves of the starts in the white space at the end of the text the first: it is one pre-token.
    #[inline(always)]
    pub fn whole_end(self, white: u64, before: &mut Before, starts: u64) -> u64 {
        let rest = (white | !self.inside()).leading_ones();
        if rest == 0 { starts } else { self.first_of_end(ix(rest), before, starts) }
    }

    #[inline(never)]
    fn first_of_end(self, rest: usize, before: &mut Before, starts: u64) -> u64 {
        // Each run is looked through once, from its first byte.
        if before.white_end < self.text.len().min(self.base + 64) {
            before.white_end = scan::white(self.text, self.base + 64 - rest).end;
        }
        if before.white_end < self.text.len() {
            return starts;
        }
        let end = if rest == 64 { u64::MAX } else { !below(64 - rest) };
        let in_end = starts & end;
        let first = if before.ended { 0 } else { in_end & in_end.wrapping_neg() };
        before.ended |= in_end != 0;
        starts & !end | first
    }

    /// Corrects the starts around contractions: what follows one begins another word. `quotes` are those that may begin
    /// one; `find` says where the contraction at a quote ends, or the quote if none is there.
    #[inline(always)]
    pub fn contractions(
        self,
        place: Contraction,
        quotes: u64,
        letter: u64,
        find: impl Fn(&[u8], usize) -> usize,
        before: &mut Before,
        mut starts: u64,
    ) -> u64 {
        if quotes != 0 || before.contraction > self.base {
            (starts, before.contraction) = self.correct(place, quotes, letter, find, before.contraction, starts);
        } else if before.contraction == self.base {
            starts |= letter & 1;
        }
        starts
    }

    /// The second result is where the last contraction ends.
    #[inline(never)]
    fn correct(
        self,
        place: Contraction,
        mut quotes: u64,
        letter: u64,
        find: impl Fn(&[u8], usize) -> usize,
        mut last: usize,
        mut starts: u64,
    ) -> (u64, usize) {
        let mut apply = |from: usize, end: usize| {
            starts &= !(inside(end) & !inside(from));
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
            // Right after a contraction no word ends, so there is no second one for it.
            if place == Contraction::Whole || at != last {
                let end = find(self.text, at);
                if end != at {
                    last = end;
                    apply(quote + usize::from(place == Contraction::Whole), end - self.base);
                }
            }
        }
        (starts, last)
    }

    /// Characters that have rules of their own in every family, as bits of their bytes:
    ///
    /// - Han that is neither letter nor number;
    /// - a space of several bytes after white space, since "the one before the last" is not one bit back.
    #[inline(always)]
    pub fn flags(self, planes: &Planes, before: &Before) -> u64 {
        planes.han_other | planes.space & planes.non_ascii & next(planes.space, before.space)
    }
}

/// Starts among symbols: one with neither symbol nor blank before.
#[inline(always)]
pub(super) fn symbol_starts(symbol: u64, blank: u64, first: u64, before: &Before) -> u64 {
    symbol & first & !next(symbol | blank, before.symbol_or_blank)
}

/// What has before it a word character (`letter`), a space, or a symbol that starts a pre-token: if it is a word
/// character, these are in one pre-token.
#[inline(always)]
pub(super) fn joined<const WIDE: bool>(letter_or_space: u64, symbol_start: u64, tail: u64, before: &mut Before) -> u64 {
    if WIDE {
        // A symbol may have several bytes: adding carries its first bit over the others, on to the next character.
        let (sum, over) = (symbol_start | tail).overflowing_add(symbol_start);
        let (sum, over_too) = sum.overflowing_add(before.prefix);
        before.prefix = u64::from(over | over_too);
        next(letter_or_space, before.letter | before.space) | sum
    } else {
        let joined = next(letter_or_space | symbol_start, before.letter | before.space | before.prefix);
        before.prefix = symbol_start >> 63;
        joined
    }
}

/// Starts among numbers: the first of a run, and after each third digit.
#[inline(always)]
pub(super) fn number_starts(number: u64, digit: u64, before: &mut Before) -> u64 {
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

/// Two numbers of which one is not an ASCII digit: [`number_starts`] cannot count them.
#[inline(always)]
pub(super) fn number_flags(number: u64, non_ascii: u64, before: &Before) -> u64 {
    let wide = number & non_ascii;
    wide & next(number, before.number) | number & next(wide, before.number & before.non_ascii)
}

/// Bits below `bit`, which is less than 64.
#[inline(always)]
pub(super) fn below(bit: usize) -> u64 {
    (1u64 << bit) - 1
}

/// The lowest `len` bits; all from 64 on.
#[inline(always)]
pub(super) fn inside(len: usize) -> u64 {
    if len >= 64 { u64::MAX } else { below(len) }
}

#[inline(always)]
pub(super) fn trailing(bits: u64) -> usize {
    ix(bits.trailing_zeros())
}

/// The place after the highest bit, 0 if there is none.
#[inline(always)]
fn after_last(bits: u64) -> usize {
    64 - ix(bits.leading_zeros())
}
