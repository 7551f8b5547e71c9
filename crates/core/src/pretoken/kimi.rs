//! The split of the Kimi line (K2, K2.5, K3, Kimi-Linear, Moonlight) as a scanner.
//!
//! Rule: [`KIMI_PATTERN`], first alternative that matches, leftmost. Below, A1 … A8 are its alternatives
//! in order. With the classes of [`crate::unicode`], what matches at a position follows from the
//! class of the character there and a short look ahead:
//!
//! - Han: A1, the run of Han.
//! - letter or mark: A2 or A3, see [`word`]. A mark could also be the optional prefix of
//!   A2/A3; the match is then the same as with the mark as part of the word.
//! - number: A4, up to three numbers (a Han number such as U+3007 counts after the first).
//! - other: A2/A3 with the character as prefix if a word follows, else A5.
//! - space: A2/A3 as prefix if a word follows; else, for U+0020 before an `other`, A5; else A6 … A8.
//! - newline: A6 (a newline is no prefix).
//!
//! A word: A2 is `U* L+` and A3 is `U+ L*` where U is upper, caseless, mark and L is lower, caseless,
//! mark. Greedy `U*` runs over all of U. If a lower follows, `L+` takes it and the L-run after
//! it. If not, A2 backtracks to the last character of the U-run that is also in L (caseless or mark) and
//! ends there; if the run holds none, A2 fails and A3 takes the run, which is all upper.
//!
//! Complexity: linear. Each character is looked at a bounded number of times: a run of white space
//! at most twice (once for its newlines, once for what follows the last of them).

use crate::unicode::{
    CASELESS, HAN_LETTER, HAN_NUMBER, HAN_OTHER, LOWER, MARK, NEWLINE, NUMBER, OTHER, SPACE, UPPER, class_of,
    class_of_byte, decode_at,
};

/// The published pattern, as the tiktoken-style vocabulary of the Kimi line states it.
pub const KIMI_PATTERN: &str = concat!(
    r"[\p{Han}]+|",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"\p{N}{1,3}|",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|",
    r"\s*[\r\n]+|",
    r"\s+(?!\S)|",
    r"\s+",
);

/// See [`super::Pattern::is_hard_boundary`]. Three places, each independent of all context:
///
/// - before U+0020 after anything but white space: inside a pre-token a space can only stand first (A2, A3, A5) or in
///   a run of white space (A6 … A8), and no alternative goes on from anything else to it;
/// - after `\n` before a printable ASCII character other than space, or a Han letter: after a newline only newlines
///   (A5) or white space (A6) can follow in a pre-token;
/// - before a Han letter after anything that is neither Han nor white space: Han letters occur in A1 only.
///
/// Where white space is before, it would matter to A7 (`\s+(?!\S)`) that the text goes on.
pub(super) fn is_hard_boundary(before: u32, here: u32) -> bool {
    if before == 0x0a {
        return (0x21..0x7f).contains(&here) || class_of(here) == HAN_LETTER;
    }
    if here == 0x20 {
        return set(&[SPACE, NEWLINE]) >> class_of(before) & 1 == 0;
    }
    // What a surrogate stands for is not known here.
    here >= 0x2e80
        && class_of(here) == HAN_LETTER
        && set(&[SPACE, NEWLINE, HAN_LETTER, HAN_NUMBER, HAN_OTHER]) >> class_of(before) & 1 == 0
        && !(0xd800..0xe000).contains(&before)
}

/// The class of the character at `at` and the position after it.
#[inline(always)]
fn step(text: &[u8], at: usize) -> (u8, usize) {
    let byte = text[at];
    if byte < 0x80 {
        return (class_of_byte(byte), at + 1);
    }
    let (code_point, len) = decode_at(text, at);
    (class_of(code_point), at + len)
}

/// The end of the run of characters from `at` whose class is in `classes` (a bit set).
#[inline(always)]
fn run(text: &[u8], mut at: usize, classes: u16) -> usize {
    while at < text.len() {
        let (class, next) = step(text, at);
        if classes >> class & 1 == 0 {
            break;
        }
        at = next;
    }
    at
}

const fn set(classes: &[u8]) -> u16 {
    let mut bits = 0;
    let mut i = 0;
    while i < classes.len() {
        bits |= 1 << classes[i];
        i += 1;
    }
    bits
}

/// `\p{Han}`.
const HAN: u16 = set(&[HAN_LETTER, HAN_NUMBER, HAN_OTHER]);
/// `[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`.
const LOWER_RUN: u16 = set(&[LOWER, CASELESS, MARK]);
/// `[^\s\p{L}\p{N}]`.
const SYMBOL: u16 = set(&[OTHER, MARK, HAN_OTHER]);

/// The end of the pre-token that starts at `at` (below `text.len()`).
#[inline]
pub(super) fn next_end(text: &[u8], at: usize) -> usize {
    let (class, next) = step(text, at);
    match class {
        LOWER | UPPER | CASELESS | MARK => word(text, at).unwrap_or(next),
        SPACE => match word(text, next) {
            Some(end) => end,
            None if text[at] == b' ' && next < text.len() && is_symbol(text, next) => symbols(text, next),
            None => white_space(text, at),
        },
        OTHER => word(text, next).unwrap_or_else(|| symbols(text, at)),
        NUMBER => digits(text, next),
        NEWLINE => white_space(text, at),
        _ => run(text, next, HAN),
    }
}

#[inline(always)]
fn is_symbol(text: &[u8], at: usize) -> bool {
    SYMBOL >> step(text, at).0 & 1 == 1
}

/// A2 or A3 without the optional prefix: where the word from `start` ends, or None if none does.
#[inline]
fn word(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    // Where A2 would end if no lower-case letter follows the U-run.
    let mut last_shared = None;
    while at < text.len() {
        let (class, next) = step(text, at);
        match class {
            UPPER => {}
            CASELESS | MARK => last_shared = Some(next),
            LOWER => return Some(contraction(text, run(text, next, LOWER_RUN))),
            _ => break,
        }
        at = next;
    }
    match last_shared {
        Some(end) => Some(contraction(text, end)),
        None if at > start => Some(contraction(text, at)),
        None => None,
    }
}

/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)?` at `at`. Case folding is Unicode's: U+017F counts as `s`.
#[inline]
pub(super) fn contraction(text: &[u8], at: usize) -> usize {
    if text.get(at) != Some(&b'\'') {
        return at;
    }
    let lower = |k: usize| text.get(at + k).map(u8::to_ascii_lowercase);
    match (lower(1), lower(2)) {
        (Some(b's' | b't' | b'm' | b'd'), _) => at + 2,
        (Some(b'r' | b'v'), Some(b'e')) | (Some(b'l'), Some(b'l')) => at + 3,
        // U+017F is C5 BF; the ASCII lower-casing above leaves both bytes as they are.
        (Some(0xc5), Some(0xbf)) => at + 3,
        _ => at,
    }
}

/// A4 after its first number.
fn digits(text: &[u8], mut at: usize) -> usize {
    for _ in 0..2 {
        if at == text.len() {
            break;
        }
        let (class, next) = step(text, at);
        if class != NUMBER && class != HAN_NUMBER {
            break;
        }
        at = next;
    }
    at
}

/// A5 after its optional space.
fn symbols(text: &[u8], at: usize) -> usize {
    let mut end = run(text, at, SYMBOL);
    while end < text.len() && matches!(text[end], b'\r' | b'\n') {
        end += 1;
    }
    end
}

/// A6, A7 or A8 at a white-space character.
fn white_space(text: &[u8], start: usize) -> usize {
    let mut at = start;
    let mut after_newline = None;
    // Start of the last character of the run.
    let mut last = start;
    while at < text.len() {
        let (class, next) = step(text, at);
        match class {
            NEWLINE => after_newline = Some(next),
            SPACE => {}
            _ => break,
        }
        last = at;
        at = next;
    }
    match after_newline {
        Some(end) => end,
        // A7 leaves one character for the word that follows, if there is one to leave.
        None if at < text.len() && last > start => last,
        None => at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pretoken::Pattern;

    fn split(text: &str) -> Vec<&str> {
        let mut out = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let end = next_end(text.as_bytes(), at);
            out.push(&text[at..end]);
            at = end;
        }
        out
    }

    #[test]
    fn alternatives_by_hand() {
        for (text, want) in [
            ("Hello world's", vec!["Hello", " world's"]),
            ("don't'll", vec!["don't", "'ll"]),
            ("it'ſ x", vec!["it'ſ", " x"]),
            ("中文abc", vec!["中文", "abc"]),
            ("HTTPServer", vec!["HTTPServer"]),
            ("ABC", vec!["ABC"]),
            ("ªBC", vec!["ª", "BC"]),
            ("\u{301}BC", vec!["\u{301}", "BC"]),
            ("1234567", vec!["123", "456", "7"]),
            ("1〇2", vec!["1〇2"]),
            ("a  b", vec!["a", " ", " b"]),
            ("a \n\n  b", vec!["a", " \n\n", " ", " b"]),
            ("x !=\r\n\ny", vec!["x", " !=\r\n\n", "y"]),
            ("   ", vec!["   "]),
            (" \u{a0}1", vec![" ", "\u{a0}", "1"]),
        ] {
            assert_eq!(split(text), want, "{text:?}");
        }
    }

    #[test]
    fn hard_boundaries_are_boundaries_in_any_context() {
        let parts =
            ["a", "Z", "9", " ", "\n", "\r", "'s", "中", "〇", "!", "\u{301}", "ª", "é", "\u{3000}", "⺀", "か"];
        let pattern = Pattern::Kimi;
        let split = |text: &str| {
            let mut ends = vec![];
            while ends.last().copied().unwrap_or(0) < text.len() {
                ends.push(next_end(text.as_bytes(), ends.last().copied().unwrap_or(0)));
            }
            ends
        };
        let mut checked = 0;
        for code in 0..parts.len().pow(4) {
            let text: String = (0..4).map(|k| parts[code / parts.len().pow(k) % parts.len()]).collect();
            let ends = split(&text);
            for at in (1..text.len()).filter(|&at| pattern.is_hard_boundary(text.as_bytes(), at)) {
                checked += 1;
                let (left, right) = text.split_at(at);
                let apart: Vec<usize> =
                    split(left).into_iter().chain(split(right).iter().map(|end| at + end)).collect();
                assert_eq!(apart, ends, "{text:?} at {at}");
            }
        }
        assert!(checked > 20_000, "{checked}");
    }
}
