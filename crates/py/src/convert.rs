//! Python objects to what the core takes, and back.

use std::mem::MaybeUninit;

use kizami_core::{Encoded, Segment, Text, turn};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::{PyAttributeError, PyMemoryError, PyOverflowError, PyTypeError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::string::PyStringData;
use pyo3::types::{PyBool, PyBytes, PyInt, PyIterator, PyList, PyString, PyTuple};

use crate::errors::raise;

/// Requests up to this many bytes keep the interpreter lock: releasing it costs more than they take.
const ATTACHED_BYTES: usize = 4 << 10;
/// Arrays of at least this many ids are filled with the interpreter lock released.
const DETACHED_IDS: usize = 64 << 10;

/// Most room made at once for what a caller's `__len__` promises.
const MAX_HINT: usize = 1 << 16;

/// The strings of a request, held alive, with their trust.
pub struct Held<'py>(Vec<(Bound<'py, PyString>, bool)>);

impl<'py> Held<'py> {
    /// From any iterable of segments: `(text, allow_special)` pairs, or objects with these two attributes.
    pub fn from_segments(segments: &Bound<'py, PyAny>) -> PyResult<Self> {
        let mut held = Vec::with_capacity(length_hint(segments)?);
        for_each_segment(segments, 0, |_, text, allow_special| {
            held.push((text, allow_special));
            Ok(())
        })?;
        Ok(Held(held))
    }

    /// From any iterable of `str`, all with the same trust.
    pub fn from_texts(texts: &Bound<'py, PyAny>, allow_special: bool) -> PyResult<Self> {
        let py = texts.py();
        if texts.is_instance_of::<PyString>() {
            let message = "texts must be an iterable of str, not one str; use encode(text), or [text]";
            return Err(raise(py, "InputTypeError", message, &[]));
        }
        let wrong = || {
            let message = format!("texts must be an iterable of str, not {}", type_name(texts));
            raise(py, "InputTypeError", &message, &[])
        };
        let mut held = Vec::with_capacity(length_hint(texts)?);
        for (index, item) in iterate(texts, wrong)?.enumerate() {
            let item = item?;
            let Ok(text) = item.cast::<PyString>() else {
                let message = format!("text {index} must be str, not {}", type_name(&item));
                let position = i64::try_from(index).unwrap_or(i64::MAX);
                return Err(raise(py, "InputTypeError", &message, &[("position", position)]));
            };
            held.push((text.clone(), allow_special));
        }
        Ok(Held(held))
    }

    /// One text.
    pub fn from_text(text: &Bound<'py, PyAny>, allow_special: bool) -> PyResult<Self> {
        match text.cast::<PyString>() {
            Ok(text) => Ok(Held(vec![(text.clone(), allow_special)])),
            Err(_) => {
                let hint = if text.is_instance_of::<PyBytes>() {
                    "; decode the bytes first"
                } else if text.is_instance_of::<PyList>() || text.is_instance_of::<PyTuple>() {
                    "; use encode_batch for several texts, encode_segments for segments"
                } else {
                    ""
                };
                let message = format!("text must be str, not {}{hint}", type_name(text));
                Err(raise(text.py(), "InputTypeError", &message, &[]))
            }
        }
    }

    /// The same as the core sees it. Borrows the memory of the strings, which never changes.
    pub fn segments(&self) -> PyResult<Vec<Segment<'_>>> {
        self.0.iter().map(|(text, allow_special)| as_segment(text, *allow_special)).collect()
    }
}

fn as_segment<'a>(text: &'a Bound<'_, PyString>, allow_special: bool) -> PyResult<Segment<'a>> {
    Ok(Segment { text: as_text(text)?, allow_special })
}

/// The characters of a string, in its own memory.
pub fn as_text<'a>(text: &'a Bound<'_, PyString>) -> PyResult<Text<'a>> {
    // SAFETY: `data` reads CPython's own description of the string, whose memory never changes. The tests run it on
    // each platform and Python version that wheels are built for, as its contract asks.
    Ok(match unsafe { text.data() }? {
        PyStringData::Ucs1(bytes) => Text::Latin1(bytes),
        PyStringData::Ucs2(units) => Text::Ucs2(units),
        PyStringData::Ucs4(units) => Text::Ucs4(units),
    })
}

/// Calls `each` with every segment of an iterable from the index `first` on: the item, its text and its trust. Segments are
/// `(text, allow_special)` pairs, or objects with these two attributes. `first` above 0 is for lists.
pub fn for_each_segment<'py>(
    segments: &Bound<'py, PyAny>,
    first: usize,
    mut each: impl FnMut(Bound<'py, PyAny>, Bound<'py, PyString>, bool) -> PyResult<()>,
) -> PyResult<()> {
    let py = segments.py();
    if segments.is_instance_of::<PyString>() {
        let message = "segments must be an iterable of (text, allow_special), not str; use encode(text) for one text";
        return Err(raise(py, "InputTypeError", message, &[]));
    }
    let mut index = first;
    let mut take = |item: Bound<'py, PyAny>| {
        let (text, allow_special) = match plain_segment(&item) {
            Some(plain) => plain,
            None => parse_segment(&item).map_err(|e| e.into_py_err(py, index))?,
        };
        index += 1;
        each(item, text, allow_special)
    };
    // The common case, without an iterator between.
    if let Ok(list) = segments.cast_exact::<PyList>() {
        // What reads a segment may run the caller's code, which may change the list: the iterator minds that.
        let mut at = first;
        while at < list.len() {
            for item in list.iter().skip(at) {
                take(item)?;
                at += 1;
            }
        }
        return Ok(());
    }
    let wrong = || {
        let message = format!("segments must be an iterable of (text, allow_special), not {}", type_name(segments));
        raise(py, "InputTypeError", &message, &[])
    };
    iterate(segments, wrong)?.try_for_each(|item| take(item?))
}

/// A caller's `__len__`, as far as it is believed; 0 where there is none.
pub fn length_hint(object: &Bound<'_, PyAny>) -> PyResult<usize> {
    match object.len() {
        Ok(len) => Ok(len.min(MAX_HINT)),
        Err(error) if is_about_types(object.py(), &error) => Ok(0),
        Err(error) => Err(error),
    }
}

/// The iterator of a caller's object; `wrong` says that it has none. Other errors are the caller's own.
fn iterate<'py>(object: &Bound<'py, PyAny>, wrong: impl Fn() -> PyErr) -> PyResult<Bound<'py, PyIterator>> {
    object.try_iter().map_err(|error| if is_about_types(object.py(), &error) { wrong() } else { error })
}

/// Whether an error says that an object lacks an ability, rather than coming from the caller's own code.
fn is_about_types(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyAttributeError>(py)
}

/// What is wrong with one segment.
enum SegmentError {
    /// Said by us.
    Ours(String),
    /// Raised by the caller's own code while we read the segment.
    Theirs(PyErr),
}

impl From<PyErr> for SegmentError {
    fn from(error: PyErr) -> Self {
        SegmentError::Theirs(error)
    }
}

impl SegmentError {
    fn into_py_err(self, py: Python<'_>, index: usize) -> PyErr {
        let index = i64::try_from(index).unwrap_or(i64::MAX);
        match self {
            SegmentError::Ours(text) => {
                raise(py, "InputTypeError", &format!("segment {index} {text}"), &[("segment", index)])
            }
            SegmentError::Theirs(error) => error,
        }
    }
}

/// A segment as nearly all are: a tuple of a `str` and a `bool`.
#[inline(always)]
fn plain_segment<'py>(item: &Bound<'py, PyAny>) -> Option<(Bound<'py, PyString>, bool)> {
    let mut parts = item.cast::<PyTuple>().ok()?.iter_borrowed();
    let (text, flag) = (parts.next()?, parts.next()?);
    let (text, flag) = (text.cast::<PyString>().ok()?, flag.cast::<PyBool>().ok()?);
    if parts.next().is_some() { None } else { Some((text.to_owned(), flag.is_true())) }
}

fn parse_segment<'py>(item: &Bound<'py, PyAny>) -> Result<(Bound<'py, PyString>, bool), SegmentError> {
    let (text, flag) = text_and_flag(item)?;
    match text.cast_into::<PyString>() {
        Ok(text) => Ok((text, parse_flag(&flag)?)),
        Err(error) => {
            let name = type_name(&error.into_inner());
            Err(SegmentError::Ours(format!("has text of type {name}; it must be str")))
        }
    }
}

fn text_and_flag<'py>(item: &Bound<'py, PyAny>) -> Result<(Bound<'py, PyAny>, Bound<'py, PyAny>), SegmentError> {
    let py = item.py();
    let wrong = |n: usize| Err(SegmentError::Ours(format!("must have 2 items, text and allow_special, not {n}")));
    if let Ok(tuple) = item.cast::<PyTuple>() {
        return if tuple.len() == 2 { Ok((tuple.get_item(0)?, tuple.get_item(1)?)) } else { wrong(tuple.len()) };
    }
    if let Ok(list) = item.cast::<PyList>() {
        return if list.len() == 2 { Ok((list.get_item(0)?, list.get_item(1)?)) } else { wrong(list.len()) };
    }
    match (item.getattr_opt(intern!(py, "text"))?, item.getattr_opt(intern!(py, "allow_special"))?) {
        (Some(text), Some(flag)) => Ok((text, flag)),
        _ => {
            let name = type_name(item);
            Err(SegmentError::Ours(format!("must be (text, allow_special) or have these attributes, not {name}")))
        }
    }
}

/// A bool, a NumPy bool, or the integer 0 or 1. Not any truthy object: `"False"` must not mean trust.
fn parse_flag(flag: &Bound<'_, PyAny>) -> Result<bool, SegmentError> {
    if let Ok(flag) = flag.cast::<PyBool>() {
        return Ok(flag.is_true());
    }
    if is_numpy_bool(flag) {
        return Ok(flag.is_truthy()?);
    }
    let name = type_name(flag);
    let wrong = || SegmentError::Ours(format!("has allow_special of type {name}; it must be True or False"));
    match flag.extract::<i64>() {
        Ok(n @ (0 | 1)) => Ok(n == 1),
        Ok(_) => Err(wrong()),
        Err(error) if is_about_types(flag.py(), &error) || error.is_instance_of::<PyOverflowError>(flag.py()) => {
            Err(wrong())
        }
        Err(error) => Err(error.into()),
    }
}

fn is_numpy_bool(object: &Bound<'_, PyAny>) -> bool {
    let kind = object.get_type();
    let named = kind.name().is_ok_and(|name| name == "bool" || name == "bool_");
    named && kind.module().is_ok_and(|module| module == "numpy")
}

/// The name of an object's type, for messages.
pub fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string())
}

/// Runs `f`, with the interpreter lock released if `bytes` is large; then in turn with other requests.
pub fn run<T: Send>(py: Python<'_>, bytes: usize, f: impl FnOnce() -> T + Send) -> T {
    if bytes <= ATTACHED_BYTES { f() } else { py.detach(|| turn::take(f)) }
}

/// The ids of a request as an array that owns its data.
pub fn to_array<'py>(py: Python<'py>, encoded: &Encoded<'_>) -> PyResult<Bound<'py, PyArray1<u32>>> {
    new_array(py, encoded.len(), |slots| encoded.write_to(slots))
}

/// A new array of `len` ids. `write` must write them all, or panic.
pub fn new_array<'py>(
    py: Python<'py>,
    len: usize,
    write: impl FnOnce(&mut [MaybeUninit<u32>]) + Send,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    if len < DETACHED_IDS {
        // SAFETY: nobody else knows the new array yet, and every element is written before it is read.
        unsafe {
            let array = PyArray1::<u32>::new(py, len, false);
            write(std::slice::from_raw_parts_mut(array.data().cast(), len));
            return Ok(array);
        }
    }
    // By NumPy's own function: it raises MemoryError where the binding's constructor would panic.
    let array = py.import("numpy")?.call_method1("empty", (len, numpy::dtype::<u32>(py)))?;
    let array = array.cast_into::<PyArray1<u32>>()?;
    // SAFETY: as above; nobody else knows the array while the lock is released.
    let slots = unsafe { std::slice::from_raw_parts_mut(array.data().cast::<MaybeUninit<u32>>(), len) };
    py.detach(|| write(slots));
    Ok(array)
}

/// An array that owns a copy of `ints`.
pub fn int_array<'py>(py: Python<'py>, ints: &[i64]) -> PyResult<Bound<'py, PyArray1<i64>>> {
    // By NumPy's own function, as above.
    let array = py.import("numpy")?.call_method1("empty", (ints.len(), numpy::dtype::<i64>(py)))?;
    let array = array.cast_into::<PyArray1<i64>>()?;
    array.readwrite().as_slice_mut()?.copy_from_slice(ints);
    Ok(array)
}

/// An array that owns a copy of hashes of `width` bytes: `uint64` if they are as wide, else rows of `uint8`.
pub fn hash_array<'py>(py: Python<'py>, hashes: &[u8], width: usize) -> PyResult<Bound<'py, PyAny>> {
    let len = hashes.len() / width;
    let numbers = width == size_of::<u64>();
    let array = if hashes.len() < DETACHED_IDS {
        // Many calls give no hash at all.
        if numbers {
            PyArray1::<u64>::zeros(py, len, false).into_any()
        } else {
            PyArray2::<u8>::zeros(py, [len, width], false).into_any()
        }
    } else {
        // By NumPy's own function, as above.
        let empty = py.import("numpy")?.getattr("empty")?;
        if numbers {
            empty.call1((len, numpy::dtype::<u64>(py)))?
        } else {
            empty.call1(((len, width), numpy::dtype::<u8>(py)))?
        }
    };
    if numbers {
        let mut slots = array.cast::<PyArray1<u64>>()?.readwrite();
        for (to, hash) in slots.as_slice_mut()?.iter_mut().zip(hashes.as_chunks().0) {
            *to = u64::from_le_bytes(*hash);
        }
    } else {
        array.cast::<PyArray2<u8>>()?.readwrite().as_slice_mut()?.copy_from_slice(hashes);
    }
    Ok(array)
}

/// An id as most callers give it: an int below 2^32 and of no subclass.
#[inline]
pub fn exact_id(id: &Bound<'_, PyAny>) -> Option<u32> {
    let id = id.cast_exact::<PyInt>().ok()?;
    let mut overflow = 0;
    // SAFETY: an int that is alive. This function gives -1 for what does not fit, and sets no exception for an int.
    u32::try_from(unsafe { ffi::PyLong_AsLongAndOverflow(id.as_ptr(), &raw mut overflow) }).ok()
}

/// Ids for decoding: a contiguous uint32 array, or a list of ints.
pub enum Ids<'py> {
    /// A NumPy array.
    Array(PyReadonlyArray1<'py, u32>),
    /// A list of ints.
    List(Vec<u32>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Ids<'py> {
    type Error = PyErr;

    /// A list with anything else than ints below 2^32 in it gives a TypeError; `_ids.explain` finds the culprit.
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let Ok(list) = object.cast::<PyList>() else {
            return Ok(Ids::Array(object.extract::<PyReadonlyArray1<'py, u32>>()?));
        };
        let id = |item: Bound<'py, PyAny>| {
            // bool is a kind of int to Python, and no token id.
            let boolean = || item.is_instance_of::<PyBool>() || is_numpy_bool(&item);
            exact_id(&item).or_else(|| if boolean() { None } else { item.extract::<u32>().ok() })
        };
        let mut ids = Vec::with_capacity(list.len());
        for item in list.iter() {
            ids.push(id(item).ok_or_else(|| PyTypeError::new_err("ids must be ints below 2**32"))?);
        }
        Ok(Ids::List(ids))
    }
}

impl Ids<'_> {
    /// Calls `f` with the ids; released from the interpreter lock (and then with a copy) if there are many.
    pub fn with<T: Send>(&self, py: Python<'_>, f: impl FnOnce(&[u32]) -> T + Send) -> PyResult<T> {
        match self {
            Ids::List(ids) => Ok(run(py, ids.len() * 4, || f(ids))),
            Ids::Array(array) if array.len() < ATTACHED_BYTES => {
                Ok(f(array.as_slice().map_err(|e| PyTypeError::new_err(e.to_string()))?))
            }
            // Another thread may write to the array while the lock is released.
            Ids::Array(array) => {
                let shared = array.as_slice().map_err(|e| PyTypeError::new_err(e.to_string()))?;
                let mut ids = Vec::new();
                ids.try_reserve_exact(shared.len()).map_err(|e| PyMemoryError::new_err(e.to_string()))?;
                ids.extend_from_slice(shared);
                Ok(py.detach(|| f(&ids)))
            }
        }
    }
}
