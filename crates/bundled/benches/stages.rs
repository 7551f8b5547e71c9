//! Micro-benchmarks of the stages: split, look up, merge, and the whole pipeline on one thread and on all.
//!
//! For developers who change a stage: `cargo bench -p kizami-bundled [FILTER]`. Figures for people come from
//! `kizami bench`, which compares engines and checks their ids.
//!
//! Texts are generated from a fixed seed: words drawn by a Zipf law from a made-up lexicon, in the letters of a
//! script. They have the shape of text, and no meaning.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use kizami_core::merge::Scratch;
use kizami_core::pretoken::{Batch, Pattern};
use kizami_core::{Options, Segment, Text, Tokenizer, parallel};

/// Bytes of a text, about.
const SIZE: usize = 200_000;
/// Kinds of text.
const KINDS: [&str; 4] = ["latin", "code", "cyrillic", "han"];

fn main() {
    divan::main();
}

/// A generator of numbers that is the same everywhere (SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(mixed ^ (mixed >> 31)) * bound as u128) >> 64) as usize
    }

    fn letter(&mut self, first: u32, count: u32) -> char {
        let offset = u32::try_from(self.below(count as usize)).expect("a small number");
        char::from_u32(first + offset).expect("a letter")
    }

    /// A word: consonants and vowels in turn where the script has them.
    fn word(&mut self, kind: &str) -> String {
        let length = 2 + self.below(7);
        (0..length)
            .map(|at| match kind {
                "han" => self.letter(0x4e00, 3000),
                "cyrillic" if at % 2 == 1 => ['а', 'е', 'и', 'о', 'у'][self.below(5)],
                "cyrillic" => self.letter(0x431, 24),
                _ if at % 2 == 1 => ['a', 'e', 'i', 'o', 'u'][self.below(5)],
                _ => self.letter(u32::from('b'), 24),
            })
            .collect()
    }
}

/// A text of a kind; another seed gives another text from the same lexicon.
fn text(kind: &str, seed: u64) -> String {
    let mut chance = Chance(1);
    let lexicon: Vec<String> = (0..5000).map(|_| chance.word(kind)).collect();
    let mut chance = Chance(seed);
    let mut text = String::with_capacity(SIZE + 64);
    while text.len() < SIZE {
        // The product of two numbers below one is small more often than not: frequent words come first.
        let rank = chance.below(5000) * chance.below(5000) / 5000;
        text.push_str(&lexicon[rank]);
        text.push_str(match (kind, chance.below(12)) {
            ("han", 0..=8) => "",
            ("han", _) => "，",
            ("code", 0) => "_",
            ("code", 1) => "(",
            ("code", 2) => ");\n        ",
            ("code", 3) => " = 1234; // ",
            (_, 0) => ". ",
            (_, 1) => ", ",
            (_, 2) => "\n",
            _ => " ",
        });
    }
    text
}

fn tokenizer() -> Tokenizer {
    kizami_bundled::find("kimi-k3").expect("bundled").load().expect("loads")
}

/// The pre-tokens of a text.
fn pretokens(pattern: &Pattern, text: &[u8]) -> Vec<(usize, usize)> {
    let (mut batch, mut at, mut found) = (Batch::default(), 0, Vec::new());
    while at < text.len() {
        at = pattern.fill(text, at, &mut batch).expect("scanners never fail");
        found.extend(batch.ranges().iter().map(|&(start, end)| (start as usize, end as usize)));
    }
    found
}

#[divan::bench(args = KINDS)]
fn split(bencher: Bencher<'_, '_>, kind: &str) {
    let text = text(kind, 2);
    let mut batch = Batch::default();
    bencher.counter(BytesCount::of_str(&text)).bench_local(|| {
        let (mut at, mut count) = (0, 0);
        while at < text.len() {
            at = Pattern::Kimi.fill(text.as_bytes(), at, &mut batch).expect("scanners never fail");
            count += batch.ranges().len();
        }
        count
    });
}

#[divan::bench(args = KINDS)]
fn look_up(bencher: Bencher<'_, '_>, kind: &str) {
    let (tokenizer, text) = (tokenizer(), text(kind, 2));
    let tables = tokenizer.tables();
    let ranges = pretokens(tokenizer.pattern(), text.as_bytes());
    bencher.counter(BytesCount::of_str(&text)).bench_local(|| {
        let known =
            |&&(start, end): &&(usize, usize)| tables.words.find(&tables.vocab, text.as_bytes(), start, end).is_some();
        ranges.iter().filter(known).count()
    });
}

/// Only the pre-tokens that are no token: the bytes counted are theirs.
#[divan::bench(args = KINDS)]
fn merge(bencher: Bencher<'_, '_>, kind: &str) {
    let (tokenizer, text) = (tokenizer(), text(kind, 2));
    let tables = tokenizer.tables();
    let bytes = text.as_bytes();
    let unknown: Vec<&[u8]> = pretokens(tokenizer.pattern(), bytes)
        .into_iter()
        .filter(|&(start, end)| tables.words.find(&tables.vocab, bytes, start, end).is_none())
        .map(|(start, end)| &bytes[start..end])
        .collect();
    let mut scratch = Scratch::default();
    let total: usize = unknown.iter().map(|piece| piece.len()).sum();
    bencher.counter(BytesCount::new(total)).bench_local(|| {
        let mut ids = 0;
        for piece in &unknown {
            tables.merges.merge(piece, &mut scratch);
            ids += scratch.tokens().len();
        }
        ids
    });
}

fn pipeline(bencher: Bencher<'_, '_>, kind: &str, threads: usize) {
    let tokenizer = tokenizer();
    parallel::set_num_threads(threads);
    let mut seed = 10;
    bencher
        .with_inputs(|| {
            seed += 1;
            text(kind, seed)
        })
        .input_counter(BytesCount::of_str)
        .bench_local_values(|text| {
            let segment = Segment { text: Text::Utf8(black_box(&text)), allow_special: false };
            tokenizer.encode(&[segment], Options::default()).expect("scanners never fail").len()
        });
    parallel::set_num_threads(0);
}

/// New text in every sample, one thread.
#[divan::bench(args = KINDS)]
fn encode_one_thread(bencher: Bencher<'_, '_>, kind: &str) {
    pipeline(bencher, kind, 1);
}

/// New text in every sample, all threads.
#[divan::bench(args = KINDS)]
fn encode_all_threads(bencher: Bencher<'_, '_>, kind: &str) {
    pipeline(bencher, kind, 0);
}

#[divan::bench(args = KINDS)]
fn decode(bencher: Bencher<'_, '_>, kind: &str) {
    let (tokenizer, text) = (tokenizer(), text(kind, 2));
    let segment = Segment { text: Text::Utf8(&text), allow_special: false };
    let ids = tokenizer.encode(&[segment], Options::default()).expect("scanners never fail");
    bencher
        .counter(BytesCount::of_str(&text))
        .bench_local(|| tokenizer.decode(black_box(&ids), false).expect("known ids").len());
}
