//! Pre-tokens seen lately, with all their ids: fixed in size, overwritten, never grown or wiped.
//!
//! A set is one 64-byte line of two entries: key, and up to six ids of 20 bits. New entries come in second
//! place; a hit there moves the entry to the first, so a word seen once cannot push out one that is used. An entry
//! is a pure function of the vocabulary: a worker's cache serves one [`crate::Tables`] only.
//!
//! Only pre-tokens of at most [`super::MAX_KEY_BYTES`] bytes that give at most [`MAX_IDS`] ids are kept.

use super::Key;
use crate::num::low_u32;

/// Most ids of an entry.
pub const MAX_IDS: usize = 6;
/// Lines; a power of two. 512 KB: what a core's own cache holds.
const LINES: usize = 8192;
const WORDS: usize = 8;
const ID_BITS: u32 = 20;
const ID_MASK: u64 = (1 << ID_BITS) - 1;
const COUNT_SHIFT: u32 = 60;

/// The ids of one entry: three a word, the count in the top bits of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ids {
    first: u64,
    second: u64,
}

impl Ids {
    /// Packs 1 to [`MAX_IDS`] ids below 2^20, else None.
    #[must_use]
    pub fn pack(ids: &[u32]) -> Option<Ids> {
        if ids.is_empty() || ids.len() > MAX_IDS {
            return None;
        }
        let mut words = [0u64; 2];
        for (i, &id) in (0u32..).zip(ids) {
            debug_assert!(u64::from(id) <= ID_MASK);
            words[if i < 3 { 0 } else { 1 }] |= u64::from(id) << (ID_BITS * (i % 3));
        }
        words[0] |= (ids.len() as u64) << COUNT_SHIFT;
        Some(Ids { first: words[0], second: words[1] })
    }

    /// The one id of a token.
    #[inline(always)]
    #[must_use]
    pub fn one(id: u32) -> Ids {
        Ids { first: u64::from(id) | 1 << COUNT_SHIFT, second: 0 }
    }

    /// How many.
    #[inline(always)]
    #[must_use]
    pub fn count(self) -> usize {
        crate::num::ix(low_u32(self.first >> COUNT_SHIFT))
    }

    /// All six places; those from [`Ids::count`] on are zero.
    #[inline(always)]
    #[must_use]
    pub fn unpack(self) -> [u32; MAX_IDS] {
        let at = |word: u64, i: u32| low_u32(word >> (ID_BITS * i) & ID_MASK);
        [
            at(self.first, 0),
            at(self.first, 1),
            at(self.first, 2),
            at(self.second, 0),
            at(self.second, 1),
            at(self.second, 2),
        ]
    }
}

/// The cache of one worker.
#[derive(Debug)]
pub struct Cache {
    /// Lines of eight words: two keys, then the two ids words of each; from `start` on, 64-byte aligned.
    words: Vec<u64>,
    start: usize,
}

impl Default for Cache {
    fn default() -> Self {
        // Zeros come from fresh pages, which cost nothing until they are touched.
        let words = vec![0u64; (LINES + 1) * WORDS];
        let start = words.as_ptr().align_offset(64).min(WORDS);
        Cache { words, start }
    }
}

impl Cache {
    #[inline(always)]
    fn line(&mut self, hash: u64) -> &mut [u64; WORDS] {
        let at = self.start + crate::num::high_bits(hash, LINES.trailing_zeros()) * WORDS;
        (&mut self.words[at..at + WORDS]).try_into().expect("eight words")
    }

    /// The ids of the pre-token with this key; `hash` is [`Key::hash`].
    #[inline(always)]
    #[must_use]
    pub fn get(&mut self, key: Key, hash: u64) -> Option<Ids> {
        let line = self.line(hash);
        let (low, high) = key.words();
        if line[0] == low && line[1] == high {
            return Some(Ids { first: line[4], second: line[5] });
        }
        if line[2] == low && line[3] == high {
            line.swap(0, 2);
            line.swap(1, 3);
            line.swap(4, 6);
            line.swap(5, 7);
            return Some(Ids { first: line[4], second: line[5] });
        }
        None
    }

    /// Keeps an entry, in second place of its line.
    #[inline]
    pub fn put(&mut self, key: Key, hash: u64, ids: Ids) {
        let line = self.line(hash);
        let (low, high) = key.words();
        let at = if line[1] == 0 { 0 } else { 2 };
        (line[at], line[at + 1], line[at + 4], line[at + 5]) = (low, high, ids.first, ids.second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back() {
        for n in 1..=MAX_IDS {
            let ids: Vec<u32> = (0..n).map(|i| [0, 1, 163_839, (1 << 20) - 1, 7, 65_536][i]).collect();
            let packed = Ids::pack(&ids).unwrap();
            assert_eq!(packed.count(), n);
            assert_eq!(packed.unpack()[..n], ids);
            assert!(packed.unpack()[n..].iter().all(|&id| id == 0));
        }
        assert_eq!(Ids::pack(&[5]), Some(Ids::one(5)));
        assert_eq!(Ids::pack(&[]), None);
        assert_eq!(Ids::pack(&[1; 7]), None);
    }

    #[test]
    fn an_entry_is_found_or_gone_but_never_another() {
        let mut cache = Cache::default();
        assert_eq!(cache.words.as_ptr().align_offset(64), cache.start);
        let key = |i: u32| Key::new(&i.to_le_bytes()).unwrap();
        let mut found = 0;
        for i in 0..100_000u32 {
            let hash = key(i).hash();
            assert_eq!(cache.get(key(i), hash), None);
            cache.put(key(i), hash, Ids::one(i % 1000));
            assert_eq!(cache.get(key(i), hash), Some(Ids::one(i % 1000)));
        }
        for i in 0..100_000 {
            if let Some(ids) = cache.get(key(i), key(i).hash()) {
                assert_eq!(ids, Ids::one(i % 1000));
                found += 1;
            }
        }
        assert!(found > LINES, "{found}");
    }
}
