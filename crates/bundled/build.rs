//! Turns the rank data of registry crates into table images.
//!
//! The data is unpacked, written back as the published rank file, and must have that file's checksum; then
//! the core's own builder makes the tables. The result is embedded by `src/lib.rs`.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    #[cfg(feature = "kimi")]
    kimi::build(&out.join("kimi.image"));
    let _ = out;
}

#[cfg(feature = "kimi")]
mod kimi {
    use std::path::Path;

    use kizami_core::load::write_rank_file;
    use kizami_core::{Tables, Vocab, image};
    use sha2::{Digest, Sha256};

    include!("src/kimi_sha256.rs");

    pub fn build(path: &Path) {
        let tokens = unpack(splintr_vocab_kimi::KIMI_VOCAB_PACKED).expect("the packed format of splintr-vocab-pack 1");
        let vocab = Vocab::from_ranked(&tokens).expect("a byte-level vocabulary");
        let digest = Sha256::digest(write_rank_file(&vocab));
        let hex: String = digest.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, RANK_FILE_SHA256, "the rank data is not the file that Moonshot published");
        let tables = Tables::build(vocab).expect("tables");
        std::fs::write(path, image::write(&tables)).expect("writing the image");
    }

    /// Reads magic, count, then `varint(rank) varint(length) bytes` per token.
    fn unpack(mut packed: &[u8]) -> Option<Vec<Vec<u8>>> {
        packed = packed.strip_prefix(b"SPLNTRV1")?;
        let (count, mut rest) = packed.split_at_checked(4)?;
        let count = u32::from_le_bytes(count.try_into().ok()?);
        let mut tokens = vec![Vec::new(); usize::try_from(count).ok()?];
        for _ in 0..count {
            let rank = varint(&mut rest)?;
            let length = varint(&mut rest)?;
            let (token, more) = rest.split_at_checked(length)?;
            *tokens.get_mut(rank)? = token.to_vec();
            rest = more;
        }
        rest.is_empty().then_some(tokens)
    }

    fn varint(rest: &mut &[u8]) -> Option<usize> {
        let mut value = 0;
        for shift in (0..35).step_by(7) {
            let (&byte, more) = rest.split_first()?;
            *rest = more;
            value |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}
