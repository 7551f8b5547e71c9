//! Token ids to bytes.

use crate::error::Error;
use crate::special::Controls;
use crate::vocab::Vocab;

/// The bytes of one id: an ordinary token's, or a control token's name.
#[inline]
pub(crate) fn token_bytes<'a>(vocab: &'a Vocab, controls: &'a Controls, id: u32) -> Option<&'a [u8]> {
    match vocab.token_bytes(id) {
        Some(bytes) => Some(bytes),
        None => controls.by_id(id).map(|token| token.name.as_bytes()),
    }
}

/// Tokens of no more bytes are copied as so many: a copy of a fixed size is a few instructions, and most are short.
const COPIED: usize = 16;

/// Appends the concatenated bytes of `ids`; with `skip_special`, without the control tokens flagged so.
pub(crate) fn decode_onto(
    out: &mut Vec<u8>,
    vocab: &Vocab,
    controls: &Controls,
    ids: &[u32],
    skip_special: bool,
    vocab_size: u32,
) -> Result<(), Error> {
    for (position, &id) in ids.iter().enumerate() {
        // First: the ordinary vocabulary may have it as well.
        if skip_special && controls.by_id(id).is_some_and(|token| token.skip) {
            continue;
        }
        let rank = vocab.rank(id);
        if let Some((bytes, len)) = rank.and_then(|rank| vocab.padded::<COPIED>(rank)) {
            if out.capacity() - out.len() < COPIED {
                crate::error::reserve(out, COPIED)?;
            }
            let end = out.len() + len;
            out.extend_from_slice(bytes);
            out.truncate(end);
            continue;
        }
        if let Some(bytes) = rank.and_then(|rank| vocab.bytes_of(rank)) {
            if out.capacity() - out.len() < bytes.len() {
                crate::error::reserve(out, bytes.len())?;
            }
            out.extend_from_slice(bytes);
            continue;
        }
        match controls.by_id(id) {
            Some(token) => out.extend_from_slice(token.name.as_bytes()),
            None => return Err(Error::UnknownId { id, position, vocab_size }),
        }
    }
    Ok(())
}
