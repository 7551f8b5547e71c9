//! The planes by plain code: the twin that all other forms are compared with, and the form of processors without one.

use super::{Classify, Planes};

/// Plain code.
#[derive(Debug, Clone, Copy)]
pub struct Scalar;

impl Classify for Scalar {
    #[inline(always)]
    fn planes(self, bytes: &[u8; 64]) -> Planes {
        // Eight bytes a step give eight bits of each plane; the compiler turns the comparisons into vectors where
        // the target has any.
        let plane = |test: fn(u8) -> bool| {
            let mut bits = 0u64;
            for (i, chunk) in (0u32..).zip(bytes.chunks_exact(8)) {
                let mut byte = 0u64;
                for (j, &b) in (0u32..).zip(chunk) {
                    byte |= u64::from(test(b)) << j;
                }
                bits |= byte << (8 * i);
            }
            bits
        };
        Planes {
            lower: plane(|b| b.is_ascii_lowercase()),
            upper: plane(|b| b.is_ascii_uppercase()),
            digit: plane(|b| b.is_ascii_digit()),
            space: plane(|b| matches!(b, b' ' | b'\t' | 0x0b | 0x0c)),
            blank: plane(|b| b == b' '),
            newline: plane(|b| matches!(b, b'\r' | b'\n')),
            quote: plane(|b| b == b'\''),
            non_ascii: plane(|b| b >= 0x80),
        }
    }
}
