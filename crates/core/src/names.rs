//! Names of tokens in text: where they are, and what belongs to them.
//!
//! Names are found leftmost, longest first among those that start at one place (so a name that begins another does
//! not hide it), and do not overlap. [`Names::split`] also minds the [`Flags`] that the files of some models give a
//! token; there each rule is the one of the `tokenizers` package, which such a model was published with.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use aho_corasick::{AhoCorasick, MatchKind};

use crate::error::Error;
use crate::lookup::Key;

/// What a token asks of the text around its name, and of the text in which it is looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    /// The white space before the name belongs to it.
    pub lstrip: bool,
    /// The white space behind the name belongs to it.
    pub rstrip: bool,
    /// The name does not count where a word character stands before or behind it.
    pub single_word: bool,
    /// The name is looked for after normalization, itself normalized; else before.
    pub normalized: bool,
}

impl Flags {
    /// Whether the text around a name matters.
    fn look_around(self) -> bool {
        self.lstrip || self.rstrip || self.single_word
    }
}

/// Passes on the hash that a [`Key`] has of its own.
#[derive(Debug, Default, Clone)]
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

/// A set of names with their matcher.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    matcher: AhoCorasick,
    /// By pattern of the matcher.
    tokens: Vec<(u32, Flags)>,
    /// Names that have a short key, and their ids: most texts in which names count are just one name.
    short: HashMap<Key, u32, BuildHasherDefault<KeyHasher>>,
    look_around: bool,
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// No name: a range of bytes, not empty.
    Text(usize, usize),
    /// A name: the id, and the bytes that belong to it.
    Token(u32, usize),
}

/// Bytes of all names together: forty times those of any model that is known. The matcher takes some hundred bytes for
/// each.
const MOST_BYTES: usize = 4 << 20;

/// Bytes of one name: to build the matcher for one that repeats itself takes the square of its length.
const LONGEST: usize = 1 << 10;

impl Names {
    /// None for no names. Of two equal names the first counts.
    pub fn new(tokens: impl Iterator<Item = (String, u32, Flags)>) -> Result<Option<Self>, Error> {
        let (names, tokens): (Vec<String>, Vec<(u32, Flags)>) =
            tokens.map(|(name, id, flags)| (name, (id, flags))).unzip();
        if names.is_empty() {
            return Ok(None);
        }
        let len: usize = names.iter().map(String::len).sum();
        if len > MOST_BYTES {
            let reason = format!("control tokens: names of {len} bytes together; at most {MOST_BYTES} are read");
            return Err(Error::Vocabulary { line: 0, reason });
        }
        if let Some(name) = names.iter().find(|name| name.len() > LONGEST) {
            let start: String = name.chars().take(20).collect();
            let len = name.len();
            let reason =
                format!("the name of a control token, {start:?}..., has {len} bytes; at most {LONGEST} are read");
            return Err(Error::Vocabulary { line: 0, reason });
        }
        let matcher = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&names)
            .map_err(|e| Error::Vocabulary { line: 0, reason: format!("control tokens: {e}") })?;
        let mut short = HashMap::default();
        for (name, &(id, _)) in names.iter().zip(&tokens) {
            if let Some(key) = Key::new(name.as_bytes()) {
                short.entry(key).or_insert(id);
            }
        }
        let look_around = tokens.iter().any(|(_, flags)| flags.look_around());
        Ok(Some(Names { matcher, tokens, short, look_around }))
    }

    /// Whether [`Names::find`] is all there is to it.
    pub fn are_plain(&self) -> bool {
        !self.look_around
    }

    /// The id, if all of the text is one name: the longest that starts leftmost, and nothing is around it.
    #[inline]
    fn whole(&self, text: &[u8]) -> Option<u32> {
        self.short.get(&Key::new(text)?).copied()
    }

    /// The first name in `text[at..end]`, whatever its flags: start, end, id.
    #[inline]
    pub fn find(&self, text: &[u8], at: usize, end: usize) -> Option<(usize, usize, u32)> {
        if let Some(id) = self.whole(&text[at..end]) {
            return Some((at, end, id));
        }
        let found = self.matcher.find(aho_corasick::Input::new(text).span(at..end))?;
        Some((found.start(), found.end(), self.tokens[found.pattern().as_usize()].0))
    }

    /// Calls `each` for all parts of a text in order.
    ///
    /// As in the `tokenizers` package, a name that lies in the white space behind a token with `rstrip` counts all the
    /// same, unless it has `lstrip` and so begins behind that; what follows it begins at its end.
    pub fn split(&self, text: &str, mut each: impl FnMut(Part) -> Result<(), Error>) -> Result<(), Error> {
        if let Some(id) = self.whole(text.as_bytes()) {
            return each(Part::Token(id, text.len()));
        }
        // All before `done` is accounted for.
        let mut done = 0;
        // The end of the white space that was looked at last: so that no run of it is walked through twice.
        let mut space_end = 0;
        for found in self.matcher.find_iter(text) {
            let (mut start, mut end) = (found.start(), found.end());
            let (id, flags) = self.tokens[found.pattern().as_usize()];
            if flags.single_word && !stands_alone(text, start, end)? {
                continue;
            }
            if flags.lstrip {
                start = if start > done { done + text[done..start].trim_end().len() } else { done };
            }
            if flags.rstrip {
                if end >= space_end {
                    space_end = text.len() - text[end..].trim_start().len();
                }
                end = space_end;
            }
            // All of it belongs to the token before. (Where `end` is the lesser, the package crashes.)
            if end <= start {
                continue;
            }
            if done < start {
                each(Part::Text(done, start))?;
            }
            each(Part::Token(id, end - start))?;
            done = end;
        }
        if done < text.len() { each(Part::Text(done, text.len())) } else { Ok(()) }
    }
}

/// Whether neither a word character before nor one behind `start..end` makes it part of a word.
#[cfg(feature = "general-pattern")]
fn stands_alone(text: &str, start: usize, end: usize) -> Result<bool, Error> {
    let is_word = |c: Option<char>| c.is_some_and(regex_syntax::is_word_character);
    Ok(!is_word(text[..start].chars().next_back()) && !is_word(text[end..].chars().next()))
}

#[cfg(not(feature = "general-pattern"))]
fn stands_alone(_: &str, _: usize, _: usize) -> Result<bool, Error> {
    Err(Error::Unsupported("built without the engine for general patterns, which knows what a word is".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Flags = Flags { lstrip: false, rstrip: false, single_word: false, normalized: false };
    const LEFT: Flags = Flags { lstrip: true, ..NONE };
    const RIGHT: Flags = Flags { rstrip: true, ..NONE };
    const WORD: Flags = Flags { single_word: true, ..NONE };

    /// The parts of a text: text as it is, tokens as `[id:bytes]`.
    fn split(tokens: &[(&str, Flags)], text: &str) -> String {
        let listed = (0..).zip(tokens).map(|(id, (name, flags))| ((*name).to_owned(), id, *flags));
        let names = Names::new(listed).unwrap().unwrap();
        let mut out = String::new();
        names
            .split(text, |part| {
                match part {
                    Part::Text(from, to) => out.push_str(&text[from..to]),
                    Part::Token(id, len) => out.push_str(&format!("[{id}:{len}]")),
                }
                Ok(())
            })
            .unwrap();
        out
    }

    #[test]
    fn white_space_goes_to_the_token_that_asks_for_it() {
        assert_eq!(split(&[("<l>", LEFT)], "a \u{3000}\t<l> b"), "a[0:8] b");
        assert_eq!(split(&[("<r>", RIGHT)], "a <r> \u{2000}\nb"), "a [0:8]b");
        // U+001C is white space in Python, not here.
        assert_eq!(split(&[("<l>", LEFT)], "a\u{1c}<l>"), "a\u{1c}[0:3]");
        assert_eq!(split(&[("<l>", LEFT), ("<r>", RIGHT)], "<r>  <l>  <l>"), "[1:5][0:3][0:5]");
    }

    #[test]
    fn a_single_word_has_no_word_beside_it() {
        let tokens = [("ab", WORD)];
        assert_eq!(split(&tokens, "ab, ab-ab"), "[0:2], [0:2]-[0:2]");
        assert_eq!(split(&tokens, "xab ab_ abé 9ab ab\u{330}"), "xab ab_ abé 9ab ab\u{330}");
        assert_eq!(split(&tokens, "ab"), "[0:2]");
    }

    #[test]
    fn a_name_in_white_space_that_belongs_to_another_counts() {
        let tokens = [("<r>", RIGHT), ("  ", NONE)];
        assert_eq!(split(&tokens, "x<r>     y"), "x[0:8][1:2][1:2] y");
        assert_eq!(split(&tokens, "<r>   "), "[0:6][1:2] ");
    }

    #[test]
    fn of_strips_that_meet_the_first_takes_all() {
        let greedy = Flags { lstrip: true, rstrip: true, ..NONE };
        assert_eq!(split(&[("<r>", RIGHT), (" ", greedy)], "x<r>   y <r>"), "x[0:6]y[1:1][0:3]");
        // Here the package crashes: a token would start behind its end.
        assert_eq!(split(&[("<r>", RIGHT), ("  ", LEFT)], "x<r>    y"), "x[0:7]y");
    }

    #[test]
    fn long_white_space_is_walked_through_once() {
        let greedy = Flags { lstrip: true, rstrip: true, ..NONE };
        let text = " ".repeat(400_000);
        let names = Names::new([(" ".to_owned(), 0, greedy)].into_iter()).unwrap().unwrap();
        let mut tokens = 0;
        names
            .split(&text, |_| {
                tokens += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!(tokens, 1);
    }

    #[test]
    fn names_are_bounded() {
        let of = |count, len| Names::new((0..count).map(|id| ("b".repeat(len), id, NONE)));
        assert!(of(1, LONGEST).is_ok());
        assert!(of(1, LONGEST + 1).unwrap_err().to_string().contains("\"bbbbbbbbbbbbbbbbbbbb\"..., has 1025 bytes"));
        assert!(of(4097, LONGEST).unwrap_err().to_string().contains("names of 4195328 bytes together"));
    }
}
