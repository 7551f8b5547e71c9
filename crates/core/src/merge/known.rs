//! Stretches of one or two characters seen lately, with their ids: small enough to stay near.
//!
//! Text without spaces is mostly such stretches, some of them over and over. A line holds two entries of 16 bytes; new
//! ones come in second place and move up when they are met again, so that a rare one cannot push out a frequent one.
//! An entry is a pure function of the vocabulary.

use crate::num::{high_bits, ix, low_u32};

/// Longest stretch, in bytes.
pub const MAX_BYTES: usize = 7;
/// Most ids.
pub const MAX_IDS: usize = 3;
/// Lines; 128 KB.
const LINES: usize = 1 << 12;
const ID_BITS: u32 = 20;
const ID_MASK: u64 = (1 << ID_BITS) - 1;

/// The stretches of one worker.
#[derive(Debug)]
pub struct Known {
    /// Two keys, then the ids of each.
    lines: Vec<[u64; 4]>,
}

impl Default for Known {
    fn default() -> Self {
        Known { lines: vec![[0; 4]; LINES] }
    }
}

/// The bytes of a stretch, and its length in the highest.
#[derive(Debug, Clone, Copy)]
pub struct ShortKey(u64);

impl ShortKey {
    /// The key of `text[start..end]`, 1 to [`MAX_BYTES`] bytes; behind `start` there are at least eight.
    #[inline(always)]
    #[must_use]
    pub fn load(text: &[u8], start: usize, end: usize) -> Self {
        let bytes = text[start..].first_chunk::<8>().expect("room behind the text");
        let length = end - start;
        ShortKey(u64::from_le_bytes(*bytes) & ((1 << (8 * length)) - 1) | (length as u64) << 56)
    }

    #[inline(always)]
    fn line(self) -> usize {
        high_bits(self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15), LINES.trailing_zeros())
    }
}

impl Known {
    /// Appends the ids of a stretch, if they are known.
    #[inline(always)]
    pub fn append(&mut self, key: ShortKey, ids: &mut Vec<u32>) -> bool {
        let line = &mut self.lines[key.line()];
        if line[0] != key.0 {
            if line[1] != key.0 {
                return false;
            }
            line.swap(0, 1);
            line.swap(2, 3);
        }
        let packed = line[2];
        let count = ix(low_u32(packed >> (3 * ID_BITS)));
        // All places at once, then back to how many there are: cheaper than a copy of unknown length.
        let place = |i: u32| low_u32(packed >> (i * ID_BITS) & ID_MASK);
        let len = ids.len() + count;
        ids.extend_from_slice(&[place(0), place(1), place(2)]);
        ids.truncate(len);
        true
    }

    /// Keeps the ids of a stretch, if they are few enough.
    #[inline]
    pub fn put(&mut self, key: ShortKey, ids: &[u32]) {
        if ids.len() > MAX_IDS {
            return;
        }
        let line = &mut self.lines[key.line()];
        let at = usize::from(line[0] != 0);
        let count = (ids.len() as u64) << (3 * ID_BITS);
        let packed = (0..).zip(ids).fold(count, |packed, (i, &id)| packed | u64::from(id) << (i * ID_BITS));
        (line[at], line[at + 2]) = (key.0, packed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_right() {
        let mut known = Known::default();
        let mut found = 0;
        for round in 0..4 {
            for n in 0..5_000u32 {
                let text = format!("{n}\0\0\0\0\0\0\0\0");
                let length = text.find('\0').unwrap() + ix(n % 3);
                let key = ShortKey::load(text.as_bytes(), 0, length);
                let want: Vec<u32> = (0..1 + n % 5).map(|i| (n * 7 + i * 1_000) % (1 << 20)).collect();
                let mut ids = vec![5];
                if known.append(key, &mut ids) {
                    assert_eq!(ids, [&[5], &want[..]].concat());
                    found += 1;
                } else {
                    assert_eq!(ids, [5]);
                    known.put(key, &want);
                    assert_eq!(known.append(key, &mut ids), want.len() <= MAX_IDS, "{round}");
                }
            }
        }
        assert!(found > 5_000, "{found}");
    }
}
