//! Read-only arrays that either belong to a [`crate::Tables`] or lie in a static image.

use std::borrow::Cow;

/// A read-only array, owned or static.
pub type Table<T> = Cow<'static, [T]>;

/// `len` zeros, from pages that the system hands out when they are touched.
#[must_use]
pub fn zeroed<T: Plain>(len: usize) -> Box<[T]> {
    // SAFETY: every bit pattern of a plain type is valid, zero too.
    unsafe { Box::new_zeroed_slice(len).assume_init() }
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
