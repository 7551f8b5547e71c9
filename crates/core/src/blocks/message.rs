//! The bytes that are hashed: for vLLM `(parent, ids, extra)` in canonical CBOR, or as CPython pickles it.
//!
//! CBOR (RFC 8949) is the same wherever it is written. A pickle is not meant to be hashed; but of bytes, ints, None and
//! strings, CPython 3.8 and later write the same bytes in protocol 5, and the tests compare with the Python they run in.
//! Extra keys are left out there, because a pickle refers back to an object that came before, and nobody can tell
//! from outside which equal strings are one object.

/// Most ids of a pickled block. Above 64 KiB a pickle has several frames; this stays below.
pub const MAX_PICKLED: u32 = 8192;
/// Most bytes of an id.
const LONGEST: usize = 7;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Cbor,
    Pickle,
    /// The hash before the block, and its ids, 32 bits each, little-endian.
    Plain,
}

impl Encoding {
    /// Writes `(parent, ids, extra)`. `extra` is CBOR already.
    pub fn block(self, parent: &[u8], ids: &[u32], extra: Option<&[u8]>, out: &mut Vec<u8>) {
        match self {
            Encoding::Cbor => cbor_block(parent, ids, extra, out),
            Encoding::Pickle => pickle(out, |out| pickle_block(parent, ids, out)),
            Encoding::Plain => {
                out.clear();
                out.extend_from_slice(parent);
                ids.iter().for_each(|id| out.extend_from_slice(&id.to_le_bytes()));
            }
        }
    }

    /// Writes a string, which may be a seed.
    pub fn text(self, text: &str, out: &mut Vec<u8>) {
        match self {
            Encoding::Plain => out.clear(),
            Encoding::Cbor => {
                out.clear();
                cbor_head(TEXT, text.len(), out);
                out.extend_from_slice(text.as_bytes());
            }
            Encoding::Pickle => pickle(out, |out| {
                match u8::try_from(text.len()) {
                    Ok(len) => out.extend([SHORT_BINUNICODE, len]),
                    Err(_) => {
                        out.push(BINUNICODE);
                        out.extend(crate::num::to_u32(text.len()).to_le_bytes());
                    }
                }
                out.extend_from_slice(text.as_bytes());
                out.push(MEMOIZE);
            }),
        }
    }
}

// Major types of CBOR, in their place.
const BYTES: u8 = 2 << 5;
const TEXT: u8 = 3 << 5;
const ARRAY: u8 = 4 << 5;
const NULL: u8 = 0xf6;

fn cbor_block(parent: &[u8], ids: &[u32], extra: Option<&[u8]>, out: &mut Vec<u8>) {
    out.clear();
    cbor_head(ARRAY, 3, out);
    cbor_head(BYTES, parent.len(), out);
    out.extend_from_slice(parent);
    cbor_head(ARRAY, ids.len(), out);
    each(ids, out, |id| cbor_uint(0, id));
    out.extend_from_slice(extra.unwrap_or(&[NULL]));
}

/// A type, and the length of what follows.
fn cbor_head(major: u8, len: usize, out: &mut Vec<u8>) {
    let (bytes, len) = cbor_uint(major, crate::num::to_u32(len));
    out.extend_from_slice(&bytes[..len]);
}

/// A type and a number, in as few bytes as it takes; how many. Without branches, for ids are as good as random.
#[inline(always)]
fn cbor_uint(major: u8, value: u32) -> ([u8; LONGEST], usize) {
    let (two, three, five) = (value >= 24, value >= 0x100, value >= 0x1_0000);
    let after = usize::from(two) + usize::from(three) + 2 * usize::from(five);
    let kind = 23 + u8::from(two) + u8::from(three) + u8::from(five);
    let [.., low] = value.to_be_bytes();
    let [a, b, c, d, ..] = (u64::from(value) << (64 - 8 * after.max(1))).to_be_bytes();
    ([major | if two { kind } else { low }, a, b, c, d, 0, 0], 1 + after)
}

/// Writes each id; `write` gives its bytes, and how many of them count.
#[inline(always)]
fn each(ids: &[u32], out: &mut Vec<u8>, write: impl Fn(u32) -> ([u8; LONGEST], usize)) {
    let mut at = out.len();
    out.resize(at + LONGEST * ids.len(), 0);
    for &id in ids {
        let (bytes, len) = write(id);
        // The bytes that do not count are overwritten by the next id, or cut off.
        out[at..at + LONGEST].copy_from_slice(&bytes);
        at += len;
    }
    out.truncate(at);
}

// Opcodes, by the names that `pickletools` gives them.
const PROTO: u8 = 0x80;
const FRAME: u8 = 0x95;
const STOP: u8 = b'.';
const MEMOIZE: u8 = 0x94;
const SHORT_BINBYTES: u8 = b'C';
const SHORT_BINUNICODE: u8 = 0x8c;
const BINUNICODE: u8 = b'X';
const MARK: u8 = b'(';
const TUPLE: u8 = b't';
/// TUPLE1; TUPLE2 and TUPLE3 follow it.
const TUPLE1: u8 = 0x85;
const NONE: u8 = b'N';
const BININT: u8 = b'J';
const BININT1: u8 = b'K';
const BININT2: u8 = b'M';
const LONG1: u8 = 0x8a;

/// A pickle of protocol 5 in one frame; `body` writes the object.
fn pickle(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    const HEAD: usize = 11;
    out.clear();
    out.extend([PROTO, 5, FRAME, 0, 0, 0, 0, 0, 0, 0, 0]);
    body(out);
    out.push(STOP);
    let len = u64::try_from(out.len() - HEAD).expect("a frame is small");
    out[3..HEAD].copy_from_slice(&len.to_le_bytes());
}

fn pickle_block(parent: &[u8], ids: &[u32], out: &mut Vec<u8>) {
    out.extend([SHORT_BINBYTES, u8::try_from(parent.len()).expect("a hash is short")]);
    out.extend_from_slice(parent);
    out.push(MEMOIZE);
    let tuple = match ids.len() {
        1 => TUPLE1,
        2 => TUPLE1 + 1,
        3 => TUPLE1 + 2,
        _ => {
            out.push(MARK);
            TUPLE
        }
    };
    each(ids, out, pickle_int);
    out.extend([tuple, MEMOIZE, NONE, TUPLE1 + 2, MEMOIZE]);
}

/// An id, and how many bytes of it count.
#[inline(always)]
fn pickle_int(id: u32) -> ([u8; LONGEST], usize) {
    let [a, b, c, d] = id.to_le_bytes();
    if id > i32::MAX.cast_unsigned() {
        // Above 31 bits, a byte for the sign follows.
        return ([LONG1, 5, a, b, c, d, 0], 7);
    }
    let (two, four) = (id >= 0x100, id >= 0x1_0000);
    let opcode = if four { BININT } else { if two { BININT2 } else { BININT1 } };
    ([opcode, a, b, c, d, 0, 0], 2 + usize::from(two) + 2 * usize::from(four))
}
