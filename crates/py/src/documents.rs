//! Many texts in one buffer: the way of whole corpora, without a Python string for each.

use std::mem::MaybeUninit;

use kizami_core::rows::{self, Rows};
use kizami_core::{Encoded, Error, Options, Segment, Text, Tokenizer};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::{int_array, new_array, run, to_array};
use crate::errors::{guard, raise, to_py_err};

type IdArray<'py> = Bound<'py, PyArray1<u32>>;
type IntArray<'py> = Bound<'py, PyArray1<i64>>;
/// Texts, where each ends, what each row is, and where the next row begins.
type RowArrays<'py> = (Bound<'py, PyBytes>, IntArray<'py>, Bound<'py, PyArray1<u8>>, IntArray<'py>);

/// Texts in the caller's buffer.
pub struct Texts<'a> {
    slices: Vec<&'a [u8]>,
    bytes: usize,
}

impl<'a> Texts<'a> {
    /// # Errors
    /// `InvalidValueError` if a range is not in the buffer.
    pub fn new(
        py: Python<'_>,
        data: &'a PyBuffer<u8>,
        starts: &PyReadonlyArray1<'_, i64>,
        ends: &PyReadonlyArray1<'_, i64>,
    ) -> PyResult<Self> {
        let data = bytes_of(py, data)?;
        let (starts, ends) = (starts.as_array(), ends.as_array());
        let slice = |(index, (&start, &end)): (usize, (&i64, &i64))| {
            let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
            range.and_then(|(start, end)| data.get(start..end)).ok_or_else(|| {
                let message = format!("text {index} is from {start} to {end} in a buffer of {} bytes", data.len());
                raise(py, "InvalidValueError", &message, &[("position", i64::try_from(index).unwrap_or(i64::MAX))])
            })
        };
        if starts.len() != ends.len() {
            return Err(raise(py, "InvalidValueError", "there are not as many ends as starts", &[]));
        }
        let slices = starts.iter().zip(&ends).enumerate().map(slice).collect::<PyResult<Vec<_>>>()?;
        let bytes = slices.iter().map(|slice| slice.len()).sum();
        Ok(Texts { slices, bytes })
    }

    /// The texts as segments, or the index of the first that is no UTF-8.
    fn segments(&self, allow_special: bool) -> Result<Vec<Segment<'a>>, usize> {
        let segment = |(index, slice): (usize, &&'a [u8])| match std::str::from_utf8(slice) {
            Ok(text) => Ok(Segment { text: Text::Utf8(text), allow_special }),
            Err(_) => Err(index),
        };
        self.slices.iter().enumerate().map(segment).collect()
    }
}

fn bytes_of<'a>(py: Python<'_>, data: &'a PyBuffer<u8>) -> PyResult<&'a [u8]> {
    if !data.readonly() || !data.is_c_contiguous() {
        return Err(raise(py, "InvalidValueError", "the buffer must be read-only and contiguous", &[]));
    }
    if data.len_bytes() == 0 {
        return Ok(&[]);
    }
    // SAFETY: the view is contiguous, of `len_bytes` bytes, and held as long as the result is; it is read-only, and who
    // passes it (`kizami.corpus`: `bytes`, and buffers of Arrow, which never change) promises that nobody writes to it.
    Ok(unsafe { std::slice::from_raw_parts(data.buf_ptr().cast(), data.len_bytes()) })
}

/// Why texts have no ids.
enum Fault {
    NotUtf8(usize),
    Core(Error),
}

/// Ids of all texts, with the ids `around` each, and `len + 1` offsets.
pub fn encode<'py>(
    py: Python<'py>,
    core: &Tokenizer,
    texts: &Texts<'_>,
    allow_special: bool,
    around: (&[u32], &[u32]),
) -> PyResult<(IdArray<'py>, IntArray<'py>)> {
    let (mut segments, mut ends) = (Vec::new(), Vec::new());
    let (held, ends_of) = (&mut segments, &mut ends);
    let encode = move || {
        // Moved in here, so that what is returned may borrow from it.
        let slot = held;
        *slot = texts.segments(allow_special).map_err(Fault::NotUtf8)?;
        let prepared = core.prepare(slot, Options::default()).map_err(Fault::Core)?;
        prepared.encode(Some(ends_of)).map_err(Fault::Core)
    };
    let encoded = run(py, texts.bytes, encode).map_err(|fault| match fault {
        Fault::Core(error) => to_py_err(py, &error),
        Fault::NotUtf8(index) => {
            let message = format!("text {index} is not UTF-8; convert it first");
            raise(py, "InvalidValueError", &message, &[("position", i64::try_from(index).unwrap_or(i64::MAX))])
        }
    })?;
    let more = around.0.len() + around.1.len();
    let mut offsets = vec![0];
    for (index, &end) in ends.iter().enumerate() {
        offsets.push(i64::try_from(end + (index + 1) * more)?);
    }
    if more == 0 {
        return Ok((to_array(py, &encoded)?, int_array(py, &offsets)?));
    }
    let write = |slots: &mut [MaybeUninit<u32>]| write_around(&encoded, &ends, around, slots);
    Ok((new_array(py, encoded.len() + ends.len() * more, write)?, int_array(py, &offsets)?))
}

/// Writes the ids of every text, of which the last one is at `end`, with the ids `around` it.
fn write_around(encoded: &Encoded<'_>, ends: &[usize], around: (&[u32], &[u32]), mut out: &mut [MaybeUninit<u32>]) {
    let mut push = |ids: &[u32]| {
        let slots = out.split_off_mut(..ids.len()).expect("as many slots as ids");
        slots.write_copy_of_slice(ids);
    };
    let mut parts = encoded.parts();
    let mut part: &[u32] = &[];
    let mut done = 0;
    for &end in ends {
        push(around.0);
        while done < end {
            if part.is_empty() {
                part = parts.next().expect("the last text ends with the last part");
            }
            let ids = part.split_off(..part.len().min(end - done)).expect("no more than there are");
            push(ids);
            done += ids.len();
        }
        push(around.1);
    }
    assert!(out.is_empty(), "as many ids as slots");
}

/// The rows of a block of JSON Lines; see `kizami_core::rows::json_lines`.
#[pyfunction]
pub fn json_lines<'py>(py: Python<'py>, block: &[u8], field: &str, lossy: bool) -> PyResult<RowArrays<'py>> {
    guard(py, || to_arrays(py, &py.detach(|| rows::json_lines(block, field, lossy))))
}

/// The pieces of a block of text; see `kizami_core::rows::pieces`.
#[pyfunction]
pub fn pieces<'py>(
    py: Python<'py>,
    block: &[u8],
    separator: &[u8],
    last: bool,
    lossy: bool,
) -> PyResult<RowArrays<'py>> {
    guard(py, || to_arrays(py, &py.detach(|| rows::pieces(block, separator, last, lossy))))
}

fn to_arrays<'py>(py: Python<'py>, rows: &Rows) -> PyResult<RowArrays<'py>> {
    let ints = |places: &[usize]| {
        let places: Vec<i64> = places.iter().map(|&place| i64::try_from(place)).collect::<Result<_, _>>()?;
        int_array(py, &places)
    };
    let text = PyBytes::new_with(py, rows.text.len(), |bytes| {
        bytes.copy_from_slice(rows.text.as_bytes());
        Ok(())
    })?;
    let kinds: Vec<u8> = rows.kinds.iter().map(|&kind| kind as u8).collect();
    Ok((text, ints(&rows.ends)?, PyArray1::from_vec(py, kinds), ints(&rows.nexts)?))
}
