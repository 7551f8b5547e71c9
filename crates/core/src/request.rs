//! One request as a list of jobs.
//!
//! A job is a stretch of one segment: a control token, or text that is split and merged on its own. Long stretches are
//! parted where a pre-token ends whatever the context ([`Pattern::is_hard_boundary`]), so the ids do not depend on how
//! many threads there are.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::{Error, reserve};
use crate::lookup::phrases::Phrase;
use crate::num::{ix, to_u32};
use crate::parallel;
use crate::pretoken::Pattern;
use crate::segment::{MAX_BYTES, Segment};
use crate::special::Stretch;
use crate::text::Text;
use crate::tokenizer::Tokenizer;
use crate::turn;

/// Most bytes of text a job: what fits in a core's own cache, with its ids and what was learned.
pub(crate) const JOB_BYTES: usize = 64 << 10;
/// Fewest bytes of text a job when there is more than one thread.
const LEAST_JOB_BYTES: usize = 2 << 10;
/// Jobs a thread, so that none waits for long for the others at the end.
const JOBS_A_THREAD: usize = 24;
/// Bytes of text for which a thread is worth waking.
const LEAST_BYTES_A_THREAD: usize = 16 << 10;
/// Requests below this many bytes use processors that are idle, no others.
const LARGE_BYTES: usize = 256 << 10;
/// Segments up to this many bytes are copied side by side, so that they share batches.
const JOINED_BYTES: usize = 4 << 10;

/// Bytes of room for a segment that are made beforehand, and most segments for which they are.
const ARENA_BYTES: usize = 32;
const ARENA_SEGMENTS: usize = 1 << 10;

/// A stretch to encode on its own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work<'a> {
    /// Text, to be split and merged: a range of bytes of memory that may hold other texts, too.
    Text(&'a [u8], usize, usize),
    /// The same for text that is not UTF-8 yet.
    Wide(Text<'a>),
    /// A control token: id, and the length of its name in bytes.
    Control(u32, usize),
    /// A short segment: whole, and where its text is, as above. Names in it count if it is trusted.
    Phrase(Phrase, &'a [u8], u32, u32),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Job<'a> {
    /// Index of the segment.
    pub segment: usize,
    pub work: Work<'a>,
}

impl Job<'_> {
    /// Its length in bytes, about.
    pub fn len(&self) -> usize {
        match self.work {
            Work::Text(_, start, end) => end - start,
            Work::Wide(text) => text.max_utf8_len(),
            Work::Control(_, len) => len,
            Work::Phrase(_, _, start, end) => ix(end - start),
        }
    }
}

/// Where a segment's text is.
#[derive(Debug)]
enum Place<'a> {
    /// In the caller's memory, as UTF-8.
    Borrowed(&'a [u8]),
    /// A range of the arena.
    Arena(usize, usize),
    /// The same of a short one.
    Phrase(Phrase, usize, usize),
    /// In the caller's memory, not as UTF-8: long, and no names in it count. Its jobs make their own UTF-8, side by
    /// side, in memory that is near.
    Wide(Text<'a>),
    /// A range of the parts: the text was normalized, or more than names was looked for. It was cut before.
    Parts(usize, usize),
}

/// What is left of a segment in which names were looked for beforehand.
#[derive(Debug, Clone, Copy)]
enum Part<'a> {
    /// Text in the caller's memory.
    Borrowed(&'a [u8]),
    /// A range of the arena.
    Arena(usize, usize),
    /// A token: id, and the bytes that belong to it.
    Token(u32, usize),
}

impl Part<'_> {
    /// Its length in bytes; not 0.
    fn len(&self) -> usize {
        match self {
            Part::Borrowed(bytes) => bytes.len(),
            Part::Arena(from, to) => to - from,
            Part::Token(_, len) => *len,
        }
    }
}

/// A segment made ready.
#[derive(Debug)]
struct Ready<'a> {
    place: Place<'a>,
    /// Its part of all cuts.
    cuts: Range<usize>,
}

/// A request made ready: the place and the cuts of each segment.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    segments: &'a [Segment<'a>],
    ready: Vec<Ready<'a>>,
    /// Of all segments: where to cut, as offsets into the segment (bytes of UTF-8; units of memory if wide).
    cuts: Vec<usize>,
    parts: Vec<Part<'a>>,
    arena: Vec<u8>,
    bytes: usize,
}

impl<'a> Request<'a> {
    /// # Errors
    /// [`Error::TooLong`] for a segment above [`MAX_BYTES`]; [`Error::Memory`]; [`Error::Pattern`].
    pub fn new(tokenizer: &Tokenizer, segments: &'a [Segment<'a>], legacy_chunks: bool) -> Result<Self, Error> {
        Request::resumed(tokenizer, segments, legacy_chunks, None)
    }

    /// The same where the first segment is the end of another one: `first_cuts` are the cuts of that in it, in units of
    /// its text. It is one that needs no parts.
    pub fn resumed(
        tokenizer: &Tokenizer,
        segments: &'a [Segment<'a>],
        legacy_chunks: bool,
        mut first_cuts: Option<Vec<usize>>,
    ) -> Result<Self, Error> {
        let legacy_chunks = legacy_chunks && tokenizer.cuts;
        let mut request = Request {
            segments,
            ready: Vec::with_capacity(segments.len()),
            cuts: Vec::new(),
            parts: Vec::new(),
            arena: Vec::new(),
            bytes: 0,
        };
        reserve(&mut request.arena, ARENA_BYTES * segments.len().min(ARENA_SEGMENTS))?;
        for (index, segment) in segments.iter().enumerate() {
            let bound = segment.text.max_utf8_len();
            if bound > MAX_BYTES {
                return Err(Error::TooLong { segment: index, bytes: bound });
            }
            let first = request.cuts.len();
            let phrase = if index == 0 && first_cuts.is_some() { None } else { phrase(tokenizer, segment) };
            let place = if let Some(phrase) = phrase {
                request.place_phrase(phrase)?
            } else if tokenizer.takes_as_it_is(segment) {
                let cuts = first_cuts.take_if(|_| index == 0).unwrap_or_else(|| {
                    // What is short is not cut.
                    let may_be = legacy_chunks && segment.text.len() > JOINED_BYTES;
                    if may_be { segment.text.cuts() } else { Vec::new() }
                });
                request.place(segment, cuts)?
            } else {
                request.place_parts(tokenizer, index, segment, legacy_chunks)?
            };
            request.bytes += match place {
                Place::Borrowed(bytes) => bytes.len(),
                Place::Arena(from, to) | Place::Phrase(_, from, to) => to - from,
                Place::Wide(text) => text.max_utf8_len(),
                Place::Parts(from, to) => request.parts[from..to].iter().map(Part::len).sum(),
            };
            request.ready.push(Ready { place, cuts: first..request.cuts.len() });
        }
        Ok(request)
    }

    /// Places a short segment.
    fn place_phrase(&mut self, phrase: Phrase) -> Result<Place<'a>, Error> {
        let start = self.arena.len();
        let bytes = phrase.bytes();
        reserve(&mut self.arena, bytes.len())?;
        // A copy of known length: then what is too much is cut off.
        self.arena.extend_from_slice(&bytes);
        self.arena.truncate(start + phrase.len());
        Ok(Place::Phrase(phrase, start, self.arena.len()))
    }

    /// Places one segment, and adds its cuts, which are in units of its text.
    fn place(&mut self, segment: &Segment<'a>, cuts: Vec<usize>) -> Result<Place<'a>, Error> {
        let text = segment.text;
        let arena = &mut self.arena;
        let start = arena.len();
        if text.len() > JOINED_BYTES {
            if let Some(bytes) = text.as_utf8() {
                self.cuts.extend(cuts);
                return Ok(Place::Borrowed(bytes));
            }
            if !segment.allow_special {
                self.cuts.extend(cuts);
                return Ok(Place::Wide(text));
            }
        }
        // Piece by piece, so that a cut parts a surrogate pair.
        let mut from = 0;
        for to in cuts {
            text.slice(from, to).append_utf8(arena)?;
            self.cuts.push(arena.len() - start);
            from = to;
        }
        text.slice(from, text.len()).append_utf8(arena)?;
        Ok(Place::Arena(start, arena.len()))
    }

    /// Places the parts of one segment.
    fn place_parts(
        &mut self,
        tokenizer: &Tokenizer,
        index: usize,
        segment: &Segment<'a>,
        legacy_chunks: bool,
    ) -> Result<Place<'a>, Error> {
        let Request { parts, arena, .. } = self;
        let first = parts.len();
        let cuts = if legacy_chunks { segment.text.cuts() } else { Vec::new() };
        let mut utf8 = Vec::new();
        let mut from = 0;
        for to in cuts.into_iter().chain([segment.text.len()]) {
            let text = segment.text.slice(from, to);
            from = to;
            let held = text.as_utf8();
            if held.is_none() {
                utf8.clear();
                text.append_utf8(&mut utf8)?;
            }
            let text = std::str::from_utf8(held.unwrap_or(&utf8)).expect("UTF-8, given or made");
            let normalizer = tokenizer.normalizer.as_ref();
            // A text, and where it stands in `held` as it is.
            let mut push_text = |parts: &mut Vec<Part<'a>>, text: &str, at: Option<usize>| {
                parts.push(match (at, held) {
                    _ if text.len() > MAX_BYTES => return Err(Error::TooLong { segment: index, bytes: text.len() }),
                    (Some(at), Some(held)) if text.len() > JOINED_BYTES => Part::Borrowed(&held[at..at + text.len()]),
                    _ => {
                        let start = arena.len();
                        reserve(arena, text.len())?;
                        arena.extend_from_slice(text.as_bytes());
                        Part::Arena(start, arena.len())
                    }
                });
                Ok(())
            };
            tokenizer.controls.split(text, segment.allow_special, normalizer, |stretch| match stretch {
                Stretch::Token(id, len) => {
                    parts.push(Part::Token(id, len));
                    Ok(())
                }
                Stretch::Text(text, at) => match &tokenizer.prefix {
                    None => push_text(parts, text, at),
                    Some(prefix) => prefix.pieces(text, |from, piece| {
                        let at = at.filter(|_| matches!(piece, Cow::Borrowed(_)));
                        push_text(parts, &piece, at.map(|at| at + from))
                    }),
                },
            })?;
        }
        Ok(Place::Parts(first, parts.len()))
    }

    /// An upper bound of the bytes of UTF-8 of all segments.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of segments.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// Threads that are worth waking, and bytes a job for them.
    pub fn threads(&self) -> (usize, usize) {
        let worth = self.bytes / LEAST_BYTES_A_THREAD;
        if worth < 2 {
            return (1, JOB_BYTES);
        }
        let idle = if self.bytes < LARGE_BYTES { 1 + turn::idle() } else { usize::MAX };
        let threads = worth.min(parallel::limit()).min(idle);
        (threads, (self.bytes / (threads * JOBS_A_THREAD)).clamp(LEAST_JOB_BYTES, JOB_BYTES))
    }

    /// A range of the arena as one of memory whose offsets have 31 bits.
    fn in_arena(&self, from: usize, to: usize) -> (&[u8], usize, usize) {
        if self.arena.len() <= MAX_BYTES { (&self.arena, from, to) } else { (&self.arena[from..to], 0, to - from) }
    }

    /// Calls `each` for every job in order. Text is parted so that most jobs have about `job_bytes`.
    pub fn for_each_job(
        &'a self,
        tokenizer: &Tokenizer,
        job_bytes: usize,
        mut each: impl FnMut(Job<'a>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let pattern = &tokenizer.pattern;
        for (segment, (given, ready)) in self.segments.iter().zip(&self.ready).enumerate() {
            let mut job = |work| each(Job { segment, work });
            let cuts = self.cuts[ready.cuts.clone()].iter().copied();
            let (base, first, last) = match ready.place {
                Place::Borrowed(bytes) => (bytes, 0, bytes.len()),
                Place::Arena(from, to) => self.in_arena(from, to),
                Place::Phrase(phrase, from, to) => {
                    let (base, from, to) = self.in_arena(from, to);
                    job(Work::Phrase(phrase, base, to_u32(from), to_u32(to)))?;
                    continue;
                }
                Place::Parts(from, to) => {
                    for part in &self.parts[from..to] {
                        let (base, start, end) = match *part {
                            Part::Borrowed(bytes) => (bytes, 0, bytes.len()),
                            Part::Arena(from, to) => self.in_arena(from, to),
                            Part::Token(id, len) => {
                                job(Work::Control(id, len))?;
                                continue;
                            }
                        };
                        text_jobs(pattern, base, start, end, job_bytes, &mut job)?;
                    }
                    continue;
                }
                Place::Wide(text) => {
                    let mut start = 0;
                    for end in cuts.chain([text.len()]) {
                        wide_jobs(pattern, text.slice(start, end), job_bytes.min(JOB_BYTES) / 2, &mut job)?;
                        start = end;
                    }
                    continue;
                }
            };
            let mut start = first;
            for end in cuts.map(|cut| first + cut).chain([last]) {
                let mut at = start;
                let find = |at| if given.allow_special { tokenizer.controls.find(base, at, end) } else { None };
                while let Some((from, to, id)) = find(at) {
                    text_jobs(pattern, base, at, from, job_bytes, &mut job)?;
                    job(Work::Control(id, to - from))?;
                    at = to;
                }
                text_jobs(pattern, base, at, end, job_bytes, &mut job)?;
                start = end;
            }
        }
        Ok(())
    }
}

/// A segment as a phrase, if it is one that is split as it is. Where a pattern looks behind, texts share no batch, and only
/// control ids are remembered.
#[inline(always)]
fn phrase(tokenizer: &Tokenizer, segment: &Segment<'_>) -> Option<Phrase> {
    if tokenizer.pattern.looks_behind() && !segment.allow_special {
        return None;
    }
    let bytes = match segment.text {
        Text::Utf8(text) => text.as_bytes(),
        Text::Latin1(bytes) => bytes,
        _ => return None,
    };
    Phrase::new(bytes, segment.allow_special).filter(|_| tokenizer.takes_as_it_is(segment))
}

/// Parts `start..end` into jobs at hard boundaries.
fn text_jobs<'a>(
    pattern: &Pattern,
    base: &'a [u8],
    mut start: usize,
    end: usize,
    job_bytes: usize,
    job: &mut impl FnMut(Work<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    let stretch = &base[..end];
    // A job may be half as large again: a small rest is not worth one.
    while (end - start) / 3 > job_bytes / 2 {
        let Some(at) = (start + job_bytes..end).find(|&at| pattern.is_hard_boundary(stretch, at)) else { break };
        job(Work::Text(base, start, at))?;
        start = at;
    }
    if start < end { job(Work::Text(base, start, end)) } else { Ok(()) }
}

/// Parts a text that is not UTF-8 into jobs at hard boundaries.
fn wide_jobs<'a>(
    pattern: &Pattern,
    text: Text<'a>,
    job_units: usize,
    job: &mut impl FnMut(Work<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut start = 0;
    while (text.len() - start) / 3 > job_units / 2 {
        let mut places = start + job_units..text.len();
        let Some(at) = places.find(|&at| pattern.parts(text.unit(at - 1), text.unit(at))) else { break };
        job(Work::Wide(text.slice(start, at)))?;
        start = at;
    }
    if start < text.len() { job(Work::Wide(text.slice(start, text.len()))) } else { Ok(()) }
}
