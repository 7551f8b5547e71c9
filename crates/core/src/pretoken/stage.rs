//! One stage of a split as Hugging Face's tokenizers do it: the `pre_tokenizer` of a `tokenizer.json`.
//!
//! A stage gets a piece of text, finds matches in it, and makes new pieces of matches and of the text between them, as
//! [`Behavior`] says. Each piece is a text of its own: what a pattern looks at before or after ends with the piece. Empty
//! pieces vanish.
//!
//! Once a `ByteLevel` stage has run, the stages behind it see not text but its spelling of the bytes
//! ([`byte_char`]): there `\p{N}` matches the second byte of "в", which is spelled "²".

use std::sync::Arc;

use super::oniguruma;
use crate::error::Error;
use crate::num::{ix, to_u32};

/// What becomes of a match and of the text between matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behavior {
    /// Matches vanish.
    Removed,
    /// Each match, and the text between two, is a piece.
    Isolated,
    /// A match goes to the text before it, unless that is a match.
    MergedWithPrevious,
    /// A match goes to the text after it, unless that is a match.
    MergedWithNext,
    /// Matches side by side are one piece.
    Contiguous,
}

/// One stage. Cheap to clone (the program is shared).
#[derive(Debug, Clone)]
pub struct Stage {
    regex: Arc<fancy_regex::Regex>,
    behavior: Behavior,
    /// Matches count as text between matches, and the other way round.
    invert: bool,
    /// The pattern sees the bytes as `ByteLevel` spells them.
    spelled: bool,
}

/// Start and end in bytes of the text.
type Range = (u32, u32);

/// A part of a piece: a match, or what is between two.
#[derive(Clone, Copy)]
struct Part {
    start: usize,
    end: usize,
    matched: bool,
}

impl Stage {
    /// A stage that matches `regex`, in the syntax of Oniguruma.
    ///
    /// # Errors
    /// [`Error::Pattern`] when the regex does not compile, [`Error::Unsupported`] when it might mean something else here.
    pub fn new(regex: &str, behavior: Behavior, invert: bool) -> Result<Self, Error> {
        let regex = oniguruma::compile(regex)?.into();
        Ok(Stage { regex, behavior, invert, spelled: false })
    }

    /// The same behind a `ByteLevel` stage.
    #[must_use]
    pub fn behind_byte_level(self) -> Self {
        Stage { spelled: true, ..self }
    }

    /// Splits the piece `from..to` of `text`.
    fn split(&self, text: &[u8], (from, to): Range, out: &mut Vec<Range>) -> Result<(), Error> {
        let piece = &text[ix(from)..ix(to)];
        let mut push = |start, end| {
            if start < end {
                out.push((from + to_u32(start), from + to_u32(end)));
            }
        };
        if self.spelled {
            let (spelled, bytes) = spell(piece);
            let byte = |at: usize| bytes.partition_point(|&start| ix(start) < at);
            self.pieces(&spelled)?.into_iter().for_each(|part| push(byte(part.start), byte(part.end)));
        } else {
            let piece = std::str::from_utf8(piece).map_err(|e| Error::Pattern(e.to_string()))?;
            self.pieces(piece)?.into_iter().for_each(|part| push(part.start, part.end));
        }
        Ok(())
    }

    /// The new pieces; some may be empty.
    fn pieces(&self, piece: &str) -> Result<Vec<Part>, Error> {
        let mut parts = parts(&self.regex, piece)?;
        if self.invert {
            parts.iter_mut().for_each(|part| part.matched = !part.matched);
        }
        Ok(match self.behavior {
            Behavior::Isolated => parts,
            Behavior::Removed => {
                parts.retain(|part| !part.matched);
                parts
            }
            Behavior::Contiguous => join(parts.into_iter(), |matched, before| matched == before),
            Behavior::MergedWithPrevious => join(parts.into_iter(), |matched, before| matched && !before),
            Behavior::MergedWithNext => {
                let mut joined = join(parts.into_iter().rev(), |matched, before| matched && !before);
                joined.reverse();
                joined
            }
        })
    }
}

/// The pieces that all stages together make of `text`.
pub(super) fn split(stages: &[Stage], text: &[u8]) -> Result<Vec<Range>, Error> {
    let mut pieces = vec![(0, to_u32(text.len()))];
    pieces.retain(|piece| piece.0 < piece.1);
    for stage in stages {
        let mut next = Vec::with_capacity(pieces.len());
        pieces.into_iter().try_for_each(|piece| stage.split(text, piece, &mut next))?;
        pieces = next;
    }
    Ok(pieces)
}

/// Matches and the text between them, in order; they tile the piece.
fn parts(regex: &fancy_regex::Regex, piece: &str) -> Result<Vec<Part>, Error> {
    let mut parts = Vec::new();
    let (mut at, mut end, mut last) = (0, 0, None);
    while at <= piece.len() {
        let Some(found) = regex.find_from_pos(piece, at).map_err(|e| Error::Pattern(e.to_string()))? else { break };
        if found.start() == found.end() && last == Some(found.end()) {
            // An empty match right after a match does not count; the search goes on behind the next character.
            at += piece[at..].chars().next().map_or(1, char::len_utf8);
            continue;
        }
        if end < found.start() {
            parts.push(Part { start: end, end: found.start(), matched: false });
        }
        parts.push(Part { start: found.start(), end: found.end(), matched: true });
        (at, end, last) = (found.end(), found.end(), Some(found.end()));
    }
    if end < piece.len() {
        parts.push(Part { start: end, end: piece.len(), matched: false });
    }
    Ok(parts)
}

/// Joins each part to the one before it where `joins` says so of "is a match" for both; before the first is none.
fn join(parts: impl Iterator<Item = Part>, joins: impl Fn(bool, bool) -> bool) -> Vec<Part> {
    let mut joined: Vec<Part> = Vec::new();
    let mut before = false;
    for part in parts {
        match joined.last_mut() {
            Some(last) if joins(part.matched, before) => {
                last.start = last.start.min(part.start);
                last.end = last.end.max(part.end);
            }
            _ => joined.push(part),
        }
        before = part.matched;
    }
    joined
}

/// `bytes` as `ByteLevel` spells them, and where in the spelling each byte begins.
fn spell(bytes: &[u8]) -> (String, Vec<u32>) {
    let mut spelled = String::with_capacity(2 * bytes.len());
    let mut starts = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        starts.push(to_u32(spelled.len()));
        spelled.push(byte_char(byte));
    }
    (spelled, starts)
}

/// The character by which `ByteLevel` stands for a byte: itself if it is printable in Latin-1, else one from U+0100 on, in
/// the order of the bytes.
#[must_use]
pub(crate) fn byte_char(byte: u8) -> char {
    let code_point = match u32::from(byte) {
        b @ 0..=0x20 => 0x100 + b,
        b @ 0x7f..=0xa0 => 0x121 + (b - 0x7f),
        0xad => 0x143,
        b => b,
    };
    char::from_u32(code_point).expect("a character below U+0144")
}
