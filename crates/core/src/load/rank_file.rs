//! The tiktoken rank file: lines of `base64(token bytes) SPACE rank`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::error::Error;
use crate::num::ix;
use crate::vocab::{MAX_TOKENS, Vocab};

/// Reads a rank file. Ranks must be dense from 0; lines may come in any order.
///
/// # Errors
/// [`Error::Vocabulary`] with the line.
pub fn read_rank_file(text: &[u8]) -> Result<Vocab, Error> {
    let mut tokens: Vec<Option<Vec<u8>>> = Vec::new();
    for (index, line) in text.split(|&b| b == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        let fault = |reason: &str| Error::Vocabulary { line: index + 1, reason: reason.into() };
        let space = line.iter().position(|&b| b == b' ').ok_or_else(|| fault("no space between token and rank"))?;
        let token = STANDARD.decode(&line[..space]).map_err(|e| fault(&format!("the token is not base64: {e}")))?;
        let rank: u32 = std::str::from_utf8(&line[space + 1..])
            .ok()
            .and_then(|r| r.parse().ok())
            .ok_or_else(|| fault("the rank is not a number"))?;
        if ix(rank) >= MAX_TOKENS {
            return Err(fault(&format!("rank {rank} is not below {MAX_TOKENS}")));
        }
        if tokens.len() <= ix(rank) {
            tokens.resize(ix(rank) + 1, None);
        }
        if tokens[ix(rank)].replace(token).is_some() {
            return Err(fault(&format!("rank {rank} is there twice")));
        }
    }
    if let Some(rank) = tokens.iter().position(Option::is_none) {
        return Err(Error::Vocabulary { line: 0, reason: format!("rank {rank} is missing; ranks must be dense") });
    }
    let tokens: Vec<Vec<u8>> = tokens.into_iter().flatten().collect();
    Vocab::from_ranked(&tokens)
}

/// Writes a vocabulary as a rank file: the inverse of [`read_rank_file`].
#[must_use]
pub fn write_rank_file(vocab: &Vocab) -> Vec<u8> {
    let mut out = Vec::with_capacity(vocab.iter().count() * 18);
    for (rank, token) in vocab.iter().enumerate() {
        out.extend_from_slice(STANDARD.encode(token).as_bytes());
        out.extend_from_slice(format!(" {rank}\n").as_bytes());
    }
    out
}
