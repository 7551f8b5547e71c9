//! Which pre-token each token comes from, and where it stands in the text.
//!
//! [`Tokenizer::encode_with_offsets`] needs only the lengths of tokens, for they spell the text. Here the text is split
//! once more, so that a token is known by its pre-token (the "word" of other libraries), text that a pattern drops leaves
//! a gap, and a control token covers the white space that belongs to it. Slower, and for who asks.

use crate::error::Error;
use crate::offsets::{Characters, int, segment_index};
use crate::pretoken::Batch;
use crate::segment::Segment;
use crate::special::Stretch;
use crate::tokenizer::{Options, Tokenizer};

/// For each token of a request, what it comes from.
#[derive(Debug, Default)]
pub struct Places {
    /// The index of its pre-token in its segment. A control token counts as a pre-token.
    pub pretokens: Vec<i64>,
    /// Where it begins and ends in its segment, in code points as Python counts them; None if a normalizer changed the
    /// text of a segment.
    pub ranges: Option<(Vec<i64>, Vec<i64>)>,
    /// For each segment, the number of tokens up to its end.
    pub segment_ends: Vec<usize>,
}

/// The tokens of one segment as they are found.
#[derive(Debug, Default)]
struct Found {
    pretokens: Vec<i64>,
    /// First and last byte, in the UTF-8 of the text after normalization.
    bytes: Vec<(usize, usize)>,
    /// The pre-token that comes next.
    next: i64,
    /// Where it begins.
    at: usize,
    /// Whether normalization changed nothing.
    same: bool,
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
        let ids: Vec<u32> = encoded.parts().flatten().copied().collect();
        let mut first = 0;
        for (index, (segment, &last)) in segments.iter().zip(&places.segment_ends).enumerate() {
            let found = self.find(segment, options, &ids[first..last])?;
            let found = found.ok_or(Error::NoOffsets { segment: index })?;
            places.pretokens.extend(found.pretokens);
            match &mut places.ranges {
                Some((starts, ends)) if found.same => {
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
        let mut found = Found { same: true, ..Found::default() };
        let mut ids = ids.iter().copied();
        let mut batch = Batch::default();
        let mut fits = true;
        let cuts = if options.legacy_chunks { segment.text.cuts() } else { Vec::new() };
        let (mut from, mut utf8) = (0, Vec::new());
        for to in cuts.into_iter().chain([segment.text.len()]) {
            utf8.clear();
            segment.text.slice(from, to).append_utf8(&mut utf8)?;
            from = to;
            let text = std::str::from_utf8(&utf8).expect("UTF-8, as it was made");
            let base = found.at;
            let normalizer = self.normalizer.as_ref();
            self.controls.split(text, segment.allow_special, normalizer, |stretch| {
                let (stretch, place) = match stretch {
                    Stretch::Token(id, len) => {
                        fits &= ids.next() == Some(id);
                        found.token(0, len);
                        found.at += len;
                        found.next += 1;
                        return Ok(());
                    }
                    Stretch::Text(stretch, place) => (stretch.as_bytes(), place),
                };
                let stands = found.at - base;
                let as_given = || text.as_bytes().get(stands..stands + stretch.len()) == Some(stretch);
                found.same &= place.map_or_else(as_given, |place| place == stands);
                let mut at = 0;
                while at < stretch.len() {
                    batch.clear();
                    at = self.pattern.append(stretch, at, &mut batch)?;
                    for &(from, to) in batch.ranges() {
                        fits &= found.pretoken(crate::num::ix(from), crate::num::ix(to), || {
                            ids.next().and_then(|id| self.token_bytes(id)).map(<[u8]>::len)
                        });
                    }
                }
                found.at += stretch.len();
                Ok(())
            })?;
            found.same &= found.at - base == text.len();
        }
        Ok((fits && ids.next().is_none()).then_some(found))
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
    /// Adds a token of the next pre-token; `from` is counted from `at`.
    fn token(&mut self, from: usize, len: usize) {
        self.pretokens.push(self.next);
        self.bytes.push((self.at + from, (self.at + from + len).saturating_sub(1)));
    }

    /// Adds the tokens of one pre-token, of these lengths; whether they fill it.
    fn pretoken(&mut self, from: usize, to: usize, mut next_len: impl FnMut() -> Option<usize>) -> bool {
        let mut at = from;
        while at < to {
            let Some(len) = next_len() else { return false };
            self.token(at, len);
            at += len;
        }
        self.next += 1;
        at == to
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
