//! Kizami's tokenizers as tokenizers of [Dynamo](https://crates.io/crates/dynamo-tokenizers).
//!
//! [`KizamiTokenizer`] implements the published traits over `kizami-core`; put it into an [`std::sync::Arc`], and
//! `dynamo_tokenizers::Tokenizer::from` takes it. Segments keep their trust: text of a segment without `allow_special`
//! never gives a control id. Long texts are cut as the published path of the Kimi models cuts them.
//!
//! ```no_run
//! use std::sync::Arc;
//! use dynamo_tokenizers::{EncodeSegment, Tokenizer};
//! use kizami_dynamo::KizamiTokenizer;
//!
//! // What `kizami.Tokenizer.save` wrote, or a `tokenizer.json`.
//! let tokenizer = Tokenizer::from(Arc::new(KizamiTokenizer::open("k3.kizami".as_ref())?));
//! let prompt = [EncodeSegment::control("<|open|>"), EncodeSegment::ordinary("text of a user")];
//! let ids = tokenizer.encode_segments(&prompt)?;
//! # Ok::<(), dynamo_tokenizers::Error>(())
//! ```

use std::fs::File;
use std::io::Read;
use std::path::Path;

use dynamo_tokenizers::traits::{DecodeResult, Decoder, Encoder, Tokenizer};
use dynamo_tokenizers::{EncodeSegment, Encoding, Error, Result, TokenIdType};
use kizami_core::load::{read_tokenizer_json, saved};
use kizami_core::{Options, Segment, Text};

/// A tokenizer of Kizami behind Dynamo's traits. Immutable; threads share it.
#[derive(Debug, Clone)]
pub struct KizamiTokenizer(kizami_core::Tokenizer);

impl From<kizami_core::Tokenizer> for KizamiTokenizer {
    fn from(tokenizer: kizami_core::Tokenizer) -> Self {
        KizamiTokenizer(tokenizer)
    }
}

impl KizamiTokenizer {
    /// From a file that Kizami saved, which is mapped, or from a `tokenizer.json`.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or is of a tokenizer that Kizami cannot run exactly.
    pub fn open(path: &Path) -> Result<Self> {
        let at = |error: &dyn std::fmt::Display| Error::msg(format!("{}: {error}", path.display()));
        let mut data = vec![0; 64];
        let mut file = File::open(path).map_err(|error| at(&error))?;
        let read = file.read(&mut data).map_err(|error| at(&error))?;
        data.truncate(read);
        let tokenizer = if saved::is_saved(&data) {
            saved::open(path).map_err(|error| at(&error))?.0
        } else {
            file.read_to_end(&mut data).map_err(|error| at(&error))?;
            read_tokenizer_json(&data).map_err(|error| at(&error))?
        };
        Ok(KizamiTokenizer(tokenizer))
    }

    /// The tokenizer inside.
    #[must_use]
    pub fn inner(&self) -> &kizami_core::Tokenizer {
        &self.0
    }

    fn ids(&self, segments: &[Segment<'_>]) -> Result<Encoding> {
        Ok(Encoding::Sp(self.0.encode(segments, Options::default())?))
    }
}

/// Text that may name control tokens, as flat text of Dynamo does.
fn trusted(text: &str) -> Segment<'_> {
    Segment { text: Text::Utf8(text), allow_special: true }
}

impl Encoder for KizamiTokenizer {
    /// The ids of flat text: names of control tokens in it count, as with Dynamo's own tokenizers.
    fn encode(&self, input: &str) -> Result<Encoding> {
        self.ids(&[trusted(input)])
    }

    fn encode_batch(&self, inputs: &[&str]) -> Result<Vec<Encoding>> {
        let segments: Vec<_> = inputs.iter().map(|input| trusted(input)).collect();
        // One request for all: the texts are shared out among the threads.
        let mut ends = Vec::with_capacity(inputs.len());
        let encoded = self.0.prepare(&segments, Options::default())?.encode(Some(&mut ends))?;
        let mut ids = Vec::with_capacity(encoded.len());
        encoded.parts().for_each(|part| ids.extend_from_slice(part));
        let starts = std::iter::once(0).chain(ends.iter().copied());
        Ok(starts.zip(&ends).map(|(start, &end)| Encoding::Sp(ids[start..end].to_vec())).collect())
    }

    fn encode_segments(&self, segments: &[EncodeSegment<'_>]) -> Result<Encoding> {
        let segments: Vec<_> = segments
            .iter()
            .map(|segment| Segment { text: Text::Utf8(segment.text), allow_special: segment.allow_special })
            .collect();
        self.ids(&segments)
    }
}

impl Decoder for KizamiTokenizer {
    fn decode(&self, token_ids: &[TokenIdType], skip_special_tokens: bool) -> Result<DecodeResult> {
        let bytes = self.0.decode(token_ids, skip_special_tokens)?;
        Ok(match String::from_utf8(bytes) {
            // A token may well spell U+FFFD.
            Ok(text) => DecodeResult::Complete(text),
            Err(error) => DecodeResult::from_decoded(String::from_utf8_lossy(error.as_bytes()).into_owned()),
        })
    }
}

impl Tokenizer for KizamiTokenizer {
    /// Refused: in long texts, cuts are counted from the beginning, and names of control tokens may overlap, so the ids
    /// of a prefix need not be a prefix of the ids.
    fn validate_prefix_cache(&self) -> Result<()> {
        Err(Error::msg("Kizami's ids of a prefix need not be a prefix of the ids; use it without a prefix cache"))
    }

    fn vocab_size(&self) -> Option<usize> {
        Some(self.0.vocab_size() as usize)
    }

    /// By the text that a token spells, or the name of a control token.
    fn token_to_id(&self, token: &str) -> Result<Option<TokenIdType>> {
        Ok(self.0.controls().id_of(token.as_bytes()).or_else(|| self.0.token_id(token.as_bytes())))
    }

    fn special_token_ids(&self) -> Result<Vec<TokenIdType>> {
        Ok(self.0.controls().tokens().iter().filter(|token| token.skip).map(|token| token.id).collect())
    }

    fn num_special_tokens_added(&self) -> Result<usize> {
        Ok(0)
    }
}
