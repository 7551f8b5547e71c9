//! The `pre_tokenizer` of a `tokenizer.json`: what is read, what is refused, and how stages split.
//!
//! The expected pieces were made by `tokenizers` 0.23.3.
#![cfg(feature = "formats")]

use kizami_core::Error;
use kizami_core::load::pre_tokenizer::read;
use kizami_core::pretoken::{Batch, Pattern};
use serde_json::{Value, json};

fn pieces(pattern: &Pattern, text: &str) -> Vec<Vec<u8>> {
    let mut batch = Batch::default();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < text.len() {
        at = pattern.fill(text.as_bytes(), at, &mut batch).unwrap();
        out.extend(batch.ranges().iter().map(|&(s, e)| text.as_bytes()[s as usize..e as usize].to_vec()));
    }
    out
}

fn strings(pattern: &Pattern, text: &str) -> Vec<String> {
    pieces(pattern, text).into_iter().map(|piece| String::from_utf8(piece).unwrap()).collect()
}

fn byte_level(use_regex: bool) -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex})
}

fn sequence(steps: &[Value]) -> Value {
    json!({"type": "Sequence", "pretokenizers": steps})
}

fn splitting(regex: &str, behavior: &str, invert: bool) -> Value {
    json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": invert})
}

/// The pieces that `steps` and a `ByteLevel` without regex make of `text`.
fn made(steps: &[Value], text: &str) -> Vec<String> {
    let mut steps = steps.to_vec();
    steps.push(byte_level(false));
    strings(&read(&sequence(&steps)).unwrap(), text)
}

const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const POSSESSIVE: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s";
const DEEPSEEK: &str = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+";

#[test]
fn patterns_with_a_scanner_are_found() {
    for (name, value) in [
        ("gpt2", json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true})),
        ("gpt2", byte_level(true)),
        ("llama3", sequence(&[splitting(LLAMA3, "Isolated", false), byte_level(false)])),
        ("llama3", sequence(&[splitting(LLAMA3, "Isolated", true), byte_level(false)])),
        ("llama3", sequence(&[splitting(LLAMA3, "Removed", true), byte_level(false)])),
        ("llama3", sequence(&[sequence(&[splitting(LLAMA3, "Isolated", false)]), byte_level(false)])),
        (
            "deepseek3",
            sequence(&[
                splitting(r"\p{N}{1,3}", "Isolated", false),
                splitting("[一-龥\u{3040}-ゟ゠-ヿ]+", "Isolated", false),
                splitting(DEEPSEEK, "Isolated", false),
                byte_level(false),
            ]),
        ),
        // Not these: matches would vanish, or be joined; something else would split them once more; another dialect.
        ("general", sequence(&[splitting(LLAMA3, "Removed", false), byte_level(false)])),
        ("general", sequence(&[splitting(LLAMA3, "Contiguous", false), byte_level(false)])),
        ("general", sequence(&[splitting(LLAMA3, "Isolated", false), byte_level(true)])),
        ("general", sequence(&[byte_level(true), splitting(LLAMA3, "Isolated", false)])),
        ("general", sequence(&[splitting(POSSESSIVE, "Isolated", false), byte_level(false)])),
    ] {
        assert_eq!(read(&value).unwrap().name(), name, "{value}");
    }
}

#[test]
fn behaviors_and_their_inverse() {
    let text = "the-final--countdown-";
    for (behavior, plain, inverse) in [
        ("Removed", vec!["the", "final", "countdown"], vec!["-", "-", "-", "-"]),
        (
            "Isolated",
            vec!["the", "-", "final", "-", "-", "countdown", "-"],
            vec!["the", "-", "final", "-", "-", "countdown", "-"],
        ),
        (
            "MergedWithPrevious",
            vec!["the-", "final-", "-", "countdown-"],
            vec!["the", "-final", "-", "-countdown", "-"],
        ),
        ("MergedWithNext", vec!["the", "-final", "-", "-countdown", "-"], vec!["the-", "final-", "-", "countdown-"]),
        (
            "Contiguous",
            vec!["the", "-", "final", "--", "countdown", "-"],
            vec!["the", "-", "final", "--", "countdown", "-"],
        ),
    ] {
        assert_eq!(made(&[splitting("-", behavior, false)], text), plain, "{behavior}");
        assert_eq!(made(&[splitting("-", behavior, true)], text), inverse, "{behavior}, inverted");
    }
}

#[test]
fn plain_text_is_a_pattern_too() {
    let split = json!({"type": "Split", "pattern": {"String": "a.b"}, "behavior": "Isolated", "invert": false});
    assert_eq!(made(&[split], "xa.bacb"), ["x", "a.b", "acb"]);
}

#[test]
fn word_characters_are_those_of_oniguruma() {
    let text = "a½\u{200d}_";
    assert_eq!(made(&[splitting(r"\w+", "Isolated", false)], text), ["a½", "\u{200d}", "_"]);
    assert_eq!(made(&[splitting(r"[\w]+", "Isolated", false)], text), ["a", "½\u{200d}", "_"]);
    assert_eq!(made(&[splitting(r"\W+", "Isolated", false)], text), ["a½", "\u{200d}", "_"]);
    assert_eq!(made(&[splitting(r"[^\w]+", "Isolated", false)], text), ["a", "½\u{200d}", "_"]);
}

#[test]
fn each_stage_sees_only_its_piece() {
    // Alone, the blanks before the number end their text: nothing is left for a word that follows.
    let digits = json!({"type": "Digits", "individual_digits": false});
    assert_eq!(
        made(&[digits.clone(), splitting(r"\s+(?!\S)|\s+", "Isolated", false)], "a  b  12"),
        ["a", " ", " ", "b", "  ", "12"]
    );
    assert_eq!(made(&[digits, splitting(r"(?<=\d)!", "Isolated", false)], "1!a!"), ["1", "!a!"]);
}

#[test]
fn fixed_splits() {
    let digits = |individual: bool| json!({"type": "Digits", "individual_digits": individual});
    assert_eq!(made(&[digits(false)], "a12½b"), ["a", "12½", "b"]);
    assert_eq!(made(&[digits(true)], "a12½b"), ["a", "1", "2", "½", "b"]);
    assert_eq!(made(&[json!({"type": "Punctuation"})], "a!?b"), ["a", "!", "?", "b"]);
    assert_eq!(made(&[json!({"type": "Punctuation", "behavior": "Contiguous"})], "a!?b"), ["a", "!?", "b"]);
    assert_eq!(made(&[digits(false)], "a\u{11de5}\u{16ff4}b"), ["a", "\u{11de5}\u{16ff4}", "b"]);
    assert_eq!(
        made(&[json!({"type": "Punctuation"})], "a\u{2e42}\u{2e43}\u{166d}"),
        ["a", "\u{2e42}", "\u{2e43}", "\u{166d}"]
    );
    assert_eq!(made(&[json!({"type": "Whitespace"})], " a_1!? b\u{200d}"), ["a_1", "!?", "b\u{200d}"]);
    assert_eq!(made(&[json!({"type": "WhitespaceSplit"})], " a!\n\nb"), ["a!", "b"]);
}

#[test]
fn empty_matches_cut_and_do_not_hang() {
    assert_eq!(made(&[splitting("x*", "Isolated", false)], "axxb"), ["a", "xx", "b"]);
    assert_eq!(made(&[splitting("", "Isolated", false)], "añb"), ["a", "ñ", "b"]);
    assert_eq!(made(&[splitting("(?=b)", "MergedWithNext", false)], "abab"), ["a", "ba", "b"]);
}

#[test]
fn a_stage_behind_byte_level_sees_bytes_spelled_as_characters() {
    // "в" is D0 B2, and B2 is spelled "²", a number; so are B3, B9 and BC to BE.
    let digits = json!({"type": "Digits", "individual_digits": false});
    let pattern = read(&sequence(&[byte_level(true), digits])).unwrap();
    let want: [&[u8]; 6] = [b" \xd0", b"\xb2", b"a", b"12", b" ", b"3"];
    assert_eq!(pieces(&pattern, " вa12 3"), want);
}

#[test]
fn long_texts_of_several_stages_go_through_many_batches() {
    let text = "word 12 ".repeat(1000);
    let made = made(&[json!({"type": "Digits", "individual_digits": true}), splitting(" ", "Isolated", false)], &text);
    assert_eq!(made.len(), 5000);
    assert_eq!(made.concat(), text);
}

#[test]
fn a_batch_that_knows_nothing_of_the_text_goes_on_all_the_same() {
    let pattern = read(&sequence(&[splitting(" ", "Isolated", false), byte_level(false)])).unwrap();
    let text = "a b c ".repeat(100);
    let mut batch = Batch::default();
    let at = pattern.fill(text.as_bytes(), 0, &mut batch).unwrap();
    let expected = pattern.fill(text.as_bytes(), at, &mut batch).unwrap();
    let ranges = batch.ranges().to_vec();
    let mut fresh = Batch::default();
    assert_eq!(pattern.fill(text.as_bytes(), at, &mut fresh).unwrap(), expected);
    assert_eq!(fresh.ranges(), ranges);
}

#[test]
fn a_stage_that_would_run_away_is_an_error() {
    let pattern = read(&sequence(&[splitting(r"(a|aa)+(?!a)b", "Isolated", false), byte_level(false)])).unwrap();
    let mut batch = Batch::default();
    match pattern.fill("a".repeat(60).as_bytes(), 0, &mut batch) {
        Ok(at) => assert_eq!((at, batch.ranges()), (60, &[(0, 60)][..])),
        Err(error) => assert!(matches!(error, Error::Pattern(_)), "{error}"),
    }
}

#[test]
fn what_is_not_byte_level_is_refused_by_name() {
    for (value, named) in [
        (Value::Null, "none"),
        (json!({"type": "Metaspace", "replacement": "▁"}), "Metaspace"),
        (json!({"type": "BertPreTokenizer"}), "BertPreTokenizer"),
        (json!({"type": "CharDelimiterSplit", "delimiter": "x"}), "CharDelimiterSplit"),
        (json!({"type": "UnicodeScripts"}), "UnicodeScripts"),
        (json!({"type": "FixedLength", "length": 5}), "FixedLength"),
        (splitting(" ", "MergedWithPrevious", false), "Split without ByteLevel"),
        (sequence(&[json!({"type": "Whitespace"})]), "Sequence(Whitespace) without ByteLevel"),
        (sequence(&[byte_level(true), byte_level(true)]), "more than one ByteLevel"),
        (sequence(&[splitting(r"\bword", "Isolated", false), byte_level(false)]), "escape \\b"),
        (sequence(&[splitting(r"(?m:.)", "Isolated", false), byte_level(false)]), "group"),
        (sequence(&[splitting(r"(?i:strasse)", "Isolated", false), byte_level(false)]), "case ignored"),
        (sequence(&[splitting(r"[[:alpha:]]", "Isolated", false), byte_level(false)]), "bracket"),
        (sequence(&[splitting(r"\p{Punct}", "Isolated", false), byte_level(false)]), "property Punct"),
    ] {
        match read(&value) {
            Err(Error::Unsupported(reason)) => {
                assert!(reason.contains(named) && reason.contains("tokenizers"), "{reason}");
            }
            other => panic!("{value}: {other:?}"),
        }
    }
}

#[test]
fn objects_that_are_not_what_they_say_are_errors() {
    for value in [
        json!({}),
        json!("ByteLevel"),
        json!({"type": "ByteLevel"}),
        json!({"type": "ByteLevel", "add_prefix_space": 0, "trim_offsets": true}),
        json!({"type": "Sequence"}),
        json!({"type": "Split", "pattern": "x", "behavior": "Isolated", "invert": false}),
        json!({"type": "Split", "pattern": {"Regex": "x"}, "behavior": "isolated", "invert": false}),
        json!({"type": "Digits"}),
    ] {
        assert!(matches!(read(&value), Err(Error::Vocabulary { .. })), "{value}");
    }
    let broken = sequence(&[splitting("(", "Isolated", false), byte_level(false)]);
    assert!(matches!(read(&broken), Err(Error::Pattern(_))));
}
