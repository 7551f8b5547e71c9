//! The whole pipeline on the Kimi vocabulary against regex split and textbook merge.
#![no_main]

use kizami_core::merge::scan;
use kizami_core::pretoken::{Batch, Pattern};
use kizami_core::{Options, Segment, Text, Tokenizer};
use libfuzzer_sys::fuzz_target;

type Oracle = Box<dyn Fn(&[u8]) -> Vec<u32>>;

thread_local! {
    static SETUP: (Tokenizer, Pattern, Oracle) = {
        let tokenizer = kizami_bundled::find("kimi-k3").expect("bundled").load().expect("loads");
        let general = Pattern::General(Pattern::Kimi.to_general().expect("the pattern compiles"));
        let oracle = Box::new(scan::oracle(&tokenizer.tables().vocab));
        (tokenizer, general, oracle)
    };
}

fuzz_target!(|text: &str| {
    SETUP.with(|(tokenizer, general, oracle)| {
        let segment = Segment { text: Text::Utf8(text), allow_special: false };
        let ids = tokenizer.encode(&[segment], Options::default()).expect("encodes");
        let (mut want, mut at, mut batch) = (Vec::new(), 0, Batch::default());
        while at < text.len() {
            at = general.fill(text.as_bytes(), at, &mut batch).expect("no step limit is near");
            for &(start, end) in batch.ranges() {
                want.extend(oracle(&text.as_bytes()[start as usize..end as usize]));
            }
        }
        assert_eq!(ids, want);
        assert_eq!(tokenizer.decode(&ids, false).expect("own ids"), text.as_bytes());
    });
});
