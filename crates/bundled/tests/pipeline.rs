//! The whole pipeline on the Kimi vocabulary: threads, segments, counts, images.
#![cfg(feature = "kimi")]

use std::sync::Mutex;

use kizami_core::{Options, Segment, Text, Tokenizer, image, parallel};

/// The thread limit is one for the process: tests that set it take turns.
static LIMIT: Mutex<()> = Mutex::new(());

fn tokenizer() -> Tokenizer {
    kizami_bundled::find("kimi-k3").unwrap().load().unwrap()
}

fn text(text: &str, allow_special: bool) -> Segment<'_> {
    Segment { text: Text::Utf8(text), allow_special }
}

fn sample() -> String {
    let line = "The quick brown fox, 日本語と한국어, don't 12345 <|open|> == != \n\n  émigré 🎉\t";
    line.repeat(12_000)
}

#[test]
fn ids_do_not_depend_on_the_number_of_threads() {
    let _turn = LIMIT.lock().unwrap();
    let (tokenizer, sample) = (tokenizer(), sample());
    let segments =
        [text(&sample, false), text("", true), text("<|open|>x<|sep|>", true), text(&sample, true), text("a", false)];
    parallel::set_num_threads(1);
    let want = tokenizer.encode(&segments, Options::default()).unwrap();
    let prepared = tokenizer.prepare(&segments, Options::default()).unwrap();
    let mut want_ends = Vec::new();
    prepared.encode(Some(&mut want_ends)).unwrap();
    assert_eq!(want_ends.len(), segments.len());
    assert_eq!(want_ends[1], want_ends[0]);
    assert_eq!(want_ends[4], want.len());
    for threads in [2, 3, 8, 64] {
        parallel::set_num_threads(threads);
        let mut ends = Vec::new();
        let encoded = prepared.encode(Some(&mut ends)).unwrap();
        assert_eq!((encoded.len(), &ends), (want.len(), &want_ends));
        assert_eq!(encoded.parts().collect::<Vec<_>>().concat(), want);
        assert_eq!(tokenizer.encode(&segments, Options::default()).unwrap(), want);
        assert_eq!(prepared.count().unwrap(), want.len());
    }
    parallel::set_num_threads(0);
}

#[test]
fn no_hard_boundary_for_megabytes_is_no_trouble() {
    let _turn = LIMIT.lock().unwrap();
    parallel::set_num_threads(4);
    let tokenizer = tokenizer();
    let long = "x".repeat(1 << 20);
    let ids = tokenizer.encode(&[text(&long, false)], Options { legacy_chunks: false }).unwrap();
    assert_eq!(tokenizer.decode(&ids, false).unwrap(), long.as_bytes());
    parallel::set_num_threads(0);
}

#[test]
fn untrusted_text_gives_no_control_id() {
    let tokenizer = tokenizer();
    let all: String = tokenizer.controls().tokens().iter().map(|t| t.name.as_str()).collect();
    let ids = tokenizer.encode(&[text(&all, false)], Options::default()).unwrap();
    assert!(ids.iter().all(|&id| id < tokenizer.ordinary_len()));
    let ids = tokenizer.encode(&[text(&all, true)], Options::default()).unwrap();
    assert_eq!(ids, (163_584..163_840).collect::<Vec<u32>>());
}

#[test]
fn a_damaged_image_is_refused() {
    let good = kizami_bundled::kimi::IMAGE;
    assert!(image::from_static(good).is_ok());
    for at in [0, 7, 9, 16, 70, 4096, good.len() - 1] {
        let mut bytes = good.to_vec();
        bytes[at] ^= 1;
        // The tests leak what they damage: images are static.
        assert!(image::from_static(Vec::leak(bytes)).is_err(), "byte {at}");
    }
    for len in [0, 10, 64, 200, good.len() / 2] {
        assert!(image::from_static(Vec::leak(good[..len].to_vec())).is_err(), "{len} bytes");
    }
}

#[test]
fn unknown_ids_are_named() {
    let tokenizer = tokenizer();
    let error = tokenizer.decode(&[1, 2, 163_840], false).unwrap_err();
    assert_eq!(error, kizami_core::Error::UnknownId { id: 163_840, position: 2, vocab_size: 163_840 });
    assert!(tokenizer.decode(&[u32::MAX], true).is_err());
    assert!(tokenizer.token_bytes(u32::MAX).is_none());
}

#[test]
fn long_texts_that_are_not_utf8_give_the_ids_of_those_that_are() {
    let _turn = LIMIT.lock().unwrap();
    let tokenizer = tokenizer();
    // Long enough for parts, with every kind of boundary, a cut at 400,000 and long runs.
    let base = "Ordinary words, 会同有关部门。かなと漢字 và tiếng Việt; слово за словом\n\n  x\t".repeat(9_000);
    for extra in ["", "\u{1f389}", &"漢".repeat(60_000), &"x".repeat(60_000)] {
        let text = format!("{base}{extra}{base}");
        let wide: Vec<u32> = text.chars().map(u32::from).collect();
        let want = tokenizer.encode(&[Segment { text: Text::Utf8(&text), allow_special: false }], Options::default());
        let units: Option<Vec<u16>> = wide.iter().map(|&c| u16::try_from(c).ok()).collect();
        for threads in [1, 3] {
            parallel::set_num_threads(threads);
            for allow_special in [false, true] {
                let of = |text| tokenizer.encode(&[Segment { text, allow_special }], Options::default());
                assert!(of(Text::Ucs4(&wide)) == want);
                assert!(units.as_ref().is_none_or(|units| of(Text::Ucs2(units)) == want));
            }
        }
    }
    parallel::set_num_threads(0);
}

#[test]
fn a_cut_parts_a_surrogate_pair_however_long_the_text_is() {
    let tokenizer = tokenizer();
    let mut units = vec![0x61u16; kizami_core::cuts::RUN - 1];
    units.extend([0xd83d, 0xde00]);
    let parted = format!("{}\u{fffd}", "a".repeat(kizami_core::cuts::RUN - 1));
    let plain = |text| Segment { text, allow_special: false };
    let want = [plain(Text::Utf8(&parted)), plain(Text::Utf8("\u{fffd}"))];
    let want = tokenizer.encode(&want, Options::default()).unwrap();
    for allow_special in [false, true] {
        let given = [Segment { text: Text::Ucs2(&units), allow_special }];
        assert_eq!(tokenizer.encode(&given, Options::default()).unwrap(), want);
    }
}
