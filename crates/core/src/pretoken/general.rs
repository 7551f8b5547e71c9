//! Any split pattern, on the general regex engine: the fallback for patterns without a scanner, and
//! the oracle that scanners are tested against.
//!
//! Semantics are tiktoken's: successive leftmost matches; text between matches is not encoded. Or, for a list of
//! [`Stage`]s, those of Hugging Face's tokenizers.
//!
//! The engine backtracks where the pattern looks ahead, under a step limit: a pattern that would
//! run away gives [`Error::Pattern`], never a hang.

use std::sync::Arc;

use super::Batch;
use super::stage::{Stage, split};
use crate::error::Error;
use crate::num::to_u32;

/// A compiled general pattern. Cheap to clone (the program is shared).
#[derive(Debug, Clone)]
pub struct GeneralPattern {
    plan: Plan,
}

#[derive(Debug, Clone)]
enum Plan {
    /// The matches of one regex.
    Matches(Arc<fancy_regex::Regex>),
    /// What several stages leave.
    Stages(Arc<[Stage]>),
}

/// Pre-tokens of a text that had no room in the batch. Several stages cannot begin in the middle of a text: a stage needs
/// its whole piece, which may be the text.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Address and length of the text.
    text: (usize, usize),
    /// All pre-tokens of the text, in bytes.
    ranges: Vec<(u32, u32)>,
    /// The first of them that waits.
    next: usize,
}

impl GeneralPattern {
    /// Compiles `regex`, in the syntax of `fancy-regex` (as tiktoken).
    ///
    /// # Errors
    /// [`Error::Pattern`] with the engine's reason.
    pub fn new(regex: &str) -> Result<Self, Error> {
        check_length(regex)?;
        let regex = fancy_regex::Regex::new(regex).map_err(|e| Error::Pattern(e.to_string()))?;
        Ok(GeneralPattern { plan: Plan::Matches(regex.into()) })
    }

    /// The pieces of one stage are split by the next.
    #[must_use]
    pub fn of_stages(stages: Vec<Stage>) -> Self {
        GeneralPattern { plan: Plan::Stages(stages.into()) }
    }

    pub(super) fn fill(&self, text: &[u8], at: usize, batch: &mut Batch) -> Result<usize, Error> {
        match &self.plan {
            Plan::Matches(regex) => fill_matches(regex, text, at, batch),
            Plan::Stages(stages) => fill_pieces(stages, text, at, batch),
        }
    }
}

/// Bytes of the longest pattern that is compiled: 30 times any that is known. The engine takes some hundred bytes for
/// each, before it says that a program is too large.
const MOST_BYTES: usize = 1 << 16;

/// Refuses a pattern that is too long to be one.
///
/// # Errors
/// [`Error::Pattern`].
pub(crate) fn check_length(regex: &str) -> Result<(), Error> {
    if regex.len() <= MOST_BYTES {
        return Ok(());
    }
    Err(Error::Pattern(format!("it has {} bytes; no pattern of more than {MOST_BYTES} is compiled", regex.len())))
}

fn fill_matches(regex: &fancy_regex::Regex, text: &[u8], mut at: usize, batch: &mut Batch) -> Result<usize, Error> {
    let text = std::str::from_utf8(text).map_err(|e| Error::Pattern(e.to_string()))?;
    while at < text.len() && !batch.is_full() {
        match regex.find_from_pos(text, at).map_err(|e| Error::Pattern(e.to_string()))? {
            None => return Ok(text.len()),
            Some(found) if found.start() == found.end() => {
                // An empty match: step over one character, as an iterator over matches does.
                at = found.end() + text[found.end()..].chars().next().map_or(1, char::len_utf8);
            }
            Some(found) => {
                batch.push(found.start(), found.end());
                at = found.end();
            }
        }
    }
    Ok(at.min(text.len()))
}

/// A text is split at once, when it is begun; later calls for it find the rest in the batch.
fn fill_pieces(stages: &[Stage], text: &[u8], at: usize, batch: &mut Batch) -> Result<usize, Error> {
    let mut waiting = std::mem::take(&mut batch.waiting);
    let key = (text.as_ptr().addr(), text.len());
    let goes_on = at > 0 && waiting.text == key && waiting.ranges.get(waiting.next).is_some_and(|r| r.0 == to_u32(at));
    if !goes_on {
        let ranges = split(stages, text)?;
        let next = ranges.partition_point(|range| range.0 < to_u32(at));
        waiting = Waiting { text: key, ranges, next };
    }
    while let Some(&(start, end)) = waiting.ranges.get(waiting.next) {
        if batch.is_full() {
            batch.waiting = waiting;
            return Ok(crate::num::ix(start));
        }
        batch.push_range(start, end);
        waiting.next += 1;
    }
    Ok(text.len())
}
