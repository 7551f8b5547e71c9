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
use std::sync::Arc;

use crate::error::{Error, reserve};
use crate::stops::{Search, Stops};
use crate::tokenizer::Tokenizer;

/// Bytes that an id usually has, at most.
const TYPICAL: usize = 8;
/// More of them, for what does not hold for a few ids.
const ROOM: usize = 24;

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

    /// Whether no text is held back, and no stop string was found: then [`DecodeStream::unfinished`] is all that the stream
    /// remembers.
    #[inline]
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.search.as_ref().is_none_or(Search::is_at_rest)
    }

    /// The stop strings. In a stream at rest a text where none [may begin](Stops::may_begin_in) is given as it is, and leaves
    /// it at rest.
    #[must_use]
    pub fn stops(&self) -> Option<Arc<Stops>> {
        self.search.as_ref().map(|search| search.stops().clone())
    }

    /// The character that waits for its other bytes.
    #[must_use]
    pub fn unfinished(&self) -> Unfinished {
        self.unfinished
    }

    /// Whether a text would be given as it is, and leave the search for stop strings as it is.
    fn passes(&self, text: &str) -> bool {
        self.search.as_ref().is_none_or(|search| search.passes(text))
    }

    /// Makes this the character that waits: that of a [`Step`] whose text was given.
    #[inline]
    pub fn go_on(&mut self, unfinished: Unfinished) {
        self.unfinished = unfinished;
    }

    /// What one more id makes certain, before stop strings are looked for. It depends on the id, on whether that is left
    /// out, and on [`DecodeStream::unfinished`].
    ///
    /// # Errors
    /// As [`DecodeStream::push_id`].
    #[inline]
    pub fn step<'t>(&self, tokenizer: &'t Tokenizer, id: u32) -> Result<Step<'t>, Error> {
        let token = self.bytes(tokenizer, id)?;
        if self.unfinished.len == 0
            && let Ok(text) = std::str::from_utf8(token)
        {
            return Ok(Step { text: Cow::Borrowed(text), unfinished: Unfinished::default() });
        }
        let mut bytes = Vec::new();
        reserve(&mut bytes, self.unfinished.bytes().len() + token.len())?;
        bytes.extend_from_slice(self.unfinished.bytes());
        bytes.extend_from_slice(token);
        let (text, unfinished) = certain(bytes)?;
        Ok(Step { text: Cow::Owned(text), unfinished })
    }

    /// Goes a step on. None: its text is given as it is; else what is certain to be before a stop string.
    ///
    /// # Errors
    /// [`Error::Memory`]; the stream is as it was.
    #[inline]
    pub fn take(&mut self, step: &Step<'_>) -> Result<Option<String>, Error> {
        let given = if self.passes(&step.text) { None } else { self.search(&step.text)? };
        self.unfinished = step.unfinished;
        Ok(given)
    }

    /// The text that is certain after one more id; of the same tokenizer each time.
    ///
    /// # Errors
    /// [`Error::UnknownId`], [`Error::Memory`]; the stream is as it was.
    #[inline]
    pub fn push_id<'t>(&mut self, tokenizer: &'t Tokenizer, id: u32) -> Result<Cow<'t, str>, Error> {
        let step = self.step(tokenizer, id)?;
        let given = self.take(&step)?;
        Ok(given.map_or(step.text, Cow::Owned))
    }

    /// The text that is certain after some more ids; the same as that of one after the other.
    ///
    /// # Errors
    /// As [`DecodeStream::push_id`].
    pub fn push(&mut self, tokenizer: &Tokenizer, ids: &[u32]) -> Result<String, Error> {
        let mut bytes = Vec::new();
        reserve(&mut bytes, ids.len().saturating_mul(TYPICAL).saturating_add(ROOM))?;
        bytes.extend_from_slice(self.unfinished.bytes());
        tokenizer.decode_onto(&mut bytes, ids, self.skip_special)?;
        let (text, unfinished) = certain(bytes)?;
        Ok(self.take(&Step { text: Cow::Borrowed(&text), unfinished })?.unwrap_or(text))
    }

    /// Looks for stop strings in more text; gives what is certain to be before one. All that can fail comes before the search
    /// is changed.
    fn search(&mut self, text: &str) -> Result<Option<String>, Error> {
        let Some(search) = &mut self.search else { return Ok(None) };
        let mut out = String::new();
        let bytes = text.len() + search.held();
        out.try_reserve(bytes).map_err(|_| Error::Memory { bytes })?;
        search.push(text, &mut out);
        Ok(Some(out))
    }

    /// The rest: an unfinished character becomes U+FFFD, and what was held back turns out to be no stop string. What is
    /// pushed afterwards is a new text, unless a stop string was found.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        let rest = if std::mem::take(&mut self.unfinished) == Unfinished::default() { "" } else { "\u{fffd}" };
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
    fn bytes<'t>(&self, tokenizer: &'t Tokenizer, id: u32) -> Result<&'t [u8], Error> {
        // First: the ordinary vocabulary may have it as well.
        if self.skip_special && tokenizer.controls.by_id(id).is_some_and(|token| token.skip) {
            return Ok(b"");
        }
        match tokenizer.token_bytes(id) {
            Some(bytes) => Ok(bytes),
            None => Err(Error::UnknownId { id, position: 0, vocab_size: tokenizer.vocab_size() }),
        }
    }
}

/// What an id makes certain, and leaves waiting.
#[derive(Debug, Clone)]
pub struct Step<'t> {
    /// Whole characters.
    pub text: Cow<'t, str>,
    /// What waits afterwards.
    pub unfinished: Unfinished,
}

/// The beginning of a character whose other bytes may come: three bytes at most, or none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// The bytes, and zeros behind them.
    bytes: [u8; 3],
    len: u8,
}

impl Unfinished {
    /// What may become a character at the end of some bytes.
    fn at_the_end_of(bytes: &[u8]) -> Self {
        let mut unfinished = Unfinished::default();
        let last = &bytes[bytes.len().saturating_sub(3)..];
        // A character begins at its first byte and nowhere else: the last one that does not go on with another.
        let begins = last.iter().rposition(|byte| !(0x80..0xc0).contains(byte));
        if let Some(end) = begins.map(|at| &last[at..]).filter(|end| is_unfinished(end)) {
            for (to, byte) in unfinished.bytes.iter_mut().zip(end) {
                *to = *byte;
                unfinished.len += 1;
            }
        }
        unfinished
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// As a number: 0 if nothing waits, and never [`u32::MAX`].
    #[inline]
    #[must_use]
    pub fn to_bits(self) -> u32 {
        let [a, b, c] = self.bytes;
        u32::from_le_bytes([a, b, c, self.len])
    }

    /// What [`Unfinished::to_bits`] made this number of; None for [`u32::MAX`], and for some others that it does not make.
    #[inline]
    #[must_use]
    pub fn from_bits(bits: u32) -> Option<Self> {
        let [a, b, c, len] = bits.to_le_bytes();
        (len <= 3).then_some(Unfinished { bytes: [a, b, c], len })
    }
}

/// The text that is certain of all bytes since something waited, and what waits now.
fn certain(mut bytes: Vec<u8>) -> Result<(String, Unfinished), Error> {
    let unfinished = Unfinished::at_the_end_of(&bytes);
    bytes.truncate(bytes.len() - unfinished.bytes().len());
    Ok((lossy(bytes)?, unfinished))
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
    fn what_waits_and_what_passes() {
        let tokenizer = tokenizer();
        let mut stream = DecodeStream::new(false, vec![]);
        assert!(
            stream.stops().is_none()
                && stream.is_at_rest()
                && stream.passes("x")
                && stream.unfinished() == Unfinished::default()
        );
        stream.push_id(&tokenizer, 0xc3).unwrap();
        assert!(stream.unfinished() != Unfinished::default());
        stream.push_id(&tokenizer, 0xa9).unwrap();
        assert_eq!(stream.unfinished(), Unfinished::default());
        let mut stream = DecodeStream::new(false, vec!["ab".into()]);
        assert!(stream.is_at_rest() && stream.passes("xb") && !stream.passes("xa"));
        stream.push_id(&tokenizer, 0x61).unwrap();
        assert!(!stream.is_at_rest() && !stream.passes("x"));
        stream.push_id(&tokenizer, 0x62).unwrap();
        assert!(stream.stopped().is_some() && !stream.is_at_rest() && !stream.passes("x"));
    }

    #[test]
    fn what_waits_as_a_number() {
        let mut beginnings = 0;
        for bytes in BYTES.iter().flat_map(|&a| BYTES.map(|b| [a, b])).flat_map(|[a, b]| BYTES.map(|c| [a, b, c])) {
            for start in 0..=3 {
                let unfinished = Unfinished::at_the_end_of(&bytes[start..]);
                assert!(bytes.ends_with(unfinished.bytes()));
                assert_eq!(Unfinished::from_bits(unfinished.to_bits()), Some(unfinished));
                assert_eq!(unfinished.to_bits() == 0, unfinished == Unfinished::default());
                beginnings += usize::from(unfinished.bytes().len() == 3);
            }
        }
        let count = |range: std::ops::Range<u8>| BYTES.iter().filter(|byte| range.contains(byte)).count();
        // Behind F0, behind F1 and F3, and behind F4; and then any that goes on.
        let seconds = count(0x90..0xc0) + 2 * count(0x80..0xc0) + count(0x80..0x90);
        assert_eq!(beginnings, seconds * count(0x80..0xc0));
        assert_eq!(Unfinished::from_bits(u32::MAX), None);
    }

    /// A step depends on what waits and the id, whatever else the stream has seen: in a stream that was made to wait for
    /// the same, it is the same.
    #[test]
    fn steps_are_what_other_streams_take() {
        let tokenizer = tokenizer();
        let ids: Vec<u32> = BYTES.map(u32::from).into_iter().chain([256, 257]).collect();
        for before in 0..ids.len().pow(3) {
            let mut stream = DecodeStream::new(true, vec![]);
            for place in [1, ids.len(), ids.len().pow(2)] {
                stream.push_id(&tokenizer, ids[before / place % ids.len()]).unwrap();
            }
            let mut other = DecodeStream::new(true, vec!["\u{1}".into()]);
            other.go_on(Unfinished::from_bits(stream.unfinished().to_bits()).unwrap());
            for &id in &ids {
                let (mut stream, mut other) = (stream.clone(), other.clone());
                let step = other.step(&tokenizer, id).unwrap();
                let stops = other.stops().unwrap();
                assert!(other.is_at_rest() && !stops.may_begin_in(&step.text) && stops.may_begin_in("\u{1}"));
                other.go_on(step.unfinished);
                assert_eq!(step.text, stream.push_id(&tokenizer, id).unwrap());
                assert_eq!(other.unfinished(), stream.unfinished());
                assert_eq!(other.finish(), stream.finish());
            }
        }
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
