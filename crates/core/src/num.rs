//! Integer width changes, in one place.
//!
//! Everything indexed here is smaller than 2^32: token ids, ranks, and byte offsets inside one
//! piece of text. Sizes that come from a caller go through [`to_u32`], which checks.

/// A `u32` as an index. Lossless: `usize` has at least 32 bits on every target we build for.
#[inline(always)]
#[must_use]
pub fn ix(value: u32) -> usize {
    value as usize
}

/// A length or offset as `u32`.
///
/// # Panics
/// Above `u32::MAX`. Callers bound their input first (`Tokenizer` refuses longer segments).
#[inline(always)]
#[must_use]
pub fn to_u32(value: usize) -> u32 {
    u32::try_from(value).expect("offset below 2^32")
}

/// The low 32 bits; for values that were packed from 32 bits before.
#[inline(always)]
#[must_use]
#[allow(clippy::cast_possible_truncation)]
pub fn low_u32(value: u64) -> u32 {
    value as u32
}

/// The low byte; for values that are known to be below 256.
#[inline(always)]
#[must_use]
#[allow(clippy::cast_possible_truncation)]
pub fn low_u8(value: u32) -> u8 {
    value as u8
}

/// The low 16 bits; for values that are known to be below 65,536.
#[inline(always)]
#[must_use]
#[allow(clippy::cast_possible_truncation)]
pub fn low_u16(value: u32) -> u16 {
    value as u16
}

/// The top `bits` bits of a hash, as an index; `bits` is 1 to 31.
#[inline(always)]
#[must_use]
pub fn high_bits(hash: u64, bits: u32) -> usize {
    ix(low_u32(hash >> (64 - bits)))
}

/// `floor(hash * n / 2^64)`: maps a 64-bit hash to `0..n` without a division.
#[inline(always)]
#[must_use]
#[allow(clippy::cast_possible_truncation)]
pub fn fast_range(hash: u64, n: usize) -> usize {
    ((u128::from(hash) * n as u128) >> 64) as usize
}
