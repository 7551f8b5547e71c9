//! Rows of a file as texts: JSON Lines, and plain text that a separator parts.
//!
//! A block of a file goes in; out come its texts, side by side, and what each row is. A row that holds no text is never
//! an error here: whoever reads the file counts such rows, and decides.

use std::borrow::Cow;
use std::fmt;

use memchr::{memchr_iter, memmem};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Row {
    /// A text, maybe an empty one.
    Text = 0,
    /// A line of white space.
    Blank = 1,
    /// Bytes that are no UTF-8.
    NotUtf8 = 2,
    /// A line that is no JSON.
    NotJson = 3,
    /// JSON, but no object.
    NotObject = 4,
    /// An object without the field.
    NoField = 5,
    /// The field is null.
    Null = 6,
    /// The field is something else than a string.
    NotText = 7,
}

/// The rows of a block.
#[derive(Debug, Default)]
pub struct Rows {
    /// The texts, one after the other.
    pub text: String,
    /// Of each row: where its text ends; it begins where that of the row before ends.
    pub ends: Vec<usize>,
    /// Of each row: what it is.
    pub kinds: Vec<Row>,
    /// Of each row: where in the block the next row begins.
    pub nexts: Vec<usize>,
}

impl Rows {
    fn push(&mut self, kind: Row, next: usize) {
        self.ends.push(self.text.len());
        self.kinds.push(kind);
        self.nexts.push(next);
    }
}

/// The texts in the field `field` of the lines of `block`. The last line needs no newline.
///
/// Escapes of lone surrogates are U+FFFD, as in a Python string that is encoded. Of a key that comes twice the last one
/// counts. With `lossy`, bytes that are no UTF-8 are U+FFFD.
#[must_use]
pub fn json_lines(block: &[u8], field: &str, lossy: bool) -> Rows {
    let mut rows = Rows::default();
    rows.text.reserve(block.len());
    let valid = std::str::from_utf8(block).ok();
    let mut start = 0;
    let newlines = memchr_iter(b'\n', block).map(|at| at + 1);
    for next in newlines.chain((!block.ends_with(b"\n")).then_some(block.len())) {
        let line = match valid {
            Some(text) => Some(Cow::Borrowed(&text[start..next])),
            None => utf8(&block[start..next], lossy),
        };
        if start < next {
            let kind = line.map_or(Row::NotUtf8, |line| json_line(&line, field, &mut rows.text));
            rows.push(kind, next);
        }
        start = next;
    }
    rows
}

/// The pieces of `block` between separators. What follows the last separator is a piece only if it is the `last` block of
/// the file, and not empty. An empty separator parts nothing: the block is one piece.
#[must_use]
pub fn pieces(block: &[u8], separator: &[u8], last: bool, lossy: bool) -> Rows {
    let mut rows = Rows::default();
    rows.text.reserve(block.len());
    let mut piece = |bytes: &[u8], next| {
        let text = utf8(bytes, lossy);
        rows.text.push_str(text.as_deref().unwrap_or_default());
        rows.push(if text.is_some() { Row::Text } else { Row::NotUtf8 }, next);
    };
    if separator.is_empty() {
        piece(block, block.len());
        return rows;
    }
    let mut start = 0;
    for at in memmem::find_iter(block, separator) {
        let next = at + separator.len();
        piece(&block[start..at], next);
        start = next;
    }
    if last && start < block.len() {
        piece(&block[start..], block.len());
    }
    rows
}

fn utf8(bytes: &[u8], lossy: bool) -> Option<Cow<'_, str>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(Cow::Borrowed(text)),
        Err(_) => lossy.then(|| String::from_utf8_lossy(bytes)),
    }
}

/// Appends the text of one line to `out`.
fn json_line(line: &str, field: &str, out: &mut String) -> Row {
    if line.trim_ascii().is_empty() {
        return Row::Blank;
    }
    let start = out.len();
    parse(line, field, out)
        .or_else(|_| {
            out.truncate(start);
            parse(&without_lone_surrogates(line), field, out)
        })
        .unwrap_or_else(|_| {
            out.truncate(start);
            Row::NotJson
        })
}

fn parse(line: &str, field: &str, out: &mut String) -> serde_json::Result<Row> {
    let mut json = serde_json::Deserializer::from_str(line);
    let row = json.deserialize_any(Object { field, out })?;
    json.end()?;
    Ok(row)
}

/// The same line with `\ufffd` for every escape of a surrogate that has no partner; the parser refuses these.
fn without_lone_surrogates(line: &str) -> String {
    let unit = |at: usize| {
        let escape = line.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(escape, 16).ok()
    };
    let mut out = String::with_capacity(line.len());
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = line.as_bytes()[at..].iter().position(|&byte| byte == b'\\') {
        at += found;
        match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => {
                out.push_str(&line[copied..at]);
                out.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            _ => at = (at + 2).min(line.len()),
        }
    }
    out + &line[copied..]
}

/// Reads a line.
struct Object<'a> {
    field: &'a str,
    out: &'a mut String,
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = Row;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row, A::Error> {
        let start = self.out.len();
        let mut row = Row::NoField;
        while let Some(wanted) = map.next_key_seed(Is(self.field))? {
            if wanted {
                self.out.truncate(start);
                row = map.next_value_seed(Value(self.out))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(row)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Row, A::Error> {
        IgnoredAny.visit_seq(seq).map(|_| Row::NotObject)
    }

    fn visit_str<E>(self, _: &str) -> Result<Row, E> {
        Ok(Row::NotObject)
    }

    fn visit_unit<E>(self) -> Result<Row, E> {
        Ok(Row::NotObject)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Row, E> {
        Ok(Row::NotObject)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Row, E> {
        Ok(Row::NotObject)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Row, E> {
        Ok(Row::NotObject)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Row, E> {
        Ok(Row::NotObject)
    }
}

/// Whether a key is this one.
struct Is<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<bool, D::Error> {
        key.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}

/// Appends a string to this one.
struct Value<'a>(&'a mut String);

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = Row;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Row, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = Row;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Row, E> {
        self.0.push_str(text);
        Ok(Row::Text)
    }

    fn visit_unit<E>(self) -> Result<Row, E> {
        Ok(Row::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Row, E> {
        Ok(Row::NotText)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Row, E> {
        Ok(Row::NotText)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Row, E> {
        Ok(Row::NotText)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Row, E> {
        Ok(Row::NotText)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Row, A::Error> {
        IgnoredAny.visit_seq(seq).map(|_| Row::NotText)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Row, A::Error> {
        IgnoredAny.visit_map(map).map(|_| Row::NotText)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(rows: &Rows) -> Vec<(&str, Row)> {
        let starts = std::iter::once(0).chain(rows.ends.iter().copied());
        starts.zip(&rows.ends).zip(&rows.kinds).map(|((from, &to), &kind)| (&rows.text[from..to], kind)).collect()
    }

    fn line(line: &str) -> (String, Row) {
        let rows = json_lines(line.as_bytes(), "text", false);
        let (text, kind) = texts(&rows)[0];
        (text.into(), kind)
    }

    #[test]
    fn every_kind_of_line_is_told() {
        let cases = [
            (r#"{"text": "a\tb"}"#, "a\tb", Row::Text),
            (r#"{"text": ""}"#, "", Row::Text),
            ("{\"x\": [{\"text\": 1}], \"te\\u0078t\": \"y\"}\r", "y", Row::Text),
            (r#"{"text": "first", "text": "second"}"#, "second", Row::Text),
            (r#"{"text": "first", "text": null}"#, "", Row::Null),
            (" \t\r", "", Row::Blank),
            (r#"{"text": "a"} x"#, "", Row::NotJson),
            (r#"{"text": "a", "x": }"#, "", Row::NotJson),
            ("{\"text\": \"a\tb\"}", "", Row::NotJson),
            (r#"["text"]"#, "", Row::NotObject),
            ("3", "", Row::NotObject),
            (r#"{"body": "a"}"#, "", Row::NoField),
            (r#"{"text": {"a": ["b"]}}"#, "", Row::NotText),
            (r#"{"text": 1.5}"#, "", Row::NotText),
        ];
        for (given, text, kind) in cases {
            assert_eq!(line(given), (text.into(), kind), "{given}");
        }
    }

    #[test]
    fn surrogates_pair_up_or_are_replaced() {
        let cases = [
            (r"\ud83d\ude00", "😀"),
            (r"\ud83d", "\u{fffd}"),
            (r"\ude00\ud83d", "\u{fffd}\u{fffd}"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}😀"),
            (r"\ud83d\u0041\\ud83d", "\u{fffd}A\\ud83d"),
            (r"é\uDFFFé", "é\u{fffd}é"),
        ];
        for (given, text) in cases {
            assert_eq!(line(&format!("{{\"text\": \"{given}\"}}")), (text.into(), Row::Text), "{given}");
        }
        assert_eq!(line("{\"text\": \"\\ud83d\\").1, Row::NotJson);
        assert_eq!(line("{\"text\": \"\\ud83dé\\u12é\"}").1, Row::NotJson);
    }

    #[test]
    fn one_bad_line_leaves_the_others_alone() {
        let block = b"{\"text\": \"a\"}\n{\"text\": \"\xff\"}\n\n{\"text\": \"b\"}";
        let rows = json_lines(block, "text", false);
        assert_eq!(texts(&rows), [("a", Row::Text), ("", Row::NotUtf8), ("", Row::Blank), ("b", Row::Text)]);
        assert_eq!(rows.nexts, [14, 28, 29, block.len()]);
        let rows = json_lines(block, "text", true);
        assert_eq!(texts(&rows)[1], ("\u{fffd}", Row::Text));
        assert!(json_lines(b"", "text", false).kinds.is_empty());
    }

    #[test]
    fn separators_end_pieces() {
        let rows = pieces(b"a--b----c", b"--", false, false);
        assert_eq!(texts(&rows), [("a", Row::Text), ("b", Row::Text), ("", Row::Text)]);
        assert_eq!(rows.nexts, [3, 6, 8]);
        assert_eq!(texts(&pieces(b"a--c", b"--", true, false)), [("a", Row::Text), ("c", Row::Text)]);
        assert_eq!(texts(&pieces(b"a--", b"--", true, false)), [("a", Row::Text)]);
        assert_eq!(texts(&pieces(b"a\xff--b", b"--", true, false)), [("", Row::NotUtf8), ("b", Row::Text)]);
        assert_eq!(texts(&pieces(b"a\xff", b"", true, true)), [("a\u{fffd}", Row::Text)]);
        assert_eq!(texts(&pieces(b"", b"", true, false)), [("", Row::Text)]);
    }
}
