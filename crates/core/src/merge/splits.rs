//! Which two parts a token is made of: its split ([`crate::merge`], lemma 1).
//!
//! [`find_splits`] runs BPE on the bytes of every token. [`Known`] does with a look at the border of two parts that
//! somebody else says, which is much less, where lemma 2 holds for all tokens before: BPE of the bytes of `l` and `r`
//! reaches `[l, r]` if no join crosses the border before both are made.

use aho_corasick::AhoCorasick;

use super::pairs::Far;
use super::{NONE, Split, count_singles, heap, single_bytes};
use crate::hash::are_equal;
use crate::num::{ix, to_u32};
use crate::vocab::Vocab;

/// The splits of the tokens below `joinable`, where any two parts join whose bytes together are one of them: lowest rank
/// first. By rank of the token made; a token that BPE cannot make has none.
#[must_use]
pub fn find_splits(vocab: &Vocab, joinable: u32) -> Vec<Split> {
    let bytes = single_bytes(vocab);
    let tokens: Vec<&[u8]> = vocab.iter().take(ix(joinable)).collect();
    // By length: every join inside a token gives a shorter token, whose own split is known by then.
    let mut order: Vec<u32> = (0..joinable).filter(|&rank| tokens[ix(rank)].len() > 1).collect();
    order.sort_by_key(|&rank| tokens[ix(rank)].len());
    let mut pairs = Far::with_capacity(order.len());
    let mut splits = Vec::with_capacity(order.len());
    let mut state = Vec::new();
    let mut scratch = heap::HeapScratch::default();
    for rank in order {
        state.clear();
        state.extend(tokens[ix(rank)].iter().map(|&byte| bytes[usize::from(byte)]));
        heap::join_all(&mut state, |l, r| pairs.get(l, r), &mut scratch);
        if let [left, right] = state[..] {
            pairs.insert(left, right, rank);
            splits.push((left, right, rank));
        }
    }
    splits.sort_unstable_by_key(|split| split.2);
    splits
}

/// Most tokens that may have parts of a higher rank, for [`Known::checked`].
const MAX_LATE: usize = 4096;

/// How many pairs ahead of its turn a pair is asked for.
const AHEAD: usize = 8;

/// Whether the bytes of two tokens are those of the third.
fn spells(vocab: &Vocab, left: u32, right: u32, token: u32) -> bool {
    let [left, right, token] = [left, right, token].map(|rank| vocab.bytes_of(rank).expect("a rank below len"));
    token.len() == left.len() + right.len()
        && are_equal(&token[..left.len()], left)
        && are_equal(&token[left.len()..], right)
}

/// Splits that a list says, of all tokens up to some rank.
pub struct Known {
    pairs: Far,
    /// By rank; of a single byte, itself twice; [`NONE`] twice if none was found.
    split_of: Vec<(u32, u32)>,
    /// Those with parts of a higher rank, by length.
    late: Vec<u32>,
    singles: u32,
}

impl Known {
    /// From a list that has the split of every token below `joinable` that has one, among other pairs; None if that
    /// cannot be seen soon: if the pairs of a token do not lie together, in order of the tokens. `is_spelled`: it is known
    /// that the bytes of a pair are those of its token.
    #[must_use]
    pub fn from_list(vocab: &Vocab, joinable: u32, list: &[Split], is_spelled: bool) -> Option<Self> {
        let bytes = single_bytes(vocab);
        let singles = count_singles(&bytes);
        if bytes.iter().any(|&byte| byte >= singles && byte != NONE) {
            return None;
        }
        let count = ix(joinable.checked_sub(singles)?);
        let (pairs, split_of) = (Far::with_capacity(count), Vec::with_capacity(ix(joinable)));
        let mut known = Known { pairs, split_of, late: Vec::new(), singles };
        known.split_of.extend((0..singles).map(|byte| (byte, byte)));
        for (place, &(left, right, token)) in list.iter().enumerate() {
            // Most pairs are put in, far from the one before.
            if let Some(&(left, right, _)) = list.get(place + AHEAD) {
                known.pairs.ask(left, right);
            }
            let next = to_u32(known.split_of.len());
            if token == next && token < joinable {
                known.split_of.push((NONE, NONE));
            } else if token >= next {
                return None;
            }
            let is_last = ix(token) + 1 == known.split_of.len();
            if is_last
                && known.split_of[ix(token)].0 == NONE
                && left.max(right) < token
                && known.meet(left, right)
                && (is_spelled || spells(vocab, left, right, token))
            {
                known.insert(left, right, token);
            }
        }
        if known.split_of.len() != ix(joinable) {
            return None;
        }
        known.find_missing(vocab);
        Some(known)
    }

    /// Which tokens have a split, by rank, if [`Known::checked`] finds that all is right.
    #[must_use]
    pub fn made(&self, vocab: &Vocab) -> Vec<bool> {
        let mut made: Vec<bool> = self.split_of.iter().map(|split| split.0 != NONE).collect();
        made.resize(ix(vocab.len()), false);
        made
    }

    /// The splits as [`find_splits`] gives them; None if too many tokens are made of parts of higher rank.
    #[must_use]
    pub fn checked(self, vocab: &Vocab) -> Option<Vec<Split>> {
        if !self.are_right(vocab) {
            return None;
        }
        let splits = (0..).zip(self.split_of).map(|(token, (left, right))| (left, right, token));
        Some(splits.skip(ix(self.singles)).filter(|split| split.0 != NONE).collect())
    }

    /// Whether BPE of the bytes of `a` and `b` comes to `[a, b]`, if nothing makes one token of these two: as
    /// [`is_valid_pair`](super::greedy::is_valid_pair). Not if one of them has no split, which BPE does not come to.
    fn meet(&self, mut a: u32, mut b: u32) -> bool {
        if self.split_of[ix(a)].0 == NONE || self.split_of[ix(b)].0 == NONE {
            return false;
        }
        while a.max(b) >= self.singles {
            let (left, right) = (self.split_of[ix(b)].0, self.split_of[ix(a)].1);
            let limit = if a > b { a } else { b + 1 };
            (a, b) = if a > b { (right, b) } else { (a, left) };
            if self.pairs.get(a, b).is_some_and(|token| token < limit) {
                return false;
            }
        }
        true
    }

    fn insert(&mut self, left: u32, right: u32, token: u32) {
        self.pairs.insert(left, right, token);
        self.split_of[ix(token)] = (left, right);
    }

    /// Finds the splits of the tokens that have none so far, if there are any, and adds them to `late`.
    ///
    /// What BPE does with the bytes of a token depends on shorter ones only: so these splits are found by length.
    fn find_missing(&mut self, vocab: &Vocab) {
        let bytes_of = |token: u32| vocab.bytes_of(token).expect("a rank below len");
        let mut missing: Vec<u32> =
            (0..).zip(&self.split_of).filter(|(_, split)| split.0 == NONE).map(|(token, _)| token).collect();
        missing.sort_by_key(|&token| bytes_of(token).len());
        let bytes = single_bytes(vocab);
        let mut scratch = heap::HeapScratch::default();
        for token in missing {
            let (left, right) = self.run(bytes_of(token), token, &bytes, &mut scratch);
            if left != NONE {
                self.insert(left, right, token);
                self.late.push(token);
            }
        }
    }

    /// The split of a token by the definition, given those of all shorter ones.
    fn run(&self, token: &[u8], rank: u32, bytes: &[u32; 256], scratch: &mut heap::HeapScratch) -> (u32, u32) {
        let mut state = token.iter().map(|&byte| bytes[usize::from(byte)]).collect();
        heap::join_all(&mut state, |l, r| self.pairs.get(l, r).filter(|&joined| joined != rank), scratch);
        if let [left, right] = state[..] { (left, right) } else { (NONE, NONE) }
    }

    /// Whether all splits are right. Those that were found before the late ones are, unless their token holds all bytes
    /// of a late one: such tokens are looked at again. If all is as the definition says for each length, given the
    /// shorter ones, it is so.
    fn are_right(&self, vocab: &Vocab) -> bool {
        if self.late.is_empty() || self.late.len() > MAX_LATE {
            return self.late.is_empty();
        }
        let late = self.late.iter().map(|&token| vocab.bytes_of(token).expect("a rank below len"));
        let Ok(late) = AhoCorasick::new(late) else { return false };
        let bytes = single_bytes(vocab);
        let mut scratch = heap::HeapScratch::default();
        let all = (0..).zip(vocab.iter()).zip(&self.split_of).skip(ix(self.singles));
        all.into_iter().all(|((rank, token), &split)| {
            !late.is_match(token) || self.run(token, rank, &bytes, &mut scratch) == split
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes, then these.
    fn vocab(words: &[String]) -> Vocab {
        let bytes = (0..=255u8).map(|byte| vec![byte]);
        let tokens: Vec<Vec<u8>> = bytes.chain(words.iter().map(|word| word.clone().into_bytes())).collect();
        Vocab::from_ranked(&tokens).unwrap()
    }

    /// Every pair of tokens that makes a token, in order of what it makes.
    fn all_pairs(vocab: &Vocab) -> Vec<Split> {
        let rank = |bytes: &[u8]| (0..).zip(vocab.iter()).find(|(_, token)| *token == bytes).map(|(rank, _)| rank);
        let pairs = (0..).zip(vocab.iter()).flat_map(|(token, bytes)| {
            (1..bytes.len()).filter_map(move |at| Some((rank(&bytes[..at])?, rank(&bytes[at..])?, token)))
        });
        pairs.collect()
    }

    #[test]
    fn checked_splits_are_those_that_are_found() {
        // All texts of two to four letters out of two, in any order, some left out: parts of higher rank, tokens that BPE
        // does not make, and others that hold these.
        let mut words: Vec<String> =
            (2..=4u32).flat_map(|len| (0..1 << len).map(move |n| format!("{n:0len$b}", len = ix(len)))).collect();
        let (mut late, mut missing) = (0, 0);
        let mut seed = 3u64;
        for _ in 0..2000 {
            for at in (1..words.len()).rev() {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                words.swap(at, usize::try_from(seed >> 33).unwrap() % (at + 1));
            }
            // A list makes all of its tokens.
            let mut taken = words[..8 + usize::try_from(seed % 20).unwrap()].to_vec();
            let vocab = loop {
                let before = vocab(&taken);
                let pairs = all_pairs(&before);
                taken.retain(|word| pairs.iter().any(|pair| before.bytes_of(pair.2) == Some(word.as_bytes())));
                if taken.len() + 256 == ix(before.len()) {
                    break before;
                }
            };
            let found = find_splits(&vocab, vocab.len());
            let is_late = found.iter().any(|&(left, right, token)| left.max(right) > token);
            let (mut without, mut moved) = (all_pairs(&vocab), all_pairs(&vocab));
            without.retain(|pair| Some(pair) != found.last());
            let by = 1.min(moved.len());
            moved.rotate_left(by);
            // Without the pair that counts, or with one in the wrong place, nothing else comes out.
            for (list, is_sound) in [(all_pairs(&vocab), true), (without, false), (moved, false)] {
                // All pairs spell their token, whether that is looked at or not.
                let known = Known::from_list(&vocab, vocab.len(), &list, seed.is_multiple_of(2));
                match known.and_then(|known| known.checked(&vocab)) {
                    Some(checked) => {
                        assert_eq!(checked, found);
                        late += usize::from(is_late);
                    }
                    None => assert!(is_late || !is_sound),
                }
            }
            missing += usize::from(found.len() + 256 < ix(vocab.len()));
        }
        assert!(late > 100 && missing > 100, "{late} {missing}");
    }
}
