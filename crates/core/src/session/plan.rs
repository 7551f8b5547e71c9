//! What of a prompt is known, where it does not begin like one that is known: which ids to take over, and what to encode.

use std::collections::HashMap;
use std::hash::RandomState;

use super::Known;
use super::known::{self, Prints, Resume, Source};
use crate::encode::Encoded;
use crate::error::Error;
use crate::segment::Segment;
use crate::tokenizer::{Options, Tokenizer};

/// Segments of fewer units are not looked for elsewhere in the last prompt: they are encoded sooner.
const WORTH_FINDING: usize = 256;
/// Fewer ids at the end of the last prompt are not taken over: they are encoded sooner than moved.
const WORTH_MOVING: usize = 64;

/// Where the ids of a segment come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Ids of the last prompt: from, to.
    Known(usize, usize),
    /// Encoded now; index among those.
    Encoded(usize),
}

/// A plan for the segments from the first one on that is not the same as in the last prompt.
#[derive(Debug)]
pub(super) struct Plan {
    /// By segment.
    origins: Vec<Origin>,
    /// For the first one, if it goes on where another one ended.
    resume: Option<Resume>,
}

impl Plan {
    /// For `segments`, where the last prompt had `last`, whose ids are those of `ids` from `begin` on.
    pub fn new<S: Source>(
        tokenizer: &Tokenizer,
        last: &[Known<S>],
        (ids, begin): (&[u32], usize),
        segments: &[(S, bool)],
        options: Options,
    ) -> Self {
        let mut origins = moved(last, begin, segments);
        let mut resume = None;
        if let (Some(known), Some((source, allow_special)), Some(Origin::Encoded(_))) =
            (last.first(), segments.first(), origins.first())
            && known.allow_special == *allow_special
        {
            let known = (known.source.text(), &ids[begin..known.end]);
            resume = known::resume(tokenizer, known, source.text(), *allow_special, options.legacy_chunks);
        }
        let mut count = 0;
        for origin in &mut origins {
            if let Origin::Encoded(index) = origin {
                *index = count;
                count += 1;
            }
        }
        Plan { origins, resume }
    }

    /// The ids of what is encoded, and for each segment of that the number of ids up to its end.
    pub fn encode<'a, S: Source>(
        &self,
        tokenizer: &'a Tokenizer,
        segments: &[(S, bool)],
        options: Options,
    ) -> Result<(Encoded<'a>, Vec<usize>), Error> {
        let encoded = |index: &usize| matches!(self.origins[*index], Origin::Encoded(_));
        let segment = |index: usize| {
            let (source, allow_special) = &segments[index];
            Segment { text: source.text(), allow_special: *allow_special }
        };
        let mut texts: Vec<_> = (0..segments.len()).filter(encoded).map(segment).collect();
        let cuts = self.resume.as_ref().map(|resume| {
            let text = &mut texts[0].text;
            *text = text.slice(resume.at, text.len());
            resume.cuts.clone()
        });
        let mut ends = Vec::new();
        match tokenizer.encode_from(&texts, options, cuts, &mut ends) {
            Ok(encoded) => Ok((encoded, ends)),
            Err(error) => Err(error.at_segment(|nth| (0..segments.len()).filter(encoded).nth(nth).unwrap_or(nth))),
        }
    }

    /// Ids of the first segment that are taken over.
    pub fn resumed(&self) -> usize {
        self.resume.as_ref().map_or(0, |resume| resume.ids)
    }

    /// Whether ids are taken over from behind the beginning of the last prompt.
    pub fn moves(&self) -> bool {
        self.origins.iter().any(|origin| matches!(origin, Origin::Known(..)))
    }

    /// For each segment, where its ids end in the prompt, if those that are not there yet begin at `begin`.
    pub fn ends(&self, begin: usize, encoded: &[usize]) -> impl Iterator<Item = usize> {
        self.origins.iter().scan(begin, move |end, origin| {
            let (from, to) = match *origin {
                Origin::Known(from, to) => (from, to),
                Origin::Encoded(index) => range(encoded, index),
            };
            *end += to - from;
            Some(*end)
        })
    }

    /// The number of ids of the prompt, and how many of them are taken over.
    pub fn lens(&self, begin: usize, encoded: &[usize]) -> (usize, usize) {
        let len = self.ends(begin, encoded).last().unwrap_or(begin);
        (len, len - encoded.last().copied().unwrap_or(0))
    }

    /// The ids of all segments, but for what is resumed, from those of the last prompt and those encoded.
    pub fn parts<'i>(&self, last: &'i [u32], fresh: &'i [u32], encoded: &[usize]) -> impl Iterator<Item = &'i [u32]> {
        self.origins.iter().map(move |origin| match *origin {
            Origin::Known(from, to) => &last[from..to],
            Origin::Encoded(index) => {
                let (from, to) = range(encoded, index);
                &fresh[from..to]
            }
        })
    }
}

/// Where the ids of a segment are among those encoded.
fn range(ends: &[usize], index: usize) -> (usize, usize) {
    (index.checked_sub(1).map_or(0, |before| ends[before]), ends[index])
}

/// Where the ids of each segment are in the last prompt, if it stood there: at its end, or, if it is long, anywhere.
fn moved<S: Source>(last: &[Known<S>], begin: usize, segments: &[(S, bool)]) -> Vec<Origin> {
    let mut origins = vec![Origin::Encoded(0); segments.len()];
    let start = |index: usize| index.checked_sub(1).map_or(begin, |before| last[before].end);
    let at_end = last.iter().rev().zip(segments.iter().rev()).take_while(|(known, given)| known.is(given)).count();
    let (last_rest, rest) = (last.len() - at_end, segments.len() - at_end);
    if last.last().map_or(begin, |known| known.end) - start(last_rest) >= WORTH_MOVING {
        for (origin, index) in origins[rest..].iter_mut().zip(last_rest..) {
            *origin = Origin::Known(start(index), last[index].end);
        }
    }
    let is_worth = |source: &S| source.text().len() >= WORTH_FINDING;
    if !last.iter().any(|known| is_worth(&known.source)) || !segments[..rest].iter().any(|(source, _)| is_worth(source))
    {
        return origins;
    }
    let state = RandomState::new();
    let print = |source: &S, allow_special: bool| {
        let mut prints = Prints::new(&state);
        prints.add(source.text(), allow_special);
        prints.print()
    };
    let candidates = last.iter().enumerate().filter(|(_, known)| is_worth(&known.source));
    let by_print: HashMap<u64, usize> =
        candidates.map(|(index, known)| (print(&known.source, known.allow_special), index)).collect();
    for (origin, given) in origins[..rest].iter_mut().zip(segments) {
        let (source, allow_special) = given;
        let found = is_worth(source).then(|| by_print.get(&print(source, *allow_special))).flatten();
        if let Some(&index) = found.filter(|&&index| last[index].is(given)) {
            *origin = Origin::Known(start(index), last[index].end);
        }
    }
    origins
}
