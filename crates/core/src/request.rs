//! One request as a list of jobs.
//!
//! A job is a stretch of one segment: a control token, or text that is split and merged on its own. Long stretches are
//! parted where a pre-token ends whatever the context ([`Pattern::is_hard_boundary`]), so the ids do not depend on how
//! many threads there are.

use std::ops::Range;

use crate::error::{Error, reserve};
use crate::parallel;
use crate::pretoken::Pattern;
use crate::segment::{MAX_BYTES, Segment};
use crate::text::Utf8;
use crate::tokenizer::Tokenizer;

/// Bytes of text a job when there is more than one thread; a multiple of what a thread start costs.
pub(crate) const JOB_BYTES: usize = 64 << 10;
/// Requests below this many bytes run on the calling thread.
const PARALLEL_BYTES: usize = 160 << 10;
/// Segments up to this many bytes are copied side by side, so that they share batches.
const JOINED_BYTES: usize = 4 << 10;
/// How far a hard boundary is looked for behind the place where a job should end.
const BOUNDARY_SEARCH: usize = 4 << 10;

/// What a job's stretch is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work {
    /// Text, to be split and merged: byte range of the job's memory.
    Text(usize, usize),
    /// A control token: id, and the length of its name in bytes.
    Control(u32, usize),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Job<'a> {
    /// Index of the segment.
    pub segment: usize,
    /// Memory in which the segment's UTF-8 lies, perhaps with that of others.
    pub base: &'a [u8],
    pub work: Work,
}

impl Job<'_> {
    /// Its length in bytes.
    pub fn len(&self) -> usize {
        match self.work {
            Work::Text(start, end) => end - start,
            Work::Control(_, len) => len,
        }
    }
}

/// A segment made ready.
#[derive(Debug)]
struct Ready<'a> {
    utf8: Utf8<'a>,
    /// Its part of all cuts.
    cuts: Range<usize>,
}

/// A request made ready: UTF-8 and cuts of each segment.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    segments: &'a [Segment<'a>],
    ready: Vec<Ready<'a>>,
    /// Of all segments: where to cut, as byte offsets into the segment.
    cuts: Vec<usize>,
    arena: Vec<u8>,
    bytes: usize,
}

impl<'a> Request<'a> {
    /// # Errors
    /// [`Error::TooLong`] for a segment above [`MAX_BYTES`]; [`Error::Memory`].
    pub fn new(segments: &'a [Segment<'a>], legacy_chunks: bool) -> Result<Self, Error> {
        let mut request = Request {
            segments,
            ready: Vec::with_capacity(segments.len()),
            cuts: Vec::new(),
            arena: Vec::new(),
            bytes: 0,
        };
        for (index, segment) in segments.iter().enumerate() {
            let bound = segment.text.max_utf8_len();
            if bound > MAX_BYTES {
                return Err(Error::TooLong { segment: index, bytes: bound });
            }
            let (mut utf8, cuts) = segment.text.prepare(legacy_chunks, &mut request.arena)?;
            let arena = &mut request.arena;
            request.bytes += match utf8 {
                Utf8::Borrowed(bytes) if bytes.len() <= JOINED_BYTES => {
                    reserve(arena, bytes.len())?;
                    arena.extend_from_slice(bytes);
                    utf8 = Utf8::Arena(arena.len() - bytes.len(), arena.len());
                    bytes.len()
                }
                Utf8::Borrowed(bytes) => bytes.len(),
                Utf8::Arena(from, to) => to - from,
            };
            let first = request.cuts.len();
            request.cuts.extend(cuts);
            request.ready.push(Ready { utf8, cuts: first..request.cuts.len() });
        }
        Ok(request)
    }

    /// UTF-8 bytes of all segments.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of segments.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// Memory in which a segment's UTF-8 lies, and where in it.
    fn place(&self, segment: usize) -> (&[u8], usize, usize) {
        match self.ready[segment].utf8 {
            Utf8::Borrowed(bytes) => (bytes, 0, bytes.len()),
            Utf8::Arena(from, to) if self.arena.len() <= MAX_BYTES => (&self.arena, from, to),
            // Offsets have 31 bits.
            Utf8::Arena(from, to) => (&self.arena[from..to], 0, to - from),
        }
    }

    /// Threads that are worth starting.
    pub fn threads(&self) -> usize {
        if self.bytes < PARALLEL_BYTES {
            return 1;
        }
        parallel::num_threads().min(self.bytes / JOB_BYTES)
    }

    /// Calls `each` for every job in order. Long text is parted if `part`.
    pub fn for_each_job(
        &'a self,
        tokenizer: &Tokenizer,
        part: bool,
        mut each: impl FnMut(Job<'a>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for (segment, given) in self.segments.iter().enumerate() {
            let (base, first, last) = self.place(segment);
            let mut job = |work| each(Job { segment, base, work });
            let cuts = self.cuts[self.ready[segment].cuts.clone()].iter().map(|cut| first + cut);
            let mut start = first;
            for end in cuts.chain([last]) {
                let mut at = start;
                let find = |at| if given.allow_special { tokenizer.controls.find(base, at, end) } else { None };
                while let Some((from, to, id)) = find(at) {
                    text_jobs(&tokenizer.pattern, base, at, from, part, &mut job)?;
                    job(Work::Control(id, to - from))?;
                    at = to;
                }
                text_jobs(&tokenizer.pattern, base, at, end, part, &mut job)?;
                start = end;
            }
        }
        Ok(())
    }
}

/// Parts `start..end` into jobs at hard boundaries.
fn text_jobs(
    pattern: &Pattern,
    base: &[u8],
    mut start: usize,
    end: usize,
    part: bool,
    job: &mut impl FnMut(Work) -> Result<(), Error>,
) -> Result<(), Error> {
    let stretch = &base[..end];
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
