//! The tokens of a `tokenizer.json` as it names them, with a way from name to token.

use std::borrow::Cow;
use std::hash::BuildHasher;

use super::merge_list::Listed;
use crate::hash::{Keys, are_equal, short_words};
use crate::num::{fast_range, ix, to_u32};

/// A token as it is named, and its id.
pub type Entry<'a> = (Cow<'a, str>, u32);

/// Names and ids in the order of the file. A *place* is an index into them.
#[derive(Debug)]
pub struct TokenNames<'a> {
    entries: Vec<Entry<'a>>,
    /// Open addressing.
    slots: Vec<Slot>,
    keys: Keys,
}

/// A name of up to sixteen bytes, whole, so that a look-up goes nowhere else; of a longer one, a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    words: [u64; 2],
    /// Its length, or [`LONG`], or [`VACANT`].
    len: u32,
    place: u32,
}

/// A length that is in no slot of a short name.
const LONG: u32 = 17;
/// No name.
const VACANT: u32 = u32::MAX;

impl<'a> TokenNames<'a> {
    /// Of less than 2^32 entries; None if a name is there twice.
    pub fn new(entries: Vec<Entry<'a>>) -> Option<Self> {
        // At least one stays empty, where every search ends.
        let slots = vec![Slot { words: [0; 2], len: VACANT, place: 0 }; entries.len() + entries.len() / 2 + 1];
        let mut names = TokenNames { entries, slots, keys: Keys::default() };
        for (place, (name, _)) in (0u32..).zip(&names.entries) {
            let (slot, hash) = names.slot(name);
            match names.probe(name, slot, hash) {
                Ok(_) => return None,
                Err(vacant) => names.slots[vacant] = Slot { place, ..slot },
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
        let (slot, hash) = self.slot(name);
        self.probe(name, slot, hash).ok()
    }

    /// The slot of a name but for its place, and the hash that says where it lies.
    #[inline(always)]
    fn slot(&self, name: &str) -> (Slot, u64) {
        match short_words(name.as_bytes()) {
            Some(words) => {
                let len = to_u32(name.len());
                (Slot { words, len, place: 0 }, self.keys.hash_short(words, len))
            }
            None => {
                let hash = self.keys.hash_one(name.as_bytes());
                (Slot { words: [hash, 0], len: LONG, place: 0 }, hash)
            }
        }
    }

    /// The place of a name, or the slot where it would be.
    #[inline(always)]
    fn probe(&self, name: &str, wanted: Slot, hash: u64) -> Result<u32, usize> {
        let mut at = fast_range(hash, self.slots.len());
        loop {
            let slot = self.slots[at];
            if slot.len == VACANT {
                return Err(at);
            }
            if (Slot { place: 0, ..slot }) == wanted && (slot.len != LONG || *self.entries[ix(slot.place)].0 == *name) {
                return Ok(slot.place);
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
            Some((name, _)) if name.len() == left.len() + right.len() => {
                let (start, end) = name.as_bytes().split_at(left.len());
                are_equal(start, left.as_bytes()) && are_equal(end, right.as_bytes())
            }
            _ => false,
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
            // Short names and long ones, and such as differ in their last byte, or in NULs alone.
            let name =
                |n: u32| format!("name {n}{}", ["", "\0", "\0\0", " and some more", " and some morE"][ix(n % 5)]);
            let entries: Vec<Entry<'_>> = (0..count).map(|n| (name(n).into(), n + 7)).collect();
            let names = TokenNames::new(entries.clone()).unwrap();
            for (place, (name, _)) in (0..).zip(&entries) {
                assert_eq!(names.place(name), Some(place));
            }
            assert_eq!(names.place("name"), None);
            assert_eq!(names.place(""), None);
            assert_eq!(names.place(&name(count)), None);
            assert_eq!(names.place("name 1"), None);
            let twice = [&entries[..], &[("name 0".into(), 1)]].concat();
            assert_eq!(TokenNames::new(twice).is_none(), count > 0);
        }
    }
}
