//! Text to ids, pre-token by pre-token: the loop that all time is spent in.
//!
//! Pre-tokens come in batches, and a batch goes through two passes: make keys and ask for the cache lines in which they
//! fall; compare, and put the ids into the output. So the far reads of a batch overlap instead of each being waited for,
//! and the passes that see every pre-token have next to no branches. What is not in the cache leaves no gap in the output:
//! it is remembered, with its place, and worked off with its like of several batches ([`crate::unknown`]).

use crate::between::Between;
use crate::error::Error;
use crate::lookup::cache::{Cache, Ids, Near};
use crate::lookup::phrases::{Phrase, Phrases};
use crate::lookup::shared::Shared;
use crate::lookup::{Key, LongKey, MAX_KEY_BYTES, MAX_LONG_KEY_BYTES, WordTable};
use crate::num::ix;
use crate::pretoken::{BATCH, Pattern};
use crate::simd::{self, Level, Task};
use crate::tables::Tables;
use crate::text::Text;
use crate::tokenizer::Identity;
use crate::unknown::Unknown;
use crate::worker::{Room, Worker};

/// A batch between the passes, by pre-token.
#[derive(Debug)]
pub(crate) struct Probes {
    /// [`Key::EMPTY`], which is in no line, if the pre-token is too long.
    keys: [Key; BATCH],
    /// Of the key, or of the long key if the pre-token is too long for a key; 0 if for both.
    hashes: [u64; BATCH],
    between: Between,
}

impl Default for Probes {
    fn default() -> Self {
        Probes { keys: [Key::EMPTY; BATCH], hashes: [0; BATCH], between: Between::default() }
    }
}

impl Probes {
    /// Gives memory back if there was room for more than `most` ids or places between the pre-tokens.
    pub fn shrink(&mut self, most: usize) {
        self.between.shrink(most);
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
    /// `owner` is the tokenizer to which both belong.
    pub fn new(tables: &'a Tables, pattern: &'a Pattern, owner: &Identity, worker: &'a mut Worker) -> Self {
        worker.batch.clear();
        worker.probes.between.clear();
        worker.unknown.clear();
        worker.phrases.of(owner);
        Encoder { tables, pattern, level: simd::level(), base: &[], worker }
    }

    /// Adds the ids of `base[from..to]`, which is a stretch on its own or begins at a pre-token start.
    pub fn text(&mut self, base: &'a [u8], from: usize, to: usize) -> Result<(), Error> {
        // Scanners look no further back than their start; another pattern may, so it gets the stretch alone.
        let (base, from, to) =
            if self.pattern.looks_behind() { (&base[from..to], 0, to - from) } else { (base, from, to) };
        self.stand_on(base)?;
        let mut at = from;
        loop {
            at = self.pattern.append(&base[..to], at, &mut self.worker.batch)?;
            if at == to {
                return Ok(());
            }
            self.pass()?;
        }
    }

    /// Goes on with texts of another memory; a batch has those of one.
    #[inline]
    fn stand_on(&mut self, base: &'a [u8]) -> Result<(), Error> {
        if !std::ptr::eq(self.base, base) {
            self.pass()?;
            self.base = base;
        }
        Ok(())
    }

    /// The same for a whole text that is not UTF-8 yet.
    pub fn wide(&mut self, text: Text<'_>) -> Result<(), Error> {
        self.pass()?;
        let mut utf8 = std::mem::take(&mut self.worker.utf8);
        utf8.clear();
        text.append_utf8(&mut utf8)?;
        let mut encoder =
            Encoder { tables: self.tables, pattern: self.pattern, level: self.level, base: &[], worker: self.worker };
        encoder.text(&utf8, 0, utf8.len())?;
        encoder.pass()?;
        self.worker.utf8 = utf8;
        Ok(())
    }

    /// Adds an id.
    pub fn id(&mut self, id: u32) -> Result<(), Error> {
        let Worker { batch, probes, .. } = &mut *self.worker;
        probes.between.id(batch.ranges().len(), id);
        if probes.between.is_full() { self.pass() } else { Ok(()) }
    }

    /// Adds the ids of a short segment, if they are known; whether they are.
    #[inline]
    pub fn phrase(&mut self, phrase: Phrase) -> Result<bool, Error> {
        let Worker { batch, probes, phrases, .. } = &mut *self.worker;
        let Some(ids) = phrases.get(phrase) else { return Ok(false) };
        probes.between.phrase(batch.ranges().len(), ids);
        if probes.between.is_full() {
            self.pass()?;
        }
        Ok(true)
    }

    /// Says that a short segment of `base` begins, whose ids are not known.
    pub fn begin(&mut self, base: &'a [u8]) -> Result<(), Error> {
        // Now, and not in its midst: what is remembered lies in one batch.
        self.stand_on(base)?;
        let Worker { batch, probes, .. } = &mut *self.worker;
        probes.between.begin(batch.ranges().len());
        Ok(())
    }

    /// Says that all of it was added.
    pub fn end(&mut self, phrase: Phrase) {
        let Worker { batch, probes, .. } = &mut *self.worker;
        probes.between.end(batch.ranges().len(), phrase);
    }

    /// Notes `times` over where the output will end that all until now gives: [`Encoder::ends`] tells.
    pub fn mark(&mut self, times: usize) {
        let Worker { batch, probes, .. } = &mut *self.worker;
        probes.between.mark(batch.ranges().len(), times);
    }

    /// For each mark until the last [`Encoder::flush`], the number of ids before it in the output. Forgets them.
    pub fn ends(&mut self) -> Vec<usize> {
        self.worker.unknown.take_ends()
    }

    /// Works off the batch.
    fn pass(&mut self) -> Result<(), Error> {
        let Worker { batch, probes, cache, out, unknown, phrases, .. } = &mut *self.worker;
        let ranges = batch.ranges();
        if ranges.is_empty() && probes.between.is_empty() {
            return Ok(());
        }
        let room = out.room(BATCH, probes.between.ids())?;
        let shared = self.tables.workers.shared();
        let words = &self.tables.words;
        let len =
            self.level.run(Look { text: self.base, ranges, probes, cache, words, shared, unknown, phrases, room });
        out.set_len(len);
        batch.clear();
        probes.between.clear();
        if self.worker.unknown.is_enough(len) { self.solve() } else { Ok(()) }
    }

    /// Works off what is unknown.
    fn solve(&mut self) -> Result<(), Error> {
        let Worker { unknown, cache, scratch, out, .. } = &mut *self.worker;
        unknown.solve(self.tables, cache, scratch)?;
        unknown.place(out)
    }

    /// Puts all ids so far into the output; returns how many it holds.
    pub fn flush(&mut self) -> Result<usize, Error> {
        self.pass()?;
        self.solve()?;
        Ok(self.worker.out.len())
    }

    /// Forgets the output.
    pub fn clear(&mut self) {
        self.worker.out.clear();
    }
}

/// Both passes of a batch; the number of ids in the output then.
struct Look<'a> {
    text: &'a [u8],
    ranges: &'a [(u32, u32)],
    probes: &'a mut Probes,
    cache: &'a mut Cache,
    words: &'a WordTable,
    shared: Option<&'a Shared>,
    unknown: &'a mut Unknown,
    phrases: &'a mut Phrases,
    room: Room<'a>,
}

impl Task for Look<'_> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let Look { text, ranges, probes, cache, words, shared, unknown, phrases, room } = self;
        let Room { slots, len: before } = room;
        let Probes { keys, hashes, between } = probes;
        // Slices of one length: no index below is checked.
        let n = ranges.len();
        let (keys, hashes) = (&mut keys[..n], &mut hashes[..n]);
        let mut near = cache.near();
        let mut at = 0;
        while at < n {
            at = short_keys(text, ranges, keys, hashes, at, &near);
            if at < n {
                (keys[at], hashes[at]) = long_key(text, ranges[at], &near);
                at += 1;
            }
        }
        let mut slots = Slots { slots, len: 0 };
        let mut misses = 0;
        let mut walk = between.walk();
        let mut at = 0;
        loop {
            slots.len = walk.pass(at, (&mut *slots.slots, slots.len, before), unknown, phrases);
            if at == n {
                break;
            }
            let until = walk.until(n);
            while at < until {
                at = short_hits(&keys[..until], &hashes[..until], at, &mut near, &mut slots);
                if at < until {
                    misses += 1;
                    let one = One { range: ranges[at], key: keys[at], hash: hashes[at] };
                    if !one.hit_otherwise(text, &mut near, &mut slots) {
                        // Asked for now, needed some batches later.
                        words.prefetch(one.hash);
                        if let Some(shared) = shared {
                            shared.prefetch(one.hash);
                        }
                        unknown.push(before + slots.len, one.piece(text), one.key, one.hash);
                    }
                    at += 1;
                }
            }
        }
        cache.note_hits(n - misses);
        before + slots.len
    }
}

/// The room of a batch, and how much of it is used.
struct Slots<'a> {
    slots: &'a mut [u32],
    len: usize,
}

impl Slots<'_> {
    #[inline(always)]
    fn add<const N: usize>(&mut self, ids: &Ids<N>) {
        // All places at once: cheaper than a loop of unknown length.
        ids.write_to(self.slots[self.len..].first_chunk_mut().expect("room for a batch"));
        self.len += ids.count();
    }
}

/// Adds the ids of the pre-tokens from `at` on as far as the cache knows them by a short key; the first that it does not.
/// (A function of its own, compiled for the plain processor, so that all that it needs stays in registers.)
#[inline(never)]
fn short_hits(keys: &[Key], hashes: &[u64], at: usize, near: &mut Near<'_>, slots: &mut Slots<'_>) -> usize {
    let (mut here, mut len) = (at, slots.len);
    for (&key, &hash) in keys[at..].iter().zip(&hashes[at..]) {
        let Some(ids) = near.hit(key, hash) else { break };
        if ids.are_elsewhere() {
            break;
        }
        ids.write_to(slots.slots[len..].first_chunk_mut().expect("room for a batch"));
        len += ids.count();
        here += 1;
    }
    slots.len = len;
    here
}

/// A pre-token of a batch.
struct One {
    range: (u32, u32),
    key: Key,
    hash: u64,
}

impl One {
    #[inline(always)]
    fn piece<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[ix(self.range.0)..ix(self.range.1)]
    }

    /// Adds the ids if they are known, though not by a short key.
    #[inline(always)]
    fn hit_otherwise(&self, text: &[u8], near: &mut Near<'_>, slots: &mut Slots<'_>) -> bool {
        let piece = self.piece(text);
        if piece.len() > MAX_KEY_BYTES
            && let Some(key) = LongKey::new(piece)
            && let Some(ids) = near.hit_long(&key, self.hash)
        {
            slots.add(ids);
            return true;
        }
        false
    }
}

/// Makes the keys of the pre-tokens from `at` on, as far as they are short, and their hashes, and asks for their lines; the
/// first that is not. (A function of its own as well.)
#[inline(never)]
fn short_keys(
    text: &[u8],
    ranges: &[(u32, u32)],
    keys: &mut [Key],
    hashes: &mut [u64],
    at: usize,
    near: &Near<'_>,
) -> usize {
    let mut here = at;
    for ((&(from, to), key), hash) in ranges[at..].iter().zip(&mut keys[at..]).zip(&mut hashes[at..]) {
        let len = ix(to.wrapping_sub(from));
        if len > MAX_KEY_BYTES {
            break;
        }
        *key = Key::load(text, ix(from), len);
        *hash = key.hash();
        near.prefetch(*hash);
        here += 1;
    }
    here
}

/// No key, and the hash of the long key, of a pre-token that is longer; its line is asked for.
#[inline(always)]
fn long_key(text: &[u8], (from, to): (u32, u32), near: &Near<'_>) -> (Key, u64) {
    let len = ix(to.wrapping_sub(from));
    if len > MAX_LONG_KEY_BYTES {
        // A very long one.
        return (Key::EMPTY, 0);
    }
    let hash = LongKey::load(text, ix(from), len).hash();
    near.prefetch_long(hash);
    (Key::EMPTY, hash)
}
