//! `kizami._native`: the core, as Python calls it.
//!
//! Each function converts its arguments, releases the interpreter lock where the work is long, calls the core
//! once, and converts the result. Behaviour is documented in `python/kizami`, types in `_native.pyi`.

mod convert;
mod documents;
mod errors;
mod stream;
mod tokenizer;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Names that `Tokenizer.bundled` takes.
#[pyfunction]
fn bundled_names() -> Vec<&'static str> {
    kizami_bundled::MODELS.iter().map(|m| m.name).collect()
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
    use super::documents::{json_lines, pieces};
    #[pymodule_export]
    use super::stream::DecodeStream;
    #[pymodule_export]
    use super::tokenizer::Tokenizer;
    #[pymodule_export]
    use super::{bundled_names, char_classes, forget_threads, get_num_threads, set_num_threads};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // NumPy's C interface is looked up at its first use; here no signal can interrupt that half-way.
        numpy::PyArray1::<u32>::from_slice(module.py(), &[]);
        module.add("CLASS_NAMES", kizami_core::unicode::CLASS_NAMES)?;
        module.add("UNICODE_VERSION", kizami_core::unicode::UNICODE_VERSION)?;
        module.add("GPT2_PATTERN", kizami_core::pretoken::GPT2_PATTERN)?;
        module.add("KIMI_PATTERN", kizami_core::pretoken::KIMI_PATTERN)?;
        module.add("KIMI_RANK_FILE_SHA256", super::tokenizer::KIMI_RANK_FILE_SHA256)
    }
}
