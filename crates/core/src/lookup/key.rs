//! A short pre-token as one 16-byte value.

/// Longest pre-token that fits in a [`Key`], in bytes.
pub const MAX_KEY_BYTES: usize = 15;

/// Up to 15 bytes, zero-padded, and the length in the last byte. Equal keys mean equal bytes.
///
/// The default is the key of no bytes, which no pre-token has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Key {
    low: u64,
    high: u64,
}

impl Key {
    /// Length 255: no piece of text has this key.
    pub const EMPTY: Key = Key { low: 0, high: 0xff << 56 };

    /// The key of `piece`, or None if it is longer than [`MAX_KEY_BYTES`].
    #[inline(always)]
    #[must_use]
    pub fn new(piece: &[u8]) -> Option<Key> {
        (piece.len() <= MAX_KEY_BYTES).then(|| Key::load(piece, 0, piece.len()))
    }

    /// The key of the `len` bytes at `text[start..]`: at most [`MAX_KEY_BYTES`].
    #[inline(always)]
    #[must_use]
    pub fn load(text: &[u8], start: usize, len: usize) -> Key {
        // Where sixteen bytes are there: one load, then what is behind the pre-token is masked.
        let [low, high] = match text[start..].first_chunk() {
            Some(bytes) => split(u128::from_le_bytes(*bytes)),
            None => near_end(&text[start..start + len]),
        };
        let [low_mask, high_mask] = MASKS[len];
        Key { low: low & low_mask, high: high & high_mask | (len as u64) << 56 }
    }

    /// The key of a text of 1 to [`MAX_KEY_BYTES`] bytes that stands alone in memory.
    #[inline(always)]
    #[must_use]
    pub fn of_short(text: &[u8]) -> Key {
        let [low, high] = short(text);
        Key { low, high: high | (text.len() as u64) << 56 }
    }

    /// The key of the same bytes where they are not a whole pre-token, or, among segments, where they are trusted: equal to no
    /// other kind of key.
    #[inline(always)]
    #[must_use]
    pub fn of_part(self) -> Key {
        Key { high: self.high | PART << 56, ..self }
    }

    /// Whether it is such a key.
    #[inline(always)]
    #[must_use]
    pub fn is_of_part(self) -> bool {
        self.high >> 63 == 1
    }

    /// Whether the keys are equal; unlike `==`, without a branch.
    #[inline(always)]
    #[must_use]
    pub fn is(self, other: Key) -> bool {
        (self.low ^ other.low) | (self.high ^ other.high) == 0
    }

    /// The two halves.
    #[inline(always)]
    #[must_use]
    pub fn words(self) -> [u64; 2] {
        [self.low, self.high]
    }

    /// The bytes, and zeros behind them; the last byte is not one of them.
    #[inline(always)]
    #[must_use]
    pub fn bytes(self) -> [u8; 16] {
        (u128::from(self.low) | u128::from(self.high) << 64).to_le_bytes()
    }

    /// How many bytes.
    #[inline(always)]
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "no pre-token is empty")]
    pub fn len(self) -> usize {
        (self.high >> 56 & !PART) as usize
    }

    /// Whether all bytes are ASCII.
    #[inline(always)]
    #[must_use]
    pub fn is_ascii(self) -> bool {
        (self.low | self.high & !(PART << 56)) & 0x8080_8080_8080_8080 == 0
    }

    /// A 64-bit hash of the key.
    #[inline(always)]
    #[must_use]
    pub fn hash(self) -> u64 {
        fold(self.low ^ 0x9e37_79b9_7f4a_7c15, self.high ^ 0xd6e8_feb8_6659_fd93).wrapping_mul(0xa076_1d64_78bd_642f)
    }
}

/// At most 15 bytes at the end of a text, and zeros behind them.
#[cold]
#[inline(never)]
fn near_end(piece: &[u8]) -> [u64; 2] {
    if piece.is_empty() { [0; 2] } else { short(piece) }
}

/// 1 to 15 bytes, and zeros behind them. By loads that overlap where the length is no power of two: both have the same
/// bytes there.
#[inline(always)]
fn short(piece: &[u8]) -> [u64; 2] {
    let len = piece.len();
    if let (Some(head), Some(tail)) = (piece.first_chunk(), piece.last_chunk()) {
        // Two shifts: none is by 64.
        [u64::from_le_bytes(*head), u64::from_le_bytes(*tail) >> (8 * (15 - len)) >> 8]
    } else if let (Some(head), Some(tail)) = (piece.first_chunk(), piece.last_chunk()) {
        let (head, tail) = (u32::from_le_bytes(*head), u32::from_le_bytes(*tail));
        [u64::from(head) | u64::from(tail) << (8 * (len - 4)), 0]
    } else {
        let at = |index: usize| u64::from(piece[index]) << (8 * index);
        [at(0) | at(len / 2) | at(len - 1), 0]
    }
}

/// Added to the length in the key of a part.
const PART: u64 = 0x80;

impl std::hash::Hash for Key {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(Key::hash(*self));
    }
}

/// Longest pre-token that fits in a [`LongKey`], in bytes.
pub const MAX_LONG_KEY_BYTES: usize = 31;

/// Up to 31 bytes, zero-padded, and the length in the last byte. Equal keys mean equal bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct LongKey([u64; 4]);

impl LongKey {
    /// The key of `piece`, or None if it is longer than [`MAX_LONG_KEY_BYTES`].
    #[inline(always)]
    #[must_use]
    pub fn new(piece: &[u8]) -> Option<LongKey> {
        (piece.len() <= MAX_LONG_KEY_BYTES).then(|| LongKey::load(piece, 0, piece.len()))
    }

    /// The key of the `len` bytes at `text[start..]`: at most [`MAX_LONG_KEY_BYTES`].
    #[inline(always)]
    #[must_use]
    pub fn load(text: &[u8], start: usize, len: usize) -> LongKey {
        let piece = &text[start..start + len];
        let mut words = [0; 4];
        if let (Some(head), Some(tail)) = (piece.first_chunk::<16>(), piece.last_chunk::<16>()) {
            // Two loads that overlap; the second is moved to its place, which pushes out what the first one has.
            [words[0], words[1]] = split(u128::from_le_bytes(*head));
            [words[2], words[3]] = split(u128::from_le_bytes(*tail) >> (8 * (31 - len)) >> 8);
        } else {
            let mut padded = [0; 16];
            padded[..len].copy_from_slice(piece);
            [words[0], words[1]] = split(u128::from_le_bytes(padded));
        }
        words[3] |= (len as u64) << 56;
        LongKey(words)
    }

    /// As [`Key::of_part`].
    #[inline(always)]
    #[must_use]
    pub fn of_part(self) -> LongKey {
        let [a, b, c, d] = self.0;
        LongKey([a, b, c, d | PART << 56])
    }

    /// A 64-bit hash of the key.
    #[inline(always)]
    #[must_use]
    pub fn hash(&self) -> u64 {
        let [a, b, c, d] = self.0;
        let mixed = fold(a ^ 0x9e37_79b9_7f4a_7c15, b ^ 0xd6e8_feb8_6659_fd93)
            ^ fold(c ^ 0xa076_1d64_78bd_642f, d ^ 0xe703_7ed1_a0b4_28db);
        mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_alone_has_the_key_of_its_bytes() {
        let text: Vec<u8> = (241..=255).chain(0..20).collect();
        for start in 0..20 {
            for len in 1..=MAX_KEY_BYTES {
                let mut padded = [0; 16];
                padded[..len].copy_from_slice(&text[start..start + len]);
                padded[15] = u8::try_from(len).unwrap();
                let key = Key::of_short(&text[start..start + len]);
                assert_eq!(key.bytes(), padded);
                assert_eq!((key, key), (Key::load(&text, start, len), Key::load(&text[..start + len], start, len)));
                assert!(!key.is_of_part() && key.of_part().is_of_part());
                assert_eq!((key.is_ascii(), key.of_part().is_ascii()), (padded.is_ascii(), padded.is_ascii()));
            }
        }
    }

    #[test]
    fn a_long_key_is_the_padded_bytes_and_the_length() {
        let text: Vec<u8> = (1..=40).collect();
        for len in 0..=MAX_LONG_KEY_BYTES {
            let mut padded = [0; 32];
            padded[..len].copy_from_slice(&text[..len]);
            padded[31] = u8::try_from(len).unwrap();
            let LongKey(words) = LongKey::new(&text[..len]).unwrap();
            assert_eq!(words.map(u64::to_le_bytes).concat(), padded, "{len}");
        }
        assert_eq!(LongKey::new(&text[..32]), None);
    }
}
