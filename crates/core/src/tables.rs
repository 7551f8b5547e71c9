//! Everything read-only that encoding and decoding need of one vocabulary.

use crate::error::Error;
use crate::lookup::WordTable;
use crate::merge::MergeTables;
use crate::table::{Table, touch};
use crate::vocab::Vocab;
use crate::worker::Workers;

/// The tables of one vocabulary, built from ranks or lying in an image. Control tokens are apart: several models
/// share ranks and differ only in names.
#[derive(Debug, Clone)]
pub struct Tables {
    /// Id to bytes.
    pub vocab: Vocab,
    /// Bytes to id, of the tokens that a whole pre-token may be.
    pub words: WordTable,
    /// Ranks of all other tokens: only a decoder meets them.
    pub others: Table<u32>,
    /// BPE.
    pub merges: MergeTables,
    /// Whether BPE makes every token that a whole pre-token may be. Then equal bytes have equal ids everywhere.
    pub whole_is_merged: bool,
    /// Scratch memory of threads, and what they have learned of this vocabulary.
    pub workers: Workers,
}

impl Tables {
    /// Builds all tables for a rank file: about 0.2 s for 160,000 tokens. A pre-token that is a token is that token.
    ///
    /// # Errors
    /// As [`MergeTables::build`].
    pub fn build(vocab: Vocab) -> Result<Self, Error> {
        let merges = MergeTables::build(&vocab)?;
        Ok(Self::with_merges(vocab, merges, |_| true))
    }

    /// All tables, given the merges and the tokens, by rank, that a whole pre-token may be.
    #[must_use]
    pub fn with_merges(vocab: Vocab, merges: MergeTables, may_be_whole: impl Fn(u32) -> bool) -> Self {
        let words = WordTable::build(&vocab, &may_be_whole);
        Self::with_words(vocab, words, merges, may_be_whole)
    }

    /// The same, given the table of the tokens that a whole pre-token may be as well.
    pub(crate) fn with_words(
        vocab: Vocab,
        words: WordTable,
        merges: MergeTables,
        may_be_whole: impl Fn(u32) -> bool,
    ) -> Self {
        let others: Vec<u32> = (0..vocab.len()).filter(|&rank| !may_be_whole(rank)).collect();
        Tables {
            words,
            others: others.into(),
            whole_is_merged: (0..vocab.len()).all(|rank| merges.makes(rank) || !may_be_whole(rank)),
            merges,
            vocab,
            workers: Workers::default(),
        }
    }

    /// Brings near what the first requests need: scratch memory for so many threads, at most two (2 MB, or 8 with the table that
    /// they share), and those tables that every text reads, where they lie in a file that was mapped. A millisecond or two. For
    /// tables that no request has used yet.
    pub fn warm(&self, threads: usize) {
        self.workers.warm(threads);
        let (lines, long) = self.words.tables();
        touch(lines);
        touch(long);
        self.merges.pairs.touch();
        touch(self.merges.byte_pairs.table());
    }

    /// The id of the ordinary token with exactly these bytes.
    #[must_use]
    pub fn token_id(&self, bytes: &[u8]) -> Option<u32> {
        if bytes.is_empty() {
            return None;
        }
        let rank_of_other = || self.others.iter().copied().find(|&rank| self.vocab.bytes_of(rank) == Some(bytes));
        let found = self.words.find(&self.vocab, bytes, 0, bytes.len());
        found.or_else(|| Some(self.vocab.id(rank_of_other()?)))
    }
}
