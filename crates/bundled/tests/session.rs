//! Sessions of the Kimi vocabulary on UTF-8, the form of text that Rust callers have: random edits against full encodes.
#![cfg(feature = "kimi")]

use std::sync::Arc;

use kizami_core::session::{Session, SessionCache};
use kizami_core::{Options, Segment, Text, Tokenizer};

fn tokenizer() -> Tokenizer {
    kizami_bundled::find("kimi-k3").unwrap().load().unwrap()
}

type Prompt = Vec<(Arc<str>, bool)>;

fn full(tokenizer: &Tokenizer, prompt: &Prompt) -> Vec<u32> {
    let segments: Vec<_> =
        prompt.iter().map(|(text, trust)| Segment { text: Text::Utf8(text), allow_special: *trust }).collect();
    tokenizer.encode(&segments, Options::default()).unwrap()
}

/// Numbers below `n`, the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }

    fn text(&mut self) -> String {
        const PIECES: [&str; 16] = [
            "word", " more", "  ", "\n", "12", "345", "日本", "語", "é", "e\u{301}", "🎉", "<|open|>", "<|", "don't",
            "=", " \n ",
        ];
        (0..self.below(12)).map(|_| PIECES[self.below(PIECES.len())]).collect()
    }

    fn change(&mut self, prompt: &mut Prompt) {
        let near_end = prompt.len().saturating_sub(1 + self.below(3));
        match self.below(8) {
            0..3 => prompt.push((self.text().into(), self.below(3) == 0)),
            3..6 if !prompt.is_empty() => {
                let (text, _) = &mut prompt[near_end];
                let keep = (0..=text.len()).rev().filter(|&at| text.is_char_boundary(at)).nth(self.below(4));
                *text = format!("{}{}", &text[..keep.unwrap_or(0)], self.text()).into();
            }
            6 => prompt.truncate(near_end),
            _ => prompt.iter_mut().for_each(|(text, _)| *text = text.to_string().into()),
        }
    }
}

#[test]
fn utf8_prompts_that_change_give_the_ids_of_a_full_encode() {
    let tokenizer = tokenizer();
    let mut dice = Dice(1);
    let mut reused = 0;
    for _ in 0..30 {
        let (mut session, cache) = (Session::default(), SessionCache::new(100_000));
        let mut prompt = Prompt::new();
        let mut given = Vec::new();
        for _ in 0..100 {
            dice.change(&mut prompt);
            let want = full(&tokenizer, &prompt);
            let grown = session.encode(&tokenizer, 0, &mut prompt.clone(), Options::default()).unwrap();
            let cached = cache.encode(&tokenizer, &mut prompt.clone(), Options::default()).unwrap();
            assert_eq!((&grown.ids[..], &cached.ids[..]), (&want[..], &want[..]), "{prompt:?}");
            reused += grown.reused + cached.reused;
            given.push((grown.ids, cached.ids, want));
        }
        assert!(given.iter().all(|(grown, cached, want)| grown[..] == want[..] && cached[..] == want[..]));
        assert!(cache.statistics().bytes <= 100_000);
    }
    assert!(reused > 10_000, "{reused}");
}

#[test]
fn kept_segments_are_not_given_again() {
    let tokenizer = tokenizer();
    let mut session = Session::default();
    let prompt: Prompt = (0..10).map(|number| (format!("turn {number}").into(), false)).collect();
    session.encode(&tokenizer, 0, &mut prompt.clone(), Options::default()).unwrap();
    let grown = session.encode(&tokenizer, 7, &mut prompt[8..].to_vec(), Options::default()).unwrap();
    let mut want = prompt.clone();
    want.remove(7);
    assert_eq!(grown.ids[..], full(&tokenizer, &want));
    assert_eq!(session.len(Options::default()), 9);
    assert_eq!(session.len(Options { legacy_chunks: false }), 0);
}

#[test]
fn prompts_that_part_before_their_end_use_two_memories_in_turn() {
    let tokenizer = tokenizer();
    let mut session = Session::default();
    let prompt: Prompt = (0..40).map(|number| (format!("{number} words of a turn").into(), false)).collect();
    let mut memories = Vec::new();
    let mut last = None;
    for len in 1..40 {
        let mut this = prompt[..len].to_vec();
        this.push(("the end".into(), false));
        let grown = session.encode(&tokenizer, 0, &mut this.clone(), Options::default()).unwrap();
        assert_eq!(grown.ids[..], full(&tokenizer, &this));
        memories.push(grown.ids.memory());
        // The caller looks at the last one until the next is there.
        last = Some(grown.ids);
    }
    assert!(last.is_some());
    assert!(memories.windows(2).all(|pair| pair[0] != pair[1]));
    memories.sort_unstable();
    memories.dedup();
    // And a few more, since they are too small at first.
    assert!(memories.len() < 8, "{}", memories.len());
}
