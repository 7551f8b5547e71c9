//! The class `_native.DecodeStream`.
//!
//! An id of a reply mostly gives the text of its token, whatever came before; and what parts of characters give, depends on few
//! bytes before them. Both are kept ([`crate::texts`]), so that a call costs about as much as one of Python's own functions
//! (`push`, at the end); all others take the longer way.
//!
//! # Invariants
//! 1. A stream at rest ([`Core::is_at_rest`]) is its state ([`Unfinished::to_bits`]), which is in `state` while nobody has locked
//!    `core`, and goes on by an atomic exchange. Else, and while somebody has, `state` is [`IN_CORE`].
//! 2. Python is not called while `core` is locked, so that nobody who waits for it can be waited for.

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kizami_core::{DecodeStream as Core, Stops, Unfinished};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::convert::{Ids, exact_id};
use crate::errors::{guard, to_py_err};
use crate::tokenizer::{Tokenizer, to_str};

/// No state: all is in the core.
const IN_CORE: u32 = u32::MAX;
/// The state in which nothing waits.
const WHOLE: u32 = 0;

/// See `kizami.DecodeStream`.
#[pyclass(frozen, subclass, module = "kizami._native")]
pub struct DecodeStream {
    tokenizer: Py<Tokenizer>,
    core: Mutex<Core>,
    state: AtomicU32,
    /// Those of the core.
    stops: Option<Arc<Stops>>,
}

#[pymethods]
impl DecodeStream {
    /// Another stream at the same place as `like`.
    #[new]
    fn new(py: Python<'_>, like: &Self) -> Self {
        DecodeStream::at(like.tokenizer.clone_ref(py), like.change(|core| core.clone()))
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

impl DecodeStream {
    pub fn begin(tokenizer: Py<Tokenizer>, skip_special: bool, stop: Vec<String>) -> Self {
        DecodeStream::at(tokenizer, Core::new(skip_special, stop))
    }

    fn at(tokenizer: Py<Tokenizer>, core: Core) -> Self {
        let (state, stops) = (AtomicU32::new(state_of(&core)), core.stops());
        DecodeStream { tokenizer, core: Mutex::new(core), state, stops }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, f: impl FnOnce(&mut Core) -> T) -> T {
        let mut core = self.lock();
        if let Some(unfinished) = Unfinished::from_bits(self.state.swap(IN_CORE, Ordering::Acquire)) {
            core.go_on(unfinished);
        }
        let out = f(&mut core);
        self.state.store(state_of(&core), Ordering::Release);
        out
    }

    /// The text of one more id, if it is kept.
    #[inline]
    fn push_kept<'a, 'py>(&'a self, ids: &Bound<'py, PyAny>) -> Option<Borrowed<'a, 'py, PyString>> {
        let (py, id) = (ids.py(), exact_id(ids)?);
        let state = self.state.load(Ordering::Acquire);
        if state == IN_CORE {
            return None;
        }
        let (text, next) = self.kept(py, state, id)?;
        if let Some(stops) = &self.stops {
            // Its own bytes, which are near: looking the token up would take longer.
            text.to_str().ok().filter(|text| !stops.may_begin_in(text))?;
        }
        // If another thread was faster, this is not the text any more. (Where the state stays, this one was before it.)
        if state != next {
            self.state.compare_exchange(state, next, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        }
        Some(text)
    }

    /// What an id gives in a state, and the next state, if that is kept.
    #[inline]
    fn kept<'a, 'py>(&'a self, py: Python<'py>, state: u32, id: u32) -> Option<(Borrowed<'a, 'py, PyString>, u32)> {
        let texts = &self.tokenizer.get().texts;
        let whole = if state == WHOLE { texts.get(py, id) } else { None };
        whole.map(|text| (text, WHOLE)).or_else(|| texts.step(py, state, id))
    }

    /// What `push` does, any ids in any state.
    fn push_any<'py>(&self, ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        let py = ids.py();
        guard(py, || match exact_id(ids) {
            Some(id) => self.push_id(py, id),
            None => self.push_several(py, ids),
        })
    }

    fn push_id<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Bound<'py, PyString>> {
        let Tokenizer { core: tokenizer, texts, .. } = self.tokenizer.get();
        let pushed = self.change(|core| {
            let before = core.unfinished();
            let step = core.step(tokenizer, id)?;
            let given = core.take(&step)?;
            Ok((before, step, given))
        });
        let (before, step, given) = pushed.map_err(|e| to_py_err(py, &e))?;
        if let Some(text) = given {
            return to_str(py, &text);
        }
        let text = to_str(py, &step.text)?;
        // A stream may leave control tokens out.
        if tokenizer.controls().by_id(id).is_none() {
            if (before, step.unfinished) == Default::default() {
                texts.keep(id, &text);
            } else {
                texts.keep_step(before, id, &text, step.unfinished);
            }
        }
        Ok(text)
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
        let text = ids.with(py, |ids| self.change(|core| core.push(tokenizer, ids)))?;
        to_str(py, &text.map_err(|e| to_py_err(py, &e))?)
    }
}

/// See the first invariant.
fn state_of(core: &Core) -> u32 {
    if core.is_at_rest() { core.unfinished().to_bits() } else { IN_CORE }
}

/// The method `push`, with the calling convention for one argument, which the binding's library does not offer: its own
/// takes longer than all that is to be done.
unsafe extern "C" fn push(slf: *mut ffi::PyObject, ids: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: Python calls methods from threads that are attached to it.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: both are alive as long as the call. Python calls the method of a class with its instances only, and
    // `add_push` puts this one into our class.
    let (stream, object) =
        unsafe { (Borrowed::from_ptr(py, slf).cast_unchecked::<DecodeStream>(), Borrowed::<PyAny>::from_ptr(py, ids)) };
    if let Some(text) = stream.get().push_kept(&object) {
        return text.to_owned().into_ptr();
    }
    // Attached as the binding's library knows it, which may detach.
    let pushed = Python::attach(|_| stream.get().push_any(&object));
    pushed.map_or_else(
        |error| {
            error.restore(py);
            ptr::null_mut()
        },
        |text| text.into_ptr(),
    )
}

/// Adds `push` to the class.
pub fn add_push(py: Python<'_>) -> PyResult<()> {
    let class = py.get_type::<DecodeStream>();
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
