//! Ids in memory that grows at its end and never changes before it, so that many may look at it while it grows.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, reserve};

type Slot = UnsafeCell<MaybeUninit<u32>>;

/// Memory for ids. Those before `len` are taken: written once, by whoever took them, and never again.
#[derive(Debug)]
struct Buffer {
    slots: Box<[Slot]>,
    len: AtomicUsize,
}

// SAFETY: a slot is written only by the one who took it (`Ids::append`), before anybody else can know of it: an `Ids` that
// reaches over it is made afterwards, and handed to other threads by means that order the two.
unsafe impl Sync for Buffer {}

/// The first ids of a buffer. They never change; copies share the memory.
#[derive(Debug, Clone)]
pub struct Ids {
    buffer: Arc<Buffer>,
    /// All slots before this one are written.
    len: usize,
}

impl Deref for Ids {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        // SAFETY: slots before `len` lie in the buffer, are written, and are not written again while `self` lives.
        unsafe { std::slice::from_raw_parts(self.buffer.slots.as_ptr().cast(), self.len) }
    }
}

impl Ids {
    /// None yet, with room for so many.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn with_capacity(capacity: usize) -> Result<Self, Error> {
        let mut slots: Vec<Slot> = Vec::new();
        reserve(&mut slots, capacity)?;
        // SAFETY: there is room for so many, and a slot need not hold anything. What is not used is never touched, so the
        // system need not give memory for it.
        unsafe { slots.set_len(capacity) };
        // Ids come a few at a time: a page of 4 KB for each thousand of them takes as long as many are encoded in.
        crate::table::in_huge_pages(&mut slots);
        Ok(Ids { buffer: Arc::new(Buffer { slots: slots.into_boxed_slice(), len: AtomicUsize::new(0) }), len: 0 })
    }

    /// For how many there is room.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.buffer.slots.len()
    }

    /// The first `len` of them.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub fn first(&self, len: usize) -> Self {
        assert!(len <= self.len, "no more than there are");
        Ids { buffer: self.buffer.clone(), len }
    }

    /// Whether both are in the same memory, so that they begin with the same ids.
    #[must_use]
    pub fn shares_memory(&self, other: &Ids) -> bool {
        Arc::ptr_eq(&self.buffer, &other.buffer)
    }

    /// A number that tells its memory from all other that exists.
    #[must_use]
    pub fn memory(&self) -> usize {
        Arc::as_ptr(&self.buffer).addr()
    }

    /// Whether nobody has put ids behind them.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.buffer.len.load(Ordering::Relaxed) == self.len
    }

    /// The same with the ids of `parts` behind them, `n` in all, in the same memory. None if there is no room, or if
    /// others are behind them already, unless `n` is 0.
    ///
    /// # Panics
    /// If `parts` has not `n` ids; of no ids, none is looked at.
    pub fn append<'p>(&self, n: usize, parts: impl IntoIterator<Item = &'p [u32]>) -> Option<Self> {
        if n == 0 {
            return Some(self.clone());
        }
        let end = self.len.checked_add(n).filter(|&end| end <= self.capacity())?;
        // To know of ids is to have been handed them: nothing else needs to be ordered by this.
        self.buffer.len.compare_exchange(self.len, end, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        // SAFETY: the slots lie in the buffer, and are ours alone: nobody takes them a second time, and no `Ids` reaches
        // over them until this one is returned. `UnsafeCell<MaybeUninit<u32>>` has the layout of `MaybeUninit<u32>`.
        let mut slots: &mut [MaybeUninit<u32>] = unsafe {
            let first = self.buffer.slots[self.len..end].as_ptr();
            std::slice::from_raw_parts_mut(UnsafeCell::raw_get(first), n)
        };
        for part in parts {
            let (these, rest) = slots.split_at_mut(part.len());
            these.write_copy_of_slice(part);
            slots = rest;
        }
        assert!(slots.is_empty(), "as many ids as were said");
        Some(Ids { buffer: self.buffer.clone(), len: end })
    }

    /// Cuts it to `len` ids, so that others may come behind them; whether nobody else looks at the memory, so that this
    /// can be.
    pub fn truncate(&mut self, len: usize) -> bool {
        assert!(len <= self.len, "no more than there are");
        let Some(buffer) = Arc::get_mut(&mut self.buffer) else { return false };
        *buffer.len.get_mut() = len;
        self.len = len;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ids: &[u32], capacity: usize) -> Ids {
        Ids::with_capacity(capacity).unwrap().append(ids.len(), [ids]).unwrap()
    }

    #[test]
    fn what_is_there_stays_while_it_grows() {
        let one = of(&[1, 2], 5);
        let two = one.append(2, [&[3][..], &[], &[4]]).unwrap();
        assert_eq!((&one[..], &two[..]), (&[1, 2][..], &[1, 2, 3, 4][..]));
        assert!(one.shares_memory(&two) && !one.shares_memory(&of(&[1, 2], 5)));
        // Taken, or too many.
        assert!(one.append(1, [&[9][..]]).is_none());
        assert!(two.append(2, [&[9, 9][..]]).is_none());
        assert!(two.append(usize::MAX, []).is_none());
        let three = two.append(1, [&[5][..]]).unwrap();
        assert_eq!((&two[..], &three[..], &two.first(1)[..]), (&[1, 2, 3, 4][..], &[1, 2, 3, 4, 5][..], &[1][..]));
        assert_eq!(three.append(0, []).unwrap().len(), 5);
        // Others are behind these, but none is to come.
        assert!(one.append(0, []).unwrap().shares_memory(&one));
    }

    #[test]
    fn it_is_cut_only_where_nobody_looks() {
        let mut ids = of(&[1, 2, 3], 4);
        let other = ids.first(3);
        assert!(!ids.truncate(1));
        drop(other);
        assert!(ids.truncate(1));
        let longer = ids.append(3, [&[7, 8, 9][..]]).unwrap();
        assert_eq!(longer[..], [1, 7, 8, 9]);
    }

    #[test]
    #[should_panic(expected = "as many ids as were said")]
    fn a_wrong_number_is_no_unwritten_id() {
        let _ = of(&[1], 4).append(2, [&[2][..]]);
    }

    #[test]
    fn of_many_who_append_one_does() {
        let ids = of(&[0], 100);
        let won: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (1..5)
                .map(|n| {
                    scope.spawn({
                        let ids = &ids;
                        move || ids.append(2, [&[n, n][..]])
                    })
                })
                .collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(won.len(), 1);
        assert!(won[0].len() == 3 && won[0][1] == won[0][2]);
    }
}
