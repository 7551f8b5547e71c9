//! Pre-token bytes to token id, for pre-tokens that are tokens: nine in ten of ordinary text.
//!
//! One 64-byte line holds three keys and their ids, so that a probe costs one cache line. A key is the
//! token's bytes, zero-padded to 15, with the length in the 16th: tokens that hold NUL bytes stay
//! exact. Tokens of 16 bytes and more are in [`LongTable`], whose slots hold a rank and are
//! compared with the vocabulary's bytes. No probe trusts a hash: bytes are always compared.
//!
//! An eighth of the lines is for the tokens of lowest rank, which make up most of a text: they lie close together, so that
//! little of the table is read at all. Tokens are placed in rank order, so frequent ones sit in their home line. A line
//! that was full
//! when a token wanted in says so by its overflow flag; a probe goes on only past such lines.

mod ahead;
pub mod cache;
mod growing;
mod key;
pub(crate) mod phrases;
pub mod shared;

pub(crate) use key::fold;
pub use key::{Key, LongKey, MAX_KEY_BYTES, MAX_LONG_KEY_BYTES};

use crate::num::{fast_range, low_u32, to_u32};
use crate::table::{Plain, Table};
use crate::vocab::{MAX_TOKENS, Vocab};

/// Keys a line.
const SLOTS: usize = 3;
/// The bits of an id.
const ID_MASK: u32 = (1 << 20) - 1;
const _: () = assert!(MAX_TOKENS == 1 << 20);
/// No id.
const NONE: u32 = u32::MAX;

/// Three keys, their ids, and whether a token had to go on to the next line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Line {
    /// Padded token bytes, see [`Key`].
    keys: [Key; SLOTS],
    /// Token ids; [`NONE`] in an empty slot.
    ids: [u32; SLOTS],
    /// 1 if a probe must go on to the next line.
    overflow: u32,
}

// SAFETY: repr(C), 3 * 16 + 3 * 4 + 4 = 64 bytes, hence no padding; integers only; align 64 = ALIGN.
unsafe impl Plain for Line {}

/// Token bytes to id, for tokens of every length.
#[derive(Debug, Clone)]
pub struct WordTable {
    lines: Table<Line>,
    long: LongTable,
}

/// Tokens of 16 bytes and more, open addressing by a hash of the bytes: the id, and above it some bits of the hash, so
/// that the bytes of a token that is not wanted are next to never looked at.
#[derive(Debug, Clone)]
pub struct LongTable {
    /// Ranks with [`tag`]s, [`NONE`] where empty; at most half full.
    ranks: Table<u32>,
}

impl WordTable {
    /// Builds the table of those tokens that a whole pre-token may be, by rank; O(tokens).
    #[must_use]
    pub fn build(vocab: &Vocab, may_be_whole: impl Fn(u32) -> bool) -> Self {
        let tokens = || (0..).zip(vocab.iter()).filter(|&(rank, _)| may_be_whole(rank));
        let short = tokens().filter(|(_, t)| t.len() <= MAX_KEY_BYTES).count();
        // Two thirds full on average: long chains of overflow stay rare, 5 MB for 160,000 tokens.
        let empty = Line { keys: [Key::EMPTY; SLOTS], ids: [NONE; SLOTS], overflow: 0 };
        let mut lines = vec![empty; short.div_ceil(2).max(2)];
        let (hot, rest) = lines.split_at_mut(hot_lines(short.div_ceil(2).max(2)));
        let mut room = 2 * hot.len();
        let mut long = vec![NONE; ((tokens().count() - short) * 2).max(1)];
        for (rank, token) in tokens() {
            let id = vocab.id(rank);
            match Key::new(token) {
                Some(key) if room > 0 => {
                    room -= 1;
                    place(hot, key, id);
                }
                Some(key) => place(rest, key, id),
                None => {
                    let hash = hash_long(token);
                    let mut at = fast_range(hash, long.len());
                    while long[at] != NONE {
                        at = (at + 1) % long.len();
                    }
                    long[at] = tag(hash) | rank;
                }
            }
        }
        WordTable { lines: lines.into(), long: LongTable { ranks: long.into() } }
    }

    pub(crate) fn from_tables(lines: Table<Line>, long: Table<u32>) -> Self {
        WordTable { lines, long: LongTable { ranks: long } }
    }

    /// Whether every entry is possible and every probe ends.
    pub(crate) fn is_sound(&self, vocab: &Vocab) -> bool {
        let known = |id: &u32| *id == NONE || *id < vocab.end();
        if self.lines.len() < 2 {
            return false;
        }
        let (hot, rest) = self.parts();
        [hot, rest].iter().all(|lines| lines.iter().any(|l| l.overflow == 0))
            && self.lines.iter().all(|l| l.ids.iter().all(known))
            && self.long.ranks.contains(&NONE)
            && self.long.ranks.iter().all(|&slot| slot == NONE || slot & ID_MASK < vocab.len())
    }

    pub(crate) fn tables(&self) -> (&[Line], &[u32]) {
        (&self.lines, &self.long.ranks)
    }

    /// The id of the token with exactly the bytes `text[start..end]`.
    #[inline(always)]
    #[must_use]
    pub fn find(&self, vocab: &Vocab, text: &[u8], start: usize, end: usize) -> Option<u32> {
        match Key::new(&text[start..end]) {
            Some(key) => self.find_key(key, key.hash()),
            None => self.find_long(vocab, &text[start..end]),
        }
    }

    /// The id of the token of more than [`MAX_KEY_BYTES`] bytes that is `piece`.
    #[must_use]
    pub fn find_long(&self, vocab: &Vocab, piece: &[u8]) -> Option<u32> {
        self.long.find(vocab, piece)
    }

    /// The lines of the tokens of lowest rank, and those of all others.
    #[inline(always)]
    fn parts(&self) -> (&[Line], &[Line]) {
        self.lines.split_at(hot_lines(self.lines.len()))
    }

    /// Asks the processor to bring the lines of a key near.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        let (hot, rest) = self.parts();
        crate::simd::prefetch(&hot[fast_range(hash, hot.len())]);
        crate::simd::prefetch(&rest[fast_range(hash, rest.len())]);
    }

    /// The id of the token with this key; `hash` is [`Key::hash`].
    #[inline(always)]
    #[must_use]
    pub fn find_key(&self, key: Key, hash: u64) -> Option<u32> {
        let (hot, rest) = self.parts();
        find(hot, key, hash).or_else(|| find(rest, key, hash))
    }
}

/// How many of so many lines (two or more) are for the tokens of lowest rank.
#[inline(always)]
fn hot_lines(lines: usize) -> usize {
    (lines / 8).max(1)
}

#[inline(always)]
fn find(lines: &[Line], key: Key, hash: u64) -> Option<u32> {
    let mut at = fast_range(hash, lines.len());
    loop {
        let line = &lines[at];
        for slot in 0..SLOTS {
            if line.keys[slot] == key {
                return Some(line.ids[slot]);
            }
        }
        if line.overflow == 0 {
            return None;
        }
        at = if at + 1 == lines.len() { 0 } else { at + 1 };
    }
}

impl LongTable {
    fn find(&self, vocab: &Vocab, piece: &[u8]) -> Option<u32> {
        let hash = hash_long(piece);
        let mut at = fast_range(hash, self.ranks.len());
        loop {
            let slot = self.ranks[at];
            if slot == NONE {
                return None;
            }
            let rank = slot & ID_MASK;
            if slot & !ID_MASK == tag(hash) && vocab.bytes_of(rank) == Some(piece) {
                return Some(vocab.id(rank));
            }
            at = (at + 1) % self.ranks.len();
        }
    }
}

fn place(lines: &mut [Line], key: Key, id: u32) {
    let mut at = fast_range(key.hash(), lines.len());
    loop {
        let line = &mut lines[at];
        if let Some(slot) = line.ids.iter().position(|&i| i == NONE) {
            line.keys[slot] = key;
            line.ids[slot] = id;
            return;
        }
        line.overflow = 1;
        at = (at + 1) % lines.len();
    }
}

/// Bits of a hash, other than those that choose the slot, above the bits of an id; never those of [`NONE`].
fn tag(hash: u64) -> u32 {
    let tag = low_u32(hash) & !ID_MASK;
    if tag == !ID_MASK { 0 } else { tag }
}

/// A hash of the length and of the first, middle and last eight bytes: constant time, so that a pre-token of a
/// megabyte costs no more than one of 16 bytes. Equal hashes only cost a comparison.
fn hash_long(piece: &[u8]) -> u64 {
    let word = |at: usize| u64::from_le_bytes(piece[at..at + 8].try_into().expect("eight bytes"));
    let length = u64::from(to_u32(piece.len()));
    let (a, b, c) = (word(0), word(piece.len() / 2 - 4), word(piece.len() - 8));
    let mixed = key::fold(a ^ length, 0x9e37_79b9_7f4a_7c15) ^ key::fold(b, 0xd6e8_feb8_6659_fd93);
    key::fold(mixed ^ c, 0xa076_1d64_78bd_642f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_every_token_and_nothing_else() {
        let mut tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).collect();
        tokens.extend((2..60).map(|n| vec![0; n]));
        tokens.extend((2..60).map(|n| vec![b'a'; n]));
        tokens.extend((0..5000u32).map(|n| format!("w{n}").into_bytes()));
        let vocab = Vocab::from_ranked(&tokens).unwrap();
        let words = WordTable::build(&vocab, |_| true);
        for (id, token) in (0..).zip(&tokens) {
            assert_eq!(words.find(&vocab, token, 0, token.len()), Some(id));
            // The same in the middle of a longer text, where whole 16-byte loads are possible.
            let mut text = vec![b'x'; 40];
            text.extend_from_slice(token);
            text.extend_from_slice(&[b'y'; 40]);
            assert_eq!(words.find(&vocab, &text, 40, 40 + token.len()), Some(id));
        }
        for absent in [&b"w5000"[..], &[0; 61], &[b'a'; 60], b"", b"ab"] {
            assert_eq!(words.find(&vocab, absent, 0, absent.len()), None);
        }
    }

    #[test]
    fn a_line_is_a_cache_line() {
        assert_eq!(std::mem::size_of::<Line>(), 64);
    }
}
