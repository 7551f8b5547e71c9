//! Splitting text into pre-tokens: the contract.
//!
//! A [`Pattern`] cuts a piece of text (already cut and freed of control tokens, see
//! [`crate::segment`]) into pre-tokens from the left. Patterns that Kizami knows run as hand-written scanners;
//! any other runs on the general regex engine. There is one file per pattern family; `known` lists the spellings of each.
//!
//! # Contract
//! 1. Pre-tokens are non-empty, in order, and do not overlap; a scanner's pre-tokens tile the text.
//! 2. For scanners, the split of the text from a pre-token's start on does not depend on what stands before it, so a scan
//!    may stop and resume at any pre-token start. The general engine may look behind: it is given the whole text, begins
//!    at 0, and resumes where it said.
//! 3. [`Pattern::is_hard_boundary`] is true only where a pre-token ends whatever the context; there a
//!    text may be handed to two threads.
//! 4. Time is linear in the text for scanners.

mod cl100k;
mod cl100k_planes;
mod deepseek;
mod deepseek_planes;
#[cfg(feature = "general-pattern")]
mod general;
mod gpt2;
mod gpt2_planes;
mod kimi;
mod kimi_planes;
mod known;
mod o200k;
mod o200k_planes;
#[cfg(feature = "general-pattern")]
mod oniguruma;
mod planes;
#[cfg(feature = "general-pattern")]
mod prefix;
mod scan;
#[cfg(feature = "general-pattern")]
mod stage;

#[cfg(feature = "general-pattern")]
pub use general::GeneralPattern;
#[cfg(feature = "formats")]
pub(crate) use general::check_length;
pub use gpt2::GPT2_PATTERN;
pub use kimi::KIMI_PATTERN;
#[cfg(feature = "general-pattern")]
pub use prefix::Prefix;
#[cfg(feature = "formats")]
pub(crate) use stage::byte_char;
#[cfg(feature = "general-pattern")]
pub use stage::{Behavior, Stage};

/// A build without the general engine has no prefix.
#[cfg(not(feature = "general-pattern"))]
mod no_prefix {
    use std::borrow::Cow;

    #[derive(Debug, Clone)]
    pub enum Prefix {}

    impl Prefix {
        pub fn pieces<'t>(
            &self,
            _: &'t str,
            _: impl FnMut(usize, Cow<'t, str>) -> Result<(), crate::Error>,
        ) -> Result<(), crate::Error> {
            match *self {}
        }
    }
}
#[cfg(not(feature = "general-pattern"))]
pub(crate) use no_prefix::Prefix;

use crate::error::Error;
use crate::simd::Level;
use crate::unicode::decode_at;

/// Pre-tokens after which a batch is full: large enough to hide a batch's fixed costs, small enough for L1.
const ENOUGH: usize = 128;
/// Most pre-tokens of a batch: the last 64 bytes before it was full are used up, though each may be a pre-token.
pub const BATCH: usize = ENOUGH + 64;

/// A run of pre-tokens as byte ranges of one text.
#[derive(Debug)]
pub struct Batch {
    /// `(start, end)` in bytes; the first `len` are valid.
    ranges: [(u32, u32); BATCH],
    /// Number of valid ranges.
    len: usize,
    /// What a pattern of several stages found beyond.
    #[cfg(feature = "general-pattern")]
    waiting: general::Waiting,
}

impl Default for Batch {
    fn default() -> Self {
        Batch {
            ranges: [(0, 0); BATCH],
            len: 0,
            #[cfg(feature = "general-pattern")]
            waiting: general::Waiting::default(),
        }
    }
}

impl Batch {
    /// The pre-tokens found by the last [`Pattern::fill`].
    #[inline]
    #[must_use]
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges[..self.len]
    }

    /// Forgets all.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    #[inline(always)]
    fn push(&mut self, start: usize, end: usize) {
        self.push_range(crate::num::to_u32(start), crate::num::to_u32(end));
    }

    #[inline(always)]
    fn push_range(&mut self, start: u32, end: u32) {
        self.ranges[self.len] = (start, end);
        self.len += 1;
    }

    /// Notes where the next pre-token starts, for [`Batch::cut`].
    #[inline(always)]
    fn start(&mut self, at: usize) {
        self.ranges[self.len].0 = crate::num::to_u32(at);
    }

    /// Where the next pre-token starts, after [`Batch::start`] and [`Batch::cut`].
    #[inline(always)]
    fn pending(&self) -> usize {
        crate::num::ix(self.ranges[self.len].0)
    }

    /// Ends a pre-token, and starts the next, at `base` plus each bit of `bits`. The batch must not be full before.
    #[inline(always)]
    fn cut(&mut self, base: usize, mut bits: u64) {
        let base = crate::num::to_u32(base);
        let mut at = self.len;
        self.len += crate::num::ix(bits.count_ones());
        while bits != 0 {
            // Eight at a time, needed or not: cheaper than a loop of unknown length. What is too much is
            // overwritten by the next; the start of the pending one is not.
            let slots = self.ranges[at..].first_chunk_mut::<9>().expect("room for 64 more");
            for i in 0..8 {
                let end = base.wrapping_add(bits.trailing_zeros());
                bits &= bits.wrapping_sub(1);
                slots[i].1 = end;
                slots[i + 1].0 = end;
            }
            at += 8;
        }
    }

    /// Whether it is time to work off what is there.
    #[inline(always)]
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len >= ENOUGH
    }
}

/// How text is split. What a variant carries is its own business: [`Pattern::from_regex`] makes them.
#[derive(Debug, Clone)]
pub enum Pattern {
    /// The pattern of the Kimi line, by scanner.
    Kimi,
    /// GPT-2 and its heirs.
    Gpt2,
    /// cl100k, Llama 3, Qwen, and more.
    Cl100k(cl100k::Rules),
    /// o200k, Tekken.
    O200k(o200k::Rules),
    /// DeepSeek V3 and V4.
    Deepseek,
    /// Any other regex, by the general engine.
    #[cfg(feature = "general-pattern")]
    General(GeneralPattern),
}

impl Pattern {
    /// The scanner for a pattern if there is one, else the general engine: the pre-tokens are the successive matches, as
    /// in tiktoken.
    ///
    /// # Errors
    /// [`Error::Pattern`] when the regex does not compile.
    pub fn from_regex(regex: &str) -> Result<Self, Error> {
        if let Some(scanner) = known::scanner(regex, known::Dialect::Fancy) {
            return Ok(scanner);
        }
        #[cfg(feature = "general-pattern")]
        return GeneralPattern::new(regex).map(Pattern::General);
        #[cfg(not(feature = "general-pattern"))]
        Err(Error::Pattern("built without the engine for general patterns".into()))
    }

    /// The scanner for stages that each isolate the matches of a regex in the syntax of Oniguruma, if there is one. The
    /// matches of a single one may as well be all that is kept: a scanner leaves nothing out.
    #[cfg(feature = "general-pattern")]
    #[must_use]
    pub fn scanner_for_stages(regexes: &[&str]) -> Option<Self> {
        known::isolating(regexes)
    }

    /// The name of the pattern: that of the model that it became known by, or "general".
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Pattern::Kimi => "kimi",
            Pattern::Gpt2 => "gpt2",
            Pattern::Cl100k(rules) => rules.name,
            Pattern::O200k(rules) => rules.name,
            Pattern::Deepseek => "deepseek3",
            #[cfg(feature = "general-pattern")]
            Pattern::General(_) => "general",
        }
    }

    /// The regexes that have a scanner, and the scanner of each.
    pub fn known() -> impl Iterator<Item = (&'static str, &'static Pattern)> {
        known::spellings()
    }

    #[cfg(feature = "general-pattern")]
    /// The general engine for the same pattern: the oracle that tests compare a scanner with.
    ///
    /// # Errors
    /// [`Error::Pattern`] when the regex does not compile.
    pub fn to_general(&self) -> Result<GeneralPattern, Error> {
        match self {
            Pattern::General(general) => Ok(general.clone()),
            Pattern::Deepseek => {
                let stages = known::DEEPSEEK.iter().map(|regex| Stage::new(regex, Behavior::Isolated, false));
                Ok(GeneralPattern::of_stages(stages.collect::<Result<_, _>>()?))
            }
            scanner => {
                let (regex, _) = known::spellings()
                    .find(|(_, pattern)| pattern.name() == scanner.name())
                    .expect("every other scanner has a spelling");
                GeneralPattern::new(regex)
            }
        }
    }

    /// Fills `batch` with the pre-tokens of `text` from `at` on; returns where to go on.
    ///
    /// The return value is `text.len()` when the text is used up. `text` is UTF-8 and `at` a pre-token start.
    ///
    /// # Errors
    /// [`Error::Pattern`] when the general engine gives up; scanners never fail.
    #[inline]
    pub fn fill(&self, text: &[u8], at: usize, batch: &mut Batch) -> Result<usize, Error> {
        batch.len = 0;
        self.append(text, at, batch)
    }

    /// As [`Pattern::fill`], behind what is in `batch`.
    #[inline]
    pub(crate) fn append(&self, text: &[u8], at: usize, batch: &mut Batch) -> Result<usize, Error> {
        self.append_at_level(crate::simd::level(), text, at, batch)
    }

    #[inline]
    fn append_at_level(&self, level: Level, text: &[u8], at: usize, batch: &mut Batch) -> Result<usize, Error> {
        match self {
            Pattern::Kimi => Ok(planes::fill(level, kimi_planes::Kimi, text, at, batch)),
            _ => self.append_other(level, text, at, batch),
        }
    }

    /// The same for all that is not Kimi's, out of its way.
    #[inline(never)]
    fn append_other(&self, level: Level, text: &[u8], at: usize, batch: &mut Batch) -> Result<usize, Error> {
        Ok(match self {
            Pattern::Kimi => planes::fill(level, kimi_planes::Kimi, text, at, batch),
            Pattern::Gpt2 => planes::fill(level, gpt2_planes::Gpt2, text, at, batch),
            Pattern::Cl100k(rules) => planes::fill(level, rules, text, at, batch),
            Pattern::O200k(rules) => planes::fill(level, rules, text, at, batch),
            Pattern::Deepseek => planes::fill(level, deepseek_planes::Deepseek, text, at, batch),
            #[cfg(feature = "general-pattern")]
            Pattern::General(general) => return general.fill(text, at, batch),
        })
    }

    /// As [`Pattern::fill`], by one form of the scanner, where there are several: tests compare them.
    ///
    /// # Errors
    /// As [`Pattern::fill`].
    pub fn fill_at_level(&self, level: Level, text: &[u8], at: usize, batch: &mut Batch) -> Result<usize, Error> {
        batch.len = 0;
        self.append_at_level(level, text, at, batch)
    }

    /// Whether a split may depend on what stands before its start, so that a stretch must be given alone.
    #[inline]
    #[must_use]
    pub fn looks_behind(&self) -> bool {
        match self {
            #[cfg(feature = "general-pattern")]
            Pattern::General(_) => true,
            _ => false,
        }
    }

    /// True where a pre-token ends at `at` whatever else the text holds (contract 3).
    ///
    /// False is always a correct answer.
    #[inline]
    #[must_use]
    pub fn is_hard_boundary(&self, text: &[u8], at: usize) -> bool {
        let is_start = |at: usize| text[at] & 0xc0 != 0x80;
        if at == 0 || at >= text.len() || !is_start(at) {
            return false;
        }
        let before = (0..at).rev().find(|&at| is_start(at)).unwrap_or(0);
        self.parts(decode_at(text, before).0, decode_at(text, at).0)
    }

    /// Whether a pre-token ends between two characters wherever they stand side by side (contract 3).
    ///
    /// False is always a correct answer.
    #[inline]
    #[must_use]
    pub fn parts(&self, before: u32, here: u32) -> bool {
        // What a surrogate stands for is not known here: half a character is no place to part at.
        let is_half = |unit| (0xd800..0xe000).contains(&unit);
        match self {
            Pattern::Kimi => kimi::is_hard_boundary(before, here),
            _ if is_half(before) || is_half(here) => false,
            Pattern::Gpt2 => gpt2::is_hard_boundary(before, here),
            Pattern::Cl100k(rules) => cl100k::is_hard_boundary(rules, before, here),
            Pattern::O200k(rules) => o200k::is_hard_boundary(rules, before, here),
            Pattern::Deepseek => deepseek::is_hard_boundary(before, here),
            #[cfg(feature = "general-pattern")]
            Pattern::General(_) => false,
        }
    }
}
