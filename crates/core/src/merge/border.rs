//! Places inside a pre-token across which BPE can never join.
//!
//! A join across the border of two characters makes a token that holds the last byte of the one and the first byte of the
//! other. If the vocabulary has no such token for these two characters, what stands on both sides is merged on its own,
//! and each side may be looked up by itself. In scripts without spaces that turns most merging into look-ups.
//!
//! The sets are bit maps by hash: a false "may join" costs time, never exactness. A token that holds only a part of a
//! character counts for every character that the part could belong to:
//! - a part of the second character (a lead byte, perhaps more): all characters that begin so are entered;
//! - a part of the first character: entered by its last byte in a map of its own, `tails`.

use crate::num::fast_range;
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
        for token in vocab.iter() {
            for at in 1..token.len() {
                if is_start(token[at]) {
                    enter(&mut bits, token, at);
                }
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

    /// The end of the stretch of `piece` from `start` (a character start) on that may hold joins: a border that
    /// none crosses, or the end of the piece.
    #[inline]
    #[must_use]
    pub fn stretch(&self, piece: &[u8], start: usize) -> usize {
        let (mut before, len) = decode_at(piece, start);
        let mut at = start + len;
        while at < piece.len() {
            let (here, len) = decode_at(piece, at);
            // Nearly every pair of ASCII characters is in some token: not worth a look.
            let ascii = before < 0x80 && here < 0x80;
            if !ascii && !self.may_join(before, piece[at - 1], here) {
                break;
            }
            before = here;
            at += len;
        }
        at.min(piece.len())
    }

    #[inline(always)]
    fn may_join(&self, first: u32, last_byte: u8, second: u32) -> bool {
        let pair = bit(&self.bits[..PAIR_WORDS], mix(first, second));
        let tail = bit(&self.bits[PAIR_WORDS..], mix(last_byte.into(), second));
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

/// Length of the character that a lead byte starts.
fn length(lead: u8) -> usize {
    match lead {
        0..0xe0 => 1 + usize::from(lead >= 0xc0),
        0xe0..0xf0 => 3,
        _ => 4,
    }
}

/// Enters what the token says of the border before its byte `at`, where a character starts.
fn enter(bits: &mut [u64], token: &[u8], at: usize) {
    let mut first = at - 1;
    while first > 0 && !is_start(token[first]) {
        first -= 1;
    }
    let whole_first = is_start(token[first]) && length(token[first]) == at - first;
    let head = &token[at..(at + length(token[at])).min(token.len())];
    let whole_second = length(token[at]) == head.len() && head[1..].iter().all(|&b| !is_start(b));
    let seconds: Vec<u32> =
        if whole_second { vec![decode_at(head, 0).0] } else { characters_from(&head[..run_of_one(head)]).collect() };
    let (pairs, tails) = bits.split_at_mut(PAIR_WORDS);
    for second in seconds {
        if whole_first {
            set(pairs, mix(decode_at(&token[first..at], 0).0, second));
        } else {
            set(tails, mix(token[at - 1].into(), second));
        }
    }
}

/// Bytes of `head` that belong to its first character.
fn run_of_one(head: &[u8]) -> usize {
    1 + head[1..].iter().take_while(|&&b| !is_start(b)).count()
}

/// All characters whose UTF-8 begins with `head`.
fn characters_from(head: &[u8]) -> impl Iterator<Item = u32> {
    let missing = u32::try_from(length(head[0]) - head.len()).expect("at most three");
    let mut padded = head.to_vec();
    padded.resize(length(head[0]), 0x80);
    let first = decode_at(&padded, 0).0;
    (first..first + (1 << (6 * missing))).filter(|c| char::from_u32(*c).is_some())
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
        let mut ends = vec![0];
        while *ends.last().unwrap() < text.len() {
            ends.push(borders.stretch(text.as_bytes(), *ends.last().unwrap()));
        }
        for token in vocab.iter().filter(|t| t.len() > 1) {
            for at in (0..text.len() - token.len()).filter(|&at| text.as_bytes()[at..].starts_with(token)) {
                assert!(!ends.iter().any(|&end| end > at && end < at + token.len()), "{token:?} at {at}: {ends:?}");
            }
        }
        assert!(ends.len() > 3, "{ends:?}");
        assert_eq!(ix(decode_at("日".as_bytes(), 0).0), 0x65e5);
    }

    #[test]
    fn parts_of_characters_stand_for_all_of_them() {
        assert_eq!(characters_from(b"\xe4").count(), 4096);
        assert_eq!(characters_from(b"\xe4\xb8").count(), 64);
        assert_eq!(characters_from(b"\xed").count(), 2048);
    }
}
