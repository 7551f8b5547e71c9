//! What one thread needs while it works on a request, kept from request to request.
//!
//! Workers belong to [`crate::Tables`], not to threads: a thread takes one, and gives it back warm. At most
//! [`MAX_IDLE`] wait; more are dropped. Taking never blocks: if the list is locked (by another thread, or for ever,
//! in a child forked at that moment), a fresh worker is made.

use std::sync::{Mutex, TryLockError};

use crate::lookup::cache::Cache;
use crate::merge::Scratch;
use crate::pretoken::Batch;

/// Idle workers kept; each holds about 0.6 MB at most.
const MAX_IDLE: usize = 32;

/// Scratch memory and cache of one thread at work.
#[derive(Debug, Default)]
pub(crate) struct Worker {
    pub batch: Batch,
    pub scratch: Scratch,
    pub cache: Cache,
}

/// The idle workers of one vocabulary.
#[derive(Debug, Default)]
#[allow(clippy::vec_box, reason = "a worker is taken and given back by moving one pointer, not its 3 KB")]
pub struct Workers(Mutex<Vec<Box<Worker>>>);

impl Clone for Workers {
    fn clone(&self) -> Self {
        Workers::default()
    }
}

impl Workers {
    /// Runs `f` with a worker.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut Worker) -> R) -> R {
        let mut worker = self.list(Vec::pop).flatten().unwrap_or_default();
        let result = f(&mut worker);
        self.list(|idle| {
            if idle.len() < MAX_IDLE {
                idle.push(worker);
            }
        });
        result
    }

    /// Forgets all that was learned.
    pub fn clear(&self) {
        self.list(Vec::clear);
    }

    #[allow(clippy::vec_box, reason = "as above")]
    fn list<R>(&self, f: impl FnOnce(&mut Vec<Box<Worker>>) -> R) -> Option<R> {
        for _ in 0..64 {
            match self.0.try_lock() {
                Ok(mut idle) => return Some(f(&mut idle)),
                Err(TryLockError::Poisoned(poisoned)) => return Some(f(&mut poisoned.into_inner())),
                Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
            }
        }
        None
    }
}
