//! Places inside a pre-token across which BPE can never join.
//!
//! A join across the border of two characters makes a token that holds the last byte of the one and the first byte of the
//! other. If the vocabulary has no such token for these two characters, what stands on both sides is merged on its own,
//! and each side may be looked up by itself. In scripts without spaces that turns most merging into look-ups.
//!
//! The sets are bit maps by hash: a false "may join" costs time, never exactness. A token that holds only a part of a
//! character counts for every character that the part could belong to:
//! - a part of the second character (a lead byte, perhaps more): all characters that begin so are entered. Characters of
//!   four bytes are told apart by their first two only, so that a lead byte stands for 64 entries and not for 2^18;
//! - a part of the first character: entered by its last byte in a map of its own, `tails`.

use std::collections::HashSet;

use crate::num::{fast_range, to_u32};
use crate::table::Table;
use crate::unicode::decode_at;
use crate::vocab::Vocab;

/// 2 M bits, 256 KB: 160,000 entries for the Kimi line.
const PAIR_WORDS: usize = 1 << 15;
/// 128 K bits.
const TAIL_WORDS: usize = 1 << 11;

/// Which characters may be joined.
#[derive(Debug, Clone)]
pub struct Borders {
    /// First `PAIR_WORDS` words by both characters, then `TAIL_WORDS` words by last byte and second character.
    bits: Table<u64>,
}

#[inline(always)]
fn mix(a: u32, b: u32) -> u64 {
    (u64::from(a) << 21 | u64::from(b)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Borders {
    pub(super) fn build(vocab: &Vocab) -> Self {
        let mut bits = vec![0; PAIR_WORDS + TAIL_WORDS];
        // A hostile file repeats what is costly to enter, parts of characters: each is entered once.
        let mut seen = HashSet::new();
        let mut ascii = [0u128; 128];
        for token in vocab.iter() {
            for at in (1..token.len()).filter(|&at| is_lead(token[at])) {
                if token[at - 1] < 0x80 && token[at] < 0x80 {
                    // Most borders, of few kinds.
                    ascii[usize::from(token[at - 1])] |= 1 << token[at];
                    continue;
                }
                let border = Border::at(token, at);
                if border.head.len() == length(border.head[0]) || seen.insert(border) {
                    border.enter(&mut bits);
                }
            }
        }
        for (first, seconds) in (0..).zip(ascii) {
            for second in (0..128).filter(|second| seconds >> second & 1 == 1) {
                set(&mut bits[..PAIR_WORDS], mix(first, second));
            }
        }
        Borders { bits: bits.into() }
    }

    pub(crate) fn from_table(bits: Table<u64>) -> Self {
        Borders { bits }
    }

    pub(crate) fn table(&self) -> &[u64] {
        &self.bits
    }

    /// Whether the table has its size.
    pub(crate) fn is_sound(&self) -> bool {
        self.bits.len() == PAIR_WORDS + TAIL_WORDS
    }

    /// The ends of the stretches of `piece` (not empty): the borders that no join crosses, and the end of the piece. `ends`
    /// is memory for them.
    ///
    /// A pattern that sees bytes as characters may part one; next to a part of a character no border is said to be.
    ///
    /// One pass without a branch on what it finds, so that the loads of many borders are under way at the same time.
    pub fn stretches<'a>(&self, piece: &[u8], ends: &'a mut Vec<u32>) -> &'a [u32] {
        // Room for one end a byte; what earlier pieces left there is overwritten.
        if ends.len() < piece.len() {
            ends.resize(piece.len(), 0);
        }
        let mut found = 0;
        let first = piece.iter().position(|&byte| is_start(byte)).unwrap_or(piece.len() - 1);
        let (mut before, len) = decode_at(piece, first);
        let mut at = first + len;
        let mut last_byte = piece[at.min(piece.len()) - 1];
        let mut step = |at: usize, here: u32, last_of_here: u8| {
            // Nearly every pair of ASCII characters is in some token: not worth a look.
            let ascii = before < 0x80 && here < 0x80;
            ends[found] = to_u32(at);
            found += usize::from(!(ascii | self.may_join(before, last_byte, group(here))));
            (before, last_byte) = (here, last_of_here);
        };
        while let Some(bytes) = piece.get(at..).and_then(<[u8]>::first_chunk::<4>) {
            // Most of what comes here are characters of three bytes.
            if let [0xe0..=0xef, second, third, _] = *bytes {
                let [first, second, last] = [bytes[0], second, third].map(u32::from);
                step(at, (first & 0x0f) << 12 | (second & 0x3f) << 6 | last & 0x3f, third);
                at += 3;
            } else {
                let (here, len) = decode_at(bytes, 0);
                step(at, here, bytes[len - 1]);
                at += len;
            }
        }
        while at < piece.len() {
            let (here, len) = decode_at(piece, at);
            // Half a character at the end.
            let Some(&last_of_here) = piece.get(at + len - 1) else { break };
            step(at, here, last_of_here);
            at += len;
        }
        ends[found] = to_u32(piece.len());
        &ends[..=found]
    }

    #[inline(always)]
    fn may_join(&self, first: u32, last_byte: u8, second: u32) -> bool {
        let bits = &self.bits[..PAIR_WORDS + TAIL_WORDS];
        let pair = bit(&bits[..PAIR_WORDS], mix(first, second));
        let tail = bit(&bits[PAIR_WORDS..], mix(last_byte.into(), second));
        pair | tail
    }
}

#[inline(always)]
fn bit(words: &[u64], hash: u64) -> bool {
    words[fast_range(hash, words.len())] >> (hash & 63) & 1 == 1
}

fn set(words: &mut [u64], hash: u64) {
    words[fast_range(hash, words.len())] |= 1 << (hash & 63);
}

fn is_start(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

/// Whether a character can begin with the byte.
fn is_lead(byte: u8) -> bool {
    matches!(byte, 0..0x80 | 0xc2..0xf5)
}

/// Length of the character that a lead byte starts.
fn length(lead: u8) -> usize {
    match lead {
        0..0xe0 => 1 + usize::from(lead >= 0xc0),
        0xe0..0xf0 => 3,
        _ => 4,
    }
}

/// What stands for a second character: itself, or for characters of four bytes their first two bytes.
#[inline(always)]
fn group(second: u32) -> u32 {
    if second < 0x1_0000 { second } else { FOUR_BYTES + (second >> 12) }
}

/// The groups of characters of four bytes begin here, above all characters.
const FOUR_BYTES: u32 = 0x11_0000;

/// What one token says of one border inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Border<'a> {
    /// The first character, or None if the token holds only its end.
    first: Option<u32>,
    /// The last byte before the border.
    last_byte: u8,
    /// The bytes of the second character that the token holds.
    head: &'a [u8],
}

impl<'a> Border<'a> {
    /// The border before byte `at` of a token, where a character starts.
    fn at(token: &'a [u8], at: usize) -> Self {
        let mut first = at - 1;
        while first > 0 && !is_start(token[first]) {
            first -= 1;
        }
        let whole = is_lead(token[first]) && length(token[first]) == at - first;
        let longest = &token[at..(at + length(token[at])).min(token.len())];
        let tail = longest[1..].iter().take_while(|&&b| !is_start(b)).count();
        let first = whole.then(|| decode_at(&token[first..at], 0).0);
        Border { first, last_byte: token[at - 1], head: &longest[..=tail] }
    }

    fn enter(&self, bits: &mut [u64]) {
        let (pairs, tails) = bits.split_at_mut(PAIR_WORDS);
        for second in groups_from(self.head) {
            match self.first {
                Some(first) => set(pairs, mix(first, second)),
                None => set(tails, mix(self.last_byte.into(), second)),
            }
        }
    }
}

/// The groups of all characters whose UTF-8 begins with `head`.
fn groups_from(head: &[u8]) -> impl Iterator<Item = u32> {
    let length = length(head[0]);
    let mut padded = [0x80; 4];
    padded[..head.len()].copy_from_slice(head);
    let whole = decode_at(&padded[..length], 0).0;
    // Of four bytes, the first two decide; filled up, they may spell a number below those of four bytes.
    let (first, deciding) = if length == 4 { (FOUR_BYTES + (whole >> 12), 2) } else { (whole, length) };
    let missing = u32::try_from(deciding.saturating_sub(head.len())).expect("at most two");
    first..first + (1 << (6 * missing))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::num::ix;

    #[test]
    fn every_token_lies_in_one_stretch_of_any_text_around_it() {
        let mut tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).collect();
        // Whole characters, a lead byte, two bytes of three, a tail, both.
        tokens.extend(
            ["中文".as_bytes(), b"a\xe4", "日".as_bytes(), b"b\xe6\x97", b"\x87\xe4\xb8\xad", b"\x87\xe6\x97"]
                .map(<[u8]>::to_vec),
        );
        let vocab = Vocab::from_ranked(&tokens).unwrap();
        let borders = Borders::build(&vocab);
        let text = "a中文日b日文中a文中文日";
        let mut ends = vec![7; 10];
        let ends: Vec<usize> = borders.stretches(text.as_bytes(), &mut ends).iter().copied().map(ix).collect();
        for token in vocab.iter().filter(|t| t.len() > 1) {
            for at in (0..text.len() - token.len()).filter(|&at| text.as_bytes()[at..].starts_with(token)) {
                assert!(!ends.iter().any(|&end| end > at && end < at + token.len()), "{token:?} at {at}: {ends:?}");
            }
        }
        assert!(ends.len() > 3, "{ends:?}");
        assert_eq!(ix(decode_at("日".as_bytes(), 0).0), 0x65e5);
    }

    #[test]
    fn beside_a_part_of_a_character_is_no_border() {
        let mut tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).collect();
        tokens.extend([&b"\x88\xe4"[..], b"\xad\xe6"].map(<[u8]>::to_vec));
        let borders = Borders::build(&Vocab::from_ranked(&tokens).unwrap());
        for (piece, want) in [
            (&b"\x88\xe4\xb8\xad\xe6\x97\xa5"[..], &[7][..]),
            (b"\xb8\x88\xe4\xb8\xad\xe4\xb8\xad", &[5, 8]),
            (b"\xe4\xb8\xad\xe4\xb8\xad\xe6", &[3, 7]),
            (b"\xe4\xb8\xad\xe4\xb8\xad\xe6\x97", &[3, 8]),
            (b"\xb8\x88", &[2]),
            (b"\xe4\xb8", &[2]),
        ] {
            assert_eq!(borders.stretches(piece, &mut Vec::new()), want, "{piece:x?}");
        }
    }

    #[test]
    fn parts_of_characters_stand_for_all_of_them() {
        for (head, characters) in [
            (&b"\xe4"[..], '\u{4000}'..='\u{4fff}'),
            (b"\xe4\xb8", '\u{4e00}'..='\u{4e3f}'),
            (b"\xf0", '\u{10000}'..='\u{3ffff}'),
            (b"\xf0\x9f\x8e", '\u{1f380}'..='\u{1f3bf}'),
        ] {
            let groups: Vec<u32> = groups_from(head).collect();
            assert!(groups.len() <= 4096);
            assert!(characters.clone().all(|c| groups.contains(&group(c.into()))), "{head:x?}");
        }
    }
}
