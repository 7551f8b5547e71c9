//! Python objects to what the core takes, and back.

use std::cell::RefCell;
use std::mem::MaybeUninit;

use kizami_core::{Prepared, Segment, Text};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::string::PyStringData;
use pyo3::types::{PyBool, PyInt, PyList, PyString, PyTuple};

use crate::errors::{raise, to_py_err};

/// Requests up to this many bytes keep the interpreter lock: releasing it costs more than they take.
const ATTACHED_BYTES: usize = 4 << 10;
/// Requests up to this many bytes are encoded into a buffer of the thread and copied to an array of exact size.
const COPY_BYTES: usize = 64 << 10;

thread_local! {
    static IDS: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// The strings of a request, held alive, with their trust.
pub struct Held<'py>(Vec<(Bound<'py, PyString>, bool)>);

impl<'py> Held<'py> {
    /// From any iterable of segments: `(text, allow_special)` pairs, or objects with these two attributes.
    pub fn from_segments(segments: &Bound<'py, PyAny>) -> PyResult<Self> {
        if segments.is_instance_of::<PyString>() {
            let message =
                "segments must be an iterable of (text, allow_special), not str; use encode(text) for one text";
            return Err(raise(segments.py(), "InputTypeError", message, &[]));
        }
        let iter = segments.try_iter().map_err(|_| {
            let message = format!("segments must be an iterable of (text, allow_special), not {}", type_name(segments));
            raise(segments.py(), "InputTypeError", &message, &[])
        })?;
        let mut held = Vec::with_capacity(segments.len().unwrap_or(0));
        for (index, item) in iter.enumerate() {
            held.push(parse_segment(&item?).map_err(|e| e.into_py_err(segments.py(), index))?);
        }
        Ok(Held(held))
    }

    /// From any iterable of `str`, all with the same trust.
    pub fn from_texts(texts: &Bound<'py, PyAny>, allow_special: bool) -> PyResult<Self> {
        let wrong = |got: &Bound<'py, PyAny>, facts: &[(&str, i64)], place: &str| {
            let message = format!(
                "{place} must be {}, not {}",
                if facts.is_empty() { "an iterable of str" } else { "str" },
                type_name(got)
            );
            raise(texts.py(), "InputTypeError", &message, facts)
        };
        if texts.is_instance_of::<PyString>() {
            return Err(wrong(texts, &[], "texts"));
        }
        let mut held = Vec::with_capacity(texts.len().unwrap_or(0));
        for (index, item) in texts.try_iter().map_err(|_| wrong(texts, &[], "texts"))?.enumerate() {
            let item = item?;
            let place = i64::try_from(index).unwrap_or(i64::MAX);
            match item.cast::<PyString>() {
                Ok(text) => held.push((text.clone(), allow_special)),
                Err(_) => return Err(wrong(&item, &[("position", place)], &format!("text {index}"))),
            }
        }
        Ok(Held(held))
    }

    /// One text.
    pub fn from_text(text: &Bound<'py, PyAny>, allow_special: bool) -> PyResult<Self> {
        match text.cast::<PyString>() {
            Ok(text) => Ok(Held(vec![(text.clone(), allow_special)])),
            Err(_) => {
                let hint = if text.is_instance_of::<pyo3::types::PyBytes>() { "; decode the bytes first" } else { "" };
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
    // SAFETY: `data` reads CPython's own description of the string, whose memory never changes. The tests run it on
    // each platform and Python version that wheels are built for, as its contract asks.
    let text = match unsafe { text.data() }? {
        PyStringData::Ucs1(bytes) => Text::Latin1(bytes),
        PyStringData::Ucs2(units) => Text::Ucs2(units),
        PyStringData::Ucs4(units) => Text::Ucs4(units),
    };
    Ok(Segment { text, allow_special })
}

/// What is wrong with one segment.
struct SegmentError(String);

impl SegmentError {
    fn into_py_err(self, py: Python<'_>, index: usize) -> PyErr {
        let index = i64::try_from(index).unwrap_or(i64::MAX);
        raise(py, "InputTypeError", &format!("segment {index} {}", self.0), &[("segment", index)])
    }
}

fn parse_segment<'py>(item: &Bound<'py, PyAny>) -> Result<(Bound<'py, PyString>, bool), SegmentError> {
    let py = item.py();
    let (text, flag) = if let Ok(pair) = item.cast::<PyTuple>() {
        match (pair.len(), pair.get_item(0), pair.get_item(1)) {
            (2, Ok(text), Ok(flag)) => (text, flag),
            (n, _, _) => return Err(SegmentError(format!("must have 2 items, text and allow_special, not {n}"))),
        }
    } else if let (Ok(text), Ok(flag)) = (item.getattr(intern!(py, "text")), item.getattr(intern!(py, "allow_special")))
    {
        (text, flag)
    } else if item.is_instance_of::<PyList>() && item.len().unwrap_or(0) == 2 {
        match (item.get_item(0), item.get_item(1)) {
            (Ok(text), Ok(flag)) => (text, flag),
            _ => return Err(SegmentError("changed while it was read".into())),
        }
    } else {
        let name = type_name(item);
        return Err(SegmentError(format!("must be (text, allow_special) or have these attributes, not {name}")));
    };
    let text = match text.cast_into::<PyString>() {
        Ok(text) => text,
        Err(error) => {
            return Err(SegmentError(format!("has text of type {}; it must be str", type_name(&error.into_inner()))));
        }
    };
    Ok((text, parse_flag(&flag)?))
}

/// A bool, a NumPy bool, or the integer 0 or 1. Not any truthy object: `"False"` must not mean trust.
fn parse_flag(flag: &Bound<'_, PyAny>) -> Result<bool, SegmentError> {
    if let Ok(flag) = flag.cast::<PyBool>() {
        return Ok(flag.is_true());
    }
    let name = type_name(flag);
    let numpy_bool = name == "bool" || name == "bool_";
    match (numpy_bool, flag.extract::<u8>()) {
        (true, _) => flag.is_truthy().map_err(|_| SegmentError("has an allow_special without truth value".into())),
        (false, Ok(n @ (0 | 1))) if !flag.is_instance_of::<pyo3::types::PyFloat>() => Ok(n == 1),
        _ => Err(SegmentError(format!("has allow_special of type {name}; it must be True or False"))),
    }
}

/// The name of an object's type, for messages.
pub fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string())
}

/// Runs `f`, with the interpreter lock released if `bytes` is large.
pub fn run<T: Send>(py: Python<'_>, bytes: usize, f: impl FnOnce() -> T + Send) -> T {
    if bytes <= ATTACHED_BYTES { f() } else { py.detach(f) }
}

/// The ids of a request as an array that owns its data.
pub fn encode_to_array<'py>(
    py: Python<'py>,
    prepared: &Prepared<'_>,
    mut ends: Option<&mut Vec<usize>>,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let max = prepared.max_ids();
    if max <= COPY_BYTES {
        let mut ids = IDS.take();
        ids.clear();
        ids.reserve(max);
        let spare = ids.spare_capacity_mut();
        let len = run(py, max, || prepared.encode_into(spare, ends)).map_err(|e| to_py_err(py, &e))?;
        // SAFETY: `encode_into` initialised the first `len` slots of the spare capacity of an empty vector.
        unsafe { ids.set_len(len) };
        let array = PyArray1::from_slice(py, &ids);
        IDS.set(ids);
        return Ok(array);
    }
    // SAFETY: the new array is known to nobody else. Its elements are written before they are read: all but the
    // first `len` are dropped below, and those `encode_into` has initialised.
    unsafe {
        let array = PyArray1::<u32>::new(py, [max], false);
        let slots = std::slice::from_raw_parts_mut(array.data().cast::<MaybeUninit<u32>>(), max);
        let ends = ends.take();
        let len = py.detach(|| prepared.encode_into(slots, ends)).map_err(|e| to_py_err(py, &e))?;
        array.resize([len])?;
        Ok(array)
    }
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
            let boolean = || item.is_instance_of::<PyBool>() || type_name(&item).starts_with("bool");
            if !item.is_exact_instance_of::<PyInt>() && boolean() { None } else { item.extract::<u32>().ok() }
        };
        let ids: Option<Vec<u32>> = list.iter().map(id).collect();
        ids.map(Ids::List).ok_or_else(|| PyTypeError::new_err("ids must be ints below 2**32"))
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
                let ids = array.as_slice().map_err(|e| PyTypeError::new_err(e.to_string()))?.to_vec();
                Ok(py.detach(|| f(&ids)))
            }
        }
    }
}
