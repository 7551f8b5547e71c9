//! Longest token at a position, by a double-array trie over the token bytes.
//!
//! A state is a slot number. The child of state `s` by byte `b` is slot `base(s) ^ b` if that slot is in use and has
//! the label `b`: no two states have the same base, so nobody else can have a child with that label there.
//! Slots are used in blocks of 256, so `base ^ b` stays in one block.
//!
//! What costs is memory far away: a slot is eight bytes, states that text comes to often lie side by side at the
//! beginning, and a state says which children it may have, so that a walk seldom loads a slot to learn that it has ended.

use std::collections::BinaryHeap;
use std::ops::Range;

use crate::error::Error;
use crate::num::{ix, low_u32, to_u32};
use crate::table::Table;
use crate::vocab::{MAX_TOKENS, Vocab};

/// One state, in 64 bits: from the low end
/// - 21 bits: the token that ends here, or [`NO_TOKEN`];
/// - 9 bits: the byte that leads here, and above it a 1 (a 0 in free slots and in the root);
/// - 8 bits: bit `b % 8` is set if there is a child by some byte with these three low bits;
/// - 26 bits: XORed with a byte gives the child's slot.
#[derive(Clone, Copy)]
struct Slot(u64);

const TOKEN_BITS: u32 = 21;
const NO_TOKEN: u32 = (1 << TOKEN_BITS) - 1;
const LABEL_SHIFT: u32 = TOKEN_BITS;
const IN_USE: u64 = 1 << 8;
const CHILDREN_SHIFT: u32 = LABEL_SHIFT + 9;
const BASE_SHIFT: u32 = CHILDREN_SHIFT + 8;
const MAX_SLOTS: usize = 1 << (64 - BASE_SHIFT);

/// The last id must not look like no token.
const _: () = assert!(MAX_TOKENS <= NO_TOKEN as usize);

const FREE: u64 = NO_TOKEN as u64;
const ROOT: usize = 0;
const BLOCK: usize = 256;
/// Blocks, counted from the last, in which room for new states is looked for.
const OPEN_BLOCKS: usize = 24;

impl Slot {
    #[inline(always)]
    fn token(self) -> u32 {
        low_u32(self.0) & NO_TOKEN
    }

    #[inline(always)]
    fn is_child_by(self, byte: u8) -> bool {
        self.0 >> LABEL_SHIFT & 0x1ff == IN_USE | u64::from(byte)
    }

    #[inline(always)]
    fn may_have_child(self, byte: u8) -> bool {
        self.0 >> (CHILDREN_SHIFT + u32::from(byte % 8)) & 1 == 1
    }

    #[inline(always)]
    fn base(self) -> usize {
        ix(low_u32(self.0 >> BASE_SHIFT))
    }
}

/// The trie.
#[derive(Debug, Clone)]
pub struct Trie {
    /// Whole blocks of 256 [`Slot`]s; slot 0 is the root.
    slots: Table<u64>,
}

impl Trie {
    /// Builds the trie; O(states * open blocks).
    ///
    /// # Errors
    /// [`Error::Vocabulary`] if more than 2^26 slots were needed.
    pub fn build(vocab: &Vocab) -> Result<Self, Error> {
        let tokens: Vec<&[u8]> = vocab.iter().collect();
        let mut order: Vec<u32> = (0..vocab.len()).collect();
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
        // States without children yet, what text comes to most first: (weight, state, depth, range of `order` whose
        // tokens pass through it).
        let whole = to_u32(order.len());
        let mut queue = BinaryHeap::from([(sums[ix(whole)], to_u32(ROOT), 0, 0, whole)]);
        while let Some((_, state, depth, from, to)) = queue.pop() {
            let (state, depth, mut at) = (ix(state), ix(depth), ix(from));
            if at < ix(to) && tokens[ix(order[at])].len() == depth {
                builder.slots[state] = builder.slots[state] & !u64::from(NO_TOKEN) | u64::from(order[at]);
                at += 1;
            }
            let mut children: Vec<(u8, Range<usize>)> = Vec::new();
            for i in at..ix(to) {
                let byte = tokens[ix(order[i])][depth];
                match children.last_mut() {
                    Some((last, r)) if *last == byte => r.end = i + 1,
                    _ => children.push((byte, i..i + 1)),
                }
            }
            if children.is_empty() {
                continue;
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
        let known = |slot: Slot| slot.base() < len && (slot.token() == NO_TOKEN || slot.token() < tokens);
        len > 0 && len.is_multiple_of(BLOCK) && self.slots.iter().all(|&slot| known(Slot(slot)))
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
            if state.token() != NO_TOKEN {
                found = Some((state.token(), at + i + 1));
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
    /// Finds a base for `state` whose children by `labels` are all free, and takes them.
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
            self.slots[base ^ usize::from(label)] |= (IN_USE | u64::from(label)) << LABEL_SHIFT;
        }
        Ok(base)
    }

    fn fit(&self, block: usize, labels: &[u8]) -> Option<usize> {
        let start = block * BLOCK;
        let free = |at: usize| at != ROOT && self.slots[at] >> LABEL_SHIFT & IN_USE == 0;
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
        let trie = Trie::build(&vocab).unwrap();
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
