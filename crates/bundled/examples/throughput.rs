//! Encodes files over and over on one thread and prints MB/s: something to run under a profiler.
//!
//! `cargo run --release -p kizami-bundled --example throughput -- FILE…`

use std::time::Instant;

use kizami_core::{Options, Segment, Text};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tokenizer = kizami_bundled::find("kimi-k3").ok_or("built without the feature kimi")?.load()?;
    kizami_core::parallel::set_num_threads(1);
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path)?;
        let segment = [Segment { text: Text::Utf8(&text), allow_special: false }];
        let mut times = Vec::new();
        let mut ids = 0;
        for _ in 0..9 {
            let start = Instant::now();
            ids = tokenizer.encode(&segment, Options::default())?.len();
            times.push(start.elapsed().as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        println!("{path}: {ids} ids, {:.1} MB/s", text.len() as f64 / times[4] / 1e6);
    }
    Ok(())
}
