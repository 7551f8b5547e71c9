//! Ids to text as they come.
//!
//! Law: what [`DecodeStream::push`] gave, put together, and what [`DecodeStream::finish`] gives, are the text of all ids,
//! cut before the first stop string. Bytes that are no UTF-8 become U+FFFD, one for each maximal part of a character (the
//! rule of WHATWG, of Python and of Rust): whether a byte belongs to such a part depends on what came before and on
//! itself, so all but an unfinished character at the end is certain at once.
//!
//! State: at most three bytes of a character, and the text that may be the beginning of a stop string ([`crate::stops`]).
//! What came before the stream began is never looked at. Cost: linear in the bytes pushed.

use std::borrow::Cow;

use crate::error::{Error, reserve};
use crate::stops::Search;
use crate::tokenizer::Tokenizer;

/// Bytes that an id usually has, at most.
const TYPICAL: usize = 8;

/// The text of ids that come one after the other.
///
/// # Examples
/// ```
/// # use kizami_core::{*, special::Controls, pretoken::Pattern};
/// # let bytes: Vec<[u8; 1]> = (0..=255u8).map(|byte| [byte]).collect();
/// # let tables = Tables::build(Vocab::from_ranked(&bytes)?)?;
/// # let tokenizer = Tokenizer::new(tables.into(), Controls::new(vec![], 256)?, Pattern::Kimi);
/// let mut stream = DecodeStream::new(false, vec!["END".into()]);
/// assert_eq!(stream.push(&tokenizer, &[0x68, 0xc3])?, "h"); // half an "é"
/// assert_eq!(stream.push(&tokenizer, &[0xa9, 0x45])?, "é"); // an "E" may begin "END"
/// assert_eq!(stream.push(&tokenizer, &[0x4e, 0x4f])?, "ENO");
/// assert_eq!(stream.finish(), "");
/// # Ok::<(), kizami_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct DecodeStream {
    skip_special: bool,
    unfinished: Unfinished,
    search: Option<Search>,
}

impl DecodeStream {
    /// A stream at its beginning. `stop`: strings that end the text; empty ones count for nothing.
    #[must_use]
    pub fn new(skip_special: bool, stop: Vec<String>) -> Self {
        let search = if stop.is_empty() { None } else { Some(Search::new(stop)) };
        DecodeStream { skip_special, unfinished: Unfinished::default(), search }
    }

    /// Whether any id would give the text of its token, if that is text at all: nothing waits for it, and no stop string is
    /// looked for.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.unfinished.len == 0 && self.search.is_none()
    }

    /// Whether an id of this text would give all of it, and leave the stream as it is.
    #[inline]
    #[must_use]
    pub fn passes(&self, text: &str) -> bool {
        self.unfinished.len == 0 && self.search.as_ref().is_none_or(|search| search.passes(text.as_bytes()))
    }

    /// The text that is certain after one more id; of the same tokenizer each time.
    ///
    /// # Errors
    /// [`Error::UnknownId`], [`Error::Memory`]; the stream is as it was.
    #[inline]
    pub fn push_id<'t>(&mut self, tokenizer: &'t Tokenizer, id: u32) -> Result<Cow<'t, str>, Error> {
        if self.unfinished.len == 0 {
            let bytes = self.bytes(tokenizer, id, 0)?;
            if self.search.as_ref().is_none_or(|search| search.passes(bytes))
                && let Ok(text) = std::str::from_utf8(bytes)
            {
                return Ok(Cow::Borrowed(text));
            }
        }
        self.push(tokenizer, &[id]).map(Cow::Owned)
    }

    /// The text that is certain after some more ids; the same as that of one after the other.
    ///
    /// # Errors
    /// As [`DecodeStream::push_id`].
    pub fn push(&mut self, tokenizer: &Tokenizer, ids: &[u32]) -> Result<String, Error> {
        let mut bytes = Vec::new();
        reserve(&mut bytes, ids.len().saturating_mul(TYPICAL))?;
        bytes.extend_from_slice(self.unfinished.bytes());
        for (position, &id) in ids.iter().enumerate() {
            let token = self.bytes(tokenizer, id, position)?;
            reserve(&mut bytes, token.len())?;
            bytes.extend_from_slice(token);
        }
        if self.stopped().is_some() {
            return Ok(String::new());
        }
        let unfinished = Unfinished::at_the_end_of(&bytes);
        bytes.truncate(bytes.len() - unfinished.len);
        let mut text = lossy(bytes)?;
        if let Some(search) = &mut self.search {
            let mut out = String::new();
            let bytes = text.len() + search.held();
            out.try_reserve(bytes).map_err(|_| Error::Memory { bytes })?;
            search.push(&text, &mut out);
            text = out;
        }
        // All that can fail came before.
        self.unfinished = unfinished;
        Ok(text)
    }

    /// The rest: an unfinished character becomes U+FFFD, and what was held back turns out to be no stop string. What is
    /// pushed afterwards is a new text, unless a stop string was found.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        let rest = if std::mem::take(&mut self.unfinished).len > 0 { "\u{fffd}" } else { "" };
        match &mut self.search {
            Some(search) => {
                search.push(rest, &mut out);
                search.finish(&mut out);
            }
            None => out.push_str(rest),
        }
        out
    }

    /// The stop string that was found: of those that begin first in the text, the longest. After it, nothing comes.
    #[must_use]
    pub fn stopped(&self) -> Option<&str> {
        self.search.as_ref()?.stopped()
    }

    /// What an id adds to the text.
    #[inline]
    fn bytes<'t>(&self, tokenizer: &'t Tokenizer, id: u32, position: usize) -> Result<&'t [u8], Error> {
        // First: the ordinary vocabulary may have it as well.
        if self.skip_special && tokenizer.controls.by_id(id).is_some_and(|token| token.skip) {
            return Ok(b"");
        }
        match tokenizer.token_bytes(id) {
            Some(bytes) => Ok(bytes),
            None => Err(Error::UnknownId { id, position, vocab_size: tokenizer.vocab_size() }),
        }
    }
}

/// The beginning of a character whose other bytes may come.
#[derive(Debug, Clone, Copy, Default)]
struct Unfinished {
    bytes: [u8; 3],
    len: usize,
}

impl Unfinished {
    /// What may become a character at the end of some bytes.
    fn at_the_end_of(bytes: &[u8]) -> Self {
        let mut unfinished = Unfinished::default();
        let last = &bytes[bytes.len().saturating_sub(3)..];
        // A character begins at its first byte and nowhere else: the last one that does not go on with another.
        let begins = last.iter().rposition(|byte| !(0x80..0xc0).contains(byte));
        if let Some(end) = begins.map(|at| &last[at..]).filter(|end| is_unfinished(end)) {
            unfinished.bytes[..end.len()].copy_from_slice(end);
            unfinished.len = end.len();
        }
        unfinished
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Whether a part that is no character may become one.
fn is_unfinished(invalid: &[u8]) -> bool {
    std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none())
}

/// The text of bytes; what is no UTF-8 becomes U+FFFD.
fn lossy(bytes: Vec<u8>) -> Result<String, Error> {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error.into_bytes(),
    };
    let mut text = String::new();
    // Each byte gives one U+FFFD at most.
    let most = 3 * bytes.len();
    text.try_reserve(most).map_err(|_| Error::Memory { bytes: most })?;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push('\u{fffd}');
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pretoken::Pattern;
    use crate::special::{ControlToken, Controls};
    use crate::tables::Tables;
    use crate::vocab::Vocab;

    /// Ids are bytes; 256 is skipped, 257 is not.
    fn tokenizer() -> Tokenizer {
        let bytes: Vec<[u8; 1]> = (0..=255u8).map(|byte| [byte]).collect();
        let tables = Tables::build(Vocab::from_ranked(&bytes).unwrap()).unwrap();
        let token = |id, name: &str, skip| ControlToken::new(id, name, skip);
        let controls = Controls::new(vec![token(256, "<skip>", true), token(257, "<keep>", false)], 256).unwrap();
        Tokenizer::new(tables.into(), controls, Pattern::Kimi)
    }

    /// Bytes at both ends of every range that the rules of UTF-8 know.
    const BYTES: [u8; 26] = [
        0x00, 0x61, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee,
        0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xf8, 0xff,
    ];

    /// All strings of one to four of these bytes, cut at every place: as the whole text, with no character waiting
    /// that could not come.
    #[test]
    fn all_short_byte_strings_cut_at_every_place() {
        let tokenizer = tokenizer();
        let mut checked = 0;
        for len in 1..=4u32 {
            for number in 0..26usize.pow(len) {
                let ids: Vec<u32> = (0..len).map(|place| BYTES[number / 26usize.pow(place) % 26].into()).collect();
                let bytes = tokenizer.decode(&ids, false).unwrap();
                let want = String::from_utf8_lossy(&bytes);
                for cut in 0..ids.len() {
                    let mut stream = DecodeStream::new(false, vec![]);
                    let mut text = stream.push(&tokenizer, &ids[..cut]).unwrap();
                    text += &stream.push(&tokenizer, &ids[cut..]).unwrap();
                    // Certain is what no continuation can change.
                    let rest = stream.finish();
                    let unfinished = std::str::from_utf8(&bytes).is_err_and(|_| {
                        let last = bytes.utf8_chunks().last().unwrap().invalid();
                        is_unfinished(last)
                    });
                    assert_eq!(rest, if unfinished { "\u{fffd}" } else { "" }, "{bytes:x?} at {cut}");
                    assert_eq!(text + &rest, want, "{bytes:x?} at {cut}");
                }
                let mut stream = DecodeStream::new(false, vec![]);
                let mut text: String = ids.iter().map(|&id| stream.push_id(&tokenizer, id).unwrap()).collect();
                text += &stream.finish();
                assert_eq!(text, want, "{bytes:x?} one by one");
                checked += 1;
            }
        }
        assert_eq!(checked, 475_254);
    }

    #[test]
    fn control_tokens_are_text_or_nothing() {
        let tokenizer = tokenizer();
        let ids = [0xf0, 256, 0x9f, 0x8e, 0x89, 257, 0xf0];
        for (skip, want) in [(true, "🎉<keep>"), (false, "\u{fffd}<skip>\u{fffd}\u{fffd}\u{fffd}<keep>")] {
            let mut stream = DecodeStream::new(skip, vec![]);
            let text: String = ids.iter().map(|&id| stream.push_id(&tokenizer, id).unwrap()).collect();
            assert_eq!((text.as_str(), stream.finish().as_str()), (want, "\u{fffd}"));
        }
    }

    #[test]
    fn a_skipped_token_of_the_ordinary_vocabulary_is_skipped() {
        let mut tokenizer = tokenizer();
        tokenizer.controls = Controls::from_added(vec![ControlToken::new(0x61, "a", true)], |_| Some(b"a")).unwrap();
        for (skip, want) in [(false, "abé"), (true, "bé")] {
            let mut stream = DecodeStream::new(skip, vec![]);
            let ids = [0x61, 0x62, 0xc3, 0xa9];
            let text: String = ids.iter().map(|&id| stream.push_id(&tokenizer, id).unwrap()).collect();
            assert_eq!(text, want);
            assert_eq!(tokenizer.decode(&ids, skip).unwrap(), want.as_bytes());
            assert_eq!(DecodeStream::new(skip, vec![]).push(&tokenizer, &ids).unwrap(), want);
        }
    }

    #[test]
    fn what_is_plain_and_what_passes() {
        let tokenizer = tokenizer();
        let mut stream = DecodeStream::new(false, vec![]);
        assert!(stream.is_plain() && stream.passes("x"));
        stream.push_id(&tokenizer, 0xc3).unwrap();
        assert!(!stream.is_plain() && !stream.passes("x"));
        stream.push_id(&tokenizer, 0xa9).unwrap();
        assert!(stream.is_plain());
        let mut stream = DecodeStream::new(false, vec!["ab".into()]);
        assert!(!stream.is_plain() && stream.passes("xb") && !stream.passes("xa"));
        stream.push_id(&tokenizer, 0x61).unwrap();
        assert!(!stream.passes("x"));
        stream.push_id(&tokenizer, 0x62).unwrap();
        assert!(stream.stopped().is_some() && !stream.passes("x"));
    }

    #[test]
    fn b49_a_bad_id_changes_nothing() {
        let tokenizer = tokenizer();
        let mut stream = DecodeStream::new(false, vec!["abc".into()]);
        assert_eq!(stream.push(&tokenizer, &[0x61, 0xf0, 0x9f]).unwrap(), "");
        let error = stream.push(&tokenizer, &[0x62, 258]).unwrap_err();
        assert_eq!(error, Error::UnknownId { id: 258, position: 1, vocab_size: 258 });
        assert!(stream.push_id(&tokenizer, u32::MAX).is_err());
        assert_eq!(stream.push(&tokenizer, &[0x8e, 0x89]).unwrap(), "a🎉");
    }

    #[test]
    fn a_stop_string_may_be_made_of_replacements() {
        let tokenizer = tokenizer();
        let mut stream = DecodeStream::new(false, vec!["\u{fffd}\u{fffd}".into()]);
        assert_eq!(stream.push(&tokenizer, &[0x61, 0xff, 0xf0]).unwrap(), "a");
        assert_eq!(stream.stopped(), None);
        assert_eq!(stream.finish(), "");
        assert_eq!(stream.stopped(), Some("\u{fffd}\u{fffd}"));
        assert_eq!(stream.push(&tokenizer, &[0x61]).unwrap(), "");
    }

    #[test]
    fn clones_go_their_own_way() {
        let tokenizer = tokenizer();
        let mut stream = DecodeStream::new(false, vec!["ab".into()]);
        assert_eq!(stream.push(&tokenizer, &[0x61]).unwrap(), "");
        let mut other = stream.clone();
        assert_eq!(stream.push(&tokenizer, &[0x62]).unwrap(), "");
        assert_eq!(other.push(&tokenizer, &[0x63]).unwrap(), "ac");
        assert_eq!((stream.stopped(), other.stopped()), (Some("ab"), None));
    }
}
