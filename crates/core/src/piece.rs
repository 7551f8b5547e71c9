//! Text to ids, pre-token by pre-token: the loop that all time is spent in.
//!
//! Pre-tokens come in batches, and a batch goes through four passes: make keys and ask for the cache lines in which they
//! fall; compare; solve what was not there; emit in order. So the far reads of a batch overlap instead of each being
//! waited for, and the passes that see every pre-token have next to no branches.

use crate::error::Error;
use crate::lookup::cache::{Cache, Ids, LONG_IDS, Near};
use crate::lookup::shared::Shared;
use crate::lookup::{Key, LongKey, MAX_KEY_BYTES, MAX_LONG_KEY_BYTES, WordTable};
use crate::merge::known::{self, ShortKey};
use crate::merge::{Scratch, Stretches};
use crate::num::{ix, to_u32};
use crate::pretoken::{BATCH, Batch, Pattern};
use crate::simd::{self, Level, Task};
use crate::tables::Tables;
use crate::text::Text;
use crate::worker::{Output, Worker};

/// A batch between the passes, by pre-token.
#[derive(Debug)]
pub(crate) struct Probes {
    /// [`Key::EMPTY`], which is in no line, if the pre-token is too long.
    keys: [Key; BATCH],
    /// Of the key, or of the long key if the pre-token is too long for a key; 0 if for both.
    hashes: [u64; BATCH],
    answers: [Ids<LONG_IDS>; BATCH],
    /// Pre-tokens without an answer.
    misses: [u32; BATCH],
    missing: usize,
    /// Ids of pre-tokens that have too many for an answer.
    spilled: Vec<u32>,
    /// Places in the batch, in ascending order, of which somebody wants to know where they are in the output.
    marks: Vec<usize>,
}

impl Default for Probes {
    fn default() -> Self {
        Probes {
            keys: [Key::EMPTY; BATCH],
            hashes: [0; BATCH],
            answers: [Ids::default(); BATCH],
            misses: [0; BATCH],
            missing: 0,
            spilled: Vec::new(),
            marks: Vec::new(),
        }
    }
}

impl Probes {
    /// Turns the marks into places of the output, which holds `before` ids before this batch of `n` pre-tokens.
    fn place_marks(&mut self, n: usize, mut before: usize, ends: &mut Vec<usize>) {
        let mut at = 0;
        for mark in self.marks.drain(..) {
            before += self.answers[at..mark.min(n)].iter().map(Ids::total).sum::<usize>();
            at = mark;
            ends.push(before);
        }
    }
}

/// What encodes one text after the other. Short ones share a batch, if they lie side by side in memory.
pub(crate) struct Encoder<'a> {
    tables: &'a Tables,
    pattern: &'a Pattern,
    level: Level,
    /// Where the texts of the batch lie.
    base: &'a [u8],
    worker: &'a mut Worker,
}

impl<'a> Encoder<'a> {
    pub fn new(tables: &'a Tables, pattern: &'a Pattern, worker: &'a mut Worker) -> Self {
        worker.batch.clear();
        worker.probes.marks.clear();
        Encoder { tables, pattern, level: simd::level(), base: &[], worker }
    }

    /// Adds the ids of `base[from..to]`, which is a stretch on its own or begins at a pre-token start.
    pub fn text(&mut self, base: &'a [u8], from: usize, to: usize) -> Result<(), Error> {
        // Scanners look no further back than their start; another pattern may, so it gets the stretch alone.
        let (base, from, to) =
            if self.pattern.looks_behind() { (&base[from..to], 0, to - from) } else { (base, from, to) };
        if !std::ptr::eq(self.base, base) {
            self.flush()?;
            self.base = base;
        }
        let mut at = from;
        loop {
            at = self.pattern.append(&base[..to], at, &mut self.worker.batch)?;
            if at == to {
                return Ok(());
            }
            self.flush()?;
        }
    }

    /// The same for a whole text that is not UTF-8 yet.
    pub fn wide(&mut self, text: Text<'_>) -> Result<(), Error> {
        self.flush()?;
        let mut utf8 = std::mem::take(&mut self.worker.utf8);
        utf8.clear();
        text.append_utf8(&mut utf8)?;
        let mut encoder = Encoder::new(self.tables, self.pattern, self.worker);
        encoder.text(&utf8, 0, utf8.len())?;
        encoder.flush()?;
        self.worker.utf8 = utf8;
        Ok(())
    }

    /// Adds an id.
    pub fn id(&mut self, id: u32) -> Result<(), Error> {
        if self.worker.batch.is_full() {
            self.flush()?;
        }
        self.worker.batch.push_id(id);
        Ok(())
    }

    /// Notes `times` over where the output will end that all until now gives: [`Encoder::ends`] tells.
    pub fn mark(&mut self, times: usize) {
        let Worker { batch, probes, .. } = &mut *self.worker;
        probes.marks.extend(std::iter::repeat_n(batch.ranges().len(), times));
    }

    /// For each mark, as far as it was flushed, the number of ids before it in the output. Forgets them.
    pub fn ends(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.worker.ends)
    }

    /// Puts all ids so far into the output; returns how many it holds.
    pub fn flush(&mut self) -> Result<usize, Error> {
        let Worker { batch, probes, scratch, cache, out, ends, .. } = &mut *self.worker;
        let ranges = batch.ranges();
        if ranges.is_empty() {
            probes.place_marks(0, out.len(), ends);
        } else {
            let shared = self.tables.workers.shared();
            self.level.run(Look { text: self.base, ranges, probes, cache, words: &self.tables.words, shared });
            solve(self.tables, self.base, ranges, probes, cache, scratch);
            probes.place_marks(ranges.len(), out.len(), ends);
            self.level.run(Emit { answers: &probes.answers[..ranges.len()], spilled: &probes.spilled, out })?;
            batch.clear();
        }
        Ok(out.len())
    }

    /// Forgets the output.
    pub fn clear(&mut self) {
        self.worker.out.clear();
    }
}

/// The first two passes.
struct Look<'a> {
    text: &'a [u8],
    ranges: &'a [(u32, u32)],
    probes: &'a mut Probes,
    cache: &'a mut Cache,
    words: &'a WordTable,
    shared: Option<&'a Shared>,
}

impl Task for Look<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Look { text, ranges, probes, cache, words, shared } = self;
        let Probes { keys, hashes, answers, misses, missing, .. } = probes;
        // Slices of one length: no index below is checked.
        let n = ranges.len();
        let (keys, hashes) = (&mut keys[..n], &mut hashes[..n]);
        let answers = &mut answers[..n];
        let mut near = cache.near();
        for i in 0..n {
            (keys[i], hashes[i]) = look_ahead(text, ranges[i], &near);
        }
        let mut count = 0;
        for i in 0..n {
            if let Some(ids) = near.hit(keys[i], hashes[i])
                && !ids.are_elsewhere()
            {
                answers[i].set(ids);
            } else {
                // Asked for now, needed when the rest has been compared.
                words.prefetch(hashes[i]);
                if let Some(shared) = shared {
                    shared.prefetch(hashes[i]);
                }
                misses[count] = to_u32(i);
                count += 1;
            }
        }
        *missing = count;
        cache.note_hits(n - count);
    }
}

/// The key of a pre-token, and the hash of its key or long key; the line is asked for.
#[inline(always)]
fn look_ahead(text: &[u8], (from, to): (u32, u32), near: &Near<'_>) -> (Key, u64) {
    let len = ix(to.wrapping_sub(from));
    if len <= MAX_KEY_BYTES {
        let key = Key::load(text, ix(from), len);
        let hash = key.hash();
        near.prefetch(hash);
        return (key, hash);
    }
    if len > MAX_LONG_KEY_BYTES {
        // A very long pre-token, or an id.
        return (Key::EMPTY, 0);
    }
    let hash = LongKey::load(text, ix(from), len).hash();
    near.prefetch_long(hash);
    (Key::EMPTY, hash)
}

/// The third pass: answers for what the second one did not find.
#[inline]
fn solve(
    tables: &Tables,
    text: &[u8],
    ranges: &[(u32, u32)],
    probes: &mut Probes,
    cache: &mut Cache,
    scratch: &mut Scratch,
) {
    let Probes { keys, hashes, answers, misses, missing, spilled, .. } = probes;
    spilled.clear();
    let mut unknown = 0;
    for at in 0..*missing {
        let miss = misses[at];
        let (from, to) = ranges[ix(miss)];
        if let Some(id) = Batch::id_of((from, to)) {
            answers[ix(miss)] = Ids::one(id);
            continue;
        }
        let (piece, hash) = (&text[ix(from)..ix(to)], hashes[ix(miss)]);
        if let Some(key) = LongKey::new(piece) {
            if piece.len() <= MAX_KEY_BYTES {
                // Under its long key, perhaps.
                if cache.get(keys[ix(miss)], hash).is_some() {
                    cache.near().prefetch_long(key.hash());
                }
            } else if let Some(ids) = cache.get_long(&key, hash) {
                answers[ix(miss)] = ids;
                continue;
            }
        }
        misses[unknown] = miss;
        unknown += 1;
    }
    let mut waiting = 0;
    scratch.words.clear();
    for at in 0..unknown {
        let miss = misses[at];
        let (from, to) = ranges[ix(miss)];
        let (piece, key, hash) = (&text[ix(from)..ix(to)], keys[ix(miss)], hashes[ix(miss)]);
        let ids = if piece.len() <= MAX_KEY_BYTES {
            // An equal pre-token of this batch may have put it there.
            if let Some(ids) = recall(tables, piece, key, hash, cache) {
                answers[ix(miss)] = ids;
                continue;
            }
            if key.is_ascii() && tables.merges.in_stages() {
                scratch.words.push(key);
                misses[waiting] = miss;
                waiting += 1;
                continue;
            }
            let ids = merge_in_stretches(tables, piece, cache, scratch);
            keep(tables, piece, key, hash, ids, cache);
            ids
        } else {
            encode_long(tables, piece, hash, cache, scratch)
        };
        answers[ix(miss)] = answer(ids, spilled);
    }
    if waiting > 0 {
        scratch.words.merge(&tables.merges);
        for (ids, miss) in scratch.words.results().zip(misses).map(|(ids, &mut miss)| (ids, ix(miss))) {
            tables.vocab.to_ids(ids);
            let (from, to) = ranges[miss];
            keep(tables, &text[ix(from)..ix(to)], keys[miss], hashes[miss], ids, cache);
            answers[miss] = answer(ids, spilled);
        }
    }
}

/// Ids as an answer; `spilled` takes those that do not fit in one.
#[inline]
fn answer(ids: &[u32], spilled: &mut Vec<u32>) -> Ids<LONG_IDS> {
    Ids::pack(ids).unwrap_or_else(|| {
        spilled.extend_from_slice(ids);
        Ids::spilled(spilled.len() - ids.len(), ids.len())
    })
}

/// The last pass: all answers, in order.
struct Emit<'a> {
    answers: &'a [Ids<LONG_IDS>],
    spilled: &'a [u32],
    out: &'a mut Output,
}

impl Task for Emit<'_> {
    type Output = Result<(), Error>;

    #[inline(always)]
    fn run(self) -> Result<(), Error> {
        self.out.emit(self.answers, self.spilled)
    }
}

/// The ids of a pre-token that has a short key, if they are known: looked up wherever they may be.
#[inline]
fn recall(tables: &Tables, piece: &[u8], key: Key, hash: u64, cache: &mut Cache) -> Option<Ids<LONG_IDS>> {
    match cache.get(key, hash).or_else(|| cache.get_before(key, hash)) {
        Some(ids) if ids.are_elsewhere() => {
            let (key, hash) = long_key(piece);
            cache.get_long(&key, hash).or_else(|| cache.get_long_before(&key, hash))
        }
        Some(ids) => Some(ids.widen()),
        None => {
            let ids = match tables.words.find_key(key, hash) {
                Some(id) => Ids::one(id),
                None => tables.workers.shared()?.get(key, hash)?,
            };
            cache.put(key, hash, ids);
            Some(ids.widen())
        }
    }
}

/// Puts the ids of a pre-token that has a short key where [`recall`] will find them.
#[inline]
fn keep(tables: &Tables, piece: &[u8], key: Key, hash: u64, ids: &[u32], cache: &mut Cache) {
    // An equal pre-token of the batch may have been kept, or the note that the ids are elsewhere is there already.
    let known = cache.get(key, hash).is_some();
    if let Some(packed) = Ids::pack(ids) {
        if !known {
            cache.put(key, hash, packed);
            if let Some(shared) = tables.workers.shared() {
                shared.put(key, hash, ids);
            }
        }
    } else if let Some(ids) = Ids::pack(ids) {
        if !known {
            cache.put(key, hash, Ids::ELSEWHERE);
        }
        let (key, hash) = long_key(piece);
        if cache.get_long(&key, hash).is_none() {
            cache.put_long(&key, hash, ids);
        }
    }
}

/// The long key of a short pre-token, and its hash.
fn long_key(piece: &[u8]) -> (LongKey, u64) {
    let key = LongKey::load(piece, 0, piece.len());
    (key, key.hash())
}

/// The ids of a pre-token that is too long for a short key; `hash` is that of its long key, if it has one.
#[inline(never)]
fn encode_long<'a>(tables: &Tables, piece: &[u8], hash: u64, cache: &mut Cache, scratch: &'a mut Scratch) -> &'a [u32] {
    let key = LongKey::new(piece);
    let known = key.and_then(|key| cache.get_long(&key, hash).or_else(|| cache.get_long_before(&key, hash)));
    if let Some(ids) = known {
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

/// Leaves the ids of the BPE result in `scratch.tokens`.
#[inline]
fn merge(tables: &Tables, piece: &[u8], scratch: &mut Scratch) {
    tables.merges.merge(piece, scratch);
    tables.vocab.to_ids(&mut scratch.tokens);
}

/// BPE of a pre-token that is no token: stretch by stretch where no join can cross a border.
fn merge_in_stretches<'a>(tables: &Tables, piece: &[u8], cache: &mut Cache, scratch: &'a mut Scratch) -> &'a [u32] {
    let merges = &tables.merges;
    if piece.is_ascii() {
        merge(tables, piece, scratch);
        return &scratch.tokens;
    }
    let mut buffers = std::mem::take(&mut scratch.stretches);
    let Stretches { ends, padded, ids, known } = &mut buffers;
    let ends = merges.borders.stretches(piece, ends);
    if ends.len() == 1 {
        scratch.stretches = buffers;
        merge(tables, piece, scratch);
        return &scratch.tokens;
    }
    // A copy with room behind it: a key is loaded with sixteen bytes at once.
    padded.clear();
    padded.extend_from_slice(piece);
    padded.resize(piece.len() + 16, 0);
    ids.clear();
    let known = known.get_or_insert_default();
    let mut start = 0;
    for end in ends.iter().map(|&end| ix(end)) {
        let stretch = &piece[start..end];
        if stretch.len() > MAX_KEY_BYTES {
            ids.extend_from_slice(encode_long_stretch(tables, stretch, cache, scratch));
        } else if stretch.len() <= known::MAX_BYTES {
            let short_key = ShortKey::load(padded, start, end);
            if !known.append(short_key, ids) {
                let key = stretch_key(tables, padded, start, end);
                let found = encode_stretch(tables, stretch, key, cache, scratch);
                known.put(short_key, found);
                ids.extend_from_slice(found);
            }
        } else {
            let key = stretch_key(tables, padded, start, end);
            ids.extend_from_slice(encode_stretch(tables, stretch, key, cache, scratch));
        }
        start = end;
    }
    scratch.stretches = buffers;
    &scratch.stretches.ids
}

/// The key of a stretch. Where a token is not its own BPE result, a whole pre-token of the same bytes may have other ids,
/// and they share no entry.
#[inline(always)]
fn stretch_key(tables: &Tables, text: &[u8], start: usize, end: usize) -> Key {
    let key = Key::load(text, start, end - start);
    if tables.whole_is_merged { key } else { key.of_part() }
}

/// The ids of a stretch that has a short key, see [`stretch_key`].
#[inline]
fn encode_stretch<'a>(
    tables: &Tables,
    stretch: &[u8],
    key: Key,
    cache: &mut Cache,
    scratch: &'a mut Scratch,
) -> &'a [u32] {
    let hash = key.hash();
    if let Some(ids) = cache.get(key, hash).filter(|ids| !ids.are_elsewhere()) {
        cache.note_hits(1);
        return scratch.some(&ids.places()[..ids.count()]);
    }
    merge(tables, stretch, scratch);
    if let Some(ids) = Ids::pack(&scratch.tokens) {
        cache.put(key, hash, ids);
    }
    &scratch.tokens
}

/// The ids of a stretch that is too long for a short key.
fn encode_long_stretch<'a>(tables: &Tables, stretch: &[u8], cache: &mut Cache, scratch: &'a mut Scratch) -> &'a [u32] {
    let key = LongKey::new(stretch).map(|key| if tables.whole_is_merged { key } else { key.of_part() });
    let Some((key, hash)) = key.map(|key| (key, key.hash())) else {
        merge(tables, stretch, scratch);
        return &scratch.tokens;
    };
    if let Some(ids) = cache.get_long(&key, hash) {
        return scratch.some(&ids.places()[..ids.count()]);
    }
    merge(tables, stretch, scratch);
    if let Some(ids) = Ids::pack(&scratch.tokens) {
        cache.put_long(&key, hash, ids);
    }
    &scratch.tokens
}

// A short pre-token has a long key, too.
const _: () = assert!(MAX_KEY_BYTES < MAX_LONG_KEY_BYTES);
