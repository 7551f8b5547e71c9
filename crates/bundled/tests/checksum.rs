//! The image that programs embed holds the ranks that Moonshot published.
#![cfg(feature = "kimi")]

use kizami_core::load::{read_rank_file, write_rank_file};
use sha2::{Digest, Sha256};

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
