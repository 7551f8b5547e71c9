//! All merge strategies against the definition, on vocabularies learned from random text.

use std::collections::{HashMap, HashSet};

use kizami_core::Vocab;
use kizami_core::lookup::{Key, MAX_KEY_BYTES};
use kizami_core::merge::greedy::{is_valid_pair, merge_greedy};
use kizami_core::merge::heap::merge_heap;
use kizami_core::merge::lockstep::Words;
use kizami_core::merge::long::merge_long;
use kizami_core::merge::short::{MAX_BYTES, merge_short};
use kizami_core::merge::{MergeTables, Scratch, scan};
use proptest::prelude::*;

/// A vocabulary as training makes it: again and again the most frequent pair becomes a token.
fn trained(text: &[u8], merges: usize) -> Vec<Vec<u8>> {
    let mut tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).collect();
    let mut known: HashSet<Vec<u8>> = tokens.iter().cloned().collect();
    let mut parts: Vec<Vec<u8>> = text.iter().map(|&b| vec![b]).collect();
    for _ in 0..merges {
        let mut counts: HashMap<Vec<u8>, usize> = HashMap::new();
        for pair in parts.windows(2) {
            *counts.entry(pair.concat()).or_default() += 1;
        }
        let best = counts.into_iter().filter(|(t, _)| !known.contains(t)).max_by(|a, b| (a.1, &b.0).cmp(&(b.1, &a.0)));
        let Some((token, _)) = best else { break };
        known.insert(token.clone());
        tokens.push(token);
        let ranks: HashMap<&[u8], u32> = tokens.iter().map(Vec::as_slice).zip(0..).collect();
        parts = scan::merge_scan(text, |b| ranks.get(b).copied())
            .into_iter()
            .map(|id| tokens[id as usize].clone())
            .collect();
    }
    tokens
}

/// The definition without the rule that a whole token stays whole: the strategies see no tokens.
fn check(tables: &MergeTables, vocab: &Vocab, piece: &[u8]) {
    let ranks: HashMap<Vec<u8>, u32> = vocab.iter().map(<[u8]>::to_vec).zip(0..).collect();
    let want = scan::merge_scan(piece, |bytes| ranks.get(bytes).copied());
    let mut scratch = Scratch::default();
    merge_heap(tables, piece, &mut scratch);
    assert_eq!(scratch.tokens(), want, "heap: {piece:?}");
    if piece.len() <= MAX_BYTES {
        merge_short(tables, piece, &mut scratch);
        assert_eq!(scratch.tokens(), want, "short: {piece:?}");
    }
    if tables.greedy() {
        merge_greedy(tables, piece, &mut scratch);
        assert_eq!(scratch.tokens(), want, "greedy: {piece:?}");
        merge_long(tables, piece, &mut scratch);
        assert_eq!(scratch.tokens(), want, "long: {piece:?}");
        // All beginnings at once: more words than can be under way.
        if let Some(words) = (1..=piece.len().min(MAX_KEY_BYTES)).map(|len| Key::new(&piece[..len])).collect() {
            check_lockstep(tables, vocab, words, &ranks);
        }
    }
}

fn check_lockstep(tables: &MergeTables, vocab: &Vocab, keys: Vec<Key>, ranks: &HashMap<Vec<u8>, u32>) {
    for near in [0, 256, 256 + vocab.len() / 8] {
        let parted = MergeTables::build_parted(vocab, near).unwrap();
        for tables in [tables, &parted] {
            let mut words = Words::default();
            for round in 0..2 {
                words.clear();
                keys.iter().skip(round).for_each(|&key| words.push(key));
                words.merge(tables);
                assert_eq!(words.results().count(), keys.len() - round);
                for (result, key) in words.results().zip(&keys[round..]) {
                    let piece = &key.bytes()[..key.len()];
                    assert_eq!(result, scan::merge_scan(piece, |bytes| ranks.get(bytes).copied()), "{piece:?}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn strategies_agree_on_trained_vocabularies(
        corpus in prop::collection::vec(0u8..4, 20..200),
        merges in 1usize..60,
        pieces in prop::collection::vec(prop::collection::vec(0u8..4, 1..60), 1..20),
    ) {
        let vocab = Vocab::from_ranked(&trained(&corpus, merges)).unwrap();
        let tables = MergeTables::build(&vocab).unwrap();
        prop_assert!(tables.greedy());
        for piece in &pieces {
            check(&tables, &vocab, piece);
        }
        check(&tables, &vocab, &corpus);
        // Long enough for the memo of the greedy strategy, and for windows of both kinds.
        let (all, periodic) = (pieces.concat(), pieces[0].repeat(900 / pieces[0].len() + 1));
        for piece in [[&all[..], &periodic, &all].concat(), periodic] {
            let (mut want, mut scratch) = (Scratch::default(), Scratch::default());
            merge_heap(&tables, &piece, &mut want);
            for merge in [merge_greedy, merge_long] {
                merge(&tables, &piece, &mut scratch);
                prop_assert_eq!(scratch.tokens(), want.tokens());
            }
        }
    }

    #[test]
    fn results_that_fit_where_they_meet_are_the_result(
        corpus in prop::collection::vec(0u8..3, 20..200),
        merges in 1usize..60,
        piece in prop::collection::vec(0u8..3, 2..60),
    ) {
        let vocab = Vocab::from_ranked(&trained(&corpus, merges)).unwrap();
        let tables = MergeTables::build(&vocab).unwrap();
        let merge = |piece: &[u8]| {
            let mut scratch = Scratch::default();
            merge_heap(&tables, piece, &mut scratch);
            scratch.tokens().to_vec()
        };
        let want = merge(&piece);
        for cut in 1..piece.len() {
            let (left, right) = (merge(&piece[..cut]), merge(&piece[cut..]));
            let fits = is_valid_pair(&tables, left[left.len() - 1], right[0], false);
            prop_assert_eq!(fits, [left, right].concat() == want, "cut at {}", cut);
        }
    }

    #[test]
    fn strategies_agree_on_arbitrary_vocabularies(
        extra in prop::collection::hash_set(prop::collection::vec(0u8..3, 2..7), 0..40),
        pieces in prop::collection::vec(prop::collection::vec(0u8..3, 1..40), 1..20),
        seed in any::<u64>(),
    ) {
        // Any order of tokens, single bytes late, tokens that BPE cannot make: tiktoken takes these too.
        let mut tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).chain(extra).collect();
        tokens.sort_by_key(|t| t.iter().fold(seed, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)));
        let vocab = Vocab::from_ranked(&tokens).unwrap();
        let tables = MergeTables::build(&vocab).unwrap();
        for piece in &pieces {
            check(&tables, &vocab, piece);
        }
    }
}

#[test]
fn readme_example() {
    // The example of docs/concepts/exactness.md: ranks a b c … ; "ab" before "bc" before "abc".
    let mut tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).collect();
    tokens.extend(["ab", "bc", "abc"].map(|t| t.as_bytes().to_vec()));
    let vocab = Vocab::from_ranked(&tokens).unwrap();
    let tables = MergeTables::build(&vocab).unwrap();
    let mut scratch = Scratch::default();
    merge_greedy(&tables, b"abcbc", &mut scratch);
    assert_eq!(scratch.tokens(), [258, 257]);
}
