//! Each vector form against its scalar twin, and each form of the split against the scanner.

use kizami_core::pretoken::{Batch, Pattern};
use kizami_core::simd::{Classify, Level, Planes, Scalar, WINDOW};
use kizami_core::unicode::*;
use proptest::prelude::*;

fn ascii_by_hand(bytes: &[u8; 64]) -> Planes {
    let plane = |test: &dyn Fn(u8) -> bool| (0..64).filter(|&i| test(bytes[i])).fold(0u64, |bits, i| bits | 1 << i);
    Planes {
        lower: plane(&|b| b.is_ascii_lowercase()),
        upper: plane(&|b| b.is_ascii_uppercase()),
        number: plane(&|b| b.is_ascii_digit()),
        space: plane(&|b| b == b' ' || b == 9 || b == 11 || b == 12),
        blank: plane(&|b| b == b' '),
        newline: plane(&|b| b == 10 || b == 13),
        quote: plane(&|b| b == b'\''),
        non_ascii: plane(&|b| b > 127),
        ..Planes::default()
    }
}

#[test]
fn every_byte_at_every_place_has_its_planes() {
    for byte in 0..=255u8 {
        for place in 0..64 {
            let mut bytes = [b'.'; 64];
            bytes[place] = byte;
            bytes[(place + 7) % 64] = byte.wrapping_mul(31).wrapping_add(17);
            let want = ascii_by_hand(&bytes);
            assert_eq!(Scalar.ascii(&bytes), want, "byte {byte} at {place}");
            #[cfg(target_arch = "x86_64")]
            if let Some(avx2) = kizami_core::simd::Avx2::new() {
                assert_eq!(avx2.ascii(&bytes), want, "byte {byte} at {place}");
            }
            #[cfg(target_arch = "aarch64")]
            assert_eq!(kizami_core::simd::Neon.ascii(&bytes), want, "byte {byte} at {place}");
        }
    }
}

#[test]
fn ranges_of_bytes_hold_both_ends_and_all_between() {
    let bytes: [u8; 64] = std::array::from_fn(|i| (i as u8).wrapping_mul(67).wrapping_add(29));
    for (low, high) in
        [(0, 0), (0, 0x1f), (0x7f, 0x7f), (b'/', b'/'), (0x80, 0xbd), (0xe3, 0xe9), (0xff, 0xff), (1, 0xff)]
    {
        for shift in 0..=255u8 {
            let bytes = bytes.map(|byte| byte.wrapping_add(shift));
            let want = (0..64).filter(|&i| (low..=high).contains(&bytes[i])).fold(0u64, |bits, i| bits | 1 << i);
            assert_eq!(Scalar.range(&bytes, low, high), want, "{low} to {high}, {shift}");
            #[cfg(target_arch = "x86_64")]
            if let Some(avx2) = kizami_core::simd::Avx2::new() {
                assert_eq!(avx2.range(&bytes, low, high), want, "{low} to {high}, {shift}");
            }
            #[cfg(target_arch = "aarch64")]
            assert_eq!(kizami_core::simd::Neon.range(&bytes, low, high), want, "{low} to {high}, {shift}");
        }
    }
}

/// The planes of the whole text, in words of 64 bytes.
fn all_planes(classify: impl Classify, text: &str) -> Vec<Planes> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(text.len().next_multiple_of(64) + WINDOW, 0);
    let mut before = OTHER;
    let word = |base: usize| {
        let window = bytes[base..].first_chunk::<WINDOW>().unwrap();
        let mut planes = classify.ascii(window.first_chunk().unwrap());
        before = classify.characters(window, before, &mut planes);
        planes
    };
    (0..text.len()).step_by(64).map(word).collect()
}

/// The same, from the class of each character.
fn planes_by_hand(text: &str) -> Vec<Planes> {
    let mut words = vec![Planes::default(); text.len().div_ceil(64)];
    for (start, c) in text.char_indices() {
        let class = class_of(c.into());
        for at in start..start + c.len_utf8() {
            let (planes, bit) = (&mut words[at / 64], 1u64 << (at % 64));
            let set = |plane: &mut u64, when: bool| *plane |= if when { bit } else { 0 };
            let han = matches!(class, HAN_LETTER | HAN_NUMBER | HAN_OTHER);
            set(&mut planes.lower, class == LOWER);
            set(&mut planes.upper, class == UPPER);
            set(&mut planes.number, matches!(class, NUMBER | HAN_NUMBER));
            set(&mut planes.space, class == SPACE);
            set(&mut planes.blank, c == ' ');
            set(&mut planes.newline, class == NEWLINE);
            set(&mut planes.quote, c == '\'');
            set(&mut planes.non_ascii, !c.is_ascii());
            set(&mut planes.tail, at > start);
            set(&mut planes.shared, matches!(class, CASELESS | MARK));
            set(&mut planes.mark, class == MARK);
            set(&mut planes.han, han);
            set(&mut planes.han_other, class == HAN_OTHER);
        }
    }
    words
}

fn check_planes(text: &str) {
    let want = planes_by_hand(text);
    assert_eq!(all_planes(Scalar, text), want, "scalar {text:?}");
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = kizami_core::simd::Avx2::new() {
        assert_eq!(all_planes(avx2, text), want, "avx2 {text:?}");
    }
    #[cfg(target_arch = "aarch64")]
    assert_eq!(all_planes(kizami_core::simd::Neon, text), want, "neon {text:?}");
}

#[test]
fn every_character_has_its_planes() {
    let all: Vec<char> = (0..0x11_0000).filter_map(char::from_u32).collect();
    // In order: most windows are of one page or two. In great steps: each character of another page.
    for chunk in all.chunks(50) {
        check_planes(&chunk.iter().collect::<String>());
    }
    let step = 5_003;
    let mixed: Vec<char> = (0..all.len()).map(|i| all[i * step % all.len()]).collect();
    for chunk in mixed.chunks(50) {
        check_planes(&chunk.iter().collect::<String>());
    }
    // Before a character, anything: at each place of a window, with all of it inside or not.
    for (i, &c) in all.iter().enumerate().filter(|(i, c)| i % 61 == 0 || **c < '\u{800}') {
        check_planes(&format!("{}{c}é中{c}🎉{c} {c}", "a".repeat(i % 64)));
    }
}

#[test]
fn bytes_that_are_not_utf_8_end_and_do_no_harm() {
    let mut state = 1u64;
    for _ in 0..20_000 {
        let mut window = [0u8; WINDOW];
        for byte in &mut window {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (state >> 56) as u8;
        }
        let mut planes = Scalar.ascii(window.first_chunk().unwrap());
        Scalar.characters(&window, OTHER, &mut planes);
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = kizami_core::simd::Avx2::new() {
            avx2.characters(&window, OTHER, &mut planes);
        }
        #[cfg(target_arch = "aarch64")]
        kizami_core::simd::Neon.characters(&window, OTHER, &mut planes);
    }
}

/// One pattern of each name.
fn patterns() -> &'static [Pattern] {
    static PATTERNS: std::sync::OnceLock<Vec<Pattern>> = std::sync::OnceLock::new();
    PATTERNS.get_or_init(|| {
        let mut patterns = vec![Pattern::Deepseek];
        for (_, pattern) in Pattern::known() {
            if patterns.iter().all(|other| other.name() != pattern.name()) {
                patterns.push(pattern.clone());
            }
        }
        assert_eq!(patterns.len(), 10);
        patterns
    })
}

fn split(pattern: &Pattern, level: Level, text: &str) -> Vec<(u32, u32)> {
    let mut batch = Batch::default();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < text.len() {
        at = pattern.fill_at_level(level, text.as_bytes(), at, &mut batch).unwrap();
        out.extend_from_slice(batch.ranges());
    }
    out
}

fn check(text: &str) {
    for pattern in patterns() {
        check_one(pattern, text);
    }
}

fn check_one(pattern: &Pattern, text: &str) {
    let levels = Level::all();
    let want = split(pattern, levels[0], text);
    for &level in &levels[1..] {
        let got = split(pattern, level, text);
        if got != want {
            let first = got.iter().zip(&want).position(|(a, b)| a != b).unwrap_or(got.len().min(want.len()));
            panic!(
                "{} {} differs at pre-token {first} of {text:?}: {:?} for {:?}",
                pattern.name(),
                level.name(),
                got.get(first),
                want.get(first)
            );
        }
    }
}

#[test]
fn all_short_texts_over_the_classes() {
    // One of each class, and what contractions are made of: every text of up to 6 of them, in a frame long enough for a
    // window. Of families with several members, all members get those of up to 5.
    let parts = [b'a', b'B', b's', b'\'', b'1', b' ', b'\t', b'\n', b'!'];
    let n = parts.len();
    for code in 0..n.pow(6) {
        let mut text: Vec<u8> = (0..6).map(|k| parts[code / n.pow(k) % n]).collect();
        text.extend_from_slice(b" x y z w.");
        let text = std::str::from_utf8(&text).unwrap();
        for pattern in patterns() {
            if code < n.pow(5) || ["kimi", "llama3", "o200k", "deepseek3", "gpt2"].contains(&pattern.name()) {
                check_one(pattern, text);
            }
        }
    }
}

#[test]
fn a_space_of_several_bytes_over_the_end_of_a_window() {
    for lead in 50..70 {
        check(&format!("{}\n\u{2028}\u{2028}\n", " ".repeat(lead)));
        check(&format!("{}\n\u{2028}\nx", "!".repeat(lead)));
        check(&format!("{} \u{3000}中", "a".repeat(lead)));
    }
}

/// Every text of `length` of these parts, by itself, and behind a word that puts it at any place of a window.
fn all_texts(parts: &[&str], length: u32) {
    for code in 0..parts.len().pow(length) {
        let text: String = (0..length).map(|k| parts[code / parts.len().pow(k) % parts.len()]).collect();
        check(&format!("{text} x y z w."));
        check(&format!("{}{text}b, 中", "a".repeat(code % 67)));
        check(&format!("{}{text}", " a".repeat(code % 35)));
    }
}

#[test]
fn all_short_texts_over_the_classes_in_two_to_four_bytes() {
    // Of each class one of every length that there is.
    let letters = ["a", "B", "é", "É", "ẽ", "Ẽ", "𐐨", "𐐀", "ª", "か", "𐀀"];
    let others = ["\u{301}", "\u{20d0}", "\u{1d165}", "1", "٢", "०", "𝟎", "〇", "⺀", "\u{16ff0}", "中", "𠀀"];
    let rest = [" ", "\t", "\u{a0}", "\u{3000}", "\n", "!", "«", "「", "🎉", "'s", "'ſ", "'"];
    all_texts(&[&letters[..], &others, &rest].concat(), 3);
}

#[test]
fn all_short_texts_of_what_is_next_to_each_other_rarely() {
    all_texts(&["a", "B", "か", "\u{301}", " ", "«", "1"], 6);
    all_texts(&["٢", "1", "〇", "中", " ", "⺀", "!"], 6);
    all_texts(&[" ", "\n", "\u{3000}", "\u{a0}", "「", "é", "\u{301}"], 6);
    all_texts(&["'", "s", "ſ", "É", "か", "\u{301}", " "], 6);
}

#[test]
fn all_short_texts_of_what_one_family_has_rules_for() {
    // Slashes after newlines after symbols.
    all_texts(&["!", "/", "\n", "a", " ", "B", "é"], 5);
    // Upper after caseless, before and behind much or little.
    all_texts(&["a", "B", "か", "中", "'s", " "], 6);
    // Zones, and symbols that lead letters.
    all_texts(&["・", "中", "(", "a", "é", " ", "3"], 5);
    all_texts(&["(", "a", "\u{301}", "«", "\u{200c}", "\0", "\u{3040}"], 5);
    // White space at the end.
    for lead in 55..70 {
        for end in ["\n \n ", " \n", "!\n ", "!\n \n\u{3000}", "\u{3000} ", "a \u{2028}\n", "\n\n  "] {
            check(&format!("{}{end}", "!".repeat(lead)));
            check(&format!("{}{end}", "a".repeat(lead)));
            check(&format!("{}{end}{}", "a".repeat(lead), " ".repeat(70)));
            check(&format!("{}{end}{}b", "a".repeat(lead), " \n".repeat(70)));
        }
    }
}

#[test]
fn every_code_point_splits_as_the_scanner_splits_it() {
    // Above U+40000 few are assigned, and those that are not are all alike.
    let all = (0..0x4_0000).chain((0x4_0000..0x11_0000).step_by(61)).chain(0xe_0000..0xe_0200);
    for c in all.filter_map(char::from_u32) {
        let text = format!(
            "{c}\n a{c}\nA{c}a\n{c}'s\n {c}\n{c}{c}\n{c}1{c}2\n中{c}文\n!{c}\n {c}A\n{c}BC\n\u{301}{c}b\n  {c}\n{c}\r\n"
        );
        check(&text);
        check(&format!("{}{c}é{c}«{c}{c} {c}か{c}'s\n{c}\n", "a".repeat(50 + (c as usize) % 16)));
    }
}

fn piece() -> impl Strategy<Value = String> {
    let fixed = [
        " ",
        " ",
        "  ",
        "   ",
        "\n",
        "\n\n",
        "\r\n",
        "\t",
        "\u{b}",
        "'",
        "'s",
        "'S",
        "'t's",
        "'ll",
        "'RE",
        "'lL",
        "'ſ",
        "a",
        "b",
        "word",
        "Word",
        "WORD",
        "camelCase",
        "X",
        "1",
        "12",
        "1234",
        "12345678",
        "!",
        "!!",
        ".",
        "(",
        "_",
        "->",
        "\0",
        "\u{1c}",
        "\u{7f}",
        "é",
        "É",
        "中",
        "中文",
        "〇",
        "⺀",
        "\u{301}",
        "\u{20d0}",
        "\u{fe0f}",
        "\u{200d}",
        "\u{a0}",
        "\u{3000}",
        "\u{85}",
        "\u{2028}",
        "🎉",
        "ª",
        "слово",
        "Слово",
        "مرحبا",
        "नमस्ते",
        "कि",
        "ไทย",
        "한국",
        "ひらがな",
        "カタカナ",
        "٢٠٢٤",
        "२",
        "½",
        "«",
        "»",
        "「",
        "」",
        "。",
        "“",
        "’",
        "𝐀",
        "𐐨",
        "𠀀",
        "𝟎",
        "<|open|>",
        " \n",
        "\n ",
        "! \n",
        "!\n \n",
        "    \n    ",
        "/",
        "\n/",
        ";\n//",
        "中文API",
        "かAPI",
        "中文Api",
        "・",
        "゛",
        "\u{3040}",
        "龥",
        "龦",
        "々",
        "\u{200c}",
        "l'école",
        "(trés",
        "\u{85}",
        "\u{e000}",
    ];
    prop::sample::select(fixed.to_vec()).prop_map(String::from)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30_000, ..ProptestConfig::default() })]

    #[test]
    fn mixed_text(pieces in prop::collection::vec(piece(), 0..60)) {
        check(&pieces.concat());
    }

    #[test]
    fn windows_that_end_anywhere(lead in 0usize..70, pieces in prop::collection::vec(piece(), 0..8), tail in 0usize..70) {
        check(&format!("{}{}{}", "a ".repeat(lead), pieces.concat(), "b".repeat(tail)));
        check(&format!("{}{}{}", " ".repeat(lead), pieces.concat(), "\n".repeat(tail)));
        check(&format!("{}{}{}", "!".repeat(lead), pieces.concat(), " ".repeat(tail)));
        check(&format!("{}{}{}", "é".repeat(lead), pieces.concat(), "か".repeat(tail)));
        check(&format!("{}{}{}", "中".repeat(lead), pieces.concat(), "🎉".repeat(tail)));
        check(&format!("{}{}{}", "\u{3000}".repeat(lead), pieces.concat(), "\u{301}".repeat(tail)));
    }
}
