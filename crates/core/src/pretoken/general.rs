//! Any split pattern, on the general regex engine: the fallback for patterns without a scanner, and
//! the oracle that scanners are tested against.
//!
//! Semantics are tiktoken's: successive leftmost matches; text between matches is not encoded.
//! The engine backtracks where the pattern looks ahead, under a step limit: a pattern that would
//! run away gives [`Error::Pattern`], never a hang.

use super::Batch;
use crate::error::Error;

/// A compiled general pattern. Cheap to clone (the program is shared).
#[derive(Debug, Clone)]
pub struct GeneralPattern {
    regex: std::sync::Arc<fancy_regex::Regex>,
}

impl GeneralPattern {
    /// Compiles `regex`, in the syntax of `fancy-regex` (as tiktoken).
    ///
    /// # Errors
    /// [`Error::Pattern`] with the engine's reason.
    pub fn new(regex: &str) -> Result<Self, Error> {
        let regex = fancy_regex::Regex::new(regex).map_err(|e| Error::Pattern(e.to_string()))?;
        Ok(GeneralPattern { regex: regex.into() })
    }

    pub(super) fn fill(&self, text: &[u8], mut at: usize, batch: &mut Batch) -> Result<usize, Error> {
        let text = std::str::from_utf8(text).map_err(|e| Error::Pattern(e.to_string()))?;
        while at < text.len() && !batch.is_full() {
            match self.regex.find_from_pos(text, at).map_err(|e| Error::Pattern(e.to_string()))? {
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
}
