//! Read-only arrays that either belong to a [`crate::Tables`] or lie in a static image.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapMut;

use crate::error::Error;

/// Size of a huge page on x86-64, and on AArch64 with pages of 4 KB.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// Size of a page, at least nearly everywhere.
const PAGE: usize = 4 << 10;

/// A read-only array, owned or static.
pub type Table<T> = Cow<'static, [T]>;

/// Zeros that become memory when they are touched, in huge pages where the system has them: then a page of 2 MB costs
/// a seventh of what 512 of 4 KB cost.
#[derive(Debug)]
pub struct Zeros {
    map: MmapMut,
    /// Where the first huge page begins.
    start: usize,
    len: usize,
}

impl Zeros {
    /// `len` bytes of zeros.
    ///
    /// # Errors
    /// [`Error::Memory`] if there is no address space for them.
    pub fn new(len: usize) -> Result<Self, Error> {
        let map = MmapMut::map_anon(len + HUGE_PAGE).map_err(|_| Error::Memory { bytes: len })?;
        let start = map.as_ptr().align_offset(HUGE_PAGE);
        // Only advice: without it, all is as it was.
        #[cfg(target_os = "linux")]
        let _ = map.advise_range(memmap2::Advice::HugePage, start, len);
        Ok(Zeros { map, start, len })
    }

    /// Has all of it brought in. No view of it may be in use, as for all that goes by [`Zeros::words`].
    pub fn bring_in(&self) {
        self.bring_in_part(0..self.len);
    }

    /// The same for a range of bytes.
    pub fn bring_in_part(&self, range: Range<usize>) {
        const WORD: usize = size_of::<AtomicU64>();
        let words = &self.words()[range.start / WORD..range.end / WORD];
        for word in words.iter().step_by(PAGE / WORD) {
            // A write that changes nothing, whatever is there. (What adds zero may become a mere read.)
            let _ = word.compare_exchange(0, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// The bytes of `range` as values, as many as fit.
    #[inline(always)]
    #[must_use]
    pub fn view<T: Plain>(&self, range: Range<usize>) -> &[T] {
        let bytes = &self.map[self.start..self.start + self.len][range];
        // SAFETY: every bit pattern is valid for a plain type; alignment is taken care of.
        unsafe { bytes.align_to().1 }
    }

    /// All of it as words that several threads may change at the same time.
    #[inline(always)]
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        let start = self.map.as_ptr().wrapping_add(self.start);
        // SAFETY: `new` has `len` bytes from `start` on, which is at a huge page, hence aligned; every bit pattern is valid.
        // The memory may be written through a shared reference: it is reached by a raw pointer, and other views
        // for writing need the whole borrowed.
        unsafe { std::slice::from_raw_parts(start.cast(), self.len / size_of::<AtomicU64>()) }
    }

    /// All bytes as values of one type before `at`, and of another from there on.
    #[inline(always)]
    #[must_use]
    pub fn split<A: Plain, B: Plain>(&mut self, at: usize) -> (&mut [A], &mut [B]) {
        let (a, b) = self.map[self.start..self.start + self.len].split_at_mut(at);
        // SAFETY: as above; and a plain type has no padding that could be written to the bytes.
        unsafe { (a.align_to_mut().1, b.align_to_mut().1) }
    }

    /// The same for writing.
    #[inline(always)]
    pub fn view_mut<T: Plain>(&mut self, range: Range<usize>) -> &mut [T] {
        let bytes = &mut self.map[self.start..self.start + self.len][range];
        // SAFETY: as above; and a plain type has no padding that could be written to the bytes.
        unsafe { bytes.align_to_mut().1 }
    }
}

/// Asks for huge pages under memory that is not in use yet, if it is large. Only advice: without it, all is as it was.
pub(crate) fn in_huge_pages<T>(memory: &mut [T]) {
    #[cfg(target_os = "linux")]
    if size_of_val(memory) >= 2 * HUGE_PAGE {
        let start = memory.as_mut_ptr().cast::<u8>();
        let skip = start.align_offset(HUGE_PAGE);
        let len = (size_of_val(memory) - skip) / HUGE_PAGE * HUGE_PAGE;
        // SAFETY: the range is one of whole pages that lie in the memory, and this advice changes nothing of what they hold.
        unsafe { libc::madvise(start.add(skip).cast(), len, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

/// Reads a value of every page, so that none is brought in later, in the midst of work.
pub(crate) fn touch<T: Plain>(table: &[T]) {
    for value in table.iter().step_by((PAGE / size_of::<T>()).max(1)) {
        std::hint::black_box(*value);
    }
}

/// Types whose arrays may be read from and written to an image byte for byte.
///
/// # Safety
/// Implementors have no padding, no invalid bit patterns and no interior pointers, and their
/// alignment is at most [`crate::image::ALIGN`].
pub unsafe trait Plain: Copy + 'static {}

// SAFETY: primitive integers, and arrays of them, have no padding and accept every bit pattern.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
