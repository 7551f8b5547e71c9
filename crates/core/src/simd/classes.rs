//! What the vector forms know of Unicode, beside its tables: large ranges of one class, checked when this is compiled;
//! and what each class is to the planes.

use std::ops::RangeInclusive;

use crate::unicode::{CASELESS, HAN_LETTER, HAN_NUMBER, HAN_OTHER, LOWER, MARK, NUMBER, SPACE, UPPER, class_of};

/// Han that is one range of one class: U+4E00 to U+9FFF, E4 B8 80 to E9 BF BF.
const HAN: (u32, u32) = (0x4e00, 0x9fff);
/// The same for Hangul syllables: U+AC00 to U+D77F, EA B0 80 to ED 9D BF (the others share a page with something else).
const HANGUL: (u32, u32) = (0xac00, 0xd77f);
/// The same for kana: U+3041 to U+30FF, E3 81 81 to E3 83 BF, but for [`NO_KANA`].
const KANA: (u32, u32) = (0x3041, 0x30ff);
/// Marks and signs among kana: E3 82 97 to 9C, E3 82 A0, E3 83 BB.
const NO_KANA: [(u32, u32); 3] = [(0x3097, 0x309c), (0x30a0, 0x30a0), (0x30fb, 0x30fb)];

const fn is_uniform(range: (u32, u32), but: &[(u32, u32)], class: u8) -> bool {
    let mut code_point = range.0;
    while code_point <= range.1 {
        let mut i = 0;
        let mut other = false;
        while i < but.len() {
            other |= but[i].0 <= code_point && code_point <= but[i].1;
            i += 1;
        }
        if !other && class_of(code_point) != class {
            return false;
        }
        code_point += 1;
    }
    true
}
const _: () = {
    assert!(is_uniform(HAN, &[], HAN_LETTER) && is_uniform(HANGUL, &[], CASELESS));
    assert!(is_uniform(KANA, &NO_KANA, CASELESS));
};

/// Pages of [`HANGUL`].
pub(super) const HANGUL_PAGES: RangeInclusive<u32> = HANGUL.0 >> 6..=HANGUL.1 >> 6;

/// What each class is to the planes, by class: the bits of [`Planes`] in the order that `characters` takes them off.
pub(super) const BITS_OF: [u8; 16] = {
    const fn ix(class: u8) -> usize {
        class as usize
    }
    let mut bits = [0; 16];
    bits[ix(LOWER)] = 0x80;
    bits[ix(UPPER)] = 0x40;
    bits[ix(CASELESS)] = 0x20;
    bits[ix(MARK)] = 0x20 | 0x10;
    bits[ix(NUMBER)] = 0x08;
    bits[ix(SPACE)] = 0x04;
    bits[ix(HAN_LETTER)] = 0x02;
    bits[ix(HAN_NUMBER)] = 0x02 | 0x08;
    bits[ix(HAN_OTHER)] = 0x02 | 0x01;
    bits
};
