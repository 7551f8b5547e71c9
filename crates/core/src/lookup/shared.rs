//! Pre-tokens that some thread had to merge, for all threads: what one has learned, no other learns again.
//!
//! Asked only for what a worker's own [`Cache`](super::cache::Cache) has not and no token is, so a hit costs one far line
//! in place of a merge. Holds what fits under a [`Key`]; bounded in size, overwritten, never wiped.
//!
//! # Reading while others write
//! An entry is four words: the key, and the ids with a number that counts its changes, odd while one is under way. Who
//! reads looks at that number before and after, and takes only what did not change meanwhile. Who writes and finds the
//! number odd leaves it: an entry is worth no wait. In the child of a fork an entry may stay odd for ever; its line then
//! keeps what it has, soon or at once.
//! The number has 43 bits, so it does not come round while a thread sleeps between two loads.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::cache::{Ids, SHORT_IDS};
use super::key::Key;
use crate::error::Error;
use crate::num::{high_bits, low_u32};
use crate::simd;
use crate::table::Zeros;
use crate::vocab::MAX_TOKENS;

/// Entries, as a power of two: 4 MB.
const BITS: u32 = 17;
/// Words of an entry.
const WORDS: usize = 4;
/// Entries of a cache line; a key may be in any of them.
const WAYS: usize = 2;
const ID_BITS: u32 = 20;
const ID_MASK: u64 = (1 << ID_BITS) - 1;
/// What one change adds to the last word, half at its beginning and half at its end.
const HALF: u64 = 1 << ID_BITS;

const _: () = assert!(MAX_TOKENS <= 1 << ID_BITS && SHORT_IDS == 4);

/// The table. See the module.
#[derive(Debug)]
pub struct Shared {
    memory: Zeros,
}

impl Shared {
    /// An empty table, which takes memory as it is filled.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn new() -> Result<Self, Error> {
        Ok(Shared { memory: Zeros::new((8 * WORDS) << BITS)? })
    }

    /// Has all of its memory brought in.
    pub(crate) fn bring_in(&self) {
        self.memory.bring_in();
    }

    #[inline(always)]
    fn line(&self, hash: u64) -> &[AtomicU64] {
        let at = high_bits(hash, BITS - 1) * WAYS * WORDS;
        &self.memory.words()[at..at + WAYS * WORDS]
    }

    /// Asks the processor to bring the line of a key near.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        simd::prefetch(&self.line(hash)[0]);
    }

    /// The ids of the pre-token with this key; `hash` is [`Key::hash`].
    #[inline]
    #[must_use]
    pub fn get(&self, key: Key, hash: u64) -> Option<Ids<SHORT_IDS>> {
        let [low, high] = key.words();
        for entry in self.line(hash).chunks_exact(WORDS) {
            let last = entry[3].load(Ordering::Acquire);
            let [found_low, found_high, ids] = [0, 1, 2].map(|word| entry[word].load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            let is_whole = last & HALF == 0 && entry[3].load(Ordering::Relaxed) == last;
            if is_whole && (found_low, found_high) == (low, high) {
                let id = |place: u32| low_u32(ids >> (place * ID_BITS) & ID_MASK);
                let all = [id(0), id(1), id(2), low_u32(last & ID_MASK)];
                return Ids::pack(&all[..(ids >> (3 * ID_BITS)) as usize]);
            }
        }
        None
    }

    /// Keeps an entry, if nobody else is at its place.
    #[inline]
    pub fn put(&self, key: Key, hash: u64, ids: &[u32]) {
        let &[first, ..] = ids else { return };
        if ids.len() > SHORT_IDS {
            return;
        }
        let id = |place: usize| u64::from(ids.get(place).copied().unwrap_or(first));
        let packed = (0..3).fold((ids.len() as u64) << (3 * ID_BITS), |all, place| {
            all | id(place) << (ID_BITS * crate::num::to_u32(place))
        });
        // The one of the two that was changed less often: so they take turns.
        let entries = self.line(hash).chunks_exact(WORDS);
        let Some(entry) = entries.min_by_key(|entry| entry[3].load(Ordering::Relaxed) >> ID_BITS) else { return };
        let last = entry[3].load(Ordering::Relaxed);
        if last & HALF != 0
            || entry[3].compare_exchange(last, last + HALF, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            return;
        }
        fence(Ordering::Release);
        for (word, value) in entry.iter().zip(key.words().into_iter().chain([packed])) {
            word.store(value, Ordering::Relaxed);
        }
        entry[3].store((last & !ID_MASK).wrapping_add(2 * HALF) | id(3), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::num::ix;

    fn key(i: u32) -> Key {
        Key::new(&i.to_le_bytes()).unwrap()
    }

    /// Ids that depend on the key and fill all places that there are.
    fn ids(i: u32) -> Vec<u32> {
        (0..=i % 4).map(|place| i.wrapping_mul(place + 7) & low_u32(ID_MASK)).collect()
    }

    #[test]
    fn an_entry_is_found_or_gone_but_never_another() {
        let shared = Shared::new().unwrap();
        assert_eq!(shared.get(key(1), key(1).hash()), None);
        for i in 0..300_000 {
            shared.put(key(i), key(i).hash(), &ids(i));
            assert_eq!(shared.get(key(i), key(i).hash()), Ids::pack(&ids(i)));
        }
        let found = |&i: &u32| shared.get(key(i), key(i).hash()).is_some_and(|known| Some(known) == Ids::pack(&ids(i)));
        let count = (0..300_000).filter(found).count();
        assert!(count > 1 << (BITS - 1), "{count}");
        assert_eq!((0..300_000).filter(|&i| shared.get(key(i), key(i).hash()).is_some()).count(), count);
        shared.put(key(400_000), key(400_000).hash(), &[1; 5]);
        shared.put(key(400_000), key(400_000).hash(), &[]);
        assert_eq!(shared.get(key(400_000), key(400_000).hash()), None);
    }

    #[test]
    fn many_writers_and_readers_of_few_lines() {
        let shared = Shared::new().unwrap();
        // Keys of three lines only, under one hash each.
        let hash = |i: u32| u64::from(i % 3) << 60;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4u32)
                .map(|thread| {
                    let shared = &shared;
                    scope.spawn(move || {
                        let mut found = 0;
                        for round in 0..200_000u32 {
                            let i = (round.wrapping_add(thread * 77).wrapping_mul(0x9e37_79b1) >> 20) % 12;
                            if let Some(known) = shared.get(key(i), hash(i)) {
                                assert_eq!(Some(known), Ids::pack(&ids(i)));
                                found += 1;
                            } else {
                                shared.put(key(i), hash(i), &ids(i));
                            }
                        }
                        found
                    })
                })
                .collect();
            for thread in threads {
                assert!(thread.join().unwrap() > 100);
            }
        });
    }

    #[test]
    fn a_place_that_is_being_written_is_left() {
        let shared = Shared::new().unwrap();
        let (one, hash) = (key(1), key(1).hash());
        for entry in shared.line(hash).chunks_exact(WORDS) {
            entry[3].store(HALF, Ordering::Relaxed);
        }
        shared.put(one, hash, &[1, 2]);
        assert_eq!(shared.get(one, hash), None);
        assert!(shared.line(hash).iter().all(|word| matches!(word.load(Ordering::Relaxed), 0 | HALF)));
        assert_eq!(ix(HALF as u32), 1 << ID_BITS);
    }
}
