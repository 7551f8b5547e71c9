//! Text as Python holds it, and as the engine wants it: UTF-8.
//!
//! A Python `str` is ASCII, Latin-1, UCS-2 or UCS-4 in memory, and may hold lone surrogates. ASCII is used
//! in place; all else is transcoded once, outside the interpreter lock. Surrogates follow the published
//! path: a high and a low one side by side become the code point that they stand for, any other becomes
//! U+FFFD; a cut (see [`crate::cuts`]) between the two parts them.

use crate::cuts;
use crate::error::Error;
use crate::utf8;

/// The characters of one segment, in the caller's own memory.
#[derive(Debug, Clone, Copy)]
pub enum Text<'a> {
    /// Well-formed UTF-8.
    Utf8(&'a str),
    /// One byte a code point, U+0000 to U+00FF. ASCII is used in place, not copied.
    Latin1(&'a [u8]),
    /// One unit a code point; surrogates may be among them.
    Ucs2(&'a [u16]),
    /// One unit a code point; surrogates may be among them. Units above U+10FFFF become U+FFFD.
    Ucs4(&'a [u32]),
}

/// Where the UTF-8 of a segment is.
#[derive(Debug, Clone, Copy)]
pub enum Utf8<'a> {
    /// The caller's bytes.
    Borrowed(&'a [u8]),
    /// A byte range of the request's arena.
    Arena(usize, usize),
}

impl<'a> Text<'a> {
    /// An upper bound of the UTF-8 length in bytes.
    #[must_use]
    pub fn max_utf8_len(&self) -> usize {
        match self {
            Text::Utf8(s) => s.len(),
            Text::Latin1(b) => b.len() * 2,
            Text::Ucs2(u) => u.len() * 3,
            Text::Ucs4(u) => u.len() * 4,
        }
    }

    /// Gives the UTF-8 (appended to `arena` where it is not there already) and, if `legacy_chunks`, the
    /// places to cut it, as byte offsets.
    ///
    /// # Errors
    /// [`Error::Memory`] if the arena cannot grow.
    pub fn prepare(&self, legacy_chunks: bool, arena: &mut Vec<u8>) -> Result<(Utf8<'a>, Vec<usize>), Error> {
        let start = arena.len();
        let cut = |utf8: &[u8], ascii: bool| if legacy_chunks { cuts::cuts_utf8(utf8, ascii) } else { Vec::new() };
        Ok(match *self {
            Text::Utf8(text) => (Utf8::Borrowed(text.as_bytes()), cut(text.as_bytes(), false)),
            Text::Latin1(bytes) if bytes.is_ascii() => (Utf8::Borrowed(bytes), cut(bytes, true)),
            Text::Latin1(bytes) => {
                utf8::append(bytes, arena)?;
                (Utf8::Arena(start, arena.len()), cut(&arena[start..], false))
            }
            Text::Ucs2(units) => {
                if legacy_chunks && units.len() > cuts::RUN && utf8::has_surrogates(units) {
                    return self.prepare_by_piece(&cuts::cuts_code_points(units), arena);
                }
                utf8::append(units, arena)?;
                (Utf8::Arena(start, arena.len()), cut(&arena[start..], false))
            }
            Text::Ucs4(units) => {
                if legacy_chunks && units.len() > cuts::RUN && utf8::has_surrogates(units) {
                    return self.prepare_by_piece(&cuts::cuts_code_points(units), arena);
                }
                utf8::append(units, arena)?;
                (Utf8::Arena(start, arena.len()), cut(&arena[start..], false))
            }
        })
    }

    /// Transcodes piece by piece, so that a cut parts a surrogate pair.
    fn prepare_by_piece(&self, cuts: &[usize], arena: &mut Vec<u8>) -> Result<(Utf8<'a>, Vec<usize>), Error> {
        let start = arena.len();
        let mut byte_cuts = Vec::with_capacity(cuts.len());
        let mut from = 0;
        for &to in cuts.iter().chain([&usize::MAX]) {
            match *self {
                Text::Ucs2(units) => utf8::append(&units[from..to.min(units.len())], arena)?,
                Text::Ucs4(units) => utf8::append(&units[from..to.min(units.len())], arena)?,
                _ => unreachable!("only these two can hold surrogates"),
            }
            byte_cuts.push(arena.len() - start);
            from = to;
        }
        byte_cuts.pop();
        Ok((Utf8::Arena(start, arena.len()), byte_cuts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf8(text: Text<'_>) -> String {
        let mut arena = Vec::new();
        match text.prepare(true, &mut arena).unwrap().0 {
            Utf8::Borrowed(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            Utf8::Arena(from, to) => String::from_utf8(arena[from..to].to_vec()).unwrap(),
        }
    }

    #[test]
    fn surrogates_pair_up_or_are_replaced() {
        let cases: [(&[u16], &str); 5] = [
            (&[0xd83d], "\u{fffd}"),
            (&[0x61, 0xd83d, 0xde00, 0x62], "a😀b"),
            (&[0xde00, 0xd83d], "\u{fffd}\u{fffd}"),
            (&[0xd83d, 0xd83d, 0xde00], "\u{fffd}😀"),
            (&[0xd83d, 0x4e2d], "\u{fffd}中"),
        ];
        for (units, want) in cases {
            assert_eq!(utf8(Text::Ucs2(units)), want);
            let wide: Vec<u32> = units.iter().map(|&u| u.into()).collect();
            assert_eq!(utf8(Text::Ucs4(&wide)), want);
        }
    }

    #[test]
    fn a_cut_parts_a_pair() {
        let mut units = vec![0x61u16; cuts::RUN - 1];
        units.extend([0xd83d, 0xde00]);
        let mut arena = Vec::new();
        let (_, byte_cuts) = Text::Ucs2(&units).prepare(true, &mut arena).unwrap();
        assert_eq!(byte_cuts, [cuts::RUN - 1 + 3]);
        assert!(arena.ends_with("\u{fffd}\u{fffd}".as_bytes()));
    }
}
