//! A request run: jobs to ids.
//!
//! Every thread writes the ids of its jobs one after the other into the output of its worker. Whoever asked learns how
//! many there are, makes room, and has them copied there in the order of the jobs: no memory is touched that does not end
//! up holding ids.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Mutex;

use crate::error::Error;
use crate::lookup::phrases::Phrase;
use crate::num::ix;
use crate::parallel;
use crate::piece::Encoder;
use crate::request::{Job, Request, Work};
use crate::tokenizer::Tokenizer;
use crate::worker::{Finished, Worker};

/// The ids of a request, still in the outputs of the workers that made them.
#[derive(Debug)]
pub struct Encoded<'a> {
    outputs: Vec<Finished<'a>>,
    /// In order: which output, and where in it.
    parts: Vec<(usize, Range<usize>)>,
    len: usize,
}

impl Encoded<'_> {
    /// Number of ids.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The ids, in slices that follow one another.
    pub fn parts(&self) -> impl Iterator<Item = &[u32]> {
        self.parts.iter().map(|(output, range)| &self.outputs[*output].ids()[range.clone()])
    }

    /// All ids.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn to_vec(&self) -> Result<Vec<u32>, Error> {
        let mut ids = Vec::new();
        crate::error::reserve(&mut ids, self.len)?;
        self.parts().for_each(|part| ids.extend_from_slice(part));
        Ok(ids)
    }

    /// Writes all ids to `out`.
    ///
    /// # Panics
    /// If `out` has not [`Encoded::len`] slots.
    pub fn write_to(&self, mut out: &mut [MaybeUninit<u32>]) {
        assert_eq!(out.len(), self.len, "as many slots as ids");
        for part in self.parts() {
            let (slots, rest) = out.split_at_mut(part.len());
            slots.write_copy_of_slice(part);
            out = rest;
        }
    }
}

/// Runs one job.
fn run<'a>(tokenizer: &Tokenizer, encoder: &mut Encoder<'a>, job: &Job<'a>) -> Result<(), Error> {
    match job.work {
        Work::Control(id, _) => encoder.id(id),
        Work::Text(base, from, to) => encoder.text(base, from, to),
        Work::Wide(text) => encoder.wide(text),
        Work::Phrase(phrase, base, from, to) => {
            if encoder.phrase(phrase)? {
                Ok(())
            } else {
                learn(tokenizer, encoder, phrase, base, (ix(from), ix(to)))
            }
        }
    }
}

/// Encodes a short segment, the stretch of `base`, and has its ids remembered.
fn learn<'a>(
    tokenizer: &Tokenizer,
    encoder: &mut Encoder<'a>,
    phrase: Phrase,
    base: &'a [u8],
    (mut at, end): (usize, usize),
) -> Result<(), Error> {
    encoder.begin(base)?;
    if phrase.allow_special() {
        while let Some((from, to, id)) = tokenizer.controls.find(base, at, end) {
            if at < from {
                encoder.text(base, at, from)?;
            }
            encoder.id(id)?;
            at = to;
        }
    }
    if at < end {
        encoder.text(base, at, end)?;
    }
    encoder.end(phrase);
    Ok(())
}

fn encoder<'a>(tokenizer: &'a Tokenizer, worker: &'a mut Worker) -> Encoder<'a> {
    Encoder::new(&tokenizer.tables, &tokenizer.pattern, &tokenizer.identity, worker)
}

/// The ids of `request`. If `ends` is given, it receives for each segment the number of ids up to its end.
pub(crate) fn encode<'t>(
    tokenizer: &'t Tokenizer,
    request: &Request<'_>,
    ends: Option<&mut Vec<usize>>,
) -> Result<Encoded<'t>, Error> {
    match request.threads() {
        (1, _) => encode_here(tokenizer, request, ends),
        (threads, job_bytes) => encode_on(threads, job_bytes, tokenizer, request, ends),
    }
}

fn encode_here<'t>(
    tokenizer: &'t Tokenizer,
    request: &Request<'_>,
    mut ends: Option<&mut Vec<usize>>,
) -> Result<Encoded<'t>, Error> {
    let mut worker = tokenizer.tables.workers.lend()?;
    let mut encoder = encoder(tokenizer, &mut worker);
    let mut segment = 0;
    request.for_each_job(tokenizer, usize::MAX, |job| {
        if ends.is_some() {
            encoder.mark(job.segment - segment);
            segment = job.segment;
        }
        run(tokenizer, &mut encoder, &job)
    })?;
    if ends.is_some() {
        encoder.mark(request.segments() - segment);
    }
    let len = encoder.flush()?;
    if let Some(ends) = &mut ends {
        **ends = encoder.ends();
    }
    Ok(Encoded { outputs: vec![worker.finish()], parts: vec![(0, 0..len)], len })
}

/// Notes that the segments before `segment` end at `len` ids, where that is not noted yet.
fn fill_ends(ends: &mut Option<&mut Vec<usize>>, segment: usize, len: usize) {
    if let Some(ends) = ends {
        while ends.len() < segment {
            ends.push(len);
        }
    }
}

fn encode_on<'t>(
    threads: usize,
    job_bytes: usize,
    tokenizer: &'t Tokenizer,
    request: &Request<'_>,
    mut ends: Option<&mut Vec<usize>>,
) -> Result<Encoded<'t>, Error> {
    let mut jobs = Vec::new();
    request.for_each_job(tokenizer, job_bytes, |job| {
        jobs.push(job);
        Ok(())
    })?;
    let groups = in_groups(&jobs, job_bytes);
    let threads = threads.min(groups.len());
    let done: Mutex<Result<Vec<Share<'_>>, Error>> = Mutex::new(Ok(Vec::with_capacity(threads)));
    let with_lens = ends.is_some();
    parallel::on_threads(threads, groups.len(), |next| {
        let share = work_off(tokenizer, &jobs, &groups, with_lens, next);
        let mut done = done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match (share, &mut *done) {
            (Ok(share), Ok(shares)) => shares.push(share),
            (Err(error), Ok(_)) => *done = Err(error),
            (_, Err(_)) => {}
        }
    });
    let shares = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)?;
    let mut parts = vec![(0, 0..0); groups.len()];
    let mut lens = vec![0; if with_lens { jobs.len() } else { 0 }];
    for (output, share) in shares.iter().enumerate() {
        for (group, range) in &share.parts {
            parts[*group] = (output, range.clone());
        }
        for &(job, len) in &share.lens {
            lens[job] = len;
        }
    }
    let mut before = 0;
    for (job, len) in jobs.iter().zip(lens) {
        fill_ends(&mut ends, job.segment, before);
        before += len;
    }
    fill_ends(&mut ends, request.segments(), before);
    let len = parts.iter().map(|(_, range)| range.len()).sum();
    Ok(Encoded { outputs: shares.into_iter().map(|share| share.output).collect(), parts, len })
}

/// Ranges of jobs of about so many bytes each.
fn in_groups(jobs: &[Job<'_>], job_bytes: usize) -> Vec<Range<usize>> {
    let mut groups = Vec::new();
    let mut first = 0;
    while first < jobs.len() {
        let mut last = first;
        let mut bytes = 0;
        while last < jobs.len() && bytes < job_bytes {
            bytes += jobs[last].len();
            last += 1;
        }
        groups.push(first..last);
        first = last;
    }
    groups
}

/// What one thread did of a request.
struct Share<'t> {
    output: Finished<'t>,
    /// Group, and where in the output its ids are.
    parts: Vec<(usize, Range<usize>)>,
    /// Job, and its number of ids; only if somebody wants to know.
    lens: Vec<(usize, usize)>,
}

/// Runs groups of jobs as long as `next` gives any.
fn work_off<'t>(
    tokenizer: &'t Tokenizer,
    jobs: &[Job<'_>],
    groups: &[Range<usize>],
    with_lens: bool,
    next: &dyn Fn() -> Option<usize>,
) -> Result<Share<'t>, Error> {
    let mut worker = tokenizer.tables.workers.lend()?;
    let mut encoder = encoder(tokenizer, &mut worker);
    let mut mine = Vec::new();
    while let Some(group) = next() {
        for index in groups[group].clone() {
            run(tokenizer, &mut encoder, &jobs[index])?;
            if with_lens {
                encoder.mark(1);
            }
        }
        if !with_lens {
            encoder.mark(1);
        }
        mine.push(group);
    }
    encoder.flush()?;
    let mut ends = encoder.ends().into_iter();
    let mut next_end = || ends.next().expect("a mark for each");
    let (mut parts, mut lens) = (Vec::with_capacity(mine.len()), Vec::new());
    let mut end = 0;
    for group in mine {
        let start = end;
        if with_lens {
            for index in groups[group].clone() {
                let before = std::mem::replace(&mut end, next_end());
                lens.push((index, end - before));
            }
        } else {
            end = next_end();
        }
        parts.push((group, start..end));
    }
    Ok(Share { output: worker.finish(), parts, lens })
}

/// The number of ids, without keeping them.
pub(crate) fn count(tokenizer: &Tokenizer, request: &Request<'_>) -> Result<usize, Error> {
    let take = |encoder: &mut Encoder<'_>| {
        let len = encoder.flush();
        encoder.clear();
        len
    };
    let (threads, job_bytes) = request.threads();
    if threads == 1 {
        let mut worker = tokenizer.tables.workers.lend()?;
        let mut encoder = encoder(tokenizer, &mut worker);
        let (mut total, mut bytes) = (0, 0);
        request.for_each_job(tokenizer, job_bytes, |job| {
            run(tokenizer, &mut encoder, &job)?;
            bytes += job.len();
            if bytes >= job_bytes {
                total += take(&mut encoder)?;
                bytes = 0;
            }
            Ok(())
        })?;
        return Ok(total + take(&mut encoder)?);
    }
    let mut jobs = Vec::new();
    request.for_each_job(tokenizer, job_bytes, |job| {
        jobs.push(job);
        Ok(())
    })?;
    let groups = in_groups(&jobs, job_bytes);
    let total = Mutex::new(Ok(0));
    parallel::on_threads(threads.min(groups.len()), groups.len(), |next| {
        let mine = tokenizer.tables.workers.lend().and_then(|mut worker| {
            let mut encoder = encoder(tokenizer, &mut worker);
            std::iter::from_fn(next).try_fold(0, |sum, group| {
                jobs[groups[group].clone()].iter().try_for_each(|job| run(tokenizer, &mut encoder, job))?;
                Ok(sum + take(&mut encoder)?)
            })
        });
        let mut total = total.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *total = match (&*total, mine) {
            (Ok(before), Ok(mine)) => Ok(before + mine),
            (Err(_), _) => return,
            (_, Err(error)) => Err(error),
        };
    });
    total.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}
