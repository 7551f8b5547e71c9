//! The scanner of the Kimi pattern against the general regex engine.
#![no_main]

use kizami_core::pretoken::{Batch, Pattern};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static GENERAL: Pattern = Pattern::General(Pattern::Kimi.to_general().expect("the pattern compiles"));
}

fn split(pattern: &Pattern, text: &str) -> Vec<(u32, u32)> {
    let mut batch = Batch::default();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < text.len() {
        at = pattern.fill(text.as_bytes(), at, &mut batch).expect("no step limit is near");
        out.extend_from_slice(batch.ranges());
    }
    out
}

fuzz_target!(|text: &str| {
    GENERAL.with(|general| assert_eq!(split(&Pattern::Kimi, text), split(general, text)));
});
