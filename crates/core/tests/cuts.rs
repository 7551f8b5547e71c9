//! The fast cuts against the literal rule.

use kizami_core::cuts::{RUN, SLICE, cuts_code_points, cuts_units, cuts_utf8};
use proptest::prelude::*;

/// The literal rule's cuts as byte offsets.
fn literal(text: &str) -> Vec<usize> {
    let units: Vec<u32> = text.chars().map(u32::from).collect();
    let mut starts: Vec<usize> = text.char_indices().map(|(i, _)| i).collect();
    starts.push(text.len());
    cuts_code_points(&units).into_iter().map(|i| starts[i]).collect()
}

fn check(text: &str) {
    let units: Vec<u32> = text.chars().map(u32::from).collect();
    assert_eq!(cuts_units(&units), cuts_code_points(&units));
    assert_eq!(cuts_utf8(text.as_bytes(), text.is_ascii()), literal(text), "{} bytes", text.len());
}

#[test]
fn the_rule_by_hand() {
    let a = |n: usize| "a".repeat(n);
    assert!(cuts_utf8(a(RUN).as_bytes(), true).is_empty());
    assert_eq!(cuts_utf8(a(RUN + 1).as_bytes(), true), [RUN]);
    assert_eq!(cuts_utf8(a(2 * RUN + 1).as_bytes(), true), [RUN, 2 * RUN]);
    // The run after other text is counted from its own start.
    let text = format!("x {}", a(RUN + 1));
    assert_eq!(cuts_utf8(text.as_bytes(), true), [RUN + 2]);
    // U+001C is white space for Python: it ends the run (B18).
    let text = format!("{}\u{1c}{}", a(15_000), a(15_000));
    assert!(cuts_utf8(text.as_bytes(), true).is_empty());
    // A slice's start resets the counter.
    let text = format!("{}{}", "x ".repeat(SLICE / 2 - 5_000), a(40_000));
    assert_eq!(cuts_utf8(text.as_bytes(), true), [SLICE, SLICE + RUN]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn fast_cuts_equal_the_literal_rule(
        parts in prop::collection::vec(
            (
                prop::sample::select(vec!["a", " ", "中", "\u{3000}", "🎉", "\u{1c}", "é", "ab ", "\n", "x\u{301}"]),
                prop_oneof![1usize..40, 24_990usize..25_010, 30_000usize..60_000, 100_000usize..140_000],
            ),
            1..9,
        )
    ) {
        let text: String = parts.iter().map(|(unit, times)| unit.repeat(*times)).collect();
        check(&text);
    }
}
