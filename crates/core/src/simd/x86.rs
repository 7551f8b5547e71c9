//! The planes on x86-64 with AVX2.

use std::arch::x86_64::{
    __m256i, _MM_HINT_T0, _mm_prefetch, _mm256_add_epi8, _mm256_cmpeq_epi8, _mm256_cmpgt_epi8, _mm256_loadu_si256,
    _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
};

use super::{Classify, Planes};

/// The witness that the processor has AVX2, BMI1 and BMI2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Avx2(());

impl Avx2 {
    /// Asks the processor.
    #[must_use]
    pub fn new() -> Option<Self> {
        let all =
            is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2");
        all.then_some(Avx2(()))
    }
}

impl Classify for Avx2 {
    #[inline(always)]
    fn planes(self, bytes: &[u8; 64]) -> Planes {
        // SAFETY: the witness `self` exists only on processors with AVX2.
        unsafe { planes(bytes) }
    }
}

/// Runs `task`, compiled for AVX2 and BMI.
///
/// # Safety
/// The processor has AVX2, BMI1 and BMI2.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn run<T: super::Task>(task: T) -> T::Output {
    task.run()
}

/// # Safety
/// The processor has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn planes(bytes: &[u8; 64]) -> Planes {
    // SAFETY: the array has 64 readable bytes, two unaligned loads of 32 stay inside.
    let (a, b) =
        unsafe { (_mm256_loadu_si256(bytes.as_ptr().cast()), _mm256_loadu_si256(bytes[32..].as_ptr().cast())) };
    let equal = |byte: u8| {
        let wanted = _mm256_set1_epi8(byte.cast_signed());
        (_mm256_cmpeq_epi8(a, wanted), _mm256_cmpeq_epi8(b, wanted))
    };
    // `first..=last`, by moving the range to the bottom of the signed numbers: one addition, one comparison.
    let range = |first: u8, last: u8| {
        let shift = _mm256_set1_epi8(0x80u8.wrapping_sub(first).cast_signed());
        let bound = _mm256_set1_epi8((0x80u8.wrapping_add(last - first + 1)).cast_signed());
        let below = |v: __m256i| _mm256_cmpgt_epi8(bound, _mm256_add_epi8(v, shift));
        (below(a), below(b))
    };
    let either = |x: (__m256i, __m256i), y: (__m256i, __m256i)| (_mm256_or_si256(x.0, y.0), _mm256_or_si256(x.1, y.1));
    let bits = |x: (__m256i, __m256i)| {
        let low = u64::from(_mm256_movemask_epi8(x.0).cast_unsigned());
        low | u64::from(_mm256_movemask_epi8(x.1).cast_unsigned()) << 32
    };
    let blank = equal(b' ');
    Planes {
        lower: bits(range(b'a', b'z')),
        upper: bits(range(b'A', b'Z')),
        digit: bits(range(b'0', b'9')),
        space: bits(either(blank, either(equal(b'\t'), range(0x0b, 0x0c)))),
        blank: bits(blank),
        newline: bits(either(equal(b'\n'), equal(b'\r'))),
        quote: bits(equal(b'\'')),
        non_ascii: bits((a, b)),
    }
}

/// See [`super::prefetch`].
#[inline(always)]
pub(super) fn prefetch<T>(value: &T) {
    // SAFETY: SSE is part of x86-64, and a prefetch of any address reads nothing and faults never.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) }
}
