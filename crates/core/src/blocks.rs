//! Hashes of full blocks of ids: what engines key their KV caches with, and what routers look up.
//!
//! A block is `block_size` ids, the first one from the first id on. Its hash covers all ids up to its end, because each
//! hash takes in the one before it: equal hashes mean equal beginnings of prompts. Ids after the last full block have
//! no hash yet.
//!
//! # Schemes
//! vLLM (0.33, `hash_block_tokens`): the hash of block *i* is *H(E((parent, ids, extra)))*, a tuple of the hash before it
//! (bytes), the ids (a tuple of ints) and the block's extra keys (None, or a tuple). Before the first block stands
//! *H(E(seed))*, where the seed is a string. *E* is canonical CBOR, or the pickle of CPython ([`message`]); *H* is
//! SHA-256, or XXH3 with 128 bits (its canonical, big-endian form).
//!
//! Dynamo (1.6, crates `dynamo-tokens` and `dynamo-kv-router`): the hash of a block alone is XXH3 with 64 bits of its ids,
//! 32 bits each, little-endian, with a seed (1337). Its sequence hash is that of the first block; then XXH3, always with
//! seed 1337, of the sequence hash before it and the block's own hash, 64 bits each, little-endian.
//!
//! SGLang (0.5.23, `get_hash_str`): SHA-256 of the hash before it, if there is one, and the ids, 32 bits each,
//! little-endian.
//!
//! Cost: linear in the ids. Memory: the hashes, and fewer than `block_size` ids.

mod message;

use std::collections::HashMap;
use std::num::NonZeroU32;

use sha2::{Digest, Sha256};
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128};

use crate::error::{Error, reserve};
use crate::num::ix;
use message::Encoding;

/// The seed of Dynamo's hashes, unless a salt or an adapter changes it, and of its chain.
const DYNAMO_SEED: u64 = 1337;
/// What vLLM takes for a seed where `PYTHONHASHSEED` is not set and the hash is a cryptographic one.
const VLLM_SEED: &str = "vllm-none-hash";
const NO_SEED: &str = "this scheme has no seed of its own, because vLLM makes a random one; start vLLM with \
                       PYTHONHASHSEED, and give its value as the seed";
/// Longest seed string, in bytes. vLLM's own have 64 at most.
const MAX_SEED: usize = 1024;

/// How a block is hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// SHA-256 of a pickle: vLLM's default.
    VllmSha256,
    /// SHA-256 of canonical CBOR.
    VllmSha256Cbor,
    /// XXH3-128 of a pickle.
    VllmXxhash,
    /// XXH3-128 of canonical CBOR.
    VllmXxhashCbor,
    /// Dynamo's hash of each block alone: no chain.
    DynamoBlock,
    /// Dynamo's chained hash.
    DynamoSequence,
    /// SGLang's.
    Sglang,
}

impl Scheme {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Scheme); 7] = [
        ("vllm-sha256", Scheme::VllmSha256),
        ("vllm-sha256-cbor", Scheme::VllmSha256Cbor),
        ("vllm-xxhash", Scheme::VllmXxhash),
        ("vllm-xxhash-cbor", Scheme::VllmXxhashCbor),
        ("dynamo-block", Scheme::DynamoBlock),
        ("dynamo-sequence", Scheme::DynamoSequence),
        ("sglang", Scheme::Sglang),
    ];

    /// The scheme of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Scheme> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|&(_, scheme)| scheme)
    }

    /// Bytes of a hash.
    #[must_use]
    pub fn width(self) -> usize {
        match self {
            Scheme::VllmSha256 | Scheme::VllmSha256Cbor | Scheme::Sglang => 32,
            Scheme::VllmXxhash | Scheme::VllmXxhashCbor => 16,
            Scheme::DynamoBlock | Scheme::DynamoSequence => 8,
        }
    }

    /// How the message of a block is written; Dynamo hashes twice instead.
    fn encoding(self) -> Option<Encoding> {
        match self {
            Scheme::VllmSha256 | Scheme::VllmXxhash => Some(Encoding::Pickle),
            Scheme::VllmSha256Cbor | Scheme::VllmXxhashCbor => Some(Encoding::Cbor),
            Scheme::Sglang => Some(Encoding::Plain),
            Scheme::DynamoBlock | Scheme::DynamoSequence => None,
        }
    }

    /// Appends the hash of a message.
    fn hash(self, message: &[u8], out: &mut Vec<u8>) {
        match self {
            Scheme::VllmXxhash | Scheme::VllmXxhashCbor => out.extend(xxh3_128(message).to_be_bytes()),
            _ => out.extend(Sha256::digest(message)),
        }
    }
}

/// What the chain begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seed<'a> {
    /// vLLM's, a string: the value of `PYTHONHASHSEED`.
    Text(&'a str),
    /// Dynamo's, a number.
    Number(u64),
}

/// The hashes of the full blocks of ids that come one after the other.
///
/// # Examples
/// ```
/// use kizami_core::{BlockHasher, Scheme};
///
/// let mut hasher = BlockHasher::new(Scheme::DynamoSequence, 4, None, None)?;
/// let hashes = hasher.push(&[1, 2, 3, 4, 5])?.to_vec(); // one full block, and an id
/// assert_eq!(u64::from_le_bytes(hashes.try_into().unwrap()), 14643705804678351452);
/// assert_eq!(hasher.push(&[6, 7, 8])?.len(), 8);
/// assert_eq!(hasher.rewind(6), 4); // ids inside a full block are not kept
/// # Ok::<(), kizami_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct BlockHasher {
    scheme: Scheme,
    block_size: NonZeroU32,
    /// The hash before the first block; empty where there is none.
    root: Vec<u8>,
    /// Dynamo's seed.
    seed: u64,
    /// Encoded extra keys of every block that has none of its own.
    extra: Option<Vec<u8>>,
    /// Encoded extra keys of single blocks.
    extra_at: HashMap<usize, Vec<u8>>,
    /// The hashes of all full blocks, one after the other.
    hashes: Vec<u8>,
    /// Ids after the last full block.
    rest: Vec<u32>,
    message: Vec<u8>,
}

impl BlockHasher {
    /// A hasher that has seen no ids. `extra`: canonical CBOR of the extra keys of every block.
    ///
    /// # Errors
    /// [`Error::BlockHash`]: the block size, the seed or the extra keys do not go with the scheme.
    pub fn new(scheme: Scheme, block_size: u32, seed: Option<Seed<'_>>, extra: Option<Vec<u8>>) -> Result<Self, Error> {
        let refuse = |reason: String| Err(Error::BlockHash(reason));
        let Some(block_size) = NonZeroU32::new(block_size) else {
            return refuse("block_size must be at least 1, not 0".into());
        };
        if scheme.encoding() == Some(Encoding::Pickle) && block_size.get() > message::MAX_PICKLED {
            let most = message::MAX_PICKLED;
            return refuse(format!("block_size must be at most {most} where blocks are pickled, not {block_size}"));
        }
        let mut hasher = BlockHasher {
            scheme,
            block_size,
            root: Vec::new(),
            seed: DYNAMO_SEED,
            extra: None,
            extra_at: HashMap::new(),
            hashes: Vec::new(),
            rest: Vec::new(),
            message: Vec::new(),
        };
        let text = match (scheme.encoding(), seed) {
            (None, Some(Seed::Text(_))) => return refuse("the seed of Dynamo's hashes is an int, not a str".into()),
            (Some(Encoding::Plain), Some(_)) => return refuse("SGLang's hashes have no seed; leave it out".into()),
            (Some(_), Some(Seed::Number(_))) => {
                return refuse("the seed of vLLM's hashes is a str (the value of PYTHONHASHSEED), not an int".into());
            }
            (Some(_), Some(Seed::Text(seed))) if seed.len() > MAX_SEED => {
                return refuse(format!("seed has {} bytes; at most {MAX_SEED}", seed.len()));
            }
            (Some(_), None) if scheme.width() == 16 => return refuse(NO_SEED.into()),
            (_, Some(Seed::Text(seed))) => seed,
            (_, None) => VLLM_SEED,
            (None, Some(Seed::Number(seed))) => {
                hasher.seed = seed;
                ""
            }
        };
        if let Some(encoding @ (Encoding::Cbor | Encoding::Pickle)) = scheme.encoding() {
            encoding.text(text, &mut hasher.message);
            scheme.hash(&hasher.message, &mut hasher.root);
        }
        if let Some(extra) = extra {
            hasher.check_extra()?;
            hasher.extra = Some(extra);
        }
        Ok(hasher)
    }

    /// How blocks are hashed.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Ids in a block.
    #[must_use]
    pub fn block_size(&self) -> u32 {
        self.block_size.get()
    }

    /// Ids taken so far.
    #[must_use]
    pub fn num_ids(&self) -> usize {
        self.num_blocks() * self.stride() + self.rest.len()
    }

    /// Full blocks so far.
    #[must_use]
    pub fn num_blocks(&self) -> usize {
        self.hashes.len() / self.scheme.width()
    }

    /// The hashes of all full blocks, [`Scheme::width`] bytes each.
    #[must_use]
    pub fn hashes(&self) -> &[u8] {
        &self.hashes
    }

    /// Sets the extra keys, in canonical CBOR, of single blocks. They are kept until [`BlockHasher::rewind`] goes to before
    /// the block.
    ///
    /// # Errors
    /// [`Error::BlockHash`]: the scheme has none, or a block is full already. Nothing is set then.
    pub fn set_extra(&mut self, extra_at: Vec<(usize, Vec<u8>)>) -> Result<(), Error> {
        if extra_at.is_empty() {
            return Ok(());
        }
        self.check_extra()?;
        let full = self.num_blocks();
        if let Some((block, _)) = extra_at.iter().find(|(block, _)| *block < full) {
            let reason = format!("extra keys for block {block}, which is full already; rewind to before it first");
            return Err(Error::BlockHash(reason));
        }
        self.extra_at.extend(extra_at);
        Ok(())
    }

    fn check_extra(&self) -> Result<(), Error> {
        if self.scheme.encoding() == Some(Encoding::Cbor) {
            return Ok(());
        }
        Err(Error::BlockHash(
            "extra keys go with the schemes of canonical CBOR only: a pickle depends on which of its strings are the \
             same object, and the others have no such keys"
                .into(),
        ))
    }

    /// The hashes of the blocks that get full with these ids.
    ///
    /// # Errors
    /// [`Error::Memory`]; the hasher is as it was.
    pub fn push(&mut self, mut ids: &[u32]) -> Result<&[u8], Error> {
        let (stride, width, from) = (self.stride(), self.scheme.width(), self.hashes.len());
        let blocks = (self.rest.len() + ids.len()) / stride;
        reserve(&mut self.hashes, blocks.saturating_mul(width))?;
        reserve(&mut self.rest, ids.len().min(stride))?;
        if !self.rest.is_empty() && blocks > 0 {
            let (begin, after) = ids.split_at(stride - self.rest.len());
            self.rest.extend_from_slice(begin);
            ids = after;
            let block = std::mem::take(&mut self.rest);
            self.add(&block);
            self.rest = block;
            self.rest.clear();
        }
        let whole = ids.len() / stride * stride;
        let (whole, after) = if blocks > 0 { ids.split_at(whole) } else { (&[][..], ids) };
        for block in whole.chunks_exact(stride) {
            self.add(block);
        }
        self.rest.extend_from_slice(after);
        Ok(&self.hashes[from..])
    }

    /// Goes back to the state after the first `num_ids` ids, or as little before it as there is one: ids inside a full
    /// block are not kept, so it may be the end of the block before. Gives the number of ids it is after; the next ids
    /// to push begin there.
    pub fn rewind(&mut self, num_ids: usize) -> usize {
        let full = self.num_blocks() * self.stride();
        if num_ids >= full {
            self.rest.truncate(num_ids - full);
        } else {
            let blocks = num_ids / self.stride();
            self.rest.clear();
            self.hashes.truncate(blocks * self.scheme.width());
            self.extra_at.retain(|&block, _| block < blocks);
        }
        self.num_ids()
    }

    fn stride(&self) -> usize {
        ix(self.block_size.get())
    }

    /// Appends the hash of one more block.
    fn add(&mut self, ids: &[u32]) {
        let width = self.scheme.width();
        let parent = match self.hashes.len() {
            0 => &self.root,
            len => &self.hashes[len - width..],
        };
        let Some(encoding) = self.scheme.encoding() else {
            Encoding::Plain.block(&[], ids, None, &mut self.message);
            let hash = xxh3_64_with_seed(&self.message, self.seed).to_le_bytes();
            let chained = match parent.first_chunk::<8>() {
                Some(parent) if self.scheme == Scheme::DynamoSequence => {
                    xxh3_64_with_seed([*parent, hash].as_flattened(), DYNAMO_SEED).to_le_bytes()
                }
                _ => hash,
            };
            self.hashes.extend(chained);
            return;
        };
        let block = self.hashes.len() / width;
        let own = if self.extra_at.is_empty() { None } else { self.extra_at.get(&block) };
        let extra = own.or(self.extra.as_ref()).map(Vec::as_slice);
        encoding.block(parent, ids, extra, &mut self.message);
        self.scheme.hash(&self.message, &mut self.hashes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(scheme: Scheme) -> Option<Seed<'static>> {
        (scheme.width() == 16).then_some(Seed::Text("0"))
    }

    fn hasher(scheme: Scheme, block_size: u32) -> BlockHasher {
        BlockHasher::new(scheme, block_size, seed(scheme), None).unwrap()
    }

    /// Values that the tests of `dynamo-tokens` 1.6.1 name.
    #[test]
    fn dynamo_as_published() {
        let ids: Vec<u32> = (1..=12).collect();
        let numbers = |scheme| -> Vec<u64> {
            let mut hasher = hasher(scheme, 4);
            let hashes = hasher.push(&ids).unwrap();
            hashes.chunks_exact(8).map(|hash| u64::from_le_bytes(hash.try_into().unwrap())).collect()
        };
        assert_eq!(
            numbers(Scheme::DynamoBlock),
            [14_643_705_804_678_351_452, 16_777_012_769_546_811_212, 483_935_686_894_639_516]
        );
        assert_eq!(
            numbers(Scheme::DynamoSequence),
            [14_643_705_804_678_351_452, 4_945_711_292_740_353_085, 12_583_592_247_330_656_132]
        );
    }

    /// All ways to push 12 ids, and to go back on the way, in all schemes.
    #[test]
    fn pieces_and_rewinds_do_not_matter() {
        let ids: Vec<u32> = (0..12).map(|n| n * 0x1234_5678 % 0xffff_fff1).collect();
        for (_, scheme) in Scheme::ALL {
            for block_size in 1..=13 {
                let mut whole = hasher(scheme, block_size);
                whole.push(&ids).unwrap();
                for cuts in 0..1u32 << 11 {
                    let mut pieces = hasher(scheme, block_size);
                    let mut given = Vec::new();
                    let mut from = 0;
                    for to in (1..12).filter(|to| cuts >> (to - 1) & 1 == 1).chain([12]) {
                        given.extend_from_slice(pieces.push(&ids[from..to]).unwrap());
                        assert_eq!(pieces.num_ids(), to);
                        from = to;
                    }
                    assert_eq!(given, whole.hashes());
                    assert_eq!(pieces.hashes(), whole.hashes());
                }
                for back in 0..=14 {
                    let mut again = whole.clone();
                    let kept = again.rewind(back);
                    let stride = ix(block_size);
                    let full = 12 / stride * stride;
                    assert_eq!(kept, if back < full { back / stride * stride } else { back.min(12) });
                    assert_eq!(again.num_ids(), kept);
                    again.push(&[7; 3]).unwrap();
                    again.rewind(kept);
                    let kept = again.num_ids();
                    again.push(&ids[kept..]).unwrap();
                    assert_eq!(again.hashes(), whole.hashes());
                }
            }
        }
    }

    #[test]
    fn a_hash_depends_on_all_ids_before_it_and_on_the_seed() {
        for (_, scheme) in Scheme::ALL.into_iter().filter(|(_, scheme)| *scheme != Scheme::DynamoBlock) {
            let mut one = hasher(scheme, 2);
            let mut other = hasher(scheme, 2);
            let same = [3, 4, 5, 6];
            one.push(&[[1, 2].as_slice(), &same].concat()).unwrap();
            other.push(&[[1, 3].as_slice(), &same].concat()).unwrap();
            for (a, b) in one.hashes().chunks(scheme.width()).zip(other.hashes().chunks(scheme.width())) {
                assert_ne!(a, b);
            }
            let seed = match scheme.encoding() {
                None => Seed::Number(1),
                Some(Encoding::Plain) => continue,
                Some(_) => Seed::Text("1"),
            };
            let mut other = BlockHasher::new(scheme, 2, Some(seed), None).unwrap();
            assert_ne!(other.push(&[1, 2]).unwrap(), &one.hashes()[..scheme.width()]);
        }
    }

    #[test]
    fn extra_keys_are_of_their_block() {
        let plain = hasher(Scheme::VllmSha256Cbor, 2).push(&[1, 2, 3, 4, 5, 6]).unwrap().to_vec();
        let mut hasher = hasher(Scheme::VllmSha256Cbor, 2);
        hasher.set_extra(vec![(1, vec![0x81, 1])]).unwrap();
        hasher.push(&[1, 2, 3, 4, 5, 6]).unwrap();
        assert_eq!(hasher.hashes()[..32], plain[..32]);
        assert_ne!(hasher.hashes()[32..64], plain[32..64]);
        assert!(matches!(hasher.set_extra(vec![(4, vec![]), (2, vec![])]), Err(Error::BlockHash(_))));
        // They are forgotten with the block.
        assert_eq!(hasher.rewind(3), 2);
        assert_eq!(hasher.push(&[3, 4, 5, 6]).unwrap(), &plain[32..]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let new = |scheme, size, seed| BlockHasher::new(scheme, size, seed, None).is_err();
        for (_, scheme) in Scheme::ALL {
            assert!(new(scheme, 0, seed(scheme)));
            let wrong = if scheme.encoding().is_some() { Seed::Number(0) } else { Seed::Text("0") };
            assert!(new(scheme, 1, Some(wrong)));
            assert_eq!(new(scheme, 1, Some(Seed::Text("0"))), scheme == Scheme::Sglang || scheme.encoding().is_none());
            assert_eq!(new(scheme, 1, None), scheme.width() == 16);
            assert_eq!(new(scheme, u32::MAX, seed(scheme)), scheme.encoding() == Some(Encoding::Pickle));
            let refused = scheme.encoding() != Some(Encoding::Cbor);
            assert_eq!(hasher(scheme, 1).set_extra(vec![(0, vec![])]).is_err(), refused);
            assert_eq!(BlockHasher::new(scheme, 1, seed(scheme), Some(vec![])).is_err(), refused);
        }
        assert!(new(Scheme::VllmSha256, 1, Some(Seed::Text(&"0".repeat(MAX_SEED + 1)))));
    }
}
