//! Turns the rank data of registry crates into what `src/lib.rs` embeds.
//!
//! The data is unpacked, written back as the published rank file, and must have that file's checksum. Of Kimi's, the core's
//! own builder makes a table image, which is loaded without work; of the others, the packed ranks are kept, which are a
//! tenth of the size.

#[cfg(any(feature = "kimi", feature = "openai"))]
use std::path::Path;
use std::path::PathBuf;

#[cfg(any(feature = "kimi", feature = "openai"))]
use kizami_core::{Vocab, load::write_rank_file};

#[cfg(any(feature = "kimi", feature = "openai"))]
include!("src/packed.rs");

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/packed.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    #[cfg(feature = "kimi")]
    kimi::build(&out.join("kimi.image"));
    #[cfg(feature = "openai")]
    openai::build(&out);
    let _ = out;
}

/// The vocabulary of packed ranks, if it is the published file with that checksum.
#[cfg(any(feature = "kimi", feature = "openai"))]
fn checked(packed: &[u8], sha256: &str) -> Vocab {
    use sha2::{Digest, Sha256};

    let tokens = unpack(packed).expect("the packed format of splintr-vocab-pack 1");
    let vocab = Vocab::from_ranked(&tokens).expect("a byte-level vocabulary");
    let digest = Sha256::digest(write_rank_file(&vocab));
    let hex: String = digest.iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hex, sha256, "the rank data is not the file that was published");
    vocab
}

#[cfg(feature = "kimi")]
mod kimi {
    use super::{Path, checked};
    use kizami_core::{Tables, image};

    include!("src/kimi_sha256.rs");

    pub fn build(path: &Path) {
        let vocab = checked(splintr_vocab_kimi::KIMI_VOCAB_PACKED, RANK_FILE_SHA256);
        let tables = Tables::build(vocab).expect("tables");
        std::fs::write(path, image::write(&tables)).expect("writing the image");
    }
}

#[cfg(feature = "openai")]
mod openai {
    use super::{Path, checked};

    include!("src/openai_sha256.rs");

    pub fn build(out: &Path) {
        for (name, packed, sha256) in [
            ("cl100k_base", splintr_vocab_cl100k::CL100K_BASE_VOCAB_PACKED, CL100K_SHA256),
            ("o200k_base", splintr_vocab_o200k::O200K_BASE_VOCAB_PACKED, O200K_SHA256),
        ] {
            checked(packed, sha256);
            std::fs::write(out.join(format!("{name}.packed")), packed).expect("writing the ranks");
        }
    }
}
