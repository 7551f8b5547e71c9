//! The Kimi split of ASCII text by bit maps: all pre-token starts of 64 bytes at once.
//!
//! A window begins at a pre-token start, so nothing needs to be carried into it (no alternative looks behind). In ASCII
//! there are no caseless letters and no marks, and the rules of `kimi.rs` become, for the byte `i` of a
//! window, with "before" and "after" for its neighbours:
//!
//! - letter: a start if no letter is before, unless it is joined by a prefix: white space before, or a symbol before that
//!   stands alone (no symbol and no blank before it). Inside a run of letters, upper after lower is a start.
//! - digit: a start if no digit is before, and after each third digit.
//! - symbol: a start if no symbol is before and no blank (a blank starts the pre-token then).
//! - newline: a start if a letter or digit is before. After a symbol it belongs to that; after white space to the run.
//! - space: a start if it is the first of its run of white space; if something other than white space is after it; or if
//!   the last newline of the run is before it. A space after newlines that belong to a symbol is a start.
//!
//! Two things need a second look, in the few words that have them: contractions ([`super::kimi::contraction`]), and spaces
//! between two newlines, which are no start after all. Runs of more than three digits too.
//!
//! # Where a window ends
//! At its first non-ASCII byte, or the end of the text. All rules look behind only, but for spaces, which look ahead to the
//! end of their run: a run of white space that touches the window's end is left undecided but for its first byte.
//! The last start is where the next window begins. A window that finds no second start leaves one pre-token to the scanner.
//!
//! Tests compare this with the scanner on every text that they have; the scanner is the twin.

use super::Batch;
use super::kimi::{contraction, next_end};
use crate::simd::{Classify, Planes, Task};

/// Texts shorter than this go to the scanner: a window would cost more.
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
        if text[at] < 0x80 && text.len() - at >= MIN_BYTES {
            let starts = window(classify, text, at);
            // The first bit is `at` itself; each further one ends a pre-token.
            let mut rest = starts & (starts - 1);
            if rest != 0 {
                let base = at;
                while rest != 0 {
                    let end = base + trailing(rest);
                    if batch.is_full() {
                        return at;
                    }
                    batch.push(at, end);
                    at = end;
                    rest &= rest - 1;
                }
                continue;
            }
        }
        let end = next_end(text, at);
        batch.push(at, end);
        at = end;
    }
    at
}

#[inline(always)]
fn trailing(bits: u64) -> usize {
    crate::num::ix(bits.trailing_zeros())
}

/// The starts in the window at `at`, as bits; the first bit is set.
#[inline(always)]
fn window<C: Classify>(classify: C, text: &[u8], at: usize) -> u64 {
    let mut padded = [0u8; 64];
    let (bytes, room) = match text[at..].first_chunk::<64>() {
        Some(bytes) => (bytes, 64),
        None => {
            let rest = &text[at..];
            padded[..rest.len()].copy_from_slice(rest);
            (&padded, rest.len())
        }
    };
    let planes = classify.planes(bytes);
    let len = room.min(trailing(planes.non_ascii));
    // Bits of the window; `len` is at least 1, since the caller saw an ASCII byte.
    let inside = u64::MAX >> (64 - len);
    let mut starts = starts(&planes) & inside | 1;
    starts = undecided(&planes, starts, len);
    let letter = planes.lower | planes.upper;
    let mut quotes = planes.quote & letter << 1 & inside;
    let mut last_end = 0;
    while quotes != 0 {
        let quote = trailing(quotes);
        quotes &= quotes - 1;
        // Right after a contraction no word ends, so there is no second one.
        if quote != last_end {
            (starts, last_end) = with_contraction(text, at, quote, letter, starts);
            starts &= inside;
        }
    }
    starts
}

/// The starts by the rules that look one or two bytes around, and by the second looks at digits and newlines.
#[inline(always)]
fn starts(planes: &Planes) -> u64 {
    let Planes { lower, upper, digit, space, blank, newline, .. } = *planes;
    let letter = lower | upper;
    let white = space | newline;
    let symbol = !(letter | digit | white | planes.non_ascii);
    // Bit 0 has nothing before it.
    let symbol_start = symbol & !(symbol << 1) & !(blank << 1);
    let joined = (space | symbol_start) << 1;
    let letter_start = letter & !(letter << 1) & !joined | upper & lower << 1;
    let mut digit_start = digit & !(digit << 1);
    let long = digit & digit << 1 & digit << 2 & digit << 3;
    if long != 0 {
        // Each third digit after a start starts again, as long as digits go on.
        let mut next = digit_start;
        loop {
            next = next << 3 & long;
            if next == 0 {
                break;
            }
            digit_start |= next;
        }
    }
    let newline_start = newline & (letter | digit) << 1;
    let mut space_start = space & (!(white << 1) | !(white >> 1) | newline << 1);
    // A newline after a space, in a run that had a newline before: the space after that one is no start.
    let mut late = newline & space << 1;
    while late != 0 {
        let end = trailing(late);
        late &= late - 1;
        let before = (1u64 << end) - 1;
        // Last byte before `end` that is no space, then the last before that which is no newline.
        let run_start = after_last(before & !space);
        if run_start == 0 || newline >> (run_start - 1) & 1 == 0 {
            continue;
        }
        let newlines_start = after_last(before_bit(run_start) & !newline);
        let after_symbol = newlines_start > 0 && symbol >> (newlines_start - 1) & 1 == 1;
        if !after_symbol {
            space_start &= !(1 << run_start);
        }
    }
    letter_start | digit_start | symbol_start | newline_start | space_start
}

#[inline(always)]
fn before_bit(bit: usize) -> u64 {
    (1u64 << bit) - 1
}

/// The place after the highest bit, 0 if there is none.
#[inline(always)]
fn after_last(bits: u64) -> usize {
    64 - crate::num::ix(bits.leading_zeros())
}

/// Takes back the starts in a run of white space that touches the window's end, but for its first byte.
#[inline(always)]
fn undecided(planes: &Planes, starts: u64, len: usize) -> u64 {
    let white = planes.space | planes.newline;
    let inside = u64::MAX >> (64 - len);
    let run_start = after_last(inside & !white);
    if run_start >= len {
        return starts;
    }
    // Of newlines that belong to a symbol, the run proper begins after them; then its start is undecided, too.
    starts & (1u64 << run_start | before_bit(run_start))
}

/// Corrects the starts around the quote at bit `quote`, which has a letter before it; and where the contraction ends,
/// or 0 if it is none.
fn with_contraction(text: &[u8], at: usize, quote: usize, letter: u64, starts: u64) -> (u64, usize) {
    let end = contraction(text, at + quote) - at;
    if end == quote {
        return (starts, 0);
    }
    // The quote and its letters belong to the word before; a letter after them begins a word.
    let through = if end >= 64 { u64::MAX } else { before_bit(end) };
    let kept = starts & !(through & !before_bit(quote));
    (if end < 64 { kept | letter & 1 << end } else { kept }, end)
}
