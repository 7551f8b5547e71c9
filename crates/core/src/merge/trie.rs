//! Longest token at a position, by a double-array trie over the token bytes.
//!
//! A state is a slot number. The child of state `s` by byte `b` is slot `base[s] ^ b` if that slot's
//! `parent` is `s`. Slots are used in blocks of 256, so `base ^ b` stays in one block.

use crate::error::Error;
use crate::num::{ix, to_u32};
use crate::table::{Plain, Table};
use crate::vocab::Vocab;

use super::NONE;

/// One state of the trie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Slot {
    /// XORed with a byte gives the child's slot.
    base: u32,
    /// The slot whose child this is; [`NONE`] in a free slot.
    parent: u32,
    /// The token that ends here, or [`NONE`].
    token: u32,
}

// SAFETY: repr(C), three u32 without padding, every bit pattern is valid.
unsafe impl Plain for Slot {}

const FREE: Slot = Slot { base: 0, parent: NONE, token: NONE };
const ROOT: usize = 0;
const BLOCK: usize = 256;
/// Blocks, counted from the last, in which room for new states is looked for.
const OPEN_BLOCKS: usize = 24;

/// The trie.
#[derive(Debug, Clone)]
pub struct Trie {
    /// Whole blocks of 256 slots; slot 0 is the root.
    slots: Table<Slot>,
}

impl Trie {
    /// Builds the trie; O(states * open blocks).
    ///
    /// # Errors
    /// [`Error::Vocabulary`] if more than 2^31 slots were needed.
    pub fn build(vocab: &Vocab) -> Result<Self, Error> {
        let tokens: Vec<&[u8]> = vocab.iter().collect();
        let mut order: Vec<u32> = (0..vocab.len()).collect();
        order.sort_unstable_by_key(|&id| tokens[ix(id)]);
        let mut builder = Builder { slots: vec![FREE; BLOCK], free: vec![BLOCK - 1] };
        builder.slots[ROOT].parent = to_u32(ROOT);
        // (state, depth, range of `order` whose tokens pass through the state)
        let mut queue = std::collections::VecDeque::from([(ROOT, 0, 0..order.len())]);
        while let Some((state, depth, range)) = queue.pop_front() {
            let mut at = range.start;
            if at < range.end && tokens[ix(order[at])].len() == depth {
                builder.slots[state].token = order[at];
                at += 1;
            }
            let mut children: Vec<(u8, std::ops::Range<usize>)> = Vec::new();
            for i in at..range.end {
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
                queue.push_back((base ^ usize::from(byte), depth + 1, r));
            }
        }
        Ok(Trie { slots: builder.slots.into() })
    }

    pub(crate) fn from_table(slots: Table<Slot>) -> Self {
        Trie { slots }
    }

    /// Whether every entry is possible.
    pub(crate) fn is_sound(&self, tokens: u32) -> bool {
        let len = self.slots.len();
        let known = |slot: &Slot| ix(slot.base) < len && (slot.token == NONE || slot.token < tokens);
        len > 0 && len.is_multiple_of(BLOCK) && self.slots.iter().all(known)
    }

    pub(crate) fn table(&self) -> &[Slot] {
        &self.slots
    }

    /// The longest token that `text[at..end]` starts with, and its end.
    #[inline(always)]
    #[must_use]
    pub fn longest(&self, text: &[u8], at: usize, end: usize) -> Option<(u32, usize)> {
        let slots = &self.slots[..];
        let mut state = ROOT;
        let mut base = ix(slots[ROOT].base);
        let mut found = None;
        for (i, &byte) in text[at..end].iter().enumerate() {
            let child = base ^ usize::from(byte);
            let slot = slots[child];
            if ix(slot.parent) != state || child == ROOT {
                break;
            }
            if slot.token != NONE {
                found = Some((slot.token, at + i + 1));
            }
            state = child;
            base = ix(slot.base);
        }
        found
    }
}

struct Builder {
    slots: Vec<Slot>,
    /// Free slots of each block.
    free: Vec<usize>,
}

impl Builder {
    /// Finds a base for `state` whose children by `labels` are all free, and takes them.
    fn place(&mut self, state: usize, labels: &[u8]) -> Result<usize, Error> {
        let first_block = self.free.len().saturating_sub(OPEN_BLOCKS);
        let mut base = None;
        for block in first_block..self.free.len() {
            if self.free[block] >= labels.len() {
                base = self.fit(block * BLOCK, labels);
                if base.is_some() {
                    break;
                }
            }
        }
        let base = match base {
            Some(base) => base,
            None => {
                self.slots.resize(self.slots.len() + BLOCK, FREE);
                self.free.push(BLOCK);
                self.slots.len() - BLOCK
            }
        };
        if base >= 1 << 31 {
            return Err(Error::Vocabulary { line: 0, reason: "the vocabulary is too large for a trie".into() });
        }
        self.slots[state].base = to_u32(base);
        for &label in labels {
            let child = base ^ usize::from(label);
            self.slots[child].parent = to_u32(state);
            // A leaf's base is never followed: its children would need it as parent.
            self.free[base / BLOCK] -= 1;
        }
        Ok(base)
    }

    fn fit(&self, start: usize, labels: &[u8]) -> Option<usize> {
        let free = |at: usize| at != ROOT && self.slots[at].parent == NONE;
        (start..start + BLOCK)
            .filter(|&at| free(at))
            .map(|at| at ^ usize::from(labels[0]))
            .find(|&base| labels.iter().all(|&l| free(base ^ usize::from(l))))
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
