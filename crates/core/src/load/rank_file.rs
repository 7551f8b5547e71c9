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
    read_rank_file_with_gaps(text, |_| false)
}

/// The same, where a rank may be missing if `may_miss` says so: one that is the id of a control token, say. Ids are the
/// ranks of the file.
///
/// # Errors
/// As [`read_rank_file`].
pub fn read_rank_file_with_gaps(text: &[u8], may_miss: impl Fn(u32) -> bool) -> Result<Vocab, Error> {
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
    let missing = (0..).zip(&tokens).find(|&(rank, token)| token.is_none() && !may_miss(rank));
    if let Some((rank, _)) = missing {
        return Err(Error::Vocabulary { line: 0, reason: format!("rank {rank} is missing; ranks must be dense") });
    }
    let ids = (0..).zip(&tokens).filter(|(_, token)| token.is_some()).map(|(rank, _)| rank).collect();
    let tokens: Vec<Vec<u8>> = tokens.into_iter().flatten().collect();
    Vocab::from_ranked(&tokens)?.with_ids(ids)
}

/// Writes a vocabulary as a rank file, ids as ranks: the inverse of [`read_rank_file_with_gaps`].
#[must_use]
pub fn write_rank_file(vocab: &Vocab) -> Vec<u8> {
    let mut out = Vec::with_capacity(vocab.iter().count() * 18);
    for (rank, token) in (0..).zip(vocab.iter()) {
        out.extend_from_slice(STANDARD.encode(token).as_bytes());
        out.extend_from_slice(format!(" {}\n", vocab.id(rank)).as_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_ranks_are_refused_unless_they_may_be_missing() {
        let dense: Vec<u8> = (0..=255u8).flat_map(|b| format!("{} {b}\n", STANDARD.encode([b])).into_bytes()).collect();
        let mut text = dense.clone();
        text.extend_from_slice(b"YWI= 257\n");

        assert!(read_rank_file(&text).unwrap_err().to_string().contains("rank 256 is missing"));
        assert!(read_rank_file_with_gaps(&text, |rank| rank == 255).is_err());
        let vocab = read_rank_file_with_gaps(&text, |rank| rank == 256).unwrap();
        assert_eq!((vocab.len(), vocab.end(), vocab.rank(256)), (257, 258, None));
        assert_eq!(vocab.token_bytes(257), Some(&b"ab"[..]));
        assert_eq!(write_rank_file(&vocab), text);
        assert_eq!(read_rank_file(&dense).unwrap().end(), 256);
    }
}
