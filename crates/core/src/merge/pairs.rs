//! Split to token: `(left id, right id) -> id`, one entry a token (lemma 1 of [`crate::merge`]).
//!
//! Entries are one u64: 20 bits left, 20 bits right, 20 bits result. Open addressing, linear, at most five
//! eighths full; 2 MB for the Kimi vocabulary. A Bloom filter of 128 KB before it, which stays in a core's own cache,
//! answers most look-ups: nearly all pairs that a merge asks for make no token.

use crate::num::{fast_range, high_bits, low_u32};
use crate::table::Table;

/// 1 M bits, 128 KB: one in fourteen pairs that make no token passes, for 160,000 tokens.
const FILTER_WORDS: usize = 1 << 14;
const EMPTY: u64 = u64::MAX;
const BITS: u32 = 20;
const MASK: u64 = (1 << BITS) - 1;

/// The pair table.
#[derive(Debug, Clone)]
pub struct PairTable {
    /// Packed entries, or `u64::MAX` where empty; at least one is.
    slots: Table<u64>,
    /// A Bloom filter of the pairs: most look-ups are of pairs that make no token, and end here, near by.
    filter: Table<u64>,
}

impl PairTable {
    pub(super) fn with_capacity(entries: usize) -> Self {
        PairTable { slots: vec![EMPTY; (entries * 8 / 5).max(8)].into(), filter: vec![0; FILTER_WORDS].into() }
    }

    pub(crate) fn from_tables(slots: Table<u64>, filter: Table<u64>) -> Self {
        PairTable { slots, filter }
    }

    /// Whether every entry is possible and every probe ends.
    pub(crate) fn is_sound(&self, tokens: u32) -> bool {
        let known = |slot: &u64| *slot == EMPTY || (slot >> (3 * BITS) == 0 && slot & MASK < u64::from(tokens));
        self.filter.len() == FILTER_WORDS && self.slots.contains(&EMPTY) && self.slots.iter().all(known)
    }

    pub(crate) fn tables(&self) -> (&[u64], &[u64]) {
        (&self.slots, &self.filter)
    }

    pub(super) fn insert(&mut self, left: u32, right: u32, token: u32) {
        let pair = pack(left, right);
        let hash = hash(pair);
        let (word, bits) = mask(hash);
        self.filter.to_mut()[word] |= bits;
        let slots = self.slots.to_mut();
        let mut at = fast_range(hash, slots.len());
        while slots[at] != EMPTY {
            at = (at + 1) % slots.len();
        }
        slots[at] = pair << BITS | u64::from(token);
    }

    /// The token that is made of `left` and `right`.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, left: u32, right: u32) -> Option<u32> {
        let pair = pack(left, right);
        let hash = hash(pair);
        let (word, bits) = mask(hash);
        let filter: &[u64; FILTER_WORDS] = (&self.filter[..]).try_into().expect("checked on load");
        if filter[word] & bits != bits {
            return None;
        }
        self.get_likely(pair, hash)
    }

    /// Looks into the table, far away.
    #[inline]
    fn get_likely(&self, pair: u64, hash: u64) -> Option<u32> {
        let slots = &self.slots[..];
        let mut at = fast_range(hash, slots.len());
        loop {
            let slot = slots[at];
            if slot >> BITS == pair {
                return Some(low_u32(slot & MASK));
            }
            if slot == EMPTY {
                return None;
            }
            at = if at + 1 == slots.len() { 0 } else { at + 1 };
        }
    }
}

#[inline(always)]
fn pack(left: u32, right: u32) -> u64 {
    u64::from(left) << BITS | u64::from(right)
}

#[inline(always)]
fn hash(pair: u64) -> u64 {
    pair.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The word of the filter that a pair has its bits in, and the bits.
#[inline(always)]
fn mask(hash: u64) -> (usize, u64) {
    (high_bits(hash, FILTER_WORDS.trailing_zeros()), 1 << (hash >> 40 & 63) | 1 << (hash >> 34 & 63))
}
