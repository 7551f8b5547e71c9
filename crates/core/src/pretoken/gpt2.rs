//! The split of GPT-2 and of all byte-level models that took it over: r50k, p50k, RoBERTa, GPT-NeoX, ModernBERT.
//!
//! Rule: [`GPT2_PATTERN`]. A space joins what follows, whatever that is; otherwise a pre-token is a run of one sort:
//! letters, numbers, white space, or all else. Newlines are white space like any other.

use super::scan::{LETTERS, NO_WORD, NUMBERS, WHITE, contraction_as_written, is, run, step, white};
use crate::unicode::kind_of;

/// The pattern as GPT-2 published it. Newer spellings of it are in `known`.
pub const GPT2_PATTERN: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

const SORTS: [u16; 4] = [LETTERS, NUMBERS, NO_WORD, WHITE];

/// The sort of a kind: its set in [`SORTS`].
#[inline(always)]
fn sort(kind: u8) -> u16 {
    SORTS.into_iter().find(|&kinds| is(kind, kinds)).unwrap_or(WHITE)
}

/// The end of the pre-token that starts at `at`.
#[inline]
pub(super) fn next_end(text: &[u8], at: usize) -> usize {
    let (kind, next) = step(text, at);
    if is(kind, WHITE) {
        if text[at] == b' ' && next < text.len() {
            let (kind, after) = step(text, next);
            if !is(kind, WHITE) {
                return run(text, after, sort(kind));
            }
        }
        return white(text, at).before(at, text.len());
    }
    match contraction_as_written(text, at) {
        end if end > at => end,
        _ => run(text, next, sort(kind)),
    }
}

/// See [`super::Pattern::is_hard_boundary`]: where one sort ends and another begins, but for a space, which may join what
/// follows, and a quote, which may begin a contraction. After white space, `\s+(?!\S)` would ask whether the text goes
/// on.
pub(super) fn is_hard_boundary(before: u32, here: u32) -> bool {
    let (left, right) = (sort(kind_of(before)), sort(kind_of(here)));
    left != right && left != WHITE && !(before == u32::from(b'\'') && right == LETTERS)
}
