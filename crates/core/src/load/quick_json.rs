//! A `tokenizer.json` read in one pass, its merges in two halves at a time: the usual way in.
//!
//! The vocabulary and the list of merges make up nearly all of such a file. They are read here and nowhere else looked
//! at; the other values are left to serde, which checks them. What is taken is JSON as these files have it. Anything
//! else, sound or not, is None: then the careful reader of [`super::tokenizer_json`] reads the file, and says what is
//! wrong with it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::merge_list::Listed;
use super::token_names::{Entry, TokenNames};
use super::tokenizer_json::MAX_MERGES;
use crate::parallel;
use crate::vocab::MAX_TOKENS;

/// Values by name, not looked at.
pub type Raw<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// A file.
pub struct File<'a> {
    /// All but the model.
    pub parts: Raw<'a>,
    /// All of the model but the two large parts.
    pub model: Raw<'a>,
    /// The vocabulary.
    pub names: TokenNames<'a>,
    /// The merges, as places in the vocabulary.
    pub listed: Vec<Listed>,
}

/// Lists shorter than this are not worth a second thread, in bytes.
const WORTH_TWO: usize = 64 << 10;

/// Reads a file.
pub fn read(text: &str) -> Option<File<'_>> {
    let mut cursor = Cursor { text, at: 0 };
    let mut parts = Raw::new();
    let mut model = None;
    cursor.object(|cursor, name| {
        if name == "model" && model.is_none() {
            model = Some(read_model(cursor)?);
        } else if name == "model" || parts.insert(name, cursor.raw()?).is_some() {
            return None;
        }
        Some(())
    })?;
    cursor.skip_space();
    let (model, names, listed) = model.filter(|_| cursor.at == text.len())?;
    Some(File { parts, model, names, listed })
}

fn read_model<'a>(cursor: &mut Cursor<'a>) -> Option<(Raw<'a>, TokenNames<'a>, Vec<Listed>)> {
    let mut model = Raw::new();
    let (mut names, mut listed) = (None, None);
    cursor.object(|cursor, name| {
        match &*name {
            // Not of the models that are read, as far as can be seen.
            "vocab" if model.get("type").is_some_and(|kind: &&RawValue| kind.get() != "\"BPE\"") => return None,
            "vocab" if names.is_none() => names = Some(TokenNames::new(cursor.entries()?)?),
            "merges" if listed.is_none() => listed = Some(cursor.merges(names.as_ref()?)?),
            "vocab" | "merges" => return None,
            _ => {
                let value = cursor.raw()?;
                return model.insert(name, value).is_none().then_some(());
            }
        }
        Some(())
    })?;
    Some((model, names?, listed?))
}

/// A place in a text.
#[derive(Clone)]
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    #[inline(always)]
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline(always)]
    fn skip_space(&mut self) {
        // Files that are made to be read are mostly this.
        while self.text.as_bytes().get(self.at..self.at + 8) == Some(b"        ") {
            self.at += 8;
        }
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// The next byte that is no white space, taken if it is one of those wanted.
    #[inline(always)]
    fn take(&mut self, wanted: &[u8]) -> Option<u8> {
        self.skip_space();
        let byte = self.peek().filter(|byte| wanted.contains(byte))?;
        self.at += 1;
        Some(byte)
    }

    /// An object, with `each` called behind every name.
    fn object(&mut self, mut each: impl FnMut(&mut Self, Cow<'a, str>) -> Option<()>) -> Option<()> {
        self.take(b"{")?;
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Some(());
        }
        loop {
            let name = self.string()?;
            self.take(b":")?;
            each(self, name)?;
            if self.take(b",}")? == b'}' {
                return Some(());
            }
        }
    }

    /// A list, with `each` called for every value, until it says that this is enough; whether it did.
    fn list(&mut self, mut each: impl FnMut(&mut Self) -> Option<bool>) -> Option<bool> {
        loop {
            self.skip_space();
            if each(self)? {
                return Some(true);
            }
            if self.take(b",]")? == b']' {
                return Some(false);
            }
        }
    }

    /// Any value, checked by serde.
    fn raw(&mut self) -> Option<&'a RawValue> {
        let mut values = serde_json::Deserializer::from_str(&self.text[self.at..]).into_iter::<&RawValue>();
        let value = values.next()?.ok()?;
        self.at += values.byte_offset();
        Some(value)
    }

    #[inline]
    fn string(&mut self) -> Option<Cow<'a, str>> {
        self.take(b"\"")?;
        let start = self.at;
        while self.text.as_bytes().get(self.at..).and_then(<[u8]>::first_chunk).is_some_and(|&eight| is_plain(eight)) {
            self.at += 8;
        }
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(Cow::Borrowed(&self.text[start..self.at - 1]));
                }
                b'\\' => break,
                0..0x20 => return None,
                _ => self.at += 1,
            }
        }
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        serde_json::from_str(self.text.get(start - 1..self.at)?).ok().map(Cow::Owned)
    }

    #[inline]
    fn number(&mut self) -> Option<u32> {
        self.skip_space();
        let start = self.at;
        let mut value = 0u32;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            value = value.checked_mul(10)?.checked_add(u32::from(digit - b'0'))?;
            self.at += 1;
        }
        // No zeros in front; what comes behind is for the caller.
        let digits = self.at - start;
        (digits == 1 || digits > 1 && self.text.as_bytes()[start] != b'0').then_some(value)
    }

    fn entries(&mut self) -> Option<Vec<Entry<'a>>> {
        // A guess: an entry takes some twenty bytes or more, and about as many in the list of merges.
        let mut entries = Vec::with_capacity((self.text.len() / 48).min(MAX_TOKENS));
        self.object(|cursor, name| {
            entries.push((name, cursor.number()?));
            (entries.len() <= MAX_TOKENS && !entries[entries.len() - 1].0.is_empty()).then_some(())
        })?;
        Some(entries)
    }

    fn merges(&mut self, names: &TokenNames<'a>) -> Option<Vec<Listed>> {
        self.take(b"[")?;
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Some(Vec::new());
        }
        let start = self.at;
        let middle = self.middle().unwrap_or(self.text.len());
        let (mut first, mut second) = (self.clone(), Cursor { text: self.text, at: middle });
        let run = |cursor: &mut Cursor<'a>, until| {
            let mut listed = Vec::with_capacity((middle - start) / 16);
            let stopped = cursor.merges_until(names, until, &mut listed)?;
            Some((listed, stopped))
        };
        let from_middle = || if middle < self.text.len() { run(&mut second, usize::MAX) } else { None };
        let (to_middle, from_middle) = parallel::both(|| run(&mut first, middle), from_middle);
        let (mut listed, stopped) = to_middle?;
        self.at = first.at;
        if stopped {
            // A merge does begin at the middle.
            listed.append(&mut from_middle?.0);
            self.at = second.at;
        }
        (listed.len() <= MAX_MERGES).then_some(listed)
    }

    /// Where about the middle of the rest of the text a merge may begin: what looks like it may be something else.
    fn middle(&self) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let opening = self.peek()?;
        let closing = if opening == b'[' { b']' } else { b'"' };
        let rest = bytes.len() - self.at;
        let near = self.at + rest / 2..bytes.len().min(self.at + rest / 2 + 1024);
        let mut between = near.filter(|&at| rest > WORTH_TWO && bytes[at] == b',' && bytes[at - 1] == closing);
        between.find_map(|at| {
            let mut cursor = Cursor { text: self.text, at: at + 1 };
            cursor.skip_space();
            (cursor.peek() == Some(opening)).then_some(cursor.at)
        })
    }

    /// Merges up to one that begins at `until`, or to the end of the list; whether that one was met.
    fn merges_until(&mut self, names: &TokenNames<'a>, until: usize, listed: &mut Vec<Listed>) -> Option<bool> {
        let mut made = 0;
        self.list(|cursor| {
            if cursor.at == until {
                return Some(true);
            }
            let merge = if cursor.peek() == Some(b'[') {
                cursor.at += 1;
                let left = cursor.string()?;
                cursor.take(b",")?;
                let right = cursor.string()?;
                cursor.take(b"]")?;
                names.listed(&left, &right, made).ok()?
            } else {
                let pair = cursor.string()?;
                let (left, right) = pair.split_once(' ')?;
                names.listed(left, right, made).ok()?
            };
            made = merge.2;
            listed.push(merge);
            (listed.len() <= MAX_MERGES).then_some(false)
        })
    }
}

/// Whether none of these bytes ends a string, begins an escape or is a control character.
#[inline(always)]
fn is_plain(bytes: [u8; 8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let word = u64::from_le_bytes(bytes);
    // The highest bit of a byte is set if it is below `limit`; of others, only behind such a byte.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (is(b'"') | is(b'\\') | below(word, 0x20)) & (ONES << 7) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A vocabulary of these names.
    fn vocab(names: impl IntoIterator<Item = String>) -> Value {
        Value::Object(names.into_iter().zip((0u32..).map(Value::from)).collect())
    }

    /// The tokens that these merges need.
    fn vocab_for(merges: &Value) -> Value {
        let mut names: Vec<String> =
            ["a", "b", "c", "Ġ", "\"", ",", "[", "]", "\\", " ", "\n"].map(str::to_owned).to_vec();
        for merge in merges.as_array().unwrap() {
            let joined = match merge {
                Value::String(pair) => pair.replacen(' ', "", 1),
                pair => pair[0].as_str().unwrap().to_owned() + pair[1].as_str().unwrap(),
            };
            if !names.contains(&joined) {
                names.push(joined);
            }
        }
        vocab(names)
    }

    /// A file, with names in the order that these files have.
    fn file(vocab: &str, merges: &str) -> String {
        let model = format!("{{\"type\":\"BPE\",\"vocab\":{vocab},\"merges\":{merges}}}");
        format!("{{\"added_tokens\":[],\"model\":{model},\"version\":\"1.0\"}}")
    }

    /// Names of a vocabulary with ids, and the listed pairs as ids.
    type Content = (Vec<(String, u32)>, Vec<[u32; 3]>);

    /// What is read.
    fn content(text: &str) -> Option<Content> {
        let file = read(text)?;
        let entries = file.names.entries();
        let id = |place: u32| entries[crate::num::ix(place)].1;
        let listed = file.listed.iter().map(|&(left, right, token)| [left, right, token].map(id)).collect();
        Some((entries.iter().map(|(name, id)| (name.to_string(), *id)).collect(), listed))
    }

    /// The same by serde alone.
    fn expected(vocab: &Value, merges: &Value) -> Content {
        let vocab = vocab.as_object().unwrap();
        let id = |name: &str| u32::try_from(vocab[name].as_u64().unwrap()).unwrap();
        let listed = merges.as_array().unwrap().iter().map(|merge| {
            let (left, right) = match merge {
                Value::String(pair) => pair.split_once(' ').unwrap(),
                pair => (pair[0].as_str().unwrap(), pair[1].as_str().unwrap()),
            };
            [id(left), id(right), id(&(left.to_owned() + right))]
        });
        (vocab.iter().map(|(name, _)| (name.clone(), id(name))).collect(), listed.collect())
    }

    #[test]
    fn both_spellings_are_read_with_any_space_and_escapes() {
        let pairs = [["a", "b"], ["ab", "\""], ["Ġ", "c"], ["\\", ","], ["\\,", "ab\""], ["[", "]"], ["\n", "\n"]];
        for merges in [
            json!([]),
            json!(pairs[..6]),
            json!(pairs[..6].iter().map(|[left, right]| format!("{left} {right}")).collect::<Vec<_>>()),
        ] {
            let vocab = vocab_for(&merges);
            let want = expected(&vocab, &merges);
            let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap();
            for text in [file(&vocab.to_string(), &merges.to_string()), file(&pretty(&vocab), &pretty(&merges))] {
                let escaped = text.replace('Ġ', "\\u0120");
                let spaced = format!("\t\n {}\r\n", text.replace(':', " :\n").replace("],[", "] ,\n ["));
                for text in [text, escaped, spaced] {
                    assert_eq!(content(&text).unwrap(), want, "{text}");
                }
            }
        }
    }

    #[test]
    fn long_lists_are_read_in_two_halves_wherever_the_middle_seems_to_be() {
        // Names that look like the border of two merges, in JSON or out of it.
        let names = ["a", "b", "],[", "\",\"", "\\\",\\\"", "] , [", "\", \"", "Ġ\"],[\"Ġ"];
        let pair = |n: usize, m: usize| [names[n % 8].to_owned(), format!("{}{m}", names[n / 8 % 8])];
        for shift in 0..10 {
            let pairs: Vec<[String; 2]> = (0..6000).map(|n| pair(n, n % (3 + shift))).collect();
            let joined = pairs.iter().flat_map(|[left, right]| [right.clone(), left.clone() + right]);
            let all: std::collections::BTreeSet<String> = names.map(str::to_owned).into_iter().chain(joined).collect();
            let vocab = vocab(all);
            let spelled: Vec<String> = pairs.iter().map(|[l, r]| format!("{l} {r}")).collect();
            // A space in a name would part such a pair elsewhere.
            let is_plain = |pair: &&String| pair.matches(' ').count() == 1;
            let spelled: Vec<&String> = spelled.iter().filter(is_plain).collect();
            for merges in [json!(pairs), json!(spelled)] {
                let text = file(&vocab.to_string(), &merges.to_string());
                assert!(content(&text).unwrap() == expected(&vocab, &merges), "{shift}");
            }
        }
    }

    #[test]
    fn eight_bytes_are_plain_if_each_is() {
        for byte in 0..=255u8 {
            let ends = byte < 0x20 || byte == b'"' || byte == b'\\';
            for other in [b' ', b'!', b'#', b'[', b']', b'a', 0x7f, 0x80, 0xa2, 0xdc, 0xff] {
                for at in 0..8 {
                    let mut bytes = [other; 8];
                    bytes[at] = byte;
                    assert_eq!(is_plain(bytes), !ends, "{bytes:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_cut_off_or_odd_is_left_to_the_careful_reader() {
        let merges = json!([["a", "b"], ["ab", "\""]]);
        let sound = file(&vocab_for(&merges).to_string(), &merges.to_string());
        assert!(content(&sound).is_some());
        for end in (0..sound.len()).filter(|&end| sound.is_char_boundary(end)) {
            assert!(content(&sound[..end]).is_none(), "{}", &sound[..end]);
        }
        let changes = [
            ("\"a\":0", "\"a\":00"),
            ("\"a\":0", "\"a\":01"),
            ("\"a\":0", "\"a\":-0"),
            ("\"a\":0", "\"a\":0.0"),
            ("\"a\":0", "\"a\":4294967296"),
            ("\"a\":0", "\"a\":null"),
            ("\"a\":0", "\"a\":"),
            ("\"a\":0", "\"a\\x\":0"),
            ("\"a\":0", "\"a\\ud800\":0"),
            ("\"a\":0", "\"a\n\":0"),
            ("\"a\":0", "\"a\u{1}\":0"),
            ("\"a\":0", "\"\":0"),
            ("\"a\":0", "\"b\":0"),
            ("\"a\":0", "\"a\":0,"),
            ("[\"a\",\"b\"]", "[\"a\",\"d\"]"),
            ("[\"a\",\"b\"]", "[\"a\",\"c\"]"),
            ("[\"a\",\"b\"]", "[\"a\"]"),
            ("[\"a\",\"b\"]", "[\"a\",\"b\",\"c\"]"),
            ("[\"a\",\"b\"]", "\"ab\""),
            ("[\"a\",\"b\"]", "7"),
            ("[\"a\",\"b\"]", "[\"a\",\"b\"],"),
            ("\"BPE\"", "\"WordPiece\""),
            ("\"BPE\"", "\"BPE\",\"vocab\":{}"),
            ("\"BPE\"", "\"BPE\",\"type\":\"BPE\""),
            ("\"BPE\"", "\"BPE\",\"merges\":[]"),
            ("\"BPE\"", "nil"),
            ("\"1.0\"", "\"1.0\",\"model\":{}"),
            ("\"1.0\"}", "\"1.0\"}}"),
            ("\"1.0\"}", "\"1.0\"} x"),
            ("\"1.0\"}", "\"1.0\",}"),
        ];
        for (old, new) in changes {
            assert!(sound.contains(old), "{old}");
            assert!(content(&sound.replacen(old, new, 1)).is_none(), "{new}");
        }
    }
}
