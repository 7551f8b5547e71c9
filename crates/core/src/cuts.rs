//! The cuts that the published Kimi path makes in long text before it splits and merges.
//!
//! Rule (lengths in code points, as Python counts them): the text is cut into slices of
//! [`SLICE`]; inside a slice, no piece may hold more than [`RUN`] consecutive white-space or more than
//! [`RUN`] consecutive other code points. The counter starts anew with each slice and each change of kind,
//! and a cut made by it sets it to one. White space is Python's `str.isspace`.
//!
//! [`cuts_utf8`] looks at about ten bytes in every [`RUN`] where words are ordinary: a run that is too long
//! must cover the byte [`RUN`] ahead of its start, so it is enough to look backwards from there for a
//! change of kind. [`cuts_units`] does the same where a code point is a unit of memory, surrogates among them (lengths
//! count before those are replaced). [`cuts_code_points`] is the literal rule, the twin in tests.

use crate::simd::{self, Task};
use crate::unicode::{decode_at, is_python_space};

/// Code points per slice.
pub const SLICE: usize = 400_000;
/// Longest run of one kind, in code points.
pub const RUN: usize = 25_000;

/// Where to cut, by the literal rule: indices into `units`, ascending, without 0 and the end.
pub fn cuts_code_points<T: Copy + Into<u32>>(units: &[T]) -> Vec<usize> {
    let mut cuts = Vec::new();
    let mut space_before = false;
    let mut run = 0;
    for (i, &unit) in units.iter().enumerate() {
        let space = is_python_space(unit.into());
        if i % SLICE == 0 {
            run = 0;
            if i > 0 {
                cuts.push(i);
            }
        }
        if run == 0 || space != space_before {
            run = 1;
        } else if run == RUN {
            cuts.push(i);
            run = 1;
        } else {
            run += 1;
        }
        space_before = space;
    }
    cuts
}

/// Where to cut, as [`cuts_code_points`] does. About O(units / [`RUN`]) where words are ordinary.
pub fn cuts_units<T: Copy + Into<u32>>(units: &[T]) -> Vec<usize> {
    let mut cuts = Vec::new();
    let kind = |at: usize| is_python_space(units[at].into());
    for start in (0..units.len()).step_by(SLICE) {
        if start > 0 {
            cuts.push(start);
        }
        let end = (start + SLICE).min(units.len());
        // A place where the counter is one: no run that matters began before it.
        let mut from = start;
        while end - from > RUN {
            let wanted = kind(from + RUN);
            let last_other = (from..from + RUN).rev().find(|&at| kind(at) != wanted);
            match last_other {
                Some(other) => from = other + 1,
                None => {
                    from += RUN;
                    cuts.push(from);
                }
            }
        }
    }
    cuts
}

/// Where to cut a UTF-8 text: byte offsets, ascending, without 0 and the end.
///
/// O(bytes) to count code points where the text is not ASCII, else about O(bytes / [`RUN`]).
#[must_use]
pub fn cuts_utf8(text: &[u8], ascii: bool) -> Vec<usize> {
    let mut cuts = Vec::new();
    if text.len() <= RUN {
        return cuts;
    }
    let mut start = 0;
    while start < text.len() {
        let end = if ascii { (start + SLICE).min(text.len()) } else { advance(text, start, SLICE) };
        if start > 0 {
            cuts.push(start);
        }
        runs(text, start, end, &mut cuts);
        start = end;
    }
    cuts
}

/// The byte offset `count` code points after `at`, or the end of the text.
fn advance(text: &[u8], mut at: usize, mut count: usize) -> usize {
    // `count` code points take at least `count` bytes: jump, count what was passed, repeat.
    while count > 0 && at < text.len() {
        let mut to = (at + count).min(text.len());
        while to < text.len() && is_continuation(text[to]) {
            to += 1;
        }
        count -= simd::level().run(Starts(&text[at..to]));
        at = to;
    }
    at
}

/// Counts the bytes with which a character starts.
struct Starts<'a>(&'a [u8]);

impl Task for Starts<'_> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        // No more than 255 at a time: counters of one byte make the widest vectors.
        let few = |bytes: &[u8]| bytes.iter().fold(0u8, |count, &byte| count + u8::from(!is_continuation(byte)));
        self.0.chunks(224).map(|bytes| usize::from(few(bytes))).sum()
    }
}

#[inline(always)]
fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Adds the cuts inside runs for the slice `start..end`.
fn runs(text: &[u8], start: usize, end: usize, cuts: &mut Vec<usize>) {
    // A place where the counter is one: no run that matters began before it.
    let mut from = start;
    while end - from > RUN {
        let mut far = from + RUN;
        while far < end && is_continuation(text[far]) {
            far += 1;
        }
        if far == end {
            break;
        }
        match last_change(text, from, far) {
            Some(change) => from = change,
            None => from = long_run(text, from, end, cuts),
        }
    }
}

/// The last place in `(from, at]` where a run of a kind starts, where `at` is a character start.
fn last_change(text: &[u8], from: usize, at: usize) -> Option<usize> {
    let kind = |at: usize| is_python_space(decode_at(text, at).0);
    let wanted = kind(at);
    let mut here = at;
    while here > from {
        let mut before = here - 1;
        while is_continuation(text[before]) {
            before -= 1;
        }
        if kind(before) != wanted {
            return Some(here);
        }
        here = before;
    }
    None
}

/// Walks one run from its start, adding a cut before each further `RUN` code points; returns its end.
fn long_run(text: &[u8], from: usize, end: usize, cuts: &mut Vec<usize>) -> usize {
    let kind = is_python_space(decode_at(text, from).0);
    let (mut at, mut count) = (from, 0);
    while at < end {
        let (code_point, len) = decode_at(text, at);
        if is_python_space(code_point) != kind {
            break;
        }
        if count == RUN {
            cuts.push(at);
            count = 0;
        }
        count += 1;
        at += len;
    }
    at
}
