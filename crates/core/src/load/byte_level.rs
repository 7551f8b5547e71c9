//! The alphabet in which byte-level vocabularies are written down: a printable character for each byte.

use crate::pretoken::byte_char;

/// The character of each byte: itself if it is printable, else the next one from U+0100 on (as GPT-2 does it).
#[must_use]
pub fn alphabet() -> [char; 256] {
    std::array::from_fn(|byte| byte_char(u8::try_from(byte).expect("256 of them")))
}

/// Text in that alphabet to bytes, and back.
#[derive(Debug)]
pub struct Alphabet {
    chars: [char; 256],
    /// Byte by code point; the highest character is U+0143.
    bytes: [Option<u8>; 0x144],
}

impl Default for Alphabet {
    fn default() -> Self {
        let chars = alphabet();
        let mut bytes = [None; 0x144];
        for (byte, char) in (0..=255u8).zip(chars) {
            bytes[char as usize] = Some(byte);
        }
        Alphabet { chars, bytes }
    }
}

impl Alphabet {
    /// Adds the bytes that `text` stands for, up to a character that stands for none; whether there is no such character.
    #[must_use]
    pub fn append(&self, text: &str, out: &mut Vec<u8>) -> bool {
        let mut text = text.as_bytes();
        // All characters are of one byte or two.
        while let [lead, rest @ ..] = text {
            let (code_point, rest) = match (lead, rest) {
                (0..0x80, _) => (usize::from(*lead), rest),
                (0xc2..0xe0, [tail, rest @ ..]) => (usize::from(lead & 0x1f) << 6 | usize::from(tail & 0x3f), rest),
                _ => return false,
            };
            let Some(&Some(byte)) = self.bytes.get(code_point) else { return false };
            out.push(byte);
            text = rest;
        }
        true
    }

    /// The bytes that `text` stands for; None if it has a character that stands for none.
    #[must_use]
    pub fn decode(&self, text: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(text.len());
        self.append(text, &mut bytes).then_some(bytes)
    }

    /// The text that stands for `bytes`.
    #[must_use]
    pub fn encode(&self, bytes: &[u8]) -> String {
        bytes.iter().map(|&byte| self.chars[usize::from(byte)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_a_character() {
        let alphabet = Alphabet::default();
        let all: Vec<u8> = (0..=255).collect();
        let text = alphabet.encode(&all);
        assert_eq!(text.chars().collect::<std::collections::HashSet<_>>().len(), 256);
        assert_eq!(alphabet.decode(&text), Some(all));
        // Known from every such vocabulary: a space and a newline.
        assert_eq!(alphabet.encode(b" a\n"), "\u{120}a\u{10a}");
        assert_eq!(alphabet.decode("a b"), None);
        assert_eq!(alphabet.decode("\u{144}"), None);
    }
}
