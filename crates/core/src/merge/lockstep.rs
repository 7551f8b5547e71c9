//! BPE of many short pre-tokens side by side: the definition, as [`super::short`], a join of each in turn.
//!
//! A join asks which tokens its result makes with its neighbours. The answer may be far away, and what comes next hangs on
//! it, so a word alone waits for memory most of the time. Here the wait for one word is a join of the others.
//!
//! # Stages
//! Tokens with ids below [`PairTable::limit`] come first: all pairs that make one are looked up in the near part of the
//! pair table alone. When no such join is left, every pair that stands is asked for in the far part, and from then on only
//! that part is: a join there gives a token above the limit, and whatever that is a part of is above it, too (this is
//! [`MergeTables::in_stages`]).
//!
//! # Invariants of a `Lane`
//! 1. `keys[p]` is `rank << 4 | p` if a part starts at `p` and it and the next part are known to make a token, else
//!    `NEVER` or above. The two pairs asked for last are not known yet.
//! 2. `next[p]` is where the part after the one at `p` starts, `prev` the inverse. Beyond the last part there is the
//!    length of the word, before the first `END`; no token stands at either.
//!
//! # Complexity
//! As [`super::short`].

use super::pairs::PairTable;
use super::{MergeTables, NONE};
use crate::lookup::{Key, MAX_KEY_BYTES};
use crate::num::{ix, low_u8, to_u32};
use crate::simd::{Task, level};

/// Words under way at a time.
const LANES: usize = 8;
/// Places of a word, and one where nothing ever is.
const PLACES: usize = MAX_KEY_BYTES + 1;
const END: u8 = 15;
const PLACE_BITS: u32 = PLACES.trailing_zeros();
const PLACE: u32 = (1 << PLACE_BITS) - 1;
/// Keys from here on are none: what [`NONE`] becomes with a place.
const NEVER: u32 = NONE << PLACE_BITS;

const _: () = assert!(PLACES == 1 << PLACE_BITS && PLACES == END as usize + 1);
/// Ids are below 2^20 and places below 2^4, so keys stay below [`NEVER`].
const _: () = assert!((crate::vocab::MAX_TOKENS << PLACE_BITS) - 1 < NEVER as usize);

/// Words and their BPE results.
#[derive(Debug, Default)]
pub struct Words {
    keys: Vec<Key>,
    results: Vec<[u32; PLACES]>,
    counts: Vec<usize>,
    lanes: [Lane; LANES],
}

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The near part of the pair table.
    Near,
    /// Every pair has been asked for in the far part.
    All,
    /// The far part.
    Far,
}

/// A word under way.
#[derive(Debug, Clone, Copy)]
#[repr(align(32))]
struct Lane {
    keys: [u32; PLACES],
    /// Token ids by where they start, [`NONE`] elsewhere.
    tokens: [u32; PLACES],
    next: [u8; PLACES],
    prev: [u8; PLACES],
    /// What was asked for: the join of a part with the next.
    asked: [[u32; 2]; 2],
    places: [u32; 2],
    word: usize,
    stage: Stage,
    limit: u32,
}

/// Zeros, then ones.
const NO_PLACES: [u32; 2 * PLACES + 1] = {
    let mut masks = [0; 2 * PLACES + 1];
    let mut at = PLACES;
    while at < masks.len() {
        masks[at] = u32::MAX;
        at += 1;
    }
    masks
};

const IOTA: [u32; PLACES] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

const fn iota(plus: u8) -> [u8; PLACES] {
    let mut places = [0; PLACES];
    let mut place = 0;
    while place < PLACES as u8 {
        places[place as usize] = (place + plus) % PLACES as u8;
        place += 1;
    }
    places
}

impl Default for Lane {
    fn default() -> Self {
        Lane {
            keys: [NEVER; PLACES],
            tokens: [NONE; PLACES],
            next: iota(1),
            prev: iota(END),
            asked: [[NONE; 2]; 2],
            places: [u32::from(END); 2],
            word: 0,
            stage: Stage::Near,
            limit: 0,
        }
    }
}

impl Words {
    /// Forgets all words.
    pub fn clear(&mut self) {
        self.keys.clear();
    }

    /// Adds a word: not empty.
    #[inline]
    pub fn push(&mut self, key: Key) {
        self.keys.push(key);
    }

    /// Merges all words.
    pub fn merge(&mut self, tables: &MergeTables) {
        if self.results.len() < self.keys.len() {
            self.results.resize(self.keys.len(), [NONE; PLACES]);
            self.counts.resize(self.keys.len(), 0);
        }
        let Words { keys, results, counts, lanes } = self;
        level().run(Merge { tables, keys, results, counts, lanes });
    }

    /// The BPE results, in the order in which the words came.
    pub fn results(&mut self) -> impl Iterator<Item = &mut [u32]> {
        let results = self.results[..self.keys.len()].iter_mut();
        results.zip(&self.counts).map(|(result, &count)| &mut result[..count])
    }
}

struct Merge<'a> {
    tables: &'a MergeTables,
    keys: &'a [Key],
    results: &'a mut [[u32; PLACES]],
    counts: &'a mut [usize],
    lanes: &'a mut [Lane; LANES],
}

impl Task for Merge<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Merge { tables, keys, results, counts, lanes } = self;
        let mut coming = 0;
        let mut live = 0;
        while live < LANES && coming < keys.len() {
            lanes[live].begin(tables, coming, keys[coming]);
            live += 1;
            coming += 1;
        }
        while live > 0 {
            let mut at = 0;
            while at < live {
                let lane = &mut lanes[at];
                if lane.step(tables) {
                    at += 1;
                    continue;
                }
                counts[lane.word] = lane.finish(&mut results[lane.word]);
                if coming < keys.len() {
                    lane.begin(tables, coming, keys[coming]);
                    coming += 1;
                    at += 1;
                } else {
                    live -= 1;
                    lanes[at] = lanes[live];
                }
            }
        }
    }
}

impl Lane {
    #[inline(always)]
    fn begin(&mut self, tables: &MergeTables, word: usize, key: Key) {
        let (bytes, len) = (key.bytes(), key.len().min(MAX_KEY_BYTES));
        self.next = iota(1);
        self.prev = iota(END);
        self.asked = [[NONE; 2]; 2];
        self.places = [u32::from(END); 2];
        self.word = word;
        self.stage = Stage::Near;
        self.limit = tables.pairs.limit() << PLACE_BITS;
        // All places, whatever the length: cheaper than a loop of unknown length.
        for place in 0..PLACES - 1 {
            self.tokens[place] = tables.bytes[usize::from(bytes[place])];
            self.keys[place] = tables.byte_pairs.token(bytes[place], bytes[place + 1]);
        }
        // What is behind the word is set to all ones by a mask: conditions would become branches.
        let (no_key, no_token) = (&NO_PLACES[PLACES + 1 - len..], &NO_PLACES[PLACES - len..]);
        for place in 0..PLACES {
            self.keys[place] = self.keys[place] << PLACE_BITS | IOTA[place] | no_key[place];
            self.tokens[place] |= no_token[place];
        }
    }

    /// The next join; false if there is none.
    #[inline(always)]
    fn step(&mut self, tables: &MergeTables) -> bool {
        let pairs = &tables.pairs;
        let best = match self.stage {
            Stage::Near => {
                // Beside the two keys that come now, which a wide load would wait for.
                let best = self.answers::<false>(pairs);
                if best >= self.limit {
                    self.ask_all(pairs);
                    return true;
                }
                best
            }
            Stage::All => self.answer_all(pairs),
            Stage::Far => self.answers::<true>(pairs),
        };
        if best >= NEVER {
            return false;
        }
        let (place, joined) = (best & PLACE, best >> PLACE_BITS);
        let left = ix(place);
        let right = usize::from(self.next[left] & END);
        let (before, after) = (self.prev[left] & END, self.next[right] & END);
        self.tokens[left] = joined;
        self.tokens[right] = NONE;
        self.keys[right] = NEVER;
        self.keys[left] = NEVER;
        self.keys[usize::from(before)] = NEVER;
        self.next[left] = after;
        self.prev[usize::from(after)] = low_u8(place);
        self.places = [place, u32::from(before)];
        self.asked = [[joined, self.tokens[usize::from(after)]], [self.tokens[usize::from(before)], joined]];
        if self.stage == Stage::Far {
            for [left, right] in self.asked {
                pairs.ask_far(left, right);
            }
        }
        true
    }

    /// Takes the answers of one part of the table; the least key.
    #[inline(always)]
    fn answers<const FAR: bool>(&mut self, pairs: &PairTable) -> u32 {
        let mut best = minimum(&self.keys);
        for (&place, &[left, right]) in self.places.iter().zip(&self.asked) {
            // By a name and not as an argument: that would not be inlined, and be compiled for the plain processor.
            let joined = if FAR { pairs.far_asked(left, right) } else { pairs.near(left, right) };
            let key = joined << PLACE_BITS | place;
            self.keys[ix(place & PLACE)] = key;
            best = best.min(key);
        }
        best
    }

    /// Goes on to the tokens of the far part.
    #[inline(always)]
    fn ask_all(&mut self, pairs: &PairTable) {
        self.stage = Stage::All;
        let mut left = 0;
        loop {
            let right = usize::from(self.next[left] & END);
            if self.tokens[right] == NONE {
                return;
            }
            pairs.ask_far(self.tokens[left], self.tokens[right]);
            left = right;
        }
    }

    /// The least key.
    #[inline(always)]
    fn answer_all(&mut self, pairs: &PairTable) -> u32 {
        self.stage = Stage::Far;
        let (mut best, mut left) = (NEVER, 0);
        loop {
            let right = usize::from(self.next[left] & END);
            if self.tokens[right] == NONE {
                return best;
            }
            let key = pairs.far_asked(self.tokens[left], self.tokens[right]) << PLACE_BITS | to_u32(left);
            self.keys[left] = key;
            best = best.min(key);
            left = right;
        }
    }

    /// Puts the tokens into `result`; returns how many they are.
    #[inline(always)]
    fn finish(&self, result: &mut [u32; PLACES]) -> usize {
        let mut found = 0;
        for token in self.tokens {
            result[found % PLACES] = token;
            found += usize::from(token != NONE);
        }
        found
    }
}

/// The least key; written so that the compiler compares eight at a time.
#[inline(always)]
fn minimum(keys: &[u32; PLACES]) -> u32 {
    let mut least = [NEVER; 8];
    for chunk in keys.chunks_exact(8) {
        for (low, &key) in least.iter_mut().zip(chunk) {
            *low = (*low).min(key);
        }
    }
    least.iter().copied().min().expect("eight lanes")
}
