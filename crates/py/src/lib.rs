//! `kizami._native`: the core, as Python calls it.
//!
//! Each function converts its arguments, releases the interpreter lock where the work is long, calls the core
//! once, and converts the result. Behaviour is documented in `python/kizami`, types in `_native.pyi`.

mod blocks;
mod convert;
mod documents;
mod errors;
mod session;
mod stream;
mod texts;
mod tokenizer;
mod values;

use std::io::Read;
use std::path::PathBuf;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Names that `Tokenizer.bundled` takes.
#[pyfunction]
fn bundled_names() -> Vec<&'static str> {
    kizami_bundled::MODELS.iter().map(|m| m.name).collect()
}

/// Of a bundled model: the SHA-256 of the rank file, and the ids that end a reply.
#[pyfunction]
fn bundled_facts(name: &str) -> PyResult<(&'static str, Vec<u32>)> {
    let model = kizami_bundled::find(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
    Ok((model.sha256(), model.eos_ids.to_vec()))
}

/// Most threads that one request may use; 0 restores the default.
#[pyfunction]
fn set_num_threads(n: usize) {
    kizami_core::parallel::set_num_threads(n);
}

/// Most threads that one request may use.
#[pyfunction]
fn get_num_threads() -> usize {
    kizami_core::parallel::num_threads()
}

/// To be called in the child of a fork: no other thread of ours exists there.
#[pyfunction]
fn forget_threads() {
    kizami_core::turn::forget();
    kizami_core::parallel::forget();
}

fn digest_of(data: &[u8]) -> String {
    blake3::hash(data).to_hex().to_string()
}

/// BLAKE3 of these bytes, in hexadecimal.
#[pyfunction]
fn digest(py: Python<'_>, data: &[u8]) -> String {
    py.detach(|| digest_of(data))
}

/// BLAKE3 of what a file holds; a file of more than `most` bytes is an error.
#[pyfunction]
fn digest_file(py: Python<'_>, path: PathBuf, most: u64) -> PyResult<String> {
    let digest = || {
        // Piece by piece: the pieces stay near, and no memory is taken for a file that is not needed.
        let mut file = std::fs::File::open(path)?.take(most + 1);
        let mut hasher = blake3::Hasher::new();
        let mut piece = vec![0; 256 << 10];
        let mut left = most;
        loop {
            let len = file.read(&mut piece)?;
            if len == 0 {
                return Ok(hasher.finalize().to_hex().to_string());
            }
            left = left.checked_sub(len as u64).ok_or(std::io::ErrorKind::FileTooLarge)?;
            hasher.update(&piece[..len]);
        }
    };
    py.detach(digest).map_err(|e: std::io::Error| e.into())
}

/// The class of every code point, one byte each, 0x110000 bytes; names in `CLASS_NAMES`.
#[pyfunction]
fn char_classes(py: Python<'_>) -> PyResult<Bound<'_, PyBytes>> {
    PyBytes::new_with(py, 0x11_0000, |bytes| {
        for (code_point, class) in (0..).zip(bytes.iter_mut()) {
            *class = kizami_core::unicode::class_of(code_point);
        }
        Ok(())
    })
}

#[pymodule(name = "_native", gil_used = false)]
mod native {
    #[pymodule_export]
    use super::blocks::{BlockHasher, block_hasher, block_schemes};
    #[pymodule_export]
    use super::documents::{json_lines, pieces};
    #[pymodule_export]
    use super::session::{IdMemory, Session, SessionCache};
    #[pymodule_export]
    use super::stream::DecodeStream;
    #[pymodule_export]
    use super::tokenizer::Tokenizer;
    #[pymodule_export]
    use super::values::{common_prefix, remembered};
    #[pymodule_export]
    use super::{
        bundled_facts, bundled_names, char_classes, digest, digest_file, forget_threads, get_num_threads,
        set_num_threads,
    };
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // NumPy's C interface is looked up at its first use; here no signal can interrupt that half-way.
        numpy::PyArray1::<u32>::from_slice(module.py(), &[]);
        module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
        super::stream::add_push(module.py())?;
        module.add("CLASS_NAMES", kizami_core::unicode::CLASS_NAMES)?;
        module.add("UNICODE_VERSION", kizami_core::unicode::UNICODE_VERSION)?;
        module.add("GPT2_PATTERN", kizami_core::pretoken::GPT2_PATTERN)?;
        module.add("KIMI_PATTERN", kizami_core::pretoken::KIMI_PATTERN)?;
        module.add("KIMI_RANK_FILE_SHA256", super::tokenizer::KIMI_RANK_FILE_SHA256)
    }
}
