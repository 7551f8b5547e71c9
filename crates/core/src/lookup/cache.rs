//! Pre-tokens seen lately, with all their ids: bounded in size, overwritten, never wiped.
//!
//! Two tables of 64-byte lines. A line of the first holds two entries: a [`Key`] and up to [`SHORT_IDS`] ids. New
//! entries come in second place; a hit there moves the entry to the first, so a word seen once cannot push out one that
//! is used. A line of the second holds one entry: a [`LongKey`] and up to [`LONG_IDS`] ids. Pre-tokens of more than
//! 15 bytes are there, and shorter ones of too many ids for the first.
//!
//! An entry is a pure function of the vocabulary: a worker's cache serves one [`crate::Tables`] only.
//!
//! # Size
//! A table begins small, so that a first prompt touches little fresh memory, and grows by four when as many entries
//! were put as it has room for, up to [`MOST_BITS`]. To grow is only to use more bits of the hash. Nothing is moved:
//! a pre-token that is not in its new line is looked for in the line of the size before.

use super::key::{Key, LongKey};
use crate::num::{high_bits, ix};
use crate::simd;
use crate::table::{Plain, zeroed};

/// Most ids of an entry under a [`Key`].
pub const SHORT_IDS: usize = 4;
/// Most ids of an entry under a [`LongKey`].
pub const LONG_IDS: usize = 8;
/// Lines of a new table, as a power of two: 256 KB.
const FIRST_BITS: u32 = 12;
/// Lines of a full-grown table: 4 MB.
const MOST_BITS: u32 = 16;
/// Bits a step.
const STEP: u32 = 2;
const COUNT_SHIFT: u32 = 28;
const ID_MASK: u32 = (1 << COUNT_SHIFT) - 1;

/// The ids of one entry, the count in the top bits of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Ids<const N: usize>([u32; N]);

impl<const N: usize> Ids<N> {
    /// Packs 1 to `N` ids below 2^28, else None.
    #[inline]
    #[must_use]
    pub fn pack(ids: &[u32]) -> Option<Self> {
        if ids.is_empty() || ids.len() > N {
            return None;
        }
        let mut places = [0; N];
        places[..ids.len()].copy_from_slice(ids);
        debug_assert!(ids.iter().all(|&id| id <= ID_MASK));
        places[0] |= crate::num::to_u32(ids.len()) << COUNT_SHIFT;
        Some(Ids(places))
    }

    /// One id.
    #[inline(always)]
    #[must_use]
    pub fn one(id: u32) -> Self {
        let mut places = [0; N];
        places[0] = id | 1 << COUNT_SHIFT;
        Ids(places)
    }

    /// How many.
    #[inline(always)]
    #[must_use]
    pub fn count(self) -> usize {
        ix(self.0[0] >> COUNT_SHIFT)
    }

    /// All places; those from [`Ids::count`] on are zero.
    #[inline(always)]
    #[must_use]
    pub fn places(self) -> [u32; N] {
        self.0.map(|place| place & ID_MASK)
    }
}

/// Two entries.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Pair {
    keys: [Key; 2],
    ids: [Ids<SHORT_IDS>; 2],
}

// SAFETY: repr(C), 2 * 16 + 2 * 16 = 64 bytes, hence no padding; integers only; align 64 = ALIGN.
unsafe impl Plain for Pair {}

/// One entry.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Single {
    key: LongKey,
    ids: Ids<LONG_IDS>,
}

// SAFETY: repr(C), 32 + 32 = 64 bytes, hence no padding; integers only; align 64 = ALIGN.
unsafe impl Plain for Single {}

/// Lines, of which a power of two is in use.
#[derive(Debug)]
struct Lines<L> {
    lines: Box<[L]>,
    bits: u32,
    /// Entries that may be put before the next step.
    room: usize,
}

impl<L: Plain> Lines<L> {
    fn new() -> Self {
        // Zeros come from fresh pages, which cost nothing until they are touched.
        Lines { lines: zeroed(1 << MOST_BITS), bits: FIRST_BITS, room: 1 << FIRST_BITS }
    }

    #[inline(always)]
    fn line(&mut self, hash: u64) -> &mut L {
        &mut self.lines[high_bits(hash, self.bits)]
    }

    /// The line of the size before.
    fn line_before(&self, hash: u64) -> Option<&L> {
        (self.bits > FIRST_BITS).then(|| &self.lines[high_bits(hash, self.bits - STEP)])
    }

    fn count_put(&mut self) {
        if self.bits < MOST_BITS {
            self.room -= 1;
            if self.room == 0 {
                self.bits += STEP;
                self.room = 1 << self.bits;
            }
        }
    }
}

/// The cache of one worker.
#[derive(Debug)]
pub struct Cache {
    pairs: Lines<Pair>,
    singles: Lines<Single>,
}

impl Default for Cache {
    fn default() -> Self {
        Cache { pairs: Lines::new(), singles: Lines::new() }
    }
}

impl Cache {
    /// Asks the processor to bring the line of a short key near.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        simd::prefetch(&self.pairs.lines[high_bits(hash, self.pairs.bits)]);
    }

    /// Asks the processor to bring the line of a long key near.
    #[inline(always)]
    pub fn prefetch_long(&self, hash: u64) {
        simd::prefetch(&self.singles.lines[high_bits(hash, self.singles.bits)]);
    }

    /// The ids of the pre-token with this key; `hash` is [`Key::hash`].
    #[inline(always)]
    #[must_use]
    pub fn get(&mut self, key: Key, hash: u64) -> Option<Ids<SHORT_IDS>> {
        let line = self.pairs.line(hash);
        if line.keys[0] == key {
            return Some(line.ids[0]);
        }
        if line.keys[1] == key {
            line.keys.swap(0, 1);
            line.ids.swap(0, 1);
            return Some(line.ids[0]);
        }
        None
    }

    /// As [`Cache::get`], where the line of the size before has it; puts it in its new line.
    pub fn get_before(&mut self, key: Key, hash: u64) -> Option<Ids<SHORT_IDS>> {
        let line = self.pairs.line_before(hash)?;
        let ids = line.ids[line.keys.iter().position(|&known| known == key)?];
        self.put(key, hash, ids);
        Some(ids)
    }

    /// Keeps an entry, in second place of its line.
    #[inline]
    pub fn put(&mut self, key: Key, hash: u64, ids: Ids<SHORT_IDS>) {
        let line = self.pairs.line(hash);
        let place = usize::from(line.keys[0] != Key::default());
        (line.keys[place], line.ids[place]) = (key, ids);
        self.pairs.count_put();
    }

    /// The ids of the pre-token with this long key; `hash` is [`LongKey::hash`].
    #[inline(always)]
    #[must_use]
    pub fn get_long(&mut self, key: &LongKey, hash: u64) -> Option<Ids<LONG_IDS>> {
        let line = self.singles.line(hash);
        (line.key == *key).then_some(line.ids)
    }

    /// As [`Cache::get_long`], where the line of the size before has it; puts it in its new line.
    pub fn get_long_before(&mut self, key: &LongKey, hash: u64) -> Option<Ids<LONG_IDS>> {
        let line = self.singles.line_before(hash).filter(|line| line.key == *key)?;
        let ids = line.ids;
        self.put_long(key, hash, ids);
        Some(ids)
    }

    /// Keeps an entry, in place of what was in its line.
    #[inline]
    pub fn put_long(&mut self, key: &LongKey, hash: u64, ids: Ids<LONG_IDS>) {
        *self.singles.line(hash) = Single { key: *key, ids };
        self.singles.count_put();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back() {
        for n in 1..=LONG_IDS {
            let ids: Vec<u32> = (0..n).map(|i| [0, 1, 163_839, (1 << 20) - 1, 7, 65_536, 9, 3][i]).collect();
            let packed = Ids::<LONG_IDS>::pack(&ids).unwrap();
            assert_eq!(packed.count(), n);
            assert_eq!(packed.places()[..n], ids);
            assert!(packed.places()[n..].iter().all(|&id| id == 0));
        }
        assert_eq!(Ids::<SHORT_IDS>::pack(&[5]), Some(Ids::one(5)));
        assert_eq!(Ids::<LONG_IDS>::pack(&[]), None);
        assert_eq!(Ids::<LONG_IDS>::pack(&[1; 9]), None);
        assert_eq!(Ids::<SHORT_IDS>::pack(&[1; 5]), None);
    }

    #[test]
    fn an_entry_is_found_or_gone_but_never_another() {
        let mut cache = Cache::default();
        let key = |i: u32| Key::new(&i.to_le_bytes()).unwrap();
        let ids = |i: u32| Ids::pack(&[i % 1000]).unwrap();
        let mut found = 0;
        for i in 0..400_000u32 {
            let hash = key(i).hash();
            assert_eq!(cache.get(key(i), hash), None);
            assert_eq!(cache.get_before(key(i), hash), None);
            cache.put(key(i), hash, ids(i));
            // Not there only if the table grew at this moment.
            let now = cache.get(key(i), hash).or_else(|| cache.get_before(key(i), hash));
            assert_eq!(now, Some(ids(i)));
        }
        for i in 0..400_000 {
            if let Some(known) = cache.get(key(i), key(i).hash()) {
                assert_eq!(known, ids(i));
                found += 1;
            }
        }
        assert_eq!(cache.pairs.bits, MOST_BITS);
        assert!(found > 1 << MOST_BITS, "{found}");
    }

    #[test]
    fn a_long_entry_is_found_or_gone_but_never_another() {
        let mut cache = Cache::default();
        let text = |i: u32| format!("{i:020}");
        let key = |i: u32| LongKey::new(text(i).as_bytes()).unwrap();
        let ids = |i: u32| Ids::pack(&[i, 1, 2, 3, i]).unwrap();
        for i in 0..100_000u32 {
            let hash = key(i).hash();
            assert_eq!(cache.get_long(&key(i), hash), None);
            assert_eq!(cache.get_long_before(&key(i), hash), None);
            cache.put_long(&key(i), hash, ids(i));
            let now = cache.get_long(&key(i), hash).or_else(|| cache.get_long_before(&key(i), hash));
            assert_eq!(now, Some(ids(i)));
        }
        let found = (0..100_000).filter(|&i| cache.get_long(&key(i), key(i).hash()) == Some(ids(i))).count();
        assert!(found > 1 << (MOST_BITS - 1), "{found}");
    }

    #[test]
    fn a_line_is_a_cache_line() {
        assert_eq!((size_of::<Pair>(), size_of::<Single>()), (64, 64));
    }
}
