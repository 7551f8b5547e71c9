//! Where in the text each token comes from.
//!
//! The tokens of a segment spell its UTF-8 (the law of decoding), so their lengths alone say where each begins and ends.
//! One pass over the characters turns bytes into code points. A token that holds some bytes of a character covers the
//! whole character, so tokens that share one overlap there.
//!
//! Code points are counted as Python counts them: a pair of surrogates, which is one character of UTF-8, as two.

use std::borrow::Cow;

use crate::encode::Encoded;
use crate::error::{Error, reserve};
use crate::segment::Segment;
use crate::text::Text;
use crate::tokenizer::{Options, Tokenizer};

/// What offsets count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetUnit {
    /// Code points of the text, as Python's `len`.
    CodePoints,
    /// Bytes of its UTF-8.
    Bytes,
}

/// The range of each token, in its own segment.
#[derive(Debug, Default)]
pub struct Offsets {
    /// Where each begins.
    pub starts: Vec<i64>,
    /// Where each ends.
    pub ends: Vec<i64>,
    /// For each segment, the number of tokens up to its end.
    pub segment_ends: Vec<usize>,
}

impl Offsets {
    /// For each token, the index of its segment.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn segment_index(&self) -> Result<Vec<i64>, Error> {
        segment_index(&self.segment_ends, self.starts.len())
    }
}

/// For each of `tokens` tokens, the index of its segment.
pub(crate) fn segment_index(segment_ends: &[usize], tokens: usize) -> Result<Vec<i64>, Error> {
    let mut index = Vec::new();
    reserve(&mut index, tokens)?;
    for (segment, &end) in (0..).zip(segment_ends) {
        index.resize(end, segment);
    }
    Ok(index)
}

impl Tokenizer {
    /// The ids of `segments`, as [`Tokenizer::encode`] gives them, and where each comes from.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`]; [`Error::NoOffsets`] if the tokens do not spell the text.
    ///
    /// # Examples
    /// ```
    /// # use kizami_core::{*, special::Controls, pretoken::Pattern};
    /// # let tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).chain([b"ab".to_vec()]).collect();
    /// # let tables = Tables::build(Vocab::from_ranked(&tokens)?)?;
    /// # let tokenizer = Tokenizer::new(tables.into(), Controls::new(vec![], 257)?, Pattern::Kimi);
    /// let text = [Segment { text: Text::Utf8("ab\u{e9}"), allow_special: false }];
    /// let (ids, offsets) = tokenizer.encode_with_offsets(&text, Options::default(), OffsetUnit::CodePoints)?;
    /// assert_eq!(ids.parts().flatten().copied().collect::<Vec<_>>(), [256, 0xc3, 0xa9]);
    /// assert_eq!((offsets.starts, offsets.ends), (vec![0, 2, 2], vec![2, 3, 3]));
    /// # Ok::<(), kizami_core::Error>(())
    /// ```
    pub fn encode_with_offsets<'a>(
        &'a self,
        segments: &'a [Segment<'a>],
        options: Options,
        unit: OffsetUnit,
    ) -> Result<(Encoded<'a>, Offsets), Error> {
        let options = Options { legacy_chunks: options.legacy_chunks && self.makes_cuts() };
        self.refuse_normalized(segments)?;
        let mut segment_ends = Vec::new();
        let encoded = self.prepare(segments, options)?.encode(Some(&mut segment_ends))?;
        // The id of two names does not tell which of them it was.
        if self.prefix.is_some() || self.controls.have_aliases() {
            self.refuse_respelled(segments, &encoded, &segment_ends)?;
        }
        let mut offsets = Offsets { segment_ends, ..Offsets::default() };
        reserve(&mut offsets.starts, encoded.len())?;
        reserve(&mut offsets.ends, encoded.len())?;
        // An id of our own making has bytes.
        let lens = encoded.parts().flatten().map(|&id| self.token_bytes(id).map_or(0, <[u8]>::len));
        offsets.fill(segments, options, unit, lens)?;
        Ok((encoded, offsets))
    }
}

impl Tokenizer {
    /// Tokens may not spell the text even if they are as long: those of a text that a space is put before and another one is
    /// left out of, and one that has another name of the same length.
    pub(crate) fn refuse_respelled(
        &self,
        segments: &[Segment<'_>],
        encoded: &Encoded<'_>,
        ends: &[usize],
    ) -> Result<(), Error> {
        let mut ids = encoded.parts().flatten();
        let mut first = 0;
        for (index, (segment, &last)) in segments.iter().zip(ends).enumerate() {
            let (mut utf8, mut spelled) = (Vec::new(), Vec::<u8>::new());
            segment.text.append_utf8(&mut utf8)?;
            ids.by_ref().take(last - first).for_each(|&id| spelled.extend(self.token_bytes(id).into_iter().flatten()));
            if utf8 != spelled {
                return Err(Error::NoOffsets { segment: index });
            }
            first = last;
        }
        Ok(())
    }

    /// Tokens of a text that is normalized first do not spell the text.
    fn refuse_normalized(&self, segments: &[Segment<'_>]) -> Result<(), Error> {
        let Some(normalizer) = self.normalizer.as_ref() else { return Ok(()) };
        let mut utf8 = Vec::new();
        for (index, segment) in segments.iter().enumerate() {
            utf8.clear();
            segment.text.append_utf8(&mut utf8)?;
            let text = std::str::from_utf8(&utf8).expect("UTF-8, as it was made");
            if !matches!(normalizer.apply(text.into())?, Cow::Borrowed(same) if same.len() == text.len()) {
                return Err(Error::NoOffsets { segment: index });
            }
        }
        Ok(())
    }
}

impl Offsets {
    /// Fills in the ranges of tokens of these lengths.
    fn fill(
        &mut self,
        segments: &[Segment<'_>],
        options: Options,
        unit: OffsetUnit,
        mut lens: impl Iterator<Item = usize>,
    ) -> Result<(), Error> {
        let mut first = 0;
        for (index, (segment, &last)) in segments.iter().zip(&self.segment_ends).enumerate() {
            let lens = lens.by_ref().take(last - first);
            let mut put = |start, end| {
                self.starts.push(start);
                self.ends.push(end);
            };
            let tiled = match segment.text.as_utf8() {
                Some(text) if unit == OffsetUnit::Bytes || text.is_ascii() => tile_bytes(text.len(), lens, &mut put),
                _ => tile(Characters::new(segment.text, options), lens, unit, &mut put),
            };
            if !tiled {
                return Err(Error::NoOffsets { segment: index });
            }
            first = last;
        }
        Ok(())
    }
}

/// An offset as NumPy takes it.
pub(crate) fn int(offset: usize) -> i64 {
    i64::try_from(offset).expect("segments have less than 2^31 bytes")
}

/// Ranges in bytes; whether they are those of the text.
fn tile_bytes(text: usize, lens: impl Iterator<Item = usize>, put: &mut impl FnMut(i64, i64)) -> bool {
    let mut at = 0;
    for len in lens {
        put(int(at), int(at + len));
        at += len;
    }
    at == text
}

/// Ranges in a text that needs a look at each character; whether they are those of the text.
fn tile(
    mut characters: Characters<'_>,
    lens: impl Iterator<Item = usize>,
    unit: OffsetUnit,
    put: &mut impl FnMut(i64, i64),
) -> bool {
    let mut at = 0;
    for len in lens {
        let end = at + len;
        if unit == OffsetUnit::Bytes {
            put(int(at), int(end));
        } else {
            characters.go_to(at);
            let first = characters.start.points;
            characters.go_to(end.saturating_sub(1));
            put(int(first), int(characters.end.points));
        }
        at = end;
    }
    characters.go_to(usize::MAX);
    at == characters.end.bytes
}

/// A place between two characters.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    units: usize,
    points: usize,
    bytes: usize,
}

/// The characters of a text, one at a time.
pub(crate) struct Characters<'a> {
    text: Text<'a>,
    /// Where the published path cuts the text: two surrogates there are no pair.
    cuts: Vec<usize>,
    /// The character looked at is from here
    start: Place,
    /// to here.
    end: Place,
}

impl<'a> Characters<'a> {
    pub(crate) fn new(text: Text<'a>, options: Options) -> Self {
        let pairs = matches!(text, Text::Ucs2(_) | Text::Ucs4(_));
        let cuts = if pairs && options.legacy_chunks { text.cuts() } else { Vec::new() };
        Characters { text, cuts, start: Place::default(), end: Place::default() }
    }

    /// Goes on to the character that holds a byte, or to the last.
    #[inline]
    pub(crate) fn go_to(&mut self, byte: usize) {
        while self.end.bytes <= byte && self.end.units < self.text.len() {
            let (units, points, bytes) = self.widths(self.end.units);
            let Place { units: before, points: points_before, bytes: bytes_before } = self.end;
            self.start = self.end;
            self.end = Place { units: before + units, points: points_before + points, bytes: bytes_before + bytes };
        }
    }

    /// Where the character looked at begins, in code points.
    pub(crate) fn first_point(&self) -> usize {
        self.start.points
    }

    /// Where it ends.
    pub(crate) fn end_point(&self) -> usize {
        self.end.points
    }

    /// Units, code points and bytes of UTF-8 of the character at a unit.
    #[inline]
    fn widths(&self, at: usize) -> (usize, usize, usize) {
        let unit = self.text.unit(at);
        if let Text::Utf8(_) = self.text {
            let bytes = 1 + usize::from(unit >= 0xc0) + usize::from(unit >= 0xe0) + usize::from(unit >= 0xf0);
            return (bytes, 1, bytes);
        }
        match unit {
            0..0x80 => (1, 1, 1),
            0x80..0x800 => (1, 1, 2),
            0xd800..0xdc00 if self.is_pair(at + 1) => (2, 2, 4),
            0x1_0000..0x11_0000 => (1, 1, 4),
            // Lone surrogates, and what is no code point, become U+FFFD.
            _ => (1, 1, 3),
        }
    }

    /// Whether the second half of a pair is at a unit, after the first.
    fn is_pair(&self, at: usize) -> bool {
        let is_low = at < self.text.len() && self.text.unit(at) & 0xffff_fc00 == 0xdc00;
        is_low && self.cuts.binary_search(&at).is_err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranges of tokens of these lengths; None if they do not tile the text.
    fn ranges(text: Text<'_>, lens: &[usize], unit: OffsetUnit) -> Option<Vec<(i64, i64)>> {
        let mut out = Vec::new();
        let characters = Characters::new(text, Options::default());
        tile(characters, lens.iter().copied(), unit, &mut |start, end| out.push((start, end))).then_some(out)
    }

    #[test]
    fn tokens_that_share_a_character_all_cover_it() {
        // a, é, 中, a pair, a lone surrogate, b: 1 + 2 + 3 + 4 + 3 + 1 bytes, 7 code points.
        let units = [0x61, 0xe9, 0x4e2d, 0xd83d, 0xde00, 0xd83d, 0x62];
        let wide: Vec<u32> = units.iter().copied().map(u32::from).collect();
        let lens = [2, 1, 1, 1, 2, 3, 4];
        let in_bytes = [(0, 2), (2, 3), (3, 4), (4, 5), (5, 7), (7, 10), (10, 14)];
        let in_points = [(0, 2), (1, 2), (2, 3), (2, 3), (2, 5), (3, 5), (5, 7)];
        for text in [Text::Ucs2(&units), Text::Ucs4(&wide)] {
            assert_eq!(ranges(text, &lens, OffsetUnit::Bytes).unwrap(), in_bytes);
            assert_eq!(ranges(text, &lens, OffsetUnit::CodePoints).unwrap(), in_points);
            for unit in [OffsetUnit::Bytes, OffsetUnit::CodePoints] {
                assert_eq!(ranges(text, &lens[..6], unit), None);
                assert_eq!(ranges(text, &[2, 1, 1, 1, 2, 3, 5], unit), None);
            }
        }
    }

    #[test]
    fn tokens_that_do_not_spell_a_segment_are_refused() {
        let segment = |text| Segment { text: Text::Utf8(text), allow_special: false };
        let segments = [segment("ab"), segment("é")];
        for (lens, want) in [
            (&[1, 1, 2][..], Ok(())),
            (&[2, 1, 2], Err(Error::NoOffsets { segment: 0 })),
            (&[1, 1, 1], Err(Error::NoOffsets { segment: 1 })),
        ] {
            for unit in [OffsetUnit::Bytes, OffsetUnit::CodePoints] {
                let mut offsets = Offsets { segment_ends: vec![2, 3], ..Offsets::default() };
                assert_eq!(offsets.fill(&segments, Options::default(), unit, lens.iter().copied()), want);
            }
        }
    }

    #[test]
    fn an_id_of_two_names_has_no_place_where_it_was_the_other() {
        use crate::special::{ControlToken, Controls};
        let bytes: Vec<[u8; 1]> = (0..=255u8).map(|byte| [byte]).collect();
        let tables = crate::Tables::build(crate::Vocab::from_ranked(&bytes).unwrap()).unwrap();
        let tokens = [(256, "<a>"), (256, "<b>"), (257, "<c>")].map(|(id, name)| ControlToken::new(id, name, false));
        let controls = Controls::new(tokens.to_vec(), 256).unwrap();
        let tokenizer = Tokenizer::new(tables.into(), controls, crate::pretoken::Pattern::Kimi);
        for (text, allow_special, want) in [
            ("x<a><c>", true, Ok(vec![0, 1, 4])),
            ("x<b><c>", false, Ok((0..7).collect())),
            ("x<b><c>", true, Err(Error::NoOffsets { segment: 0 })),
        ] {
            let segments = [Segment { text: Text::Utf8(text), allow_special }];
            let found = tokenizer.encode_with_offsets(&segments, Options::default(), OffsetUnit::Bytes);
            assert_eq!(found.map(|(_, offsets)| offsets.starts), want, "{text} {allow_special}");
        }
    }

    #[test]
    fn all_forms_of_a_text_agree() {
        let text = "aé\u{ff}";
        let latin: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
        let units: Vec<u16> = text.encode_utf16().collect();
        let wide: Vec<u32> = text.chars().map(u32::from).collect();
        for form in [Text::Utf8(text), Text::Latin1(&latin), Text::Ucs2(&units), Text::Ucs4(&wide)] {
            assert_eq!(ranges(form, &[2, 2, 1], OffsetUnit::CodePoints).unwrap(), [(0, 2), (1, 3), (2, 3)]);
            assert_eq!(ranges(form, &[2, 2, 1], OffsetUnit::Bytes).unwrap(), [(0, 2), (2, 4), (4, 5)]);
            assert_eq!(ranges(form, &[2, 2], OffsetUnit::CodePoints), None);
            assert_eq!(ranges(form, &[2, 2, 2], OffsetUnit::CodePoints), None);
        }
    }

    #[test]
    fn a_cut_parts_a_pair() {
        let mut units = vec![0x61; crate::cuts::RUN - 1];
        units.extend([0xd83d, 0xde00]);
        let parted = [vec![1; crate::cuts::RUN - 1], vec![3, 3]].concat();
        let last = ranges(Text::Ucs2(&units), &parted, OffsetUnit::CodePoints).unwrap().split_off(24_999);
        assert_eq!(last, [(24_999, 25_000), (25_000, 25_001)]);
        let whole = [vec![1; crate::cuts::RUN - 2], vec![4]].concat();
        let last = ranges(Text::Ucs2(&units[1..]), &whole, OffsetUnit::CodePoints).unwrap().split_off(24_998);
        assert_eq!(last, [(24_998, 25_000)]);
    }
}
