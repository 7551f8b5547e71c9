//! Prompts that grow: the ids of a conversation that is sent again and again, a little longer each time.
//!
//! A [`Session`] remembers the segments of the last prompt and their ids. What a new prompt begins with is taken over:
//! equal segments without being read where their text lies at the same place, after comparing all bytes where it does not.
//! A segment that begins like the one that stood in its place before goes on where the two part (`known::resume`). Equal
//! segments behind that are taken over from wherever they stood. All else is encoded.
//!
//! Ids are not copied from call to call: they stand in memory that grows at its end ([`Ids`]), and a prompt that goes on
//! where the last one ended adds to it. A prompt that parts from the last one before its end needs other memory, since what
//! was handed out must not change: the session keeps two, and uses them in turn, so that what both have in common is not
//! copied again.
//!
//! Segments are encoded each on its own, so ids of equal segments are equal; that is what all of this rests on.

mod buffer;
mod cache;
mod compare;
mod known;
mod plan;

pub use buffer::Ids;
pub use cache::{SessionCache, Statistics};
pub use known::Source;

use std::sync::Arc;

use crate::error::Error;
use crate::tokenizer::{Options, Tokenizer};
use compare::Comparison;
use plan::Plan;

/// A segment, and where its ids end in those of the prompt.
#[derive(Debug)]
pub(crate) struct Known<S> {
    source: S,
    allow_special: bool,
    end: usize,
}

impl<S: Source> Known<S> {
    /// Whether a segment is the same: by comparing all of it, where it does not lie at the same place.
    fn is(&self, (source, allow_special): &(S, bool)) -> bool {
        self.allow_special == *allow_special && known::equal(self.source.text(), source.text())
    }
}

/// How many segments at the beginning are the same.
fn same_at_first<S: Source>(known: &[Known<S>], given: &[(S, bool)]) -> usize {
    let mut comparison = Comparison::default();
    let mut pairs = known.iter().zip(given).enumerate();
    let differs = pairs.find(|(place, (known, (source, allow_special)))| {
        known.allow_special != *allow_special || !comparison.add(*place, known.source.text(), source.text())
    });
    comparison.first_difference(differs.map_or(known.len().min(given.len()), |(place, _)| place))
}

/// The ids of a prompt, and how many of them were known before.
#[derive(Debug)]
pub struct Grown<S> {
    /// The ids.
    pub ids: Ids,
    /// Of these, not encoded anew.
    pub reused: usize,
    /// How many at the beginning are those of the prompt that it was compared with.
    pub unchanged: usize,
    /// What is not needed any more.
    pub released: Released<S>,
}

/// Texts that are let go, for callers to whom it matters where they are dropped.
#[derive(Debug)]
pub struct Released<S> {
    _texts: Vec<S>,
    _chunks: Vec<Arc<[Known<S>]>>,
}

/// The last prompt of one conversation. See the [module](self).
///
/// # Examples
/// ```
/// # use std::sync::Arc;
/// # use kizami_core::{*, session::Session, special::Controls, pretoken::Pattern};
/// # let tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).chain([b"ab".to_vec()]).collect();
/// # let tables = Tables::build(Vocab::from_ranked(&tokens)?)?;
/// # let tokenizer = Tokenizer::new(tables.into(), Controls::new(vec![], 257)?, Pattern::Kimi);
/// let mut session = Session::<Arc<str>>::default();
/// let first = session.encode(&tokenizer, 0, &mut vec![("abc".into(), false)], Options::default())?;
/// let next = session.encode(&tokenizer, 1, &mut vec![("ab".into(), false)], Options::default())?;
/// assert_eq!((&first.ids[..], first.reused), (&[256, 99][..], 0));
/// assert_eq!((&next.ids[..], next.reused), (&[256, 99, 256][..], 2));
/// # Ok::<(), kizami_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Session<S> {
    known: Vec<Known<S>>,
    ids: Option<Ids>,
    /// Memory of the prompt before, and how many of its ids are those of this one.
    spare: Option<(Ids, usize)>,
    options: Options,
}

impl<S> Default for Session<S> {
    fn default() -> Self {
        Session { known: Vec::new(), ids: None, spare: None, options: Options::default() }
    }
}

impl<S: Source> Session<S> {
    /// Number of segments of the last prompt that the next one may keep: all, unless its options give other ids.
    #[must_use]
    pub fn len(&self, options: Options) -> usize {
        if options.legacy_chunks == self.options.legacy_chunks { self.known.len() } else { 0 }
    }

    /// Forgets all.
    pub fn reset(&mut self) {
        *self = Session::default();
    }

    /// The ids of a prompt that begins with the first `kept` segments of the last one, and goes on with `segments`: what
    /// [`Tokenizer::encode`] gives for all of them. The segments are taken; an error leaves them and the session as they were.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    ///
    /// # Panics
    /// If `kept` is above [`Session::len`].
    pub fn encode(
        &mut self,
        tokenizer: &Tokenizer,
        kept: usize,
        given: &mut Vec<(S, bool)>,
        options: Options,
    ) -> Result<Grown<S>, Error> {
        let segments = &given[..];
        let last = &self.known[..self.len(options)];
        let same = same_at_first(&last[kept..], segments);
        let first = kept + same;
        let begin = first.checked_sub(1).map_or(0, |index| last[index].end);
        let ids = self.ids.as_deref().unwrap_or(&[]);
        let plan = Plan::new(tokenizer, &last[first..], (ids, begin), &segments[same..], options);
        let encoded = plan.encode(tokenizer, &segments[same..], options);
        let (encoded, ends) = encoded.map_err(|error| error.at_segment(|index| first + index))?;
        let begin = begin + plan.resumed();
        let (len, reused) = plan.lens(begin, &ends);
        let ids = if plan.moves() {
            // What is taken over from behind the beginning must outlive it.
            let last = self.ids.clone();
            let ids = last.as_deref().unwrap_or(&[]);
            let fresh = encoded.to_vec()?;
            self.room(begin, len - begin)?.append(len - begin, plan.parts(ids, &fresh, &ends))
        } else {
            self.room(begin, len - begin)?.append(len - begin, encoded.parts())
        };
        let ids = ids.expect("room that was made");
        drop(encoded);
        let ends = plan.ends(begin, &ends);
        let mut segments = std::mem::take(given).into_iter();
        let mut released: Vec<S> = self.known.drain(first..).map(|known| known.source).collect();
        // The newer of two equal texts is kept: it is the one that the caller is likely to give again.
        for (known, (source, _)) in self.known[kept..].iter_mut().zip(segments.by_ref().take(same)) {
            released.push(std::mem::replace(&mut known.source, source));
        }
        let known = |((source, allow_special), end)| Known { source, allow_special, end };
        self.known.extend(segments.zip(ends).map(known));
        self.options = options;
        self.ids = Some(ids.clone());
        Ok(Grown { ids, reused, unchanged: begin, released: Released { _texts: released, _chunks: Vec::new() } })
    }

    /// Memory that begins with the first `begin` ids of the last prompt, and has room for `more` behind them.
    fn room(&mut self, begin: usize, more: usize) -> Result<Ids, Error> {
        let needed = begin + more;
        if let Some(ids) = &mut self.ids
            && ids.capacity() >= needed
            && (ids.len() == begin && ids.is_last() || ids.truncate(begin))
        {
            if let Some((_, common)) = &mut self.spare {
                *common = begin.min(*common);
            }
            return Ok(ids.clone());
        }
        let spare = self.spare.take().and_then(|(mut spare, common)| {
            let common = common.min(begin);
            // Nobody looks at it any more.
            (spare.capacity() >= needed && spare.truncate(common)).then_some((spare, common))
        });
        let (mut base, common) = match spare {
            Some(spare) => spare,
            None => (Ids::with_capacity(roomy(needed))?, 0),
        };
        if let Some(last) = &self.ids {
            base = base.append(begin - common, [&last[common..begin]]).expect("room for what is needed");
            self.spare = Some((last.clone(), begin));
        }
        Ok(base)
    }
}

/// Room to ask for if so many ids are needed: as the prompt grows, copies cost a constant amount an id. What is not used
/// is not touched.
fn roomy(needed: usize) -> usize {
    needed + needed / 2 + (1 << 10)
}
