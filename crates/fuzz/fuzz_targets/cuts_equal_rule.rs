//! The fast cuts against the literal rule, on texts made of long runs.
#![no_main]

use kizami_core::cuts::{cuts_code_points, cuts_utf8};
use libfuzzer_sys::fuzz_target;

const UNITS: [&str; 8] = ["a", " ", "中", "\u{3000}", "🎉", "\u{1c}", "é ", "ab\n"];

fuzz_target!(|runs: Vec<(u8, u16)>| {
    let text: String =
        runs.iter().take(12).map(|&(unit, times)| UNITS[usize::from(unit) % 8].repeat(times.into())).collect();
    let units: Vec<u32> = text.chars().map(u32::from).collect();
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let want: Vec<usize> = cuts_code_points(&units).into_iter().map(|i| starts[i]).collect();
    assert_eq!(cuts_utf8(text.as_bytes(), text.is_ascii()), want);
});
