//! Split to token: `(left id, right id) -> id`, one entry a token (lemma 1 of [`crate::merge`]).
//!
//! All entries take 2 MB for the Kimi vocabulary, which is far away, and the tokens of the lowest ranks make most joins.
//! So the table comes in two parts. The near one holds all tokens with an id below [`PairTable::limit`]: about ten
//! thousand, in 128 KB. A look-up there is one cache line, compared at once, without a branch. The far part has an entry
//! of a u64 for every other token: 20 bits left, 20 bits right, 20 bits result; open addressing, linear; and before it a
//! Bloom filter, because nearly all pairs that a merge asks for make no token.

use super::NONE;
use crate::num::{fast_range, high_bits, ix, low_u32};
use crate::simd;
use crate::table::{Plain, Table, touch};

const EMPTY: u64 = u64::MAX;
const BITS: u32 = 20;
const MASK: u64 = (1 << BITS) - 1;
/// Words of the filter: 16 bits a pair or more, for 130,000 tokens; 256 KB.
const FILTER: usize = 1 << 15;

/// Bits of the ids in the near part.
const NEAR_BITS: u32 = 14;
const NEAR_MASK: u32 = (1 << NEAR_BITS) - 1;
/// Lines of the near part, as a power of two.
const LINE_BITS: u32 = 11;
/// Bits of a mixed pair that are not the number of its line.
const REST_BITS: u32 = 2 * NEAR_BITS - LINE_BITS;
const VACANT: u32 = u32::MAX;

/// Sixteen entries of the near part: from the low end, 14 bits of id, and the rest of the mixed pair; or `VACANT`.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct NearLine([u32; 16]);

// SAFETY: repr(C), 16 * 4 = 64 bytes, hence no padding; integers only; align 64 = ALIGN.
unsafe impl Plain for NearLine {}

/// Entries of a line of the far part.
const LINE: usize = 8;

/// Eight packed entries of the far part, or `EMPTY` behind the last; the next line goes on if there is room for no more.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct FarLine([u64; LINE]);

// SAFETY: repr(C), 8 * 8 = 64 bytes, hence no padding; integers only; align 64 = ALIGN.
unsafe impl Plain for FarLine {}

/// No rest is as large as that of a vacant entry.
const _: () = assert!(REST_BITS + NEAR_BITS < u32::BITS);

/// The pair table.
#[derive(Debug, Clone)]
pub struct PairTable {
    near: Table<NearLine>,
    limit: u32,
    far: Far,
}

/// The far part, with its filter.
#[derive(Debug, Clone)]
pub(super) struct Far {
    lines: Table<FarLine>,
    /// Three bits a pair, all in one word.
    filter: Table<u64>,
}

/// Tables of which a pair table is made.
pub(crate) struct Tables {
    pub near: Table<NearLine>,
    pub limit: u32,
    pub lines: Table<FarLine>,
    pub filter: Table<u64>,
}

impl PairTable {
    /// From all tokens that have a split: `(left, right, id)`, in order of ids. The near part takes ids below `most`.
    pub(super) fn build(splits: &[(u32, u32, u32)], most: u32) -> Self {
        let most = most.min(NEAR_MASK);
        let mut near = vec![NearLine([VACANT; 16]); 1 << LINE_BITS];
        let fits = |&&(left, right, token): &&(u32, u32, u32)| {
            if left.max(right) >= NEAR_MASK || token >= most {
                return false;
            }
            let (line, rest) = mix(left, right);
            let vacant = near[line].0.iter_mut().find(|entry| **entry == VACANT);
            vacant.map(|entry| *entry = rest << NEAR_BITS | token).is_some()
        };
        let count = splits.iter().take_while(fits).count();
        let mut far = Far::with_capacity(splits.len() - count);
        for &(left, right, token) in &splits[count..] {
            far.insert(left, right, token);
        }
        let limit = splits.get(count).map_or(most, |split| split.2.min(most));
        PairTable { near: near.into(), limit, far }
    }

    pub(crate) fn from_tables(tables: Tables) -> Self {
        let Tables { near, limit, lines, filter } = tables;
        PairTable { near, limit, far: Far { lines, filter } }
    }

    pub(crate) fn tables(&self) -> (&[NearLine], &[FarLine], &[u64]) {
        (&self.near, &self.far.lines, &self.far.filter)
    }

    /// Brings all of it in.
    pub(crate) fn touch(&self) {
        touch(&self.near);
        touch(&self.far.lines);
        touch(&self.far.filter);
    }

    /// All tokens with an id below this are in the near part, and no others.
    #[inline(always)]
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Whether every entry is possible and every probe ends.
    pub(crate) fn is_sound(&self, tokens: u32) -> bool {
        let known = |&entry: &u32| entry == VACANT || entry & NEAR_MASK < tokens;
        self.near.len() == 1 << LINE_BITS
            && self.near.iter().all(|line| line.0.iter().all(known))
            && self.far.is_sound(tokens)
    }

    /// The token that is made of `left` and `right`.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, left: u32, right: u32) -> Option<u32> {
        let token = self.near(left, right);
        let token = if token == NONE { self.far(left, right) } else { token };
        (token != NONE).then_some(token)
    }

    /// The same from the near part alone, or [`NONE`].
    #[inline(always)]
    #[must_use]
    pub fn near(&self, left: u32, right: u32) -> u32 {
        // Larger ids have no entry; cut off, they become one that has none either.
        let (line, rest) = mix(left.min(NEAR_MASK), right.min(NEAR_MASK));
        let lines: &[NearLine; 1 << LINE_BITS] =
            (&self.near[..]).try_into().expect("checked when the tables were made");
        // At most one entry fits. Written so that the compiler compares eight at a time.
        let mut found = [NONE; 8];
        for half in lines[line].0.chunks_exact(8) {
            for (found, &entry) in found.iter_mut().zip(half) {
                *found &= if entry >> NEAR_BITS == rest { entry & NEAR_MASK } else { NONE };
            }
        }
        found.iter().fold(NONE, |token, &found| token & found)
    }

    /// The same from the far part alone.
    #[inline(always)]
    #[must_use]
    pub fn far(&self, left: u32, right: u32) -> u32 {
        let pair = pack(left, right);
        let hash = hash(pair);
        if self.far.may_have(hash) { self.far.find(pair, hash) } else { NONE }
    }

    /// Asks the processor to bring near what [`PairTable::far_asked`] will need.
    #[inline(always)]
    pub fn ask_far(&self, left: u32, right: u32) {
        self.far.ask(left, right);
    }

    /// The same as [`PairTable::far`], for a pair that was asked for: without the filter.
    #[inline(always)]
    #[must_use]
    pub fn far_asked(&self, left: u32, right: u32) -> u32 {
        let pair = pack(left, right);
        self.far.find(pair, hash(pair))
    }

    /// Whether `left` and `right` make a token with an id below `limit`.
    #[inline(always)]
    #[must_use]
    pub fn makes_below(&self, left: u32, right: u32, limit: u32) -> bool {
        self.near(left, right) < limit || limit > self.limit && self.far(left, right) < limit
    }
}

/// The line of a pair of ids of 14 bits, and what tells it from all others there: together, a bijection.
#[inline(always)]
fn mix(left: u32, right: u32) -> (usize, u32) {
    let mixed = (left << NEAR_BITS | right).wrapping_mul(0x9e37_79b1) & ((1 << (2 * NEAR_BITS)) - 1);
    (ix(mixed >> REST_BITS), mixed & ((1 << REST_BITS) - 1))
}

impl Far {
    /// With room for `entries`.
    pub(super) fn with_capacity(entries: usize) -> Self {
        // A line is full seldom enough that most look-ups end in the first.
        let lines = vec![FarLine([EMPTY; LINE]); entries / 5 + 1];
        Far { lines: lines.into(), filter: vec![0; FILTER].into() }
    }

    fn is_sound(&self, tokens: u32) -> bool {
        let known = |slot: &u64| *slot == EMPTY || (slot >> (3 * BITS) == 0 && slot & MASK < u64::from(tokens));
        self.filter.len() == FILTER
            && self.lines.iter().any(|line| line.0[LINE - 1] == EMPTY)
            && self.lines.iter().flat_map(|line| &line.0).all(known)
    }

    /// Asks the processor to bring near where a pair is or would be.
    #[inline(always)]
    pub(super) fn ask(&self, left: u32, right: u32) {
        simd::prefetch(&self.lines[fast_range(hash(pack(left, right)), self.lines.len())]);
    }

    pub(super) fn insert(&mut self, left: u32, right: u32, token: u32) {
        let pair = pack(left, right);
        let hash = hash(pair);
        let (word, bits) = Self::bits(hash);
        self.filter.to_mut()[word] |= bits;
        let lines = self.lines.to_mut();
        let mut at = fast_range(hash, lines.len());
        loop {
            if let Some(entry) = lines[at].0.iter_mut().find(|entry| **entry == EMPTY) {
                *entry = pair << BITS | u64::from(token);
                return;
            }
            at = (at + 1) % lines.len();
        }
    }

    /// The word of the filter that a pair has its bits in, and the bits.
    #[inline(always)]
    fn bits(hash: u64) -> (usize, u64) {
        let bit = |shift: u32| 1 << (hash >> shift & 63);
        (high_bits(hash, FILTER.trailing_zeros()), bit(42) | bit(36) | bit(30))
    }

    /// Whether the pair with this hash may be here.
    #[inline(always)]
    fn may_have(&self, hash: u64) -> bool {
        let (word, bits) = Self::bits(hash);
        let filter: &[u64; FILTER] = (&self.filter[..]).try_into().expect("checked when the tables were made");
        filter[word] & bits == bits
    }

    pub(super) fn get(&self, left: u32, right: u32) -> Option<u32> {
        let pair = pack(left, right);
        let hash = hash(pair);
        let token = if self.may_have(hash) { self.find(pair, hash) } else { NONE };
        (token != NONE).then_some(token)
    }

    #[inline(always)]
    fn find(&self, pair: u64, hash: u64) -> u32 {
        let lines = &self.lines[..];
        let mut at = fast_range(hash, lines.len());
        loop {
            let line = &lines[at].0;
            // Written so that the compiler compares four at a time.
            let mut found = [u64::MAX; 4];
            for half in line.chunks_exact(4) {
                for (found, &entry) in found.iter_mut().zip(half) {
                    *found &= if entry >> BITS == pair { entry } else { u64::MAX };
                }
            }
            let found = found.iter().fold(u64::MAX, |all, &entry| all & entry);
            // A line is filled from the front.
            if found != u64::MAX || line[LINE - 1] == EMPTY {
                return if found == u64::MAX { NONE } else { low_u32(found & MASK) };
            }
            at = if at + 1 == lines.len() { 0 } else { at + 1 };
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
