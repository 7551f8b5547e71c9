//! A model's tokenizer: tables, control tokens and split pattern together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::decode;
use crate::encode::{self, Encoded};
use crate::error::Error;
use crate::normalize::Normalizer;
use crate::pretoken::{Pattern, Prefix};
use crate::request::Request;
use crate::segment::Segment;
use crate::special::{ControlToken, Controls};
use crate::tables::Tables;

/// Options of an encode call.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Make the cuts of the published path ([`crate::cuts`]), if the model has them. Part of exactness; on by default.
    pub legacy_chunks: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { legacy_chunks: true }
    }
}

/// An immutable tokenizer; share it freely between threads. A copy shares the tables.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    pub(crate) tables: Arc<Tables>,
    pub(crate) controls: Controls,
    pub(crate) pattern: Pattern,
    pub(crate) normalizer: Option<Normalizer>,
    pub(crate) prefix: Option<Prefix>,
    /// Whether the published path of the model makes the cuts of [`crate::cuts`].
    pub(crate) cuts: bool,
    pub(crate) origin: Option<Arc<Origin>>,
    /// Told apart by what is learned of whole segments.
    pub(crate) identity: Identity,
}

/// A number that no two tokenizers of a process share, unless both give the same ids for every segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Identity(u64);

impl Identity {
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Identity(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// The same one.
    #[inline]
    pub fn same(&self) -> Self {
        Identity(self.0)
    }
}

impl Clone for Identity {
    /// Another one: of two copies of a tokenizer, one may be about to be changed.
    fn clone(&self) -> Self {
        Identity::new()
    }
}

/// What text goes through before it is merged, in the words of the files that a tokenizer came from: for who writes such
/// files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// JSON: a string, which is a split pattern, or the `pre_tokenizer` of a `tokenizer.json`.
    pub split: String,
    /// JSON: the `normalizer` of a `tokenizer.json`, or null.
    pub normalizer: String,
    /// Whether the names of control tokens count in trusted text.
    pub named: bool,
}

/// A request that is ready to run: text transcoded, cuts known.
pub struct Prepared<'a> {
    tokenizer: &'a Tokenizer,
    request: Request<'a>,
}

impl Tokenizer {
    /// From tables, control tokens and a pattern: a tokenizer of the Kimi line, which makes the cuts of its published
    /// path and does not normalize.
    #[must_use]
    pub fn new(tables: Arc<Tables>, controls: Controls, pattern: Pattern) -> Self {
        Tokenizer {
            tables,
            controls,
            pattern,
            normalizer: None,
            prefix: None,
            cuts: true,
            origin: None,
            identity: Identity::new(),
        }
    }

    /// The same without the cuts of [`crate::cuts`], which are only the Kimi line's.
    #[must_use]
    pub fn without_cuts(mut self) -> Self {
        self.cuts = false;
        self
    }

    /// The same with a normalizer, for text and for the names of control tokens that are flagged so.
    ///
    /// # Errors
    /// [`Error::Pattern`] if a regex of it gave up on a name.
    #[cfg(feature = "formats")]
    pub fn with_normalizer(mut self, normalizer: Option<Normalizer>) -> Result<Self, Error> {
        self.controls = self.controls.normalized(normalizer.as_ref())?;
        self.normalizer = normalizer;
        self.identity = Identity::new();
        Ok(self)
    }

    /// The same with a space before text, as `prefix` says.
    #[cfg(feature = "general-pattern")]
    #[must_use]
    pub fn with_prefix(mut self, prefix: Option<Prefix>) -> Self {
        self.prefix = prefix;
        self.identity = Identity::new();
        self
    }

    /// The same with other control tokens; tables are shared.
    ///
    /// # Errors
    /// As [`Tokenizer::with_normalizer`].
    pub fn with_controls(&self, controls: Controls) -> Result<Self, Error> {
        let controls = controls.normalized(self.normalizer.as_ref())?;
        Ok(Tokenizer { controls, ..self.clone() })
    }

    /// The same with other added tokens, as [`Controls::from_added`] takes them.
    ///
    /// # Errors
    /// As [`Controls::from_added`] and [`Tokenizer::with_normalizer`].
    pub fn with_added_tokens(&self, tokens: Vec<ControlToken>) -> Result<Self, Error> {
        let controls = Controls::from_added(tokens, |id| self.tables.vocab.token_bytes(id))?;
        let named = self.origin.as_ref().is_none_or(|origin| origin.named);
        self.with_controls(if named { controls } else { controls.without_names() })
    }

    /// The same, with what [`Tokenizer::origin`] says.
    #[must_use]
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.origin = Some(origin.into());
        self
    }

    /// Where it came from; None for the Kimi line.
    #[must_use]
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_deref()
    }

    /// Ids are below this. Between ordinary and control tokens there may be gaps.
    #[must_use]
    pub fn vocab_size(&self) -> u32 {
        self.tables.vocab.end().max(self.controls.end())
    }

    /// One past the highest id of an ordinary token.
    #[must_use]
    pub fn ordinary_len(&self) -> u32 {
        self.tables.vocab.end()
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

    /// The normalizer, if there is one.
    #[cfg(feature = "formats")]
    #[must_use]
    pub fn normalizer(&self) -> Option<&Normalizer> {
        self.normalizer.as_ref()
    }

    /// Whether the published path of the model makes the cuts of [`crate::cuts`].
    #[must_use]
    pub fn makes_cuts(&self) -> bool {
        self.cuts
    }

    /// The tables.
    #[must_use]
    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// Whether text of such trust is split as it is: nothing is normalized or put before it, and names in it are plain.
    pub(crate) fn is_simple(&self, trusted: bool) -> bool {
        self.normalizer.is_none() && self.prefix.is_none() && self.controls.is_simple(trusted)
    }

    /// Whether this text is split as it is, as if the tokenizer were simple. Reads it if there is a normalizer.
    pub(crate) fn takes_as_it_is(&self, segment: &Segment<'_>) -> bool {
        self.prefix.is_none()
            && self.controls.is_simple(segment.allow_special)
            && self.normalizer.as_ref().is_none_or(|normalizer| normalizer.leaves(segment.text))
    }

    /// Makes a request ready to run.
    ///
    /// # Errors
    /// [`Error::TooLong`]; [`Error::Memory`]; [`Error::Pattern`] if a regex of the normalizer gave up.
    pub fn prepare<'a>(&'a self, segments: &'a [Segment<'a>], options: Options) -> Result<Prepared<'a>, Error> {
        Ok(Prepared { tokenizer: self, request: Request::new(self, segments, options.legacy_chunks)? })
    }

    /// The ids of `segments`, the first of which is the end of another one that is cut at `cuts` of it; `ends` as in
    /// [`Prepared::encode`].
    pub(crate) fn encode_from(
        &self,
        segments: &[Segment<'_>],
        options: Options,
        cuts: Option<Vec<usize>>,
        ends: &mut Vec<usize>,
    ) -> Result<Encoded<'_>, Error> {
        let request = Request::resumed(self, segments, options.legacy_chunks, cuts)?;
        encode::encode(self, &request, Some(ends))
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
        self.prepare(segments, options)?.encode(None)?.to_vec()
    }

    /// The bytes of `ids`, concatenated; with `skip_special`, without the control tokens flagged so.
    ///
    /// # Errors
    /// [`Error::UnknownId`]; [`Error::Memory`].
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        crate::error::reserve(&mut out, ids.len() * 4 + 16)?;
        self.decode_onto(&mut out, ids, skip_special)?;
        Ok(out)
    }

    /// The same, appended to `out`, which has some of them if there is an error.
    pub(crate) fn decode_onto(&self, out: &mut Vec<u8>, ids: &[u32], skip_special: bool) -> Result<(), Error> {
        decode::decode_onto(out, &self.tables.vocab, &self.controls, ids, skip_special, self.vocab_size())
    }

    /// The bytes of one id, or None outside the vocabulary.
    #[must_use]
    pub fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        decode::token_bytes(&self.tables.vocab, &self.controls, id)
    }

    /// The id whose bytes are exactly `bytes`: an ordinary token, else a control token of that name.
    #[must_use]
    pub fn token_id(&self, bytes: &[u8]) -> Option<u32> {
        self.tables.token_id(bytes).or_else(|| self.controls.id_of(bytes))
    }
}

impl<'a> Prepared<'a> {
    /// UTF-8 bytes of all segments; no request gives more ids.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.request.bytes()
    }

    /// Runs the request. If `ends` is given, it receives for each segment the number of ids up to its end.
    ///
    /// # Errors
    /// [`Error::Pattern`] if a general pattern gave up; [`Error::Memory`].
    pub fn encode(&self, ends: Option<&mut Vec<usize>>) -> Result<Encoded<'a>, Error> {
        encode::encode(self.tokenizer, &self.request, ends)
    }

    /// The number of ids, without keeping them.
    ///
    /// # Errors
    /// As [`Prepared::encode`].
    pub fn count(&self) -> Result<usize, Error> {
        encode::count(self.tokenizer, &self.request)
    }
}
