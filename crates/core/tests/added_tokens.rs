//! Added tokens and normalizers against what the `tokenizers` package makes of them (`tools/added_token_cases.py`), and
//! what the pipeline does with them in requests of every form.
#![cfg(feature = "formats")]

use kizami_core::normalize::Normalizer;
use kizami_core::pretoken::Pattern;
use kizami_core::special::{ControlToken, Controls};
use kizami_core::{Options, Segment, Tables, Text, Tokenizer, Vocab, load};
use serde_json::Value;

/// The bytes as tokens, id = byte, whole texts as pre-tokens.
fn tokenizer(added: Vec<ControlToken>, normalizer: Option<Normalizer>) -> Tokenizer {
    let bytes: Vec<[u8; 1]> = (0..=255).map(|b| [b]).collect();
    let vocab = Vocab::from_ranked(&bytes).unwrap();
    let controls = Controls::from_added(added, |id| vocab.token_bytes(id)).unwrap();
    let tables = Tables::build(vocab.clone()).unwrap();
    let pattern = Pattern::from_regex("(?s).+").unwrap();
    Tokenizer::new(tables.into(), controls, pattern).without_cuts().with_normalizer(normalizer).unwrap()
}

fn encode(tokenizer: &Tokenizer, text: Text<'_>, allow_special: bool) -> Vec<u32> {
    tokenizer.encode(&[Segment { text, allow_special }], Options::default()).unwrap()
}

/// Ids from a list of text and ids.
fn ids(parts: &Value) -> Vec<u32> {
    let parts = parts.as_array().unwrap().iter();
    parts
        .flat_map(|part| match part.as_str() {
            Some(text) => text.bytes().map(u32::from).collect(),
            None => vec![u32::try_from(part.as_u64().unwrap()).unwrap()],
        })
        .collect()
}

#[test]
fn b72_b73_added_tokens_are_found_as_the_package_finds_them() {
    // For a comparison with more cases than are kept here.
    let path = std::env::var("KIZAMI_ADDED_TOKEN_CASES");
    let path = path.unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/added_tokens.jsonl").into());
    let mut cases = 0;
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let added = load::added_tokens::read(&line["added_tokens"]).unwrap();
        let normalizer = load::normalizer::read(&line["normalizer"]).unwrap();
        let tokenizer = tokenizer(added, normalizer);
        for case in line["cases"].as_array().unwrap() {
            let text = case[0].as_str().unwrap();
            for (trusted, want) in [(true, ids(&case[1])), (false, ids(&case[2]))] {
                let got = encode(&tokenizer, Text::Utf8(text), trusted);
                let setting = (&line["added_tokens"], &line["normalizer"]);
                assert_eq!(got, want, "trusted: {trusted}, {text:?}, {setting:?}");
                cases += 1;
            }
        }
    }
    assert!(cases > 500);
}

fn token(id: u32, name: &str, skip: bool) -> ControlToken {
    ControlToken::new(id, name, skip)
}

fn some(kind: &str) -> Option<Normalizer> {
    load::normalizer::read(&serde_json::json!({"type": kind})).unwrap()
}

#[test]
fn every_form_of_a_text_is_normalized_the_same() {
    let mut spaces = token(257, "  ", false);
    spaces.flags.normalized = true;
    let tokenizer = tokenizer(vec![token(256, "<a>", true), spaces], some("NFC"));
    // Short and long, with and without something to compose, Latin-1 and beyond.
    for unit in ["plain  text<a>", "caf\u{e9}  <a> ", "cafe\u{301}<a>  ", "\u{304b}\u{3099}<a>  \u{1f600}"] {
        for times in [1, 2000] {
            let text = unit.repeat(times);
            for trusted in [true, false] {
                let want = encode(&tokenizer, Text::Utf8(&text), trusted);
                let wide: Vec<u32> = text.chars().map(u32::from).collect();
                assert_eq!(encode(&tokenizer, Text::Ucs4(&wide), trusted), want);
                let units: Vec<u16> = text.encode_utf16().collect();
                assert_eq!(encode(&tokenizer, Text::Ucs2(&units), trusted), want);
                if let Ok(bytes) = text.chars().map(u8::try_from).collect::<Result<Vec<u8>, _>>() {
                    assert_eq!(encode(&tokenizer, Text::Latin1(&bytes), trusted), want);
                }
                let composed = text.replace("e\u{301}", "\u{e9}").replace("\u{304b}\u{3099}", "\u{304c}");
                assert_eq!(encode(&tokenizer, Text::Utf8(&composed), trusted), want);
                assert_eq!(want.iter().filter(|&&id| id == 256).count(), if trusted { times } else { 0 });
                assert_eq!(want.iter().filter(|&&id| id == 257).count(), times);
                let segment = Segment { text: Text::Utf8(&text), allow_special: trusted };
                let prepared =
                    tokenizer.prepare(&[segment], Options::default()).map(|p| (p.bytes(), p.count().unwrap()));
                let (bytes, count) = prepared.unwrap();
                assert!(bytes >= count && count == want.len());
            }
        }
    }
}

#[test]
fn lone_surrogates_are_replaced_before_normalization() {
    let tokenizer = tokenizer(vec![], some("NFC"));
    let want: Vec<u32> = "\u{fffd}\u{e9}".bytes().map(u32::from).collect();
    assert_eq!(encode(&tokenizer, Text::Ucs2(&[0xd83d, 0x65, 0x301]), false), want);
}

#[test]
fn untrusted_text_never_gives_a_control_id() {
    let mut think = token(257, "<Think>", false);
    think.flags.normalized = true;
    for normalizer in [None, some("Lowercase")] {
        let tokenizer = tokenizer(vec![token(256, "<a>", true), think.clone(), token(258, "  ", false)], normalizer);
        let text = "<a> <think>  <THINK> <Think>";
        assert!(encode(&tokenizer, Text::Utf8(text), false).iter().all(|&id| id < 256 || id == 258));
        assert!(encode(&tokenizer, Text::Utf8(text), true).contains(&257));
    }
}

#[test]
fn cuts_are_made_only_where_the_published_path_makes_them() {
    let bytes: Vec<Vec<u8>> = (0..=255).map(|b| vec![b]).chain([b"aa".to_vec()]).collect();
    let tables = Tables::build(Vocab::from_ranked(&bytes).unwrap()).unwrap();
    let cutting = Tokenizer::new(tables.into(), Controls::new(vec![], 257).unwrap(), Pattern::Kimi);
    // A run longer than a cut leaves, of which each part is odd.
    let text = "a".repeat(25_001 * 2);
    let plain =
        cutting.encode(&[Segment { text: Text::Utf8(&text), allow_special: false }], Options { legacy_chunks: false });
    assert_eq!(encode(&cutting, Text::Utf8(&text), false).len(), 25_001);
    assert_eq!(plain.unwrap().len(), 25_001);
    let odd = "b".to_owned() + &text;
    let with = encode(&cutting, Text::Utf8(&odd), false);
    let other = cutting.with_controls(Controls::new(vec![], 257).unwrap()).unwrap();
    assert_eq!(encode(&other, Text::Utf8(&odd), false), with);
    let without = encode(&other.without_cuts(), Text::Utf8(&odd), false);
    assert_eq!((with.len(), without.len()), (25_003, 25_002));
}

#[test]
fn b77_an_added_token_of_the_vocabulary_is_decoded_once_and_skipped_by_its_flag() {
    let tokenizer = tokenizer(vec![token(97, "a", true), token(256, "<b>", false), token(300, "<c>", true)], None);
    assert_eq!(tokenizer.vocab_size(), 301);
    let ids = encode(&tokenizer, Text::Utf8("abc<b><c>"), true);
    assert_eq!(ids, [97, 98, 99, 256, 300]);
    assert_eq!(tokenizer.decode(&ids, false).unwrap(), b"abc<b><c>");
    assert_eq!(tokenizer.decode(&ids, true).unwrap(), b"bc<b>");
    assert_eq!(tokenizer.token_bytes(299), None);
    assert!(tokenizer.decode(&[299], true).is_err());
    assert_eq!(tokenizer.token_id(b"<c>"), Some(300));
}
