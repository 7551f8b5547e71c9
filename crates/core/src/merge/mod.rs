//! Exact BPE of one pre-token that is no token itself. One strategy a file.
//!
//! # Definitions
//! The *BPE result* of a byte string: start from single bytes; again and again join the adjacent pair whose
//! concatenation is the token of lowest rank (leftmost among equals), until no adjacent pair's
//! concatenation is a token.
//!
//! # Lemma 1 (locality)
//! If at some moment of BPE two adjacent parts `l`, `r` stand where no join has crossed their outer borders,
//! BPE of the bytes of `lr` alone reaches the state `[l, r]` too: the joins inside are the same, in the same order.
//! Hence each token `t` is made from one pair only, its *split* `(l, r)`: the last state but one of BPE of its
//! own bytes. The pair table holds that pair for each token and nothing else, and looking up a pair of ids in it
//! equals looking up the concatenation in the vocabulary.
//!
//! # Lemma 2 (validity)
//! Call adjacent tokens `a`, `b` *valid* if BPE of the bytes of `ab` is `[a, b]`. A cover of a text by tokens is
//! the BPE result if and only if each adjacent pair is valid, provided that every token is its own BPE result and
//! was made from parts of lower rank. (The argument is that of github/rust-gems, crate `bpe`.)
//! [`MergeTables::greedy`] says whether a vocabulary has these properties; it is checked when tables are built.
//!
//! It follows that results of parts of a text may be put together wherever the two tokens that meet are valid.
//!
//! # Strategies
//! - [`merge_short`](short::merge_short): the definition in registers, up to 32 bytes. Any vocabulary.
//! - [`Words`](lockstep::Words): the same for many words of up to 15 bytes, a join of each in turn. Needs
//!   [`MergeTables::in_stages`].
//! - [`merge_greedy`](greedy::merge_greedy): longest match, repaired where a pair is invalid. Linear in practice
//!   (each position is given up at most once); needs lemma 2.
//! - [`merge_long`](long::merge_long): both of these on windows of a long piece, stitched. Linear; needs lemma 2.
//! - [`merge_heap`](heap::merge_heap): joins by priority queue. O(n log n); any vocabulary.
//! - [`merge_scan`](scan::merge_scan): the definition. O(n^2); checks the others.
//!
//! What they wait for is memory: beyond two megabytes a look-up costs as much as thirty near ones. So tables are
//! packed, with what is frequent side by side, and filters stand before those that seldom have an answer.
//!
//! # What lost
//! - Longest match for short ASCII words: half again as slow as the registers for letters at random, no better for
//!   English. Registers for short Cyrillic or Han: a third slower than longest match.
//! - Dropping more than one token at the end of a window: refused windows get rarer (they are rare), windows more.
//! - Looking a stretch up among the tokens before merging it: as many far reads as it saves.
//! - Threads inside one pre-token: windows would allow it, but the published path cuts runs to 25,000 characters
//!   ([`crate::cuts`]), so that there are jobs enough for all threads as it is.

pub mod border;
pub mod greedy;
pub mod heap;
pub mod known;
pub mod lockstep;
pub mod long;
pub mod pairs;
pub mod scan;
pub mod short;
pub mod splits;
pub mod trie;

use crate::error::Error;
use crate::num::{ix, low_u32, to_u32};
use crate::parallel;
use crate::table::Table;
use crate::vocab::{MAX_TOKENS, Vocab};
use border::Borders;
use pairs::PairTable;
use short::BytePairs;
use splits::find_splits;
use trie::{Sorted, Trie};

/// No token.
pub const NONE: u32 = u32::MAX;

/// What [`greedy`] needs to know of one token, in 64 bits: few enough to stay near for the tokens that are frequent.
///
/// From the low end, 20 bits each: the left and the right token of the split, which for a single byte or a token that
/// BPE cannot make are the token itself; and the longest token that is a proper prefix, or the token itself if none
/// is. Then 4 bits: by how many bytes that is shorter, at most [`Parts::FAR`].
#[derive(Debug, Clone, Copy)]
struct Parts(u64);

impl Parts {
    const BITS: u32 = 20;
    const MASK: u64 = (1 << Self::BITS) - 1;
    /// Shorter by so many bytes or more.
    const FAR: usize = 15;

    fn new(left: u32, right: u32, prefix: u32, shorter_by: usize) -> Self {
        let shorter_by = to_u32(shorter_by.min(Self::FAR));
        let fields = [(left, 0), (right, 1), (prefix, 2), (shorter_by, 3)];
        Parts(fields.iter().map(|&(field, place)| u64::from(field) << (place * Self::BITS)).sum())
    }

    #[inline(always)]
    fn left(self) -> u32 {
        low_u32(self.0 & Self::MASK)
    }

    #[inline(always)]
    fn right(self) -> u32 {
        low_u32(self.0 >> Self::BITS & Self::MASK)
    }

    #[inline(always)]
    fn prefix(self) -> u32 {
        low_u32(self.0 >> (2 * Self::BITS) & Self::MASK)
    }

    #[inline(always)]
    fn shorter_by(self) -> usize {
        ix(low_u32(self.0 >> (3 * Self::BITS)))
    }
}

/// Three ids and four bits.
const _: () = assert!(MAX_TOKENS <= 1 << Parts::BITS);

/// The tables of all merge strategies.
#[derive(Debug, Clone)]
pub struct MergeTables {
    /// One [`Parts`] a token, by id.
    pub(crate) parts: Table<u64>,
    /// Split to token.
    pub(crate) pairs: PairTable,
    /// Longest match.
    pub(crate) trie: Trie,
    /// Where no join is possible.
    pub(crate) borders: Borders,
    /// Two bytes to token.
    pub(crate) byte_pairs: BytePairs,
    /// Token of each single byte; [`NONE`] for bytes that UTF-8 never has, if the vocabulary has them not.
    pub(crate) bytes: [u32; 256],
    /// Number of single bytes; where `greedy` holds, all tokens below this are single bytes.
    pub(crate) singles: u32,
    /// Whether lemma 2 holds for this vocabulary.
    pub(crate) greedy: bool,
    /// Whether a token of the near part of the pair table has no part of the far one.
    pub(crate) in_stages: bool,
}

/// Memory that the strategies reuse from call to call.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) tokens: Vec<u32>,
    /// Of the pre-token whose stretches are merged one by one.
    pub(crate) stretches: Stretches,
    /// Where the tokens start.
    pub(crate) starts: Vec<u32>,
    /// Tokens that are certain, and where they start, for [`long`].
    pub(crate) cover: Vec<u32>,
    pub(crate) cover_starts: Vec<u32>,
    pub(crate) dead: Vec<u64>,
    pub(crate) hints: greedy::Hints,
    pub(crate) heap: heap::HeapScratch,
    pub(crate) words: lockstep::Words,
}

/// Memory for a pre-token that is merged stretch by stretch.
#[derive(Debug, Default)]
pub(crate) struct Stretches {
    /// Where its stretches end.
    pub ends: Vec<u32>,
    /// Its bytes, with room behind them.
    pub padded: Vec<u8>,
    /// Its ids.
    pub ids: Vec<u32>,
    /// Short stretches of earlier ones; made when the first is met.
    pub known: Option<known::Known>,
}

impl Scratch {
    /// One id, as if a merge had given it.
    pub(crate) fn one(&mut self, id: u32) -> &[u32] {
        self.some(&[id])
    }

    /// Some ids, as if a merge had given them.
    pub(crate) fn some(&mut self, ids: &[u32]) -> &[u32] {
        self.tokens.clear();
        self.tokens.extend_from_slice(ids);
        &self.tokens
    }

    /// Gives memory back if it has grown beyond `most` elements, as it does for a huge pre-token.
    pub(crate) fn shrink(&mut self, most: usize) {
        let Stretches { ends, padded, ids, .. } = &self.stretches;
        let grown = [&self.tokens, &self.starts, &self.cover, ends, ids].iter().map(|v| v.capacity()).max();
        if grown.max(Some(padded.capacity())).max(Some(self.heap.capacity())) > Some(most) {
            *self = Scratch::default();
        }
    }

    /// The ids that the last merge gave.
    #[must_use]
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }
}

/// Left part, right part, and the token that they make.
pub type Split = (u32, u32, u32);

fn single_bytes(vocab: &Vocab) -> [u32; 256] {
    let mut bytes = [NONE; 256];
    for (rank, token) in (0..).zip(vocab.iter()) {
        if let [byte] = token {
            bytes[usize::from(*byte)] = rank;
        }
    }
    bytes
}

/// Which tokens BPE makes, by rank: single bytes, and what has a split.
pub(crate) fn made(vocab: &Vocab, splits: &[Split]) -> Vec<bool> {
    let mut made: Vec<bool> = vocab.iter().map(|token| token.len() == 1).collect();
    splits.iter().for_each(|split| made[ix(split.2)] = true);
    made
}

pub(crate) fn count_singles(bytes: &[u32; 256]) -> u32 {
    to_u32(bytes.iter().filter(|&&byte| byte != NONE).count())
}

impl MergeTables {
    /// Builds the tables for a rank file: any two parts join whose bytes together are a token. O(total token bytes) for
    /// the trie, one small BPE run a token.
    ///
    /// # Errors
    /// [`Error::Vocabulary`] if the trie outgrows its index.
    pub fn build(vocab: &Vocab) -> Result<Self, Error> {
        Self::from_splits(vocab, &find_splits(vocab, vocab.len()), u32::MAX)
    }

    /// The same, with no token from `most_near` on in the near part of the pair table: for tests.
    ///
    /// # Errors
    /// As above.
    pub fn build_parted(vocab: &Vocab, most_near: u32) -> Result<Self, Error> {
        Self::from_splits(vocab, &find_splits(vocab, vocab.len()), most_near)
    }

    /// The tables for known splits, by rank of the token made.
    ///
    /// # Errors
    /// As above.
    pub fn from_splits(vocab: &Vocab, splits: &[Split], most_near: u32) -> Result<Self, Error> {
        let tokens = Sorted::new(vocab);
        let made = made(vocab, splits);
        let trie = || Trie::build(&tokens.only(&made));
        let others = || Self::without_trie(vocab, &tokens, splits, &made, most_near);
        let (trie, others) = parallel::both(trie, others);
        Ok(MergeTables { trie: trie?, ..others })
    }

    /// The same but for the trie, which is empty: it takes as long as all others. Tokens in order of their bytes, and
    /// which of them are made.
    pub(crate) fn without_trie(
        vocab: &Vocab,
        tokens: &Sorted,
        splits: &[Split],
        made: &[bool],
        most_near: u32,
    ) -> Self {
        let bytes = single_bytes(vocab);
        let mut split_of: Vec<(u32, u32)> = (0..vocab.len()).map(|rank| (rank, rank)).collect();
        splits.iter().for_each(|&(left, right, token)| split_of[ix(token)] = (left, right));
        let of = |rank: u32, prefix, shorter_by| {
            let (left, right) = split_of[ix(rank)];
            Parts::new(left, right, prefix, shorter_by).0
        };
        let mut parts: Vec<u64> = (0..vocab.len()).map(|rank| of(rank, rank, 0)).collect();
        tokens.only(made).for_each_with_prefix(|token, rank, prefix| {
            if let Some((prefix, len)) = prefix {
                parts[ix(rank)] = of(rank, prefix, token.len() - len);
            }
        });
        let pairs = PairTable::build(splits, most_near);
        let borders = Borders::build(vocab);
        let byte_pairs = BytePairs::build(vocab, |rank| made[ix(rank)]);
        let singles = count_singles(&bytes);
        let greedy = bytes.iter().all(|&byte| byte < singles || byte == NONE)
            && splits.iter().all(|&(left, right, token)| left < token && right < token);
        let in_stages = splits.iter().all(|split| split.2 >= pairs.limit() || split.0.max(split.1) < pairs.limit());
        let (parts, trie) = (parts.into(), Trie::from_table(Vec::new().into()));
        MergeTables { parts, pairs, in_stages, borders, byte_pairs, trie, bytes, singles, greedy }
    }

    /// Whether BPE can make the token of that rank: it is a single byte or has a split.
    #[must_use]
    pub fn makes(&self, rank: u32) -> bool {
        self.parts(rank).left() != rank || self.bytes.contains(&rank)
    }

    /// Rank of each single byte; no rank of the vocabulary where it has no such token.
    pub(crate) fn single_bytes(&self) -> &[u32] {
        &self.bytes
    }

    /// The splits of all tokens that have one, by rank of the token.
    pub fn splits(&self) -> impl Iterator<Item = Split> {
        (0..)
            .zip(&*self.parts)
            .map(|(rank, &parts)| (Parts(parts).left(), Parts(parts).right(), rank))
            .filter(|&(left, _, rank)| left != rank)
    }

    #[inline(always)]
    fn parts(&self, id: u32) -> Parts {
        Parts(self.parts[ix(id)])
    }

    /// Whether every record is possible.
    pub(crate) fn parts_are_sound(&self, tokens: u32) -> bool {
        let known = |parts: Parts| parts.left() < tokens && parts.right() < tokens && parts.prefix() < tokens;
        self.parts.iter().all(|&record| known(Parts(record)))
    }

    /// Whether the single bytes are those of a vocabulary, which is sound.
    pub(crate) fn bytes_are_sound(&self, vocab: &Vocab) -> bool {
        self.bytes == single_bytes(vocab)
    }

    /// Leaves the BPE result of `piece` (not empty) in `scratch.tokens`, by the fastest exact strategy.
    #[inline]
    pub fn merge(&self, piece: &[u8], scratch: &mut Scratch) {
        // Characters of several bytes are a join each at least; a walk down the trie takes them in its stride.
        if piece.len() <= short::MAX_BYTES && (!self.greedy || piece.is_ascii()) {
            short::merge_short(self, piece, scratch);
        } else if self.greedy && piece.len() >= long::MIN_BYTES {
            long::merge_long(self, piece, scratch);
        } else if self.greedy {
            greedy::merge_greedy(self, piece, scratch);
        } else {
            heap::merge_heap(self, piece, scratch);
        }
    }

    /// Whether the vocabulary allows [`lockstep::Words`].
    #[must_use]
    pub fn in_stages(&self) -> bool {
        self.in_stages
    }

    /// Whether the vocabulary allows [`greedy::merge_greedy`] (lemma 2).
    #[must_use]
    pub fn greedy(&self) -> bool {
        self.greedy
    }
}
