//! Longest token at a position, by a double-array trie over the token bytes.
//!
//! A state is a slot number. The child of state `s` by byte `b` is slot `base(s) ^ b` if that slot is in use and has
//! the label `b`: no two states have the same base, so nobody else can have a child with that label there.
//! Slots are used in blocks of 256, so `base ^ b` stays in one block.
//!
//! What costs is memory far away: a slot is eight bytes, states that text comes to often lie side by side at the
//! beginning, a state says which children it may have, so that a walk seldom loads a slot to learn that it has ended, and
//! where only one token is left, its last bytes are kept in the slot itself, which saves four states in nine.

use std::borrow::Cow;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;

use crate::error::Error;
use crate::num::{ix, low_u8, low_u32, to_u32};
use crate::table::Table;
use crate::vocab::{MAX_TOKENS, Vocab};

/// One state, in 64 bits: from the low end
/// - 20 bits: the token that ends here, or with the tail;
/// - 8 bits: the byte that leads here;
/// - 3 bits: the kind, one of the below;
/// - of a branch: 8 bits, bit `b % 8` set if there is a child by some byte with these three low bits; 25 bits, the base;
/// - of a leaf: 32 bits, the tail: up to four bytes that must follow. The kind says how many.
#[derive(Clone, Copy)]
struct Slot(u64);

/// Kinds up to [`MAX_TAIL`] are leaves, with a tail of so many bytes.
const MAX_TAIL: u64 = 4;
/// A state with children where no token ends.
const BRANCH: u64 = 5;
/// A state with children where a token ends.
const TOKEN_BRANCH: u64 = 6;
/// No state.
const FREE_KIND: u64 = 7;

const TOKEN_BITS: u32 = 20;
const LABEL_SHIFT: u32 = TOKEN_BITS;
const KIND_SHIFT: u32 = LABEL_SHIFT + 8;
const CHILDREN_SHIFT: u32 = KIND_SHIFT + 3;
const TAIL_SHIFT: u32 = CHILDREN_SHIFT;
const BASE_SHIFT: u32 = CHILDREN_SHIFT + 8;
const MAX_SLOTS: usize = 1 << (64 - BASE_SHIFT);

const _: () = assert!(MAX_TOKENS <= 1 << TOKEN_BITS);

const FREE: u64 = FREE_KIND << KIND_SHIFT;
const ROOT: usize = 0;
const BLOCK: usize = 256;
/// Blocks, counted from the last, in which room for new states is looked for.
const OPEN_BLOCKS: usize = 24;

impl Slot {
    #[inline(always)]
    fn token(self) -> u32 {
        low_u32(self.0) & ((1 << TOKEN_BITS) - 1)
    }

    #[inline(always)]
    fn kind(self) -> u64 {
        self.0 >> KIND_SHIFT & 7
    }

    /// Whether this is the child by `byte` of the state whose base led here.
    #[inline(always)]
    fn is_child_by(self, byte: u8) -> bool {
        low_u8(low_u32(self.0 >> LABEL_SHIFT & 0xff)) == byte && self.kind() != FREE_KIND
    }

    #[inline(always)]
    fn may_have_child(self, byte: u8) -> bool {
        self.0 >> (CHILDREN_SHIFT + u32::from(byte % 8)) & 1 == 1
    }

    #[inline(always)]
    fn base(self) -> usize {
        ix(low_u32(self.0 >> BASE_SHIFT))
    }

    /// The end of the tail of a leaf, if `rest` begins with it.
    #[inline(always)]
    fn match_tail(self, rest: &[u8]) -> Option<usize> {
        let len = self.kind();
        let following = match rest.first_chunk::<4>() {
            Some(bytes) => *bytes,
            None => std::array::from_fn(|i| rest.get(i).copied().unwrap_or(0)),
        };
        let differ = u64::from(u32::from_le_bytes(following)) ^ (self.0 >> TAIL_SHIFT & 0xffff_ffff);
        let len_in_bits = 8 * low_u32(len);
        (differ & ((1 << len_in_bits) - 1) == 0 && len <= rest.len() as u64).then(|| ix(low_u32(len)))
    }
}

/// The trie.
#[derive(Debug, Clone)]
pub struct Trie {
    /// Whole blocks of 256 [`Slot`]s; slot 0 is the root.
    slots: Table<u64>,
}

/// Tokens in the order of their bytes, which lie side by side in that order: whoever goes through them reads on.
#[derive(Debug, Clone)]
pub(crate) struct Sorted {
    /// Their ranks.
    ranks: Vec<u32>,
    bytes: Vec<u8>,
    /// Where each begins, and the end of the last.
    starts: Vec<u32>,
    /// How many bytes each has in common with the one before.
    common: Vec<u32>,
}

impl Sorted {
    /// All tokens.
    pub(crate) fn new(vocab: &Vocab) -> Self {
        let tokens: Vec<&[u8]> = vocab.iter().collect();
        // Eight bytes decide most comparisons; zeros behind a shorter token do not, so then all bytes are compared.
        let head = |token: &[u8]| {
            let mut head = [0; 8];
            let len = token.len().min(8);
            head[..len].copy_from_slice(&token[..len]);
            u64::from_be_bytes(head)
        };
        let mut order: Vec<(u64, u32)> = (0..).zip(&tokens).map(|(rank, token)| (head(token), rank)).collect();
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| tokens[ix(a.1)].cmp(tokens[ix(b.1)])));
        Self::of(order.iter().map(|&(_, rank)| (rank, tokens[ix(rank)])))
    }

    /// Those that are `wanted`, by rank.
    pub(crate) fn only(&self, wanted: &[bool]) -> Cow<'_, Self> {
        if wanted.iter().all(|&wanted| wanted) {
            return Cow::Borrowed(self);
        }
        let all = self.ranks.iter().enumerate().map(|(place, &rank)| (rank, self.token(place)));
        Cow::Owned(Self::of(all.filter(|&(rank, _)| wanted[ix(rank)])))
    }

    /// These tokens, with their ranks.
    fn of<'a>(tokens: impl Iterator<Item = (u32, &'a [u8])>) -> Self {
        let most = tokens.size_hint().1.unwrap_or(0);
        let (ranks, common) = (Vec::with_capacity(most), Vec::with_capacity(most));
        let mut sorted = Sorted { ranks, bytes: Vec::with_capacity(8 * most), starts: vec![0], common };
        let mut before: &[u8] = &[];
        for (rank, token) in tokens {
            sorted.ranks.push(rank);
            let common = token.iter().zip(before).take_while(|(a, b)| a == b).count();
            sorted.common.push(to_u32(common));
            before = token;
            sorted.bytes.extend_from_slice(token);
            sorted.starts.push(to_u32(sorted.bytes.len()));
        }
        sorted
    }

    fn token(&self, place: usize) -> &[u8] {
        &self.bytes[ix(self.starts[place])..ix(self.starts[place + 1])]
    }

    /// The token at a place, and its rank, and the longest other one that it begins with, if there is one: its rank and
    /// length.
    pub(super) fn for_each_with_prefix(&self, mut each: impl FnMut(&[u8], u32, Option<(u32, usize)>)) {
        // The places of tokens that the one before begins with, and their lengths, each longer than the last.
        let mut open: Vec<(usize, u32)> = Vec::new();
        for (place, &rank) in self.ranks.iter().enumerate() {
            let token = self.token(place);
            // What is longer than that is no prefix of this one.
            while open.pop_if(|last| last.1 > self.common[place]).is_some() {}
            each(token, rank, open.last().map(|&(last, len)| (self.ranks[last], ix(len))));
            open.push((place, to_u32(token.len())));
        }
    }
}

impl Trie {
    /// Builds the trie; O(states * open blocks).
    ///
    /// # Errors
    /// [`Error::Vocabulary`] if more than 2^25 slots were needed.
    pub(crate) fn build(tokens: &Sorted) -> Result<Self, Error> {
        let passed = Passed::all(tokens);
        let whole = tokens.ranks.len();
        let mut builder = Builder { slots: vec![FREE; BLOCK], blocks: vec![Block::new()], open: vec![0] };
        builder.blocks[0].free.take(ROOT);
        // Branches whose children are not placed yet, what text comes to most first: (weight, state, depth, range of
        // `passed` whose tokens pass through it).
        let mut queue = BinaryHeap::from([(passed[whole].sum, to_u32(ROOT), 0, 0, to_u32(whole))]);
        let mut children: Vec<(u8, Range<usize>)> = Vec::new();
        let mut labels: Vec<u8> = Vec::new();
        let mut next = queue.pop();
        while let Some((_, state, depth, from, to)) = next {
            let (state, depth, mut at) = (ix(state), ix(depth), ix(from));
            let bytes = |at: usize| &tokens.bytes[ix(passed[at].start)..ix(passed[at + 1].start)];
            let token = (bytes(at).len() == depth).then_some(passed[at].rank);
            at += usize::from(token.is_some());
            builder.branch(state, token);
            children.clear();
            // All have `depth` bytes in common; where two have no more, a child begins.
            let differ = |(_, here): &(usize, &Passed)| ix(here.common) == depth;
            let ends = (at + 1..).zip(&passed[at + 1..ix(to)]).filter(differ).map(|(i, _)| i);
            for end in ends.chain([ix(to)]) {
                children.push((bytes(at)[depth], at..end));
                at = end;
            }
            labels.clear();
            labels.extend(children.iter().map(|c| c.0));
            let base = builder.place(state, &labels)?;
            next = None;
            for (byte, r) in &children {
                let child = base ^ usize::from(*byte);
                let tail = &bytes(r.start)[depth + 1..];
                if r.len() == 1 && tail.len() as u64 <= MAX_TAIL {
                    builder.leaf(child, passed[r.start].rank, tail);
                } else {
                    let weight = passed[r.end].sum - passed[r.start].sum;
                    let child = (weight, to_u32(child), to_u32(depth + 1), to_u32(r.start), to_u32(r.end));
                    queue.extend(next.replace(child));
                }
            }
            // A state with one child, as most are, often hands on to it.
            next = match queue.peek_mut() {
                Some(mut first) => match next {
                    Some(child) if child > *first => Some(child),
                    Some(child) => Some(std::mem::replace(&mut *first, child)),
                    None => Some(PeekMut::pop(first)),
                },
                None => next,
            };
        }
        Ok(Trie { slots: builder.slots.into() })
    }

    pub(crate) fn from_table(slots: Table<u64>) -> Self {
        Trie { slots }
    }

    /// Whether every entry is possible.
    pub(crate) fn is_sound(&self, tokens: u32) -> bool {
        let len = self.slots.len();
        let known = |slot: Slot| match slot.kind() {
            FREE_KIND => true,
            BRANCH => slot.base() < len,
            TOKEN_BRANCH => slot.base() < len && slot.token() < tokens,
            _ => slot.token() < tokens,
        };
        let root_is_branch = self.slots.first().is_some_and(|&root| Slot(root).kind() == BRANCH);
        root_is_branch && len.is_multiple_of(BLOCK) && self.slots.iter().all(|&slot| known(Slot(slot)))
    }

    pub(crate) fn table(&self) -> &[u64] {
        &self.slots
    }

    /// The longest token that `text[at..end]` starts with, and its end.
    #[inline(always)]
    #[must_use]
    pub fn longest(&self, text: &[u8], at: usize, end: usize) -> Option<(u32, usize)> {
        let slots = &self.slots[..];
        let mut state = Slot(slots[ROOT]);
        let mut found = None;
        for (i, &byte) in text[at..end].iter().enumerate() {
            if !state.may_have_child(byte) {
                break;
            }
            state = Slot(slots[state.base() ^ usize::from(byte)]);
            if !state.is_child_by(byte) {
                break;
            }
            let next = at + i + 1;
            match state.kind() {
                BRANCH => {}
                TOKEN_BRANCH => found = Some((state.token(), next)),
                _ => {
                    let tail = state.match_tail(&text[next..end]);
                    return tail.map(|len| (state.token(), next + len)).or(found);
                }
            }
        }
        found
    }
}

/// What is asked of a token while the trie is built, in one place: the tokens below a state lie side by side, but nowhere
/// near those of the state before.
struct Passed {
    /// How often text comes to a token goes about with the inverse of its rank: the sum of it over all before.
    sum: u64,
    /// As in [`Sorted`].
    start: u32,
    common: u32,
    rank: u32,
}

impl Passed {
    /// All tokens, and one behind the last.
    fn all(tokens: &Sorted) -> Vec<Self> {
        let mut sum = 0;
        let mut all = Vec::with_capacity(tokens.ranks.len() + 1);
        for (place, &start) in tokens.starts.iter().enumerate() {
            let (rank, common) = (tokens.ranks.get(place), tokens.common.get(place));
            let (rank, common) = (rank.copied().unwrap_or_default(), common.copied().unwrap_or_default());
            all.push(Passed { sum, start, common, rank });
            sum += (1 << 40) / (u64::from(rank) + 256);
        }
        all
    }
}

/// A set of slots of one block.
#[derive(Debug, Clone, Copy)]
struct Slots([u64; BLOCK / 64]);

impl Slots {
    const ALL: Slots = Slots([u64::MAX; BLOCK / 64]);

    fn remove(&mut self, slot: usize) {
        self.0[slot % BLOCK / 64] &= !(1 << (slot % 64));
    }

    fn is_empty(self) -> bool {
        self.0 == [0; BLOCK / 64]
    }

    fn and(self, other: Slots) -> Slots {
        Slots(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    /// The slot `s` of which `s ^ label` is lowest.
    fn first_by(self, label: u8) -> Option<usize> {
        let words = (0..BLOCK / 64).map(|word| word ^ usize::from(label >> 6));
        let (place, word) = words.map(|place| (place, self.0[place])).find(|&(_, word)| word != 0)?;
        let mut at = 0;
        for half in [32, 16, 8, 4, 2, 1] {
            let near = at | usize::from(label) & half;
            at = if word >> near & ((1 << half) - 1) == 0 { near ^ half } else { near };
        }
        Some(place * 64 + at)
    }
}

/// The free slots of a block.
struct Free {
    /// By word of 64 slots and by the three low bits of a label, every slot `s` as `s ^ label`.
    words: [[u64; 8]; BLOCK / 64],
    count: usize,
}

impl Free {
    /// Every slot `s` as `s ^ label`.
    #[inline(always)]
    fn xor(&self, label: u8) -> Slots {
        // What the bits in the middle say moves bytes of a word. Which they are is not known ahead: no branch on it.
        let swap = |bit: u8| u64::from(label >> bit & 1).wrapping_neg();
        Slots(std::array::from_fn(|word| {
            let word = self.words[word ^ usize::from(label >> 6)][usize::from(label & 7)];
            let word = word.rotate_left(u32::from(label & 0x20));
            let pairs = (word >> 16 & 0x0000_ffff_0000_ffff) | (word & 0x0000_ffff_0000_ffff) << 16;
            let word = word ^ (word ^ pairs) & swap(4);
            let bytes = (word >> 8 & 0x00ff_00ff_00ff_00ff) | (word & 0x00ff_00ff_00ff_00ff) << 8;
            word ^ (word ^ bytes) & swap(3)
        }))
    }

    /// Takes a slot, which was free.
    fn take(&mut self, slot: usize) {
        for (low, word) in self.words[slot % BLOCK / 64].iter_mut().enumerate() {
            *word &= !(1 << ((slot ^ low) % 64));
        }
        self.count -= 1;
    }
}

/// What is known of 256 slots while the trie is built.
struct Block {
    free: Free,
    /// Those that are not the base of some state.
    spare: Slots,
}

impl Block {
    fn new() -> Self {
        Block { free: Free { words: [[u64::MAX; 8]; BLOCK / 64], count: BLOCK }, spare: Slots::ALL }
    }

    /// A base for a state whose children by `labels` (one or more) are all free, the lowest by the slot of the first.
    fn fit(&self, labels: &[u8]) -> Option<usize> {
        let mut fit = self.spare;
        for &label in labels {
            fit = fit.and(self.free.xor(label));
            if fit.is_empty() {
                return None;
            }
        }
        fit.first_by(labels[0])
    }
}

struct Builder {
    slots: Vec<u64>,
    blocks: Vec<Block>,
    /// Of the last [`OPEN_BLOCKS`] blocks, those that are not full.
    open: Vec<usize>,
}

impl Builder {
    /// Makes `state`, whose label is known, a leaf.
    fn leaf(&mut self, state: usize, token: u32, tail: &[u8]) {
        let bytes = tail.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        let label = self.slots[state] & 0xff << LABEL_SHIFT;
        self.slots[state] = u64::from(token) | label | (tail.len() as u64) << KIND_SHIFT | bytes << TAIL_SHIFT;
    }

    /// Makes `state`, whose label is known, a branch without children so far.
    fn branch(&mut self, state: usize, token: Option<u32>) {
        let kind = if token.is_some() { TOKEN_BRANCH } else { BRANCH };
        let label = self.slots[state] & 0xff << LABEL_SHIFT;
        self.slots[state] = u64::from(token.unwrap_or(0)) | label | kind << KIND_SHIFT;
    }

    /// Finds a base for the branch `state` whose children by `labels` are all free, and takes them.
    fn place(&mut self, state: usize, labels: &[u8]) -> Result<usize, Error> {
        let fit = |&block: &usize| match &self.blocks[block] {
            open if open.free.count >= labels.len() => open.fit(labels).map(|base| block * BLOCK + base),
            _ => None,
        };
        let base = match self.open.iter().find_map(fit) {
            Some(base) => base,
            None => {
                self.slots.resize(self.slots.len() + BLOCK, FREE);
                self.open.retain(|block| block + OPEN_BLOCKS > self.blocks.len());
                self.open.push(self.blocks.len());
                self.blocks.push(Block::new());
                self.slots.len() - BLOCK
            }
        };
        if base >= MAX_SLOTS {
            return Err(Error::Vocabulary { line: 0, reason: "the vocabulary is too large for a trie".into() });
        }
        let block = &mut self.blocks[base / BLOCK];
        block.spare.remove(base);
        self.slots[state] |= (base as u64) << BASE_SHIFT;
        for &label in labels {
            block.free.take(base ^ usize::from(label));
            self.slots[state] |= 1 << (CHILDREN_SHIFT + u32::from(label % 8));
            // The kind of the child comes when it is its turn.
            self.slots[base ^ usize::from(label)] = u64::from(label) << LABEL_SHIFT | BRANCH << KIND_SHIFT;
        }
        if block.free.count == 0 {
            self.open.retain(|&open| open != base / BLOCK);
        }
        Ok(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_match_equals_a_search() {
        let mut tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).collect();
        for word in ["ab", "abc", "abcdef", "bc", "\0\0", "\0\0\0", "zz"] {
            tokens.push(word.as_bytes().to_vec());
        }
        let vocab = Vocab::from_ranked(&tokens).unwrap();
        let trie = Trie::build(&Sorted::new(&vocab)).unwrap();
        let text = b"abcdefabcdxab\0\0\0\0bczzz\xff";
        for at in 0..text.len() {
            let want = (0..)
                .zip(&tokens)
                .filter(|(_, t)| text[at..].starts_with(t))
                .max_by_key(|(_, t)| t.len())
                .map(|(id, t)| (id, at + t.len()));
            assert_eq!(trie.longest(text, at, text.len()), want, "at {at}");
        }
    }

    #[test]
    fn prefixes_are_the_longest() {
        let mut tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).collect();
        for word in ["ab", "a\0", "a\0\0", "abcdefgh", "abcdefgh\0", "abcdefghi", "abcdefg", "abcdefghij", "zab"] {
            tokens.push(word.as_bytes().to_vec());
        }
        let vocab = Vocab::from_ranked(&tokens).unwrap();
        // Without one of them, as if BPE did not make it.
        let has = |rank: u32| tokens[ix(rank)] != b"abcdefgh";
        let wanted: Vec<bool> = (0..vocab.len()).map(has).collect();
        let sorted = Sorted::new(&vocab);
        let sorted = sorted.only(&wanted);
        let mut found = 0;
        let mut before: Vec<u8> = Vec::new();
        sorted.for_each_with_prefix(|token, rank, prefix| {
            assert_eq!((token, before.as_slice() < token), (&tokens[ix(rank)][..], true));
            let others = (0..).zip(&tokens).filter(|&(other, t)| other != rank && has(other) && token.starts_with(t));
            assert_eq!(prefix, others.max_by_key(|(_, t)| t.len()).map(|(other, t)| (other, t.len())), "{token:?}");
            before = token.to_vec();
            found += 1;
        });
        assert_eq!(found, tokens.len() - 1);
    }

    #[test]
    fn a_base_fits_as_a_search_finds_it() {
        let mut seed = 1u64;
        let mut next = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from((seed >> 33) % n).unwrap()
        };
        let mut met = 0;
        for _ in 0..3000 {
            let mut block = Block::new();
            let mut free = Slots::ALL;
            let has = |slots: &Slots, slot: usize| slots.0[slot / 64] >> (slot % 64) & 1 == 1;
            for _ in 0..next(2000) {
                let slot = next(256);
                if has(&free, slot) {
                    block.free.take(slot);
                    free.remove(slot);
                }
            }
            (0..next(40)).for_each(|_| block.spare.remove(next(256)));
            let mut labels: Vec<u8> = (0..=next(5)).map(|_| u8::try_from(next(256)).unwrap()).collect();
            labels.sort_unstable();
            labels.dedup();
            let want = (0..BLOCK)
                .map(|at| at ^ usize::from(labels[0]))
                .find(|&base| has(&block.spare, base) && labels.iter().all(|&l| has(&free, base ^ usize::from(l))));
            assert_eq!(block.fit(&labels), want, "{labels:?}");
            met += usize::from(want.is_some());
            assert_eq!(block.free.count, (0..BLOCK).filter(|&slot| has(&free, slot)).count());
        }
        assert!((500..2900).contains(&met), "{met}");
    }
}
