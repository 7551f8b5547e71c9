//! Control tokens: names that stand for an id in trusted text.
//!
//! Names are found leftmost, longest first among those that start at one place (so a name that begins
//! another does not hide it). Untrusted text never comes here.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use aho_corasick::{AhoCorasick, MatchKind};

use crate::error::Error;
use crate::lookup::Key;
use crate::num::{ix, to_u32};

/// One control token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlToken {
    /// Token id.
    pub id: u32,
    /// The text that names it.
    pub name: String,
    /// The flag of the vocabulary file: left out by a decode that skips special tokens. No meaning for encoding.
    pub skip: bool,
}

/// Passes on the hash that a [`Key`] has of its own.
#[derive(Debug, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("a key writes its hash");
    }
}

/// The control tokens of one model, with their matcher.
#[derive(Debug)]
pub struct Controls {
    tokens: Vec<ControlToken>,
    /// Name to index in `tokens`.
    by_name: HashMap<String, usize>,
    /// Names that have a short key, and their ids: most texts in which names count are just one name.
    short: HashMap<Key, u32, BuildHasherDefault<KeyHasher>>,
    /// Id to index in `tokens`, as `id - first`; `u32::MAX` in gaps.
    by_id: Vec<u32>,
    /// Lowest id.
    first: u32,
    matcher: Option<AhoCorasick>,
}

impl Controls {
    /// From the list of tokens; `vocab_len` ordinary ids come before.
    ///
    /// # Errors
    /// [`Error::Vocabulary`] for an empty name, a name or id that is there twice, or an id below `vocab_len`.
    pub fn new(tokens: Vec<ControlToken>, vocab_len: u32) -> Result<Self, Error> {
        let fault = |reason: String| Err(Error::Vocabulary { line: 0, reason });
        let first = tokens.iter().map(|t| t.id).min().unwrap_or(vocab_len);
        let last = tokens.iter().map(|t| t.id).max().unwrap_or(vocab_len);
        if first < vocab_len {
            return fault(format!("control id {first} belongs to an ordinary token"));
        }
        if ix(last - first) >= 1 << 20 {
            return fault(format!("control ids from {first} to {last} are too far apart"));
        }
        let mut by_name = HashMap::with_capacity(tokens.len());
        let mut by_id = vec![u32::MAX; ix(last - first) + 1];
        for (index, token) in tokens.iter().enumerate() {
            if token.name.is_empty() {
                return fault(format!("control id {} has an empty name", token.id));
            }
            if by_name.insert(token.name.clone(), index).is_some() {
                return fault(format!("control token {:?} is there twice", token.name));
            }
            let slot = &mut by_id[ix(token.id - first)];
            if *slot != u32::MAX {
                return fault(format!("control id {} is there twice", token.id));
            }
            *slot = to_u32(index);
        }
        let short = tokens.iter().filter_map(|t| Some((Key::new(t.name.as_bytes())?, t.id))).collect();
        let matcher = if tokens.is_empty() {
            None
        } else {
            let built =
                AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(tokens.iter().map(|t| &t.name));
            Some(built.map_err(|e| Error::Vocabulary { line: 0, reason: format!("control tokens: {e}") })?)
        };
        Ok(Controls { tokens, by_name, short, by_id, first, matcher })
    }

    /// All control tokens, in the order given.
    #[must_use]
    pub fn tokens(&self) -> &[ControlToken] {
        &self.tokens
    }

    /// One past the highest control id, or 0 if there is none.
    #[must_use]
    pub fn end(&self) -> u32 {
        self.tokens.iter().map(|t| t.id + 1).max().unwrap_or(0)
    }

    /// The control token of that id.
    #[inline]
    #[must_use]
    pub fn by_id(&self, id: u32) -> Option<&ControlToken> {
        let index = *self.by_id.get(ix(id.checked_sub(self.first)?))?;
        self.tokens.get(ix(index))
    }

    /// The id of the control token of that name.
    #[must_use]
    pub fn id_of(&self, name: &[u8]) -> Option<u32> {
        let index = *self.by_name.get(std::str::from_utf8(name).ok()?)?;
        Some(self.tokens[index].id)
    }

    /// The first control token in `text[at..end]`: start, end, id.
    #[inline]
    #[must_use]
    pub fn find(&self, text: &[u8], at: usize, end: usize) -> Option<(usize, usize, u32)> {
        // A whole text that is a name is the longest that starts leftmost.
        if let Some(&id) = Key::new(&text[at..end]).and_then(|key| self.short.get(&key)) {
            return Some((at, end, id));
        }
        let input = aho_corasick::Input::new(text).span(at..end);
        let found = self.matcher.as_ref()?.find(input)?;
        Some((found.start(), found.end(), self.tokens[found.pattern().as_usize()].id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controls(names: &[&str]) -> Result<Controls, Error> {
        let token = |(id, name): (u32, &&str)| ControlToken { id, name: (*name).into(), skip: true };
        Controls::new((300..).zip(names).map(token).collect(), 300)
    }

    #[test]
    fn b68_longest_of_overlapping_names_wins() {
        let controls = controls(&["<a>", "<a><b>", "a"]).unwrap();
        assert_eq!(controls.find(b"x<a><b>y", 0, 8), Some((1, 7, 301)));
        assert_eq!(controls.find(b"x<a><by", 0, 7), Some((1, 4, 300)));
        assert_eq!(controls.find(b"x<a><b>y", 0, 6), Some((1, 4, 300)));
    }

    #[test]
    fn impossible_lists_are_refused() {
        assert!(controls(&["a", "a"]).is_err());
        assert!(controls(&[""]).is_err());
        assert!(Controls::new(vec![ControlToken { id: 3, name: "x".into(), skip: true }], 4).is_err());
    }
}
