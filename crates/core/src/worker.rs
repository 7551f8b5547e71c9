//! What one thread needs while it works on a request, kept from request to request.
//!
//! Workers belong to [`crate::Tables`], not to threads: a thread takes one, and gives it back warm. At most
//! [`MAX_IDLE`] wait; more are dropped. Taking never blocks: each waits in a place with a lock of its own, and one that is
//! locked (by a thread that the system has stopped, or for ever, in a child forked at that moment) is passed over.
//!
//! A worker goes back as soon as its part of a request is encoded; the ids stay behind in its output ([`Loan::finish`]).
//! Who asked for them may wait for long until he can take them, for the interpreter lock: if he kept the worker, the next
//! request would need another one, which knows nothing yet.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};

use crate::error::Error;
use crate::lookup::cache::{Cache, LONG_IDS};
use crate::lookup::phrases::Phrases;
use crate::lookup::shared::Shared;
use crate::merge::Scratch;
use crate::parallel;
use crate::piece::Probes;
use crate::pretoken::{BATCH, Batch};
use crate::unknown::Unknown;

/// Idle workers kept, and idle outputs.
const MAX_IDLE: usize = 32;
/// Ids of room that an idle worker keeps, and bytes of UTF-8: 8 and 2 MB.
const MAX_IDLE_ROOM: usize = 2 << 20;

/// Scratch memory and cache of one thread at work.
#[derive(Debug)]
pub(crate) struct Worker {
    /// Whether it was lent before.
    used: bool,
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
            used: false,
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

    /// Forgets the ids, and gives memory back if it has grown large.
    fn clear_and_shrink(&mut self) {
        self.clear();
        if self.ids.len() > MAX_IDLE_ROOM {
            self.ids = Vec::new();
        }
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

/// What waits, each in a place of its own.
#[derive(Debug)]
struct Idle<T>([Mutex<Option<T>>; MAX_IDLE]);

impl<T> Default for Idle<T> {
    fn default() -> Self {
        Idle(std::array::from_fn(|_| Mutex::default()))
    }
}

impl<T> Idle<T> {
    /// The places that are not locked. The first ones come first, so that what was used a moment ago is used again.
    fn places(&self) -> impl Iterator<Item = MutexGuard<'_, Option<T>>> {
        self.0.iter().filter_map(|place| match place.try_lock() {
            Ok(place) => Some(place),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        })
    }

    fn take(&self) -> Option<T> {
        self.places().find_map(|mut place| place.take())
    }

    /// Keeps it if there is a place.
    fn put(&self, item: T) {
        if let Some(mut place) = self.places().find(|place| place.is_none()) {
            *place = Some(item);
        }
    }
}

/// The idle workers of one vocabulary.
#[derive(Debug, Default)]
pub struct Workers {
    idle: Idle<Box<Worker>>,
    /// For workers that left theirs behind.
    outputs: Idle<Output>,
    /// Workers that were lent.
    used: AtomicUsize,
    /// What all of them have learned; from the second one on.
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

impl<'a> Loan<'a> {
    /// Gives the worker back, but for its output.
    pub fn finish(mut self) -> Finished<'a> {
        Finished { output: std::mem::take(&mut self.out), home: self.home }
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        let Some(mut worker) = self.worker.take() else { return };
        // What a panic left behind is not used again.
        if std::thread::panicking() {
            return;
        }
        worker.out.clear_and_shrink();
        if worker.utf8.capacity() > MAX_IDLE_ROOM {
            worker.utf8 = Vec::new();
        }
        worker.scratch.shrink(MAX_IDLE_ROOM);
        worker.unknown.clear();
        worker.unknown.shrink(MAX_IDLE_ROOM);
        worker.probes.shrink(MAX_IDLE_ROOM);
        self.home.idle.put(worker);
    }
}

/// The ids that a worker left behind; their memory goes back when dropped.
#[derive(Debug)]
pub(crate) struct Finished<'a> {
    output: Output,
    home: &'a Workers,
}

impl Finished<'_> {
    /// The ids.
    pub fn ids(&self) -> &[u32] {
        self.output.ids()
    }
}

impl Drop for Finished<'_> {
    fn drop(&mut self) {
        let mut output = std::mem::take(&mut self.output);
        output.clear_and_shrink();
        if !output.ids.is_empty() {
            self.home.outputs.put(output);
        }
    }
}

impl Workers {
    /// Lends a worker.
    ///
    /// # Errors
    /// [`Error::Memory`] if a new one is needed and there is no room for it.
    pub(crate) fn lend(&self) -> Result<Loan<'_>, Error> {
        let mut worker = match self.idle.take() {
            Some(worker) => worker,
            None => Box::new(Worker::new()?),
        };
        if !worker.used {
            worker.used = true;
            self.used.fetch_add(1, Ordering::Relaxed);
        }
        if worker.out.ids.is_empty() {
            worker.out = self.outputs.take().unwrap_or_default();
        }
        Ok(Loan { worker: Some(worker), home: self })
    }

    /// Makes workers for so many threads, at most two and no more than a request may use, and brings in the memory with which
    /// they begin. If there is none, a request will say so.
    pub(crate) fn warm(&self, threads: usize) {
        let threads = threads.min(parallel::limit()).min(2);
        for _ in 0..threads {
            if let Ok(mut worker) = Worker::new() {
                worker.cache.touch();
                self.idle.put(Box::new(worker));
            }
        }
        if threads > 1 {
            let _ = self.shared_memory().map(Shared::bring_in);
        }
    }

    /// What all workers have learned, if there is more than one.
    #[inline]
    pub(crate) fn shared(&self) -> Option<&Shared> {
        if self.used.load(Ordering::Relaxed) < 2 {
            return None;
        }
        self.shared_memory()
    }

    /// Without memory for it, each learns for itself.
    #[inline]
    fn shared_memory(&self) -> Option<&Shared> {
        self.shared.get_or_init(|| Shared::new().ok()).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::num::to_u32;

    fn output(ids: &[u32]) -> Output {
        Output { ids: ids.to_vec(), len: ids.len() }
    }

    #[test]
    fn a_worker_is_free_again_while_somebody_has_its_ids() {
        let workers = Workers::default();
        let mut finished = Vec::new();
        for id in 0..2 * to_u32(MAX_IDLE) {
            let mut worker = workers.lend().unwrap();
            assert_eq!(worker.out.len(), 0);
            worker.out = output(&[id]);
            finished.push(worker.finish());
        }
        assert_eq!(workers.used.load(Ordering::Relaxed), 1);
        assert!(finished.iter().zip(0..).all(|(finished, id)| finished.ids() == [id]));
        drop(finished);
        // Memory that came back is used again, and there is not more of it than allowed.
        for id in 0..to_u32(MAX_IDLE) {
            assert_eq!(workers.outputs.take().unwrap().ids, [id]);
        }
        assert!(workers.outputs.take().is_none());
    }

    #[test]
    fn a_worker_that_kept_its_output_goes_on_with_it() {
        let workers = Workers::default();
        workers.lend().unwrap().out = output(&[1, 2]);
        workers.outputs.put(output(&[3]));
        let worker = workers.lend().unwrap();
        assert_eq!((worker.out.ids.len(), worker.out.len()), (2, 0));
    }

    #[test]
    fn a_place_that_stays_locked_is_passed_over() {
        let idle = Idle::default();
        idle.put(1);
        idle.put(2);
        let locked = idle.0[0].lock().unwrap();
        assert_eq!(idle.take(), Some(2));
        idle.put(3);
        assert_eq!((idle.take(), idle.take()), (Some(3), None));
        drop(locked);
        assert_eq!(idle.take(), Some(1));
        // Where all are taken, what comes is dropped.
        (0..2 * MAX_IDLE).for_each(|item| idle.put(item));
        assert_eq!(std::iter::from_fn(|| idle.take()).collect::<Vec<_>>(), (0..MAX_IDLE).collect::<Vec<_>>());
    }
}
