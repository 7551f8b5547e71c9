//! The classes `_native.Session` and `_native.SessionCache`.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use kizami_core::session::{Grown, Ids, Session as CoreSession, SessionCache as CoreCache, Source};
use kizami_core::{Options, Text};
use numpy::ndarray::aview1;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyBool, PyDict, PyList, PyString, PyTuple};

use crate::convert::{as_text, for_each_segment, length_hint, run};
use crate::errors::{guard, to_py_err};
use crate::tokenizer::Tokenizer;

type IdArray<'py> = Bound<'py, PyArray1<u32>>;

/// A `str` that is held, and where its characters are.
struct Held {
    /// The tuple in which it came: who gives the same tuple again gives the same segment.
    item: Option<Py<PyTuple>>,
    text: Place,
    /// Holds the characters.
    _str: Py<PyString>,
}

/// The memory of a `Text`.
enum Place {
    Latin1(*const u8, usize),
    Ucs2(*const u16, usize),
    Ucs4(*const u32, usize),
}

// SAFETY: the pointers are to the characters of a `str`, which nobody writes to.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

impl Held {
    fn new(item: Option<Py<PyTuple>>, text: &Bound<'_, PyString>) -> PyResult<Self> {
        let place = match as_text(text)? {
            Text::Latin1(units) => Place::Latin1(units.as_ptr(), units.len()),
            Text::Ucs2(units) => Place::Ucs2(units.as_ptr(), units.len()),
            Text::Ucs4(units) => Place::Ucs4(units.as_ptr(), units.len()),
            Text::Utf8(_) => unreachable!("a str is held as code points"),
        };
        Ok(Held { item, text: place, _str: text.clone().unbind() })
    }
}

/// A segment as a tuple that says the same whenever it is read: its flag is a bool, and not something that may change.
fn constant(item: &Bound<'_, PyAny>) -> Option<Py<PyTuple>> {
    let tuple = item.cast::<PyTuple>().ok()?;
    let flag = tuple.get_item(1).ok()?;
    flag.is_exact_instance_of::<PyBool>().then(|| tuple.clone().unbind())
}

impl Source for Held {
    fn text(&self) -> Text<'_> {
        // SAFETY: the pointers and lengths are those that `as_text` gave for the `str`, which `self` holds: its characters
        // stay where and as they are.
        unsafe {
            match self.text {
                Place::Latin1(units, len) => Text::Latin1(std::slice::from_raw_parts(units, len)),
                Place::Ucs2(units, len) => Text::Ucs2(std::slice::from_raw_parts(units, len)),
                Place::Ucs4(units, len) => Text::Ucs4(std::slice::from_raw_parts(units, len)),
            }
        }
    }
}

/// Keeps the memory of ids alive that arrays look at.
#[pyclass(frozen, module = "kizami._native")]
pub struct IdMemory(Ids);

/// An array that looks at ids, and cannot write to them.
fn view<'py>(py: Python<'py>, ids: &Ids) -> PyResult<IdArray<'py>> {
    let memory = Bound::new(py, IdMemory(ids.clone()))?;
    // SAFETY: the memory that the array looks at is held by `memory`, which becomes its base, and never moves or changes.
    let array = unsafe { PyArray1::borrow_from_array(&aview1(&memory.get().0), memory.clone().into_any()) };
    array.readwrite().make_nonwriteable();
    Ok(array)
}

/// Segments from the index `first` on, held (with the tuples that they came in, if those are wanted), and about how many
/// bytes they have.
fn held(segments: &Bound<'_, PyAny>, first: usize, with_items: bool) -> PyResult<(Vec<(Held, bool)>, usize)> {
    let mut given = Vec::with_capacity(length_hint(segments)?.saturating_sub(first));
    let mut bytes = 0;
    for_each_segment(segments, first, |item, text, allow_special| {
        let held = Held::new(if with_items { constant(&item) } else { None }, &text)?;
        bytes += held.text().max_utf8_len();
        given.push((held, allow_special));
        Ok(())
    })?;
    Ok((given, bytes))
}

/// See `kizami.Session`.
#[pyclass(frozen, module = "kizami._native")]
pub struct Session {
    tokenizer: Py<Tokenizer>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    core: CoreSession<Held>,
    /// Where the tuples of its segments are, which they hold; 0 for a segment that came as something else.
    items: Vec<usize>,
    reused: usize,
    unchanged: usize,
    /// Counts the calls that changed it.
    version: u64,
}

#[pymethods]
impl Session {
    #[new]
    fn new(tokenizer: Py<Tokenizer>) -> Self {
        Session { tokenizer, state: Mutex::default() }
    }

    /// The ids of a prompt.
    fn encode<'py>(
        &self,
        py: Python<'py>,
        segments: &Bound<'py, PyAny>,
        legacy_chunks: bool,
    ) -> PyResult<IdArray<'py>> {
        guard(py, || {
            let options = Options { legacy_chunks };
            // To read segments may run the caller's code, which may use this session: not while it is locked.
            let (same, version) = self.same_items(py, segments, options);
            let given = held(segments, same, true)?;
            let ids = match self.grow(py, given, options, same, version)? {
                Some((ids, _)) => ids,
                None => {
                    let given = held(segments, 0, true)?;
                    self.grow(py, given, options, 0, 0)?.expect("nothing kept that could have changed").0
                }
            };
            view(py, &ids)
        })
    }

    /// The ids of a prompt that begins with the first `kept` segments of the last one, with the cuts; and the version of the
    /// session then. None if `version`, which told of the last prompt, is not that of the session any more.
    fn encode_behind<'py>(
        &self,
        py: Python<'py>,
        segments: &Bound<'py, PyAny>,
        kept: usize,
        version: u64,
    ) -> PyResult<Option<(IdArray<'py>, u64)>> {
        guard(py, || {
            let given = held(segments, 0, true)?;
            let grown = self.grow(py, given, Options::default(), kept, version)?;
            grown.map(|(ids, version)| Ok((view(py, &ids)?, version))).transpose()
        })
    }

    /// Number of ids that the last call took over.
    #[getter]
    fn reused(&self, py: Python<'_>) -> usize {
        self.lock(py).reused
    }

    /// Number of ids at the beginning that are those of the call before.
    #[getter]
    fn unchanged(&self, py: Python<'_>) -> usize {
        self.lock(py).unchanged
    }

    /// Whether nobody is at work with it.
    fn is_free(&self) -> bool {
        !matches!(self.state.try_lock(), Err(TryLockError::WouldBlock))
    }

    fn reset(&self, py: Python<'_>) {
        let mut state = self.lock(py);
        let version = state.version + 1;
        let old = std::mem::replace(&mut *state, State { version, ..State::default() });
        drop(state);
        drop(old);
    }
}

impl Session {
    fn lock<'a>(&'a self, py: Python<'_>) -> MutexGuard<'a, State> {
        self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// Encodes; the version afterwards. None if segments are to be kept, and the session is of another version than that.
    fn grow(
        &self,
        py: Python<'_>,
        (mut given, bytes): (Vec<(Held, bool)>, usize),
        options: Options,
        kept: usize,
        version: u64,
    ) -> PyResult<Option<(Ids, u64)>> {
        let mut state = self.lock(py);
        if kept > 0 && (state.version != version || kept > state.core.len(options)) {
            return Ok(None);
        }
        let item = |(held, _): &(Held, bool)| held.item.as_ref().map_or(0, |item| item.as_ptr().addr());
        let items: Vec<usize> = given.iter().map(item).collect();
        let State { core, .. } = &mut *state;
        let tokenizer = &self.tokenizer.get().core;
        let grown = run(py, bytes, || core.encode(tokenizer, kept, &mut given, options));
        let Grown { ids, reused, unchanged, released } = match grown {
            Ok(grown) => grown,
            Err(error) => {
                // Before texts are dropped, which may run the caller's code.
                drop(state);
                return Err(to_py_err(py, &error));
            }
        };
        state.items.truncate(kept);
        state.items.extend(items);
        state.reused = reused;
        state.unchanged = unchanged;
        state.version += 1;
        let version = state.version;
        drop(state);
        drop(released);
        Ok(Some((ids, version)))
    }

    /// How many items of a list are the very tuples that the last prompt began with, and the version of that.
    fn same_items(&self, py: Python<'_>, segments: &Bound<'_, PyAny>, options: Options) -> (usize, u64) {
        let Ok(list) = segments.cast_exact::<PyList>() else { return (0, 0) };
        let state = self.lock(py);
        let known = &state.items[..state.core.len(options)];
        // The items are not touched, which takes far longer than to compare where they are.
        let same = with_critical_section(list, || {
            let given: &[usize] = match known.len().min(list.len()) {
                0 => &[],
                // SAFETY: a list has so many pointers there, none of them null, and nobody changes it meanwhile.
                n => unsafe {
                    let list: *mut ffi::PyListObject = list.as_ptr().cast();
                    std::slice::from_raw_parts((*list).ob_item.cast(), n)
                },
            };
            // An item at the address of an object that is held is that object.
            const MANY: usize = 32;
            let blocks = known.chunks_exact(MANY).zip(given.chunks_exact(MANY));
            let start = MANY * blocks.take_while(|(known, given)| known == given).count();
            start + known[start..].iter().zip(&given[start..]).take_while(|(known, given)| known == given).count()
        });
        (same, state.version)
    }
}

/// See `kizami.SessionCache`.
#[pyclass(frozen, module = "kizami._native")]
pub struct SessionCache {
    tokenizer: Py<Tokenizer>,
    core: CoreCache<Held>,
}

#[pymethods]
impl SessionCache {
    #[new]
    fn new(tokenizer: Py<Tokenizer>, max_bytes: usize) -> Self {
        SessionCache { tokenizer, core: CoreCache::new(max_bytes) }
    }

    /// The ids of a prompt, and how many of them were known.
    fn encode<'py>(
        &self,
        py: Python<'py>,
        segments: &Bound<'py, PyAny>,
        legacy_chunks: bool,
    ) -> PyResult<(IdArray<'py>, usize)> {
        guard(py, || {
            let (mut given, _) = held(segments, 0, false)?;
            let tokenizer = &self.tokenizer.get().core;
            let encode = || self.core.encode(tokenizer, &mut given, Options { legacy_chunks });
            // Released even for a short prompt: another thread may hold the cache's lock, and wait for the interpreter's.
            let grown = run(py, usize::MAX, encode);
            let Grown { ids, reused, released, .. } = grown.map_err(|e| to_py_err(py, &e))?;
            drop(released);
            Ok((view(py, &ids)?, reused))
        })
    }

    /// Whether nobody is changing it.
    fn is_free(&self) -> bool {
        self.core.is_free()
    }

    fn clear(&self, py: Python<'_>) {
        let released = py.detach(|| self.core.clear());
        // Not by a thread without the interpreter's lock: such drops are noted down in one place for all threads, whose own
        // lock a fork may find locked.
        drop(released);
    }

    /// Counts, by name.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = py.detach(|| self.core.statistics());
        let dict = PyDict::new(py);
        dict.set_item("requests", counts.requests)?;
        dict.set_item("hits", counts.hits)?;
        dict.set_item("ids", counts.ids)?;
        dict.set_item("reused", counts.reused)?;
        dict.set_item("prompts", counts.prompts)?;
        dict.set_item("evicted", counts.evicted)?;
        dict.set_item("bytes", counts.bytes)?;
        dict.set_item("max_bytes", counts.max_bytes)?;
        Ok(dict)
    }
}
