//! The vocabulary: token id to bytes, the one source of both directions.
//!
//! Tokens are kept in order of rank, and all tables speak of ranks: dense from 0. In a rank file the id of a token is its
//! rank. Other formats give ids of their own; those are put in place of ranks where answers are made
//! ([`Vocab::to_ids`]). Control tokens are not in here, see [`crate::special`].

use std::collections::HashSet;

use crate::error::Error;
use crate::hash::Keys;
use crate::num::{ix, to_u32};
use crate::table::Table;

/// Most ids that the packed merge tables can hold.
pub const MAX_TOKENS: usize = 1 << 20;

/// Bytes and id of every ordinary token, by rank.
#[derive(Debug, Clone)]
pub struct Vocab {
    /// All token bytes, in order of rank.
    bytes: Table<u8>,
    /// `offsets[rank]..offsets[rank + 1]` is the byte range of a token.
    offsets: Table<u32>,
    /// Rank to id; empty where they are the same.
    ids: Table<u32>,
    /// Id to rank, [`NONE`] where there is no token; empty likewise.
    ranks: Table<u32>,
}

/// No token.
const NONE: u32 = u32::MAX;

impl Vocab {
    /// From the token bytes in rank order.
    ///
    /// # Errors
    /// [`Error::Vocabulary`] if a token is empty, one is there twice, one of the single bytes that text may have is
    /// missing, or there are more than 2^20.
    pub fn from_ranked<B: AsRef<[u8]>>(tokens: &[B]) -> Result<Self, Error> {
        let mut seen = HashSet::with_capacity_and_hasher(tokens.len(), Keys::default());
        for (rank, token) in tokens.iter().map(AsRef::as_ref).enumerate() {
            if !token.is_empty() && !seen.insert(token) {
                let reason = format!("rank {rank} repeats an earlier token: {token:?}");
                return Err(Error::Vocabulary { line: rank + 1, reason });
            }
        }
        Self::from_distinct(tokens)
    }

    /// The same for tokens of which it is known that none is there twice.
    pub(crate) fn from_distinct<B: AsRef<[u8]>>(tokens: &[B]) -> Result<Self, Error> {
        let fault = |line: usize, reason: String| Error::Vocabulary { line, reason };
        if tokens.len() > MAX_TOKENS {
            return Err(fault(0, format!("{} tokens; at most {MAX_TOKENS} are supported", tokens.len())));
        }
        let mut bytes = Vec::new();
        let mut offsets = vec![0];
        let mut singles = [false; 256];
        for (rank, token) in tokens.iter().map(AsRef::as_ref).enumerate() {
            match *token {
                [] => return Err(fault(rank + 1, format!("rank {rank} is an empty token"))),
                [byte] => singles[usize::from(byte)] = true,
                _ => {}
            }
            bytes.extend_from_slice(token);
            offsets.push(u32::try_from(bytes.len()).map_err(|_| fault(0, "more than 4 GiB of tokens".into()))?);
        }
        // UTF-8 never has the others.
        let mut of_text = (0..=0xf4u8).filter(|byte| !matches!(byte, 0xc0 | 0xc1));
        if let Some(byte) = of_text.find(|&byte| !singles[usize::from(byte)]) {
            return Err(fault(0, format!("the single byte 0x{byte:02x} is not a token; not a byte-level vocabulary")));
        }
        Ok(Vocab { bytes: bytes.into(), offsets: offsets.into(), ids: Vec::new().into(), ranks: Vec::new().into() })
    }

    /// The same tokens with ids of their own, by rank.
    ///
    /// # Errors
    /// [`Error::Vocabulary`] if an id is there twice or not below 2^20.
    pub fn with_ids(mut self, ids: Vec<u32>) -> Result<Self, Error> {
        let fault = |reason: String| Err(Error::Vocabulary { line: 0, reason });
        if ids.len() != ix(self.len()) {
            return fault(format!("{} ids for {} tokens", ids.len(), self.len()));
        }
        if ids.iter().copied().eq(0..self.len()) {
            return Ok(self);
        }
        let last = ids.iter().copied().max().unwrap_or(0);
        if ix(last) >= MAX_TOKENS {
            return fault(format!("token id {last} is not below {MAX_TOKENS}"));
        }
        let mut ranks = vec![NONE; ix(last) + 1];
        for (rank, &id) in (0..).zip(&ids) {
            if std::mem::replace(&mut ranks[ix(id)], rank) != NONE {
                return fault(format!("token id {id} is there twice"));
            }
        }
        (self.ids, self.ranks) = (ids.into(), ranks.into());
        Ok(self)
    }

    pub(crate) fn from_tables([offsets, ids, ranks]: [Table<u32>; 3], bytes: Table<u8>) -> Result<Self, Error> {
        if offsets.is_empty() || offsets.len() > MAX_TOKENS + 1 {
            return Err(Error::Image("the token offsets have a wrong length".into()));
        }
        if !ids.is_empty() && ids.len() != offsets.len() - 1 {
            return Err(Error::Image("the token ids have a wrong length".into()));
        }
        Ok(Vocab { bytes, offsets, ids, ranks })
    }

    /// Whether the offsets fit the bytes.
    pub(crate) fn is_sound(&self) -> bool {
        let ends = self.offsets.first() == Some(&0) && self.offsets.last().map(|&o| ix(o)) == Some(self.bytes.len());
        let are_inverse = |(rank, &id): (u32, &u32)| self.ranks.get(ix(id)) == Some(&rank);
        ends && self.offsets.windows(2).all(|w| w[0] < w[1])
            && (0..).zip(&*self.ids).all(are_inverse)
            && self.ranks.len() <= MAX_TOKENS
            && self.ranks.iter().filter(|&&rank| rank != NONE).count() == self.ids.len()
    }

    /// Offsets, ids and ranks; and the bytes.
    pub(crate) fn tables(&self) -> ([&[u32]; 3], &[u8]) {
        ([&self.offsets, &self.ids, &self.ranks], &self.bytes)
    }

    /// One past the highest id of an ordinary token.
    #[must_use]
    pub fn end(&self) -> u32 {
        if self.ids.is_empty() { self.len() } else { to_u32(self.ranks.len()) }
    }

    /// The id of a token.
    #[inline(always)]
    #[must_use]
    pub fn id(&self, rank: u32) -> u32 {
        if self.ids.is_empty() { rank } else { self.ids[ix(rank)] }
    }

    /// The token of that id, if it is an ordinary one.
    #[inline]
    #[must_use]
    pub fn rank(&self, id: u32) -> Option<u32> {
        if self.ids.is_empty() {
            return (id < self.len()).then_some(id);
        }
        self.ranks.get(ix(id)).copied().filter(|&rank| rank != NONE)
    }

    /// Puts ids in place of ranks.
    #[inline]
    pub fn to_ids(&self, tokens: &mut [u32]) {
        if !self.ids.is_empty() {
            for token in tokens {
                *token = self.ids[ix(*token)];
            }
        }
    }

    /// Number of ordinary tokens.
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
        self.bytes_of(self.rank(id)?)
    }

    /// The bytes of the token of that rank, or None if there are not so many.
    #[inline]
    #[must_use]
    pub fn bytes_of(&self, rank: u32) -> Option<&[u8]> {
        let start = *self.offsets.get(ix(rank))?;
        let end = *self.offsets.get(ix(rank) + 1)?;
        self.bytes.get(ix(start)..ix(end))
    }

    /// Of a token of at most `N` bytes, these and what is behind them up to `N`, and how many are its own. None as well for
    /// the last tokens, which have too little behind them.
    #[inline]
    #[must_use]
    pub fn padded<const N: usize>(&self, rank: u32) -> Option<(&[u8; N], usize)> {
        let start = ix(*self.offsets.get(ix(rank))?);
        let len = ix(*self.offsets.get(ix(rank) + 1)?).checked_sub(start).filter(|&len| len <= N)?;
        Some((self.bytes.get(start..)?.first_chunk()?, len))
    }

    /// The bytes of all tokens in order of rank.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|rank| self.bytes_of(rank).expect("a rank below len"))
    }
}
