//! BPE by its definition: scan for the best pair, join, repeat. O(n^2); the oracle of the other strategies.

use crate::vocab::Vocab;

/// The BPE result of `piece` by tiktoken's rule, with ranks asked of `rank`, which sees concatenated bytes.
///
/// This is the textbook form: it knows no splits and no pair table.
pub fn merge_scan(piece: &[u8], rank: impl Fn(&[u8]) -> Option<u32>) -> Vec<u32> {
    let mut bounds: Vec<usize> = (0..=piece.len()).collect();
    loop {
        let best = (0..bounds.len().saturating_sub(2))
            .filter_map(|i| rank(&piece[bounds[i]..bounds[i + 2]]).map(|r| (r, i)))
            .min();
        match best {
            Some((_, i)) => bounds.remove(i + 1),
            None => break,
        };
    }
    bounds.windows(2).map(|w| rank(&piece[w[0]..w[1]]).expect("every part is a token")).collect()
}

/// [`merge_scan`] with the ranks of a vocabulary; slow (it builds a map), for tests.
pub fn oracle(vocab: &Vocab) -> impl Fn(&[u8]) -> Vec<u32> + use<> {
    let ranks: std::collections::HashMap<Vec<u8>, u32> = vocab.iter().map(<[u8]>::to_vec).zip(0..).collect();
    move |piece| match ranks.get(piece) {
        Some(&id) => vec![id],
        None => merge_scan(piece, |bytes| ranks.get(bytes).copied()),
    }
}
