//! Core errors to the classes of `kizami.errors`; panics to `InternalError`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// An instance of `kizami.errors.<class>` with `facts` as attributes.
pub fn raise(py: Python<'_>, class: &str, message: &str, facts: &[(&str, i64)]) -> PyErr {
    let make = || -> PyResult<PyErr> {
        let kwargs = PyDict::new(py);
        for (name, value) in facts {
            kwargs.set_item(name, value)?;
        }
        let class = py.import("kizami.errors")?.getattr(class)?;
        Ok(PyErr::from_value(class.call((message,), Some(&kwargs))?))
    };
    make().unwrap_or_else(|error| error)
}

/// The Python exception for an error of the core.
pub fn to_py_err(py: Python<'_>, error: &kizami_core::Error) -> PyErr {
    use kizami_core::Error::{
        BlockHash, Image, Memory, NoOffsets, Pattern, TooLong, UnknownId, Unsupported, Vocabulary,
    };
    let text = error.to_string();
    let int = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    match *error {
        UnknownId { id, position, vocab_size } => {
            let facts = [("id", i64::from(id)), ("position", int(position)), ("vocab_size", i64::from(vocab_size))];
            raise(py, "InvalidIdError", &format!("{text}; decode only ids of this tokenizer"), &facts)
        }
        Vocabulary { line, .. } => raise(py, "VocabularyError", &text, &[("line", int(line))]),
        Image(_) => raise(py, "VocabularyError", &text, &[]),
        Memory { .. } => PyMemoryError::new_err(text),
        NoOffsets { segment } => {
            let message = format!("{text}; this tokenizer changes text, so use encode, which gives no offsets");
            raise(py, "UnknownFormatError", &message, &[("segment", int(segment))])
        }
        Pattern(_) | Unsupported(_) => raise(py, "UnknownFormatError", &text, &[]),
        BlockHash(_) => raise(py, "InvalidValueError", &text, &[]),
        TooLong { segment, .. } => {
            raise(py, "InvalidValueError", &format!("{text}; split the text"), &[("segment", int(segment))])
        }
        _ => raise(py, "InternalError", &text, &[]),
    }
}

/// Runs `f`; a panic becomes `InternalError`, an ordinary exception that `except Exception` catches.
pub fn guard<T>(py: Python<'_>, f: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("unknown panic");
        let message = format!("a bug in kizami: {text}; please report it with the input that caused it");
        Err(raise(py, "InternalError", &message, &[]))
    })
}
