//! BPE of a short pre-token: the definition, with all candidate joins in a few registers.
//!
//! For every part that has a right neighbour, `keys` holds the rank of joining the two, with the part's place in the
//! low bits: the minimum of `keys` is the next join, leftmost among equals. A join changes two keys. Parts are linked by
//! place, so nothing moves.
//!
//! # Invariants
//! 1. `keys[p]` is `rank << 5 | p` if a part starts at `p` and it and the next part make a token, else `NEVER`.
//! 2. `next[p]` is where the part after the one at `p` starts (the length of the piece after the last), `prev` the inverse.
//!
//! # Complexity
//! O(n) joins of O([`MAX_BYTES`]) comparisons without a branch; about two pair lookups a join. Any vocabulary.

use super::{MergeTables, NONE, Scratch};
use crate::num::{ix, low_u8, to_u32};
use crate::simd::{Task, level};

/// Longest piece, in bytes.
pub const MAX_BYTES: usize = 32;
const PLACE_BITS: u32 = 5;
const PLACE: u32 = (1 << PLACE_BITS) - 1;
/// Above every key; positive as i32, so that signed comparison (all that SSE2 has) does.
const NEVER: u32 = i32::MAX as u32;

/// Leaves the BPE result of `piece` (1 to [`MAX_BYTES`] bytes) in `scratch.tokens`, and in `scratch.starts` where each starts.
pub fn merge_short(tables: &MergeTables, piece: &[u8], scratch: &mut Scratch) {
    let Scratch { tokens, starts, .. } = scratch;
    level().run(Merge { tables, piece, out: tokens, starts });
}

struct Merge<'a> {
    tables: &'a MergeTables,
    piece: &'a [u8],
    out: &'a mut Vec<u32>,
    starts: &'a mut Vec<u32>,
}

impl Task for Merge<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        if self.piece.len() <= MAX_BYTES / 2 {
            merge::<{ MAX_BYTES / 2 }>(self.tables, self.piece, self.out, self.starts);
        } else {
            merge::<MAX_BYTES>(self.tables, self.piece, self.out, self.starts);
        }
    }
}

#[inline(always)]
fn merge<const LANES: usize>(tables: &MergeTables, piece: &[u8], out: &mut Vec<u32>, starts: &mut Vec<u32>) {
    let n = piece.len();
    let mut keys = [NEVER; LANES];
    let mut tokens = [NONE; LANES];
    let mut next = [0u8; LANES];
    let mut prev = [0u8; LANES];
    for (place, &byte) in (0u32..).zip(piece) {
        tokens[ix(place)] = tables.bytes[usize::from(byte)];
        next[ix(place)] = low_u8(place + 1);
        prev[ix(place)] = low_u8(place.wrapping_sub(1));
    }
    for (place, pair) in (0u32..).zip(piece.windows(2)) {
        keys[ix(place)] = key(tables.byte_pairs.get(pair[0], pair[1]), place);
    }
    loop {
        let best = minimum(&keys);
        if best == NEVER {
            break;
        }
        let (place, joined) = (best & PLACE, best >> PLACE_BITS);
        let left = ix(place);
        let right = usize::from(next[left]);
        let after = usize::from(next[right]);
        tokens[left] = joined;
        tokens[right] = NONE;
        keys[right] = NEVER;
        next[left] = next[right];
        keys[left] = NEVER;
        if after < n {
            prev[after] = low_u8(place);
            keys[left] = key(tables.pairs.get(joined, tokens[after]), place);
        }
        if left > 0 {
            let before = u32::from(prev[left]);
            keys[ix(before)] = key(tables.pairs.get(tokens[ix(before)], joined), before);
        }
    }
    // Parts to the front, without a branch on what is one.
    let mut places = [0; LANES];
    let mut found = 0;
    for place in 0..to_u32(n) {
        let token = tokens[ix(place)];
        (tokens[found], places[found]) = (token, place);
        found += usize::from(token != NONE);
    }
    out.clear();
    out.extend_from_slice(&tokens[..found]);
    starts.clear();
    starts.extend_from_slice(&places[..found]);
}

#[inline(always)]
fn key(joined: Option<u32>, place: u32) -> u32 {
    joined.map_or(NEVER, |token| token << PLACE_BITS | place)
}

/// The least key; written so that the compiler compares eight at a time.
#[inline(always)]
fn minimum<const LANES: usize>(keys: &[u32; LANES]) -> u32 {
    let mut least = [NEVER.cast_signed(); 8];
    for chunk in keys.chunks_exact(8) {
        for (low, &key) in least.iter_mut().zip(chunk) {
            *low = (*low).min(key.cast_signed());
        }
    }
    least.iter().copied().min().expect("eight lanes").cast_unsigned()
}

/// The token that two bytes make, by both bytes; 256 KB, of which text touches a few rows.
#[derive(Debug, Clone)]
pub struct BytePairs {
    /// 65,536 token ids, or [`NONE`].
    table: crate::table::Table<u32>,
}

impl BytePairs {
    pub(super) fn build(vocab: &crate::vocab::Vocab, has: impl Fn(u32) -> bool) -> Self {
        let mut table = vec![NONE; 1 << 16];
        for (id, token) in (0..).zip(vocab.iter()) {
            if let [a, b] = *token
                && has(id)
            {
                table[usize::from(a) << 8 | usize::from(b)] = id;
            }
        }
        BytePairs { table: table.into() }
    }

    pub(crate) fn from_table(table: crate::table::Table<u32>) -> Self {
        BytePairs { table }
    }

    pub(crate) fn table(&self) -> &[u32] {
        &self.table
    }

    /// Whether every entry is possible.
    pub(crate) fn is_sound(&self, tokens: u32) -> bool {
        self.table.len() == 1 << 16 && self.table.iter().all(|&t| t == NONE || t < tokens)
    }

    /// The token of two bytes.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, a: u8, b: u8) -> Option<u32> {
        let token = self.token(a, b);
        (token != NONE).then_some(token)
    }

    /// The same, or [`NONE`].
    #[inline(always)]
    #[must_use]
    pub fn token(&self, a: u8, b: u8) -> u32 {
        let table: &[u32; 1 << 16] = (&self.table[..]).try_into().expect("checked when the table was made");
        table[usize::from(a) << 8 | usize::from(b)]
    }
}

/// Ids are below 2^20 and places below 2^5, so keys stay below [`NEVER`].
const _: () = assert!((crate::vocab::MAX_TOKENS << PLACE_BITS) - 1 < NEVER as usize);
