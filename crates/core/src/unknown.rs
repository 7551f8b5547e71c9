//! Pre-tokens that the cache does not know: gathered over several batches, solved together, put where they belong.
//!
//! One pre-token in sixty is unknown in ordinary traffic: two of a batch. What it takes to solve one is far away in memory, so
//! they are gathered until there are enough to wait for side by side. Until then the output closes over them: each is
//! remembered with its bytes and with the place of its ids, and the ids behind it move up in the end.

use crate::error::{Error, reserve};
use crate::lookup::cache::{Cache, Ids, LONG_IDS};
use crate::lookup::{Key, LongKey, MAX_KEY_BYTES, MAX_LONG_KEY_BYTES};
use crate::merge::known::{self, ShortKey};
use crate::merge::{Scratch, Stretches};
use crate::num::{high_bits, ix, to_u32};
use crate::tables::Tables;
use crate::worker::Output;

/// Unknown pre-tokens that are enough to be solved.
const ENOUGH: usize = 64;
/// Ids behind the first unknown pre-token from which on it is solved: all of them move.
const MOST_IDS: usize = 1 << 13;
/// Bytes of unknown pre-tokens that are enough.
const ENOUGH_BYTES: usize = 1 << 14;
/// Places of [`Unknown::seen`], as a power of two.
const SEEN_BITS: u32 = 7;
/// No place.
const NOWHERE: u32 = u32::MAX;

/// One that is unknown.
#[derive(Debug)]
struct Miss {
    /// Where its ids belong, in an output without those of all unknown ones.
    at: usize,
    /// Where its bytes are.
    from: usize,
    to: usize,
    /// See [`crate::piece::Probes`].
    key: Key,
    hash: u64,
}

/// All that are.
#[derive(Debug, Default)]
pub(crate) struct Unknown {
    misses: Vec<Miss>,
    /// Their bytes.
    bytes: Vec<u8>,
    answers: Vec<Ids<LONG_IDS>>,
    /// Ids of those that have too many for an answer.
    spilled: Vec<u32>,
    /// Those that are merged side by side.
    waiting: Vec<u32>,
    /// Those that have the answer of another one, which is waiting.
    equal: Vec<(u32, u32)>,
    /// Those that wait, by hash.
    seen: Vec<u32>,
    /// Marks behind the first unknown one: ids before each, and unknown ones before it.
    marks: Vec<(usize, usize)>,
    /// Of all other marks, how many ids are before each.
    ends: Vec<usize>,
    /// Whether there was no memory for the bytes of one: how many.
    lost: Option<usize>,
}

impl Unknown {
    /// Forgets all, and all marks.
    pub fn clear(&mut self) {
        self.forget();
        self.ends.clear();
        self.lost = None;
    }

    fn forget(&mut self) {
        self.misses.clear();
        self.bytes.clear();
        self.marks.clear();
    }

    /// Gives memory back if it has grown beyond `most` elements.
    pub fn shrink(&mut self, most: usize) {
        let grown = [self.bytes.capacity(), self.spilled.capacity(), self.marks.capacity(), self.ends.capacity()];
        if grown.into_iter().max() > Some(most) {
            *self = Unknown::default();
        }
    }

    /// For each mark, as far as all before it is solved and placed, the ids before it. Forgets them.
    pub fn take_ends(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.ends)
    }

    /// Adds one whose ids belong behind `at` known ones. If there is no memory for it, [`Unknown::solve`] will say so.
    #[inline(never)]
    pub fn push(&mut self, at: usize, piece: &[u8], key: Key, hash: u64) {
        let from = self.bytes.len();
        if reserve(&mut self.bytes, piece.len()).is_err() {
            return self.lose(piece.len());
        }
        self.bytes.extend_from_slice(piece);
        self.misses.push(Miss { at, from, to: self.bytes.len(), key, hash });
    }

    /// How many wait.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.misses.len()
    }

    /// Whether one was lost, for want of memory.
    #[inline(always)]
    pub fn has_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Notes that there was no memory for the bytes of one.
    pub fn lose(&mut self, bytes: usize) {
        self.lost = Some(bytes);
    }

    /// Notes a place behind `len` known ids, and all unknown ones so far.
    pub fn mark(&mut self, len: usize) {
        match self.misses.len() {
            0 => self.ends.push(len),
            unknown => self.marks.push((len, unknown)),
        }
    }

    /// Whether it is time to solve them; `len` ids are known.
    #[inline(always)]
    pub fn is_enough(&self, len: usize) -> bool {
        match self.misses.first() {
            _ if self.lost.is_some() => true,
            Some(first) => {
                self.misses.len() >= ENOUGH || len - first.at >= MOST_IDS || self.bytes.len() >= ENOUGH_BYTES
            }
            None => false,
        }
    }

    /// Finds the ids of each.
    ///
    /// # Errors
    /// [`Error::Memory`] if there was none for all of them.
    pub fn solve(&mut self, tables: &Tables, cache: &mut Cache, scratch: &mut Scratch) -> Result<(), Error> {
        if let Some(bytes) = self.lost {
            return Err(Error::Memory { bytes });
        }
        let Unknown { misses, bytes, answers, spilled, waiting, equal, seen, .. } = self;
        if misses.is_empty() {
            return Ok(());
        }
        answers.clear();
        answers.resize(misses.len(), Ids::default());
        spilled.clear();
        waiting.clear();
        equal.clear();
        seen.clear();
        scratch.words.clear();
        for (i, (miss, place)) in misses.iter().zip(&mut *answers).enumerate() {
            let &Miss { from, to, key, hash, .. } = miss;
            let piece = &bytes[from..to];
            let ids = if piece.len() <= MAX_KEY_BYTES {
                // An equal one may have put it there.
                if let Some(ids) = recall(tables, piece, key, hash, cache) {
                    *place = ids;
                    continue;
                }
                if key.is_ascii() && tables.merges.in_stages() {
                    if seen.is_empty() {
                        seen.resize(1 << SEEN_BITS, NOWHERE);
                    }
                    let last = &mut seen[high_bits(hash, SEEN_BITS)];
                    if *last != NOWHERE && misses[ix(*last)].key == key {
                        equal.push((to_u32(i), *last));
                    } else {
                        *last = to_u32(i);
                        scratch.words.push(key);
                        waiting.push(to_u32(i));
                    }
                    continue;
                }
                let ids = merge_in_stretches(tables, piece, cache, scratch);
                keep(tables, piece, key, hash, ids, cache);
                ids
            } else {
                encode_long(tables, piece, hash, cache, scratch)
            };
            *place = answer(ids, spilled);
        }
        if waiting.is_empty() {
            return Ok(());
        }
        scratch.words.merge(&tables.merges);
        for (ids, &i) in scratch.words.results().zip(&*waiting) {
            tables.vocab.to_ids(ids);
            let &Miss { from, to, key, hash, .. } = &misses[ix(i)];
            keep(tables, &bytes[from..to], key, hash, ids, cache);
            answers[ix(i)] = answer(ids, spilled);
        }
        for &(i, other) in &*equal {
            answers[ix(i)] = answers[ix(other)];
        }
        Ok(())
    }

    /// Puts the ids of each where they belong in `out`. Forgets all but the ends.
    ///
    /// # Errors
    /// [`Error::Memory`] if there is no room for them.
    pub fn place(&mut self, out: &mut Output) -> Result<(), Error> {
        let Unknown { misses, answers, spilled, marks, ends, .. } = self;
        if !misses.is_empty() {
            let more = answers.iter().map(Ids::total).sum();
            let mut gaps = out.open(more)?;
            for (miss, ids) in misses.iter().zip(&*answers).rev() {
                match ids.spill() {
                    Some(range) => gaps.fill(miss.at, &spilled[range]),
                    None => gaps.fill(miss.at, &ids.places()[..ids.count()]),
                }
            }
        }
        reserve(ends, marks.len())?;
        let (mut before, mut more) = (0, 0);
        for &(len, unknown) in &*marks {
            more += answers[before..unknown].iter().map(Ids::total).sum::<usize>();
            before = unknown;
            ends.push(len + more);
        }
        self.forget();
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::scan::oracle;
    use crate::piece::Encoder;
    use crate::pretoken::{BATCH, Batch, Pattern};
    use crate::tokenizer::Identity;
    use crate::vocab::Vocab;

    /// Single bytes, and what joining frequent pairs gives.
    fn vocab() -> Vocab {
        let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        for made in ["ab", "cd", " a", "abcd", " ab", "cda", "中", "文", "aa", "aaaa"] {
            let bytes = made.as_bytes();
            for end in 2..bytes.len() {
                if !tokens.iter().any(|token| token == &bytes[..end]) {
                    tokens.push(bytes[..end].to_vec());
                }
            }
            if !tokens.iter().any(|token| token == bytes) {
                tokens.push(bytes.to_vec());
            }
        }
        Vocab::from_ranked(&tokens).unwrap()
    }

    /// Words, most of them known after a while, and others that are new, equal to one of the last few, or long.
    fn text(seed: &mut u64, words: usize) -> String {
        let mut random = |below: u64| {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*seed >> 33) % below
        };
        let letters = |number: u64, len: u32| -> String {
            (0..len)
                .map(|place| char::from(b"abcd"[usize::try_from(number >> (2 * (place % 15)) & 3).unwrap()]))
                .collect()
        };
        let mut out = String::new();
        for _ in 0..words {
            match random(40) {
                0 => out += &letters(random(1 << 30), 14),
                1 => out += &letters(random(1 << 30), 15),
                2 => out += &letters(random(1 << 30), 23),
                3 => out += &letters(random(1 << 30), 60),
                4 => out += "中文中",
                5 => out += &"é".repeat(usize::try_from(random(9)).unwrap()),
                6 => out += &letters(random(20), 12),
                other => out += &letters(other, 3),
            }
            out += if random(9) == 0 { "\n" } else { " " };
        }
        out
    }

    fn check(texts: &[String], tables: &Tables) {
        let ids_of = oracle(&tables.vocab);
        let mut worker = tables.workers.lend().unwrap();
        let mut encoder = Encoder::new(tables, &Pattern::Gpt2, &Identity::new(), &mut worker);
        let mut batch = Batch::default();
        let (mut want, mut want_ends) = (Vec::new(), Vec::new());
        for (i, text) in texts.iter().enumerate() {
            let text = text.as_bytes();
            encoder.mark(i % 3);
            want_ends.extend(vec![want.len(); i % 3]);
            encoder.text(text, 0, text.len()).unwrap();
            let mut at = 0;
            while at < text.len() {
                at = Pattern::Gpt2.fill(text, at, &mut batch).unwrap();
                want.extend(batch.ranges().iter().flat_map(|&(from, to)| ids_of(&text[ix(from)..ix(to)])));
            }
            if i % 5 == 0 {
                encoder.id(7).unwrap();
                want.push(7);
            }
        }
        encoder.mark(1);
        want_ends.push(want.len());
        assert_eq!(encoder.flush().unwrap(), want.len());
        assert_eq!(encoder.ends(), want_ends);
        assert_eq!(worker.out.ids(), want);
    }

    #[test]
    fn ids_and_marks_come_where_they_belong() {
        let tables = Tables::build(vocab()).unwrap();
        let mut seed = 1;
        for words in [0, 1, 2, 30, BATCH, 3000] {
            for parts in [1, 2, 9] {
                check(&(0..parts).map(|_| text(&mut seed, words)).collect::<Vec<_>>(), &tables);
            }
        }
    }

    #[test]
    fn one_that_is_unknown_may_wait_for_long_or_be_long() {
        let tables = Tables::build(vocab()).unwrap();
        let known = "ab cd ".repeat(3 * MOST_IDS);
        // Fewer than are enough, and more bytes.
        let long: String = (1..ENOUGH).map(|i| "dc".repeat(i) + &"abcda".repeat(80) + " ").collect();
        assert!(long.len() > ENOUGH_BYTES);
        check(&["dcbadcba ".to_owned() + &known, known.clone() + " dcba", long.clone(), known, long], &tables);
        // All new, each another one.
        let all: String = (0..5000).map(|i| format!("{i:020b} {i:b} ")).collect();
        check(&[all.replace('1', "a").replace('0', "c")], &tables);
    }

    #[test]
    fn equal_ones_that_wait_have_equal_ids() {
        let tables = Tables::build(vocab()).unwrap();
        let words = ["dcbadc", "abdcba", "dcbadc", "cccc", "abdcba", "dcbadc", "dcbadcbadcba", "dcbadcbadcba"];
        check(&[words.join(" ")], &tables);
    }
}
