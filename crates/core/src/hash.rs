//! A fast hash with secret keys, for maps of what comes from files: who writes a file cannot know which of its strings
//! would fall together.

use std::hash::{BuildHasher, Hasher, RandomState};

use crate::lookup::fold;

/// Keys of one map.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keys([u64; 2]);

/// The state of a hash.
#[derive(Debug)]
pub(crate) struct Keyed {
    keys: [u64; 2],
    state: u64,
}

impl Default for Keys {
    fn default() -> Self {
        // The standard library's own random keys, made into ours by its own hash.
        let random = RandomState::new();
        Keys([random.hash_one(0), random.hash_one(1) | 1])
    }
}

impl BuildHasher for Keys {
    type Hasher = Keyed;

    #[inline]
    fn build_hasher(&self) -> Keyed {
        Keyed { keys: self.0, state: self.0[0] }
    }
}

/// Two words that, together with their length, say what up to sixteen bytes are: loads that overlap.
#[inline(always)]
pub(crate) fn short_words(bytes: &[u8]) -> Option<[u64; 2]> {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let half = |at: usize| u64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")));
    let byte = |at: usize| u64::from(bytes[at]);
    match bytes.len() {
        0 => Some([0, 0]),
        len @ 1..4 => Some([byte(0) | byte(len / 2) << 8 | byte(len - 1) << 16, 0]),
        len @ 4..8 => Some([half(0), half(len - 4)]),
        len @ 8..=16 => Some([word(0), word(len - 8)]),
        _ => None,
    }
}

/// Whether two strings are equal: for short ones, which most are, without a call.
#[inline(always)]
pub(crate) fn are_equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len()
        && match (short_words(a), short_words(b)) {
            (Some(a), Some(b)) => a == b,
            _ => a == b,
        }
}

#[cfg(feature = "formats")]
impl Keys {
    /// A hash of a string of up to sixteen bytes, given as [`short_words`].
    #[inline(always)]
    pub fn hash_short(&self, [low, high]: [u64; 2], len: u32) -> u64 {
        fold(fold(self.0[0] ^ low, self.0[1] ^ high) ^ u64::from(len), self.0[1])
    }
}

impl Keyed {
    #[inline(always)]
    fn add(&mut self, a: u64, b: u64) {
        self.state = fold(self.state ^ a, self.keys[1] ^ b);
    }
}

impl Hasher for Keyed {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let half = |at: usize| u64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")));
        let len = bytes.len();
        // Loads that overlap; with the length, which is added too, they say what the bytes are.
        match len {
            0 => {}
            1..4 => self.add(
                u64::from(bytes[0]) | u64::from(bytes[len / 2]) << 8 | u64::from(bytes[len - 1]) << 16,
                len as u64,
            ),
            4..8 => self.add(half(0) | half(len - 4) << 32, len as u64),
            8..=16 => {
                self.add(word(0), word(len - 8));
                self.add(len as u64, 0);
            }
            _ => {
                (0..len - 16).step_by(16).for_each(|at| self.add(word(at), word(at + 8)));
                self.add(word(len - 16), word(len - 8));
                self.add(len as u64, 0);
            }
        }
    }

    #[inline]
    fn write_u8(&mut self, byte: u8) {
        self.add(byte.into(), 0);
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.add(value.into(), 0);
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.add(value, 0);
    }

    /// The length of a slice, which comes before its bytes: they carry it themselves.
    #[inline]
    fn write_usize(&mut self, _: usize) {}

    #[inline]
    fn finish(&self) -> u64 {
        fold(self.state, self.keys[1])
    }
}
