//! The tokens of a `tokenizer.json` as it names them, with a way from name to token.

use std::borrow::Cow;
use std::hash::BuildHasher;

use super::merge_list::Listed;
use crate::hash::Keys;
use crate::num::{fast_range, ix, low_u32};

/// A token as it is named, and its id.
pub type Entry<'a> = (Cow<'a, str>, u32);

/// No token.
const NONE: u64 = u64::MAX;

/// Names and ids in the order of the file. A *place* is an index into them.
#[derive(Debug)]
pub struct TokenNames<'a> {
    entries: Vec<Entry<'a>>,
    /// Open addressing: half of the hash of a name above, the place below; [`NONE`] where empty.
    slots: Vec<u64>,
    keys: Keys,
}

impl<'a> TokenNames<'a> {
    /// Of less than 2^32 entries; None if a name is there twice.
    pub fn new(entries: Vec<Entry<'a>>) -> Option<Self> {
        // At least one stays empty, where every search ends.
        let slots = vec![NONE; entries.len() + entries.len() / 2 + 1];
        let mut names = TokenNames { entries, slots, keys: Keys::default() };
        for (place, (name, _)) in (0u32..).zip(&names.entries) {
            let hash = names.keys.hash_one(name.as_bytes());
            match names.probe(name, hash) {
                Ok(_) => return None,
                Err(vacant) => names.slots[vacant] = hash << 32 | u64::from(place),
            }
        }
        Some(names)
    }

    /// All entries.
    pub fn entries(&self) -> &[Entry<'a>] {
        &self.entries
    }

    /// The place of a name.
    #[inline]
    pub fn place(&self, name: &str) -> Option<u32> {
        self.probe(name, self.keys.hash_one(name.as_bytes())).ok()
    }

    /// The place of a name, or the slot where it would be.
    #[inline]
    fn probe(&self, name: &str, hash: u64) -> Result<u32, usize> {
        let mut at = fast_range(hash, self.slots.len());
        loop {
            let slot = self.slots[at];
            if slot == NONE {
                return Err(at);
            }
            if slot >> 32 == hash & 0xffff_ffff && *self.entries[ix(low_u32(slot))].0 == *name {
                return Ok(low_u32(slot));
            }
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
    }

    /// The places of a pair and of what it makes; `after` is that of what the pair before it made.
    ///
    /// # Errors
    /// The name that is not there.
    #[inline]
    pub fn listed(&self, left: &str, right: &str, after: u32) -> Result<Listed, String> {
        let place = |name: &str| self.place(name).ok_or_else(|| name.to_owned());
        Ok((place(left)?, place(right)?, self.joined(left, right, after)?))
    }

    #[inline]
    fn joined(&self, left: &str, right: &str, after: u32) -> Result<u32, String> {
        // Lists come in the order of what is made: the same token again, or the next.
        let is_joined = |&place: &u32| match self.entries.get(ix(place)) {
            Some((name, _)) => name.len() == left.len() + right.len() && name.strip_prefix(left) == Some(right),
            None => false,
        };
        if let Some(place) = [after.saturating_add(1), after].into_iter().find(is_joined) {
            return Ok(place);
        }
        let joined = [left, right].concat();
        self.place(&joined).ok_or(joined)
    }
}

/// Entries fit: their number is that of a vocabulary.
const _: () = assert!(crate::vocab::MAX_TOKENS < u32::MAX as usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_others_are_not() {
        for count in [0u32, 1, 2, 3, 4, 5, 100, 5000] {
            let entries: Vec<Entry<'_>> = (0..count).map(|n| (format!("name {n}").into(), n + 7)).collect();
            let names = TokenNames::new(entries.clone()).unwrap();
            for (place, (name, _)) in (0..).zip(&entries) {
                assert_eq!(names.place(name), Some(place));
            }
            assert_eq!(names.place("name"), None);
            assert_eq!(names.place(""), None);
            assert_eq!(names.place(&format!("name {count}")), None);
            let twice = [&entries[..], &[("name 0".into(), 1)]].concat();
            assert_eq!(TokenNames::new(twice).is_none(), count > 0);
        }
    }
}
