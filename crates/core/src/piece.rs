//! Text to ids, pre-token by pre-token: the loop that all time is spent in.
//!
//! Pre-tokens come in batches. A first pass over a batch makes keys and asks for the cache lines that they fall in, a
//! second one compares and emits. So the far reads of one batch overlap, instead of each being waited for.

use crate::error::Error;
use crate::lookup::cache::Ids;
use crate::lookup::{Key, LongKey, MAX_KEY_BYTES, MAX_LONG_KEY_BYTES};
use crate::merge::Scratch;
use crate::num::ix;
use crate::pretoken::{BATCH, Pattern};
use crate::tables::Tables;
use crate::worker::{Output, Worker};

use crate::lookup::cache::Cache;

/// Keys of a batch, by pre-token.
pub(crate) type Probes = [(Key, u64); BATCH];

/// Splits and merges `text[start..]`, which begins at a pre-token start.
pub(crate) fn encode_text(
    tables: &Tables,
    pattern: &Pattern,
    text: &[u8],
    start: usize,
    worker: &mut Worker,
) -> Result<(), Error> {
    let Worker { batch, probes, scratch, cache, out } = worker;
    // Scanners look no further back than `at`; the general engine may look behind, so it gets the stretch alone.
    let text = &text[start..];
    let mut at = 0;
    while at < text.len() {
        at = pattern.fill(text, at, batch)?;
        out.begin_batch()?;
        let ranges = batch.ranges();
        for (&(from, to), probe) in ranges.iter().zip(probes.iter_mut()) {
            *probe = look_ahead(text, ix(from), ix(to), cache);
        }
        for (&(from, to), &(key, hash)) in ranges.iter().zip(probes.iter()) {
            let (from, to) = (ix(from), ix(to));
            if to - from <= MAX_KEY_BYTES {
                match cache.get(key, hash) {
                    Some(ids) => out.emit(ids),
                    None => out.extend(encode_short(tables, &text[from..to], key, hash, cache, scratch))?,
                }
            } else {
                encode_long(tables, &text[from..to], hash, cache, scratch, out)?;
            }
        }
    }
    Ok(())
}

/// The key of a short pre-token, and the hash of its key; its line is asked for.
#[inline(always)]
fn look_ahead(text: &[u8], from: usize, to: usize, cache: &Cache) -> (Key, u64) {
    if let Some(key) = Key::load(text, from, to) {
        let hash = key.hash();
        cache.prefetch(hash);
        return (key, hash);
    }
    let hash = LongKey::new(&text[from..to]).map_or(0, |key| key.hash());
    cache.prefetch_long(hash);
    (Key::default(), hash)
}

/// The ids of a pre-token that has a short key and is not in its line of the cache; puts them there.
#[inline(never)]
pub(crate) fn encode_short<'a>(
    tables: &Tables,
    piece: &[u8],
    key: Key,
    hash: u64,
    cache: &mut Cache,
    scratch: &'a mut Scratch,
) -> &'a [u32] {
    if let Some(ids) = cache.get_before(key, hash) {
        return scratch.some(&ids.places()[..ids.count()]);
    }
    if let Some(id) = tables.words.find_key(key, hash) {
        cache.put(key, hash, Ids::one(id));
        return scratch.one(id);
    }
    // Of many ids: they are under the long key.
    let long_key = LongKey::new(piece).expect("a short pre-token");
    let long_hash = long_key.hash();
    if let Some(ids) = cache.get_long(&long_key, long_hash) {
        return scratch.some(&ids.places()[..ids.count()]);
    }
    let ids = merge_in_stretches(tables, piece, cache, scratch);
    if let Some(ids) = Ids::pack(ids) {
        cache.put(key, hash, ids);
    } else if let Some(ids) = Ids::pack(ids) {
        cache.put_long(&long_key, long_hash, ids);
    }
    ids
}

/// Emits the ids of a pre-token that is too long for a short key; `hash` is that of its long key, if it has one.
#[inline]
fn encode_long(
    tables: &Tables,
    piece: &[u8],
    hash: u64,
    cache: &mut Cache,
    scratch: &mut Scratch,
    out: &mut Output,
) -> Result<(), Error> {
    let key = LongKey::new(piece);
    if let Some(ids) = key.and_then(|key| cache.get_long(&key, hash)) {
        out.emit(ids);
        return Ok(());
    }
    out.extend(encode_unknown(tables, piece, key, hash, cache, scratch))
}

#[inline(never)]
fn encode_unknown<'a>(
    tables: &Tables,
    piece: &[u8],
    key: Option<LongKey>,
    hash: u64,
    cache: &mut Cache,
    scratch: &'a mut Scratch,
) -> &'a [u32] {
    if let Some(ids) = key.and_then(|key| cache.get_long_before(&key, hash)) {
        return scratch.some(&ids.places()[..ids.count()]);
    }
    let ids = match tables.words.find_long(&tables.vocab, piece) {
        Some(id) => scratch.one(id),
        None => merge_in_stretches(tables, piece, cache, scratch),
    };
    if let (Some(key), Some(ids)) = (key, Ids::pack(ids)) {
        cache.put_long(&key, hash, ids);
    }
    ids
}

/// BPE of a pre-token that is no token: stretch by stretch where no join can cross a border. (A stretch of its own is
/// one stretch, so this and [`encode_short`] call each other once at most.)
fn merge_in_stretches<'a>(tables: &Tables, piece: &[u8], cache: &mut Cache, scratch: &'a mut Scratch) -> &'a [u32] {
    let merges = &tables.merges;
    let mut end = if piece.is_ascii() { piece.len() } else { merges.borders.stretch(piece, 0) };
    if end == piece.len() {
        merges.merge(piece, scratch);
        return &scratch.tokens;
    }
    let mut ids = std::mem::take(&mut scratch.stretches);
    ids.clear();
    let mut start = 0;
    loop {
        let stretch = &piece[start..end];
        // A stretch that is a token is its own BPE result only where all tokens are (lemma 2); elsewhere a whole
        // pre-token and a stretch of the same bytes may have other ids, and share no entry.
        match Key::load(piece, start, end).filter(|_| merges.greedy()) {
            Some(key) => {
                let hash = key.hash();
                match cache.get(key, hash) {
                    Some(known) => ids.extend_from_slice(&known.places()[..known.count()]),
                    None => ids.extend_from_slice(encode_short(tables, stretch, key, hash, cache, scratch)),
                }
            }
            None => {
                merges.merge(stretch, scratch);
                ids.extend_from_slice(&scratch.tokens);
            }
        }
        if end == piece.len() {
            break;
        }
        start = end;
        end = merges.borders.stretch(piece, start);
    }
    scratch.stretches = ids;
    &scratch.stretches
}

// A short pre-token has a long key, too.
const _: () = assert!(MAX_KEY_BYTES < MAX_LONG_KEY_BYTES);
