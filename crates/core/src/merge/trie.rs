//! Longest token at a position, by a double-array trie over the token bytes.
//!
//! A state is a slot number. The child of state `s` by byte `b` is slot `base(s) ^ b` if that slot is in use and has
//! the label `b`: no two states have the same base, so nobody else can have a child with that label there.
//! Slots are used in blocks of 256, so `base ^ b` stays in one block.
//!
//! What costs is memory far away: a slot is eight bytes, states that text comes to often lie side by side at the
//! beginning, a state says which children it may have, so that a walk seldom loads a slot to learn that it has ended, and
//! where only one token is left, its last bytes are kept in the slot itself, which saves four states in nine.

use std::collections::BinaryHeap;
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

impl Trie {
    /// Builds the trie of the tokens that it `has`, by rank; O(states * open blocks).
    ///
    /// # Errors
    /// [`Error::Vocabulary`] if more than 2^25 slots were needed.
    pub fn build(vocab: &Vocab, has: impl Fn(u32) -> bool) -> Result<Self, Error> {
        let tokens: Vec<&[u8]> = vocab.iter().collect();
        let mut order: Vec<u32> = (0..vocab.len()).filter(|&rank| has(rank)).collect();
        order.sort_unstable_by_key(|&id| tokens[ix(id)]);
        // How often text comes to a token goes about with the inverse of its rank. Sums of it, in order of bytes.
        let sums: Vec<u64> = std::iter::once(0)
            .chain(order.iter().scan(0, |sum, &id| {
                *sum += (1 << 40) / (u64::from(id) + 256);
                Some(*sum)
            }))
            .collect();
        let mut builder = Builder { slots: vec![FREE; BLOCK], blocks: vec![Block::new()] };
        builder.blocks[0].free -= 1;
        // States whose children are not placed yet, what text comes to most first: (weight, state, depth, range of
        // `order` whose tokens pass through it).
        let whole = to_u32(order.len());
        let mut queue = BinaryHeap::from([(sums[ix(whole)], to_u32(ROOT), 0, 0, whole)]);
        while let Some((_, state, depth, from, to)) = queue.pop() {
            let (state, depth, mut at) = (ix(state), ix(depth), ix(from));
            let tail = &tokens[ix(order[at])][depth..];
            if at + 1 == ix(to) && tail.len() as u64 <= MAX_TAIL {
                builder.leaf(state, order[at], tail);
                continue;
            }
            let token = tail.is_empty().then(|| order[at]);
            at += usize::from(token.is_some());
            builder.branch(state, token);
            let mut children: Vec<(u8, Range<usize>)> = Vec::new();
            for i in at..ix(to) {
                let byte = tokens[ix(order[i])][depth];
                match children.last_mut() {
                    Some((last, r)) if *last == byte => r.end = i + 1,
                    _ => children.push((byte, i..i + 1)),
                }
            }
            let labels: Vec<u8> = children.iter().map(|c| c.0).collect();
            let base = builder.place(state, &labels)?;
            for (byte, r) in children {
                let child = to_u32(base ^ usize::from(byte));
                queue.push((sums[r.end] - sums[r.start], child, to_u32(depth + 1), to_u32(r.start), to_u32(r.end)));
            }
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

/// What is known of 256 slots while the trie is built.
struct Block {
    /// How many are free.
    free: usize,
    /// Bit `b` is set if some state has the base `b` of this block.
    bases: [u64; BLOCK / 64],
}

impl Block {
    fn new() -> Self {
        Block { free: BLOCK, bases: [0; BLOCK / 64] }
    }
}

struct Builder {
    slots: Vec<u64>,
    blocks: Vec<Block>,
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
        let first = self.blocks.len().saturating_sub(OPEN_BLOCKS);
        let open = first..self.blocks.len();
        let base = match open.filter(|&b| self.blocks[b].free >= labels.len()).find_map(|b| self.fit(b, labels)) {
            Some(base) => base,
            None => {
                self.slots.resize(self.slots.len() + BLOCK, FREE);
                self.blocks.push(Block::new());
                self.slots.len() - BLOCK
            }
        };
        if base >= MAX_SLOTS {
            return Err(Error::Vocabulary { line: 0, reason: "the vocabulary is too large for a trie".into() });
        }
        let block = &mut self.blocks[base / BLOCK];
        block.bases[base % BLOCK / 64] |= 1 << (base % 64);
        block.free -= labels.len();
        self.slots[state] |= (base as u64) << BASE_SHIFT;
        for &label in labels {
            self.slots[state] |= 1 << (CHILDREN_SHIFT + u32::from(label % 8));
            // The kind of the child comes when it is its turn; until then it must not look free.
            self.slots[base ^ usize::from(label)] = u64::from(label) << LABEL_SHIFT | BRANCH << KIND_SHIFT;
        }
        Ok(base)
    }

    fn fit(&self, block: usize, labels: &[u8]) -> Option<usize> {
        let start = block * BLOCK;
        let free = |at: usize| at != ROOT && Slot(self.slots[at]).kind() == FREE_KIND;
        let taken = |base: usize| self.blocks[block].bases[base % BLOCK / 64] >> (base % 64) & 1 == 1;
        (start..start + BLOCK)
            .filter(|&at| free(at))
            .map(|at| at ^ usize::from(labels[0]))
            .find(|&base| !taken(base) && labels.iter().all(|&l| free(base ^ usize::from(l))))
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
        let trie = Trie::build(&vocab, |_| true).unwrap();
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
}
