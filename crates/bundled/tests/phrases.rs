//! Short segments are looked up whole once they are known: the ids are those of segments that are not.
#![cfg(feature = "kimi")]

use kizami_core::special::{ControlToken, Controls};
use kizami_core::{Options, Segment, Text, Tokenizer, parallel};

const PHRASES: &[&str] = &[
    "message",
    " role",
    "=\"",
    "user",
    "\"",
    "assistant",
    " type",
    "<|open|>",
    "<|sep|>",
    "<|close|>",
    "<|end_of_msg|>",
    "<|open|>x",
    "y<|sep|>",
    "a\nb\n\nc",
    "   ",
    " ",
    "x1234567",
    "don't",
    "\u{0}",
    "\t\t",
    "é",
    "é<|sep|>",
    "日本",
    "",
    "thinking-effort",
    "0123456789abcde",
    "0123456789abcdef",
    "qwzxkj",
    "zzqjxvkw",
    "<|sep|><|sep|>",
    "{\"a\":1}",
];

/// A text as UCS-2, which is never taken for a phrase.
fn wide(texts: &[(String, bool)]) -> Vec<(Vec<u16>, bool)> {
    texts.iter().map(|(text, trust)| (text.encode_utf16().collect(), *trust)).collect()
}

fn ids(tokenizer: &Tokenizer, segments: &[Segment<'_>]) -> (Vec<u32>, Vec<usize>) {
    let prepared = tokenizer.prepare(segments, Options::default()).unwrap();
    let mut ends = Vec::new();
    let ids = prepared.encode(Some(&mut ends)).unwrap().parts().collect::<Vec<_>>().concat();
    assert_eq!(prepared.encode(None).unwrap().parts().collect::<Vec<_>>().concat(), ids);
    assert_eq!(prepared.count().unwrap(), ids.len());
    (ids, ends)
}

fn check(tokenizer: &Tokenizer, texts: &[(String, bool)]) {
    let wide = wide(texts);
    let narrow =
        texts.iter().map(|(text, allow_special)| Segment { text: Text::Utf8(text), allow_special: *allow_special });
    let want =
        wide.iter().map(|(text, allow_special)| Segment { text: Text::Ucs2(text), allow_special: *allow_special });
    let (narrow, want): (Vec<_>, Vec<_>) = (narrow.collect(), want.collect());
    assert_eq!(ids(tokenizer, &narrow), ids(tokenizer, &want), "{texts:?}");
}

#[test]
fn a_segment_that_is_known_has_the_ids_of_one_that_is_not() {
    let k3 = kizami_bundled::find("kimi-k3").unwrap().load().unwrap();
    // The same tables, and other names: one that is text to the first.
    let tokens = vec![ControlToken::new(163_600, "<|open|>", true), ControlToken::new(163_601, " role", true)];
    let other = k3.with_controls(Controls::new(tokens, 163_600).unwrap()).unwrap();
    let mut seed = 1u64;
    let mut random = |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % n
    };
    for round in 0..1500 {
        let count = [1, 3, 40, 300, 3000][random(if round % 50 == 0 { 5 } else { 4 })];
        let texts: Vec<(String, bool)> = (0..count)
            .map(|_| {
                let text = match random(12) {
                    0 => format!("{:x}", random(1 << 30)),
                    1 => PHRASES[random(PHRASES.len())].repeat(1 + random(40)),
                    2 => format!("{}{}", PHRASES[random(PHRASES.len())], PHRASES[random(PHRASES.len())]),
                    _ => PHRASES[random(PHRASES.len())].to_owned(),
                };
                (text, random(3) == 0)
            })
            .collect();
        check(if random(4) == 0 { &other } else { &k3 }, &texts);
    }
}

#[test]
fn on_several_threads_too() {
    let k3 = kizami_bundled::find("kimi-k3").unwrap().load().unwrap();
    let texts: Vec<(String, bool)> = (0..40_000)
        .map(|i: usize| {
            (
                PHRASES[i * 7919 % PHRASES.len()].to_owned() + if i.is_multiple_of(9) { " and more" } else { "" },
                i.is_multiple_of(4),
            )
        })
        .collect();
    parallel::set_num_threads(4);
    for _ in 0..3 {
        check(&k3, &texts);
    }
    parallel::set_num_threads(0);
}
