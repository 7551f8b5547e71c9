//! BPE of a long pre-token, window by window, each by the strategy that suits it (lemma 2 of [`crate::merge`]).
//!
//! # Stitching
//! A cover is the BPE result if and only if all its neighbours are valid. So results of parts of a text may be put
//! together: if the tokens that cover the text up to some place are valid neighbours, and so are the tokens that cover
//! what follows, and the two that meet there are valid too, then all together are *the* result, whatever lay outside
//! the part for which each was found. Only the tokens next to the end of a window are in doubt, because BPE may join
//! them with what follows: the last few are dropped, and the next window begins where they did. If the tokens do not
//! fit there, the last token before is taken back and the next window begins earlier.
//!
//! # Which strategy
//! Where tokens are short (random letters, punctuation), the definition in registers makes few joins, while a longest
//! match is often wrong: windows of 32 bytes. Where they are long, and always if all windows were
//! refused, longest match: it reads a token in one walk, and runs of one character by their hints.
//!
//! # Complexity
//! O(n): a window covers new bytes or is counted as refused, and after a number of those that is in
//! proportion to n the rest is left to one longest match from the beginning, which is O(n) by itself.

use super::greedy::{is_valid_pair, merge_greedy};
use super::short::{MAX_BYTES, merge_short};
use super::{MergeTables, Scratch};
use crate::num::{ix, to_u32};

/// Pieces of at least this many bytes are merged in windows.
pub const MIN_BYTES: usize = 256;
/// Tokens at the end of a window that are not trusted.
const DOUBTFUL: usize = 1;
/// Tokens of this many bytes or more, on average, are long.
const LONG_TOKEN: usize = 4;
/// Bytes of the first window for longest match; each that follows directly is twice as long.
const GREEDY_WINDOW: usize = 512;

/// Leaves the BPE result of `piece` (not empty) in `scratch.tokens`. Needs [`MergeTables::greedy`].
pub fn merge_long(tables: &MergeTables, piece: &[u8], scratch: &mut Scratch) {
    // Of random letters, which are worse than any text, one window in forty is refused.
    if !merge_in_windows(tables, piece, scratch, 8 + piece.len() / 128) {
        merge_greedy(tables, piece, scratch);
    }
}

/// [`merge_long`], unless more than `allowed` windows are refused: then it gives up and returns false.
fn merge_in_windows(tables: &MergeTables, piece: &[u8], scratch: &mut Scratch, mut allowed: usize) -> bool {
    let (mut cover, mut cover_starts) = (std::mem::take(&mut scratch.cover), std::mem::take(&mut scratch.cover_starts));
    cover.clear();
    cover_starts.clear();
    let mut window = MAX_BYTES;
    let mut at = 0;
    while at < piece.len() {
        let end = (at + window).min(piece.len());
        if window == MAX_BYTES {
            merge_short(tables, &piece[at..end], scratch);
        } else {
            merge_greedy(tables, &piece[at..end], scratch);
        }
        let Scratch { tokens, starts, .. } = &mut *scratch;
        if cover.last().is_some_and(|&last| !is_valid_pair(tables, last, tokens[0], false)) {
            if allowed == 0 {
                (scratch.cover, scratch.cover_starts) = (cover, cover_starts);
                return false;
            }
            allowed -= 1;
            cover.pop();
            at = ix(cover_starts.pop().expect("as many as tokens"));
            continue;
        }
        let found = tokens.len();
        let trusted = if end == piece.len() { found } else { found.saturating_sub(DOUBTFUL).max(1) };
        let next = if trusted == found { end } else { at + ix(starts[trusted]) };
        cover.extend_from_slice(&tokens[..trusted]);
        cover_starts.extend(starts[..trusted].iter().map(|&start| to_u32(at) + start));
        window = match (found * LONG_TOKEN > end - at, window) {
            (true, _) => MAX_BYTES,
            (false, MAX_BYTES) => GREEDY_WINDOW,
            (false, _) => 2 * window,
        };
        at = next;
    }
    scratch.cover_starts = cover_starts;
    scratch.cover = std::mem::replace(&mut scratch.tokens, cover);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::heap::merge_heap;
    use crate::vocab::Vocab;

    #[test]
    fn a_border_that_depends_on_all_that_follows_is_found() {
        // Bytes that count up, joined in pairs from the right: whether a place is a border depends on the last byte.
        let mut tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).collect();
        tokens.extend((0..255u8).rev().map(|b| vec![b, b + 1]));
        let tables = MergeTables::build(&Vocab::from_ranked(&tokens).unwrap()).unwrap();
        let (mut want, mut scratch) = (Scratch::default(), Scratch::default());
        let mut gave_up = 0;
        for end in 1..=255u8 {
            let piece: Vec<u8> = (0..=end).collect();
            merge_heap(&tables, &piece, &mut want);
            merge_long(&tables, &piece, &mut scratch);
            assert_eq!(scratch.tokens(), want.tokens());
            for allowed in [0, 1, 100, 1000] {
                if merge_in_windows(&tables, &piece, &mut scratch, allowed) {
                    assert_eq!(scratch.tokens(), want.tokens());
                } else {
                    gave_up += 1;
                }
            }
        }
        assert!(gave_up > 100, "{gave_up}: the text is too easy");
    }
}
