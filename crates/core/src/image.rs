//! Tables as one block of bytes, so that loading is mapping, not building.
//!
//! # Format (version 5, little-endian)
//! Header of 64 bytes: magic `KIZAMI\0` and the version (8 bytes), `checksum` of all that follows it (8),
//! section count (4), flags (4: bit 0 = greedy merge allowed, bit 1 = every whole token is its own BPE result, bit 2 =
//! pairs in stages), limit of the near pairs (4), zeros. Then one entry of 16 bytes a section: offset from the start of
//! the image (8), length in bytes (8). Then the sections, each at a multiple of 64, in the order of [`write()`].
//!
//! [`from_static`] checks the header and every invariant that keeps lookups in bounds (O(image), 2 ms); a
//! checksum mismatch is refused. [`from_trusted_static`] skips both for an image that is part of the program
//! itself; damage there can give wrong ids or a panic, never undefined behaviour (all access is checked).

use crate::error::Error;
use crate::lookup::WordTable;
use crate::merge::{
    MergeTables, border::Borders, count_singles, pairs, pairs::PairTable, short::BytePairs, trie::Trie,
};
use crate::num::{ix, to_u32};
use crate::parallel;
use crate::table::{Plain, Table};
use crate::tables::Tables;
use crate::vocab::Vocab;
use crate::worker::Workers;

/// Alignment of an image and of its sections, in bytes.
pub const ALIGN: usize = 64;
const MAGIC: &[u8; 8] = b"KIZAMI\0\x05";
const HEADER: usize = 64;
/// Where that begins which the checksum is of.
const SUMMED: usize = 16;
const SECTIONS: usize = 15;

/// Writes `tables` as an image.
#[must_use]
pub fn write(tables: &Tables) -> Vec<u8> {
    let ([offsets, ids, ranks], bytes) = tables.vocab.tables();
    let (lines, long) = tables.words.tables();
    let merges = &tables.merges;
    let (near, lines_far, filter) = merges.pairs.tables();
    let sections: [&[u8]; SECTIONS] = [
        bytes,
        as_bytes(offsets),
        as_bytes(lines),
        as_bytes(long),
        as_bytes(&merges.parts),
        as_bytes(near),
        as_bytes(merges.trie.table()),
        as_bytes(&merges.bytes),
        as_bytes(merges.byte_pairs.table()),
        as_bytes(merges.borders.table()),
        as_bytes(lines_far),
        as_bytes(filter),
        as_bytes(ids),
        as_bytes(ranks),
        as_bytes(&tables.others),
    ];
    let mut out = vec![0; HEADER + SECTIONS * 16];
    for (i, section) in sections.iter().enumerate() {
        out.resize(out.len().next_multiple_of(ALIGN), 0);
        let (at, len) = (out.len() as u64, section.len() as u64);
        let entry = HEADER + i * 16;
        out[entry..entry + 8].copy_from_slice(&at.to_le_bytes());
        out[entry + 8..entry + 16].copy_from_slice(&len.to_le_bytes());
        out.extend_from_slice(section);
    }
    out[..8].copy_from_slice(MAGIC);
    out[16..20].copy_from_slice(&to_u32(SECTIONS).to_le_bytes());
    let flags = u32::from(merges.greedy) | u32::from(tables.whole_is_merged) << 1 | u32::from(merges.in_stages) << 2;
    out[20..24].copy_from_slice(&flags.to_le_bytes());
    out[24..28].copy_from_slice(&merges.pairs.limit().to_le_bytes());
    let sum = checksum(&out[SUMMED..]);
    out[8..SUMMED].copy_from_slice(&sum.to_le_bytes());
    out
}

/// Tables that lie in `image`, checked: O(image), a few milliseconds.
///
/// # Errors
/// [`Error::Image`] naming what is wrong.
pub fn from_static(image: &'static [u8]) -> Result<Tables, Error> {
    // Tables that are not sound do no harm while they are looked at: all access is checked.
    let is_whole = || image.len() >= HEADER && image[8..SUMMED] == checksum(&image[SUMMED..]).to_le_bytes();
    let (is_whole, tables) = parallel::both(is_whole, || sound(image));
    if is_whole { tables } else { Err(Error::Image("the checksum does not match".into())) }
}

/// Tables of which every invariant holds.
fn sound(image: &'static [u8]) -> Result<Tables, Error> {
    let tables = from_trusted_static(image)?;
    let Tables { vocab, words, merges, others, .. } = &tables;
    let tokens = vocab.len();
    for (sound, what) in [
        (vocab.is_sound(), "token offsets or ids do not fit the token bytes"),
        (words.is_sound(vocab), "the word table holds impossible entries"),
        (others.iter().all(|&rank| rank < tokens), "the list of other tokens holds impossible entries"),
        (merges.parts_are_sound(tokens), "the merge records hold impossible entries"),
        (merges.pairs.is_sound(tokens), "the pair table holds impossible entries"),
        (merges.trie.is_sound(tokens), "the trie holds impossible entries"),
        (merges.borders.is_sound(), "the borders have a wrong length"),
        (merges.byte_pairs.is_sound(tokens), "the byte pairs hold impossible entries"),
    ] {
        if !sound {
            return Err(Error::Image(what.into()));
        }
    }
    if !merges.bytes_are_sound(vocab) {
        return Err(Error::Image("the single bytes are not those of the vocabulary".into()));
    }
    Ok(tables)
}

/// Tables that lie in an image which is part of the program: only the layout is checked, so that loading reads
/// none of the tables.
///
/// # Errors
/// [`Error::Image`] if magic, version or layout are not those of this build.
pub fn from_trusted_static(image: &'static [u8]) -> Result<Tables, Error> {
    if cfg!(target_endian = "big") {
        return Err(Error::Image("images are little-endian; this machine is not".into()));
    }
    if image.get(..8) != Some(MAGIC) {
        return Err(Error::Image("not an image of this version".into()));
    }
    let vocab = Vocab::from_tables([section(image, 1)?, section(image, 12)?, section(image, 13)?], section(image, 0)?)?;
    let words = WordTable::from_tables(section(image, 2)?, section(image, 3)?);
    let parts: Table<u64> = section(image, 4)?;
    if parts.len() != ix(vocab.len()) {
        return Err(Error::Image("the merge records do not fit the vocabulary".into()));
    }
    let bytes: Table<u32> = section(image, 7)?;
    let bytes = bytes[..].try_into().map_err(|_| Error::Image("the byte table has a wrong length".into()))?;
    let merges = MergeTables {
        parts,
        pairs: PairTable::from_tables(pairs::Tables {
            near: section(image, 5)?,
            limit: u32::from_le_bytes(image[24..28].try_into().expect("four bytes")),
            lines: section(image, 10)?,
            filter: section(image, 11)?,
        }),
        trie: Trie::from_table(section(image, 6)?),
        byte_pairs: BytePairs::from_table(section(image, 8)?),
        borders: Borders::from_table(section(image, 9)?),
        singles: count_singles(&bytes),
        bytes,
        greedy: image[20] & 1 == 1,
        in_stages: image[20] & 4 == 4,
    };
    let whole_is_merged = image[20] & 2 == 2;
    Ok(Tables { vocab, words, others: section(image, 14)?, merges, whole_is_merged, workers: Workers::default() })
}

/// Sums that are made side by side: each waits for itself alone.
const LANES: usize = 8;

/// In words of eight bytes, dealt out to eight sums of FNV-1a, turned at each step; zeros behind the end. Then the length
/// and the eight sums are summed up likewise.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    let add = |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    let mut sums = [0xcbf2_9ce4_8422_2325; LANES];
    let mut add_all = |chunk: &[u8; 8 * LANES]| {
        for (sum, word) in sums.iter_mut().zip(chunk.as_chunks().0) {
            *sum = add(*sum, u64::from_le_bytes(*word));
        }
    };
    let (chunks, rest) = bytes.as_chunks();
    chunks.iter().for_each(&mut add_all);
    let mut last = [0; 8 * LANES];
    last[..rest.len()].copy_from_slice(rest);
    add_all(&last);
    sums.into_iter().fold(bytes.len() as u64, add)
}

fn section<T: Plain>(image: &'static [u8], index: usize) -> Result<Table<T>, Error> {
    let damaged = || Error::Image(format!("section {index} is damaged"));
    let word = |at: usize| -> Result<usize, Error> {
        let bytes = image.get(at..at + 8).ok_or_else(damaged)?;
        let value = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        usize::try_from(value).map_err(|_| damaged())
    };
    let entry = HEADER + index * 16;
    let (start, len) = (word(entry)?, word(entry + 8)?);
    let end = start.checked_add(len).ok_or_else(damaged)?;
    let bytes = image.get(start..end).ok_or_else(damaged)?;
    // SAFETY: `Plain` promises that every bit pattern is a valid T; `align_to` itself finds the aligned middle.
    let (before, middle, after) = unsafe { bytes.align_to::<T>() };
    if before.is_empty() && after.is_empty() { Ok(middle.into()) } else { Err(damaged()) }
}

fn as_bytes<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: `Plain` promises no padding, so all bytes are initialised; u8 has no alignment.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), std::mem::size_of_val(values)) }
}
