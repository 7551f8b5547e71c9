//! Which texts of two prompts are the same: all bytes are compared where they do not lie at the same place. What there is to
//! compare is collected first; if it is much, several threads read it.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::known::{Alike, alike};
use crate::parallel;
use crate::text::Text;

/// Shorter texts are compared at once.
const AT_ONCE: usize = 256;
/// Bytes that one thread compares at a time.
const BLOCK: usize = 64 << 10;
/// Bytes for which a thread is worth waking.
const BYTES_A_THREAD: usize = 128 << 10;

/// Pairs of texts of one form and length.
#[derive(Debug, Default)]
pub(super) struct Comparison<'t> {
    /// Where in the prompts the pair belongs, in ascending order, and its bytes.
    pairs: Vec<(usize, &'t [u8], &'t [u8])>,
    len: usize,
}

impl<'t> Comparison<'t> {
    /// Adds a pair that belongs to `place`; false if it is seen at once that they differ.
    #[inline]
    pub fn add(&mut self, place: usize, a: Text<'t>, b: Text<'t>) -> bool {
        let (a, b) = match alike(a, b) {
            Alike::Yes => return true,
            Alike::No => return false,
            Alike::If(a, b) => (a, b),
        };
        if a.len() < AT_ONCE {
            return a == b;
        }
        self.len += a.len();
        self.pairs.push((place, a, b));
        true
    }

    /// The first place whose texts differ, or `end`.
    pub fn first_difference(&self, end: usize) -> usize {
        let worth = self.len / BYTES_A_THREAD;
        // To ask for the limit may be to ask the system.
        let threads = if worth < 2 { 1 } else { worth.min(parallel::limit()) };
        if threads < 2 {
            return self.pairs.iter().find(|(_, a, b)| a != b).map_or(end, |pair| pair.0);
        }
        let blocks: Vec<_> = self
            .pairs
            .iter()
            .flat_map(|&(place, a, b)| a.chunks(BLOCK).zip(b.chunks(BLOCK)).map(move |(a, b)| (place, a, b)))
            .collect();
        let first = AtomicUsize::new(end);
        parallel::on_threads(threads, blocks.len(), |next| {
            while let Some(block) = next() {
                let (place, a, b) = blocks[block];
                // Those that come are not before it.
                if first.load(Ordering::Relaxed) <= place {
                    return;
                }
                if a != b {
                    first.fetch_min(place, Ordering::Relaxed);
                }
            }
        });
        first.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_found_wherever_it_is() {
        let texts: Vec<Vec<u8>> = (0..40).map(|i| vec![b'a'; [3, 300, 70_000, 200_000][i % 4]]).collect();
        for wrong in 0..=texts.len() {
            let mut other = texts.clone();
            // Two differ: the first one counts.
            for (index, text) in other.iter_mut().enumerate().skip(wrong).step_by(5) {
                let at = (index * 7919) % text.len();
                text[at] = b'b';
            }
            let mut comparison = Comparison::default();
            let seen = texts.iter().zip(&other).enumerate();
            let seen = seen.take_while(|(i, (a, b))| comparison.add(*i, Text::Latin1(a), Text::Latin1(b))).count();
            assert_eq!(comparison.first_difference(seen), wrong);
        }
    }

    #[test]
    fn another_form_or_length_is_another_text() {
        let elsewhere = b"ab".to_vec();
        let mut comparison = Comparison::default();
        assert!(comparison.add(0, Text::Latin1(b"ab"), Text::Latin1(&elsewhere)));
        assert!(!comparison.add(0, Text::Latin1(b"ab"), Text::Latin1(b"ac")));
        assert!(!comparison.add(0, Text::Latin1(b"ab"), Text::Latin1(b"abc")));
        assert!(!comparison.add(0, Text::Latin1(b"a"), Text::Ucs2(&[97])));
        assert_eq!(comparison.first_difference(7), 7);
    }
}
