//! Split to token: `(left id, right id) -> id`, one entry a token (lemma 1 of [`crate::merge`]).
//!
//! Entries are one u64: 20 bits left, 20 bits right, 20 bits result. Open addressing, linear; 2 MB for the Kimi
//! vocabulary, which is far away. So the table comes in two parts. The tokens of the first `HOT` ranks, which most
//! joins of ordinary text make, have one of their own that stays near; and before each part there is a Bloom filter,
//! because nearly all pairs that a merge asks for make no token.

use crate::num::{fast_range, high_bits, ix, low_u32};
use crate::table::Table;

/// Ids below this are in the near part.
const HOT: u32 = 1 << 14;
const EMPTY: u64 = u64::MAX;
const BITS: u32 = 20;
const MASK: u64 = (1 << BITS) - 1;
/// Words of the filters: 16 bits a pair or more, for 160,000 tokens. 32 KB and 256 KB.
const HOT_FILTER: usize = 1 << 12;
const COLD_FILTER: usize = 1 << 15;

/// The pair table.
#[derive(Debug, Clone)]
pub struct PairTable {
    hot: Part<HOT_FILTER>,
    cold: Part<COLD_FILTER>,
}

/// A part of the table, with its filter of `WORDS` words.
#[derive(Debug, Clone)]
struct Part<const WORDS: usize> {
    /// Packed entries, or `u64::MAX` where empty; at least one is.
    slots: Table<u64>,
    /// Three bits a pair, all in one word.
    filter: Table<u64>,
}

impl PairTable {
    /// With room for the pairs of `tokens` tokens.
    pub(super) fn with_capacity(tokens: usize) -> Self {
        let hot = tokens.min(ix(HOT));
        // Look-ups that find nothing hardly come to the slots, so the far part may be rather full.
        PairTable { hot: Part::with_capacity(hot * 3 / 2), cold: Part::with_capacity((tokens - hot) * 7 / 6) }
    }

    /// From the four tables of [`PairTable::tables`].
    pub(crate) fn from_tables([hot, hot_filter, cold, cold_filter]: [Table<u64>; 4]) -> Self {
        PairTable { hot: Part { slots: hot, filter: hot_filter }, cold: Part { slots: cold, filter: cold_filter } }
    }

    pub(crate) fn tables(&self) -> [&[u64]; 4] {
        [&self.hot.slots, &self.hot.filter, &self.cold.slots, &self.cold.filter]
    }

    /// Whether every entry is possible and every probe ends.
    pub(crate) fn is_sound(&self, tokens: u32) -> bool {
        self.hot.is_sound(tokens) && self.cold.is_sound(tokens)
    }

    pub(super) fn insert(&mut self, left: u32, right: u32, token: u32) {
        if token < HOT { self.hot.insert(left, right, token) } else { self.cold.insert(left, right, token) }
    }

    /// The token that is made of `left` and `right`.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, left: u32, right: u32) -> Option<u32> {
        let pair = pack(left, right);
        let hash = hash(pair);
        let (hot, cold) = (self.hot.may_have(hash), self.cold.may_have(hash));
        if hot | cold { self.find(pair, hash, hot, cold) } else { None }
    }

    /// Whether `left` and `right` make a token with an id below `limit`.
    #[inline(always)]
    #[must_use]
    pub fn makes_below(&self, left: u32, right: u32, limit: u32) -> bool {
        let pair = pack(left, right);
        let hash = hash(pair);
        let (hot, cold) = (self.hot.may_have(hash), self.cold.may_have(hash) & (limit > HOT));
        hot | cold && self.find(pair, hash, hot, cold).is_some_and(|token| token < limit)
    }

    #[inline(always)]
    fn find(&self, pair: u64, hash: u64, hot: bool, cold: bool) -> Option<u32> {
        let found = if hot { self.hot.find(pair, hash) } else { None };
        if found.is_none() && cold { self.cold.find(pair, hash) } else { found }
    }
}

impl<const WORDS: usize> Part<WORDS> {
    fn with_capacity(slots: usize) -> Self {
        Part { slots: vec![EMPTY; slots.max(8)].into(), filter: vec![0; WORDS].into() }
    }

    fn is_sound(&self, tokens: u32) -> bool {
        let known = |slot: &u64| *slot == EMPTY || (slot >> (3 * BITS) == 0 && slot & MASK < u64::from(tokens));
        self.filter.len() == WORDS && self.slots.contains(&EMPTY) && self.slots.iter().all(known)
    }

    fn insert(&mut self, left: u32, right: u32, token: u32) {
        let pair = pack(left, right);
        let hash = hash(pair);
        let (word, bits) = Self::bits(hash);
        self.filter.to_mut()[word] |= bits;
        let slots = self.slots.to_mut();
        let mut at = fast_range(hash, slots.len());
        while slots[at] != EMPTY {
            at = (at + 1) % slots.len();
        }
        slots[at] = pair << BITS | u64::from(token);
    }

    /// The word of the filter that a pair has its bits in, and the bits.
    #[inline(always)]
    fn bits(hash: u64) -> (usize, u64) {
        let bit = |shift: u32| 1 << (hash >> shift & 63);
        (high_bits(hash, WORDS.trailing_zeros()), bit(42) | bit(36) | bit(30))
    }

    /// Whether the pair with this hash may be here.
    #[inline(always)]
    fn may_have(&self, hash: u64) -> bool {
        let (word, bits) = Self::bits(hash);
        let filter: &[u64; WORDS] = (&self.filter[..]).try_into().expect("checked when the tables were made");
        filter[word] & bits == bits
    }

    #[inline]
    fn find(&self, pair: u64, hash: u64) -> Option<u32> {
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
