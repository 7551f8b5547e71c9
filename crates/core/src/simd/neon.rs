//! The planes on AArch64, where NEON is always there. The way is that of `x86.rs`, with four registers for its two.

use std::arch::aarch64::{
    uint8x16_t, uint8x16x4_t, vandq_u8, vbicq_u8, vceqq_u8, vcleq_u8, vcombine_u64, vcreate_u64, vdupq_n_u8, vextq_u8,
    vgetq_lane_u8, vgetq_lane_u64, vld1q_u8, vmaxvq_u8, vorrq_u8, vpaddq_u8, vqtbl1q_u8, vqtbl4q_u8,
    vreinterpretq_u8_u64, vreinterpretq_u64_u8, vsubq_u8, vtstq_u8,
};

use super::classes::{BITS_OF, HANGUL_PAGES};
use super::{Classify, Planes, WINDOW};
use crate::num::ix;
use crate::unicode::{CASELESS, HAN_LETTER, PAGE, page};

/// NEON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neon;

/// 64 bytes.
type Quad = [uint8x16_t; 4];

impl Classify for Neon {
    #[inline(always)]
    fn ascii(self, bytes: &[u8; 64]) -> Planes {
        // SAFETY: this file is compiled for targets with NEON only.
        unsafe { ascii(bytes) }
    }

    #[inline(always)]
    fn characters(self, window: &[u8; WINDOW], before: u8, planes: &mut Planes) -> u8 {
        // SAFETY: this file is compiled for targets with NEON only.
        unsafe { characters(window, before, planes) }
    }

    #[inline(always)]
    fn range(self, bytes: &[u8; 64], low: u8, high: u8) -> u64 {
        // SAFETY: this file is compiled for targets with NEON only.
        unsafe { range_of(bytes, low, high) }
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn range_of(bytes: &[u8; 64], low: u8, high: u8) -> u64 {
    bits(range(load(bytes), low, high))
}

#[inline]
#[target_feature(enable = "neon")]
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
        non_ascii: bits(range(v, 0x80, 0xff)),
        ..Planes::default()
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn characters(window: &[u8; WINDOW], before: u8, planes: &mut Planes) -> u8 {
    let first = load_from::<0>(window);
    planes.tail = bits(range(first, 0x80, 0xbf));
    let classes = classes_of(first, window, planes.non_ascii & !planes.tail);
    // To the other bytes of each character: classes lie on first bytes so far.
    let mut spread = either(classes, shifted::<15>(classes));
    spread = either(spread, shifted::<14>(both(classes, range(first, 0xe0, 0xff))));
    spread = either(spread, shifted::<13>(both(classes, range(first, 0xf0, 0xff))));
    // And to those whose first byte is in the window before: three at most.
    let tail = (!planes.tail).trailing_zeros().min(3);
    let carried = (u32::from(before) * 0x01_0101) & ((1 << (8 * tail)) - 1);
    let carried = vcombine_u64(vcreate_u64(carried.into()), vcreate_u64(0));
    spread[0] = vorrq_u8(spread[0], vreinterpretq_u8_u64(carried));

    let bits_of = sixteen(&BITS_OF);
    let found = each(spread, |classes| vqtbl1q_u8(bits_of, classes));
    let any = vmaxvq_u8(vorrq_u8(vorrq_u8(found[0], found[1]), vorrq_u8(found[2], found[3])));
    let plane = |bit: u8| bits(each(found, |bytes| vtstq_u8(bytes, vdupq_n_u8(bit))));
    // All zeros: symbols only.
    if any != 0 {
        planes.lower |= plane(0x80);
        planes.upper |= plane(0x40);
        planes.shared = plane(0x20);
        planes.mark = plane(0x10);
        planes.number |= plane(0x08);
        planes.space |= plane(0x04);
        planes.han = plane(0x02);
        planes.han_other = plane(0x01);
    }
    vgetq_lane_u8::<15>(spread[3])
}

/// The class of each character at its first byte; `rest` are these.
#[inline]
#[target_feature(enable = "neon")]
fn classes_of(first: Quad, window: &[u8; WINDOW], mut rest: u64) -> Quad {
    let second = load_from::<1>(window);
    let mut classes = all(0);
    if bits(range(first, 0xe3, 0xe9)) != 0 {
        let third = load_from::<2>(window);
        let han = either(range(first, 0xe5, 0xe9), both(equal(first, 0xe4), range(second, 0xb8, 0xff)));
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
                let (low, high) = (both(equal(first, 0xea), range(second, 0xb0, 0xff)), range(second, 0, 0x9d));
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
    classes
}

#[inline]
#[target_feature(enable = "neon")]
fn sixteen(bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: a load of 16 bytes, which needs no alignment, is the array.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &[u8; 64]) -> Quad {
    let [a, b, c, d] = bytes.as_chunks().0 else { unreachable!("four times 16") };
    [sixteen(a), sixteen(b), sixteen(c), sixteen(d)]
}

/// The 64 bytes from `OFFSET` on.
#[inline]
#[target_feature(enable = "neon")]
fn load_from<const OFFSET: usize>(window: &[u8; WINDOW]) -> Quad {
    load(window[OFFSET..].first_chunk().expect("three bytes more than 64"))
}

#[inline]
#[target_feature(enable = "neon")]
fn all(byte: u8) -> Quad {
    [vdupq_n_u8(byte); 4]
}

#[inline]
#[target_feature(enable = "neon")]
fn each(x: Quad, op: impl Fn(uint8x16_t) -> uint8x16_t) -> Quad {
    [op(x[0]), op(x[1]), op(x[2]), op(x[3])]
}

#[inline]
#[target_feature(enable = "neon")]
fn zip(x: Quad, y: Quad, op: impl Fn(uint8x16_t, uint8x16_t) -> uint8x16_t) -> Quad {
    [op(x[0], y[0]), op(x[1], y[1]), op(x[2], y[2]), op(x[3], y[3])]
}

#[inline]
#[target_feature(enable = "neon")]
fn both(x: Quad, y: Quad) -> Quad {
    zip(x, y, |x, y| vandq_u8(x, y))
}

#[inline]
#[target_feature(enable = "neon")]
fn either(x: Quad, y: Quad) -> Quad {
    zip(x, y, |x, y| vorrq_u8(x, y))
}

/// `x` where `y` is not.
#[inline]
#[target_feature(enable = "neon")]
fn but(x: Quad, y: Quad) -> Quad {
    zip(x, y, |x, y| vbicq_u8(x, y))
}

#[inline]
#[target_feature(enable = "neon")]
fn equal(x: Quad, byte: u8) -> Quad {
    zip(x, all(byte), |x, byte| vceqq_u8(x, byte))
}

/// `low..=high`, by moving the range to the bottom: one subtraction, one comparison.
#[inline]
#[target_feature(enable = "neon")]
fn range(x: Quad, low: u8, high: u8) -> Quad {
    let (shift, bound) = (vdupq_n_u8(low), vdupq_n_u8(high - low));
    each(x, |x| vcleq_u8(vsubq_u8(x, shift), bound))
}

/// One bit for each byte, all of whose bits are equal.
#[inline]
#[target_feature(enable = "neon")]
fn bits(x: Quad) -> u64 {
    let place =
        vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(0x8040_2010_0804_0201), vcreate_u64(0x8040_2010_0804_0201)));
    let [a, b, c, d] = each(x, |x| vandq_u8(x, place));
    // Three sums of neighbours make eight bytes one.
    let sums = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
    vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)))
}

/// The class in `page` of each byte, which is the last of a character.
#[inline]
#[target_feature(enable = "neon")]
fn look_up(page: &[u8; PAGE], last: Quad) -> Quad {
    let [a, b, c, d] = load(page);
    let low = vdupq_n_u8(0x3f);
    each(last, |last| vqtbl4q_u8(uint8x16x4_t(a, b, c, d), vandq_u8(last, low)))
}

/// The 64 bytes `16 - KEEP` places further on, with zeros before.
#[inline]
#[target_feature(enable = "neon")]
fn shifted<const KEEP: i32>(x: Quad) -> Quad {
    let zero = vdupq_n_u8(0);
    [
        vextq_u8::<KEEP>(zero, x[0]),
        vextq_u8::<KEEP>(x[0], x[1]),
        vextq_u8::<KEEP>(x[1], x[2]),
        vextq_u8::<KEEP>(x[2], x[3]),
    ]
}
