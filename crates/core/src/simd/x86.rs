//! The planes on x86-64 with AVX2.
//!
//! Characters from U+0080 on: their classes lie in pages of 64, which share all bytes but the last. The pages that occur
//! in a window are few, so each is looked up once for all its characters: a comparison of the bytes before the last,
//! and a look-up of the last in the 64 classes of the page. Han, kana and Hangul, each of one class, are ranges.

use std::arch::asm;
use std::arch::x86_64::{
    __m256i, _MM_HINT_T0, _mm_cvtsi32_si128, _mm_loadu_si128, _mm_prefetch, _mm256_add_epi8, _mm256_alignr_epi8,
    _mm256_and_si256, _mm256_andnot_si256, _mm256_blendv_epi8, _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8,
    _mm256_cmpgt_epi8, _mm256_extract_epi8, _mm256_loadu_si256, _mm256_max_epu8, _mm256_min_epu8, _mm256_movemask_epi8,
    _mm256_or_si256, _mm256_permute2x128_si256, _mm256_set1_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8,
    _mm256_slli_epi16, _mm256_testz_si256, _mm256_zextsi128_si256,
};

use super::classes::{BITS_OF, HANGUL_PAGES};
use super::{Classify, Planes, WINDOW};
use crate::num::ix;
use crate::unicode::{CASELESS, HAN_LETTER, PAGE, page};

/// The witness that the processor has AVX2, BMI1, BMI2, LZCNT and POPCNT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Avx2(());

impl Avx2 {
    /// Asks the processor.
    #[must_use]
    pub fn new() -> Option<Self> {
        let all = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        all.then_some(Avx2(()))
    }
}

impl Classify for Avx2 {
    #[inline(always)]
    fn ascii(self, bytes: &[u8; 64]) -> Planes {
        // SAFETY: the witness `self` exists only on processors with AVX2.
        unsafe { ascii(bytes) }
    }

    #[inline(always)]
    fn characters(self, window: &[u8; WINDOW], before: u8, planes: &mut Planes) -> u8 {
        // SAFETY: the witness `self` exists only on processors with AVX2.
        unsafe { characters(window, before, planes) }
    }

    #[inline(always)]
    fn range(self, bytes: &[u8; 64], low: u8, high: u8) -> u64 {
        // SAFETY: the witness `self` exists only on processors with AVX2.
        unsafe { range_of(bytes, low, high) }
    }
}

/// Runs `task`, compiled for AVX2 and what comes with it: to be called where a witness exists.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn run<T: super::Task>(task: T) -> T::Output {
    task.run()
}

/// 64 bytes: the first 32 and the others.
type Pair = (__m256i, __m256i);

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; 64]) -> Pair {
    let first = bytes.as_ptr();
    // SAFETY: two loads of 32 bytes, which need no alignment, are the 64 of the array.
    unsafe { (_mm256_loadu_si256(first.cast()), _mm256_loadu_si256(first.add(32).cast())) }
}

/// The 64 bytes from `OFFSET` on.
#[inline]
#[target_feature(enable = "avx2")]
fn load_from<const OFFSET: usize>(window: &[u8; WINDOW]) -> Pair {
    load(window[OFFSET..].first_chunk().expect("three bytes more than 64"))
}

/// 16 bytes, twice.
#[inline]
#[target_feature(enable = "avx2")]
fn twice(bytes: &[u8; 16]) -> __m256i {
    // SAFETY: a load of 16 bytes, which needs no alignment, is the array.
    unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(bytes.as_ptr().cast())) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn all(byte: u8) -> Pair {
    let bytes = _mm256_set1_epi8(byte.cast_signed());
    (bytes, bytes)
}

/// The top bit of each byte.
#[inline]
#[target_feature(enable = "avx2")]
fn bits(x: Pair) -> u64 {
    let low = u64::from(_mm256_movemask_epi8(x.0).cast_unsigned());
    let mut bits = low | u64::from(_mm256_movemask_epi8(x.1).cast_unsigned()) << 32;
    // The compiler would carry the vector over branches instead of the bits, and take its bytes apart one by one.
    // SAFETY: no instruction at all.
    unsafe { asm!("/* {0} */", inout(reg) bits, options(pure, nomem, nostack, preserves_flags)) };
    bits
}

#[inline]
#[target_feature(enable = "avx2")]
fn equal(x: Pair, byte: u8) -> Pair {
    let wanted = _mm256_set1_epi8(byte.cast_signed());
    (_mm256_cmpeq_epi8(x.0, wanted), _mm256_cmpeq_epi8(x.1, wanted))
}

#[inline]
#[target_feature(enable = "avx2")]
fn at_least(x: Pair, byte: u8) -> Pair {
    let bound = _mm256_set1_epi8(byte.cast_signed());
    (_mm256_cmpeq_epi8(_mm256_max_epu8(x.0, bound), x.0), _mm256_cmpeq_epi8(_mm256_max_epu8(x.1, bound), x.1))
}

#[inline]
#[target_feature(enable = "avx2")]
fn at_most(x: Pair, byte: u8) -> Pair {
    let bound = _mm256_set1_epi8(byte.cast_signed());
    (_mm256_cmpeq_epi8(_mm256_min_epu8(x.0, bound), x.0), _mm256_cmpeq_epi8(_mm256_min_epu8(x.1, bound), x.1))
}

/// `first..=last`, by moving the range to the bottom of the signed numbers: one addition, one comparison.
#[inline]
#[target_feature(enable = "avx2")]
fn range(x: Pair, first: u8, last: u8) -> Pair {
    let shift = _mm256_set1_epi8(0x80u8.wrapping_sub(first).cast_signed());
    let bound = _mm256_set1_epi8((0x80u8.wrapping_add(last - first + 1)).cast_signed());
    (_mm256_cmpgt_epi8(bound, _mm256_add_epi8(x.0, shift)), _mm256_cmpgt_epi8(bound, _mm256_add_epi8(x.1, shift)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn both(x: Pair, y: Pair) -> Pair {
    (_mm256_and_si256(x.0, y.0), _mm256_and_si256(x.1, y.1))
}

#[inline]
#[target_feature(enable = "avx2")]
fn either(x: Pair, y: Pair) -> Pair {
    (_mm256_or_si256(x.0, y.0), _mm256_or_si256(x.1, y.1))
}

#[inline]
#[target_feature(enable = "avx2")]
fn range_of(bytes: &[u8; 64], low: u8, high: u8) -> u64 {
    bits(range(load(bytes), low, high))
}

#[inline]
#[target_feature(enable = "avx2")]
fn ascii(bytes: &[u8; 64]) -> Planes {
    let v = load(bytes);
    let blank = equal(v, b' ');
    Planes {
        lower: bits(range(v, b'a', b'z')),
        upper: bits(range(v, b'A', b'Z')),
        number: bits(range(v, b'0', b'9')),
        space: bits(either(blank, either(equal(v, b'\t'), range(v, 0x0b, 0x0c)))),
        blank: bits(blank),
        newline: bits(either(equal(v, b'\n'), equal(v, b'\r'))),
        quote: bits(equal(v, b'\'')),
        non_ascii: bits(v),
        ..Planes::default()
    }
}

/// See [`super::prefetch`].
#[inline(always)]
pub(super) fn prefetch<T>(value: &T) {
    // SAFETY: SSE is part of x86-64, and a prefetch of any address reads nothing and faults never.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) }
}

/// `x` where `y` is not.
#[inline]
#[target_feature(enable = "avx2")]
fn but(x: Pair, y: Pair) -> Pair {
    (_mm256_andnot_si256(y.0, x.0), _mm256_andnot_si256(y.1, x.1))
}

#[inline]
#[target_feature(enable = "avx2")]
fn characters(window: &[u8; WINDOW], before: u8, planes: &mut Planes) -> u8 {
    let first = load_from::<0>(window);
    // As signed numbers, bytes inside a character are the lowest.
    let inner = _mm256_set1_epi8(0xc0u8.cast_signed());
    planes.tail = bits((_mm256_cmpgt_epi8(inner, first.0), _mm256_cmpgt_epi8(inner, first.1)));
    let second = load_from::<1>(window);
    let mut classes = (_mm256_setzero_si256(), _mm256_setzero_si256());
    let mut rest = planes.non_ascii & !planes.tail;
    if bits(range(first, 0xe3, 0xe9)) != 0 {
        let third = load_from::<2>(window);
        let han = either(range(first, 0xe5, 0xe9), both(equal(first, 0xe4), at_least(second, 0xb8)));
        let (second_82, second_83) = (equal(second, 0x82), equal(second, 0x83));
        let none = either(
            both(equal(second, 0x81), equal(third, 0x80)),
            either(
                both(second_82, either(range(third, 0x97, 0x9c), equal(third, 0xa0))),
                both(second_83, equal(third, 0xbb)),
            ),
        );
        let kana = but(both(equal(first, 0xe3), range(second, 0x81, 0x83)), none);
        classes = either(both(han, all(HAN_LETTER)), both(kana, all(CASELESS)));
        rest &= !bits(either(han, kana));
    }
    while rest != 0 {
        let at = ix(rest.trailing_zeros());
        let (lead, next) = (window[at], window[at + 1]);
        let (members, found);
        if lead < 0xe0 {
            members = equal(first, lead);
            found = look_up(page(u32::from(lead & 0x1f)), second);
        } else if lead < 0xf0 {
            let number = u32::from(lead & 0x0f) << 6 | u32::from(next & 0x3f);
            if HANGUL_PAGES.contains(&number) {
                let (low, high) = (both(equal(first, 0xea), at_least(second, 0xb0)), at_most(second, 0x9d));
                members = either(range(first, 0xeb, 0xec), either(low, both(equal(first, 0xed), high)));
                found = all(CASELESS);
            } else {
                members = both(equal(first, lead), equal(second, next));
                found = look_up(page(number), load_from::<2>(window));
            }
        } else {
            let third = window[at + 2];
            let number = u32::from(lead & 0x07) << 12 | u32::from(next & 0x3f) << 6 | u32::from(third & 0x3f);
            members = both(both(equal(first, lead), equal(second, next)), equal(load_from::<2>(window), third));
            found = look_up(page(number), load_from::<3>(window));
        }
        classes = either(classes, both(members, found));
        rest &= rest - 1;
        rest &= !bits(members);
    }
    // To the other bytes of each character: classes lie on first bytes so far.
    let mut spread = either(classes, shifted::<15>(classes));
    let long = at_least(first, 0xe0);
    if bits(long) != 0 {
        spread = either(spread, shifted::<14>(both(classes, long)));
        spread = either(spread, shifted::<13>(both(classes, at_least(first, 0xf0))));
    }
    // And to those whose first byte is in the window before: three at most.
    let tail = (!planes.tail).trailing_zeros().min(3);
    let carried = (u32::from(before) * 0x01_0101) & ((1 << (8 * tail)) - 1);
    spread.0 = _mm256_or_si256(spread.0, _mm256_zextsi128_si256(_mm_cvtsi32_si128(carried.cast_signed())));

    let bits_of = twice(&BITS_OF);
    let found = (_mm256_shuffle_epi8(bits_of, spread.0), _mm256_shuffle_epi8(bits_of, spread.1));
    // Most words have characters of one or two of these groups.
    if any(found, 0xc0) {
        planes.lower |= bits(found);
        planes.upper |= bits(at_top::<1>(found));
    }
    if any(found, 0x30) {
        planes.shared = bits(at_top::<2>(found));
        planes.mark = bits(at_top::<3>(found));
    }
    if any(found, 0x0c) {
        planes.number |= bits(at_top::<4>(found));
        planes.space |= bits(at_top::<5>(found));
    }
    if any(found, 0x03) {
        planes.han = bits(at_top::<6>(found));
        planes.han_other = bits(at_top::<7>(found));
    }
    crate::num::low_u8(_mm256_extract_epi8::<31>(spread.1).cast_unsigned())
}

/// True if a byte has one of the bits of `mask`.
#[inline]
#[target_feature(enable = "avx2")]
fn any(x: Pair, mask: u8) -> bool {
    _mm256_testz_si256(_mm256_or_si256(x.0, x.1), _mm256_set1_epi8(mask.cast_signed())) == 0
}

/// Bit `7 - TIMES` of each byte at the top.
#[inline]
#[target_feature(enable = "avx2")]
fn at_top<const TIMES: i32>(x: Pair) -> Pair {
    (_mm256_slli_epi16::<TIMES>(x.0), _mm256_slli_epi16::<TIMES>(x.1))
}

/// The class in `page` of each byte, which is the last of a character.
#[inline]
#[target_feature(enable = "avx2")]
fn look_up(page: &[u8; PAGE], last: Pair) -> Pair {
    let [a, b, c, d] = page.as_chunks().0 else { unreachable!("four times 16") };
    let [a, b, c, d] = [twice(a), twice(b), twice(c), twice(d)];
    let low = _mm256_set1_epi8(0x3f);
    let one = |last: __m256i| {
        // A shuffle takes the low four bits, if the top one is not set; bits 4 and 5 choose among the quarters.
        let last = _mm256_and_si256(last, low);
        let (bit4, bit5) = (_mm256_slli_epi16::<3>(last), _mm256_slli_epi16::<2>(last));
        let ab = _mm256_blendv_epi8(_mm256_shuffle_epi8(a, last), _mm256_shuffle_epi8(b, last), bit4);
        let cd = _mm256_blendv_epi8(_mm256_shuffle_epi8(c, last), _mm256_shuffle_epi8(d, last), bit4);
        _mm256_blendv_epi8(ab, cd, bit5)
    };
    (one(last.0), one(last.1))
}

/// The 64 bytes `16 - KEEP` places further on, with zeros before.
#[inline]
#[target_feature(enable = "avx2")]
fn shifted<const KEEP: i32>(x: Pair) -> Pair {
    let (low, high) = (_mm256_permute2x128_si256::<0x08>(x.0, x.0), _mm256_permute2x128_si256::<0x21>(x.0, x.1));
    (_mm256_alignr_epi8::<KEEP>(x.0, low), _mm256_alignr_epi8::<KEEP>(x.1, high))
}
