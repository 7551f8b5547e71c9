//! Where the time of one large request goes: what one thread does alone, and what all do together.
//!
//! `cargo run --release -p kizami-bundled --example serial_share -- FILE…`
//!
//! All files together are one request, a segment each. For each number of threads, the medians of many runs in
//! milliseconds: making ready (places, cuts); encoding, with parting into jobs and waking helpers; and writing the ids
//! where the caller wants them. See docs/concepts/scaling.md.

use std::mem::MaybeUninit;
use std::time::Instant;

use kizami_core::{Options, Segment, Text, parallel};

const RUNS: usize = 31;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tokenizer = kizami_bundled::find("kimi-k3").ok_or("built without the feature kimi")?.load()?;
    let texts = std::env::args().skip(1).map(std::fs::read_to_string).collect::<Result<Vec<_>, _>>()?;
    // As Python holds them: a unit a code point.
    let wide: Vec<Vec<u32>> = texts.iter().map(|text| text.chars().map(u32::from).collect()).collect();
    let segments: Vec<_> = texts
        .iter()
        .zip(&wide)
        .map(|(text, wide)| Segment {
            text: if text.is_ascii() { Text::Latin1(text.as_bytes()) } else { Text::Ucs4(wide) },
            allow_special: false,
        })
        .collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    let cpus = parallel::cpus();
    println!("{bytes} bytes, {cpus} CPUs");
    println!("threads     ids   ready  encode   write   total  (ms)");
    let mut counts: Vec<usize> = std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|&n| n < cpus).collect();
    counts.push(cpus);
    for threads in counts {
        parallel::set_num_threads(threads);
        let mut phases = [const { Vec::new() }; 3];
        let mut ids = 0;
        let mut out: Vec<u32> = Vec::new();
        for _ in 0..RUNS {
            let start = Instant::now();
            let prepared = tokenizer.prepare(&segments, Options::default())?;
            phases[0].push(start.elapsed());
            let start = Instant::now();
            let encoded = prepared.encode(None)?;
            phases[1].push(start.elapsed());
            ids = encoded.len();
            out.clear();
            out.reserve_exact(ids);
            let slots: &mut [MaybeUninit<u32>] = &mut out.spare_capacity_mut()[..ids];
            let start = Instant::now();
            encoded.write_to(slots);
            phases[2].push(start.elapsed());
        }
        let medians = phases.map(|mut times| {
            times.sort();
            times[RUNS / 2].as_secs_f64() * 1e3
        });
        let [ready, encode, write] = medians;
        println!("{threads:7} {ids:7} {ready:7.3} {encode:7.3} {write:7.3} {:7.3}", ready + encode + write);
    }
    let mut waking = Vec::new();
    parallel::set_num_threads(cpus);
    for _ in 0..201 {
        let start = Instant::now();
        parallel::on_threads(cpus, cpus, |next| {
            while next().is_some() {
                let until = Instant::now() + std::time::Duration::from_micros(300);
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
            }
        });
        waking.push(start.elapsed().as_secs_f64() * 1e3 - 0.3);
    }
    waking.sort_by(f64::total_cmp);
    println!("waking {} helpers and waiting for the last: {:.3} ms", cpus - 1, waking[100]);
    Ok(())
}
