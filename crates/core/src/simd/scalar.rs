//! The planes by plain code: the twin that all other forms are compared with, and the form of processors without one.

use super::{Classify, Planes, WINDOW};
use crate::unicode::{
    CASELESS, HAN_LETTER, HAN_NUMBER, HAN_OTHER, LOWER, MARK, NUMBER, OTHER, SPACE, UPPER, class_of, decode_at,
};

/// Plain code.
#[derive(Debug, Clone, Copy)]
pub struct Scalar;

/// The bytes that pass a test.
#[inline(always)]
fn plane(bytes: &[u8; 64], test: impl Fn(u8) -> bool) -> u64 {
    // Eight bytes a step give eight bits; the compiler turns the comparisons into vectors where the target has any.
    let mut bits = 0u64;
    for (i, chunk) in (0u32..).zip(bytes.chunks_exact(8)) {
        let mut byte = 0u64;
        for (j, &b) in (0u32..).zip(chunk) {
            byte |= u64::from(test(b)) << j;
        }
        bits |= byte << (8 * i);
    }
    bits
}

impl Classify for Scalar {
    #[inline(always)]
    fn ascii(self, bytes: &[u8; 64]) -> Planes {
        let plane = |test: fn(u8) -> bool| plane(bytes, test);
        Planes {
            lower: plane(|b| b.is_ascii_lowercase()),
            upper: plane(|b| b.is_ascii_uppercase()),
            number: plane(|b| b.is_ascii_digit()),
            space: plane(|b| matches!(b, b' ' | b'\t' | 0x0b | 0x0c)),
            blank: plane(|b| b == b' '),
            newline: plane(|b| matches!(b, b'\r' | b'\n')),
            quote: plane(|b| b == b'\''),
            non_ascii: plane(|b| b >= 0x80),
            ..Planes::default()
        }
    }

    #[inline(always)]
    fn characters(self, window: &[u8; WINDOW], before: u8, planes: &mut Planes) -> u8 {
        let mut class = before;
        let mut rest = planes.non_ascii;
        while rest != 0 {
            let i = rest.trailing_zeros();
            let bit = 1u64 << i;
            rest &= rest - 1;
            let at = crate::num::ix(i);
            if window[at] < 0xc0 {
                planes.tail |= bit;
            } else {
                class = class_of(decode_at(window, at).0);
            }
            add(planes, class, bit);
        }
        if planes.non_ascii >> 63 == 1 { class } else { OTHER }
    }

    #[inline(always)]
    fn range(self, bytes: &[u8; 64], low: u8, high: u8) -> u64 {
        plane(bytes, |byte| (low..=high).contains(&byte))
    }
}

/// Sets `bits` in the planes of `class`.
#[inline(always)]
fn add(planes: &mut Planes, class: u8, bits: u64) {
    match class {
        LOWER => planes.lower |= bits,
        UPPER => planes.upper |= bits,
        CASELESS => planes.shared |= bits,
        MARK => {
            planes.shared |= bits;
            planes.mark |= bits;
        }
        NUMBER => planes.number |= bits,
        SPACE => planes.space |= bits,
        HAN_LETTER => planes.han |= bits,
        HAN_NUMBER => {
            planes.han |= bits;
            planes.number |= bits;
        }
        HAN_OTHER => {
            planes.han |= bits;
            planes.han_other |= bits;
        }
        _ => {}
    }
}
