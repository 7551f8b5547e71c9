//! Sixteen characters below U+10000 to UTF-8, on x86-64 with AVX2.
//!
//! Each character becomes a lane of its bytes, the first one lowest: two bytes wide if all are below U+0800, else four. A
//! shuffle, chosen by the lengths of the characters in half a register, takes the bytes that count: the method of the
//! library simdutf.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_loadu_si128, _mm_storeu_si128, _mm256_and_si256, _mm256_blendv_epi8, _mm256_castsi128_si256,
    _mm256_castsi256_ps, _mm256_castsi256_si128, _mm256_cmpeq_epi16, _mm256_cmpgt_epi16, _mm256_cmpgt_epi32,
    _mm256_cvtepu16_epi32, _mm256_extracti128_si256, _mm256_inserti128_si256, _mm256_loadu_si256, _mm256_movemask_epi8,
    _mm256_movemask_ps, _mm256_or_si256, _mm256_packs_epi16, _mm256_packus_epi16, _mm256_permute4x64_epi64,
    _mm256_set1_epi16, _mm256_set1_epi32, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_slli_epi16,
    _mm256_slli_epi32, _mm256_srli_epi16, _mm256_srli_epi32, _mm256_testz_si256,
};

use super::Avx2;
use crate::num::{ix, low_u8};
use crate::utf8::{BLOCK, BLOCK_BYTES, Narrow};

/// By a bit for each of eight characters, set if it is of one byte: which of two bytes each count.
static OF_TWO: [[u8; 16]; 256] = {
    let mut table = [[0x80; 16]; 256];
    let mut ones = 0;
    while ones < 256 {
        let (mut from, mut to) = (0, 0);
        while from < 16 {
            if from % 2 == 0 || ones >> (from / 2) & 1 == 0 {
                table[ones][to] = from as u8;
                to += 1;
            }
            from += 1;
        }
        ones += 1;
    }
    table
};

/// By two bits for each of four characters, whether it has a second byte (bits 0 to 3) and a third (4 to 7): which of four
/// bytes each count.
static OF_FOUR: [[u8; 16]; 256] = {
    let mut table = [[0x80; 16]; 256];
    let mut key = 0;
    while key < 256 {
        let (mut from, mut to) = (0, 0);
        while from < 16 {
            let character = from / 4;
            let (two, three) = (key >> character & 1, key >> (4 + character) & 1);
            if from % 4 <= two + three && from % 4 < 3 {
                table[key][to] = from as u8;
                to += 1;
            }
            from += 1;
        }
        key += 1;
    }
    table
};

impl Narrow for Avx2 {
    #[inline(always)]
    fn narrow(self, units: &[u16; BLOCK], room: &mut [u8; BLOCK_BYTES]) -> Option<usize> {
        // SAFETY: the witness `self` exists only on processors with AVX2.
        unsafe { narrow(units, room) }
    }
}

#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn narrow(units: &[u16; BLOCK], room: &mut [u8; BLOCK_BYTES]) -> Option<usize> {
    // SAFETY: a load of 32 bytes, which needs no alignment, is the array.
    let units = unsafe { _mm256_loadu_si256(units.as_ptr().cast()) };
    if _mm256_testz_si256(units, all(0xff80)) != 0 {
        let halves = _mm256_packus_epi16(units, units);
        store(_mm256_castsi256_si128(_mm256_permute4x64_epi64::<0b1000>(halves)), room, 0);
        return Some(BLOCK);
    }
    if _mm256_testz_si256(units, all(0xf800)) != 0 {
        return Some(of_two(units, room));
    }
    let surrogates = _mm256_cmpeq_epi16(_mm256_and_si256(units, all(0xf800)), all(0xd800));
    if _mm256_testz_si256(surrogates, surrogates) == 0 {
        return None;
    }
    let written = of_three(_mm256_castsi256_si128(units), room, 0);
    Some(of_three(_mm256_extracti128_si256::<1>(units), room, written))
}

/// Sixteen characters below U+0800.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn of_two(units: __m256i, room: &mut [u8; BLOCK_BYTES]) -> usize {
    let first = _mm256_or_si256(_mm256_srli_epi16::<6>(units), all(0xc0));
    let second = _mm256_or_si256(_mm256_and_si256(units, all(0x3f)), all(0x80));
    let one = _mm256_cmpgt_epi16(all(0x80), units);
    let bytes = _mm256_blendv_epi8(_mm256_or_si256(first, _mm256_slli_epi16::<8>(second)), units, one);
    let ones = _mm256_movemask_epi8(_mm256_packs_epi16(one, _mm256_setzero_si256())).cast_unsigned();
    let (low, high) = (low_u8(ones & 0xff), low_u8(ones >> 16 & 0xff));
    let bytes = _mm256_shuffle_epi8(bytes, two_rows(&OF_TWO, low, high));
    store(_mm256_castsi256_si128(bytes), room, 0);
    let written = 16 - ix(low.count_ones());
    store(_mm256_extracti128_si256::<1>(bytes), room, written);
    written + 16 - ix(high.count_ones())
}

/// Eight characters, none of them a surrogate, to `room[at..]`; where they end there.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn of_three(units: __m128i, room: &mut [u8; BLOCK_BYTES], at: usize) -> usize {
    let units = _mm256_cvtepu16_epi32(units);
    let low_six = _mm256_set1_epi32(0x3f);
    let six_of = |bits: __m256i| _mm256_or_si256(_mm256_and_si256(bits, low_six), _mm256_set1_epi32(0x80));
    let last = six_of(units);
    let middle = _mm256_srli_epi32::<6>(units);
    let two = _mm256_or_si256(_mm256_or_si256(middle, _mm256_set1_epi32(0xc0)), _mm256_slli_epi32::<8>(last));
    let three = _mm256_or_si256(
        _mm256_or_si256(_mm256_srli_epi32::<12>(units), _mm256_set1_epi32(0xe0)),
        _mm256_or_si256(_mm256_slli_epi32::<8>(six_of(middle)), _mm256_slli_epi32::<16>(last)),
    );
    let has_two = _mm256_cmpgt_epi32(units, _mm256_set1_epi32(0x7f));
    let has_three = _mm256_cmpgt_epi32(units, _mm256_set1_epi32(0x7ff));
    let bytes = _mm256_blendv_epi8(_mm256_blendv_epi8(units, two, has_two), three, has_three);
    let (twos, threes) = (lanes(has_two), lanes(has_three));
    let (low, high) = (twos & 0x0f | threes << 4, twos >> 4 | threes & 0xf0);
    let bytes = _mm256_shuffle_epi8(bytes, two_rows(&OF_FOUR, low, high));
    store(_mm256_castsi256_si128(bytes), room, at);
    let at = at + 4 + ix(low.count_ones());
    store(_mm256_extracti128_si256::<1>(bytes), room, at);
    at + 4 + ix(high.count_ones())
}

/// One bit for each of eight lanes that are all ones or all zeros.
#[inline]
#[target_feature(enable = "avx2")]
fn lanes(x: __m256i) -> u8 {
    low_u8(_mm256_movemask_ps(_mm256_castsi256_ps(x)).cast_unsigned())
}

#[inline]
#[target_feature(enable = "avx2")]
fn all(unit: u16) -> __m256i {
    _mm256_set1_epi16(unit.cast_signed())
}

/// Two rows of a table, side by side.
#[inline]
#[target_feature(enable = "avx2")]
fn two_rows(table: &[[u8; 16]; 256], low: u8, high: u8) -> __m256i {
    // SAFETY: a load of 16 bytes, which needs no alignment, is the row.
    let row = |at: u8| unsafe { _mm_loadu_si128(table[usize::from(at)].as_ptr().cast()) };
    _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(row(low)), row(high))
}

/// Stores 16 bytes at `room[at..]`.
#[inline]
#[target_feature(enable = "avx2")]
fn store(bytes: __m128i, room: &mut [u8; BLOCK_BYTES], at: usize) {
    let place: &mut [u8; 16] = room[at..].first_chunk_mut().expect("16 bytes of room");
    // SAFETY: a store of 16 bytes, which needs no alignment, is the array.
    unsafe { _mm_storeu_si128(place.as_mut_ptr().cast(), bytes) }
}
