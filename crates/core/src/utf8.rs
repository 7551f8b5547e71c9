//! Units of one code point each to UTF-8, sixteen at a time.
//!
//! Rule: a high and a low surrogate side by side are the code point that they stand for; any other surrogate, and a unit
//! above U+10FFFF, is U+FFFD.
//!
//! A block whose characters are below U+10000, as nearly all are, goes to what the processor has for it ([`Narrow`]). Where
//! it has nothing, and for a block that holds characters beyond, units become words of up to four bytes each, and
//! lengths, without a branch: the compiler makes vectors of that. Then the words are written side by side, each over
//! what was too long of the one before. A block that needs the rule above goes unit by unit.

use crate::error::{Error, reserve};
use crate::num::{ix, low_u8, low_u16};
use crate::simd::{self, Level, Task};

/// Units a block.
pub(crate) const BLOCK: usize = 16;
/// Bytes that a block may take.
pub(crate) const BLOCK_BYTES: usize = 4 * BLOCK;
/// Bytes written before they are appended: they stay near the processor, and only once are they zeros first.
const ROOM: usize = 2048;

/// A unit of a string.
pub(crate) trait Unit: Copy + Default + Into<u32> {}
impl Unit for u8 {}
impl Unit for u16 {}
impl Unit for u32 {}

/// A way to write sixteen characters below U+10000.
pub(crate) trait Narrow: Copy {
    /// Writes the UTF-8 of `units` to the beginning of `room`, and anything behind it; the number of bytes. None if there
    /// are surrogates.
    fn narrow(self, units: &[u16; BLOCK], room: &mut [u8; BLOCK_BYTES]) -> Option<usize>;
}

/// By plain code.
#[derive(Clone, Copy)]
struct Plain;

impl Narrow for Plain {
    #[inline(always)]
    fn narrow(self, units: &[u16; BLOCK], room: &mut [u8; BLOCK_BYTES]) -> Option<usize> {
        whole(&widen(units), room)
    }
}

/// Appends the UTF-8 of `units` to `out`.
///
/// # Errors
/// [`Error::Memory`] if `out` cannot grow.
pub(crate) fn append<T: Unit>(units: &[T], out: &mut Vec<u8>) -> Result<(), Error> {
    append_at_level(simd::level(), units, out)
}

fn append_at_level<T: Unit>(level: Level, units: &[T], out: &mut Vec<u8>) -> Result<(), Error> {
    let mut room = [0; ROOM];
    let mut at = 0;
    while at < units.len() {
        let (next, written) = transcode(level, units, at, &mut room);
        reserve(out, written)?;
        out.extend_from_slice(&room[..written]);
        at = next;
    }
    Ok(())
}

fn transcode<T: Unit>(level: Level, units: &[T], at: usize, room: &mut [u8; ROOM]) -> (usize, usize) {
    #[cfg(target_arch = "x86_64")]
    if let simd::Form::Avx2(narrow) = level.0 {
        return level.run(Transcode { narrow, units, at, room });
    }
    level.run(Transcode { narrow: Plain, units, at, room })
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

/// The bytes of the units from `at` on, as many as there is room for: the next unit, and the number of bytes.
struct Transcode<'a, T, N> {
    narrow: N,
    units: &'a [T],
    at: usize,
    room: &'a mut [u8; ROOM],
}

impl<T: Unit, N: Narrow> Task for Transcode<'_, T, N> {
    type Output = (usize, usize);

    #[inline(always)]
    fn run(self) -> (usize, usize) {
        let Transcode { narrow, units, mut at, room } = self;
        let mut to = 0;
        while at < units.len()
            && let Some(space) = room[to..].first_chunk_mut()
        {
            let rest = &units[at..];
            let count = rest.len().min(BLOCK);
            let written = match rest.first_chunk() {
                Some(block) => any(narrow, block, space),
                // Behind the last unit are zeros, each of which gives one byte; they are taken back.
                None => {
                    let mut block = [T::default(); BLOCK];
                    block[..count].copy_from_slice(rest);
                    any(narrow, &block, space).map(|bytes| bytes - (BLOCK - count))
                }
            };
            if let Some(bytes) = written {
                at += count;
                to += bytes;
            } else {
                let end = at + count;
                while at < end {
                    (at, to) = one(units, at, room, to);
                }
            }
        }
        (at, to)
    }
}

/// Writes a block; the number of bytes. None if there are units in it that are no characters by themselves.
#[inline(always)]
fn any<T: Unit>(narrow: impl Narrow, units: &[T; BLOCK], room: &mut [u8; BLOCK_BYTES]) -> Option<usize> {
    let units = widen(units);
    if units.iter().fold(0, |all, unit| all | unit) >= 0x1_0000 {
        return whole(&units, room);
    }
    let mut halves = [0; BLOCK];
    for (half, &unit) in halves.iter_mut().zip(&units) {
        *half = low_u16(unit);
    }
    narrow.narrow(&halves, room)
}

#[inline(always)]
fn widen<T: Unit>(units: &[T; BLOCK]) -> [u32; BLOCK] {
    let mut wide = [0; BLOCK];
    for (wide, &unit) in wide.iter_mut().zip(units) {
        *wide = unit.into();
    }
    wide
}

/// The same for any units, by plain code.
#[inline(always)]
fn whole(block: &[u32; BLOCK], room: &mut [u8; BLOCK_BYTES]) -> Option<usize> {
    if block.iter().fold(0, |all, unit| all | unit) < 0x80 {
        for (byte, &unit) in room.iter_mut().zip(block) {
            *byte = low_u8(unit);
        }
        return Some(BLOCK);
    }
    let odd = block.iter().fold(false, |odd, &unit| odd | is_surrogate(unit) | (unit > 0x10_ffff));
    if odd { None } else { Some(words(block, room)) }
}

/// Writes a block of code points, none of them a surrogate; the number of bytes.
#[inline(always)]
fn words(block: &[u32; BLOCK], room: &mut [u8; BLOCK_BYTES]) -> usize {
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
        check_units(units, &want);
        if let Ok(units) = units.iter().map(|&unit| u16::try_from(unit)).collect::<Result<Vec<_>, _>>() {
            check_units(&units, &want);
        }
        if let Ok(units) = units.iter().map(|&unit| u8::try_from(unit)).collect::<Result<Vec<_>, _>>() {
            check_units(&units, &want);
        }
    }

    fn check_units<T: Unit>(units: &[T], want: &str) {
        for level in Level::all() {
            let mut out = b"before".to_vec();
            append_at_level(level, units, &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), format!("before{want}"), "{}", level.name());
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
    #[test]
    fn every_mix_of_lengths_in_a_block() {
        let kinds = [0x61, 0xe9, 0x4e2d];
        for mix in 0..3usize.pow(8) {
            let units: Vec<u32> = (0..8).map(|i| kinds[mix / 3usize.pow(i) % 3]).collect();
            check(&[&units[..], &[0x62; 8], &units].concat());
            check(&[&[0x62; 8], &units[..]].concat());
        }
    }

    #[test]
    fn more_than_there_is_room_for_at_once() {
        let kinds = [0x61, 0xe9, 0x4e2d, 0x1_f389, 0xd83d, 0xde00];
        for len in [ROOM / 3, ROOM - 65, ROOM - 1, ROOM, 5000] {
            for kind in kinds {
                check(&vec![kind; len]);
            }
            check(&(0..len).map(|i| kinds[i * i / 7 % 6]).collect::<Vec<_>>());
        }
    }
}
