//! Hugging Face `tokenizer.json` of a byte-level BPE model.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::byte_level::Alphabet;
use super::merge_list::{self, Listed, Tokens};
use super::quick_json::{self, File, Raw};
use super::saved::Description;
use super::token_names::{Entry, TokenNames};
use super::{added_tokens, normalizer};
use crate::error::Error;
use crate::num::ix;
use crate::special::ControlToken;
use crate::tables::Tables;
use crate::tokenizer::Tokenizer;
use crate::vocab::MAX_TOKENS;

/// Most merges that are read: four times what a vocabulary of the largest size has at the most in practice.
pub const MAX_MERGES: usize = 8 << 20;

/// Reads a `tokenizer.json`.
///
/// # Errors
/// [`Error::Unsupported`] if it is sound and no byte-level BPE; [`Error::Vocabulary`] with the line if it is not JSON, and
/// with the place if it cannot be what it claims; [`Error::Pattern`].
pub fn read_tokenizer_json(text: &[u8]) -> Result<Tokenizer, Error> {
    let text = utf8(text)?;
    match quick_json::read(text) {
        Some(File { parts, model, names, listed }) => {
            let (description, controls, ignore_merges) = read_rest(&parts, &model, true)?;
            let tables = tables(&names, &listed, ignore_merges, &controls)?;
            description.build(tables.into(), controls)
        }
        None => read_carefully(text),
    }
}

/// The same, part by part: for what is wrong, or odd.
fn read_carefully(text: &str) -> Result<Tokenizer, Error> {
    let parts: Raw<'_> = parse(text, "")?;
    let Some(model) = parts.get("model") else {
        let names: Vec<_> = parts.keys().take(8).map(|name| format!("{name:?}")).collect();
        return Err(Error::Unsupported(format!("no tokenizer.json: it has no \"model\", but {}", names.join(", "))));
    };
    let model: Raw<'_> = parse(model.get(), "model")?;
    // Before the vocabulary: what is refused is refused soon.
    let has_merges = model.contains_key("merges");
    let (description, controls, ignore_merges) = read_rest(&parts, &model, has_merges)?;
    let Entries(entries) = parse(raw(&model, "vocab"), "model.vocab")?;
    let Merges(merges) = parse(raw(&model, "merges"), "model.merges")?;
    let names = TokenNames::new(entries).ok_or_else(|| fault("model.vocab: a token is there twice".into()))?;
    let mut listed: Vec<Listed> = Vec::with_capacity(merges.len());
    for (place, (left, right)) in merges.iter().enumerate() {
        let after = listed.last().map_or(0, |last| last.2);
        listed.push(
            names
                .listed(left, right, after)
                .map_err(|missing| fault(format!("model.merges[{place}]: {missing:?} is not in the vocabulary")))?,
        );
    }
    let tables = tables(&names, &listed, ignore_merges, &controls)?;
    description.build(tables.into(), controls)
}

/// All but vocabulary and merges; of the model, its `ignore_merges`.
fn read_rest(
    parts: &Raw<'_>,
    model: &Raw<'_>,
    has_merges: bool,
) -> Result<(Description, Vec<ControlToken>, bool), Error> {
    let is_byte_level = raw(parts, "pre_tokenizer").contains("\"ByteLevel\"");
    let ignore_merges = check_model(model, has_merges, is_byte_level)?;
    let value = |name: &str| parse::<Value>(raw(parts, name), name);
    let description =
        Description { split: value("pre_tokenizer")?, normalizer: value("normalizer")?, cuts: false, named: true };
    // A text would be the pattern of a rank file.
    if let Value::String(_) = description.split {
        return Err(fault("pre_tokenizer is a string, and must be an object".into()));
    }
    normalizer::read(&description.normalizer)?;
    description.pattern()?;
    Ok((description, added_tokens::read(&value("added_tokens")?)?, ignore_merges))
}

fn raw<'a>(values: &Raw<'a>, name: &str) -> &'a str {
    values.get(name).map_or("null", |raw| raw.get())
}

/// All of a `tokenizer.json` but its model, as a JSON object.
///
/// # Errors
/// [`Error::Vocabulary`] if it is no JSON object.
pub fn parts_of_tokenizer_json(text: &[u8]) -> Result<String, Error> {
    let parts: Raw<'_> = parse(utf8(text)?, "")?;
    let others: Vec<String> = parts
        .iter()
        .filter(|(name, _)| name.as_ref() != "model")
        .map(|(name, raw)| format!("{}:{}", Value::from(name.as_ref()), raw.get()))
        .collect();
    Ok(format!("{{{}}}", others.join(",")))
}

/// The number of entries of the vocabulary of a model, and those that are not spelled in the alphabet of bytes or are
/// called as one of `names`.
///
/// # Errors
/// [`Error::Vocabulary`] if there is no vocabulary.
pub fn odd_entries(text: &[u8], names: &[String]) -> Result<(usize, Vec<(String, u32)>), Error> {
    let parts: Raw<'_> = parse(utf8(text)?, "")?;
    let model: Raw<'_> = parse(raw(&parts, "model"), "model")?;
    let vocab: Entries<'_> = parse(raw(&model, "vocab"), "model.vocab")?;
    let names: HashSet<&str> = names.iter().map(String::as_str).collect();
    let alphabet = Alphabet::default();
    let len = vocab.0.len();
    let odd = vocab.0.into_iter().filter(|(text, _)| names.contains(&**text) || alphabet.decode(text).is_none());
    Ok((len, odd.map(|(text, id)| (text.into_owned(), id)).collect()))
}

/// The vocabulary of the model of a `tokenizer.json`, as it is written there.
///
/// # Errors
/// [`Error::Vocabulary`] if there is no model.
pub fn vocab_of_tokenizer_json(text: &[u8]) -> Result<&str, Error> {
    let parts: Raw<'_> = parse(utf8(text)?, "")?;
    let model: Raw<'_> = parse(raw(&parts, "model"), "model")?;
    Ok(raw(&model, "vocab"))
}

fn utf8(text: &[u8]) -> Result<&str, Error> {
    let place = |_| simdutf8::compat::from_utf8(text).map_or_else(|e| e.valid_up_to(), str::len);
    simdutf8::basic::from_utf8(text).map_err(|e| fault(format!("not UTF-8 at byte {}", place(e))))
}

fn fault(reason: String) -> Error {
    Error::Vocabulary { line: 0, reason }
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str, what: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|e| {
        let place = if what.is_empty() { String::new() } else { format!("{what}: ") };
        // Lines count from the start of the part, which is the whole file only at the top.
        let line = if what.is_empty() { e.line() } else { 0 };
        Error::Vocabulary { line, reason: format!("{place}{e}") }
    })
}

/// Whether the model is a byte-level BPE as far as its own options say; and its `ignore_merges`.
fn check_model(model: &Raw<'_>, has_merges: bool, is_byte_level: bool) -> Result<bool, Error> {
    let option = |name: &str| -> Result<Value, Error> {
        model.get(name).map_or(Ok(Value::Null), |raw| parse(raw.get(), &format!("model.{name}")))
    };
    let refuse = |what: &str| {
        Err(Error::Unsupported(format!(
            "the model is {what}; Kizami reads byte-level BPE only: use the package `tokenizers` for this one"
        )))
    };
    match option("type")? {
        Value::String(kind) if kind == "BPE" => {}
        // Old files do not say.
        Value::Null if has_merges => {}
        Value::Null if model.contains_key("continuing_subword_prefix") => return refuse("WordPiece"),
        Value::Null if model.contains_key("unk_id") => return refuse("Unigram"),
        Value::Null => return refuse("of no kind that it names"),
        Value::String(kind) => return refuse(&kind),
        other => return Err(fault(format!("model.type: {other} is no string"))),
    }
    // Where every byte is a token there is nothing to fall back from.
    if option("byte_fallback")? == Value::Bool(true) && !is_byte_level {
        return refuse("BPE with byte fallback, as SentencePiece makes it");
    }
    for (name, what) in [
        ("end_of_word_suffix", "BPE with a suffix at the end of words, as CLIP has it"),
        ("continuing_subword_prefix", "BPE with a prefix inside words"),
    ] {
        match option(name)? {
            Value::Null => {}
            Value::String(text) if text.is_empty() => {}
            other => return refuse(&format!("{what} ({name} = {other})")),
        }
    }
    match option("dropout")? {
        Value::Null => {}
        Value::Number(n) if n.as_f64() == Some(0.0) => {}
        other => return refuse(&format!("BPE with dropout ({other}), which gives other ids every time")),
    }
    match option("ignore_merges")? {
        Value::Null => Ok(false),
        Value::Bool(flag) => Ok(flag),
        other => Err(fault(format!("model.ignore_merges: {other} is no boolean"))),
    }
}

fn tables(
    names: &TokenNames<'_>,
    listed: &[Listed],
    ignore_merges: bool,
    controls: &[ControlToken],
) -> Result<Tables, Error> {
    let entries = names.entries();
    added_tokens::check_ids(controls, entries.len(), |name| names.place(name).map(|place| entries[ix(place)].1))?;
    // A token that is an added one, too, and that no pair makes, is a control token and nothing else.
    let mut is_made = vec![false; entries.len()];
    listed.iter().for_each(|&(_, _, token)| is_made[ix(token)] = true);
    let mut dropped = vec![false; entries.len()];
    for control in controls {
        if let Some(place) = names.place(&control.name) {
            dropped[ix(place)] = !is_made[ix(place)] && control.name.chars().count() > 1;
        }
    }
    if let Some(place) = listed.iter().position(|pair| dropped[ix(pair.0)] || dropped[ix(pair.1)]) {
        return Err(fault(format!("model.merges[{place}]: joins an added token")));
    }
    let alphabet = Alphabet::default();
    let mut tokens = Tokens::default();
    let mut place_of = vec![u32::MAX; entries.len()];
    for (at, (text, id)) in entries.iter().enumerate().filter(|(at, _)| !dropped[*at]) {
        place_of[at] = tokens.len();
        // What is not written in the alphabet stands for itself.
        if !tokens.push_spelled(*id, text, &alphabet) {
            tokens.push(*id, text.as_bytes());
        }
    }
    let place = |token: u32| place_of[ix(token)];
    let listed: Vec<Listed> = listed.iter().map(|&(l, r, token)| (place(l), place(r), place(token))).collect();
    merge_list::build(&tokens, &listed, ignore_merges)
}

/// A string, borrowed from the file where it is written without escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfText;
        impl<'de> Visitor<'de> for OfText {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(OfText)
    }
}

/// The vocabulary: tokens and their ids.
struct Entries<'a>(Vec<Entry<'a>>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfEntries;
        impl<'de> Visitor<'de> for OfEntries {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tokens and ids")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some((text, id)) = map.next_entry::<Text<'de>, u32>()? {
                    if entries.len() == MAX_TOKENS {
                        return Err(A::Error::custom(format!("more than {MAX_TOKENS} tokens")));
                    }
                    if text.0.is_empty() {
                        return Err(A::Error::custom(format!("token {id} is empty")));
                    }
                    entries.push((text.0, id));
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(OfEntries)
    }
}

/// One merge: `"left right"` or `["left", "right"]`.
struct Merge<'a>(Cow<'a, str>, Cow<'a, str>);

impl<'de> Deserialize<'de> for Merge<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfMerge;
        impl OfMerge {
            const EXPECTED: &'static str = "a pair of tokens, as \"left right\" or [\"left\", \"right\"]";
        }
        impl<'de> Visitor<'de> for OfMerge {
            type Value = Merge<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(Self::EXPECTED)
            }

            fn visit_borrowed_str<E: serde::de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                let (left, right) = text.split_once(' ').ok_or_else(|| E::custom(format!("{text:?} is no pair")))?;
                Ok(Merge(Cow::Borrowed(left), Cow::Borrowed(right)))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                let (left, right) = text.split_once(' ').ok_or_else(|| E::custom(format!("{text:?} is no pair")))?;
                Ok(Merge(Cow::Owned(left.to_owned()), Cow::Owned(right.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut next = || seq.next_element::<Text<'de>>();
                match (next()?, next()?, next()?) {
                    (Some(left), Some(right), None) => Ok(Merge(left.0, right.0)),
                    _ => Err(A::Error::custom(format!("expected {}", Self::EXPECTED))),
                }
            }
        }
        deserializer.deserialize_any(OfMerge)
    }
}

/// The list of merges.
struct Merges<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'de> Deserialize<'de> for Merges<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfMerges;
        impl<'de> Visitor<'de> for OfMerges {
            type Value = Merges<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of merges")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut merges = Vec::new();
                while let Some(Merge(left, right)) = seq.next_element()? {
                    if merges.len() == MAX_MERGES {
                        return Err(A::Error::custom(format!("more than {MAX_MERGES} merges")));
                    }
                    merges.push((left, right));
                }
                Ok(Merges(merges))
            }
        }
        deserializer.deserialize_seq(OfMerges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const FILE: &[u8] = br#"{"version": "1.0", "decoder": {"type": "ByteLevel"}, "added_tokens": [],
        "model": {"type": "BPE", "vocab": {"a": 0, "<a>": 7, "\u4e2d": 2, "\u0120a": 3}, "merges": []}}"#;

    #[test]
    fn parts_are_all_but_the_model() {
        let parts: Value = serde_json::from_str(&parts_of_tokenizer_json(FILE).unwrap()).unwrap();
        let want = json!({"version": "1.0", "decoder": {"type": "ByteLevel"}, "added_tokens": []});
        assert_eq!(parts, want);
        assert!(parts_of_tokenizer_json(b"[]").is_err());
        assert!(parts_of_tokenizer_json(b"\xff").is_err());
    }

    #[test]
    fn odd_entries_are_asked_for_or_spelled_otherwise() {
        let of =
            |names: &[&str]| odd_entries(FILE, &names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
        assert_eq!(of(&[]), (4, vec![("\u{4e2d}".into(), 2)]));
        assert_eq!(of(&["<a>", "b"]), (4, vec![("<a>".into(), 7), ("\u{4e2d}".into(), 2)]));
        assert!(odd_entries(b"{}", &[]).is_err());
    }

    #[test]
    fn the_vocabulary_is_as_it_is_written() {
        let vocab = vocab_of_tokenizer_json(FILE).unwrap();
        assert_eq!(vocab, r#"{"a": 0, "<a>": 7, "\u4e2d": 2, "\u0120a": 3}"#);
    }

    #[test]
    fn both_readers_give_the_same() {
        let alphabet = Alphabet::default();
        let bytes: Vec<u8> = (0..=255).collect();
        let mut names: Vec<String> = bytes.iter().map(|&byte| alphabet.encode(&[byte])).collect();
        let words = ["ab", "abc", "bc", "ĠĠ", "\u{10a}\u{10a}", "\"\"", "\\\\", "<|end|>", "中"];
        names.extend(words.map(str::to_owned));
        let vocab: serde_json::Map<String, Value> = names.into_iter().zip((0u32..).map(Value::from)).collect();
        let added = json!([{"id": 263, "content": "<|end|>", "single_word": false, "lstrip": false, "rstrip": false,
                            "normalized": false, "special": true}]);
        let pairs = [["a", "b"], ["ab", "c"], ["b", "c"], ["Ġ", "Ġ"], ["\"", "\""], ["\\", "\\"], ["a", "bc"]];
        for merges in [json!(pairs), json!(pairs.map(|pair| pair.join(" "))), json!([["b", "c"], ["a", "bc"]])] {
            for flag in [true, false] {
                let split = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true});
                let text = format!(
                    "{{\"added_tokens\": {added}, \"normalizer\": {{\"type\": \"NFC\"}}, \"pre_tokenizer\": {split}, \
                     \"model\": {{\"ignore_merges\": {flag}, \"vocab\": {}, \"merges\": {merges}}}}}",
                    Value::Object(vocab.clone())
                );
                assert!(quick_json::read(&text).is_some());
                let [quick, careful] = [read_tokenizer_json(text.as_bytes()), read_carefully(&text)]
                    .map(|read| super::super::saved::write(&read.unwrap(), ""));
                assert!(quick == careful, "{merges}");
            }
        }
    }
}
