//! Which pre-token each token comes from, and where it stands in the text.
//!
//! [`Tokenizer::encode_with_offsets`] needs only the lengths of tokens, for they spell the text. Here the text is split
//! once more, so that a token is known by its pre-token (the "word" of other libraries), text that a pattern drops leaves
//! a gap, and a control token covers the white space that belongs to it. Slower, and for who asks.

use std::borrow::Cow;

use crate::error::Error;
use crate::names::Part;
use crate::num::ix;
use crate::offsets::{Characters, int, segment_index};
use crate::pretoken::Batch;
use crate::segment::Segment;
use crate::special;
use crate::tokenizer::{Options, Tokenizer};

/// For each token of a request, what it comes from.
#[derive(Debug, Default)]
pub struct Places {
    /// The index of its pre-token in its segment. A control token counts as a pre-token.
    pub pretokens: Vec<i64>,
    /// Where it begins and ends in its segment, in code points as Python counts them; None if that is not known: of a
    /// normalizer that does more than to compose and decompose, or where two names take the same white space.
    pub ranges: Option<(Vec<i64>, Vec<i64>)>,
    /// For each segment, the number of tokens up to its end.
    pub segment_ends: Vec<usize>,
}

/// The tokens of one segment as they are found.
#[derive(Debug, Default)]
struct Found {
    pretokens: Vec<i64>,
    /// First and last byte, in the UTF-8 of the segment.
    bytes: Vec<(usize, usize)>,
    /// The pre-token that comes next.
    next: i64,
    /// Whether all places are known.
    placed: bool,
    /// Whether the tokens are those of the text.
    fits: bool,
}

/// Where a part of a text, normalized, comes from.
enum Origin {
    /// It is as it was given, from a byte of the segment.
    Same(usize),
    /// Each byte is from a range of bytes behind a byte of the segment.
    Moved(usize, Vec<(usize, usize)>),
    Unknown,
}

impl Tokenizer {
    /// The ids of `segments`, as [`Tokenizer::encode`] gives them, and what each comes from.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_with_places(&self, segments: &[Segment<'_>], options: Options) -> Result<(Vec<u32>, Places), Error> {
        let options = Options { legacy_chunks: options.legacy_chunks && self.makes_cuts() };
        let mut places = Places { ranges: Some((Vec::new(), Vec::new())), ..Places::default() };
        let encoded = self.prepare(segments, options)?.encode(Some(&mut places.segment_ends))?;
        if self.prefix.is_some() {
            self.refuse_respelled(segments, &encoded, &places.segment_ends)?;
        }
        let ids: Vec<u32> = encoded.parts().flatten().copied().collect();
        let mut first = 0;
        for (index, (segment, &last)) in segments.iter().zip(&places.segment_ends).enumerate() {
            let found = self.find(segment, options, &ids[first..last])?;
            let found = found.ok_or(Error::NoOffsets { segment: index })?;
            places.pretokens.extend(found.pretokens);
            match &mut places.ranges {
                Some((starts, ends)) if found.placed => {
                    let mut characters = Characters::new(segment.text, options);
                    for (first, last) in found.bytes {
                        characters.go_to(first);
                        starts.push(int(characters.first_point()));
                        characters.go_to(last);
                        ends.push(int(characters.end_point()));
                    }
                }
                ranges => *ranges = None,
            }
            first = last;
        }
        Ok((ids, places))
    }

    /// The places of the tokens of one segment; None if they are not those of its text.
    fn find(&self, segment: &Segment<'_>, options: Options, ids: &[u32]) -> Result<Option<Found>, Error> {
        let mut found = Found { placed: true, fits: true, ..Found::default() };
        let mut ids = ids.iter().copied();
        let cuts = if options.legacy_chunks { segment.text.cuts() } else { Vec::new() };
        let (mut from, mut base, mut utf8) = (0, 0, Vec::new());
        for to in cuts.into_iter().chain([segment.text.len()]) {
            utf8.clear();
            segment.text.slice(from, to).append_utf8(&mut utf8)?;
            from = to;
            let text = std::str::from_utf8(&utf8).expect("UTF-8, as it was made");
            self.find_in_piece(text, base, segment.allow_special, &mut ids, &mut found)?;
            base += text.len();
        }
        found.fits &= ids.next().is_none();
        Ok(found.fits.then_some(found))
    }

    /// The same for what is between two cuts, which begins at the byte `base` of the segment.
    fn find_in_piece(
        &self,
        text: &str,
        base: usize,
        trusted: bool,
        ids: &mut impl Iterator<Item = u32>,
        found: &mut Found,
    ) -> Result<(), Error> {
        let (raw, normalized) = self.controls.names(trusted);
        let mut end = 0;
        special::parts(raw, text, &mut |part| {
            let (from, to) = match part {
                Part::Token(id, len) => {
                    found.control(ids, id, &Origin::Same(base + end), 0, len);
                    end += len;
                    return Ok(());
                }
                Part::Text(from, to) => (from, to),
            };
            // Two names may have taken the same white space.
            found.placed &= end == from;
            end = to;
            let given = &text[from..to];
            let piece = match &self.normalizer {
                Some(normalizer) => normalizer.apply(Cow::Borrowed(given))?,
                None => Cow::Borrowed(given),
            };
            let origin = match (&piece, &self.normalizer) {
                // It may have lost something at its ends.
                (Cow::Borrowed(rest), _) => Origin::Same(base + from + (rest.as_ptr().addr() - given.as_ptr().addr())),
                (Cow::Owned(_), Some(normalizer)) => match normalizer.origins(given, &piece) {
                    Some(origins) => Origin::Moved(base + from, origins),
                    None => Origin::Unknown,
                },
                (Cow::Owned(_), None) => Origin::Unknown,
            };
            let mut at = 0;
            special::parts(normalized, &piece, &mut |part| match part {
                Part::Token(id, len) => {
                    found.control(ids, id, &origin, at, len);
                    at += len;
                    Ok(())
                }
                Part::Text(from, to) => {
                    found.placed &= at == from;
                    at = to;
                    self.find_in_text(&piece.as_bytes()[from..to], from, &origin, ids, found)
                }
            })?;
            found.placed &= at == piece.len();
            Ok(())
        })?;
        found.placed &= end == text.len();
        Ok(())
    }

    /// The same for text without names, which begins at the byte `first` of a part.
    fn find_in_text(
        &self,
        text: &[u8],
        first: usize,
        origin: &Origin,
        ids: &mut impl Iterator<Item = u32>,
        found: &mut Found,
    ) -> Result<(), Error> {
        let mut batch = Batch::default();
        let mut at = 0;
        while at < text.len() {
            batch.clear();
            at = self.pattern.append(text, at, &mut batch)?;
            for &(from, to) in batch.ranges() {
                let (mut from, to) = (ix(from), ix(to));
                while from < to {
                    let Some(len) = ids.next().and_then(|id| self.token_bytes(id)).map(<[u8]>::len) else {
                        found.fits = false;
                        return Ok(());
                    };
                    found.token(origin, first + from, len);
                    from += len;
                }
                found.fits &= from == to;
                found.next += 1;
            }
        }
        Ok(())
    }
}

impl Places {
    /// For each token, the index of its segment.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn segment_index(&self) -> Result<Vec<i64>, Error> {
        segment_index(&self.segment_ends, self.pretokens.len())
    }
}

impl Found {
    /// Adds a token of the next pre-token.
    fn token(&mut self, origin: &Origin, at: usize, len: usize) {
        self.pretokens.push(self.next);
        let last = (at + len).saturating_sub(1);
        let place = match origin {
            Origin::Same(from) => Some((from + at, from + last)),
            Origin::Moved(from, origins) => {
                let first = origins.get(at).map(|&(start, _)| from + start);
                first.zip(origins.get(last).map(|&(_, end)| from + end - 1))
            }
            Origin::Unknown => None,
        };
        self.placed &= place.is_some();
        self.bytes.push(place.unwrap_or_default());
    }

    /// Adds a control token, which is a pre-token of its own.
    fn control(&mut self, ids: &mut impl Iterator<Item = u32>, id: u32, origin: &Origin, at: usize, len: usize) {
        self.fits &= ids.next() == Some(id);
        self.token(origin, at, len);
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pretoken::Pattern;
    use crate::special::{ControlToken, Controls, Flags};
    use crate::tables::Tables;
    use crate::text::Text;
    use crate::vocab::Vocab;

    fn tokenizer(pattern: &str) -> Tokenizer {
        let tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).chain([b"ab".to_vec()]).collect();
        let tables = Tables::build(Vocab::from_ranked(&tokens).unwrap()).unwrap();
        let mut control = ControlToken::new(257, "<x>", true);
        control.flags = Flags { lstrip: true, ..Flags::default() };
        let controls = Controls::new(vec![control], 257).unwrap();
        Tokenizer::new(tables.into(), controls, Pattern::from_regex(pattern).unwrap()).without_cuts()
    }

    fn places(pattern: &str, text: &str) -> (Vec<i64>, Vec<(i64, i64)>) {
        let segments = [Segment { text: Text::Utf8(text), allow_special: true }];
        let (ids, places) = tokenizer(pattern).encode_with_places(&segments, Options::default()).unwrap();
        assert_eq!(ids, tokenizer(pattern).encode(&segments, Options::default()).unwrap());
        let (starts, ends) = places.ranges.unwrap();
        (places.pretokens, starts.into_iter().zip(ends).collect())
    }

    #[test]
    fn tokens_know_their_pretoken_and_their_characters() {
        // ab, c | space, é in two bytes
        let (pretokens, ranges) = places(" ?\\p{L}+", "abc é");
        assert_eq!(pretokens, [0, 0, 1, 1, 1]);
        assert_eq!(ranges, [(0, 2), (2, 3), (3, 4), (4, 5), (4, 5)]);
    }

    #[test]
    fn what_a_pattern_drops_leaves_a_gap() {
        let (pretokens, ranges) = places("\\p{L}+", "é--ab");
        assert_eq!(pretokens, [0, 0, 1]);
        assert_eq!(ranges, [(0, 1), (0, 1), (3, 5)]);
    }

    #[test]
    fn a_control_token_covers_the_white_space_that_it_takes() {
        let (pretokens, ranges) = places("\\p{L}+", "ab  <x>c");
        assert_eq!(pretokens, [0, 1, 2]);
        assert_eq!(ranges, [(0, 2), (2, 7), (7, 8)]);
    }
}
