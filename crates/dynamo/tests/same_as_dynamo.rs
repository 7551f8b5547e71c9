//! Kizami behind the traits against Dynamo's own tokenizer of the same vocabulary.

use std::io::Write;
use std::sync::Arc;

use dynamo_tokenizers::traits::{DecodeResult, Decoder, Encoder, Tokenizer as _};
use dynamo_tokenizers::{EncodeSegment, TikTokenTokenizer, Tokenizer};
use kizami_core::load::{saved, write_rank_file};
use kizami_core::pretoken::KIMI_PATTERN;
use kizami_dynamo::KizamiTokenizer;

fn core() -> kizami_core::Tokenizer {
    kizami_bundled::find("kimi-k3").expect("bundled").load().expect("loads")
}

fn both() -> (TikTokenTokenizer, KizamiTokenizer) {
    let core = core();
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(&write_rank_file(&core.tables().vocab)).expect("written");
    let controls = core.controls().tokens().iter().map(|token| (token.name.clone(), token.id)).collect();
    let theirs = TikTokenTokenizer::from_file(file.path().to_str().expect("UTF-8"), KIMI_PATTERN, controls);
    (theirs.expect("loads"), core.into())
}

fn texts() -> Vec<String> {
    let mut texts: Vec<String> =
        ["", "Hello, world", "<|open|>x[EOS]\n\n  naïve 中文 🎉 don't", "<|reserved_token_163700|>"]
            .map(String::from)
            .into();
    // Runs that are cut, and white space that only Python counts as such.
    texts.push(format!("{}{}b", "a".repeat(25_001), " ".repeat(25_001)));
    texts.push(format!("{}\u{1c}{}", "a".repeat(15_000), "a".repeat(15_000)));
    texts.push("word ".repeat(80_001));
    texts
}

#[test]
fn segments_have_the_same_ids() {
    let (theirs, ours) = both();
    let texts = texts();
    for trusted in [false, true] {
        for text in &texts {
            let segments = [EncodeSegment::new(text, trusted), EncodeSegment::control("<|sep|>")];
            let want = theirs.encode_segments(&segments).expect("encodes");
            assert_eq!(ours.encode_segments(&segments).expect("encodes").token_ids(), want.token_ids());
        }
    }
    let segments: Vec<_> = texts.iter().enumerate().map(|(i, text)| EncodeSegment::new(text, i % 2 == 0)).collect();
    let want = theirs.encode_segments(&segments).expect("encodes");
    assert_eq!(ours.encode_segments(&segments).expect("encodes").token_ids(), want.token_ids());
}

#[test]
fn text_has_the_same_ids_alone_and_in_batches() {
    let (theirs, ours) = both();
    let texts = texts();
    // Dynamo does not cut flat text; Kizami does, as the model's own code.
    let short: Vec<&str> = texts.iter().map(String::as_str).filter(|text| text.len() < 25_000).collect();
    let batch = ours.encode_batch(&short).expect("encodes");
    assert_eq!(batch.len(), short.len());
    for (text, encoding) in short.iter().zip(&batch) {
        assert_eq!(encoding.token_ids(), theirs.encode(text).expect("encodes").token_ids());
        assert_eq!(encoding.token_ids(), ours.encode(text).expect("encodes").token_ids());
    }
    assert!(ours.encode_batch(&[]).expect("encodes").is_empty());
}

#[test]
fn ids_have_the_same_text() {
    let (theirs, ours) = both();
    let ids = ours.encode("a 🎉<|open|>中文").expect("encodes").token_ids().to_vec();
    for end in 0..=ids.len() {
        let want = theirs.decode(&ids[..end], false).expect("decodes");
        assert_eq!(ours.decode(&ids[..end], false).expect("decodes"), want);
    }
    // Only tokens flagged special are left out.
    let reply = ours.encode("<|open|>a<|end_of_msg|><|close|>").expect("encodes").token_ids().to_vec();
    let text = ours.decode(&reply, true).expect("decodes");
    assert_eq!(text, DecodeResult::Complete("<|open|>a<|close|>".into()));
    assert!(ours.decode(&[163_840], false).is_err());
}

#[test]
fn dynamo_streams_its_ids() {
    let ours = KizamiTokenizer::from(core());
    let ids = ours.encode("Go 🎉, 中文!").expect("encodes").token_ids().to_vec();
    let tokenizer = Tokenizer::from(Arc::new(ours));
    let mut stream = tokenizer.decode_stream(&[], false);
    let mut text = String::new();
    for id in ids {
        text.extend(stream.step(id).expect("steps"));
    }
    assert_eq!(text, "Go 🎉, 中文!");
}

#[test]
fn the_vocabulary_can_be_asked() {
    let ours = KizamiTokenizer::from(core());
    assert_eq!(ours.vocab_size(), Some(163_840));
    assert_eq!(ours.token_to_id("<|open|>").expect("known"), Some(163_587));
    assert_eq!(ours.token_to_id(" world").expect("known"), Some(2695));
    assert_eq!(ours.token_to_id("no such token").expect("known"), None);
    let special = ours.special_token_ids().expect("known");
    assert!(special.contains(&163_586) && !special.contains(&163_587));
    assert_eq!(ours.num_special_tokens_added().expect("known"), 0);
    assert!(ours.validate_prefix_cache().is_err());
}

#[test]
fn files_are_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("k3.kizami");
    std::fs::write(&path, saved::write(&core(), "{}")).expect("written");
    let ours = KizamiTokenizer::open(&path).expect("opens");
    assert_eq!(ours.encode("Hello, world").expect("encodes").token_ids(), [19_180, 11, 2695]);

    std::fs::write(&path, b"no tokenizer").expect("written");
    let error = KizamiTokenizer::open(&path).expect_err("damaged").to_string();
    assert!(error.starts_with(path.to_str().expect("UTF-8")), "{error}");
    assert!(KizamiTokenizer::open(&folder.path().join("none")).is_err());
}
