//! The class `_native.DecodeStream`.

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kizami_core::DecodeStream as Core;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

use crate::convert::Ids;
use crate::errors::{guard, to_py_err};
use crate::tokenizer::{Tokenizer, to_str};

/// See `kizami.DecodeStream`.
#[pyclass(frozen, subclass, module = "kizami._native")]
pub struct DecodeStream {
    tokenizer: Py<Tokenizer>,
    /// Python is not called while this is locked, so that nobody who waits for it can be waited for.
    core: Mutex<Core>,
}

#[pymethods]
impl DecodeStream {
    /// Another stream at the same place as `like`.
    #[new]
    fn new(py: Python<'_>, like: &Self) -> Self {
        DecodeStream { tokenizer: like.tokenizer.clone_ref(py), core: Mutex::new(like.lock().clone()) }
    }

    /// The text that is certain after one more id, or several.
    #[pyo3(signature = (ids, /))]
    fn push<'py>(&self, py: Python<'py>, ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        let one = ids.cast_exact::<PyInt>().ok().and_then(|id| id.extract::<u32>().ok());
        guard(py, || match one {
            Some(id) => {
                let text = self.lock().push_id(&self.tokenizer.get().core, id);
                to_str(py, &text.map_err(|e| to_py_err(py, &e))?)
            }
            None => self.push_several(py, ids),
        })
    }

    /// The text held back so far, at the end of the ids.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        guard(py, || {
            let text = self.lock().finish();
            to_str(py, &text)
        })
    }

    /// The stop string that was found, or None.
    #[getter]
    fn stopped(&self) -> Option<String> {
        self.lock().stopped().map(str::to_owned)
    }
}

impl DecodeStream {
    pub fn begin(tokenizer: Py<Tokenizer>, skip_special: bool, stop: Vec<String>) -> Self {
        DecodeStream { tokenizer, core: Mutex::new(Core::new(skip_special, stop)) }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push_several<'py>(&self, py: Python<'py>, ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        let tokenizer = &self.tokenizer.get().core;
        let ids = match ids.extract::<Ids<'_>>() {
            Ok(ids) => ids,
            // Other forms of ids, and what is wrong with those that are none.
            Err(_) => {
                let module = py.import(intern!(py, "kizami._ids"))?;
                module.call_method1(intern!(py, "pushed_ids"), (ids, tokenizer.vocab_size()))?.extract()?
            }
        };
        let text = ids.with(py, |ids| match ids {
            &[id] => self.lock().push_id(tokenizer, id),
            ids => self.lock().push(tokenizer, ids).map(Cow::Owned),
        })?;
        to_str(py, &text.map_err(|e| to_py_err(py, &e))?)
    }
}
