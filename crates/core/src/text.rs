//! Text as Python holds it, and as the engine wants it: UTF-8.
//!
//! A Python `str` is ASCII, Latin-1, UCS-2 or UCS-4 in memory, and may hold lone surrogates. ASCII is used
//! in place; all else is transcoded once, outside the interpreter lock. Surrogates follow the published
//! path: a high and a low one side by side become the code point that they stand for, any other becomes
//! U+FFFD; a cut (see [`crate::cuts`]) between the two parts them.

use crate::cuts;
use crate::error::{Error, reserve};
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

impl<'a> Text<'a> {
    /// Units of memory.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Text::Utf8(s) => s.len(),
            Text::Latin1(b) => b.len(),
            Text::Ucs2(u) => u.len(),
            Text::Ucs4(u) => u.len(),
        }
    }

    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

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

    /// The text itself, where it is UTF-8 already.
    #[must_use]
    pub fn as_utf8(&self) -> Option<&'a [u8]> {
        match *self {
            Text::Utf8(text) => Some(text.as_bytes()),
            Text::Latin1(bytes) if bytes.is_ascii() => Some(bytes),
            _ => None,
        }
    }

    /// The code point of a unit of memory; of a text that is not [`Text::Utf8`].
    #[inline]
    #[must_use]
    pub fn unit(&self, at: usize) -> u32 {
        match self {
            Text::Utf8(s) => s.as_bytes()[at].into(),
            Text::Latin1(b) => b[at].into(),
            Text::Ucs2(u) => u[at].into(),
            Text::Ucs4(u) => u[at],
        }
    }

    /// A range of it, in units of memory.
    ///
    /// # Panics
    /// If the range is not inside, or parts a character of a [`Text::Utf8`].
    #[must_use]
    pub fn slice(&self, from: usize, to: usize) -> Text<'a> {
        match *self {
            Text::Utf8(s) => Text::Utf8(&s[from..to]),
            Text::Latin1(b) => Text::Latin1(&b[from..to]),
            Text::Ucs2(u) => Text::Ucs2(&u[from..to]),
            Text::Ucs4(u) => Text::Ucs4(&u[from..to]),
        }
    }

    /// Where the published path cuts it, in units of memory.
    #[must_use]
    pub fn cuts(&self) -> Vec<usize> {
        match *self {
            Text::Utf8(s) => cuts::cuts_utf8(s.as_bytes(), s.is_ascii()),
            Text::Latin1(b) => cuts::cuts_units(b),
            Text::Ucs2(u) => cuts::cuts_units(u),
            Text::Ucs4(u) => cuts::cuts_units(u),
        }
    }

    /// Appends its UTF-8.
    ///
    /// # Errors
    /// [`Error::Memory`] if the buffer cannot grow.
    pub fn append_utf8(&self, buffer: &mut Vec<u8>) -> Result<(), Error> {
        match *self {
            Text::Utf8(text) => copy(text.as_bytes(), buffer),
            Text::Latin1(bytes) if bytes.is_ascii() => copy(bytes, buffer),
            Text::Latin1(bytes) => utf8::append(bytes, buffer),
            Text::Ucs2(units) => utf8::append(units, buffer),
            Text::Ucs4(units) => utf8::append(units, buffer),
        }
    }
}

fn copy(bytes: &[u8], buffer: &mut Vec<u8>) -> Result<(), Error> {
    reserve(buffer, bytes.len())?;
    buffer.extend_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf8(text: Text<'_>) -> String {
        let mut buffer = Vec::new();
        text.append_utf8(&mut buffer).unwrap();
        String::from_utf8(buffer).unwrap()
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
    fn all_forms_of_a_text_give_the_same_bytes() {
        let text = "aé\u{ff}";
        let latin: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
        let wide: Vec<u32> = text.chars().map(u32::from).collect();
        let units: Vec<u16> = text.encode_utf16().collect();
        for form in [Text::Utf8(text), Text::Latin1(&latin), Text::Ucs2(&units), Text::Ucs4(&wide)] {
            assert_eq!(utf8(form), text);
            assert_eq!(form.as_utf8().is_some(), matches!(form, Text::Utf8(_)));
        }
        assert_eq!(utf8(Text::Latin1(b"abc")), "abc");
        assert_eq!(Text::Latin1(b"abc").as_utf8(), Some(&b"abc"[..]));
    }
}
