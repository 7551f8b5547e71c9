//! The class `_native.DecodeStream`.
//!
//! An id of a reply mostly gives the text of its token, whatever came before. For such an id a call costs about as much as one
//! of Python's own functions (`push`, at the end); all others take the longer way.

use std::borrow::Cow;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kizami_core::DecodeStream as Core;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
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
    /// [`Core::is_plain`], for who does not want to lock it.
    plain: AtomicBool,
}

#[pymethods]
impl DecodeStream {
    /// Another stream at the same place as `like`.
    #[new]
    fn new(py: Python<'_>, like: &Self) -> Self {
        DecodeStream::at(like.tokenizer.clone_ref(py), like.lock().clone())
    }

    /// What `push` does, any ids in any state.
    #[pyo3(name = "_push", signature = (ids, /))]
    fn push_any<'py>(&self, py: Python<'py>, ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        guard(py, || match one(ids) {
            Some(id) => self.push_id(py, id),
            None => self.push_several(py, ids),
        })
    }

    /// The text held back so far, at the end of the ids.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        guard(py, || to_str(py, &self.change(Core::finish)))
    }

    /// The stop string that was found, or None.
    #[getter]
    fn stopped(&self) -> Option<String> {
        self.lock().stopped().map(str::to_owned)
    }
}

/// One id, as most callers give it.
#[inline]
fn one(ids: &Bound<'_, PyAny>) -> Option<u32> {
    let id = ids.cast_exact::<PyInt>().ok()?;
    let mut overflow = 0;
    // SAFETY: an int that is alive. This function gives -1 for what does not fit, and sets no exception for an int.
    u32::try_from(unsafe { ffi::PyLong_AsLongAndOverflow(id.as_ptr(), &raw mut overflow) }).ok()
}

impl DecodeStream {
    pub fn begin(tokenizer: Py<Tokenizer>, skip_special: bool, stop: Vec<String>) -> Self {
        DecodeStream::at(tokenizer, Core::new(skip_special, stop))
    }

    fn at(tokenizer: Py<Tokenizer>, core: Core) -> Self {
        let plain = AtomicBool::new(core.is_plain());
        DecodeStream { tokenizer, core: Mutex::new(core), plain }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, f: impl FnOnce(&mut Core) -> T) -> T {
        let mut core = self.lock();
        let out = f(&mut core);
        self.plain.store(core.is_plain(), Ordering::Relaxed);
        out
    }

    /// The text of one more id, if it is kept and nothing that came before matters. (To a call of another thread that
    /// changes what matters, this one is as good as before it.)
    #[inline]
    fn kept<'a, 'py>(&'a self, ids: &Bound<'py, PyAny>) -> Option<Borrowed<'a, 'py, PyString>> {
        let text = self.tokenizer.get().texts.get(ids.py(), one(ids)?)?;
        // Its own bytes, which are near: looking the token up would take longer.
        let passes = || text.to_str().is_ok_and(|text| self.lock().passes(text));
        (self.plain.load(Ordering::Relaxed) || passes()).then_some(text)
    }

    fn push_id<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Bound<'py, PyString>> {
        let Tokenizer { core: tokenizer, texts, .. } = self.tokenizer.get();
        let text = self.change(|core| core.push_id(tokenizer, id)).map_err(|e| to_py_err(py, &e))?;
        let object = to_str(py, &text)?;
        // Borrowed: what the id gives wherever it stands, if it is no control token, which a stream may leave out.
        if matches!(text, Cow::Borrowed(_)) && tokenizer.controls().by_id(id).is_none() {
            texts.keep(id, &object);
        }
        Ok(object)
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
        let text = ids.with(py, |ids| {
            self.change(|core| match ids {
                &[id] => core.push_id(tokenizer, id),
                ids => core.push(tokenizer, ids).map(Cow::Owned),
            })
        })?;
        to_str(py, &text.map_err(|e| to_py_err(py, &e))?)
    }
}

/// The method `_push` of the class.
static PUSH_ANY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The method `push`, with the calling convention for one argument, which the binding's library does not offer: its own
/// takes longer than all that is to be done.
unsafe extern "C" fn push(slf: *mut ffi::PyObject, ids: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: Python calls methods from threads that are attached to it.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: both are alive as long as the call. Python calls the method of a class with its instances only, and
    // `add_push` puts this one into our class.
    let (stream, object) =
        unsafe { (Borrowed::from_ptr(py, slf).cast_unchecked::<DecodeStream>(), Borrowed::<PyAny>::from_ptr(py, ids)) };
    if let Some(text) = stream.get().kept(&object) {
        return text.to_owned().into_ptr();
    }
    let args = [slf, ids];
    // SAFETY: two arguments, both alive; what it returns is our caller's: a new reference, or null with an exception set.
    unsafe {
        let any = PUSH_ANY.get(py).map_or(ptr::null_mut(), Py::as_ptr);
        ffi::PyObject_Vectorcall(any, args.as_ptr(), args.len(), ptr::null_mut())
    }
}

/// Adds `push` to the class.
pub fn add_push(py: Python<'_>) -> PyResult<()> {
    let class = py.get_type::<DecodeStream>();
    PUSH_ANY.get_or_try_init(py, || class.getattr("_push").map(Bound::unbind))?;
    // Never freed, as the class is not.
    let method = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: c"push".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: push },
        ml_flags: ffi::METH_O,
        ml_doc: c"push($self, ids, /)\n--\n\nThe text that is certain after one more id, or several.".as_ptr(),
    }));
    // SAFETY: the class and the definition live for ever; the result is a new reference, or null with an exception set.
    let method = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), method))? };
    class.setattr("push", method)
}
