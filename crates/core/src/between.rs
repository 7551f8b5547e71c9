//! What comes between the pre-tokens of a batch: ids that are known without looking, places of which somebody wants to
//! know where they are in the output, and short segments whose ids are to be remembered.

use crate::lookup::cache::{Ids, SHORT_IDS};
use crate::lookup::phrases::{Phrase, Phrases};
use crate::num::{ix, to_u32};
use crate::unknown::Unknown;

/// Ids or events that are enough for a pass, however few pre-tokens there are.
const ENOUGH: usize = 1 << 10;

/// All that comes between, in order.
#[derive(Debug, Default)]
pub(crate) struct Between {
    events: Vec<Event>,
    /// The ids of all [`What::Ids`].
    ids: Vec<u32>,
}

#[derive(Debug)]
struct Event {
    /// Pre-tokens of the batch before it.
    at: u32,
    what: What,
}

#[derive(Debug)]
enum What {
    /// The next so many ids.
    Ids(u32),
    /// A place that is marked so many times.
    Mark(usize),
    /// Here begins a short segment,
    Begin,
    /// and ends.
    End(Phrase),
}

impl Between {
    pub fn clear(&mut self) {
        self.events.clear();
        self.ids.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Whether it is time to work them off.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.ids.len().max(self.events.len()) >= ENOUGH
    }

    /// Number of ids.
    pub fn ids(&self) -> usize {
        self.ids.len()
    }

    /// Gives memory back if there was room for more than `most` of either.
    pub fn shrink(&mut self, most: usize) {
        if self.events.capacity().max(self.ids.capacity()) > most {
            *self = Between::default();
        }
    }

    /// Adds an id behind `at` pre-tokens.
    #[inline]
    pub fn id(&mut self, at: usize, id: u32) {
        self.ids.push(id);
        self.count(at, 1);
    }

    /// Adds the ids of a phrase behind `at` pre-tokens.
    #[inline]
    pub fn phrase(&mut self, at: usize, ids: &Ids<SHORT_IDS>) {
        // All places at once: cheaper than a copy of unknown length.
        let end = self.ids.len() + ids.count();
        self.ids.extend_from_slice(&ids.places());
        self.ids.truncate(end);
        self.count(at, to_u32(ids.count()));
    }

    #[inline]
    fn count(&mut self, at: usize, n: u32) {
        let at = to_u32(at);
        match self.events.last_mut() {
            Some(Event { at: last, what: What::Ids(count) }) if *last == at => *count += n,
            _ => self.events.push(Event { at, what: What::Ids(n) }),
        }
    }

    /// Marks the place behind `at` pre-tokens `times` over.
    pub fn mark(&mut self, at: usize, times: usize) {
        let at = to_u32(at);
        match self.events.last_mut() {
            _ if times == 0 => {}
            Some(Event { at: last, what: What::Mark(count) }) if *last == at => *count += times,
            _ => self.events.push(Event { at, what: What::Mark(times) }),
        }
    }

    /// Says that a short segment begins behind `at` pre-tokens.
    pub fn begin(&mut self, at: usize) {
        self.events.push(Event { at: to_u32(at), what: What::Begin });
    }

    /// Says that it ends behind `at` pre-tokens: what it gives is remembered, if it began in the same batch and is known.
    pub fn end(&mut self, at: usize, phrase: Phrase) {
        self.events.push(Event { at: to_u32(at), what: What::End(phrase) });
    }

    /// To go through all while the batch is worked off.
    pub fn walk(&self) -> Walk<'_> {
        Walk { events: &self.events, ids: &self.ids, begun: None }
    }
}

/// What is still to come.
pub(crate) struct Walk<'a> {
    events: &'a [Event],
    ids: &'a [u32],
    /// Where in the room the short segment begins that has not ended, and how many pre-tokens were unknown then.
    begun: Option<(usize, usize)>,
}

impl Walk<'_> {
    /// How many pre-tokens, of `n`, come before the next event.
    #[inline(always)]
    pub fn until(&self, n: usize) -> usize {
        self.events.first().map_or(n, |event| ix(event.at).min(n))
    }

    /// Goes through all that is behind `at` pre-tokens. `slots[..len]` has the ids of the batch so far, behind `before`
    /// others; returns how many there are then.
    pub fn pass(
        &mut self,
        at: usize,
        (slots, mut len, before): (&mut [u32], usize, usize),
        unknown: &mut Unknown,
        phrases: &mut Phrases,
    ) -> usize {
        while let Some((event, rest)) = self.events.split_first()
            && ix(event.at) <= at
        {
            self.events = rest;
            match event.what {
                What::Ids(n) => {
                    let (these, rest) = self.ids.split_at(ix(n));
                    slots[len..len + these.len()].copy_from_slice(these);
                    self.ids = rest;
                    len += these.len();
                }
                What::Mark(times) => (0..times).for_each(|_| unknown.mark(before + len)),
                What::Begin => self.begun = Some((len, unknown.count())),
                What::End(phrase) => {
                    if let Some((from, count)) = self.begun.take()
                        && count == unknown.count()
                        && !unknown.has_lost()
                    {
                        phrases.put(phrase, &slots[from..len]);
                    }
                }
            }
        }
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup::Key;
    use crate::tokenizer::Identity;

    /// What is learned of a phrase that gives the id 7, and in the midst of which `happens`.
    fn learned(unknown: &mut Unknown, happens: impl FnOnce(&mut Unknown)) -> Option<Vec<u32>> {
        let phrase = Phrase::new(b"a phrase", false).unwrap();
        let mut phrases = Phrases::default();
        phrases.of(&Identity::new());
        let mut between = Between::default();
        between.begin(0);
        between.id(0, 7);
        between.end(1, phrase);
        let (mut slots, mut walk) = ([0; 8], between.walk());
        let len = walk.pass(0, (&mut slots, 0, 0), unknown, &mut phrases);
        happens(unknown);
        assert_eq!(walk.pass(1, (&mut slots, len, 0), unknown, &mut phrases), 1);
        phrases.get(phrase).map(|ids| ids.places()[..ids.count()].to_vec())
    }

    #[test]
    fn what_is_not_known_whole_is_not_learned() {
        let push = |unknown: &mut Unknown| unknown.push(0, b"x", Key::default(), 0);
        let lose = |unknown: &mut Unknown| unknown.lose(3);
        let mut waits = Unknown::default();
        push(&mut waits);
        let mut lost = Unknown::default();
        lose(&mut lost);
        assert_eq!(learned(&mut Unknown::default(), |_| ()), Some(vec![7]));
        assert_eq!(learned(&mut waits, |_| ()), Some(vec![7]));
        assert_eq!(learned(&mut waits, push), None);
        assert_eq!(learned(&mut Unknown::default(), lose), None);
        assert_eq!(learned(&mut lost, lose), None);
    }
}
