//! The prompts of many conversations, told apart by nothing but what they begin with.
//!
//! A tree: a path from the root spells a prompt, so prompts with a common beginning share nodes. A node holds a few
//! segments (a chunk) and the ids of the path up to its end, most of them in memory that it shares with its neighbours.
//! Where a chunk ends depends on what it holds alone, so equal beginnings give equal chunks, but for the last one.
//!
//! Nodes are found by a number of a part of their text (a glance), and believed only after all of it was compared: text that
//! is known is read once. From where that leads nowhere they are found by a hash of all of their text, so that one that
//! looks like another at a glance is found as well. Comparing, hashing, and all encoding happen outside the lock.
//!
//! What is held is counted and bounded: texts, nodes, and memory of ids. Leaves that were not used for the longest time
//! go first.

use std::collections::{BTreeSet, HashMap};
use std::hash::RandomState;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use super::compare::Comparison;
use super::known::{self, Prints, Source};
use super::plan::Plan;
use super::{Grown, Ids, Known, Released, roomy, same_at_first};
use crate::error::Error;
use crate::num::{ix, to_u32};
use crate::text::Text;
use crate::tokenizer::{Options, Tokenizer};

/// A chunk ends with the segment with which it reaches so many bytes of text,
const CHUNK_BYTES: usize = 1 << 10;
/// or so many segments.
const CHUNK_SEGMENTS: usize = 32;
/// What a node takes besides its segments, and a segment besides its characters (as a `str` of its own), about.
const NODE_BYTES: usize = 320;
const SEGMENT_BYTES: usize = 160;

/// What a cache has done, and holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Prompts asked for.
    pub requests: usize,
    /// Of these, how many began like one that was known.
    pub hits: usize,
    /// Ids given.
    pub ids: usize,
    /// Of these, how many were not encoded anew.
    pub reused: usize,
    /// Bytes held now.
    pub bytes: usize,
    /// Bytes that may be held.
    pub max_bytes: usize,
    /// Ends of prompts held now: branches of the tree.
    pub prompts: usize,
    /// Chunks dropped so that the bytes are kept.
    pub evicted: usize,
}

/// The ids of recent prompts, for new ones that begin alike: see the top of `session/cache.rs`.
///
/// # Examples
/// ```
/// # use std::sync::Arc;
/// # use kizami_core::{*, session::SessionCache, special::Controls, pretoken::Pattern};
/// # let tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).chain([b"ab".to_vec()]).collect();
/// # let tables = Tables::build(Vocab::from_ranked(&tokens)?)?;
/// # let tokenizer = Tokenizer::new(tables.into(), Controls::new(vec![], 257)?, Pattern::Kimi);
/// let cache = SessionCache::<Arc<str>>::new(1 << 20);
/// let prompt = |texts: &[&str]| texts.iter().map(|&text| (text.into(), false)).collect::<Vec<_>>();
/// cache.encode(&tokenizer, &mut prompt(&["abc"]), Options::default())?;
/// let branch = cache.encode(&tokenizer, &mut prompt(&["abc", "ab"]), Options::default())?;
/// assert_eq!((&branch.ids[..], branch.reused), (&[256, 99, 256][..], 2));
/// # Ok::<(), kizami_core::Error>(())
/// ```
#[derive(Debug)]
pub struct SessionCache<S> {
    tree: Mutex<Tree<S>>,
    state: RandomState,
}

/// The segments of a node, and where the ids of each end in those of the path.
type Chunk<S> = Arc<[Known<S>]>;

/// Numbers by which a chunk is found among the children of a node.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    /// Of a part of it.
    glance: u64,
    /// Of all of it.
    print: u64,
}

#[derive(Debug)]
struct Node<S> {
    chunk: Chunk<S>,
    numbers: Numbers,
    parent: u32,
    children: u32,
    /// The child that was used last.
    latest: u32,
    /// The ids up to the end of the chunk; None only while it is added or dropped.
    ids: Option<Ids>,
    /// When it was used last.
    used: u64,
}

#[derive(Debug)]
struct Tree<S> {
    /// None where one was dropped.
    nodes: Vec<Option<Node<S>>>,
    free: Vec<u32>,
    by_print: HashMap<(u32, u64), u32>,
    /// Of the children that are alike at a glance, the one that was used last.
    by_glance: HashMap<(u32, u64), u32>,
    /// Nodes without children, by time.
    leaves: BTreeSet<(u64, u32)>,
    /// Memory of ids: the number of nodes with ids in it.
    memories: HashMap<usize, usize>,
    /// Of each root, the child that was used last.
    latest: [u32; 2],
    clock: u64,
    statistics: Statistics,
}

/// What a prompt begins with, as far as the tree knows.
struct Found<S> {
    path: Vec<Step<S>>,
    /// The ids up to the end of the path.
    ids: Option<Ids>,
    /// The child of the path's end that was used last, and the ids up to its end.
    next: Option<(Chunk<S>, Ids)>,
    /// Chunks that were looked at, and are not of the prompt.
    others: Vec<Chunk<S>>,
}

/// A node on a path.
struct Step<S> {
    node: u32,
    print: u64,
    chunk: Chunk<S>,
}

impl<S: Source> SessionCache<S> {
    /// A cache that holds at most `max_bytes`: texts, ids and what they are found by.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        SessionCache { tree: Mutex::new(Tree::new(max_bytes)), state: RandomState::new() }
    }

    /// What it has done so far, and holds now.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let tree = self.lock();
        Statistics { prompts: tree.leaves.len(), ..tree.statistics }
    }

    /// Whether nobody is changing it. In the child of a fork, one that is not free stays so for ever.
    #[must_use]
    pub fn is_free(&self) -> bool {
        !matches!(self.tree.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Forgets all prompts.
    pub fn clear(&self) -> Released<S> {
        let mut tree = self.lock();
        let statistics = Statistics { bytes: 0, ..tree.statistics };
        let old = std::mem::replace(&mut *tree, Tree::new(statistics.max_bytes));
        tree.statistics = statistics;
        drop(tree);
        // Texts are dropped when nobody waits for the lock.
        Released { _texts: Vec::new(), _chunks: old.nodes.into_iter().flatten().map(|node| node.chunk).collect() }
    }

    fn lock(&self) -> MutexGuard<'_, Tree<S>> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ids of a prompt: what [`Tokenizer::encode`] gives. All prompts of a cache are to be of one tokenizer. The segments
    /// are taken, but where there is an error.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode(
        &self,
        tokenizer: &Tokenizer,
        given: &mut Vec<(S, bool)>,
        options: Options,
    ) -> Result<Grown<S>, Error> {
        let segments = &given[..];
        let root = ROOT + u32::from(options.legacy_chunks && tokenizer.makes_cuts());
        let ranges = ranges(segments);
        let glances: Vec<u64> =
            ranges.iter().map(|range| self.number(&segments[range.clone()], Prints::add_glance)).collect();
        let mut found = Found { path: Vec::new(), ids: None, next: None, others: Vec::new() };
        self.lock().follow(root, &mut found, &glances, |tree| &tree.by_glance);
        let seen = found.as_far_as_true(0, &ranges, segments);
        let print = |range: &Range<usize>| self.number(&segments[range.clone()], Prints::add);
        let prints: Vec<u64> =
            found.path.iter().map(|step| step.print).chain(ranges[seen..].iter().map(print)).collect();
        self.lock().follow(root, &mut found, &prints[seen..], |tree| &tree.by_print);
        let depth = found.as_far_as_true(seen, &ranges, segments);
        let first = ranges[..depth].last().map_or(0, |range| range.end);
        let known = Beginning::new(&found, &segments[first..])?;
        let rest = &segments[first + known.same.len()..];
        let plan = Plan::new(tokenizer, known.rest, (&known.ids, known.end), rest, options);
        let encoded = plan.encode(tokenizer, rest, options);
        let (encoded, encoded_ends) =
            encoded.map_err(|error| error.at_segment(|index| first + known.same.len() + index))?;
        let begin = known.end + plan.resumed();
        let (len, reused) = plan.lens(begin, &encoded_ends);
        let fresh = encoded.to_vec()?;
        drop(encoded);
        let parts = || plan.parts(&known.ids, &fresh, &encoded_ends);
        let in_place = known.ids.first(begin).append(len - begin, parts());
        let ids = match in_place {
            Some(ids) => ids,
            None => {
                let copy = Ids::with_capacity(roomy(len))?.append(begin, [&known.ids[..begin]]);
                copy.and_then(|copy| copy.append(len - begin, parts())).expect("room that was asked for")
            }
        };
        // The chunks that the tree has not.
        let ends: Vec<usize> =
            known.same.iter().map(|known| known.end).chain(plan.ends(begin, &encoded_ends)).collect();
        let mut segments = std::mem::take(given).into_iter();
        let texts: Vec<S> = segments.by_ref().take(first).map(|(source, _)| source).collect();
        let mut ends = ends.into_iter();
        let new = ranges[depth..].iter().map(|range| {
            let pairs = segments.by_ref().take(range.len()).zip(ends.by_ref());
            pairs.map(|((source, allow_special), end)| Known { source, allow_special, end }).collect::<Chunk<S>>()
        });
        let numbers = glances.into_iter().zip(prints).map(|(glance, print)| Numbers { glance, print });
        let chunks: Vec<_> = numbers.zip(found.path.iter().map(|step| step.chunk.clone()).chain(new)).collect();
        let mut dropped = {
            let mut tree = self.lock();
            let statistics = &mut tree.statistics;
            statistics.requests += 1;
            statistics.hits += usize::from(reused > 0);
            statistics.ids += len;
            statistics.reused += reused;
            tree.insert(root, &chunks, &ids)
        };
        // Another thread may have dropped these meanwhile.
        dropped.extend(chunks.into_iter().map(|(_, chunk)| chunk).chain(found.into_chunks()));
        Ok(Grown { ids, reused, unchanged: begin, released: Released { _texts: texts, _chunks: dropped } })
    }

    /// A number by which a chunk is found.
    fn number(&self, segments: &[(S, bool)], add: fn(&mut Prints, Text<'_>, bool)) -> u64 {
        let mut prints = Prints::new(&self.state);
        segments.iter().for_each(|(source, allow_special)| add(&mut prints, source.text(), *allow_special));
        prints.print()
    }
}

impl<S: Source> Found<S> {
    /// Compares the path from the chunk `from` on with a prompt, cuts it where the two part, and tells how long it is then.
    fn as_far_as_true(&mut self, from: usize, ranges: &[Range<usize>], segments: &[(S, bool)]) -> usize {
        let mut comparison = Comparison::default();
        let mut pairs = self.path.iter().zip(ranges).enumerate().skip(from);
        let differs = pairs.find(|(place, (step, range))| {
            let (known, given) = (&step.chunk, &segments[(*range).clone()]);
            known.len() != given.len()
                || known.iter().zip(given).any(|(known, (source, allow_special))| {
                    known.allow_special != *allow_special || !comparison.add(*place, known.source.text(), source.text())
                })
        });
        let depth = comparison.first_difference(differs.map_or(self.path.len(), |(place, _)| place));
        drop(comparison);
        if depth < self.path.len() {
            self.others.extend(self.path.drain(depth..).map(|step| step.chunk));
            self.others.extend(self.next.take().map(|(chunk, _)| chunk));
        }
        depth
    }

    /// All that it holds.
    fn into_chunks(self) -> impl Iterator<Item = Chunk<S>> {
        let next = self.next.map(|(chunk, _)| chunk);
        self.path.into_iter().map(|step| step.chunk).chain(next).chain(self.others)
    }
}

/// What is known of a prompt: all up to a node, and the beginning of a chunk behind it.
struct Beginning<'f, S> {
    /// Ids of all that is known, and others behind them.
    ids: Ids,
    /// The segments of the chunk that are those of the prompt.
    same: &'f [Known<S>],
    /// Those behind them, which are not.
    rest: &'f [Known<S>],
    /// Where the ids of what is the same end.
    end: usize,
}

impl<'f, S: Source> Beginning<'f, S> {
    /// Of a prompt that has `rest` behind the path.
    fn new(found: &'f Found<S>, rest: &[(S, bool)]) -> Result<Self, Error> {
        let end = found.path.last().and_then(|step| step.chunk.last()).map_or(0, |known| known.end);
        match &found.next {
            Some((chunk, ids)) => {
                let same = same_at_first(chunk, rest);
                let (same, rest) = chunk.split_at(same);
                Ok(Beginning { ids: ids.clone(), same, rest, end: same.last().map_or(end, |known| known.end) })
            }
            None => {
                let ids = found.ids.clone().map_or_else(|| Ids::with_capacity(0), Ok)?;
                Ok(Beginning { ids, same: &[], rest: &[], end })
            }
        }
    }
}

/// The chunks of a prompt, as ranges of its segments.
fn ranges<S: Source>(segments: &[(S, bool)]) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (index, (source, _)) in segments.iter().enumerate() {
        bytes += known::memory(source.text());
        if bytes >= CHUNK_BYTES || index + 1 - start == CHUNK_SEGMENTS || index + 1 == segments.len() {
            ranges.push(start..index + 1);
            (start, bytes) = (index + 1, 0);
        }
    }
    ranges
}

impl<S: Source> Tree<S> {
    fn new(max_bytes: usize) -> Self {
        Tree {
            nodes: Vec::new(),
            free: Vec::new(),
            by_print: HashMap::new(),
            by_glance: HashMap::new(),
            leaves: BTreeSet::new(),
            memories: HashMap::new(),
            latest: [NONE; 2],
            clock: 0,
            statistics: Statistics { max_bytes, ..Statistics::default() },
        }
    }

    fn node(&mut self, id: u32) -> &mut Node<S> {
        self.nodes[ix(id)].as_mut().expect("a node that is in the tree")
    }

    /// The child of `parent`, which may be a root, that was used last.
    fn latest(&mut self, parent: u32) -> &mut u32 {
        if is_root(parent) { &mut self.latest[ix(parent - ROOT)] } else { &mut self.node(parent).latest }
    }

    /// Goes on with a path, by the numbers of the chunks that are to come, as far as it leads. A path whose end was dropped
    /// meanwhile stays as it is.
    fn follow(
        &mut self,
        root: u32,
        found: &mut Found<S>,
        numbers: &[u64],
        by_number: fn(&Self) -> &HashMap<(u32, u64), u32>,
    ) {
        let mut at = root;
        if let Some(Step { node, chunk, .. }) = found.path.last() {
            let known = self.nodes.get(ix(*node)).and_then(Option::as_ref);
            if !known.is_some_and(|known| Arc::ptr_eq(&known.chunk, chunk)) {
                return;
            }
            at = *node;
        }
        for &number in numbers {
            let Some(&child) = by_number(self).get(&(at, number)) else { break };
            let node = self.node(child);
            found.path.push(Step { node: child, print: node.numbers.print, chunk: node.chunk.clone() });
            at = child;
        }
        if at != root {
            found.ids = self.node(at).ids.clone();
        }
        let next = *self.latest(at);
        let next = if next == NONE { None } else { Some(self.node(next)) };
        let next = next.and_then(|node| node.ids.clone().map(|ids| (node.chunk.clone(), ids)));
        let before = std::mem::replace(&mut found.next, next);
        found.others.extend(before.map(|(chunk, _)| chunk));
    }

    /// Puts in a prompt, all of it or nothing; `ids` are its ids. Returns what was dropped for it.
    fn insert(&mut self, root: u32, chunks: &[(Numbers, Chunk<S>)], ids: &Ids) -> Vec<Chunk<S>> {
        let bytes: usize = chunks.iter().map(|(_, chunk)| bytes_of(chunk)).sum();
        if bytes + memory_of(ids) > self.statistics.max_bytes {
            return Vec::new();
        }
        self.clock += 1;
        let mut at = root;
        for (numbers, chunk) in chunks {
            let end = chunk.last().map_or(0, |known| known.end);
            let child = match self.by_print.get(&(at, numbers.print)) {
                Some(&child) => {
                    let other = self.node(child).chunk.clone();
                    if !Arc::ptr_eq(&other, chunk) && !is_same(&other, chunk) {
                        // Another chunk has that number: no more of this prompt is kept.
                        break;
                    }
                    child
                }
                None => self.add(at, *numbers, chunk.clone()),
            };
            *self.latest(at) = child;
            self.by_glance.insert((at, numbers.glance), child);
            self.touch(child);
            self.set_ids(child, Some(ids.first(end)));
            at = child;
        }
        let mut dropped = Vec::new();
        while self.statistics.bytes > self.statistics.max_bytes {
            let Some(&(_, leaf)) = self.leaves.first() else { break };
            dropped.push(self.remove(leaf));
        }
        dropped
    }

    /// Adds a leaf, without ids.
    fn add(&mut self, parent: u32, numbers: Numbers, chunk: Chunk<S>) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(None);
            to_u32(self.nodes.len() - 1)
        });
        if !is_root(parent) {
            let used = self.node(parent).used;
            self.leaves.remove(&(used, parent));
            self.node(parent).children += 1;
        }
        self.statistics.bytes += bytes_of(&chunk);
        let used = self.clock;
        self.nodes[ix(id)] = Some(Node { chunk, numbers, parent, children: 0, latest: NONE, ids: None, used });
        self.by_print.insert((parent, numbers.print), id);
        self.leaves.insert((used, id));
        id
    }

    /// Notes that a node is used now.
    fn touch(&mut self, id: u32) {
        let clock = self.clock;
        let node = self.node(id);
        let before = std::mem::replace(&mut node.used, clock);
        if self.leaves.remove(&(before, id)) {
            self.leaves.insert((clock, id));
        }
    }

    /// Sets the ids of a node, and counts the memory that they are in.
    fn set_ids(&mut self, id: u32, ids: Option<Ids>) {
        let old = std::mem::replace(&mut self.node(id).ids, ids.clone());
        if let (Some(old), Some(new)) = (&old, &ids)
            && old.shares_memory(new)
        {
            return;
        }
        if let Some(new) = ids {
            let nodes = self.memories.entry(new.memory()).or_insert(0);
            self.statistics.bytes += if *nodes == 0 { memory_of(&new) } else { 0 };
            *nodes += 1;
        }
        if let Some(old) = old {
            let nodes = self.memories.get_mut(&old.memory()).expect("memory that was counted");
            *nodes -= 1;
            if *nodes == 0 {
                self.memories.remove(&old.memory());
                self.statistics.bytes -= memory_of(&old);
            }
        }
    }

    /// Takes out a leaf.
    fn remove(&mut self, id: u32) -> Chunk<S> {
        self.set_ids(id, None);
        let node = self.nodes[ix(id)].take().expect("a leaf that is in the tree");
        self.free.push(id);
        self.leaves.remove(&(node.used, id));
        self.by_print.remove(&(node.parent, node.numbers.print));
        let glance = (node.parent, node.numbers.glance);
        if self.by_glance.get(&glance) == Some(&id) {
            self.by_glance.remove(&glance);
        }
        self.statistics.bytes -= bytes_of(&node.chunk);
        self.statistics.evicted += 1;
        let latest = self.latest(node.parent);
        if *latest == id {
            *latest = NONE;
        }
        if !is_root(node.parent) {
            let parent = self.node(node.parent);
            parent.children -= 1;
            if parent.children == 0 {
                let used = parent.used;
                self.leaves.insert((used, node.parent));
            }
        }
        node.chunk
    }
}

/// The first of the two roots, which are no nodes: prompts whose text is not cut, and those whose text is.
const ROOT: u32 = u32::MAX - 2;
/// No node.
const NONE: u32 = u32::MAX;

fn is_root(id: u32) -> bool {
    id >= ROOT
}

fn is_same<S: Source>(a: &Chunk<S>, b: &Chunk<S>) -> bool {
    let same = |(a, b): (&Known<S>, &Known<S>)| {
        a.allow_special == b.allow_special && known::equal(a.source.text(), b.source.text())
    };
    a.len() == b.len() && a.iter().zip(b.iter()).all(same)
}

/// Bytes that a node takes without its ids.
fn bytes_of<S: Source>(chunk: &Chunk<S>) -> usize {
    chunk.iter().fold(NODE_BYTES, |sum, known| sum + SEGMENT_BYTES + known::memory(known.source.text()))
}

/// Bytes of the memory that ids are in.
fn memory_of(ids: &Ids) -> usize {
    ids.capacity() * size_of::<u32>()
}
