//! Split to token: `(left id, right id) -> id`, one entry a token (lemma 1 of [`crate::merge`]).
//!
//! Entries are one u64: 20 bits left, 20 bits right, 20 bits result. Open addressing, linear, at most five
//! eighths full; 2 MB for the Kimi vocabulary.

use crate::num::{fast_range, low_u32};
use crate::table::Table;

const EMPTY: u64 = u64::MAX;
const BITS: u32 = 20;
const MASK: u64 = (1 << BITS) - 1;

/// The pair table.
#[derive(Debug, Clone)]
pub struct PairTable {
    /// Packed entries, or `u64::MAX` where empty; at least one is.
    slots: Table<u64>,
}

impl PairTable {
    pub(super) fn with_capacity(entries: usize) -> Self {
        PairTable { slots: vec![EMPTY; (entries * 8 / 5).max(8)].into() }
    }

    pub(crate) fn from_table(slots: Table<u64>) -> Self {
        PairTable { slots }
    }

    /// Whether every entry is possible and every probe ends.
    pub(crate) fn is_sound(&self, tokens: u32) -> bool {
        let known = |slot: &u64| *slot == EMPTY || (slot >> (3 * BITS) == 0 && slot & MASK < u64::from(tokens));
        self.slots.contains(&EMPTY) && self.slots.iter().all(known)
    }

    pub(crate) fn table(&self) -> &[u64] {
        &self.slots
    }

    pub(super) fn insert(&mut self, left: u32, right: u32, token: u32) {
        let slots = self.slots.to_mut();
        let pair = pack(left, right);
        let mut at = fast_range(hash(pair), slots.len());
        while slots[at] != EMPTY {
            at = (at + 1) % slots.len();
        }
        slots[at] = pair << BITS | u64::from(token);
    }

    /// The token that is made of `left` and `right`.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, left: u32, right: u32) -> Option<u32> {
        let slots = &self.slots[..];
        let pair = pack(left, right);
        let mut at = fast_range(hash(pair), slots.len());
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
    let mixed = pair.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}
