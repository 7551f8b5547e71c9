//! The vocabulary: token id to bytes, the one source of both directions.
//!
//! Ids of a rank-file vocabulary are its ranks, dense from 0. Control tokens are not in here; their ids
//! follow, see [`crate::special`].

use crate::error::Error;
use crate::num::{ix, to_u32};
use crate::table::Table;

/// Most ids that the packed merge tables can hold.
pub const MAX_TOKENS: usize = 1 << 20;

/// Bytes of every ordinary token, by id.
#[derive(Debug, Clone)]
pub struct Vocab {
    /// All token bytes, in id order.
    bytes: Table<u8>,
    /// `offsets[id]..offsets[id + 1]` is the byte range of `id`.
    offsets: Table<u32>,
}

impl Vocab {
    /// From the token bytes in rank order.
    ///
    /// # Errors
    /// [`Error::Vocabulary`] if a token is empty, one is there twice, one of the 256 single bytes is missing,
    /// or there are more than 2^20.
    pub fn from_ranked<B: AsRef<[u8]>>(tokens: &[B]) -> Result<Self, Error> {
        let fault = |line: usize, reason: String| Error::Vocabulary { line, reason };
        if tokens.len() > MAX_TOKENS {
            return Err(fault(0, format!("{} tokens; at most {MAX_TOKENS} are supported", tokens.len())));
        }
        let mut bytes = Vec::new();
        let mut offsets = vec![0];
        let mut seen = std::collections::HashSet::with_capacity(tokens.len());
        for (rank, token) in tokens.iter().map(AsRef::as_ref).enumerate() {
            if token.is_empty() {
                return Err(fault(rank + 1, format!("rank {rank} is an empty token")));
            }
            if !seen.insert(token) {
                return Err(fault(rank + 1, format!("rank {rank} repeats an earlier token: {token:?}")));
            }
            bytes.extend_from_slice(token);
            offsets.push(u32::try_from(bytes.len()).map_err(|_| fault(0, "more than 4 GiB of tokens".into()))?);
        }
        if let Some(byte) = (0..=255u8).find(|b| !seen.contains(&[*b][..])) {
            return Err(fault(0, format!("the single byte 0x{byte:02x} is not a token; not a byte-level vocabulary")));
        }
        Ok(Vocab { bytes: bytes.into(), offsets: offsets.into() })
    }

    pub(crate) fn from_tables(bytes: Table<u8>, offsets: Table<u32>) -> Result<Self, Error> {
        if offsets.is_empty() || offsets.len() > MAX_TOKENS + 1 {
            return Err(Error::Image("the token offsets have a wrong length".into()));
        }
        Ok(Vocab { bytes, offsets })
    }

    /// Whether the offsets fit the bytes.
    pub(crate) fn is_sound(&self) -> bool {
        let ends = self.offsets.first() == Some(&0) && self.offsets.last().map(|&o| ix(o)) == Some(self.bytes.len());
        ends && self.offsets.windows(2).all(|w| w[0] < w[1])
    }

    pub(crate) fn tables(&self) -> (&[u8], &[u32]) {
        (&self.bytes, &self.offsets)
    }

    /// Number of ordinary tokens; their ids are below this.
    #[must_use]
    pub fn len(&self) -> u32 {
        to_u32(self.offsets.len() - 1)
    }

    /// True for a vocabulary without tokens; [`Vocab::from_ranked`] makes none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of an ordinary token, or None for any other id.
    #[inline]
    #[must_use]
    pub fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        let start = *self.offsets.get(ix(id))?;
        let end = *self.offsets.get(ix(id) + 1)?;
        self.bytes.get(ix(start)..ix(end))
    }

    /// All tokens in id order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|id| self.token_bytes(id).expect("an id below len"))
    }
}
