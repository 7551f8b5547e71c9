//! Each vector form against its scalar twin, and each form of the split against the scanner.

use kizami_core::pretoken::{Batch, Pattern};
use kizami_core::simd::{Classify, Level, Planes, Scalar};
use proptest::prelude::*;

fn by_hand(bytes: &[u8; 64]) -> Planes {
    let plane = |test: &dyn Fn(u8) -> bool| (0..64).filter(|&i| test(bytes[i])).fold(0u64, |bits, i| bits | 1 << i);
    Planes {
        lower: plane(&|b| b.is_ascii_lowercase()),
        upper: plane(&|b| b.is_ascii_uppercase()),
        digit: plane(&|b| b.is_ascii_digit()),
        space: plane(&|b| b == b' ' || b == 9 || b == 11 || b == 12),
        blank: plane(&|b| b == b' '),
        newline: plane(&|b| b == 10 || b == 13),
        quote: plane(&|b| b == b'\''),
        non_ascii: plane(&|b| b > 127),
    }
}

#[test]
fn every_byte_at_every_place_has_its_planes() {
    for byte in 0..=255u8 {
        for place in 0..64 {
            let mut bytes = [b'.'; 64];
            bytes[place] = byte;
            bytes[(place + 7) % 64] = byte.wrapping_mul(31).wrapping_add(17);
            let want = by_hand(&bytes);
            assert_eq!(Scalar.planes(&bytes), want, "byte {byte} at {place}");
            #[cfg(target_arch = "x86_64")]
            if let Some(avx2) = kizami_core::simd::Avx2::new() {
                assert_eq!(avx2.planes(&bytes), want, "byte {byte} at {place}");
            }
        }
    }
}

fn split(level: Level, text: &str) -> Vec<(u32, u32)> {
    let mut batch = Batch::default();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < text.len() {
        at = Pattern::Kimi.fill_at_level(level, text.as_bytes(), at, &mut batch).unwrap();
        out.extend_from_slice(batch.ranges());
    }
    out
}

fn check(text: &str) {
    let levels = Level::all();
    let want = split(levels[0], text);
    for &level in &levels[1..] {
        let got = split(level, text);
        if got != want {
            let first = got.iter().zip(&want).position(|(a, b)| a != b).unwrap_or(got.len().min(want.len()));
            panic!(
                "{} differs at pre-token {first} of {text:?}: {:?} for {:?}",
                level.name(),
                got.get(first),
                want.get(first)
            );
        }
    }
}

#[test]
fn all_short_texts_over_the_classes() {
    // One of each class, and what contractions are made of: every text of up to 6 of them, in a frame long enough for a window.
    let parts = [b'a', b'B', b's', b'\'', b'1', b' ', b'\t', b'\n', b'!'];
    let n = parts.len();
    for code in 0..n.pow(6) {
        let mut text: Vec<u8> = (0..6).map(|k| parts[code / n.pow(k) % n]).collect();
        text.extend_from_slice(b" x y z w.");
        check(std::str::from_utf8(&text).unwrap());
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
        "中",
        "\u{301}",
        "\u{a0}",
        "🎉",
        "ª",
        "<|open|>",
        " \n",
        "\n ",
        "! \n",
        "!\n \n",
        "    \n    ",
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
    }
}
