//! What one thread needs while it works on a request, kept from request to request.
//!
//! Workers belong to [`crate::Tables`], not to threads: a thread takes one, and gives it back warm. At most
//! [`MAX_IDLE`] wait; more are dropped. Taking never blocks: if the list is locked (by another thread, or for ever,
//! in a child forked at that moment), a fresh worker is made.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, TryLockError};

use crate::error::Error;
use crate::lookup::cache::{Cache, LONG_IDS};
use crate::lookup::phrases::Phrases;
use crate::lookup::shared::Shared;
use crate::merge::Scratch;
use crate::piece::Probes;
use crate::pretoken::{BATCH, Batch};
use crate::unknown::Unknown;

/// Idle workers kept.
const MAX_IDLE: usize = 32;
/// Ids of room that an idle worker keeps, and bytes of UTF-8: 8 and 2 MB.
const MAX_IDLE_ROOM: usize = 2 << 20;

/// Scratch memory and cache of one thread at work.
#[derive(Debug)]
pub(crate) struct Worker {
    pub batch: Batch,
    pub probes: Probes,
    pub scratch: Scratch,
    pub cache: Cache,
    pub phrases: Phrases,
    pub unknown: Unknown,
    pub out: Output,
    /// UTF-8 of a text that came as something else.
    pub utf8: Vec<u8>,
}

impl Worker {
    fn new() -> Result<Self, Error> {
        Ok(Worker {
            batch: Batch::default(),
            probes: Probes::default(),
            scratch: Scratch::default(),
            cache: Cache::new()?,
            phrases: Phrases::default(),
            unknown: Unknown::default(),
            out: Output::default(),
            utf8: Vec::new(),
        })
    }
}

/// Ids as they are made.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// The first `len` are ids, all others room.
    ids: Vec<u32>,
    len: usize,
}

/// Room for the ids of a batch: those of a pre-token are written with all places of an entry of the cache.
pub(crate) struct Room<'a> {
    pub slots: &'a mut [u32],
    /// Ids before it.
    pub len: usize,
}

impl Output {
    /// The ids so far.
    pub fn ids(&self) -> &[u32] {
        &self.ids[..self.len]
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Room behind the ids for those of so many pre-tokens that the cache knows, and for so many others.
    #[inline(always)]
    pub fn room(&mut self, pre_tokens: usize, others: usize) -> Result<Room<'_>, Error> {
        self.make_room(pre_tokens * LONG_IDS + others)?;
        Ok(Room { slots: &mut self.ids[self.len..], len: self.len })
    }

    /// Takes over what was written into the room.
    ///
    /// # Panics
    /// Beyond the room.
    #[inline(always)]
    pub fn set_len(&mut self, len: usize) {
        assert!(len <= self.ids.len(), "no more ids than there is room for");
        self.len = len;
    }

    #[inline(always)]
    fn make_room(&mut self, more: usize) -> Result<(), Error> {
        if self.ids.len() < self.len + more { self.grow(more) } else { Ok(()) }
    }

    #[cold]
    fn grow(&mut self, more: usize) -> Result<(), Error> {
        // Half as much again, so that growing costs a constant amount an id.
        let size = (self.len + more).max(self.len + self.len / 2 + BATCH * LONG_IDS);
        let missing = size - self.ids.len();
        crate::error::reserve(&mut self.ids, missing)?;
        self.ids.resize(size, 0);
        Ok(())
    }

    /// Makes `more` ids out of nothing, which [`Gaps::fill`] brings where they belong.
    pub fn open(&mut self, more: usize) -> Result<Gaps<'_>, Error> {
        self.make_room(more)?;
        let from = self.len;
        self.len += more;
        Ok(Gaps { ids: &mut self.ids[..self.len], from, to: self.len })
    }
}

/// Ids that move up, the last ones first.
pub(crate) struct Gaps<'a> {
    ids: &'a mut [u32],
    /// End of those that have not moved yet, and of where they will be.
    from: usize,
    to: usize,
}

impl Gaps<'_> {
    /// Puts `ids` behind the first `at`: no more than all those before.
    #[inline]
    pub fn fill(&mut self, at: usize, ids: &[u32]) {
        self.to -= self.from - at;
        self.ids.copy_within(at..self.from, self.to);
        self.from = at;
        let end = self.to;
        self.to -= ids.len();
        self.ids[self.to..end].copy_from_slice(ids);
    }
}

/// The idle workers of one vocabulary.
#[derive(Debug, Default)]
#[allow(clippy::vec_box, reason = "a worker is taken and given back by moving one pointer, not its 9 KB")]
pub struct Workers {
    idle: Mutex<Vec<Box<Worker>>>,
    /// Workers that were made.
    made: AtomicUsize,
    /// What all of them have learned; there from the second one on.
    shared: OnceLock<Option<Shared>>,
}

impl Clone for Workers {
    fn clone(&self) -> Self {
        Workers::default()
    }
}

/// A worker on loan, with nothing in its output; goes back when dropped.
#[derive(Debug)]
pub(crate) struct Loan<'a> {
    /// None only while it is dropped.
    worker: Option<Box<Worker>>,
    home: &'a Workers,
}

impl Deref for Loan<'_> {
    type Target = Worker;

    fn deref(&self) -> &Worker {
        self.worker.as_ref().expect("a loan that lives")
    }
}

impl DerefMut for Loan<'_> {
    fn deref_mut(&mut self) -> &mut Worker {
        self.worker.as_mut().expect("a loan that lives")
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        let Some(mut worker) = self.worker.take() else { return };
        // What a panic left behind is not used again.
        if std::thread::panicking() {
            return;
        }
        worker.out.clear();
        if worker.out.ids.len() > MAX_IDLE_ROOM {
            worker.out = Output::default();
        }
        if worker.utf8.capacity() > MAX_IDLE_ROOM {
            worker.utf8 = Vec::new();
        }
        worker.scratch.shrink(MAX_IDLE_ROOM);
        worker.unknown.clear();
        worker.unknown.shrink(MAX_IDLE_ROOM);
        worker.probes.shrink(MAX_IDLE_ROOM);
        self.home.list(|idle| {
            if idle.len() < MAX_IDLE {
                idle.push(worker);
            }
        });
    }
}

impl Workers {
    /// Lends a worker.
    ///
    /// # Errors
    /// [`Error::Memory`] if a new one is needed and there is no room for it.
    pub(crate) fn lend(&self) -> Result<Loan<'_>, Error> {
        let worker = match self.list(Vec::pop).flatten() {
            Some(worker) => worker,
            None => {
                self.made.fetch_add(1, Ordering::Relaxed);
                Box::new(Worker::new()?)
            }
        };
        Ok(Loan { worker: Some(worker), home: self })
    }

    /// What all workers have learned, if there is more than one.
    #[inline]
    pub(crate) fn shared(&self) -> Option<&Shared> {
        if self.made.load(Ordering::Relaxed) < 2 {
            return None;
        }
        // Without memory for it, each learns for itself.
        self.shared.get_or_init(|| Shared::new().ok()).as_ref()
    }

    /// Drops the idle workers, and with them what they have learned; what all have learned stays.
    pub fn clear(&self) {
        self.list(Vec::clear);
    }

    #[allow(clippy::vec_box, reason = "as above")]
    fn list<R>(&self, f: impl FnOnce(&mut Vec<Box<Worker>>) -> R) -> Option<R> {
        for _ in 0..64 {
            match self.idle.try_lock() {
                Ok(mut idle) => return Some(f(&mut idle)),
                Err(TryLockError::Poisoned(poisoned)) => return Some(f(&mut poisoned.into_inner())),
                Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
            }
        }
        None
    }
}
