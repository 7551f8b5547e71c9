//! Stop strings, found in a text that comes in parts.
//!
//! Rule: the match that begins first wins, and of those that begin at one place the longest.
//!
//! The automaton is that of Aho and Corasick over the bytes of UTF-8: its state is the longest end of the text that some
//! stop string begins with. So the state *is* the text to hold back, no more and no less, and nothing else is stored. No
//! match that is still to come begins before it.
//!
//! # Invariants
//! 1. After each part of the text, what is held back begins and ends between characters: parts are whole characters, and
//!    stop strings begin with one.
//! 2. A match that was found and may yet lose (to one that begins earlier, or at the same place and is longer) begins
//!    inside what is held back. As soon as it does not, it has won.
//!
//! Cost: linear in the text, whatever the stop strings: a byte makes the state longer by one at most, and each step back
//! makes it shorter.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::num::{ix, to_u32};

const ROOT: u32 = 0;
const NONE: u32 = u32::MAX;

/// A beginning of a stop string.
#[derive(Debug)]
struct Node {
    /// Its last byte.
    byte: u8,
    /// Its length in bytes.
    depth: usize,
    /// First of those that are longer by one byte.
    child: u32,
    /// Next of those that differ from it in the last byte only.
    sibling: u32,
    /// The longest shorter end of it that is a node, too.
    fail: u32,
    /// A stop string that it begins.
    string: u32,
    /// The longest stop string that it ends with.
    found: u32,
}

/// A set of stop strings.
#[derive(Debug)]
pub struct Stops {
    strings: Vec<String>,
    nodes: Vec<Node>,
    /// Bytes that begin a stop string.
    first: [bool; 256],
}

impl Stops {
    fn new(strings: Vec<String>) -> Self {
        let root = Node { byte: 0, depth: 0, child: NONE, sibling: NONE, fail: ROOT, string: NONE, found: NONE };
        let mut stops = Stops { strings: Vec::new(), nodes: vec![root], first: [false; 256] };
        for (index, string) in strings.iter().enumerate().filter(|(_, string)| !string.is_empty()) {
            stops.add(string.as_bytes(), to_u32(index));
        }
        stops.strings = strings;
        stops.link();
        stops
    }

    /// Adds the nodes of one string.
    fn add(&mut self, string: &[u8], index: u32) {
        self.first[usize::from(string[0])] = true;
        let mut at = ROOT;
        for (depth, &byte) in (1..).zip(string) {
            at = self.child(at, byte).unwrap_or_else(|| {
                let new = to_u32(self.nodes.len());
                let parent = &mut self.nodes[ix(at)];
                let sibling = std::mem::replace(&mut parent.child, new);
                self.nodes.push(Node { byte, depth, child: NONE, sibling, fail: ROOT, string: index, found: NONE });
                new
            });
        }
        self.nodes[ix(at)].found = index;
    }

    /// Finds where each node falls back to; shorter nodes first, for they are needed.
    fn link(&mut self) {
        let mut queue = VecDeque::from([ROOT]);
        while let Some(parent) = queue.pop_front() {
            let mut at = self.nodes[ix(parent)].child;
            while at != NONE {
                queue.push_back(at);
                let byte = self.nodes[ix(at)].byte;
                let fail = if parent == ROOT { ROOT } else { self.next(self.nodes[ix(parent)].fail, byte) };
                let inherited = self.nodes[ix(fail)].found;
                let node = &mut self.nodes[ix(at)];
                node.fail = fail;
                if node.found == NONE {
                    node.found = inherited;
                }
                at = node.sibling;
            }
        }
    }

    fn child(&self, at: u32, byte: u8) -> Option<u32> {
        let mut child = self.nodes[ix(at)].child;
        while child != NONE {
            let node = &self.nodes[ix(child)];
            if node.byte == byte {
                return Some(child);
            }
            child = node.sibling;
        }
        None
    }

    /// The state after one more byte.
    fn next(&self, mut at: u32, byte: u8) -> u32 {
        loop {
            match self.child(at, byte) {
                Some(child) => return child,
                None if at == ROOT => return ROOT,
                None => at = self.nodes[ix(at)].fail,
            }
        }
    }

    /// Whether one of them may begin in a text.
    #[inline]
    #[must_use]
    pub fn may_begin_in(&self, text: &str) -> bool {
        text.bytes().any(|byte| self.first[usize::from(byte)])
    }

    /// The text that a state stands for.
    fn text(&self, at: u32) -> &str {
        match &self.nodes[ix(at)] {
            Node { depth: 0, .. } => "",
            node => &self.strings[ix(node.string)][..node.depth],
        }
    }
}

/// A match that may yet lose.
#[derive(Debug, Clone, Copy)]
struct Match {
    string: u32,
    /// Bytes of text since it began.
    age: usize,
}

/// A search for stop strings in one text. Clones share the strings.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    stops: Arc<Stops>,
    at: u32,
    found: Option<Match>,
    /// Whether the match has won.
    over: bool,
}

impl Search {
    /// For these strings; empty ones match nothing.
    pub fn new(strings: Vec<String>) -> Self {
        Search { stops: Arc::new(Stops::new(strings)), at: ROOT, found: None, over: false }
    }

    /// Takes the next part of the text; appends to `out` what cannot be part of a match.
    pub fn push(&mut self, text: &str, out: &mut String) {
        if self.over {
            return;
        }
        let held = self.stops.text(self.at);
        let bytes = text.as_bytes();
        let mut read = 0;
        while read < bytes.len() && !self.over {
            if self.at == ROOT {
                // No match is found, either: it would have won.
                match bytes[read..].iter().position(|&byte| self.stops.first[usize::from(byte)]) {
                    Some(skipped) => read += skipped,
                    None => {
                        read = bytes.len();
                        break;
                    }
                }
            }
            (self.at, self.found, self.over) = self.step(bytes[read]);
            read += 1;
        }
        // What follows the part of a match that has won, and a match that may win, is not text to give.
        let kept = match self.found {
            Some(found) if self.over => found.age,
            _ => self.stops.nodes[ix(self.at)].depth,
        };
        let given = held.len() + read - kept;
        out.push_str(&held[..given.min(held.len())]);
        out.push_str(&text[..given.saturating_sub(held.len())]);
    }

    /// State, match and whether it has won, after one more byte.
    #[inline]
    fn step(&self, byte: u8) -> (u32, Option<Match>, bool) {
        let at = self.stops.next(self.at, byte);
        let node = &self.stops.nodes[ix(at)];
        let mut found = self.found.map(|found| Match { age: found.age + 1, ..found });
        if found.is_some_and(|found| found.age > node.depth) {
            return (at, found, true);
        }
        if node.found != NONE {
            let age = self.stops.strings[ix(node.found)].len();
            if found.is_none_or(|found| age >= found.age) {
                found = Some(Match { string: node.found, age });
            }
        }
        // A node without children is a whole stop string, which begins where the state does.
        (at, found, node.child == NONE)
    }

    /// The text has ended; appends to `out` what was held back and is not part of a match.
    pub fn finish(&mut self, out: &mut String) {
        if self.over {
            return;
        }
        let held = self.stops.text(self.at);
        match self.found {
            Some(found) => {
                out.push_str(&held[..held.len() - found.age]);
                self.over = true;
            }
            None => out.push_str(held),
        }
        self.at = ROOT;
    }

    /// Whether a part of the text can be given at once: nothing is held back, and no match begins in it.
    pub fn passes(&self, text: &str) -> bool {
        self.is_at_rest() && !self.stops.may_begin_in(text)
    }

    /// Whether nothing is held back, and nothing has been found.
    pub fn is_at_rest(&self) -> bool {
        self.at == ROOT && !self.over
    }

    /// What is looked for.
    pub fn stops(&self) -> &Arc<Stops> {
        &self.stops
    }

    /// Bytes of text held back.
    pub fn held(&self) -> usize {
        self.stops.nodes[ix(self.at)].depth
    }

    /// The string that has won.
    pub fn stopped(&self) -> Option<&str> {
        let found = self.found.filter(|_| self.over)?;
        Some(&self.stops.strings[ix(found.string)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule, on the whole text: text before the match, and the match.
    fn literal<'a>(text: &'a str, stops: &'a [&'a str]) -> (&'a str, Option<&'a str>) {
        for (start, _) in text.char_indices() {
            let here = stops.iter().filter(|stop| text[start..].starts_with(**stop));
            if let Some(longest) = here.max_by_key(|stop| stop.len()) {
                return (&text[..start], Some(longest));
            }
        }
        (text, None)
    }

    /// Of a text without a match: the longest end that some stop string begins with.
    fn must_hold(text: &str, stops: &[&str]) -> usize {
        let ends = text.char_indices().map(|(start, _)| &text[start..]);
        ends.filter(|end| stops.iter().any(|stop| stop.starts_with(end))).map(str::len).max().unwrap_or(0)
    }

    fn all_strings(alphabet: &[char], longest: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut from = 0;
        for _ in 0..longest {
            let to = all.len();
            for index in from..to {
                for c in alphabet {
                    all.push(format!("{}{c}", all[index]));
                }
            }
            from = to;
        }
        all
    }

    fn check(text: &str, stops: &[&str]) {
        let (want, stopped) = literal(text, stops);
        let mut search = Search::new(stops.iter().map(ToString::to_string).collect());
        let mut out = String::new();
        let mut seen = String::new();
        for c in text.chars() {
            search.push(c.encode_utf8(&mut [0; 4]), &mut out);
            seen.push(c);
            if literal(&seen, stops).1.is_none() {
                let held = must_hold(&seen, stops);
                assert_eq!(out, seen[..seen.len() - held], "{seen:?} {stops:?}");
                assert_eq!(search.held(), held);
            }
        }
        search.finish(&mut out);
        assert_eq!((out.as_str(), search.stopped()), (want, stopped), "{text:?} {stops:?}");

        let mut search = Search::new(stops.iter().map(ToString::to_string).collect());
        let mut out = String::new();
        search.push(text, &mut out);
        search.finish(&mut out);
        assert_eq!((out.as_str(), search.stopped()), (want, stopped), "at once: {text:?} {stops:?}");
    }

    #[test]
    fn all_short_texts_with_all_pairs_of_short_stops() {
        let alphabet = ['a', 'é'];
        let stops = all_strings(&alphabet, 3);
        let texts = all_strings(&['a', 'é', 'è'], 6);
        for first in &stops[1..] {
            for second in &stops[1..] {
                texts.iter().for_each(|text| check(text, &[first, second]));
            }
        }
    }

    #[test]
    fn an_earlier_match_that_fails_leaves_the_later_one() {
        check("xabcd", &["abce", "bc"]);
        check("xabce", &["abce", "bc"]);
        check("aabaabaaab", &["aabaaab", "baab", "aaaa"]);
        check("abcab", &["ab", "abcabd"]);
    }

    #[test]
    fn nothing_is_held_for_long_and_nothing_costs_more_than_its_bytes() {
        let stop = "a".repeat(100_000) + "b";
        let mut search = Search::new(vec![stop.clone()]);
        let mut out = String::new();
        for _ in 0..200_000 {
            search.push("a", &mut out);
        }
        assert_eq!((out.len(), search.held()), (100_000, 100_000));
        search.push("b", &mut out);
        assert_eq!((out.len(), search.stopped()), (100_000, Some(stop.as_str())));
    }
}
