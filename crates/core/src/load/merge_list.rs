//! Vocabularies whose merges are a list: which order of ranks gives the same ids.
//!
//! The engine joins what together is the token of lowest rank ([`crate::merge`]); a list says in its own order which pairs
//! join. By lemma 1, which holds for a list as well, each token is made of one pair only. So a list means the same as
//! ranks if these pairs are all in the list and come in order of rank; the other pairs of the list never join. This is
//! so for the lists that are made from ranks, and it is checked. If not, the pairs are found by running the list.

use std::collections::HashMap;

use super::byte_level::Alphabet;
use crate::error::Error;
use crate::lookup::WordTable;
use crate::merge::heap::{HeapScratch, join_all};
use crate::merge::splits::{Known, find_splits};
use crate::merge::trie::{Sorted, Trie};
use crate::merge::{MergeTables, Split, made};
use crate::num::{ix, to_u32};
use crate::parallel;
use crate::tables::Tables;
use crate::vocab::Vocab;

/// A pair of a list and what it makes, as indices of tokens.
pub type Listed = (u32, u32, u32);

/// Tokens, with the ids that they shall have.
#[derive(Debug, Default)]
pub struct Tokens {
    ids: Vec<u32>,
    /// Side by side.
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
    /// Whether one may have the bytes of another, or not those of a pair that spells its name.
    may_repeat: bool,
}

impl Tokens {
    /// Adds a token.
    pub fn push(&mut self, id: u32, bytes: &[u8]) {
        self.may_repeat = true;
        self.bytes.extend_from_slice(bytes);
        self.ids.push(id);
        self.ends.push(self.bytes.len());
    }

    /// Adds the token that `text` spells, which no other one does; whether it spells one.
    pub fn push_spelled(&mut self, id: u32, text: &str, alphabet: &Alphabet) -> bool {
        let start = self.bytes.len();
        let is_spelled = alphabet.append(text, &mut self.bytes);
        if is_spelled {
            self.ids.push(id);
            self.ends.push(self.bytes.len());
        } else {
            self.bytes.truncate(start);
        }
        is_spelled
    }

    /// Their number.
    #[allow(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> u32 {
        to_u32(self.ids.len())
    }

    fn bytes(&self, token: u32) -> &[u8] {
        let start = ix(token).checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[ix(token)]]
    }

    fn id(&self, token: u32) -> u32 {
        self.ids[ix(token)]
    }
}

/// All tables of tokens and a list of merges. Of the tokens, a whole pre-token may be any, if `ignore_merges`, or those that
/// BPE makes.
///
/// # Errors
/// [`Error::Vocabulary`] for a vocabulary that is impossible (see [`Vocab::from_ranked`], [`Vocab::with_ids`]).
pub fn build(tokens: &Tokens, list: &[Listed], ignore_merges: bool) -> Result<Tables, Error> {
    // Bytes, then tokens that the list makes in the order in which it does, then all others.
    let mut is_made = vec![false; ix(tokens.len())];
    let mut order = Vec::new();
    for &(_, _, token) in list {
        if !std::mem::replace(&mut is_made[ix(token)], true) && tokens.bytes(token).len() > 1 {
            order.push(token);
        }
    }
    let (vocab, rank_of, joinable) = ranked(tokens, &order)?;
    let rank = |token: u32| rank_of[ix(token)];
    let by_rank: Vec<Split> = list.iter().map(|&(left, right, token)| (rank(left), rank(right), rank(token))).collect();
    let (known, sorted) =
        parallel::both(|| Known::from_list(&vocab, joinable, &by_rank, !tokens.may_repeat), || Sorted::new(&vocab));
    // The trie takes as long as all the rest, and needs to know only which tokens are made: that is next to certain now.
    let likely = match &known {
        Some(known) => known.made(&vocab),
        None => (0..vocab.len()).map(|rank| rank < joinable).collect(),
    };
    let trie = || Trie::build(&sorted.only(&likely));
    let others = || {
        let splits = known.and_then(|known| known.checked(&vocab)).unwrap_or_else(|| find_splits(&vocab, joinable));
        follows(&splits, &by_rank, &vocab).then(|| {
            let made = made(&vocab, &splits);
            let merges = MergeTables::without_trie(&vocab, &sorted, &splits, &made, u32::MAX);
            let words = WordTable::build(&vocab, |rank| ignore_merges || made[ix(rank)]);
            (made, merges, words)
        })
    };
    let (trie, others) = parallel::both(trie, others);
    if let Some((made, others, words)) = others {
        let trie = if made == likely { trie } else { Trie::build(&sorted.only(&made)) };
        let merges = MergeTables { trie: trie?, ..others };
        return Ok(Tables::with_words(vocab, words, merges, |rank| ignore_merges || made[ix(rank)]));
    }
    let found = run(tokens, list);
    let order: Vec<u32> = found.iter().map(|&(_, _, token)| token).collect();
    let (vocab, rank_of, _) = ranked(tokens, &order)?;
    let rank = |token: u32| rank_of[ix(token)];
    let splits: Vec<Split> = found.iter().map(|&(left, right, token)| (rank(left), rank(right), rank(token))).collect();
    let merges = MergeTables::from_splits(&vocab, &splits, u32::MAX)?;
    let made = made(&vocab, &splits);
    Ok(Tables::with_merges(vocab, merges, |rank| ignore_merges || made[ix(rank)]))
}

/// The vocabulary in this order: single bytes, then `made`, then the rest; the rank of each token; how many come before
/// the rest.
fn ranked(tokens: &Tokens, made: &[u32]) -> Result<(Vocab, Vec<u32>, u32), Error> {
    let mut order: Vec<u32> = (0..tokens.len()).filter(|&token| tokens.bytes(token).len() == 1).collect();
    order.sort_by_key(|&token| tokens.id(token));
    order.extend(made);
    let joinable = to_u32(order.len());
    let mut is_placed = vec![false; ix(tokens.len())];
    order.iter().for_each(|&token| is_placed[ix(token)] = true);
    let mut rest: Vec<u32> = (0..tokens.len()).filter(|&token| !is_placed[ix(token)]).collect();
    rest.sort_by_key(|&token| tokens.id(token));
    order.extend(rest);
    let mut rank_of = vec![0; ix(tokens.len())];
    for (rank, &token) in (0..).zip(&order) {
        rank_of[ix(token)] = rank;
    }
    let bytes: Vec<&[u8]> = order.iter().map(|&token| tokens.bytes(token)).collect();
    let ids = order.iter().map(|&token| tokens.id(token)).collect();
    let vocab = if tokens.may_repeat { Vocab::from_ranked(&bytes) } else { Vocab::from_distinct(&bytes) };
    Ok((vocab?.with_ids(ids)?, rank_of, joinable))
}

/// Whether every split is in the list, in order of rank.
fn follows(splits: &[Split], list: &[Split], vocab: &Vocab) -> bool {
    let mut split_of = vec![(u32::MAX, u32::MAX); ix(vocab.len())];
    for &(left, right, token) in splits {
        split_of[ix(token)] = (left, right);
    }
    let mut place_of = vec![usize::MAX; ix(vocab.len())];
    for (place, &(left, right, token)) in list.iter().enumerate() {
        // Of a pair that is there twice, the last counts.
        if split_of[ix(token)] == (left, right) {
            place_of[ix(token)] = place;
        }
    }
    let mut places = splits.iter().map(|split| place_of[ix(split.2)]);
    places.clone().all(|place| place != usize::MAX)
        && places.try_fold(0, |last, place| (place >= last).then_some(place)).is_some()
}

/// The pairs of the list that join, and what they make, in the order of the list.
fn run(tokens: &Tokens, list: &[Listed]) -> Vec<Listed> {
    let mut byte_of = [0; 256];
    for token in 0..tokens.len() {
        if let [byte] = *tokens.bytes(token) {
            byte_of[usize::from(byte)] = token;
        }
    }
    let place_of: HashMap<(u32, u32), u32> =
        (0..).zip(list).map(|(place, &(left, right, _))| ((left, right), place)).collect();
    // A part is a byte, or 256 and the place of the pair in the list that made it: lowest joins first.
    let token_of = |part: u32| match part.checked_sub(256) {
        Some(place) => list[ix(place)].2,
        None => byte_of[ix(part)],
    };
    let join = |left: u32, right: u32| Some(place_of.get(&(token_of(left), token_of(right)))? + 256);
    let mut scratch = HeapScratch::default();
    let mut state = Vec::new();
    let mut places: Vec<u32> = Vec::new();
    for token in (0..tokens.len()).filter(|&token| tokens.bytes(token).len() > 1) {
        state.clear();
        state.extend(tokens.bytes(token).iter().map(|&byte| u32::from(byte)));
        join_all(&mut state, join, &mut scratch);
        if let [part] = state[..]
            && part >= 256
            && token_of(part) == token
        {
            places.push(part - 256);
        }
    }
    places.sort_unstable();
    places.into_iter().map(|place| list[ix(place)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::Scratch;

    /// The definition: the pair that comes first in the list joins, leftmost among equals.
    fn by_definition(tokens: &[(u32, Vec<u8>)], list: &[Listed], text: &[u8]) -> Vec<u32> {
        let of = |bytes: &[u8]| to_u32(tokens.iter().position(|(_, token)| token == bytes).unwrap());
        let mut parts: Vec<u32> = text.iter().map(|&byte| of(&[byte])).collect();
        let place = |pair: &[u32]| list.iter().rposition(|&(l, r, _)| [l, r] == pair);
        while let Some((_, at)) =
            (0..parts.len().saturating_sub(1)).filter_map(|at| Some((place(&parts[at..at + 2])?, at))).min()
        {
            let (.., token) = list[place(&parts[at..at + 2]).unwrap()];
            parts.splice(at..at + 2, [token]);
        }
        parts.iter().map(|&part| tokens[ix(part)].0).collect()
    }

    fn check(merges: &[(&str, &str)]) -> bool {
        let mut tokens: Vec<(u32, Vec<u8>)> = (0..=255u8).map(|byte| (u32::from(byte) + 7, vec![byte])).collect();
        let mut list = Vec::new();
        for (left, right) in merges {
            let joined = format!("{left}{right}").into_bytes();
            if !tokens.iter().any(|(_, token)| *token == joined) {
                tokens.push((to_u32(tokens.len()) * 3, joined));
            }
        }
        for (left, right) in merges {
            let joined = format!("{left}{right}").into_bytes();
            let of = |bytes: &[u8]| to_u32(tokens.iter().position(|(_, token)| token == bytes).unwrap());
            list.push((of(left.as_bytes()), of(right.as_bytes()), of(&joined)));
        }
        let mut given = Tokens::default();
        tokens.iter().for_each(|(id, bytes)| given.push(*id, bytes));
        let Tables { vocab, merges: tables, .. } = build(&given, &list, false).unwrap();
        let mut scratch = Scratch::default();
        for n in 0..3u32.pow(7) {
            let text: Vec<u8> = (0..7).map(|i| b"abc"[ix(n / 3u32.pow(i) % 3)]).collect();
            tables.merge(&text, &mut scratch);
            let mut ids = scratch.tokens().to_vec();
            vocab.to_ids(&mut ids);
            assert_eq!(ids, by_definition(&tokens, &list, &text), "{merges:?} {text:?}");
        }
        let made = to_u32(tables.splits().count()) + 256;
        made == vocab.len()
    }

    #[test]
    fn ids_are_those_of_the_list() {
        assert!(check(&[("a", "b"), ("ab", "c"), ("c", "c"), ("cc", "cc")]));
        // Several pairs for one token, as lists that are made from ranks have them.
        assert!(check(&[("a", "b"), ("b", "c"), ("ab", "c"), ("a", "bc"), ("abc", "a")]));
        // The pair that joins comes late: ranks by first mention would be wrong.
        check(&[("b", "c"), ("a", "a"), ("aa", "b"), ("c", "a"), ("a", "b"), ("ca", "b"), ("a", "ab")]);
        // A token that its own list never makes.
        assert!(!check(&[("b", "c"), ("a", "b"), ("ab", "c")]));
        // Twice the same pair.
        check(&[("a", "b"), ("b", "c"), ("a", "b"), ("c", "c")]);
    }

    #[test]
    fn any_list_is_honoured() {
        // All pairs of short texts over three letters, shuffled by a small generator.
        let texts = ["a", "b", "c", "ab", "bc", "ca", "aa", "abc", "bca"];
        let mut seed = 7u64;
        let mut next = |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ix(to_u32(usize::try_from(seed >> 33).unwrap() % n))
        };
        for _ in 0..60 {
            let count = 1 + next(14);
            let list: Vec<(&str, &str)> = (0..count).map(|_| (texts[next(9)], texts[next(9)])).collect();
            // A part must be a token: a letter, or made by a pair that stays.
            let mut list = list;
            loop {
                let joined: Vec<String> = list.iter().map(|(l, r)| format!("{l}{r}")).collect();
                let known = |text: &str| text.len() == 1 || joined.iter().any(|joined| joined == text);
                let before = list.len();
                list.retain(|(l, r)| known(l) && known(r));
                if list.len() == before {
                    break;
                }
            }
            check(&list);
        }
    }
}
