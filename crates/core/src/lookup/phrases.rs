//! Short segments to ids: the few phrases of which the markup of a conversation is made, over and over.
//!
//! A segment is encoded on its own, so equal segments of equal trust have equal ids. One that came before is looked up whole:
//! neither searched for names, nor split. What is here belongs to one tokenizer: another one may split otherwise, and know
//! other names.

use super::cache::{Ids, Pair, SHORT_IDS};
use super::{Key, MAX_KEY_BYTES};
use crate::num::high_bits;
use crate::tokenizer::Identity;

/// Lines of the table, as a power of two: for more than a template has phrases, and few enough to stay near.
const BITS: u32 = 8;

/// A short segment with its trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Phrase(Key);

impl Phrase {
    /// Of a text of 1 to [`MAX_KEY_BYTES`] bytes, if all are ASCII.
    #[inline(always)]
    pub fn new(text: &[u8], allow_special: bool) -> Option<Self> {
        if text.is_empty() || text.len() > MAX_KEY_BYTES {
            return None;
        }
        let key = Key::of_short(text);
        key.is_ascii().then_some(Phrase(if allow_special { key.of_part() } else { key }))
    }

    /// The text, and zeros behind it; the last byte is not one of them.
    #[inline(always)]
    pub fn bytes(self) -> [u8; 16] {
        self.0.bytes()
    }

    /// Bytes of the text.
    #[inline(always)]
    #[allow(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Whether it is trusted.
    pub fn allow_special(self) -> bool {
        self.0.is_of_part()
    }
}

/// What one thread knows of short segments.
#[derive(Debug, Default)]
pub(crate) struct Phrases {
    /// None yet, or 2^[`BITS`].
    lines: Vec<Pair>,
    /// Whose they are.
    owner: Option<Identity>,
}

impl Phrases {
    /// Forgets all, unless it is that tokenizer's.
    #[inline]
    pub fn of(&mut self, owner: &Identity) {
        if self.owner.as_ref() != Some(owner) {
            self.lines.clear();
            self.owner = Some(owner.same());
        }
    }

    /// The ids of a segment, if they are known.
    #[inline(always)]
    pub fn get(&mut self, phrase: Phrase) -> Option<&Ids<SHORT_IDS>> {
        self.lines.get_mut(high_bits(phrase.0.hash(), BITS))?.hit(phrase.0)
    }

    /// Remembers the ids of a segment, if they are few.
    pub fn put(&mut self, phrase: Phrase, ids: &[u32]) {
        let Some(ids) = Ids::pack_any(ids) else { return };
        if self.lines.is_empty() {
            // Without memory for it, nothing is remembered.
            if self.lines.try_reserve_exact(1 << BITS).is_err() {
                return;
            }
            self.lines.resize(1 << BITS, Pair::default());
        }
        self.lines[high_bits(phrase.0.hash(), BITS)].put(phrase.0, ids);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_is_known_with_its_trust_until_another_tokenizer_comes() {
        let (one, other) = (Identity::new(), Identity::new());
        let phrase = |text: &str, trusted| Phrase::new(text.as_bytes(), trusted).unwrap();
        let ids = |phrases: &mut Phrases, phrase| phrases.get(phrase).map(|ids| ids.places()[..ids.count()].to_vec());
        let mut phrases = Phrases::default();
        phrases.of(&one);
        assert_eq!(ids(&mut phrases, phrase("role", false)), None);
        phrases.put(phrase("role", false), &[5, 6]);
        phrases.put(phrase("role", true), &[7]);
        phrases.of(&one);
        assert_eq!(ids(&mut phrases, phrase("role", false)), Some(vec![5, 6]));
        assert_eq!(ids(&mut phrases, phrase("role", true)), Some(vec![7]));
        assert_eq!(ids(&mut phrases, phrase("rol", false)), None);
        phrases.of(&other);
        assert_eq!(ids(&mut phrases, phrase("role", false)), None);
    }

    #[test]
    fn what_does_not_fit_is_not_remembered() {
        let phrase = Phrase::new(b"123456789012345", false).unwrap();
        let mut phrases = Phrases::default();
        phrases.put(phrase, &[]);
        phrases.put(phrase, &[1, 2, 3, 4, 5]);
        phrases.put(phrase, &[1 << 28]);
        assert!(phrases.get(phrase).is_none());
        phrases.put(phrase, &[1, 2, 3, (1 << 28) - 1]);
        assert!(phrases.get(phrase).is_some());
        for text in ["", "1234567890123456", "é", "a\u{80}"] {
            assert_eq!(Phrase::new(text.as_bytes(), false), None, "{text}");
        }
    }

    #[test]
    fn those_of_one_place_push_each_other_out_and_are_never_mixed_up() {
        let mut phrases = Phrases::default();
        let phrase = |i: u32| Phrase::new(i.to_string().as_bytes(), i.is_multiple_of(2)).unwrap();
        for i in 0..5000 {
            phrases.put(phrase(i), &[i, i + 1]);
            assert_eq!(phrases.get(phrase(i)).unwrap().places()[..2], [i, i + 1]);
        }
        let found: Vec<u32> = (0..5000).filter(|&i| phrases.get(phrase(i)).is_some()).collect();
        assert!(found.len() > 400, "{}", found.len());
        assert!(found.iter().all(|&i| phrases.get(phrase(i)).unwrap().places()[0] == i));
    }
}
