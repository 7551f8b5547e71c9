//! The pipeline over a whole request: segments to ids.
//!
//! One request is one list of jobs. A job is a stretch of one segment: a control token, or text that is split
//! and merged on its own. Long stretches are parted where a pre-token ends whatever the context
//! ([`Pattern::is_hard_boundary`]), so the ids do not depend on how many threads there are.
//!
//! A byte makes at most one id, so the output of a job fits in as many slots as it has bytes. Jobs write side by side
//! into one buffer, which is compacted once at the end.

use std::mem::MaybeUninit;
use std::sync::Mutex;

use crate::error::Error;
use crate::lookup::Key;
use crate::lookup::cache::{Cache, Ids, MAX_IDS};
use crate::merge::{Scratch, Stretches};
use crate::num::ix;
use crate::parallel;
use crate::pretoken::Pattern;
use crate::segment::{MAX_BYTES, Segment};
use crate::tables::Tables;
use crate::text::Utf8;
use crate::tokenizer::Tokenizer;
use crate::worker::Worker;

/// Bytes of text a job when there is more than one thread; a multiple of what a thread start costs.
const JOB_BYTES: usize = 64 << 10;
/// Requests below this many bytes run on the calling thread.
const PARALLEL_BYTES: usize = 160 << 10;
/// How far a hard boundary is looked for behind the place where a job should end.
const BOUNDARY_SEARCH: usize = 4 << 10;

/// Where ids go.
pub(crate) trait Sink {
    fn emit(&mut self, ids: Ids);
    fn extend(&mut self, ids: &[u32]);
}

/// Writes ids into a slice.
pub(crate) struct Slots<'a> {
    pub out: &'a mut [MaybeUninit<u32>],
    pub len: usize,
}

impl Sink for Slots<'_> {
    #[inline(always)]
    fn emit(&mut self, ids: Ids) {
        let (count, places) = (ids.count(), ids.unpack());
        // All places at once where there is room: cheaper than a loop of unknown length.
        if let Some(slots) = self.out.get_mut(self.len..self.len + MAX_IDS) {
            for (slot, id) in slots.iter_mut().zip(places) {
                slot.write(id);
            }
        } else {
            for (slot, id) in self.out[self.len..self.len + count].iter_mut().zip(places) {
                slot.write(id);
            }
        }
        self.len += count;
    }

    #[inline(always)]
    fn extend(&mut self, ids: &[u32]) {
        for (slot, &id) in self.out[self.len..self.len + ids.len()].iter_mut().zip(ids) {
            slot.write(id);
        }
        self.len += ids.len();
    }
}

/// Counts ids.
pub(crate) struct Counter(pub usize);

impl Sink for Counter {
    #[inline(always)]
    fn emit(&mut self, ids: Ids) {
        self.0 += ids.count();
    }

    #[inline(always)]
    fn extend(&mut self, ids: &[u32]) {
        self.0 += ids.len();
    }
}

/// What a job's stretch is.
#[derive(Debug, Clone, Copy)]
enum Work {
    /// Text, to be split and merged: byte range of the segment's UTF-8.
    Text(usize, usize),
    /// A control token: id, and the length of its name in bytes.
    Control(u32, usize),
}

#[derive(Debug, Clone, Copy)]
struct Job<'a> {
    /// Index of the segment.
    segment: usize,
    /// UTF-8 of the whole segment.
    text: &'a [u8],
    work: Work,
}

impl Job<'_> {
    /// Most ids the job can give: its length in bytes.
    fn capacity(&self) -> usize {
        match self.work {
            Work::Text(start, end) => end - start,
            Work::Control(_, len) => len,
        }
    }
}

/// A request made ready: UTF-8 and cuts of each segment.
pub(crate) struct Request<'a> {
    segments: &'a [Segment<'a>],
    utf8: Vec<Utf8<'a>>,
    /// Byte offsets of the cuts, by segment; empty for most.
    cuts: Vec<Vec<usize>>,
    arena: Vec<u8>,
    bytes: usize,
}

impl<'a> Request<'a> {
    /// # Errors
    /// [`Error::TooLong`] for a segment above [`MAX_BYTES`]; [`Error::Memory`].
    pub fn new(segments: &'a [Segment<'a>], legacy_chunks: bool) -> Result<Self, Error> {
        let mut request = Request {
            segments,
            utf8: Vec::with_capacity(segments.len()),
            cuts: Vec::with_capacity(segments.len()),
            arena: Vec::new(),
            bytes: 0,
        };
        for (index, segment) in segments.iter().enumerate() {
            let bound = segment.text.max_utf8_len();
            if bound > MAX_BYTES {
                return Err(Error::TooLong { segment: index, bytes: bound });
            }
            let (utf8, cuts) = segment.text.prepare(legacy_chunks, &mut request.arena)?;
            request.bytes += match utf8 {
                Utf8::Borrowed(bytes) => bytes.len(),
                Utf8::Arena(from, to) => to - from,
            };
            request.utf8.push(utf8);
            request.cuts.push(cuts);
        }
        Ok(request)
    }

    /// UTF-8 bytes of all segments: the most ids that the request can give.
    pub fn max_ids(&self) -> usize {
        self.bytes
    }

    fn text(&self, segment: usize) -> &[u8] {
        match self.utf8[segment] {
            Utf8::Borrowed(bytes) => bytes,
            Utf8::Arena(from, to) => &self.arena[from..to],
        }
    }

    fn threads(&self) -> usize {
        if self.bytes < PARALLEL_BYTES {
            return 1;
        }
        parallel::num_threads().min(self.bytes / JOB_BYTES)
    }

    /// Calls `each` for every job in order. Long text is parted if `part`.
    fn for_each_job(
        &'a self,
        tokenizer: &Tokenizer,
        part: bool,
        mut each: impl FnMut(Job<'a>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for (segment, given) in self.segments.iter().enumerate() {
            let text = self.text(segment);
            let mut job = |work| each(Job { segment, text, work });
            let mut start = 0;
            for &end in self.cuts[segment].iter().chain([&text.len()]) {
                let mut at = start;
                let find = |at| if given.allow_special { tokenizer.controls.find(text, at, end) } else { None };
                while let Some((from, to, id)) = find(at) {
                    text_jobs(&tokenizer.pattern, text, at, from, part, &mut job)?;
                    job(Work::Control(id, to - from))?;
                    at = to;
                }
                text_jobs(&tokenizer.pattern, text, at, end, part, &mut job)?;
                start = end;
            }
        }
        Ok(())
    }
}

/// Parts `start..end` into jobs at hard boundaries.
fn text_jobs(
    pattern: &Pattern,
    text: &[u8],
    mut start: usize,
    end: usize,
    part: bool,
    job: &mut impl FnMut(Work) -> Result<(), Error>,
) -> Result<(), Error> {
    let stretch = &text[..end];
    while part && end - start > JOB_BYTES + BOUNDARY_SEARCH {
        let from = start + JOB_BYTES;
        let boundary = (from..from + BOUNDARY_SEARCH).find(|&at| pattern.is_hard_boundary(stretch, at));
        // Without one nearby, go on to the next place: the job only gets longer.
        let Some(at) =
            boundary.or_else(|| (from + BOUNDARY_SEARCH..end).find(|&at| pattern.is_hard_boundary(stretch, at)))
        else {
            break;
        };
        job(Work::Text(start, at))?;
        start = at;
    }
    if start < end { job(Work::Text(start, end)) } else { Ok(()) }
}

/// Runs one job.
fn run(tokenizer: &Tokenizer, worker: &mut Worker, job: &Job<'_>, sink: &mut impl Sink) -> Result<(), Error> {
    match job.work {
        Work::Control(id, _) => {
            sink.extend(&[id]);
            Ok(())
        }
        Work::Text(start, end) => {
            encode_text(&tokenizer.tables, &tokenizer.pattern, &job.text[..end], start, worker, sink)
        }
    }
}

/// Splits and merges `text[start..]`, which begins at a pre-token start.
fn encode_text(
    tables: &Tables,
    pattern: &Pattern,
    text: &[u8],
    start: usize,
    worker: &mut Worker,
    sink: &mut impl Sink,
) -> Result<(), Error> {
    let Worker { batch, scratch, cache } = worker;
    // Scanners look no further back than `at`; the general engine may look behind, so it gets the stretch alone.
    let text = &text[start..];
    let mut at = 0;
    while at < text.len() {
        at = pattern.fill(text, at, batch)?;
        for &(from, to) in batch.ranges() {
            let (from, to) = (ix(from), ix(to));
            let Some(key) = Key::load(text, from, to) else {
                sink.extend(encode_long(tables, &text[from..to], cache, scratch));
                continue;
            };
            let hash = key.hash();
            match cache.get(key, hash) {
                Some(ids) => sink.emit(ids),
                None => sink.extend(encode_short(tables, &text[from..to], key, hash, cache, scratch)),
            }
        }
    }
    Ok(())
}

/// The ids of a pre-token that has a key and is not in the cache; puts them there.
#[inline(never)]
fn encode_short<'a>(
    tables: &Tables,
    piece: &[u8],
    key: Key,
    hash: u64,
    cache: &mut Cache,
    scratch: &'a mut Scratch,
) -> &'a [u32] {
    let ids = match tables.words.find_key(key, hash) {
        Some(id) => scratch.one(id),
        None => merge_in_stretches(tables, piece, cache, scratch),
    };
    if let Some(ids) = Ids::pack(ids) {
        cache.put(key, hash, ids);
    }
    ids
}

/// The ids of a pre-token that is too long for a key.
#[inline(never)]
fn encode_long<'a>(tables: &Tables, piece: &[u8], cache: &mut Cache, scratch: &'a mut Scratch) -> &'a [u32] {
    match tables.words.find_long(&tables.vocab, piece) {
        Some(id) => scratch.one(id),
        None => merge_in_stretches(tables, piece, cache, scratch),
    }
}

/// BPE of a pre-token that is no token: stretch by stretch where no join can cross a border. (A stretch of its own is
/// one stretch, so this and [`encode_short`] call each other once at most.)
fn merge_in_stretches<'a>(tables: &Tables, piece: &[u8], cache: &mut Cache, scratch: &'a mut Scratch) -> &'a [u32] {
    let merges = &tables.merges;
    if piece.is_ascii() {
        merges.merge(piece, scratch);
        return &scratch.tokens;
    }
    let mut buffers = std::mem::take(&mut scratch.stretches);
    let Stretches { ends, padded, ids } = &mut buffers;
    let ends = merges.borders.stretches(piece, ends);
    if ends.len() == 1 {
        scratch.stretches = buffers;
        merges.merge(piece, scratch);
        return &scratch.tokens;
    }
    // A copy with room behind it: a key is loaded with sixteen bytes at once.
    padded.clear();
    padded.extend_from_slice(piece);
    padded.resize(piece.len() + 16, 0);
    ids.clear();
    let mut start = 0;
    for end in ends.iter().map(|&end| ix(end)) {
        let stretch = &piece[start..end];
        // A stretch that is a token is its own BPE result only where all tokens are (lemma 2); elsewhere a whole
        // pre-token and a stretch of the same bytes may have other ids, and share no entry.
        match Key::load(padded, start, end).filter(|_| merges.greedy()) {
            Some(key) => {
                let hash = key.hash();
                match cache.get(key, hash) {
                    Some(known) => {
                        // All places at once, then back to how many there are: cheaper than a copy of unknown length.
                        let len = ids.len() + known.count();
                        ids.extend_from_slice(&known.unpack());
                        ids.truncate(len);
                    }
                    None => ids.extend_from_slice(encode_short(tables, stretch, key, hash, cache, scratch)),
                }
            }
            None => {
                merges.merge(stretch, scratch);
                ids.extend_from_slice(&scratch.tokens);
            }
        }
        start = end;
    }
    scratch.stretches = buffers;
    &scratch.stretches.ids
}

/// Encodes `request` into `out`, which has at least [`Request::max_ids`] slots; returns the number of ids.
///
/// If `ends` is given, it receives for each segment the number of ids up to its end.
pub(crate) fn encode(
    tokenizer: &Tokenizer,
    request: &Request<'_>,
    out: &mut [MaybeUninit<u32>],
    ends: Option<&mut Vec<usize>>,
) -> Result<usize, Error> {
    let threads = request.threads();
    if threads == 1 {
        return encode_here(tokenizer, request, out, ends);
    }
    encode_on_threads(tokenizer, request, threads, out, ends)
}

fn encode_here(
    tokenizer: &Tokenizer,
    request: &Request<'_>,
    out: &mut [MaybeUninit<u32>],
    mut ends: Option<&mut Vec<usize>>,
) -> Result<usize, Error> {
    tokenizer.tables.workers.with(|worker| {
        let mut sink = Slots { out, len: 0 };
        request.for_each_job(tokenizer, false, |job| {
            fill_ends(&mut ends, job.segment, sink.len);
            run(tokenizer, worker, &job, &mut sink)
        })?;
        fill_ends(&mut ends, request.segments.len(), sink.len);
        Ok(sink.len)
    })
}

/// Notes that the segments before `segment` end at `len` ids, where that is not noted yet.
fn fill_ends(ends: &mut Option<&mut Vec<usize>>, segment: usize, len: usize) {
    if let Some(ends) = ends {
        while ends.len() < segment {
            ends.push(len);
        }
    }
}

fn encode_on_threads(
    tokenizer: &Tokenizer,
    request: &Request<'_>,
    threads: usize,
    out: &mut [MaybeUninit<u32>],
    mut ends: Option<&mut Vec<usize>>,
) -> Result<usize, Error> {
    let mut jobs = Vec::new();
    request.for_each_job(tokenizer, true, |job| {
        jobs.push(job);
        Ok(())
    })?;
    // Groups of jobs of about JOB_BYTES, each with its own part of the output.
    let lens: Vec<Mutex<usize>> = jobs.iter().map(|_| Mutex::new(0)).collect();
    let failure: Mutex<Option<Error>> = Mutex::new(None);
    let mut groups = Vec::new();
    let mut rest = &mut out[..];
    let mut first = 0;
    while first < jobs.len() {
        let mut last = first;
        let mut bytes = 0;
        while last < jobs.len() && bytes < JOB_BYTES {
            bytes += jobs[last].capacity();
            last += 1;
        }
        let (slots, more) = rest.split_at_mut(bytes);
        rest = more;
        groups.push((first..last, slots));
        first = last;
    }
    parallel::for_each(threads.min(groups.len()), groups.into_iter(), |(range, slots)| {
        tokenizer.tables.workers.with(|worker| {
            let mut slots = slots;
            for index in range {
                let job = &jobs[index];
                let (mine, more) = std::mem::take(&mut slots).split_at_mut(job.capacity());
                slots = more;
                let mut sink = Slots { out: mine, len: 0 };
                if let Err(error) = run(tokenizer, worker, job, &mut sink) {
                    lock(&failure).get_or_insert(error);
                    return;
                }
                *lock(&lens[index]) = sink.len;
            }
        });
    });
    if let Some(error) = lock(&failure).take() {
        return Err(error);
    }
    let (mut from, mut to) = (0, 0);
    for (job, len) in jobs.iter().zip(&lens) {
        fill_ends(&mut ends, job.segment, to);
        let len = *lock(len);
        out.copy_within(from..from + len, to);
        from += job.capacity();
        to += len;
    }
    fill_ends(&mut ends, request.segments.len(), to);
    Ok(to)
}

/// The number of ids, without room for them.
pub(crate) fn count(tokenizer: &Tokenizer, request: &Request<'_>) -> Result<usize, Error> {
    let threads = request.threads();
    let mut jobs = Vec::new();
    let mut total = 0;
    tokenizer.tables.workers.with(|worker| {
        request.for_each_job(tokenizer, threads > 1, |job| {
            if threads > 1 {
                jobs.push(job);
                return Ok(());
            }
            let mut sink = Counter(0);
            run(tokenizer, worker, &job, &mut sink)?;
            total += sink.0;
            Ok(())
        })
    })?;
    let shared: Mutex<Result<usize, Error>> = Mutex::new(Ok(total));
    parallel::for_each(threads.min(jobs.len()), jobs.chunks(64), |jobs| {
        let mut sink = Counter(0);
        let outcome = tokenizer
            .tables
            .workers
            .with(|worker| jobs.iter().try_for_each(|job| run(tokenizer, worker, job, &mut sink)));
        let mut shared = lock(&shared);
        match (outcome, &mut *shared) {
            (Ok(()), Ok(total)) => *total += sink.0,
            (Err(error), Ok(_)) => *shared = Err(error),
            (_, Err(_)) => {}
        }
    });
    shared.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
