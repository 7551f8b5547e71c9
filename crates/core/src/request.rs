//! One request as a list of jobs.
//!
//! A job is a stretch of one segment: a control token, or text that is split and merged on its own. Long stretches are
//! parted where a pre-token ends whatever the context ([`Pattern::is_hard_boundary`]), so the ids do not depend on how
//! many threads there are.

use crate::error::Error;
use crate::parallel;
use crate::pretoken::Pattern;
use crate::segment::{MAX_BYTES, Segment};
use crate::text::Utf8;
use crate::tokenizer::Tokenizer;

/// Bytes of text a job when there is more than one thread; a multiple of what a thread start costs.
pub(crate) const JOB_BYTES: usize = 64 << 10;
/// Requests below this many bytes run on the calling thread.
const PARALLEL_BYTES: usize = 160 << 10;
/// How far a hard boundary is looked for behind the place where a job should end.
const BOUNDARY_SEARCH: usize = 4 << 10;

/// What a job's stretch is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work {
    /// Text, to be split and merged: byte range of the segment's UTF-8.
    Text(usize, usize),
    /// A control token: id, and the length of its name in bytes.
    Control(u32, usize),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Job<'a> {
    /// Index of the segment.
    pub segment: usize,
    /// UTF-8 of the whole segment.
    pub text: &'a [u8],
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

    /// UTF-8 bytes of all segments.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of segments.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    fn text(&self, segment: usize) -> &[u8] {
        match self.utf8[segment] {
            Utf8::Borrowed(bytes) => bytes,
            Utf8::Arena(from, to) => &self.arena[from..to],
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
