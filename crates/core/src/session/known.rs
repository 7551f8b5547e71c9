//! A segment whose ids are known, and how far they hold for another text.

use std::hash::{BuildHasher, RandomState};

use xxhash_rust::xxh3::Xxh3;

use crate::segment::MAX_BYTES;
use crate::text::Text;
use crate::tokenizer::Tokenizer;

/// Something that holds a text alive, and never changes it: text at the same place is the same text.
pub trait Source: Send + Sync {
    /// The text.
    fn text(&self) -> Text<'_>;
}

impl<T: AsRef<str> + Send + Sync + ?Sized> Source for std::sync::Arc<T> {
    fn text(&self) -> Text<'_> {
        Text::Utf8((**self).as_ref())
    }
}

/// The memory of a text.
pub(super) fn bytes(text: Text<'_>) -> (u8, &[u8]) {
    fn raw<T: Copy>(units: &[T]) -> &[u8] {
        // SAFETY: integers have no padding and every byte of theirs may be read; the range is that of the slice.
        unsafe { std::slice::from_raw_parts(units.as_ptr().cast(), size_of_val(units)) }
    }
    match text {
        Text::Utf8(text) => (0, text.as_bytes()),
        Text::Latin1(units) => (1, units),
        Text::Ucs2(units) => (2, raw(units)),
        Text::Ucs4(units) => (4, raw(units)),
    }
}

/// Bytes of memory that a text takes.
pub(super) fn memory(text: Text<'_>) -> usize {
    bytes(text).1.len()
}

/// What tells whether two texts are the same.
pub(super) enum Alike<'t> {
    /// They are: they lie at the same place.
    Yes,
    /// They are not: their forms or lengths differ. (Python holds a text in one form only, so that another form is another text;
    /// to take an equal text for another one costs time, no more.)
    No,
    /// These bytes.
    If(&'t [u8], &'t [u8]),
}

#[inline]
pub(super) fn alike<'t>(a: Text<'t>, b: Text<'t>) -> Alike<'t> {
    let ((form, a), (other, b)) = (bytes(a), bytes(b));
    if form != other || a.len() != b.len() {
        Alike::No
    } else if std::ptr::eq(a, b) {
        Alike::Yes
    } else {
        Alike::If(a, b)
    }
}

/// Whether both are the same text.
pub(super) fn equal(a: Text<'_>, b: Text<'_>) -> bool {
    match alike(a, b) {
        Alike::Yes => true,
        Alike::No => false,
        Alike::If(a, b) => a == b,
    }
}

/// Bytes at each of the places at which a glance looks.
const GLANCE: usize = 32;

/// Makes numbers by which texts are found: of all their bytes, with a seed that nobody knows, so that two texts hardly ever
/// share one. It is not relied on: what matters is compared.
pub(super) struct Prints(Xxh3);

impl Prints {
    pub fn new(state: &RandomState) -> Self {
        Prints(Xxh3::with_seed(state.hash_one(0)))
    }

    pub fn add(&mut self, text: Text<'_>, allow_special: bool) {
        let (form, bytes) = bytes(text);
        self.add_facts(form, bytes.len(), allow_special);
        self.0.update(bytes);
    }

    /// The same of less than all: of a long text, the beginning, the middle and the end.
    pub fn add_glance(&mut self, text: Text<'_>, allow_special: bool) {
        let (form, bytes) = bytes(text);
        let len = bytes.len();
        self.add_facts(form, len, allow_special);
        if len <= 3 * GLANCE {
            self.0.update(bytes);
        } else {
            [0, (len - GLANCE) / 2, len - GLANCE].iter().for_each(|&at| self.0.update(&bytes[at..at + GLANCE]));
        }
    }

    fn add_facts(&mut self, form: u8, len: usize, allow_special: bool) {
        self.0.update(&(len << 4 | usize::from(form) << 1 | usize::from(allow_special)).to_ne_bytes());
    }

    pub fn print(&self) -> u64 {
        self.0.digest()
    }
}

/// How many units two texts have in common at their beginning, counted in units that mean the same in both; 0 where
/// forms cannot be compared.
fn common_units(a: Text<'_>, b: Text<'_>) -> usize {
    match (a, b) {
        (Text::Utf8(a), Text::Utf8(b)) => {
            let mut common = common(a.as_bytes(), b.as_bytes());
            while !a.is_char_boundary(common) {
                common -= 1;
            }
            common
        }
        (Text::Latin1(a), Text::Latin1(b)) => common(a, b),
        (Text::Ucs2(a), Text::Ucs2(b)) => common(a, b),
        (Text::Ucs4(a), Text::Ucs4(b)) => common(a, b),
        (Text::Latin1(a), Text::Ucs2(b)) | (Text::Ucs2(b), Text::Latin1(a)) => common(a, b),
        (Text::Latin1(a), Text::Ucs4(b)) | (Text::Ucs4(b), Text::Latin1(a)) => common(a, b),
        (Text::Ucs2(a), Text::Ucs4(b)) | (Text::Ucs4(b), Text::Ucs2(a)) => common(a, b),
        (Text::Utf8(_), _) | (_, Text::Utf8(_)) => 0,
    }
}

fn common<A: Copy + Into<u32>, B: Copy + Into<u32>>(a: &[A], b: &[B]) -> usize {
    // Without a way out in the middle, so that it becomes vector code.
    let same =
        |(a, b): (&[A], &[B])| a.iter().zip(b).fold(true, |same, (&a, &b)| same & (Into::<u32>::into(a) == b.into()));
    const BLOCK: usize = 256;
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK)).take_while(|&pair| same(pair)).count();
    let start = blocks * BLOCK;
    start + a[start..].iter().zip(&b[start..]).take_while(|&(&a, &b)| Into::<u32>::into(a) == b.into()).count()
}

/// Bytes of UTF-8 of `text[from..to]`. None if surrogates are in it: how many bytes they give depends on what is beside
/// them.
fn utf8_len(text: Text<'_>, from: usize, to: usize) -> Option<usize> {
    fn sum<T: Copy + Into<u32>>(units: &[T]) -> Option<usize> {
        units.iter().try_fold(0, |sum, &unit| {
            let bytes = match unit.into() {
                0..0x80 => 1,
                0x80..0x800 => 2,
                0xd800..0xe000 => return None,
                0x800..0x1_0000 => 3,
                _ => 4,
            };
            Some(sum + bytes)
        })
    }
    match text.slice(from, to) {
        Text::Utf8(text) => Some(text.len()),
        Text::Latin1(units) => sum(units),
        Text::Ucs2(units) => sum(units),
        Text::Ucs4(units) => sum(units),
    }
}

/// Where to go on in a text that begins as a known one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Resume {
    /// Units of the text before the place.
    pub at: usize,
    /// Ids of what is before it.
    pub ids: usize,
    /// Where the published path cuts what is behind it, counted from there.
    pub cuts: Vec<usize>,
}

/// Places that are tried before the whole text is encoded anew.
const TRIES: usize = 64;

/// The last place of `new` up to which `ids`, the ids of `old`, hold, whatever follows there: both texts are the same
/// before it, and past it as far as that matters.
///
/// A place is good where a pre-token ends whatever the context ([`crate::pretoken::Pattern::is_hard_boundary`]) or where
/// the text is cut, which depends on what is before a cut and the character behind it. In trusted text no name may run
/// over it: one that begins before the place ends within the common part, hence is the same in both, and is seen in `ids`.
/// The tokens before the place spell the text before it, which tells how many they are.
pub(super) fn resume(
    tokenizer: &Tokenizer,
    (old, ids): (Text<'_>, &[u32]),
    new: Text<'_>,
    allow_special: bool,
    legacy_chunks: bool,
) -> Option<Resume> {
    // An id of two names does not tell how long the one was that stood in the text.
    let spelled = tokenizer.is_simple(allow_special) && !(allow_special && tokenizer.controls.have_aliases());
    if !spelled || new.max_utf8_len() > MAX_BYTES {
        return None;
    }
    let same = common_units(old, new);
    let reach = if allow_special { tokenizer.controls.longest_name() } else { 0 };
    let last = same.saturating_sub(reach.max(1));
    let all_cuts = if legacy_chunks && tokenizer.makes_cuts() { new.cuts() } else { Vec::new() };
    let is_place = |at: &usize| all_cuts.binary_search(at).is_ok() || parts_at(tokenizer, new, *at);
    let mut places = (1..=last).rev().filter(is_place).take(TRIES);
    let (at, before) = places.find_map(|at| Some((at, ids_before(tokenizer, old, ids, at)?)))?;
    let cuts = all_cuts.into_iter().filter(|&cut| cut > at).map(|cut| cut - at).collect();
    Some(Resume { at, ids: before, cuts })
}

/// Whether a pre-token ends at `at` whatever the context.
fn parts_at(tokenizer: &Tokenizer, text: Text<'_>, at: usize) -> bool {
    match text {
        Text::Utf8(text) => tokenizer.pattern.is_hard_boundary(text.as_bytes(), at),
        _ => tokenizer.pattern.parts(text.unit(at - 1), text.unit(at)),
    }
}

/// How many of `ids`, which spell `text`, spell `text[..at]`; None if one of them runs over that place.
fn ids_before(tokenizer: &Tokenizer, text: Text<'_>, ids: &[u32], at: usize) -> Option<usize> {
    let len_of = |&id: &u32| tokenizer.token_bytes(id).map_or(0, <[u8]>::len);
    let from_start = || walk(utf8_len(text, 0, at)?, ids.iter().map(len_of));
    let from_end = || Some(ids.len() - walk(utf8_len(text, at, text.len())?, ids.iter().rev().map(len_of))?);
    // The shorter way first; the other one may be free of surrogates.
    if at < text.len() / 2 { from_start().or_else(from_end) } else { from_end().or_else(from_start) }
}

/// How many of these lengths add up to `bytes`.
fn walk(bytes: usize, lens: impl Iterator<Item = usize>) -> Option<usize> {
    let (mut left, mut count) = (bytes, 0);
    for len in lens {
        if left == 0 {
            break;
        }
        left = left.checked_sub(len)?;
        count += 1;
    }
    (left == 0).then_some(count)
}
