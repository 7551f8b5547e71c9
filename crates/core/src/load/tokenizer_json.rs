//! Hugging Face `tokenizer.json` of a byte-level BPE model.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::byte_level::Alphabet;
use super::merge_list::{self, Listed};
use super::saved::Description;
use super::{added_tokens, normalizer};
use crate::error::Error;
use crate::num::{ix, to_u32};
use crate::special::ControlToken;
use crate::tables::Tables;
use crate::tokenizer::Tokenizer;
use crate::vocab::MAX_TOKENS;

/// Most merges that are read: four times what a vocabulary of the largest size has at the most in practice.
const MAX_MERGES: usize = 8 << 20;

/// Reads a `tokenizer.json`.
///
/// # Errors
/// [`Error::Unsupported`] if it is sound and no byte-level BPE; [`Error::Vocabulary`] with the line if it is not JSON, and
/// with the place if it cannot be what it claims; [`Error::Pattern`].
pub fn read_tokenizer_json(text: &[u8]) -> Result<Tokenizer, Error> {
    let parts: BTreeMap<Cow<'_, str>, &RawValue> = parse(utf8(text)?, "")?;
    let part = |name: &str| parts.get(name).map_or("null", |raw| raw.get());
    if !parts.contains_key("model") {
        let names: Vec<_> = parts.keys().take(8).map(|name| format!("{name:?}")).collect();
        return Err(Error::Unsupported(format!("no tokenizer.json: it has no \"model\", but {}", names.join(", "))));
    }
    let model: BTreeMap<Cow<'_, str>, &RawValue> = parse(part("model"), "model")?;
    let ignore_merges = check_model(&model, part("pre_tokenizer").contains("\"ByteLevel\""))?;
    // Before the vocabulary: what is refused is refused soon.
    let value = |name: &str| parse::<Value>(part(name), name);
    let description =
        Description { split: value("pre_tokenizer")?, normalizer: value("normalizer")?, cuts: false, named: true };
    normalizer::read(&description.normalizer)?;
    description.pattern()?;
    let controls = added_tokens::read(&value("added_tokens")?)?;

    let vocab: Entries<'_> = parse(model.get("vocab").map_or("null", |raw| raw.get()), "model.vocab")?;
    let merges: Merges<'_> = parse(model.get("merges").map_or("null", |raw| raw.get()), "model.merges")?;
    let tables = tables(&vocab.0, &merges.0, ignore_merges, &controls)?;
    description.build(tables.into(), controls)
}

/// All of a `tokenizer.json` but its model, as a JSON object.
///
/// # Errors
/// [`Error::Vocabulary`] if it is no JSON object.
pub fn parts_of_tokenizer_json(text: &[u8]) -> Result<String, Error> {
    let parts: BTreeMap<Cow<'_, str>, &RawValue> = parse(utf8(text)?, "")?;
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
    let parts: BTreeMap<Cow<'_, str>, &RawValue> = parse(utf8(text)?, "")?;
    let part = |name: &str| parts.get(name).map_or("null", |raw| raw.get());
    let model: BTreeMap<Cow<'_, str>, &RawValue> = parse(part("model"), "model")?;
    let vocab: Entries<'_> = parse(model.get("vocab").map_or("null", |raw| raw.get()), "model.vocab")?;
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
    let parts: BTreeMap<Cow<'_, str>, &RawValue> = parse(utf8(text)?, "")?;
    let model: BTreeMap<Cow<'_, str>, &RawValue> = parse(parts.get("model").map_or("null", |raw| raw.get()), "model")?;
    Ok(model.get("vocab").map_or("null", |raw| raw.get()))
}

fn utf8(text: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(text).map_err(|e| fault(format!("not UTF-8 at byte {}", e.valid_up_to())))
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
fn check_model(model: &BTreeMap<Cow<'_, str>, &RawValue>, is_byte_level: bool) -> Result<bool, Error> {
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
        Value::Null if model.contains_key("merges") => {}
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
    entries: &[(Cow<'_, str>, u32)],
    merges: &[(Cow<'_, str>, Cow<'_, str>)],
    ignore_merges: bool,
    controls: &[ControlToken],
) -> Result<Tables, Error> {
    let index: HashMap<&str, u32> = entries.iter().map(|(text, _)| &**text).zip(0..).collect();
    if index.len() < entries.len() {
        return Err(fault("model.vocab: a token is there twice".into()));
    }
    added_tokens::check_ids(controls, entries.len(), |name| index.get(name).map(|&at| entries[ix(at)].1))?;
    let mut joined = String::new();
    let mut listed = Vec::with_capacity(merges.len());
    for (place, (left, right)) in merges.iter().enumerate() {
        let find = |text: &str| {
            let unknown = || fault(format!("model.merges[{place}]: {text:?} is not in the vocabulary"));
            index.get(text).copied().ok_or_else(unknown)
        };
        joined.clear();
        joined.push_str(left);
        joined.push_str(right);
        listed.push((find(left)?, find(right)?, find(&joined)?));
    }
    // A token that is an added one, too, and that no pair makes, is a control token and nothing else.
    let mut is_made = vec![false; entries.len()];
    listed.iter().for_each(|&(_, _, token)| is_made[ix(token)] = true);
    let mut dropped = vec![false; entries.len()];
    for control in controls {
        if let Some(&at) = index.get(&*control.name) {
            dropped[ix(at)] = !is_made[ix(at)] && control.name.chars().count() > 1;
        }
    }
    let alphabet = Alphabet::default();
    let mut tokens = Vec::with_capacity(entries.len());
    let mut place_of = vec![u32::MAX; entries.len()];
    for (at, (text, id)) in entries.iter().enumerate().filter(|(at, _)| !dropped[*at]) {
        place_of[at] = to_u32(tokens.len());
        // What is not written in the alphabet stands for itself.
        tokens.push((*id, alphabet.decode(text).unwrap_or_else(|| text.as_bytes().to_vec())));
    }
    let listed: Vec<Listed> = listed
        .into_iter()
        .map(|(left, right, token)| (place_of[ix(left)], place_of[ix(right)], place_of[ix(token)]))
        .collect();
    if let Some(place) = listed.iter().position(|pair| pair.0.max(pair.1) == u32::MAX) {
        return Err(fault(format!("model.merges[{place}]: joins an added token")));
    }
    let (vocab, merges) = merge_list::build(&tokens, &listed)?;
    let whole: Vec<bool> = (0..vocab.len()).map(|rank| ignore_merges || merges.makes(rank)).collect();
    Ok(Tables::with_merges(vocab, merges, |rank| whole[ix(rank)]))
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
struct Entries<'a>(Vec<(Cow<'a, str>, u32)>);

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

    const FILE: &[u8] = br#"{"version": "1.0", "decoder": {"type": "ByteLevel"}, "added_tokens": [],
        "model": {"type": "BPE", "vocab": {"a": 0, "<a>": 7, "\u4e2d": 2, "\u0120a": 3}, "merges": []}}"#;

    #[test]
    fn parts_are_all_but_the_model() {
        let parts: Value = serde_json::from_str(&parts_of_tokenizer_json(FILE).unwrap()).unwrap();
        let want = serde_json::json!({"version": "1.0", "decoder": {"type": "ByteLevel"}, "added_tokens": []});
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
}
