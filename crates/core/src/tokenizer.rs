//! A model's tokenizer: tables, control tokens and split pattern together.

use std::mem::MaybeUninit;
use std::sync::Arc;

use crate::decode;
use crate::encode::{self, Request};
use crate::error::Error;
use crate::pretoken::Pattern;
use crate::segment::Segment;
use crate::special::Controls;
use crate::tables::Tables;

/// Options of an encode call.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Make the cuts of the published path ([`crate::cuts`]). Part of exactness; on by default.
    pub legacy_chunks: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { legacy_chunks: true }
    }
}

/// An immutable tokenizer; share it freely between threads.
#[derive(Debug)]
pub struct Tokenizer {
    pub(crate) tables: Arc<Tables>,
    pub(crate) controls: Controls,
    pub(crate) pattern: Pattern,
}

/// A request that is ready to run: text transcoded, cuts known.
pub struct Prepared<'a> {
    tokenizer: &'a Tokenizer,
    request: Request<'a>,
}

impl Tokenizer {
    /// From tables, control tokens and a pattern.
    #[must_use]
    pub fn new(tables: Arc<Tables>, controls: Controls, pattern: Pattern) -> Self {
        Tokenizer { tables, controls, pattern }
    }

    /// Ids are below this. Between ordinary and control tokens there may be gaps.
    #[must_use]
    pub fn vocab_size(&self) -> u32 {
        self.tables.vocab.len().max(self.controls.end())
    }

    /// Number of ordinary tokens; their ids are below this.
    #[must_use]
    pub fn ordinary_len(&self) -> u32 {
        self.tables.vocab.len()
    }

    /// The control tokens.
    #[must_use]
    pub fn controls(&self) -> &Controls {
        &self.controls
    }

    /// The split pattern.
    #[must_use]
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// The tables.
    #[must_use]
    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// Makes a request ready to run.
    ///
    /// # Errors
    /// [`Error::TooLong`]; [`Error::Memory`].
    pub fn prepare<'a>(&'a self, segments: &'a [Segment<'a>], options: Options) -> Result<Prepared<'a>, Error> {
        Ok(Prepared { tokenizer: self, request: Request::new(segments, options.legacy_chunks)? })
    }

    /// The ids of `segments`: the concatenation of the ids of each.
    ///
    /// # Errors
    /// [`Error::TooLong`]; [`Error::Memory`]; [`Error::Pattern`] if a general pattern gave up.
    ///
    /// # Examples
    /// ```
    /// # use kizami_core::{*, special::Controls, pretoken::Pattern};
    /// let tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).chain([b"ab".to_vec()]).collect();
    /// let tables = Tables::build(Vocab::from_ranked(&tokens)?)?;
    /// let tokenizer = Tokenizer::new(tables.into(), Controls::new(vec![], 257)?, Pattern::Kimi);
    /// let text = Segment { text: Text::Utf8("abc"), allow_special: false };
    /// assert_eq!(tokenizer.encode(&[text], Options::default())?, [256, u32::from(b'c')]);
    /// # Ok::<(), kizami_core::Error>(())
    /// ```
    pub fn encode(&self, segments: &[Segment<'_>], options: Options) -> Result<Vec<u32>, Error> {
        let prepared = self.prepare(segments, options)?;
        let mut ids = Vec::new();
        crate::error::reserve(&mut ids, prepared.max_ids())?;
        let len = prepared.encode_into(ids.spare_capacity_mut(), None)?;
        // SAFETY: `encode_into` initialised the first `len` slots of the spare capacity of an empty vector.
        unsafe { ids.set_len(len) };
        Ok(ids)
    }

    /// The bytes of `ids`, concatenated; with `skip_special`, without the control tokens flagged so.
    ///
    /// # Errors
    /// [`Error::UnknownId`]; [`Error::Memory`].
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Result<Vec<u8>, Error> {
        decode::decode(&self.tables.vocab, &self.controls, ids, skip_special, self.vocab_size())
    }

    /// The bytes of one id, or None outside the vocabulary.
    #[must_use]
    pub fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        decode::token_bytes(&self.tables.vocab, &self.controls, id)
    }

    /// The id whose bytes are exactly `bytes`: an ordinary token, else a control token of that name.
    #[must_use]
    pub fn token_id(&self, bytes: &[u8]) -> Option<u32> {
        let Tables { vocab, words, .. } = &*self.tables;
        if bytes.is_empty() {
            return None;
        }
        words.find(vocab, bytes, 0, bytes.len()).or_else(|| self.controls.id_of(bytes))
    }
}

impl Prepared<'_> {
    /// The most ids that the request can give (its UTF-8 bytes).
    #[must_use]
    pub fn max_ids(&self) -> usize {
        self.request.max_ids()
    }

    /// Writes the ids to the start of `out`; returns how many. All of the first so many slots are initialised.
    ///
    /// If `ends` is given, it receives for each segment the number of ids up to its end.
    ///
    /// # Errors
    /// [`Error::Pattern`] if a general pattern gave up.
    ///
    /// # Panics
    /// If `out` has fewer than [`Prepared::max_ids`] slots.
    pub fn encode_into(&self, out: &mut [MaybeUninit<u32>], ends: Option<&mut Vec<usize>>) -> Result<usize, Error> {
        assert!(out.len() >= self.max_ids(), "the output is too short");
        encode::encode(self.tokenizer, &self.request, out, ends)
    }

    /// The number of ids, without writing them.
    ///
    /// # Errors
    /// As [`Prepared::encode_into`].
    pub fn count(&self) -> Result<usize, Error> {
        encode::count(self.tokenizer, &self.request)
    }
}
