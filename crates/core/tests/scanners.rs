//! Each scanner against the general regex engine, for the pattern that it stands for.

use kizami_core::pretoken::{Batch, GeneralPattern, Pattern};
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

/// The scanner of that name, and the general engine for the same.
fn both(name: &str) -> (Pattern, Pattern) {
    let scanner = match name {
        "deepseek3" => Pattern::Deepseek,
        _ => Pattern::known().find(|(_, pattern)| pattern.name() == name).expect("a known pattern").1.clone(),
    };
    let general = Pattern::General(scanner.to_general().unwrap());
    assert_eq!((scanner.name(), general.name()), (name, "general"));
    (scanner, general)
}

fn assert_same(name: &str, scanner: &Pattern, general: &Pattern, text: &str) {
    let (got, want) = (split(scanner, text), split(general, text));
    if got != want {
        let pieces = |ranges: &[(usize, usize)]| ranges.iter().map(|&(s, e)| text[s..e].to_owned()).collect::<Vec<_>>();
        panic!("{name}: {text:?} gives {:?}, should give {:?}", pieces(&got), pieces(&want));
    }
}

/// Every code point in places that differ for some pattern; `'` and line ends keep the places apart.
fn every_code_point(name: &str) {
    let (scanner, general) = both(name);
    // Above U+40000 few are assigned, and those that are not are all alike (`tests/unicode.rs` says which).
    let all = (0..0x4_0000).step_by(if cfg!(debug_assertions) { 61 } else { 1 });
    for c in all.chain((0x4_0000..0x11_0000).step_by(61)).chain(0xe_0000..0xe_0200).filter_map(char::from_u32) {
        let text = format!(
            "{c}\n a{c}\nA{c}a '{c}\r\n{c}'s {c}\n{c}{c} 1{c}2 中{c}文 !{c}/\n {c}A\t{c}BC \u{301}{c}b  {c}\n\0{c}\0 .{c}x {c}"
        );
        assert_same(name, &scanner, &general, &text);
    }
}

/// One or two of each sort of character that some pattern sets apart.
const NASTY: [char; 24] = [
    ' ', '\n', '\r', '\t', '\u{a0}', 'a', 's', 'L', 'é', 'ſ', 'ª', '\u{301}', '中', 'ア', '゛', '1', '½', '〇', '\'',
    '!', '/', '€', '\0', '\u{200d}',
];

fn for_each_short_string(most: u32, mut check: impl FnMut(&str)) {
    for len in 1..=most {
        for code in 0..NASTY.len().pow(len) {
            let text: String = (0..len).map(|k| NASTY[code / NASTY.len().pow(k) % NASTY.len()]).collect();
            check(&text);
        }
    }
}

fn all_short_strings(name: &str) {
    let (scanner, general) = both(name);
    for_each_short_string(if cfg!(debug_assertions) { 2 } else { 4 }, |text| {
        assert_same(name, &scanner, &general, text);
    });
}

fn hard_boundaries(name: &str) {
    let (scanner, _) = both(name);
    let mut found = 0;
    for_each_short_string(if cfg!(debug_assertions) { 3 } else { 4 }, |text| {
        let whole = split(&scanner, text);
        for at in (1..text.len()).filter(|&at| scanner.is_hard_boundary(text.as_bytes(), at)) {
            found += 1;
            let (left, right) = text.split_at(at);
            let mut apart = split(&scanner, left);
            apart.extend(split(&scanner, right).into_iter().map(|(s, e)| (at + s, at + e)));
            assert_eq!(apart, whole, "{name}: {text:?} at {at}");
        }
    });
    assert!(found > 1000, "{found}");
    for text in ["word word", "word, word", "word\nword", "3 words"] {
        let cuts = (1..text.len()).filter(|&at| scanner.is_hard_boundary(text.as_bytes(), at)).count();
        assert!(cuts > 0 || text.contains('\n'), "{name}: {text:?} cannot be cut");
    }
}

fn pieces() -> impl Strategy<Value = String> {
    let fixed = [
        "  ",
        "\r\n",
        "\n\n",
        "\u{3000}",
        "\u{85}",
        "\u{2028}",
        "\u{1c}",
        "'S",
        "'ſ",
        "'ll",
        "'RE",
        "'v",
        "'K",
        "B",
        "ǅ",
        "ʰ",
        "א",
        "ا",
        "\u{94d}",
        "\u{16ff0}",
        "ß",
        "K",
        "٢",
        "〡",
        "々",
        "⺀",
        "한",
        "か",
        "ー",
        "\u{3040}",
        "・",
        "\u{3099}",
        "龥",
        "龦",
        "ก",
        "<|open|>",
        "_",
        "-",
        "🎉",
        "\u{fffd}",
        "\u{e000}",
        "\u{10ffff}",
        "http://",
        "1234567",
    ];
    let piece = prop_oneof![
        8 => prop::sample::select(fixed.to_vec()).prop_map(String::from),
        8 => prop::sample::select(NASTY.to_vec()).prop_map(String::from),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn mixed_text(name: &str) {
    let (scanner, general) = both(name);
    let config = ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() };
    proptest::test_runner::TestRunner::new(config)
        .run(&pieces(), |text| {
            prop_assert_eq!(split(&scanner, &text), split(&general, &text));
            Ok(())
        })
        .unwrap();
}

macro_rules! scanners {
    ($($module:ident = $name:literal),* $(,)?) => {
        $(mod $module {
            #[test]
            fn every_code_point_splits_as_the_regex_splits_it() {
                super::every_code_point($name);
            }

            #[test]
            fn all_short_strings_split_as_the_regex_splits_them() {
                super::all_short_strings($name);
            }

            #[test]
            fn mixed_text_splits_as_the_regex_splits_it() {
                super::mixed_text($name);
            }

            #[test]
            fn hard_boundaries_are_boundaries_in_any_context() {
                super::hard_boundaries($name);
            }
        })*

        #[test]
        fn no_scanner_goes_untested() {
            let tested = [$($name),*];
            assert!(Pattern::known().all(|(_, pattern)| pattern.name() == "kimi" || tested.contains(&pattern.name())));
        }
    };
}

scanners! {
    gpt2 = "gpt2",
    cl100k = "cl100k",
    cl100k_lower = "cl100k-lower",
    llama3 = "llama3",
    qwen2 = "qwen2",
    qwen3_5 = "qwen3.5",
    o200k = "o200k",
    tekken = "tekken",
    deepseek3 = "deepseek3",
}

#[test]
fn all_spellings_of_a_pattern_mean_the_same() {
    for (regex, pattern) in Pattern::known() {
        assert_eq!(Pattern::from_regex(regex).unwrap().name(), pattern.name());
        let general = Pattern::General(GeneralPattern::new(regex).unwrap());
        for_each_short_string(if cfg!(debug_assertions) { 2 } else { 3 }, |text| {
            assert_same(regex, pattern, &general, text);
        });
    }
}

#[test]
fn more_pre_tokens_than_a_batch_holds() {
    let text = "ab 1! \n日本の12345".repeat(500);
    for name in ["gpt2", "cl100k", "o200k", "deepseek3"] {
        let (scanner, general) = both(name);
        assert!(split(&scanner, &text).len() > 1000);
        assert_same(name, &scanner, &general, &text);
    }
}
