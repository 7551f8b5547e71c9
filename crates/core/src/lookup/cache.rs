//! Pre-tokens seen lately, with all their ids: bounded in size, overwritten, never wiped.
//!
//! Two tables of 64-byte lines. A line of the first holds two entries: a [`Key`] and up to [`SHORT_IDS`] ids. A line of
//! the second holds one: a [`LongKey`] and up to [`LONG_IDS`] ids; pre-tokens of more than 15 bytes are there, and
//! shorter ones of too many ids for the first, which says so ([`Ids::ELSEWHERE`]). In both, a new entry
//! comes in second place, and a hit there moves it to the first, so that a word seen once cannot push out one that is
//! used. Both tables begin small (`growing.rs`).
//!
//! An entry is a pure function of the vocabulary: a worker's cache serves one [`crate::Tables`] only.

use super::growing::{LINE, Lines, SMALL_BITS, Source, among};
use super::key::{Key, LongKey};
use crate::error::Error;
use crate::num::{high_bits, ix, to_u32};
use crate::simd;
use crate::table::{Plain, Zeros};

/// Most ids of an entry under a [`Key`].
pub const SHORT_IDS: usize = 4;
/// Most ids of an entry under a [`LongKey`].
pub const LONG_IDS: usize = 8;
/// Lines of the large table of pairs: 8 MB.
const LARGE_BITS: u32 = 17;
/// Lines of the large table of single entries: 4 MB.
const LARGE_SINGLE_BITS: u32 = 16;
const COUNT_SHIFT: u32 = 28;
/// In place of a count.
const SPILLED: u32 = 15;
const ID_MASK: u32 = (1 << COUNT_SHIFT) - 1;

/// The ids of one entry, the count in the top bits of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Ids<const N: usize>([u32; N]);

impl<const N: usize> Default for Ids<N> {
    fn default() -> Self {
        Ids([0; N])
    }
}

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
        places[0] |= to_u32(ids.len()) << COUNT_SHIFT;
        Some(Ids(places))
    }

    /// As [`Ids::pack`]; None for larger ids, too.
    #[inline]
    #[must_use]
    pub fn pack_any(ids: &[u32]) -> Option<Self> {
        if ids.iter().all(|&id| id <= ID_MASK) { Ids::pack(ids) } else { None }
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
    pub fn count(&self) -> usize {
        ix(self.0[0] >> COUNT_SHIFT)
    }

    /// All places; those from [`Ids::count`] on mean nothing.
    #[inline(always)]
    #[must_use]
    pub fn places(&self) -> [u32; N] {
        let mut places = self.0;
        places[0] &= ID_MASK;
        places
    }
}

impl Ids<LONG_IDS> {
    /// Stands for `len` ids that are kept elsewhere from `at` on.
    ///
    /// # Panics
    /// From 2^32 ids on.
    #[must_use]
    pub fn spilled(at: usize, len: usize) -> Self {
        let mut places = [0; LONG_IDS];
        places[..3].copy_from_slice(&[SPILLED << COUNT_SHIFT, to_u32(at), to_u32(len)]);
        Ids(places)
    }

    /// How many ids it stands for, here or elsewhere.
    #[inline]
    #[must_use]
    pub fn total(&self) -> usize {
        self.spill().map_or_else(|| self.count(), |range| range.len())
    }

    /// Where the ids are if they are not here.
    #[inline(always)]
    #[must_use]
    pub fn spill(&self) -> Option<std::ops::Range<usize>> {
        let [first, at, len, ..] = self.0;
        (first >> COUNT_SHIFT == SPILLED).then(|| ix(at)..ix(at) + ix(len))
    }
}

impl Ids<SHORT_IDS> {
    /// Stands for more ids than there is room for; they are under the long key.
    pub const ELSEWHERE: Self = Ids([SPILLED << COUNT_SHIFT, 0, 0, 0]);

    /// Whether the ids are elsewhere.
    #[inline(always)]
    #[must_use]
    pub fn are_elsewhere(&self) -> bool {
        self.0[0] >= SPILLED << COUNT_SHIFT
    }

    /// The same with more places.
    #[inline(always)]
    #[must_use]
    pub fn widen(&self) -> Ids<LONG_IDS> {
        let mut wide = Ids::default();
        wide.0[..SHORT_IDS].copy_from_slice(&self.0);
        wide
    }
}

impl<const N: usize> Ids<N> {
    /// Writes all places to `slots`; those from [`Ids::count`] on may hold anything.
    #[inline(always)]
    pub fn write_to(&self, slots: &mut [u32; N]) {
        // All are masked, not only the first: that is one vector instruction, and a copy that is mended afterwards is not.
        for (slot, place) in slots.iter_mut().zip(self.0) {
            *slot = place & ID_MASK;
        }
    }
}

/// Two entries.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(64))]
pub(crate) struct Pair {
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

/// The cache of one worker.
#[derive(Debug)]
pub struct Cache {
    source: Source,
    /// Memory of both small tables.
    first: Zeros,
    pairs: Lines<Pair>,
    singles: Lines<Single>,
}

/// A cache while nothing is put: a copy of what lies before the lines, which stays in registers.
#[derive(Debug)]
pub struct Near<'a> {
    pairs: &'a mut [Pair],
    pair_bits: u32,
    singles: &'a mut [Single],
    single_bits: u32,
    single_hits: &'a mut usize,
}

impl Near<'_> {
    /// Asks the processor to bring the line of a short key near.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        simd::prefetch(&self.pairs[high_bits(hash, self.pair_bits)]);
    }

    /// Asks the processor to bring the line of a long key near.
    #[inline(always)]
    pub fn prefetch_long(&self, hash: u64) {
        simd::prefetch(&self.singles[high_bits(hash, self.single_bits)]);
    }

    /// As [`Cache::get`]; a hit in second place moves to the first.
    #[inline(always)]
    #[must_use]
    pub fn hit(&mut self, key: Key, hash: u64) -> Option<&Ids<SHORT_IDS>> {
        self.pairs[high_bits(hash, self.pair_bits)].hit(key)
    }

    /// As [`Cache::get_long`].
    #[inline(always)]
    #[must_use]
    pub fn hit_long(&mut self, key: &LongKey, hash: u64) -> Option<&Ids<LONG_IDS>> {
        let at = find_long(self.singles, self.single_bits, key, hash)?;
        *self.single_hits += 1;
        Some(&self.singles[at].ids)
    }
}

/// Where in a table the entry is, if it is there: in the first place of its two by now.
#[inline(always)]
fn find_long(lines: &mut [Single], bits: u32, key: &LongKey, hash: u64) -> Option<usize> {
    let at = high_bits(hash, bits);
    if lines[at].key != *key {
        // The line beside is second place.
        if lines[at ^ 1].key != *key {
            return None;
        }
        lines.swap(at, at ^ 1);
    }
    Some(at)
}

impl Pair {
    /// The ids; a hit in second place moves to the first.
    #[inline(always)]
    pub fn hit(&mut self, key: Key) -> Option<&Ids<SHORT_IDS>> {
        if !self.keys[0].is(key) {
            if !self.keys[1].is(key) {
                return None;
            }
            self.keys.swap(0, 1);
            self.ids.swap(0, 1);
        }
        Some(&self.ids[0])
    }

    /// Keeps an entry: in second place, unless the first is free.
    #[inline]
    pub fn put(&mut self, key: Key, ids: Ids<SHORT_IDS>) {
        let place = usize::from(self.keys[0] != Key::default());
        (self.keys[place], self.ids[place]) = (key, ids);
    }

    fn get(&self, key: Key) -> Option<Ids<SHORT_IDS>> {
        Some(self.ids[self.keys.iter().position(|&known| known == key)?])
    }
}

impl Cache {
    /// An empty cache.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn new() -> Result<Self, Error> {
        Self::with(Source::AHEAD)
    }

    fn with(source: Source) -> Result<Self, Error> {
        Ok(Cache {
            source,
            first: Zeros::new((2 * LINE) << SMALL_BITS)?,
            pairs: Lines::new(0, LARGE_BITS),
            singles: Lines::new(1, LARGE_SINGLE_BITS),
        })
    }

    /// Has the memory brought in with which the cache begins.
    pub fn touch(&mut self) {
        self.first.view_mut::<u64>(0..8)[0] = 0;
    }

    /// The lines, while nothing is put.
    #[inline(always)]
    #[must_use]
    pub fn near(&mut self) -> Near<'_> {
        let (pairs, singles) = self.first.split(LINE << SMALL_BITS);
        let (pairs, pair_bits) = among(&mut self.pairs.large, self.pairs.large_bits, pairs);
        let Lines { large, large_bits, hits, .. } = &mut self.singles;
        let (singles, single_bits) = among(large, *large_bits, singles);
        Near { pairs, pair_bits, singles, single_bits, single_hits: hits }
    }

    /// Notes that so many short keys were found: by that it is decided how large the cache becomes.
    #[inline(always)]
    pub fn note_hits(&mut self, hits: usize) {
        self.pairs.hits += hits;
    }

    /// The ids of the pre-token with this key, or [`Ids::ELSEWHERE`]; `hash` is [`Key::hash`].
    #[inline(always)]
    #[must_use]
    pub fn get(&self, key: Key, hash: u64) -> Option<Ids<SHORT_IDS>> {
        let (lines, bits) = self.pairs.lines(&self.first);
        lines[high_bits(hash, bits)].get(key)
    }

    /// As [`Cache::get`], from the small table that was there before; the entry moves to the large one.
    #[inline]
    pub fn get_before(&mut self, key: Key, hash: u64) -> Option<Ids<SHORT_IDS>> {
        let ids = self.pairs.before(&self.first)?[high_bits(hash, SMALL_BITS)].get(key)?;
        self.put(key, hash, ids);
        Some(ids)
    }

    /// Keeps an entry.
    #[inline]
    pub fn put(&mut self, key: Key, hash: u64, ids: Ids<SHORT_IDS>) {
        self.pairs.count_put(self.source);
        let (lines, bits) = self.pairs.lines_mut(&mut self.first);
        lines[high_bits(hash, bits)].put(key, ids);
    }

    /// The ids of the pre-token with this long key; `hash` is [`LongKey::hash`].
    #[inline(always)]
    #[must_use]
    pub fn get_long(&mut self, key: &LongKey, hash: u64) -> Option<Ids<LONG_IDS>> {
        let (lines, bits) = self.singles.lines_mut(&mut self.first);
        let ids = lines[find_long(lines, bits, key, hash)?].ids;
        self.singles.hits += 1;
        Some(ids)
    }

    /// As [`Cache::get_long`], from the small table that was there before; the entry moves to the large one.
    #[inline]
    pub fn get_long_before(&mut self, key: &LongKey, hash: u64) -> Option<Ids<LONG_IDS>> {
        let lines = self.singles.before(&self.first)?;
        let at = high_bits(hash, SMALL_BITS);
        let ids = [&lines[at], &lines[at ^ 1]].into_iter().find(|line| line.key == *key)?.ids;
        self.put_long(key, hash, ids);
        Some(ids)
    }

    /// Keeps an entry.
    #[inline]
    pub fn put_long(&mut self, key: &LongKey, hash: u64, ids: Ids<LONG_IDS>) {
        self.singles.count_put(self.source);
        let (lines, bits) = self.singles.lines_mut(&mut self.first);
        let at = high_bits(hash, bits);
        // The line beside is second place.
        let place = if lines[at].key == LongKey::default() { at } else { at ^ 1 };
        lines[place] = Single { key: *key, ids };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup::growing::{GO_ON, LOOK_AGAIN, PATIENCE};
    use crate::num::to_u32;
    use crate::table::HUGE_PAGE;

    const NOBODY: Source = Source { ask: |_| false, take: |_| None };

    #[test]
    fn ids_come_back() {
        for n in 1..=LONG_IDS {
            let ids: Vec<u32> = (0..n).map(|i| [0, 1, 163_839, (1 << 20) - 1, 7, 65_536, 9, 3][i]).collect();
            let packed = Ids::<LONG_IDS>::pack(&ids).unwrap();
            assert_eq!(packed.count(), n);
            assert_eq!(packed.places()[..n], ids);
            let mut slots = [9; LONG_IDS];
            packed.write_to(&mut slots);
            assert_eq!(slots[..n], ids);
            if let Some(short) = Ids::<SHORT_IDS>::pack(&ids) {
                assert_eq!(short.widen(), packed);
            }
        }
        assert_eq!(Ids::<SHORT_IDS>::pack(&[5]), Some(Ids::one(5)));
        assert_eq!(Ids::<LONG_IDS>::pack(&[]), None);
        assert_eq!(Ids::<LONG_IDS>::pack(&[1; 9]), None);
        assert_eq!(Ids::<SHORT_IDS>::pack(&[1; 5]), None);
    }

    #[test]
    fn an_entry_is_found_or_gone_but_never_another() {
        let mut cache = Cache::with(NOBODY).unwrap();
        let key = |i: u32| Key::new(&i.to_le_bytes()).unwrap();
        let ids = |i: u32| Ids::pack(&[i % 1000]).unwrap();
        for i in 0..400_000u32 {
            let hash = key(i).hash();
            assert_eq!(cache.get(key(i), hash), None);
            assert_eq!(cache.get_before(key(i), hash), None);
            cache.put(key(i), hash, ids(i));
            cache.note_hits(1);
            assert_eq!(cache.get(key(i), hash), Some(ids(i)));
        }
        assert!(cache.pairs.before(&cache.first).is_none());
        let mut found = 0;
        for i in 0..400_000 {
            if let Some(known) = cache.get(key(i), key(i).hash()) {
                assert_eq!(known, ids(i));
                found += 1;
            }
        }
        assert!(found > 1 << LARGE_BITS, "{found}");
    }

    #[test]
    fn a_long_entry_is_found_or_gone_but_never_another() {
        let mut cache = Cache::with(NOBODY).unwrap();
        let text = |i: u32| format!("{i:020}");
        let key = |i: u32| LongKey::new(text(i).as_bytes()).unwrap();
        let ids = |i: u32| Ids::pack(&[i, 1, 2, 3, i]).unwrap();
        for i in 0..100_000u32 {
            let hash = key(i).hash();
            assert_eq!(cache.get_long(&key(i), hash), None);
            assert_eq!(cache.get_long_before(&key(i), hash), None);
            cache.put_long(&key(i), hash, ids(i));
            assert_eq!(cache.get_long(&key(i), hash), Some(ids(i)));
        }
        let found = (0..100_000).filter(|&i| cache.get_long(&key(i), key(i).hash()) == Some(ids(i))).count();
        assert!(found > 1 << (LARGE_SINGLE_BITS - 1), "{found}");
    }

    #[test]
    fn a_small_table_hands_its_entries_over() {
        let mut cache = Cache::with(NOBODY).unwrap();
        let key = |i: u32| Key::new(&i.to_le_bytes()).unwrap();
        let long = |i: u32| LongKey::new(&i.to_le_bytes()).unwrap();
        let mut last = 0;
        while cache.pairs.large.is_none() {
            last += 1;
            cache.put(key(last), key(last).hash(), Ids::one(last));
            cache.note_hits(1);
        }
        let pages = to_u32((LINE << LARGE_BITS) / HUGE_PAGE);
        assert_eq!(last, (1 << SMALL_BITS) + 1 + pages * (to_u32(GO_ON) + 1));
        // The last one made the table grow, and is in the large one alone; the one before in the small one.
        assert_eq!(cache.get(key(last), key(last).hash()), Some(Ids::one(last)));
        let (old, hash) = (last - 1, key(last - 1).hash());
        assert_eq!(cache.get(key(old), hash), None);
        assert_eq!(cache.get_before(key(old), hash), Some(Ids::one(old)));
        assert_eq!(cache.get(key(old), hash), Some(Ids::one(old)));
        let mut last = 0;
        while cache.singles.large.is_none() {
            last += 1;
            cache.put_long(&long(last), long(last).hash(), Ids::one(last));
            assert!(cache.get_long(&long(last), long(last).hash()).is_some());
        }
        let (old, hash) = (last - 1, long(last - 1).hash());
        assert_eq!(cache.get_long(&long(old), hash), None);
        assert_eq!(cache.get_long_before(&long(old), hash), Some(Ids::one(old)));
        assert_eq!(cache.get_long(&long(old), hash), Some(Ids::one(old)));
    }

    #[test]
    fn a_table_that_has_no_answers_stays_small() {
        let mut cache = Cache::with(NOBODY).unwrap();
        let key = |i: u32| Key::new(&i.to_le_bytes()).unwrap();
        let long = |i: u32| LongKey::new(&i.to_le_bytes()).unwrap();
        let put = |from: u32, count: u32, cache: &mut Cache| {
            for i in from..from + count {
                cache.put(key(i), key(i).hash(), Ids::one(i));
                cache.put_long(&long(i), long(i).hash(), Ids::one(i));
            }
        };
        put(0, 10 << SMALL_BITS, &mut cache);
        assert!(cache.pairs.large.is_none() && cache.singles.large.is_none());
        // It is asked anew what it is good for, and grows when there is reason to.
        for i in 0..4 << SMALL_BITS {
            put(1 << 30 | i, 1, &mut cache);
            cache.note_hits(1);
            assert!(cache.get_long(&long(1 << 30 | i), long(1 << 30 | i).hash()).is_some());
        }
        assert!(cache.pairs.large.is_some() && cache.singles.large.is_some());
    }

    #[test]
    fn a_table_goes_on_until_its_memory_has_come_and_does_not_wait_for_ever() {
        for source in [Source::AHEAD, Source { ask: |_| true, take: |_| None }] {
            let mut cache = Cache::with(source).unwrap();
            let key = |i: u32| Key::new(&i.to_le_bytes()).unwrap();
            let most = (1 << SMALL_BITS) + to_u32(LOOK_AGAIN) * (PATIENCE + 2) + 5 * to_u32(GO_ON);
            let mut grown = None;
            for i in 0..most {
                let hash = key(i).hash();
                cache.put(key(i), hash, Ids::one(i));
                cache.note_hits(1);
                assert_eq!(cache.get(key(i), hash), Some(Ids::one(i)));
                if grown.is_none() && cache.pairs.large.is_some() {
                    grown = Some(i);
                }
            }
            assert!(grown.is_some_and(|i| i >= 1 << SMALL_BITS), "{grown:?}");
        }
    }

    #[test]
    fn memory_that_was_left_is_taken_without_asking() {
        let source = Source { ask: |_| panic!("there is some"), take: |len| Zeros::new(len).ok() };
        let mut cache = Cache::with(source).unwrap();
        for i in 0..=1 << SMALL_BITS {
            let key = Key::new(&u32::to_le_bytes(i)).unwrap();
            cache.put(key, key.hash(), Ids::one(i));
            cache.note_hits(1);
        }
        assert!(cache.pairs.large.is_some());
    }

    #[test]
    fn a_line_is_a_cache_line() {
        assert_eq!((size_of::<Pair>(), size_of::<Single>()), (64, 64));
    }
}
