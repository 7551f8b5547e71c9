//! The two tables of a [`Cache`](super::cache::Cache): small at first, large where that is of use.
//!
//! Both begin with half of a huge page each. When one has taken in as many entries as it has lines, and was not asked in vain
//! nearly always meanwhile (as by random words, for which a large one is no better), it asks for the memory of a large one
//! ([`super::ahead`]); when that has come, the large one takes its place, empty. Where nobody brings it in, the table does
//! so itself, a huge page now and then, so that no request waits for all of them. The small one is asked for what the large
//! one has not, until that has taken in `HANDOVER` entries.

use std::marker::PhantomData;
use std::ops::Range;

use super::ahead;
use crate::table::{HUGE_PAGE, Plain, Zeros};

/// Lines of a small table, as a power of two: 1 MB.
pub(super) const SMALL_BITS: u32 = 14;
/// Bytes of a line.
pub(super) const LINE: usize = 64;
/// Entries that a large table takes in before the small one is given up.
pub(super) const HANDOVER: usize = 2 << SMALL_BITS;
/// Entries that a table takes in before it looks again whether its memory has come.
pub(super) const LOOK_AGAIN: usize = 1 << 10;
/// How often it looks before it brings in the memory itself.
pub(super) const PATIENCE: u32 = 64;
/// Entries that it takes in meanwhile before it brings in one more huge page.
pub(super) const GO_ON: usize = 4 << 10;
/// A table that takes in more entries than this for each answer that it gives does not grow.
pub(super) const PUTS_A_HIT: usize = 2;

/// Who brings memory in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    /// Has so many bytes brought in; false if nobody does.
    pub ask: fn(usize) -> bool,
    /// So many bytes, if they have come.
    pub take: fn(usize) -> Option<Zeros>,
}

impl Source {
    /// See [`super::ahead`].
    pub const AHEAD: Source = Source { ask: ahead::ask, take: ahead::take };
}

/// A table: the large one if there is one, else its part of the memory with which a cache begins.
#[derive(Debug)]
pub(super) struct Lines<L> {
    /// Where its small table lies in the first memory.
    small: Range<usize>,
    pub large: Option<Zeros>,
    /// Lines of the large table, as a power of two.
    pub large_bits: u32,
    /// Entries put into the table in use; into a small one, since it was last considered whether it is to grow.
    puts: usize,
    /// Answers that a small table gave since then.
    pub hits: usize,
    growth: Growth,
    kind: PhantomData<L>,
}

/// How far a small table is on its way.
#[derive(Debug, Default)]
enum Growth {
    #[default]
    None,
    /// Memory was asked for; how often to look whether it has come.
    Asked(u32),
    /// The memory, and how many of its bytes are brought in.
    Own(Zeros, usize),
}

impl<L: Plain> Lines<L> {
    /// The table whose small form is the `number`th.
    pub fn new(number: usize, large_bits: u32) -> Self {
        let size = LINE << SMALL_BITS;
        Lines {
            small: number * size..(number + 1) * size,
            large: None,
            large_bits,
            puts: 0,
            hits: 0,
            growth: Growth::None,
            kind: PhantomData,
        }
    }

    /// The lines in use, and their number as a power of two.
    #[inline(always)]
    pub fn lines<'a>(&'a self, first: &'a Zeros) -> (&'a [L], u32) {
        match &self.large {
            Some(large) => (large.view(0..LINE << self.large_bits), self.large_bits),
            None => (first.view(self.small.clone()), SMALL_BITS),
        }
    }

    /// The same for writing.
    #[inline(always)]
    pub fn lines_mut<'a>(&'a mut self, first: &'a mut Zeros) -> (&'a mut [L], u32) {
        let small = first.view_mut(self.small.clone());
        among(&mut self.large, self.large_bits, small)
    }

    /// The small table, if it is to be asked for what the large one has not.
    #[inline]
    pub fn before<'a>(&self, first: &'a Zeros) -> Option<&'a [L]> {
        (self.large.is_some() && self.puts < HANDOVER).then(|| first.view(self.small.clone()))
    }

    /// Counts an entry.
    #[inline]
    pub fn count_put(&mut self, source: Source) {
        self.puts += 1;
        if self.puts > 1 << SMALL_BITS && self.large.is_none() {
            self.consider(source);
        }
    }

    /// Goes a step towards a large table, if there is reason. Where there is no memory for it, the small one stays.
    #[cold]
    #[inline(never)]
    fn consider(&mut self, source: Source) {
        let len = LINE << self.large_bits;
        let growth = std::mem::take(&mut self.growth);
        if matches!(growth, Growth::None) && self.hits * PUTS_A_HIT < self.puts {
            (self.puts, self.hits) = (0, 0);
            return;
        }
        // Who asked and is gone may have left some: taken first, so that it never becomes more.
        let come = if matches!(growth, Growth::Own(..)) { None } else { (source.take)(len) };
        self.growth = match (growth, come) {
            (_, Some(zeros)) => Growth::Own(zeros, len),
            (Growth::None, None) if (source.ask)(len) => Growth::Asked(PATIENCE),
            (Growth::None | Growth::Asked(0), None) => {
                Zeros::new(len).map_or(Growth::None, |zeros| Growth::Own(zeros, 0))
            }
            (Growth::Asked(looks), None) => Growth::Asked(looks - 1),
            (Growth::Own(zeros, from), None) => {
                let to = len.min(from + HUGE_PAGE);
                zeros.bring_in_part(from..to);
                Growth::Own(zeros, to)
            }
        };
        let more = match self.growth {
            Growth::None => 1 << SMALL_BITS,
            Growth::Asked(_) => LOOK_AGAIN,
            Growth::Own(_, brought) if brought < len => GO_ON,
            Growth::Own(..) => {
                let Growth::Own(zeros, _) = std::mem::take(&mut self.growth) else { unreachable!("seen above") };
                self.large = Some(zeros);
                1 << SMALL_BITS
            }
        };
        (self.puts, self.hits) = ((1 << SMALL_BITS) - more, 0);
    }
}

/// The large table if there is one, else the small one; and its number of lines as a power of two.
#[inline(always)]
pub(super) fn among<'a, L: Plain>(
    large: &'a mut Option<Zeros>,
    large_bits: u32,
    small: &'a mut [L],
) -> (&'a mut [L], u32) {
    match large {
        Some(large) => (large.view_mut(0..LINE << large_bits), large_bits),
        None => (small, SMALL_BITS),
    }
}
