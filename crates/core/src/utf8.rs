//! Units of one code point each to UTF-8, sixteen at a time.
//!
//! Rule: a high and a low surrogate side by side are the code point that they stand for; any other surrogate, and a unit
//! above U+10FFFF, is U+FFFD.
//!
//! A block of units becomes one word of up to four bytes each, and a length, without a branch: the compiler makes vectors
//! of that, compiled for the processor at hand. Then the words are written side by side, each over what was too long of
//! the one before. Blocks of ASCII are narrowed; those that need the rule above go unit by unit.

use crate::error::{Error, reserve};
use crate::num::{ix, low_u8};
use crate::simd::{self, Task};

/// Units a block.
const BLOCK: usize = 16;

/// A unit of a string.
pub(crate) trait Unit: Copy + Default + Into<u32> {}
impl Unit for u8 {}
impl Unit for u16 {}
impl Unit for u32 {}

/// Appends the UTF-8 of `units` to `out`.
///
/// # Errors
/// [`Error::Memory`] if `out` cannot grow.
pub(crate) fn append<T: Unit>(units: &[T], out: &mut Vec<u8>) -> Result<(), Error> {
    let start = out.len();
    let bound = simd::level().run(Bound(units)) + 4 * BLOCK;
    reserve(out, bound)?;
    out.resize(start + bound, 0);
    let written = simd::level().run(Transcode { units, out: &mut out[start..] });
    out.truncate(start + written);
    Ok(())
}

#[inline(always)]
fn is_surrogate(unit: u32) -> bool {
    unit & 0xffff_f800 == 0xd800
}

/// Bytes of a unit in UTF-8.
#[inline(always)]
fn len(unit: u32) -> u32 {
    1 + u32::from(unit >= 0x80) + u32::from(unit >= 0x800) + u32::from(unit >= 0x1_0000)
}

/// At least the length in UTF-8: a pair of surrogates counts as six bytes.
struct Bound<'a, T>(&'a [T]);

impl<T: Unit> Task for Bound<'_, T> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        self.0.chunks(256).map(|units| ix(units.iter().fold(0, |sum, &unit| sum + len(unit.into())))).sum()
    }
}

struct Transcode<'a, T> {
    units: &'a [T],
    /// Longer than the result by a block of the longest.
    out: &'a mut [u8],
}

impl<T: Unit> Task for Transcode<'_, T> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let Transcode { units, out } = self;
        let (mut at, mut to) = (0, 0);
        while at < units.len() {
            let rest = &units[at..];
            let count = rest.len().min(BLOCK);
            let written = match rest.first_chunk() {
                Some(block) => whole(block, &mut out[to..]),
                // Behind the last unit are zeros, each of which gives one byte; they are taken back.
                None => {
                    let mut block = [T::default(); BLOCK];
                    block[..count].copy_from_slice(rest);
                    whole(&block, &mut out[to..]).map(|bytes| bytes - (BLOCK - count))
                }
            };
            if let Some(bytes) = written {
                at += count;
                to += bytes;
            } else {
                let end = at + count;
                while at < end {
                    (at, to) = one(units, at, out, to);
                }
            }
        }
        to
    }
}

/// Writes a block; the number of bytes. None if there are units in it that are no characters by themselves.
#[inline(always)]
fn whole<T: Unit>(units: &[T; BLOCK], out: &mut [u8]) -> Option<usize> {
    let mut block = [0; BLOCK];
    for (wide, &unit) in block.iter_mut().zip(units) {
        *wide = unit.into();
    }
    let room = out.first_chunk_mut::<{ 4 * BLOCK }>().expect("room for a block");
    if block.iter().fold(0, |all, unit| all | unit) < 0x80 {
        for (byte, &unit) in room.iter_mut().zip(&block) {
            *byte = low_u8(unit);
        }
        return Some(BLOCK);
    }
    let odd = block.iter().fold(false, |odd, &unit| odd | is_surrogate(unit) | (unit > 0x10_ffff));
    if odd { None } else { Some(words(&block, room)) }
}

/// Writes a block of code points, none of them a surrogate; the number of bytes.
#[inline(always)]
fn words(block: &[u32; BLOCK], room: &mut [u8; 4 * BLOCK]) -> usize {
    let mut bytes = [0; BLOCK];
    let mut lens = [0; BLOCK];
    for i in 0..BLOCK {
        let unit = block[i];
        let last = unit & 0x3f | 0x80;
        let third = unit >> 6 & 0x3f | 0x80;
        let second = unit >> 12 & 0x3f | 0x80;
        let two = unit >> 6 | 0xc0 | last << 8;
        let three = unit >> 12 | 0xe0 | third << 8 | last << 16;
        let four = unit >> 18 | 0xf0 | second << 8 | third << 16 | last << 24;
        let long = if unit < 0x1_0000 { three } else { four };
        let more = if unit < 0x800 { two } else { long };
        bytes[i] = if unit < 0x80 { unit } else { more };
        lens[i] = len(unit);
    }
    let mut to = 0;
    for i in 0..BLOCK {
        room[to..to + 4].copy_from_slice(&bytes[i].to_le_bytes());
        to += ix(lens[i]);
    }
    to
}

/// Writes the character at unit `at` to byte `to`; the unit after it and the byte after it.
#[inline(always)]
fn one<T: Unit>(units: &[T], at: usize, out: &mut [u8], to: usize) -> (usize, usize) {
    let unit: u32 = units[at].into();
    let low = units.get(at + 1).map_or(0, |&low| low.into());
    let pair = unit & 0xffff_fc00 == 0xd800 && low & 0xffff_fc00 == 0xdc00;
    let (c, next) = match pair {
        true => (char::from_u32(0x1_0000 + ((unit & 0x3ff) << 10) + (low & 0x3ff)), at + 2),
        false => (char::from_u32(unit), at + 1),
    };
    let written = c.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut out[to..]).len();
    (next, to + written)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule, unit by unit.
    fn literal(units: &[u32]) -> String {
        let mut out = String::new();
        let mut rest = units;
        while let [unit, after @ ..] = rest {
            rest = after;
            match (unit, after) {
                (0xd800..0xdc00, [low @ 0xdc00..0xe000, after @ ..]) => {
                    out.push(char::from_u32(0x1_0000 + (unit - 0xd800) * 0x400 + (low - 0xdc00)).unwrap());
                    rest = after;
                }
                _ => out.push(char::from_u32(*unit).unwrap_or('\u{fffd}')),
            }
        }
        out
    }

    fn check(units: &[u32]) {
        let want = literal(units);
        let mut out = b"before".to_vec();
        append(units, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), format!("before{want}"), "{units:x?}");
        if let Ok(units) = units.iter().map(|&unit| u16::try_from(unit)).collect::<Result<Vec<_>, _>>() {
            let mut out = Vec::new();
            append(&units, &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), want, "{units:x?}");
        }
        if let Ok(units) = units.iter().map(|&unit| u8::try_from(unit)).collect::<Result<Vec<_>, _>>() {
            let mut out = Vec::new();
            append(&units, &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), want, "{units:x?}");
        }
    }

    #[test]
    fn every_unit_beside_others_of_its_kind_and_of_others() {
        let all: Vec<u32> = (0..0x11_0100).chain([u32::MAX, 0x8000_0041]).collect();
        for units in all.chunks(64) {
            check(units);
        }
        for (i, &unit) in all.iter().enumerate().filter(|(i, unit)| i % 37 == 0 || **unit < 0x900) {
            let others = [0x61, 0xe9, 0x4e2d, 0x1_f389, 0xd83d, 0xde00, 0xffff, 0x11_0000];
            let mut units = vec![0x61; 33];
            units[i % 33] = unit;
            units[(i + 1) % 33] = others[i / 33 % 8];
            check(&units);
        }
    }

    #[test]
    fn surrogates_at_every_place_of_a_block() {
        for len in 0..50 {
            for place in 0..len {
                for pair in [[0xd83d, 0xde00], [0xd83d, 0xd83d], [0xde00, 0xd83d], [0xd83d, 0x4e2d], [0xde00, 0xde00]] {
                    let mut units = vec![if len % 2 == 0 { 0x61 } else { 0x430 }; len];
                    units[place] = pair[0];
                    if place + 1 < len {
                        units[place + 1] = pair[1];
                    }
                    check(&units);
                }
            }
        }
    }
}
