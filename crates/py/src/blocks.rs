//! The class `_native.BlockHasher`.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kizami_core::{BlockHasher as Core, Error, Scheme, Seed};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::convert::{Ids, hash_array};
use crate::errors::{guard, to_py_err};

/// See `kizami.BlockHasher`.
#[pyclass(frozen, subclass, module = "kizami._native")]
pub struct BlockHasher {
    /// Python is not called while this is locked, so that nobody who waits for it can be waited for.
    core: Mutex<Core>,
}

/// A seed, as the schemes have them.
#[derive(FromPyObject)]
pub enum PySeed {
    Text(String),
    Number(u64),
}

/// Names of the schemes.
#[pyfunction]
pub fn block_schemes() -> Vec<&'static str> {
    Scheme::ALL.iter().map(|&(name, _)| name).collect()
}

/// A hasher that has seen no ids; `extra_keys` in canonical CBOR.
#[pyfunction]
pub fn block_hasher(
    py: Python<'_>,
    block_size: u32,
    scheme: &str,
    seed: Option<PySeed>,
    extra_keys: Option<Vec<u8>>,
) -> PyResult<BlockHasher> {
    let seed = seed.as_ref().map(|seed| match seed {
        PySeed::Text(text) => Seed::Text(text),
        PySeed::Number(number) => Seed::Number(*number),
    });
    let core = Scheme::named(scheme)
        .ok_or_else(|| Error::BlockHash(format!("there is no scheme {scheme:?}")))
        .and_then(|scheme| Core::new(scheme, block_size, seed, extra_keys));
    Ok(BlockHasher { core: Mutex::new(core.map_err(|e| to_py_err(py, &e))?) })
}

#[pymethods]
impl BlockHasher {
    /// Another hasher at the same place as `like`.
    #[new]
    fn new(like: &Self) -> Self {
        BlockHasher { core: Mutex::new(like.lock().clone()) }
    }

    /// The hashes of the blocks that get full with one more id, or several.
    #[pyo3(signature = (ids, /, *, extra_keys_at=None))]
    fn push<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        extra_keys_at: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guard(py, || {
            let extra: HashMap<usize, Vec<u8>> = match extra_keys_at {
                Some(extra) => blocks_module(py)?.call_method1(intern!(py, "encoded_keys_at"), (extra,))?.extract()?,
                None => HashMap::new(),
            };
            let one = ids.cast_exact::<PyInt>().ok().and_then(|id| id.extract::<u32>().ok());
            let ids = match one.map_or_else(|| ids.extract::<Ids<'_>>(), |id| Ok(Ids::List(vec![id]))) {
                Ok(ids) => ids,
                // Other forms of ids, and what is wrong with those that are none.
                Err(_) => blocks_module(py)?.call_method1(intern!(py, "hashed_ids"), (ids,))?.extract()?,
            };
            let hashes = ids.with(py, |ids| {
                let mut core = self.lock();
                core.set_extra(extra.into_iter().collect())?;
                let width = core.scheme().width();
                core.push(ids).map(|hashes| (hashes.to_vec(), width))
            })?;
            let (hashes, width) = hashes.map_err(|e| to_py_err(py, &e))?;
            hash_array(py, &hashes, width)
        })
    }

    /// Goes back to the first `num_ids` ids, or a little before; the number of ids that are left.
    #[pyo3(signature = (num_ids, /))]
    fn rewind(&self, num_ids: usize) -> usize {
        self.lock().rewind(num_ids)
    }

    /// The hashes of all full blocks.
    fn hashes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (hashes, width) = {
            let core = self.lock();
            (core.hashes().to_vec(), core.scheme().width())
        };
        hash_array(py, &hashes, width)
    }

    /// Ids in a block.
    #[getter]
    fn block_size(&self) -> u32 {
        self.lock().block_size()
    }

    /// The name of the scheme.
    #[getter]
    fn scheme(&self) -> &'static str {
        let scheme = self.lock().scheme();
        Scheme::ALL.iter().find(|(_, known)| *known == scheme).map_or("", |&(name, _)| name)
    }

    /// Ids taken so far.
    #[getter]
    fn num_ids(&self) -> usize {
        self.lock().num_ids()
    }

    /// Full blocks so far.
    #[getter]
    fn num_blocks(&self) -> usize {
        self.lock().num_blocks()
    }
}

impl BlockHasher {
    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn blocks_module(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import(intern!(py, "kizami._blocks"))
}
