//! Lab.
use kizami_core::{
    Options, Segment, Text,
    pretoken::{Batch, Pattern},
};
use std::time::Instant;
fn main() -> Result<(), Box<dyn std::error::Error>> {
    kizami_core::parallel::set_num_threads(1);
    let args: Vec<String> = std::env::args().skip(1).collect();
    for kind in &args {
        let tokenizer = kizami_bundled::find("kimi-k3").ok_or("x")?.load()?;
        let mut texts = Vec::new();
        for i in 0..6 {
            if let Ok(t) = std::fs::read_to_string(format!("/tmp/lab/{kind}.{i}.txt")) {
                texts.push(t);
            }
        }
        if texts.is_empty() {
            texts.push(std::fs::read_to_string(format!("/tmp/lab/{kind}.txt"))?);
        }
        let mut rates = Vec::new();
        let mut same = Vec::new();
        let mut split = Vec::new();
        let mut n = 0;
        let mut ids = 0;
        let mut pts = 0usize;
        let mut cold = 0.0;
        for (i, t) in texts.iter().enumerate() {
            let seg = [Segment { text: Text::Utf8(t), allow_special: false }];
            let s = Instant::now();
            ids = tokenizer.encode(&seg, Options::default())?.len();
            let e = s.elapsed().as_secs_f64();
            if i == 0 {
                cold = e;
            }
            if i > 0 || texts.len() == 1 {
                rates.push(e);
            }
            let s = Instant::now();
            tokenizer.encode(&seg, Options::default())?;
            same.push(s.elapsed().as_secs_f64());
            n = t.len();
            let mut b = Batch::default();
            let mut at = 0;
            pts = 0;
            let s = Instant::now();
            while at < t.len() {
                at = Pattern::Kimi.fill(t.as_bytes(), at, &mut b)?;
                pts += b.ranges().len();
            }
            split.push(s.elapsed().as_secs_f64());
        }
        let med = |v: &mut Vec<f64>| {
            v.sort_by(f64::total_cmp);
            v[v.len() / 2]
        };
        let (w, s, p) = (med(&mut rates), med(&mut same), med(&mut split));
        println!(
            "{kind:24} ids {ids:7} pts {pts:7} cold {:7.2} ms warm {:7.2} ms same {:7.2} ms split {:6.2} ms | warm {:5.0} MB/s {:5.0} ns/pt",
            cold * 1e3,
            w * 1e3,
            s * 1e3,
            p * 1e3,
            n as f64 / w / 1e6,
            w * 1e9 / pts as f64
        );
    }
    Ok(())
}
