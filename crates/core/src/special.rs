//! Control tokens: names that stand for an id in trusted text.
//!
//! Untrusted text recognises none of them. Some vocabularies add tokens that are no control tokens, but runs of white
//! space that their merges do not make; those count in any text.
//!
//! Where no token has [`Flags`] and the model does not normalize, a search is one pass over the text
//! ([`Controls::find`]). Else it is two, as in the `tokenizers` package (`Controls::split`): names that are not
//! normalized are looked for in the text as it is; what is between them is normalized piece by piece, and the other
//! names, normalized as well, are looked for there.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::error::Error;
pub use crate::names::Flags;
use crate::names::{Names, Part};
use crate::normalize::Normalizer;
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
    /// How the name is looked for.
    pub flags: Flags,
}

impl ControlToken {
    /// A token without flags.
    #[must_use]
    pub fn new(id: u32, name: impl Into<String>, skip: bool) -> Self {
        ControlToken { id, name: name.into(), skip, flags: Flags::default() }
    }

    /// Whether it is a part of the vocabulary that stands for text: white space, and nothing says that it is special.
    fn is_space(&self) -> bool {
        !self.skip && self.name.chars().all(char::is_whitespace)
    }
}

/// The names that count in one kind of text.
#[derive(Debug, Clone)]
struct Search {
    /// Looked for in the text as it is.
    raw: Option<Names>,
    /// Looked for in what is left, normalized.
    normalized: Option<Names>,
    /// `raw` is all there is, and plain.
    simple: bool,
}

impl Search {
    fn new<'t>(tokens: impl Iterator<Item = &'t ControlToken>, normalizer: Option<&Normalizer>) -> Result<Self, Error> {
        let (mut raw, mut normalized) = (Vec::new(), Vec::new());
        for token in tokens {
            let list = if token.flags.normalized { &mut normalized } else { &mut raw };
            let name = match normalizer {
                Some(normalizer) if token.flags.normalized => {
                    normalizer.apply(Cow::Borrowed(&token.name))?.into_owned()
                }
                _ => token.name.clone(),
            };
            // The `tokenizers` package would find it between any two characters.
            if name.is_empty() {
                return fault(format!(
                    "added token {:?} is nothing once it is normalized; set its `normalized` to false",
                    token.name
                ));
            }
            list.push((name, token.id, token.flags));
        }
        if normalizer.is_none() && raw.is_empty() {
            std::mem::swap(&mut raw, &mut normalized);
        }
        let (raw, normalized) = (Names::new(raw.into_iter())?, Names::new(normalized.into_iter())?);
        let simple = normalized.is_none() && raw.as_ref().is_none_or(Names::are_plain);
        Ok(Search { raw, normalized, simple })
    }
}

/// A part of a text in which names were looked for.
#[derive(Debug)]
pub(crate) enum Stretch<'s> {
    /// Text to encode on its own, and where it stands in the text given, if it stands there as it is. Not empty.
    Text(&'s str, Option<usize>),
    /// A token: its id, and the bytes that belong to it.
    Token(u32, usize),
}

/// The control tokens of one model, with their matcher.
#[derive(Debug, Clone)]
pub struct Controls {
    /// Control tokens; behind them, the white space of the vocabulary.
    tokens: Vec<ControlToken>,
    /// Number of control tokens.
    controls: usize,
    /// Name to index in `tokens`.
    by_name: HashMap<String, usize>,
    /// Id to index in `tokens`, as `id - first`; `u32::MAX` in gaps.
    by_id: Vec<u32>,
    /// Lowest id.
    first: u32,
    /// For trusted text.
    all: Search,
    /// For untrusted text: white space alone.
    spaces: Search,
}

impl Controls {
    /// From the list of control tokens of a model; `vocab_len` ordinary ids come before.
    ///
    /// # Errors
    /// [`Error::Vocabulary`] for an empty name, a name that is there twice, or an id below `vocab_len`.
    pub fn new(tokens: Vec<ControlToken>, vocab_len: u32) -> Result<Self, Error> {
        if let Some(id) = tokens.iter().map(|t| t.id).filter(|&id| id < vocab_len).min() {
            return fault(format!("control id {id} belongs to an ordinary token"));
        }
        let controls = tokens.len();
        Controls::build(tokens, controls)
    }

    /// From the tokens that a model adds to a vocabulary, whose token of an id is `ordinary(id)`.
    ///
    /// Ids may lie anywhere. All are control tokens, whether flagged so or not, but for white space without the flag,
    /// which is found in untrusted text as well.
    ///
    /// # Errors
    /// [`Error::Vocabulary`] for an empty name, a name that is there twice, or the id of an ordinary token with other
    /// bytes.
    pub fn from_added<'v>(
        tokens: Vec<ControlToken>,
        ordinary: impl Fn(u32) -> Option<&'v [u8]>,
    ) -> Result<Self, Error> {
        for ControlToken { id, name, .. } in &tokens {
            if let Some(bytes) = ordinary(*id).filter(|&bytes| bytes != name.as_bytes()) {
                let bytes = bytes.escape_ascii();
                return fault(format!(
                    "added token {name:?} has id {id}, which is that of the ordinary token b\"{bytes}\""
                ));
            }
        }
        let (spaces, mut tokens): (Vec<_>, Vec<_>) = tokens.into_iter().partition(ControlToken::is_space);
        let controls = tokens.len();
        tokens.extend(spaces);
        Controls::build(tokens, controls)
    }

    fn build(tokens: Vec<ControlToken>, controls: usize) -> Result<Self, Error> {
        let first = tokens.iter().map(|t| t.id).min().unwrap_or(0);
        let last = tokens.iter().map(|t| t.id).max().unwrap_or(0);
        if ix(last - first) >= 1 << 20 {
            return fault(format!("control ids from {first} to {last} are too far apart"));
        }
        if last == u32::MAX {
            return fault(format!("control id {last} is too large"));
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
            // Of two names of an id both count in a text, and the first is what it is decoded to.
            let slot = &mut by_id[ix(token.id - first)];
            *slot = to_u32(index).min(*slot);
        }
        let all = Search::new(tokens.iter(), None)?;
        let spaces = Search::new(tokens[controls..].iter(), None)?;
        Ok(Controls { tokens, controls, by_name, by_id, first, all, spaces })
    }

    /// The same for a model that normalizes.
    ///
    /// # Errors
    /// As [`Normalizer::apply`].
    pub(crate) fn normalized(mut self, normalizer: Option<&Normalizer>) -> Result<Self, Error> {
        self.all = Search::new(self.tokens.iter(), normalizer)?;
        self.spaces = Search::new(self.tokens[self.controls..].iter(), normalizer)?;
        Ok(self)
    }

    /// The same for a model whose own tokenizer reads no names in text: control tokens are put in by id.
    #[must_use]
    pub fn without_names(mut self) -> Self {
        self.all = self.spaces.clone();
        self
    }

    /// All control tokens, in the order given.
    #[must_use]
    pub fn tokens(&self) -> &[ControlToken] {
        &self.tokens[..self.controls]
    }

    /// White space that the vocabulary has besides its ordinary tokens.
    #[must_use]
    pub fn spaces(&self) -> &[ControlToken] {
        &self.tokens[self.controls..]
    }

    /// Whether some id has two names.
    #[must_use]
    pub fn have_aliases(&self) -> bool {
        self.by_id.iter().filter(|&&index| index != u32::MAX).count() != self.tokens.len()
    }

    /// Bytes of the longest name, or 0 if there is none.
    #[must_use]
    pub fn longest_name(&self) -> usize {
        self.tokens.iter().map(|t| t.name.len()).max().unwrap_or(0)
    }

    /// One past the highest id, or 0 if there is none.
    #[must_use]
    pub fn end(&self) -> u32 {
        // Every decoding asks for it.
        if self.tokens.is_empty() { 0 } else { self.first + to_u32(self.by_id.len()) }
    }

    /// The token of that id.
    #[inline]
    #[must_use]
    pub fn by_id(&self, id: u32) -> Option<&ControlToken> {
        let index = *self.by_id.get(ix(id.checked_sub(self.first)?))?;
        self.tokens.get(ix(index))
    }

    /// The id of the token of that name.
    #[must_use]
    pub fn id_of(&self, name: &[u8]) -> Option<u32> {
        let index = *self.by_name.get(std::str::from_utf8(name).ok()?)?;
        Some(self.tokens[index].id)
    }

    fn search(&self, trusted: bool) -> &Search {
        if trusted { &self.all } else { &self.spaces }
    }

    /// The names that are looked for in the text as it is, and those in what is left, normalized.
    pub(crate) fn names(&self, trusted: bool) -> (Option<&Names>, Option<&Names>) {
        let Search { raw, normalized, .. } = self.search(trusted);
        (raw.as_ref(), normalized.as_ref())
    }

    /// Whether such text, if it is as the normalizer leaves it, needs no [`Controls::split`]: [`Controls::find`] does if it is
    /// trusted, and else there is nothing to find.
    #[inline]
    pub(crate) fn is_simple(&self, trusted: bool) -> bool {
        let search = self.search(trusted);
        search.simple && (trusted || search.raw.is_none())
    }

    /// The first token in `text[at..end]`, which is trusted: start, end, id. Flags are not minded.
    #[inline]
    #[must_use]
    pub fn find(&self, text: &[u8], at: usize, end: usize) -> Option<(usize, usize, u32)> {
        self.all.raw.as_ref()?.find(text, at, end)
    }

    /// Calls `each` for all stretches of a text in order, minding flags and the normalizer: the one that was given to
    /// [`Controls::normalized`].
    pub(crate) fn split(
        &self,
        text: &str,
        trusted: bool,
        normalizer: Option<&Normalizer>,
        mut each: impl FnMut(Stretch<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Search { raw, normalized, .. } = self.search(trusted);
        parts(raw.as_ref(), text, &mut |part| {
            let (from, to) = match part {
                Part::Token(id, len) => return each(Stretch::Token(id, len)),
                Part::Text(from, to) => (from, to),
            };
            let piece = match normalizer {
                Some(normalizer) => normalizer.apply(Cow::Borrowed(&text[from..to]))?,
                None => Cow::Borrowed(&text[from..to]),
            };
            let place = match piece {
                // It may have lost something at its ends.
                Cow::Borrowed(rest) => Some(from + (rest.as_ptr().addr() - text[from..].as_ptr().addr())),
                Cow::Owned(_) => None,
            };
            parts(normalized.as_ref(), &piece, &mut |part| match part {
                Part::Token(id, len) => each(Stretch::Token(id, len)),
                Part::Text(from, to) => each(Stretch::Text(&piece[from..to], place.map(|place| place + from))),
            })
        })
    }
}

/// Calls `each` for all parts of a text, which is one where there are no names.
pub(crate) fn parts(
    names: Option<&Names>,
    text: &str,
    each: &mut impl FnMut(Part) -> Result<(), Error>,
) -> Result<(), Error> {
    match names {
        Some(names) => names.split(text, each),
        None if text.is_empty() => Ok(()),
        None => each(Part::Text(0, text.len())),
    }
}

fn fault<T>(reason: String) -> Result<T, Error> {
    Err(Error::Vocabulary { line: 0, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controls(names: &[&str]) -> Result<Controls, Error> {
        let token = |(id, name): (u32, &&str)| ControlToken::new(id, *name, true);
        Controls::new((300..).zip(names).map(token).collect(), 300)
    }

    /// The stretches of a text: text as it is, tokens as `[id]`.
    fn split(controls: &Controls, trusted: bool, normalizer: Option<&Normalizer>, text: &str) -> String {
        let mut out = String::new();
        controls
            .split(text, trusted, normalizer, |stretch| {
                match stretch {
                    Stretch::Token(id, _) => out.push_str(&format!("[{id}]")),
                    Stretch::Text(part, place) => {
                        assert!(place.is_none_or(|at| text[at..].starts_with(part)));
                        out.push_str(&format!("({part})"));
                    }
                }
                Ok(())
            })
            .unwrap();
        out
    }

    #[test]
    fn b68_longest_of_overlapping_names_wins() {
        let controls = controls(&["<a>", "<a><b>", "a"]).unwrap();
        assert_eq!(controls.find(b"x<a><b>y", 0, 8), Some((1, 7, 301)));
        assert_eq!(controls.find(b"x<a><by", 0, 7), Some((1, 4, 300)));
        assert_eq!(controls.find(b"x<a><b>y", 0, 6), Some((1, 4, 300)));
    }

    #[test]
    fn an_id_may_have_two_names() {
        let tokens = [(300, "<a>"), (301, "<b>"), (300, "<c>")].map(|(id, name)| ControlToken::new(id, name, true));
        let controls = Controls::new(tokens.to_vec(), 300).unwrap();
        assert_eq!(split(&controls, true, None, "<a><c>x<b>"), "[300][300](x)[301]");
        assert_eq!(controls.by_id(300).unwrap().name, "<a>");
        assert_eq!((controls.id_of(b"<c>"), controls.end()), (Some(300), 302));
        assert!(controls.have_aliases() && !super::tests::controls(&["<a>", "<b>"]).unwrap().have_aliases());
    }

    #[test]
    fn impossible_lists_are_refused() {
        assert!(controls(&["a", "a"]).is_err());
        assert!(controls(&[""]).is_err());
        assert!(Controls::new(vec![ControlToken::new(3, "x", true)], 4).is_err());
        assert!(Controls::new(vec![ControlToken::new(u32::MAX, "x", true)], 4).is_err());
        assert!(
            Controls::new(vec![ControlToken::new(4, "x", true), ControlToken::new(4 + (1 << 20), "y", true)], 4)
                .is_err()
        );
    }

    #[test]
    fn b77_an_id_of_the_vocabulary_is_shared_only_with_its_own_bytes() {
        let ordinary = |id: u32| (id < 4).then(|| &b"abcd"[ix(id)..=ix(id)]);
        let added = |id, name: &str| Controls::from_added(vec![ControlToken::new(id, name, true)], ordinary);
        assert_eq!(added(2, "c").unwrap().end(), 3);
        assert_eq!(added(4, "c").unwrap().end(), 5);
        assert_eq!(added(1 << 19, "c").unwrap().end(), (1 << 19) + 1);
        let error = added(1, "c").unwrap_err().to_string();
        assert_eq!(error, "added token \"c\" has id 1, which is that of the ordinary token b\"b\"");
    }

    #[test]
    fn a_name_that_normalizes_to_nothing_is_refused() {
        let with = |name: &str, normalized| {
            let flags = Flags { normalized, ..Flags::default() };
            let token = ControlToken { flags, ..ControlToken::new(300, name, true) };
            Controls::new(vec![token], 300).unwrap().normalized(Some(&Normalizer::StripAccents))
        };
        assert!(with("a", true).is_ok() && with("\u{338}", false).is_ok());
        assert!(with("\u{338}", true).unwrap_err().to_string().contains("is nothing once it is normalized"));
    }

    #[test]
    fn white_space_is_no_control_token_unless_flagged() {
        let tokens = [(5, "<a>", true), (6, "  ", false), (7, "<think>", false), (8, "\n", true), (9, "\n\n", false)];
        let tokens = tokens.map(|(id, name, skip)| ControlToken::new(id, name, skip)).to_vec();
        let controls = Controls::from_added(tokens, |_| None).unwrap();
        assert_eq!(controls.tokens().iter().map(|t| t.id).collect::<Vec<_>>(), [5, 7, 8]);
        assert_eq!(controls.spaces().iter().map(|t| t.id).collect::<Vec<_>>(), [6, 9]);
        assert_eq!(controls.by_id(9).unwrap().name, "\n\n");
        assert_eq!((controls.id_of(b"  "), controls.end()), (Some(6), 10));
        let text = "x  <a><think>\n\n\n y";
        assert_eq!(split(&controls, true, None, text), "(x)[6][5][7][9][8]( y)");
        assert_eq!(split(&controls, false, None, text), "(x)[6](<a><think>)[9](\n y)");
        assert!(controls.is_simple(true) && !controls.is_simple(false));
    }
}
