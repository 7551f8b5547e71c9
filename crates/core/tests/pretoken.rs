//! The Kimi scanner against the general regex engine.

use kizami_core::pretoken::{Batch, Pattern};
use proptest::prelude::*;

fn split(pattern: &Pattern, text: &str) -> Vec<(usize, usize)> {
    let mut batch = Batch::default();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < text.len() {
        at = pattern.fill(text.as_bytes(), at, &mut batch).unwrap();
        out.extend(batch.ranges().iter().map(|&(s, e)| (s as usize, e as usize)));
    }
    out
}

fn both() -> (Pattern, Pattern) {
    let scanner = Pattern::Kimi;
    let general = Pattern::General(scanner.to_general().unwrap());
    (scanner, general)
}

#[test]
fn every_code_point_splits_as_the_regex_splits_it() {
    let (scanner, general) = both();
    for c in (0..0x11_0000).filter_map(char::from_u32) {
        // One text with the character in many places; line ends keep the places apart.
        let text = format!(
            "{c}\n a{c}\nA{c}a\n{c}'s\n {c}\n{c}{c}\n{c}1{c}2\n中{c}文\n!{c}\n {c}A\n{c}BC\n\u{301}{c}b\n  {c}\n{c}\r\n"
        );
        assert_eq!(split(&scanner, &text), split(&general, &text), "U+{:04X}", c as u32);
    }
}

fn piece() -> impl Strategy<Value = String> {
    let fixed = [
        " ",
        "  ",
        "\n",
        "\r\n",
        "\t",
        "\u{a0}",
        "\u{3000}",
        "\u{85}",
        "\u{2028}",
        "\u{1c}",
        "'",
        "'s",
        "'S",
        "'ſ",
        "'ll",
        "'RE",
        "'v",
        "'K",
        "a",
        "B",
        "é",
        "É",
        "ǅ",
        "ʰ",
        "ª",
        "א",
        "ا",
        "\u{301}",
        "\u{94d}",
        "\u{16ff0}",
        "ß",
        "K",
        "1",
        "٢",
        "½",
        "〇",
        "〡",
        "中",
        "々",
        "⺀",
        "한",
        "か",
        "ー",
        "ก",
        "!",
        "<|open|>",
        "_",
        "-",
        "🎉",
        "\u{200d}",
        "\u{fffd}",
        "\u{e000}",
        "\u{10ffff}",
        "\0",
    ];
    prop_oneof![
        8 => prop::sample::select(fixed.to_vec()).prop_map(String::from),
        1 => any::<char>().prop_map(String::from),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn mixed_text_splits_as_the_regex_splits_it(pieces in prop::collection::vec(piece(), 0..24)) {
        let (scanner, general) = (Pattern::Kimi, GENERAL.with(Clone::clone));
        let text = pieces.concat();
        prop_assert_eq!(split(&scanner, &text), split(&general, &text));
    }
}

thread_local! {
    static GENERAL: Pattern = both().1;
}

#[test]
fn more_pre_tokens_than_a_batch_holds() {
    let (scanner, general) = both();
    let text = "ab 1! \n".repeat(500);
    let ranges = split(&scanner, &text);
    assert!(ranges.len() > 1000);
    assert_eq!(ranges, split(&general, &text));
}

#[test]
fn a_pattern_that_would_run_away_is_an_error_or_an_answer() {
    // B56: nested quantifiers; the engine either has a linear plan or stops at its step limit.
    for regex in ["(a+)+b", "(a+)+b(?!c)"] {
        let pattern = Pattern::from_regex(regex).unwrap();
        let text = "a".repeat(40);
        let mut batch = Batch::default();
        match pattern.fill(text.as_bytes(), 0, &mut batch) {
            Ok(at) => assert_eq!((at, batch.ranges().len()), (text.len(), 0)),
            Err(error) => assert!(error.to_string().starts_with("split pattern"), "{error}"),
        }
    }
    assert!(Pattern::from_regex("(").is_err());
}
