//! The class `_native.Tokenizer`.

use std::ffi::{CStr, CString};

use kizami_core::special::{ControlToken, Controls};
use kizami_core::{OffsetUnit, Options, Tables, load};
use numpy::PyArray1;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::convert::{Held, Ids, int_array, run, to_array};
use crate::errors::{guard, to_py_err};
use crate::stream::DecodeStream;

/// SHA-256 of the rank file that the bundled Kimi models share; empty in a build without them.
#[cfg(feature = "kimi")]
pub const KIMI_RANK_FILE_SHA256: &str = kizami_bundled::kimi::RANK_FILE_SHA256;
/// SHA-256 of the rank file that the bundled Kimi models share; empty in a build without them.
#[cfg(not(feature = "kimi"))]
pub const KIMI_RANK_FILE_SHA256: &str = "";

type IdArray<'py> = Bound<'py, PyArray1<u32>>;
type IntArray<'py> = Bound<'py, PyArray1<i64>>;

/// See `kizami.Tokenizer`.
#[pyclass(frozen, module = "kizami._native")]
pub struct Tokenizer {
    pub core: kizami_core::Tokenizer,
    #[pyo3(get)]
    eos_ids: Vec<u32>,
}

fn controls(tokens: Vec<(u32, String, bool)>, vocab_len: u32) -> Result<Controls, kizami_core::Error> {
    let tokens = tokens.into_iter().map(|(id, name, skip)| ControlToken { id, name, skip }).collect();
    Controls::new(tokens, vocab_len)
}

#[pymethods]
impl Tokenizer {
    /// A bundled model.
    #[staticmethod]
    fn bundled(py: Python<'_>, name: &str) -> PyResult<Self> {
        let model = kizami_bundled::find(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        let core = model.load().map_err(|e| to_py_err(py, &e))?;
        Ok(Tokenizer { core, eos_ids: model.eos_ids.to_vec() })
    }

    /// From the bytes of a rank file, control tokens `(id, name, skip)`, and a split pattern.
    #[staticmethod]
    fn from_rank_file(
        py: Python<'_>,
        data: &[u8],
        control_tokens: Vec<(u32, String, bool)>,
        pattern: &str,
        eos_ids: Vec<u32>,
    ) -> PyResult<Self> {
        let build = || {
            let tables = Tables::build(load::read_rank_file(data)?)?;
            let controls = controls(control_tokens, tables.vocab.len())?;
            let pattern = kizami_core::pretoken::Pattern::from_regex(pattern)?;
            Ok(kizami_core::Tokenizer::new(tables.into(), controls, pattern))
        };
        let core = guard(py, || py.detach(build).map_err(|e| to_py_err(py, &e)))?;
        Ok(Tokenizer { core, eos_ids })
    }

    /// The same vocabulary and pattern with other control tokens; tables are shared.
    fn with_control_tokens(
        &self,
        py: Python<'_>,
        control_tokens: Vec<(u32, String, bool)>,
        eos_ids: Vec<u32>,
    ) -> PyResult<Self> {
        let controls = controls(control_tokens, self.core.ordinary_len()).map_err(|e| to_py_err(py, &e))?;
        let core = kizami_core::Tokenizer::new(self.core.tables().clone(), controls, self.core.pattern().clone());
        Ok(Tokenizer { core, eos_ids })
    }

    #[getter]
    fn vocab_size(&self) -> u32 {
        self.core.vocab_size()
    }

    /// Number of ordinary tokens.
    #[getter]
    fn ordinary_len(&self) -> u32 {
        self.core.ordinary_len()
    }

    /// `(id, name, skip)` of every control token.
    fn control_tokens(&self) -> Vec<(u32, &str, bool)> {
        self.core.controls().tokens().iter().map(|t| (t.id, t.name.as_str(), t.skip)).collect()
    }

    /// The vocabulary as the bytes of a rank file.
    fn rank_file<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| load::write_rank_file(&self.core.tables().vocab)))
    }

    fn encode<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        allow_special: bool,
        legacy_chunks: bool,
    ) -> PyResult<IdArray<'py>> {
        guard(py, || self.encode_held(py, &Held::from_text(text, allow_special)?, legacy_chunks, None))
    }

    fn encode_segments<'py>(
        &self,
        py: Python<'py>,
        segments: &Bound<'py, PyAny>,
        legacy_chunks: bool,
    ) -> PyResult<IdArray<'py>> {
        guard(py, || self.encode_held(py, &Held::from_segments(segments)?, legacy_chunks, None))
    }

    /// Ids of all texts, one after the other, and `len + 1` offsets.
    fn encode_batch<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        allow_special: bool,
    ) -> PyResult<(IdArray<'py>, Bound<'py, PyArray1<i64>>)> {
        guard(py, || {
            let mut ends = Vec::new();
            let ids = self.encode_held(py, &Held::from_texts(texts, allow_special)?, true, Some(&mut ends))?;
            let offsets = std::iter::once(Ok(0)).chain(ends.into_iter().map(i64::try_from));
            Ok((ids, PyArray1::from_slice(py, &offsets.collect::<Result<Vec<i64>, _>>()?)))
        })
    }

    fn count(&self, py: Python<'_>, text: &Bound<'_, PyAny>, allow_special: bool) -> PyResult<usize> {
        guard(py, || self.count_held(py, &Held::from_text(text, allow_special)?))
    }

    fn count_segments(&self, py: Python<'_>, segments: &Bound<'_, PyAny>) -> PyResult<usize> {
        guard(py, || self.count_held(py, &Held::from_segments(segments)?))
    }

    fn decode_bytes<'py>(&self, py: Python<'py>, ids: Ids<'py>, skip_special: bool) -> PyResult<Bound<'py, PyBytes>> {
        guard(py, || {
            let decoded = self.decode_ids(py, &ids, skip_special)?;
            // Unlike `PyBytes::new`, this says so if there is no memory.
            PyBytes::new_with(py, decoded.len(), |bytes| {
                bytes.copy_from_slice(&decoded);
                Ok(())
            })
        })
    }

    fn decode<'py>(
        &self,
        py: Python<'py>,
        ids: Ids<'py>,
        skip_special: bool,
        errors: &str,
    ) -> PyResult<Bound<'py, PyString>> {
        guard(py, || {
            let errors = CString::new(errors).map_err(|_| PyValueError::new_err("errors must not hold NUL"))?;
            decode_utf8(py, &self.decode_ids(py, &ids, skip_special)?, &errors)
        })
    }

    /// Ids, starts and ends.
    fn encode_with_offsets<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        allow_special: bool,
        in_bytes: bool,
    ) -> PyResult<(IdArray<'py>, IntArray<'py>, IntArray<'py>)> {
        guard(py, || {
            let (ids, offsets) = self.encode_held_with_offsets(py, &Held::from_text(text, allow_special)?, in_bytes)?;
            Ok((ids, int_array(py, &offsets.starts)?, int_array(py, &offsets.ends)?))
        })
    }

    /// Ids, starts and ends in the segment, and the index of the segment.
    #[allow(clippy::type_complexity, reason = "the four arrays that Python gets")]
    fn encode_segments_with_offsets<'py>(
        &self,
        py: Python<'py>,
        segments: &Bound<'py, PyAny>,
        in_bytes: bool,
    ) -> PyResult<(IdArray<'py>, IntArray<'py>, IntArray<'py>, IntArray<'py>)> {
        guard(py, || {
            let (ids, offsets) = self.encode_held_with_offsets(py, &Held::from_segments(segments)?, in_bytes)?;
            let index = offsets.segment_index().map_err(|e| to_py_err(py, &e))?;
            Ok((ids, int_array(py, &offsets.starts)?, int_array(py, &offsets.ends)?, int_array(py, &index)?))
        })
    }

    /// A stream at its beginning.
    fn stream(slf: &Bound<'_, Self>, skip_special: bool, stop: Vec<String>) -> DecodeStream {
        DecodeStream::begin(slf.clone().unbind(), skip_special, stop)
    }

    fn token_bytes<'py>(&self, py: Python<'py>, id: u32) -> Option<Bound<'py, PyBytes>> {
        self.core.token_bytes(id).map(|bytes| PyBytes::new(py, bytes))
    }

    fn token_id(&self, token: &[u8]) -> Option<u32> {
        self.core.token_id(token)
    }
}

impl Tokenizer {
    fn encode_held<'py>(
        &self,
        py: Python<'py>,
        held: &Held<'py>,
        legacy_chunks: bool,
        ends: Option<&mut Vec<usize>>,
    ) -> PyResult<IdArray<'py>> {
        let segments = held.segments()?;
        let size = segments.iter().map(|s| s.text.max_utf8_len()).sum();
        let encode = || self.core.prepare(&segments, Options { legacy_chunks })?.encode(ends);
        to_array(py, &run(py, size, encode).map_err(|e| to_py_err(py, &e))?)
    }

    fn encode_held_with_offsets<'py>(
        &self,
        py: Python<'py>,
        held: &Held<'py>,
        in_bytes: bool,
    ) -> PyResult<(IdArray<'py>, kizami_core::Offsets)> {
        let segments = held.segments()?;
        let size = segments.iter().map(|s| s.text.max_utf8_len()).sum();
        let unit = if in_bytes { OffsetUnit::Bytes } else { OffsetUnit::CodePoints };
        let encode = || self.core.encode_with_offsets(&segments, Options::default(), unit);
        let (encoded, offsets) = run(py, size, encode).map_err(|e| to_py_err(py, &e))?;
        Ok((to_array(py, &encoded)?, offsets))
    }

    fn count_held(&self, py: Python<'_>, held: &Held<'_>) -> PyResult<usize> {
        let segments = held.segments()?;
        let size = segments.iter().map(|s| s.text.max_utf8_len()).sum();
        run(py, size, || self.core.prepare(&segments, Options::default())?.count()).map_err(|e| to_py_err(py, &e))
    }

    fn decode_ids(&self, py: Python<'_>, ids: &Ids<'_>, skip_special: bool) -> PyResult<Vec<u8>> {
        ids.with(py, |ids| self.core.decode(ids, skip_special))?.map_err(|e| to_py_err(py, &e))
    }
}

/// A `str`; unlike `PyString::new`, it says so if there is no memory.
pub fn to_str<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyString>> {
    decode_utf8(py, text.as_bytes(), c"strict")
}

/// `bytes.decode("utf-8", errors)` without the bytes object between.
fn decode_utf8<'py>(py: Python<'py>, bytes: &[u8], errors: &CStr) -> PyResult<Bound<'py, PyString>> {
    let len = ffi::Py_ssize_t::try_from(bytes.len())?;
    // SAFETY: the pointer and length are those of a live slice, `errors` is NUL-terminated; the result is a new
    // reference to a str, or null with an exception set, which `from_owned_ptr_or_err` tells apart.
    unsafe {
        let text = ffi::PyUnicode_DecodeUTF8(bytes.as_ptr().cast(), len, errors.as_ptr());
        Ok(Bound::from_owned_ptr_or_err(py, text)?.cast_into_unchecked())
    }
}
