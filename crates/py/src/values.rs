//! Values as JSON has them: kept beyond the reach of who gave them, and compared by all that a renderer can see.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::errors::guard;

/// Levels of nesting that are looked at; what is deeper counts as changed.
const MAX_DEPTH: usize = 64;
/// Values in one value that are looked at; one with more counts as changed. (A value may hold another one many times over.)
const MAX_VALUES: usize = 10_000;

/// A copy of a value that nobody else can change, or None where there is something in it that is not exactly a dict, list,
/// tuple, str, int, float, bool or None, or too much, or too deep. Texts are shared.
#[pyfunction]
pub fn remembered<'py>(py: Python<'py>, value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    guard(py, || copy(value, 0, &mut 0))
}

fn copy<'py>(value: &Bound<'py, PyAny>, depth: usize, values: &mut usize) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = value.py();
    *values += 1;
    if depth == MAX_DEPTH || *values > MAX_VALUES {
        return Ok(None);
    }
    if is_leaf(value) {
        return Ok(Some(value.clone()));
    }
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        let kept = PyDict::new(py);
        // A list of the items first: somebody else may change the dict meanwhile.
        for item in dict.items() {
            let (key, value): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item.extract()?;
            match copy(&value, depth + 1, values)? {
                Some(value) if is_leaf(&key) => kept.set_item(key, value)?,
                _ => return Ok(None),
            }
        }
        return Ok(Some(kept.into_any()));
    }
    if let Ok(list) = value.cast_exact::<PyList>() {
        let kept: Option<Vec<_>> = list.iter().map(|item| copy(&item, depth + 1, values)).collect::<PyResult<_>>()?;
        return kept.map(|kept| Ok(PyList::new(py, kept)?.into_any())).transpose();
    }
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        let kept: Option<Vec<_>> = tuple.iter().map(|item| copy(&item, depth + 1, values)).collect::<PyResult<_>>()?;
        return kept.map(|kept| Ok(PyTuple::new(py, kept)?.into_any())).transpose();
    }
    Ok(None)
}

/// Whether it is exactly a str, int, float, bool or None: nothing of it can change, and no code of others runs when it is
/// compared.
fn is_leaf(value: &Bound<'_, PyAny>) -> bool {
    value.is_exact_instance_of::<PyString>()
        || value.is_none()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyFloat>()
}

/// How many items two lists have in common at their beginning: items of the first are what [`remembered`] gave, or None,
/// which equals nothing. Types count (1 is not True), and so does the order of a dict.
#[pyfunction]
pub fn common_prefix(py: Python<'_>, kept: &Bound<'_, PyList>, values: &Bound<'_, PyList>) -> PyResult<usize> {
    guard(py, || {
        let mut same = 0;
        for (kept, value) in kept.iter().zip(values.iter()) {
            if kept.is_none() || !is_same(&kept, &value)? {
                break;
            }
            same += 1;
        }
        Ok(same)
    })
}

fn is_same(kept: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if kept.is(value) {
        return Ok(is_leaf(value));
    }
    if !kept.get_type().is(value.get_type()) {
        return Ok(false);
    }
    if let Ok(kept) = kept.cast_exact::<PyFloat>() {
        // By its bits: 0.0 is not -0.0.
        return Ok(kept.value().to_bits() == value.extract::<f64>()?.to_bits());
    }
    if is_leaf(kept) {
        return kept.eq(value);
    }
    if let (Ok(kept), Ok(value)) = (kept.cast_exact::<PyDict>(), value.cast_exact::<PyDict>()) {
        // No code of others runs meanwhile, so that the dicts stay as they are.
        if kept.len() != value.len() {
            return Ok(false);
        }
        for ((key, item), (other, value)) in kept.iter().zip(value.iter()) {
            if !is_same(&key, &other)? || !is_same(&item, &value)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    if let (Ok(kept), Ok(value)) = (kept.cast_exact::<PyList>(), value.cast_exact::<PyList>()) {
        return all_same(kept.len() == value.len(), kept.iter().zip(value.iter()));
    }
    if let (Ok(kept), Ok(value)) = (kept.cast_exact::<PyTuple>(), value.cast_exact::<PyTuple>()) {
        return all_same(kept.len() == value.len(), kept.iter().zip(value.iter()));
    }
    Ok(false)
}

fn all_same<'py>(as_many: bool, pairs: impl Iterator<Item = (Bound<'py, PyAny>, Bound<'py, PyAny>)>) -> PyResult<bool> {
    if !as_many {
        return Ok(false);
    }
    for (kept, value) in pairs {
        if !is_same(&kept, &value)? {
            return Ok(false);
        }
    }
    Ok(true)
}
