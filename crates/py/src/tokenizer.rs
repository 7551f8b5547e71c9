//! The class `_native.Tokenizer`.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::path::PathBuf;

use kizami_core::load::saved::Description;
use kizami_core::special::{ControlToken, Controls};
use kizami_core::{OffsetUnit, Options, Tables, load, parallel};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::convert::{Held, Ids, int_array, run, to_array};
use crate::digest_of;
use crate::documents::{self, Texts};
use crate::errors::{guard, to_py_err};
use crate::stream::DecodeStream;
use crate::texts::TokenTexts;

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
    /// For streams.
    pub texts: TokenTexts,
    #[pyo3(get)]
    eos_ids: Vec<u32>,
}

fn plain(tokens: Vec<(u32, String, bool)>) -> Vec<ControlToken> {
    tokens.into_iter().map(|(id, name, skip)| ControlToken::new(id, name, skip)).collect()
}

fn controls(tokens: Vec<(u32, String, bool)>, vocab_len: u32) -> Result<Controls, kizami_core::Error> {
    Controls::new(plain(tokens), vocab_len)
}

#[pymethods]
impl Tokenizer {
    /// A bundled model.
    #[staticmethod]
    fn bundled(py: Python<'_>, name: &str) -> PyResult<Self> {
        let model = kizami_bundled::find(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        let core = guard(py, || py.detach(|| model.load()).map_err(|e| to_py_err(py, &e)))?;
        Ok(Tokenizer::of(core, model.eos_ids.to_vec()))
    }

    /// From the bytes of a rank file, control tokens `(id, name, skip)`, and a split pattern; `normalizer` is null, or the
    /// JSON of one as `tokenizer.json` has it. Ranks that are ids of control tokens may be missing; with `gaps`, any.
    #[staticmethod]
    #[pyo3(signature = (data, control_tokens, pattern, eos_ids, normalizer = "null", cuts = true, gaps = false))]
    #[allow(clippy::too_many_arguments, reason = "all that a rank file does not say")]
    fn from_rank_file(
        py: Python<'_>,
        data: &[u8],
        control_tokens: Vec<(u32, String, bool)>,
        pattern: &str,
        eos_ids: Vec<u32>,
        normalizer: &str,
        cuts: bool,
        gaps: bool,
    ) -> PyResult<Self> {
        let build = || {
            let control_ids: HashSet<u32> = control_tokens.iter().map(|token| token.0).collect();
            let description = Description::of_ranks(pattern, normalizer, cuts)?;
            // Before the tables, which take a while.
            description.pattern()?;
            let vocab = load::read_rank_file_with_gaps(data, |rank| gaps || control_ids.contains(&rank))?;
            let tables = Tables::build(vocab)?;
            let mut controls = plain(control_tokens);
            // As packages that normalize do it: the whole text, and then names are looked for.
            controls.iter_mut().for_each(|token| token.flags.normalized = !description.normalizer.is_null());
            description.build(tables.into(), controls)
        };
        let core = guard(py, || py.detach(build).map_err(|e| to_py_err(py, &e)))?;
        Ok(Tokenizer::of(core, eos_ids))
    }

    /// From the bytes of a `tokenizer.json`.
    #[staticmethod]
    fn from_tokenizer_json(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        let build = || load::read_tokenizer_json(data);
        let core = guard(py, || py.detach(build).map_err(|e| to_py_err(py, &e)))?;
        Ok(Tokenizer::of(core, Vec::new()))
    }

    /// The same, and the `digest` of the bytes: beside what only one thread can do of the reading.
    #[staticmethod]
    fn from_tokenizer_json_with_digest(py: Python<'_>, data: &[u8]) -> PyResult<(Self, String)> {
        let build = || parallel::both(|| load::read_tokenizer_json(data), || digest_of(data));
        let (core, digest) = guard(py, || Ok(py.detach(build)))?;
        Ok((Tokenizer::of(core.map_err(|e| to_py_err(py, &e))?, Vec::new()), digest))
    }

    /// All of a `tokenizer.json` but its model.
    #[staticmethod]
    fn parts_of_tokenizer_json(py: Python<'_>, data: &[u8]) -> PyResult<String> {
        py.detach(|| load::parts_of_tokenizer_json(data)).map_err(|e| to_py_err(py, &e))
    }

    /// Number of entries of its vocabulary, and those that are not spelled in the alphabet of bytes or called as one of
    /// `names`.
    #[staticmethod]
    fn odd_entries(py: Python<'_>, data: &[u8], names: Vec<String>) -> PyResult<(usize, Vec<(String, u32)>)> {
        py.detach(|| load::odd_entries(data, &names)).map_err(|e| to_py_err(py, &e))
    }

    /// The vocabulary of its model as JSON.
    #[staticmethod]
    fn vocab_of_tokenizer_json<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyString>> {
        let vocab = py.detach(|| load::vocab_of_tokenizer_json(data)).map_err(|e| to_py_err(py, &e))?;
        to_str(py, vocab)
    }

    /// From the bytes of a `tekken.json`.
    #[staticmethod]
    fn from_tekken(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        let core = guard(py, || py.detach(|| load::read_tekken(data)).map_err(|e| to_py_err(py, &e)))?;
        Ok(Tokenizer::of(core, Vec::new()))
    }

    /// From a file that `saved` wrote: the tokenizer, and what was said about it.
    #[staticmethod]
    fn open_saved(py: Python<'_>, path: PathBuf, eos_ids: Vec<u32>) -> PyResult<(Self, String)> {
        let build = || load::saved::open(&path);
        let (core, about) = guard(py, || py.detach(build).map_err(|e| to_py_err(py, &e)))?;
        Ok((Tokenizer::of(core, eos_ids), about))
    }

    /// The same from its bytes.
    #[staticmethod]
    fn from_saved(py: Python<'_>, data: &[u8], eos_ids: Vec<u32>) -> PyResult<(Self, String)> {
        let build = || load::saved::from_bytes(data);
        let (core, about) = guard(py, || py.detach(build).map_err(|e| to_py_err(py, &e)))?;
        Ok((Tokenizer::of(core, eos_ids), about))
    }

    /// The whole tokenizer as the bytes of one file, with a text about it.
    fn saved<'py>(&self, py: Python<'py>, about: &str) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = guard(py, || Ok(py.detach(|| load::saved::write(&self.core, about))))?;
        PyBytes::new_with(py, bytes.len(), |out| {
            out.copy_from_slice(&bytes);
            Ok(())
        })
    }

    /// The same tokenizer with other ids that end a reply.
    fn with_eos_ids(&self, eos_ids: Vec<u32>) -> Self {
        Tokenizer::of(self.core.clone(), eos_ids)
    }

    /// Name of the way in which text is split.
    #[getter]
    fn pretokenizer(&self) -> String {
        self.core.pattern().name().into()
    }

    /// Split pattern or `pre_tokenizer`, and `normalizer`, as JSON.
    fn description(&self) -> (String, String) {
        let description = Description::of(&self.core);
        (description.split.to_string(), description.normalizer.to_string())
    }

    /// The added tokens as a `tokenizer.json` lists them.
    fn added_tokens(&self) -> String {
        load::added_tokens::write(self.core.controls()).to_string()
    }

    /// Whether merges make every token that a whole pre-token may be.
    #[getter]
    fn whole_is_merged(&self) -> bool {
        self.core.tables().whole_is_merged
    }

    /// Whether a pre-token that is a token is that token, even if no merge makes it.
    #[getter]
    fn whole_tokens(&self) -> bool {
        self.core.tables().others.is_empty()
    }

    /// `(left id, right id, id)` of every token that is made of two, in order of rank.
    fn merges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let tables = self.core.tables();
        let id = |rank| tables.vocab.id(rank);
        let flat: Vec<u32> = tables.merges.splits().flat_map(|(l, r, t)| [id(l), id(r), id(t)]).collect();
        Ok(PyArray1::from_vec(py, flat))
    }

    /// Ids of the ordinary tokens in order of rank.
    fn ids_by_rank<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        let vocab = &self.core.tables().vocab;
        PyArray1::from_vec(py, (0..vocab.len()).map(|rank| vocab.id(rank)).collect())
    }

    /// The same vocabulary and pattern with other control tokens; tables are shared.
    fn with_control_tokens(
        &self,
        py: Python<'_>,
        control_tokens: Vec<(u32, String, bool)>,
        eos_ids: Vec<u32>,
    ) -> PyResult<Self> {
        let controls = controls(control_tokens, self.core.ordinary_len()).map_err(|e| to_py_err(py, &e))?;
        let core = self.core.with_controls(controls).map_err(|e| to_py_err(py, &e))?;
        Ok(Tokenizer::of(core, eos_ids))
    }

    /// The same with other added tokens, as a `tokenizer.json` lists them.
    fn with_added_tokens(&self, py: Python<'_>, added_tokens: &str) -> PyResult<Self> {
        let build = || self.core.with_added_tokens(load::added_tokens::read_json(added_tokens)?);
        let core = build().map_err(|e| to_py_err(py, &e))?;
        Ok(Tokenizer::of(core, self.eos_ids.clone()))
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

    /// The ids of a short text as a list of ints, without an array between; None if one of them is not below `below`.
    fn encode_list<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        allow_special: bool,
        legacy_chunks: bool,
        below: u32,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        guard(py, || {
            let held = Held::from_text(text, allow_special)?;
            let segments = held.segments()?;
            let size = segments.iter().map(|s| s.text.max_utf8_len()).sum();
            let encode = || self.core.prepare(&segments, Options { legacy_chunks })?.encode(None)?.to_vec();
            let ids = run(py, size, encode).map_err(|e| to_py_err(py, &e))?;
            if ids.iter().any(|&id| id >= below) { Ok(None) } else { Ok(Some(PyList::new(py, ids)?)) }
        })
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

    /// Where the pre-tokens of one stretch of text begin and end, in bytes.
    fn split<'py>(&self, py: Python<'py>, text: &str) -> PyResult<(IntArray<'py>, IntArray<'py>)> {
        guard(py, || {
            let ranges = py.detach(|| self.core.split(text)).map_err(|e| to_py_err(py, &e))?;
            let (starts, ends): (Vec<_>, Vec<_>) =
                ranges.iter().map(|range| (i64::try_from(range.start), i64::try_from(range.end))).unzip();
            let array = |offsets: Vec<Result<i64, _>>| {
                Ok::<_, PyErr>(PyArray1::from_vec(py, offsets.into_iter().collect::<Result<Vec<i64>, _>>()?))
            };
            Ok((array(starts)?, array(ends)?))
        })
    }

    /// The ids of bytes that are merged as one pre-token.
    fn merge<'py>(&self, py: Python<'py>, piece: &[u8], whole: bool) -> PyResult<IdArray<'py>> {
        guard(py, || {
            let ids = py.detach(|| self.core.merge(piece, whole)).map_err(|e| to_py_err(py, &e))?;
            Ok(PyArray1::from_vec(py, ids))
        })
    }

    /// Ids of the texts `data[start..end]`, each with the ids `before` and `after` around it, and `len + 1` offsets.
    /// `data` is UTF-8 that nobody changes while this runs.
    #[allow(clippy::too_many_arguments, reason = "what Python passes")]
    fn encode_utf8<'py>(
        &self,
        py: Python<'py>,
        data: PyBuffer<u8>,
        starts: PyReadonlyArray1<'py, i64>,
        ends: PyReadonlyArray1<'py, i64>,
        allow_special: bool,
        before: Vec<u32>,
        after: Vec<u32>,
    ) -> PyResult<(IdArray<'py>, IntArray<'py>)> {
        guard(py, || {
            let texts = Texts::new(py, &data, &starts, &ends)?;
            documents::encode(py, &self.core, &texts, allow_special, (&before, &after))
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

    /// Of every token of a list of segments: index of its pre-token in the segment, index of the segment, start and end
    /// in the segment (None if its text was normalized).
    #[allow(clippy::type_complexity, reason = "the four arrays that Python gets")]
    fn places<'py>(
        &self,
        py: Python<'py>,
        segments: &Bound<'py, PyAny>,
    ) -> PyResult<(IntArray<'py>, IntArray<'py>, Option<(IntArray<'py>, IntArray<'py>)>)> {
        guard(py, || {
            let held = Held::from_segments(segments)?;
            let segments = held.segments()?;
            let size = segments.iter().map(|s| s.text.max_utf8_len()).sum();
            let find = || self.core.encode_with_places(&segments, Options::default());
            let (_, places) = run(py, size, find).map_err(|e| to_py_err(py, &e))?;
            let index = places.segment_index().map_err(|e| to_py_err(py, &e))?;
            let ranges = match places.ranges {
                Some((starts, ends)) => Some((int_array(py, &starts)?, int_array(py, &ends)?)),
                None => None,
            };
            Ok((int_array(py, &places.pretokens)?, int_array(py, &index)?, ranges))
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
    fn of(core: kizami_core::Tokenizer, eos_ids: Vec<u32>) -> Self {
        Tokenizer { texts: TokenTexts::new(core.vocab_size()), core, eos_ids }
    }

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
