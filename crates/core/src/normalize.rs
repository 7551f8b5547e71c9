//! Normalizers: what some models do to a text before they split it.
//!
//! The oracle is the `tokenizers` package. Its tables of Unicode are older than those of the crate that does the work
//! here; a character that came later is to it one that never changes and never combines. So text is normalized between
//! such characters (`is_newer`), and they are left as they are.
//!
//! Cost: nothing is copied where nothing changes. NFC takes eight bytes of ASCII at a time, and a look at each other
//! character, most of which are known by their range; only stretches that may change are normalized.

mod align;
#[rustfmt::skip]
mod newer;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use unicode_normalization::char::{canonical_combining_class, is_combining_mark};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::error::Error;
use crate::num::ix;
use crate::pretoken::check_length;
use newer::NEWER;

/// Steps from a text to the one that is split.
#[derive(Debug, Clone)]
pub enum Normalizer {
    /// Canonical composition.
    Nfc,
    /// Canonical decomposition.
    Nfd,
    /// Compatibility composition.
    Nfkc,
    /// Compatibility decomposition.
    Nfkd,
    /// Every character in lower case, whatever stands around it.
    Lowercase,
    /// Without white space at the ends.
    Strip {
        /// At the start.
        left: bool,
        /// At the end.
        right: bool,
    },
    /// Without combining marks.
    StripAccents,
    /// Some text in place of other.
    Replace(Replace),
    /// Text before one that is not empty.
    Prepend(String),
    /// One after the other.
    Sequence(Vec<Normalizer>),
}

/// What is replaced, and by what.
#[derive(Debug, Clone)]
pub struct Replace {
    wanted: Wanted,
    content: String,
}

#[derive(Debug, Clone)]
enum Wanted {
    Text(String),
    Regex(Arc<fancy_regex::Regex>),
}

impl Replace {
    /// Every occurrence of `text` by `content`.
    #[must_use]
    pub fn text(text: impl Into<String>, content: impl Into<String>) -> Self {
        Replace { wanted: Wanted::Text(text.into()), content: content.into() }
    }

    /// Every match of `regex` by `content`, in which nothing has a meaning of its own.
    ///
    /// The syntax is that of Ruby, as the `tokenizers` package has it: `^` and `$` mean lines.
    ///
    /// # Errors
    /// [`Error::Pattern`] if it does not compile; [`Error::Unsupported`] for what means another thing in Ruby.
    pub fn regex(regex: &str, content: impl Into<String>) -> Result<Self, Error> {
        if let Some(part) = unlike_ruby(regex) {
            return Err(Error::Unsupported(format!(
                "the normalizer replaces {regex:?}, in which {part:?} has a meaning that depends on the regex engine; \
                 use the `tokenizers` package for this model"
            )));
        }
        check_length(regex)?;
        let regex = fancy_regex::Regex::new(&format!("(?m){regex}")).map_err(|e| Error::Pattern(e.to_string()))?;
        Ok(Replace { wanted: Wanted::Regex(regex.into()), content: content.into() })
    }

    /// The text with all replaced, of `most` bytes at the most.
    fn apply<'t>(&self, text: Cow<'t, str>, most: usize) -> Result<Cow<'t, str>, Error> {
        let mut out = String::new();
        let mut done = 0;
        let mut is_changed = false;
        let mut replace = |found: Range<usize>| {
            check_growth(out.len() + (found.start - done) + self.content.len(), most)?;
            out.push_str(&text[done..found.start]);
            out.push_str(&self.content);
            done = found.end;
            is_changed = true;
            Ok(())
        };
        match &self.wanted {
            Wanted::Text(wanted) => {
                text.match_indices(wanted).try_for_each(|(at, found)| replace(at..at + found.len()))?;
            }
            Wanted::Regex(regex) => {
                for found in regex.find_iter(&*text) {
                    replace(found.map_err(|e| Error::Pattern(e.to_string()))?.range())?;
                }
            }
        }
        if !is_changed {
            return Ok(text);
        }
        out.push_str(&text[done..]);
        Ok(out.into())
    }
}

/// A text may become so many times as long, and [`ROOM`] more. The forms of Unicode need 11 times; what a file asks for
/// besides could be any number, and fill the memory.
const GROWTH: usize = 64;
const ROOM: usize = 1 << 20;

fn check_growth(len: usize, most: usize) -> Result<(), Error> {
    if len <= most {
        return Ok(());
    }
    Err(Error::Unsupported(format!(
        "the normalizer makes more than {GROWTH} times the text of a text; use the `tokenizers` package for this model"
    )))
}

/// A part of a regex that the engine here understands in another way than Ruby's does.
fn unlike_ruby(regex: &str) -> Option<&str> {
    // An inline flag `m` lets the dot match a newline there; POSIX classes are Unicode there.
    let flags = regex.split("(?").skip(1).map(|rest| &rest[..rest.find([')', ':']).unwrap_or(rest.len())]);
    let flag = flags.filter(|flags| flags.chars().all(|c| "imsxuU-".contains(c))).find(|flags| flags.contains('m'));
    flag.or_else(|| regex.find("[:").map(|at| &regex[at..at + 2]))
}

impl Normalizer {
    /// The text, normalized: if borrowed, a part of the text given.
    ///
    /// # Errors
    /// [`Error::Pattern`] if a regex gave up; [`Error::Unsupported`] if the text grows without measure.
    pub fn apply<'t>(&self, text: Cow<'t, str>) -> Result<Cow<'t, str>, Error> {
        let most = text.len().saturating_mul(GROWTH).saturating_add(ROOM);
        self.apply_within(text, most)
    }

    fn apply_within<'t>(&self, text: Cow<'t, str>, most: usize) -> Result<Cow<'t, str>, Error> {
        Ok(match self {
            Normalizer::Nfc => nfc(text),
            Normalizer::Nfd => {
                let quick = |text: &str| unicode_normalization::is_nfd_quick(settled(text));
                if_needed(text, quick, |part, out| out.extend(part.nfd()))
            }
            Normalizer::Nfkc => {
                let quick = |text: &str| unicode_normalization::is_nfkc_quick(settled(text));
                if_needed(text, quick, |part, out| out.extend(part.nfkc()))
            }
            Normalizer::Nfkd => {
                let quick = |text: &str| unicode_normalization::is_nfkd_quick(settled(text));
                if_needed(text, quick, |part, out| out.extend(part.nfkd()))
            }
            Normalizer::Lowercase => lowercase(text),
            Normalizer::Strip { left, right } => strip(text, *left, *right),
            Normalizer::StripAccents => strip_accents(text),
            Normalizer::Replace(replace) => replace.apply(text, most)?,
            Normalizer::Prepend(_) if text.is_empty() => text,
            Normalizer::Prepend(start) => {
                check_growth(start.len() + text.len(), most)?;
                format!("{start}{text}").into()
            }
            Normalizer::Sequence(steps) => steps.iter().try_fold(text, |text, step| step.apply_within(text, most))?,
        })
    }
}

/// Whether a character is a mark, decomposes or combines, but not so in the older tables of the `tokenizers` package.
fn is_newer(c: char) -> bool {
    let c = u32::from(c);
    if c < NEWER[0].0 {
        return false;
    }
    let next = NEWER.partition_point(|&(first, _)| first <= c);
    c <= NEWER[next - 1].1
}

/// The characters of a text, but one that never changes in place of those that are new.
fn settled(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().map(|c| if is_newer(c) { 'a' } else { c })
}

/// Whether NFC parts before the character: it never changes, and nothing before it combines with it or is moved behind it.
#[inline(always)]
fn begins_anew(c: char) -> bool {
    // In each of these ranges all characters do.
    if matches!(c, '\0'..'\u{300}' | '\u{388}'..'\u{483}' | '\u{48a}'..'\u{591}' | '\u{2002}'..'\u{20d0}'
        | '\u{3041}'..'\u{3099}' | '\u{30a1}'..'\u{a66f}' | '\u{ac00}'..'\u{d7a4}' | '\u{ff01}'..'\u{fff0}'
        | '\u{1f300}'..'\u{1fb00}')
    {
        return true;
    }
    match BEGIN_ANEW.get(ix(u32::from(c) / 64)) {
        Some(bits) => bits >> (u32::from(c) % 64) & 1 == 1,
        None => is_starter(c),
    }
}

/// The same for the characters below U+10000, a bit each; made in a millisecond when it is first needed.
static BEGIN_ANEW: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let is_set = |c: u32| char::from_u32(c).is_some_and(is_starter);
    let word = |word: u32| (0..64).filter(|bit| is_set(word * 64 + bit)).fold(0, |bits, bit| bits | 1 << bit);
    (0..0x1_0000 / 64).map(word).collect()
});

fn is_starter(c: char) -> bool {
    is_newer(c) || canonical_combining_class(c) == 0 && is_nfc_quick(std::iter::once(c)) == IsNormalized::Yes
}

/// The next stretch of a text, from `at` on, that may change: from one place where NFC parts to another. `at` is such a
/// place, too.
fn next_in_doubt(text: &str, mut at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let mut start = at;
    let mut last_class = 0;
    loop {
        // ASCII begins anew: only the last of it can be part of a stretch.
        let from = at;
        while bytes.get(at..at + 8).is_some_and(|eight| eight.is_ascii()) {
            at += 8;
        }
        if at > from {
            (start, last_class) = (at - 1, 0);
        }
        let c = text[at..].chars().next()?;
        if begins_anew(c) {
            // A newer one is as if it were not there.
            start = if is_newer(c) { at + c.len_utf8() } else { at };
            last_class = 0;
        } else {
            let class = canonical_combining_class(c);
            if class < last_class || is_nfc_quick(std::iter::once(c)) != IsNormalized::Yes {
                let rest = text[at..].char_indices().find(|&(_, c)| begins_anew(c));
                return Some(start..rest.map_or(text.len(), |(len, _)| at + len));
            }
            last_class = class;
        }
        at += c.len_utf8();
    }
}

fn nfc(text: Cow<'_, str>) -> Cow<'_, str> {
    let mut out = String::new();
    // All before is in `out`, if there is anything.
    let mut done = 0;
    let mut at = 0;
    while let Some(stretch) = next_in_doubt(&text, at) {
        at = stretch.end;
        let part = &text[stretch.clone()];
        if part.nfc().ne(part.chars()) {
            if out.is_empty() {
                out.reserve(text.len());
            }
            out.push_str(&text[done..stretch.start]);
            out.extend(part.nfc());
            done = at;
        }
    }
    if done == 0 {
        return text;
    }
    out.push_str(&text[done..]);
    out.into()
}

/// The text, normalized by `normalize` between newer characters unless `quick` says that there is no need.
fn if_needed<'t>(
    text: Cow<'t, str>,
    quick: impl Fn(&str) -> IsNormalized,
    normalize: impl Fn(&str, &mut String),
) -> Cow<'t, str> {
    if text.is_ascii() || quick(&text) == IsNormalized::Yes {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    for part in text.split_inclusive(is_newer) {
        let old = part.trim_end_matches(is_newer);
        normalize(old, &mut out);
        out.push_str(&part[old.len()..]);
    }
    out.into()
}

fn lowercase(text: Cow<'_, str>) -> Cow<'_, str> {
    let is_lower = |c: char| {
        let mut lower = c.to_lowercase();
        lower.next() == Some(c) && lower.next().is_none()
    };
    if text.is_ascii() {
        return if text.bytes().any(|b| b.is_ascii_uppercase()) { text.to_ascii_lowercase().into() } else { text };
    }
    if text.chars().all(is_lower) { text } else { text.chars().flat_map(char::to_lowercase).collect() }
}

fn strip(text: Cow<'_, str>, left: bool, right: bool) -> Cow<'_, str> {
    let strip = |text: &str| {
        let end = if right { text.trim_end().len() } else { text.len() };
        let start = if left { end - text[..end].trim_start().len() } else { 0 };
        (start, end)
    };
    let (start, end) = strip(&text);
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[start..end]),
        Cow::Owned(mut text) => {
            text.truncate(end);
            text.drain(..start);
            Cow::Owned(text)
        }
    }
}

fn strip_accents(text: Cow<'_, str>) -> Cow<'_, str> {
    // The two were marks until Unicode 12.
    let is_mark = |c: char| is_combining_mark(c) || matches!(c, '\u{1cf2}' | '\u{1cf3}');
    let is_accent = |c: char| !c.is_ascii() && is_mark(c) && !is_newer(c);
    if text.chars().any(is_accent) { text.chars().filter(|&c| !is_accent(c)).collect() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_normalization::char::is_public_assigned;

    fn apply(normalizer: &Normalizer, text: &str) -> String {
        normalizer.apply(text.into()).unwrap().into_owned()
    }

    fn chars() -> impl Iterator<Item = char> {
        '\0'..=char::MAX
    }

    #[test]
    fn what_does_not_change_is_not_copied() {
        let replace = Replace::regex("x{2,}", "x").unwrap();
        let accents = [Normalizer::Nfd, Normalizer::StripAccents];
        let normalizers = [
            Normalizer::Nfc,
            Normalizer::Nfkc,
            Normalizer::Lowercase,
            Normalizer::Replace(Replace::text("  ", " ")),
            Normalizer::Replace(replace),
            Normalizer::Strip { left: true, right: true },
            Normalizer::Sequence(accents.to_vec()),
        ];
        for normalizer in normalizers {
            for text in ["", "plain text", "\u{4e2d}\u{6587}\u{1f600}"] {
                assert!(matches!(normalizer.apply(text.into()).unwrap(), Cow::Borrowed(same) if same == text));
            }
        }
        let strip = Normalizer::Strip { left: true, right: true };
        assert!(matches!(strip.apply(" \n a b\u{3000}".into()).unwrap(), Cow::Borrowed("a b")));
    }

    #[test]
    fn forms_compose_and_decompose() {
        let text = "e\u{301}\u{327} \u{e9} \u{fb01} \u{ac01} \u{212b}";
        let want = [
            "\u{229}\u{301} \u{e9} \u{fb01} \u{ac01} \u{c5}",
            "e\u{327}\u{301} e\u{301} \u{fb01} \u{1100}\u{1161}\u{11a8} A\u{30a}",
            "\u{229}\u{301} \u{e9} fi \u{ac01} \u{c5}",
            "e\u{327}\u{301} e\u{301} fi \u{1100}\u{1161}\u{11a8} A\u{30a}",
        ];
        let forms = [Normalizer::Nfc, Normalizer::Nfd, Normalizer::Nfkc, Normalizer::Nfkd];
        for (form, want) in forms.iter().zip(want) {
            assert_eq!(apply(form, text), want);
            assert_eq!(apply(form, want), want);
        }
    }

    /// NFC of all between newer characters.
    fn slow_nfc(text: &str) -> String {
        let parts = text.split_inclusive(is_newer).map(|part| {
            let old = part.trim_end_matches(is_newer);
            old.nfc().chain(part[old.len()..].chars()).collect::<String>()
        });
        parts.collect()
    }

    #[test]
    fn nfc_of_every_character_among_others_is_that_of_the_whole() {
        let frames =
            [("", ""), ("a", "e\u{301}"), ("a\u{345}", "\u{301}"), ("\u{1100}", "\u{11a8}"), ("abcdefgh", "\u{323}")];
        for c in chars() {
            for (before, after) in frames {
                let text = format!("{before}{c}{after}");
                assert_eq!(apply(&Normalizer::Nfc, &text), slow_nfc(&text), "{before:?} U+{:04X}", u32::from(c));
            }
        }
    }

    #[test]
    fn nfc_of_stretches_is_that_of_the_whole() {
        // Marks of many classes, parts of Hangul, pairs and what they make, exceptions, newer ones, and plain text.
        let mut pool: Vec<char> = chars().filter(|&c| canonical_combining_class(c) != 0).step_by(11).collect();
        pool.extend(chars().filter(|&c| is_nfc_quick(std::iter::once(c)) != IsNormalized::Yes).step_by(7));
        pool.extend(chars().filter(|&c| is_newer(c)).step_by(17));
        pool.extend(('\u{1100}'..='\u{1200}').step_by(9).chain(('\u{ac00}'..'\u{d7a4}').step_by(997)));
        pool.extend("aeiouAEsnz \u{e9}\u{1e69}\u{4e2d}\u{3b1}\u{928}\u{93c}\u{9c7}\u{9be}\u{1f600}".chars());
        let mut seed = 5u64;
        let mut next = |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(seed >> 33).unwrap() % n
        };
        let (mut changed, mut same) = (0, 0);
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..next(12) {
                match next(4) {
                    0 => text.push_str(&"plain ascii text"[..next(17)]),
                    _ => text.push(pool[next(pool.len())]),
                }
            }
            let want = slow_nfc(&text);
            let got = Normalizer::Nfc.apply(text.as_str().into()).unwrap();
            assert_eq!(got, want, "{text:?}");
            assert_eq!(matches!(got, Cow::Borrowed(_)), want == text);
            let is_same = want == text;
            (changed, same) = (changed + usize::from(!is_same), same + usize::from(is_same));
        }
        assert!(changed > 1000 && same > 1000, "{changed} {same}");
    }

    #[test]
    fn newer_characters_are_as_if_unassigned() {
        assert!(NEWER.windows(2).all(|pair| pair[0].0 <= pair[0].1 && pair[0].1 < pair[1].0));
        // U+1E4EC has a combining class, U+16D68 is two of U+16D67, U+11938 is a pair: all since Unicode 13.
        let text = "a\u{345}\u{1e4ec}\u{301} \u{16d67}\u{16d67} \u{11938} e\u{301}";
        assert_eq!(apply(&Normalizer::Nfc, text), text.replace("e\u{301}", "\u{e9}"));
        assert_eq!(apply(&Normalizer::Nfkd, text), text);
        assert_eq!(apply(&Normalizer::StripAccents, "a\u{1e4ec}\u{301}"), "a\u{1e4ec}");
        for c in chars().filter(|&c| is_newer(c)) {
            let first = c.nfd().next().unwrap();
            assert!(is_newer(first) || c.nfc().ne([c]), "U+{:04X} would be made of older ones", u32::from(c));
            assert!(is_public_assigned(c), "U+{:04X} is in the list for nothing", u32::from(c));
        }
        assert!(chars().filter(|&c| canonical_combining_class(c) != 0 && is_newer(c)).count() > 20);
    }

    #[test]
    fn lower_case_minds_no_context() {
        assert_eq!(apply(&Normalizer::Lowercase, "A\u{3a3}\u{130}b"), "a\u{3c3}i\u{307}b");
        assert_eq!(apply(&Normalizer::Lowercase, "ABC"), "abc");
    }

    #[test]
    fn replacements_are_taken_as_they_are() {
        let regex = |regex, content: &str| Normalizer::Replace(Replace::regex(regex, content).unwrap());
        assert_eq!(apply(&regex("(l)(e)", "$1 $2"), "le travail le"), "$1 $2 travail $1 $2");
        assert_eq!(apply(&regex("^a", "X"), "a\na\nb"), "X\nX\nb");
        assert_eq!(apply(&regex("x*", "-"), "axb"), "-a-b-");
        assert_eq!(apply(&Normalizer::Replace(Replace::text("", "X")), "bab"), "XbXaXbX");
        assert_eq!(apply(&Normalizer::Replace(Replace::text("aa", "a")), "aaaaa"), "aaa");
    }

    #[test]
    fn a_text_does_not_grow_without_measure() {
        let doubled = Normalizer::Replace(Replace::text("a", "aa"));
        let by_regex = Normalizer::Replace(Replace::regex("a", "aa").unwrap());
        for step in [doubled, by_regex] {
            assert_eq!(apply(&Normalizer::Sequence(vec![step.clone(); 20]), "a").len(), 1 << 20);
            let many = Normalizer::Sequence(vec![step; 64]);
            assert!(matches!(many.apply("a".into()), Err(Error::Unsupported(_))));
        }
        let long = "b".repeat(ROOM + GROWTH);
        assert_eq!(apply(&Normalizer::Prepend(long[1..].into()), "a").len(), ROOM + GROWTH);
        for step in [Normalizer::Prepend(long.clone()), Normalizer::Replace(Replace::text("a", long.clone() + "b"))] {
            assert!(matches!(step.apply("a".into()), Err(Error::Unsupported(_))));
            assert_eq!(apply(&step, ""), "");
        }
    }
}
