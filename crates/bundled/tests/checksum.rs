//! What programs embed holds the ranks that were published.
#![cfg(feature = "kimi")]

use kizami_core::load::{read_rank_file, write_rank_file};
use sha2::{Digest, Sha256};

#[test]
fn every_model_has_the_published_ranks() {
    for model in kizami_bundled::MODELS {
        let tokenizer = model.load().unwrap();
        let digest = Sha256::digest(write_rank_file(&tokenizer.tables().vocab));
        let hex: String = digest.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, model.sha256(), "{}", model.name);
        assert!(tokenizer.tables().merges.greedy());
        assert!(model.eos_ids.iter().all(|&id| tokenizer.controls().by_id(id).is_some()));
    }
}

#[test]
fn the_embedded_image_gives_back_the_published_rank_file() {
    let tables = kizami_core::image::from_static(kizami_bundled::kimi::IMAGE).unwrap();
    let file = write_rank_file(&tables.vocab);
    let hex: String = Sha256::digest(&file).iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hex, kizami_bundled::kimi::RANK_FILE_SHA256);
    let again = read_rank_file(&file).unwrap();
    assert!(again.iter().eq(tables.vocab.iter()));
}

#[test]
fn the_kimi_vocabulary_allows_the_greedy_merge() {
    let tables = kizami_core::image::from_trusted_static(kizami_bundled::kimi::IMAGE).unwrap();
    assert!(tables.merges.greedy());
}
