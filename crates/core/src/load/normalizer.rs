//! The normalizer of a `tokenizer.json`.

use serde_json::Value;

use crate::error::Error;
use crate::normalize::{Normalizer, Replace};

/// Reads the value of `normalizer`. None if it does nothing.
///
/// # Errors
/// [`Error::Unsupported`] for a kind that models with byte-level BPE do not have; [`Error::Vocabulary`] for a value that
/// is none; [`Error::Pattern`] for a regex that does not compile.
pub fn read(value: &Value) -> Result<Option<Normalizer>, Error> {
    if value.is_null() {
        return Ok(None);
    }
    let Some(kind) = value.get("type").and_then(Value::as_str) else {
        return fault("it has no `type`");
    };
    Ok(Some(match kind {
        "NFC" => Normalizer::Nfc,
        "NFD" => Normalizer::Nfd,
        "NFKC" => Normalizer::Nfkc,
        "NFKD" => Normalizer::Nfkd,
        "Lowercase" => Normalizer::Lowercase,
        "StripAccents" => Normalizer::StripAccents,
        "Strip" => match (flag(value, "strip_left")?, flag(value, "strip_right")?) {
            (false, false) => return Ok(None),
            (left, right) => Normalizer::Strip { left, right },
        },
        "Prepend" => match text(value, "prepend")? {
            "" => return Ok(None),
            start => Normalizer::Prepend(start.into()),
        },
        "Replace" => Normalizer::Replace(replace(value)?),
        "Sequence" => return sequence(value),
        _ => {
            return Err(Error::Unsupported(format!(
                "the normalizer `{kind}` is not supported: no model with byte-level BPE is known to need it; \
                 use the `tokenizers` package for this model"
            )));
        }
    }))
}

fn sequence(value: &Value) -> Result<Option<Normalizer>, Error> {
    let Some(list) = value.get("normalizers").and_then(Value::as_array) else {
        return fault("`Sequence` has no list `normalizers`");
    };
    let mut steps = Vec::new();
    for value in list {
        if value.is_null() {
            return fault("`Sequence` has null among its `normalizers`");
        }
        steps.extend(read(value)?);
    }
    Ok(if steps.len() < 2 { steps.pop() } else { Some(Normalizer::Sequence(steps)) })
}

fn replace(value: &Value) -> Result<Replace, Error> {
    let content = text(value, "content")?;
    let pattern = value.get("pattern").and_then(Value::as_object).filter(|pattern| pattern.len() == 1);
    let pattern = pattern.and_then(|pattern| pattern.iter().next());
    match pattern.map(|(kind, pattern)| (kind.as_str(), pattern.as_str())) {
        Some(("String", Some(pattern))) => Ok(Replace::text(pattern, content)),
        Some(("Regex", Some(pattern))) => Replace::regex(pattern, content),
        _ => fault("`pattern` of `Replace` is neither {\"String\": ...} nor {\"Regex\": ...}"),
    }
}

fn text<'v>(value: &'v Value, field: &str) -> Result<&'v str, Error> {
    value.get(field).and_then(Value::as_str).map_or_else(|| fault(&format!("`{field}` is no string")), Ok)
}

fn flag(value: &Value, field: &str) -> Result<bool, Error> {
    value.get(field).and_then(Value::as_bool).map_or_else(|| fault(&format!("`{field}` is neither true nor false")), Ok)
}

fn fault<T>(reason: &str) -> Result<T, Error> {
    Err(Error::Vocabulary { line: 0, reason: format!("normalizer: {reason}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn apply(value: &Value, text: &str) -> String {
        read(value).unwrap().unwrap().apply(text.into()).unwrap().into_owned()
    }

    #[test]
    fn nothing_to_do_is_none() {
        let idle = [
            json!(null),
            json!({"type": "Sequence", "normalizers": []}),
            json!({"type": "Sequence", "normalizers": [{"type": "Sequence", "normalizers": []}]}),
            json!({"type": "Strip", "strip_left": false, "strip_right": false}),
            json!({"type": "Prepend", "prepend": ""}),
        ];
        for value in idle {
            assert!(read(&value).unwrap().is_none(), "{value}");
        }
    }

    #[test]
    fn steps_run_in_order() {
        let clip = json!({"type": "Sequence", "normalizers": [
            {"type": "NFC"},
            {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": " "},
            {"type": "Lowercase"},
        ]});
        assert_eq!(apply(&clip, "A \n\t E\u{301}\u{3000}\u{130}"), "a \u{e9} i\u{307}");
        let llama = json!({"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        ]});
        assert_eq!(apply(&llama, "a  b"), "▁a▁▁b");
        assert_eq!(apply(&llama, ""), "");
    }

    #[test]
    fn unknown_kinds_are_named_with_a_way_out() {
        for kind in ["Precompiled", "BertNormalizer", "Nmt", "ByteLevel", "Append"] {
            for value in [json!({"type": kind}), json!({"type": "Sequence", "normalizers": [{"type": kind}]})] {
                let error = read(&value).unwrap_err();
                assert!(
                    matches!(&error, Error::Unsupported(text) if text.contains(kind) && text.contains("`tokenizers`"))
                );
            }
        }
    }

    #[test]
    fn damaged_values_are_refused() {
        let damaged = [
            json!(3),
            json!([]),
            json!({}),
            json!({"type": 3}),
            json!({"type": "Strip", "strip_left": true}),
            json!({"type": "Strip", "strip_left": 1, "strip_right": true}),
            json!({"type": "Prepend"}),
            json!({"type": "Sequence"}),
            json!({"type": "Sequence", "normalizers": {"type": "NFC"}}),
            json!({"type": "Sequence", "normalizers": [null]}),
            json!({"type": "Replace", "pattern": "a", "content": "b"}),
            json!({"type": "Replace", "pattern": {"String": "a"}}),
            json!({"type": "Replace", "pattern": {"String": "a", "Regex": "a"}, "content": "b"}),
            json!({"type": "Replace", "pattern": {"Regex": 1}, "content": "b"}),
        ];
        for value in damaged {
            assert!(matches!(read(&value), Err(Error::Vocabulary { .. })), "{value}");
        }
        let regex = |regex: &str| read(&json!({"type": "Replace", "pattern": {"Regex": regex}, "content": ""}));
        assert!(matches!(regex("("), Err(Error::Pattern(_))));
        assert!(matches!(regex("(?m)."), Err(Error::Unsupported(_))));
        assert!(matches!(regex("[[:alpha:]]"), Err(Error::Unsupported(_))));
        assert!(regex("(?i)(?:ab) {2,}(?=c)").is_ok());
    }
}
