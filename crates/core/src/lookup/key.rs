//! A short pre-token as one 16-byte value.

/// Longest pre-token that fits in a [`Key`], in bytes.
pub const MAX_KEY_BYTES: usize = 15;

/// Up to 15 bytes, zero-padded, and the length in the last byte. Equal keys mean equal bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Key {
    low: u64,
    high: u64,
}

impl Key {
    /// Length 255: no piece of text has this key.
    pub const EMPTY: Key = Key { low: 0, high: 0xff << 56 };

    /// The key of `piece`, or None if it is longer than [`MAX_KEY_BYTES`].
    #[must_use]
    pub fn new(piece: &[u8]) -> Option<Key> {
        Key::load(piece, 0, piece.len())
    }

    /// The key of `text[start..end]`, or None if that is longer than [`MAX_KEY_BYTES`].
    #[inline(always)]
    #[must_use]
    pub fn load(text: &[u8], start: usize, end: usize) -> Option<Key> {
        let len = end - start;
        if len > MAX_KEY_BYTES {
            return None;
        }
        let mut padded = [0u8; 16];
        let bytes = match text[start..].first_chunk::<16>() {
            // Sixteen bytes are there: one load, then mask what is behind the pre-token.
            Some(bytes) => bytes,
            None => {
                padded[..len].copy_from_slice(&text[start..end]);
                &padded
            }
        };
        let [low, high] = split(u128::from_le_bytes(*bytes));
        let [low_mask, high_mask] = MASKS[len];
        Some(Key { low: low & low_mask, high: high & high_mask | (len as u64) << 56 })
    }

    /// The two words of the key; the second is zero for no pre-token.
    #[inline(always)]
    #[must_use]
    pub fn words(self) -> (u64, u64) {
        (self.low, self.high)
    }

    /// A 64-bit hash of the key.
    #[inline(always)]
    #[must_use]
    pub fn hash(self) -> u64 {
        fold(self.low ^ 0x9e37_79b9_7f4a_7c15, self.high ^ 0xd6e8_feb8_6659_fd93).wrapping_mul(0xa076_1d64_78bd_642f)
    }
}

/// Masks of the first `len` bytes of two words, by `len`.
const MASKS: [[u64; 2]; MAX_KEY_BYTES + 1] = {
    let mut masks = [[0; 2]; MAX_KEY_BYTES + 1];
    let mut len = 1;
    while len <= MAX_KEY_BYTES {
        masks[len] = if len < 8 { [(1 << (8 * len)) - 1, 0] } else { [u64::MAX, (1 << (8 * (len - 8))) - 1] };
        len += 1;
    }
    masks
};

#[inline(always)]
fn split(value: u128) -> [u64; 2] {
    let bytes = value.to_le_bytes();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    [word(0), word(8)]
}

/// The two halves of a 128-bit product, folded: a cheap mix of two words.
#[inline(always)]
#[must_use]
pub fn fold(a: u64, b: u64) -> u64 {
    let [low, high] = split(u128::from(a) * u128::from(b));
    low ^ high
}
