//! Which character of a text each character of its normalized form is from.
//!
//! The rule is that of the `tokenizers` package, whose offsets say so. A decomposition begins with a character that
//! replaces the one it is of, and adds the others. A composition removes the character that it takes in, if that one
//! replaced one and was not added. The marks of a run are put in order first, each with what was said of it. Then one
//! goes through both texts: what replaces comes from the next character of the text, and what is removed is left out
//! behind it; what is added comes from the same as the one before.
//!
//! So a composed character comes from the first of those that it is made of, and the others from none.

use unicode_normalization::char::{canonical_combining_class, compose, decompose_canonical, decompose_compatible};

use super::{Normalizer, is_newer};

/// A character of the result, and how many it adds (one, or none if it replaces one) less how many it removes.
type Change = (char, isize);

impl Normalizer {
    /// For each byte of the normalized text, the range in bytes of the character of `text` that it is from. None if that
    /// is not known: of a normalizer that does more than to compose and decompose.
    pub(crate) fn origins(&self, text: &str, normalized: &str) -> Option<Vec<(usize, usize)>> {
        let (result, origins) = self.aligned(text.chars().collect())?;
        if !result.iter().copied().eq(normalized.chars()) {
            return None;
        }
        let ranges: Vec<_> = text.char_indices().map(|(at, c)| (at, at + c.len_utf8())).collect();
        let bytes = result.iter().zip(origins);
        Some(bytes.flat_map(|(c, origin)| std::iter::repeat_n(ranges[origin], c.len_utf8())).collect())
    }

    /// The result, and for each of its characters the index of the one that it is from.
    fn aligned(&self, text: Vec<char>) -> Option<(Vec<char>, Vec<usize>)> {
        let changes: Vec<Change> = match self {
            Normalizer::Nfd => decomposed(&text, canonical).map(|(c, change, _)| (c, change)).collect(),
            Normalizer::Nfkd => decomposed(&text, compatible).map(|(c, change, _)| (c, change)).collect(),
            Normalizer::Nfc => composed(decomposed(&text, canonical)),
            Normalizer::Nfkc => composed(decomposed(&text, compatible)),
            Normalizer::Lowercase => {
                text.iter().flat_map(|c| c.to_lowercase().zip([0].into_iter().chain(std::iter::repeat(1)))).collect()
            }
            Normalizer::Sequence(steps) => {
                let mut origins: Vec<usize> = (0..text.len()).collect();
                let mut chars = text;
                for step in steps {
                    let (next, from) = step.aligned(chars)?;
                    origins = from.into_iter().map(|at| origins[at]).collect();
                    chars = next;
                }
                return Some((chars, origins));
            }
            _ => return None,
        };
        let mut at = 0_usize;
        let mut origins = Vec::with_capacity(changes.len());
        for &(_, change) in &changes {
            if change > 0 {
                origins.push(at.checked_sub(1)?);
            } else {
                origins.push(at);
                at += 1 + change.unsigned_abs();
            }
        }
        (origins.iter().all(|&origin| origin < text.len()))
            .then(|| (changes.into_iter().map(|(c, _)| c).collect(), origins))
    }
}

fn canonical(c: char, out: &mut dyn FnMut(char)) {
    decompose_canonical(c, out);
}

fn compatible(c: char, out: &mut dyn FnMut(char)) {
    decompose_compatible(c, out);
}

/// The decomposition of a text, its marks in order, with the combining class of each; [`NEWER`] for newer characters.
fn decomposed<'t>(
    text: &'t [char],
    each: fn(char, &mut dyn FnMut(char)),
) -> impl Iterator<Item = (char, isize, u16)> + 't {
    let mut all: Vec<(char, isize, u16)> = Vec::with_capacity(text.len());
    // Marks behind here are not in order yet.
    let mut settled = 0;
    for &c in text {
        let mut push = |part: char, change: isize, class: u16| {
            if class == 0 || class == NEWER {
                all[settled..].sort_by_key(|&(.., class)| class);
                settled = all.len() + 1;
            }
            all.push((part, change, class));
        };
        if is_newer(c) {
            push(c, 0, NEWER);
            continue;
        }
        let mut change = 0;
        each(c, &mut |part| {
            push(part, change, canonical_combining_class(part).into());
            change = 1;
        });
    }
    all[settled..].sort_by_key(|&(.., class)| class);
    all.into_iter()
}

/// No combining class: of a character that never combines.
const NEWER: u16 = u16::MAX;

fn composed(parts: impl Iterator<Item = (char, isize, u16)>) -> Vec<Change> {
    let mut out: Vec<Change> = Vec::new();
    // The character that may take others in, and the class of the last mark that it did not.
    let mut starter: Option<usize> = None;
    let mut blocked: Option<u16> = None;
    for (c, change, class) in parts {
        if let Some(at) = starter.filter(|_| class != NEWER && blocked.is_none_or(|last| last < class))
            && let Some(both) = compose(out[at].0, c)
        {
            out[at] = (both, out[at].1 + change - 1);
            continue;
        }
        match class {
            NEWER => (starter, blocked) = (None, None),
            0 => (starter, blocked) = (Some(out.len()), None),
            _ => blocked = Some(class),
        }
        out.push((c, change));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_normalization::UnicodeNormalization;

    fn origins(normalizer: &Normalizer, text: &str) -> (String, Vec<usize>) {
        let (result, origins) = normalizer.aligned(text.chars().collect()).unwrap();
        let result: String = result.into_iter().collect();
        assert_eq!(result, normalizer.apply(text.into()).unwrap());
        (result, origins)
    }

    #[test]
    fn a_composed_character_is_from_its_first_one() {
        assert_eq!(origins(&Normalizer::Nfc, "e\u{301}x"), ("\u{e9}x".into(), vec![0, 2]));
        assert_eq!(origins(&Normalizer::Nfc, "a\u{307}\u{323}b"), ("\u{1ea1}\u{307}b".into(), vec![0, 2, 3]));
        assert_eq!(origins(&Normalizer::Nfc, "\u{1100}\u{1161}\u{11a8}x"), ("\u{ac01}x".into(), vec![0, 3]));
    }

    #[test]
    fn all_of_a_decomposition_is_from_the_one_character() {
        assert_eq!(origins(&Normalizer::Nfd, "\u{e9}x"), ("e\u{301}x".into(), vec![0, 0, 1]));
        assert_eq!(origins(&Normalizer::Nfkc, "\u{fb01}x"), ("fix".into(), vec![0, 0, 1]));
        assert_eq!(origins(&Normalizer::Nfc, "\u{958}x"), ("\u{915}\u{93c}x".into(), vec![0, 0, 1]));
    }

    #[test]
    fn steps_follow_one_another() {
        let steps = Normalizer::Sequence(vec![Normalizer::Nfd, Normalizer::Lowercase, Normalizer::Nfc]);
        assert_eq!(origins(&steps, "\u{c9}\u{130}x"), ("\u{e9}i\u{307}x".into(), vec![0, 1, 1, 2]));
        assert!(Normalizer::Sequence(vec![Normalizer::StripAccents]).aligned(vec!['a']).is_none());
    }

    #[test]
    fn bytes_know_their_character() {
        let nfc = Normalizer::Nfc;
        assert_eq!(nfc.origins("e\u{301}x", "\u{e9}x").unwrap(), [(0, 1), (0, 1), (3, 4)]);
        assert!(nfc.origins("e\u{301}x", "another").is_none());
    }

    #[test]
    fn every_character_is_normalized_as_ever() {
        // All others are like one another.
        let acts = |c: &char| canonical_combining_class(*c) != 0 || !std::iter::once(*c).nfkd().eq([*c]);
        for normalizer in [Normalizer::Nfc, Normalizer::Nfd, Normalizer::Nfkc, Normalizer::Nfkd] {
            for c in ('\0'..='\u{3ff}').chain(('\u{400}'..=char::MAX).filter(acts)) {
                for text in [format!("a{c}\u{301}"), format!("\u{345}{c}\u{323}b")] {
                    origins(&normalizer, &text);
                }
            }
        }
    }
}
