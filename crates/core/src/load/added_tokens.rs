//! The added tokens of a `tokenizer.json`.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::error::Error;
use crate::num::{ix, to_u32};
use crate::special::{ControlToken, Controls, Flags};
use crate::vocab::MAX_TOKENS;

/// Reads the value of `added_tokens`. Of entries with one content the last counts. An id may have several.
///
/// # Errors
/// [`Error::Vocabulary`] with the index of the entry and what is wrong: a field that is missing or of a wrong type, an
/// empty `content`, an `id` that is too large, a content with two ids.
pub fn read(value: &Value) -> Result<Vec<ControlToken>, Error> {
    let list = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(list) => list,
        _ => return Err(Error::Vocabulary { line: 0, reason: "`added_tokens` is no list".into() }),
    };
    let mut tokens: Vec<ControlToken> = Vec::with_capacity(list.len());
    let mut by_name: HashMap<String, usize> = HashMap::new();
    for (index, value) in list.iter().enumerate() {
        let token = read_token(index, value)?;
        match by_name.get(&token.name).copied() {
            None => {
                by_name.insert(token.name.clone(), tokens.len());
                tokens.push(token);
            }
            Some(before) if tokens[before].id == token.id => tokens[before] = token,
            Some(before) => {
                let (name, id, other) = (&token.name, token.id, tokens[before].id);
                return fault(index, &format!("{name:?} has id {id}, but {other} in an earlier entry"));
            }
        }
    }
    Ok(tokens)
}

/// [`read`] of JSON that is not parsed yet.
///
/// # Errors
/// As [`read`], and for what is no JSON.
pub fn read_json(text: &str) -> Result<Vec<ControlToken>, Error> {
    let value = serde_json::from_str(text);
    read(&value.map_err(|e| Error::Vocabulary { line: 0, reason: format!("`added_tokens`: {e}") })?)
}

/// The inverse of [`read`].
#[must_use]
pub fn write(controls: &Controls) -> Value {
    let tokens = controls.tokens().iter().chain(controls.spaces());
    let entries = tokens.map(|token| {
        let Flags { lstrip, rstrip, single_word, normalized } = token.flags;
        json!({
            "id": token.id, "content": token.name, "single_word": single_word, "lstrip": lstrip, "rstrip": rstrip,
            "normalized": normalized, "special": token.skip,
        })
    });
    entries.collect::<Vec<_>>().into()
}

fn read_token(index: usize, value: &Value) -> Result<ControlToken, Error> {
    let flag = |field: &str| match value.get(field) {
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => fault(index, &format!("`{field}` is neither true nor false")),
        None => fault(index, &format!("there is no `{field}`")),
    };
    let Some(id) = value.get("id").and_then(Value::as_u64) else {
        return fault(index, "`id` is no number from 0 on");
    };
    let Some(id) = u32::try_from(id).ok().filter(|&id| ix(id) < MAX_TOKENS) else {
        return fault(index, &format!("id {id} is not below {MAX_TOKENS}"));
    };
    let Some(name) = value.get("content").and_then(Value::as_str) else {
        return fault(index, "`content` is no string");
    };
    if name.is_empty() {
        return fault(index, "`content` is empty");
    }
    let flags = Flags {
        lstrip: flag("lstrip")?,
        rstrip: flag("rstrip")?,
        single_word: flag("single_word")?,
        normalized: flag("normalized")?,
    };
    Ok(ControlToken { id, name: name.into(), skip: flag("special")?, flags })
}

/// Checks that the `tokenizers` package gives the tokens of a file the ids that the file says.
///
/// It does not read them: a token that the vocabulary of the model has, by its text in the file, gets the id that it has
/// there (`id_of`); the others get the ids from `vocab_len`, the number of entries of that vocabulary, on. A file in which
/// they differ was made by hand, and whoever uses it with that package gets other ids than it says.
///
/// # Errors
/// [`Error::Vocabulary`] with the first token of which that is not true.
pub fn check_ids(tokens: &[ControlToken], vocab_len: usize, id_of: impl Fn(&str) -> Option<u32>) -> Result<(), Error> {
    let vocab_len = to_u32(vocab_len);
    // One past the highest id so far.
    let mut end = 0;
    for ControlToken { id, name, .. } in tokens {
        let given = id_of(name).unwrap_or(end.max(vocab_len));
        if given != *id {
            let reason =
                format!("added token {name:?} has id {id}, but the `tokenizers` package would give it {given}");
            return Err(Error::Vocabulary { line: 0, reason });
        }
        end = end.max(given + 1);
    }
    Ok(())
}

fn fault<T>(index: usize, reason: &str) -> Result<T, Error> {
    Err(Error::Vocabulary { line: 0, reason: format!("`added_tokens` entry {index}: {reason}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: u32, content: &str) -> Value {
        json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
               "normalized": false, "special": true})
    }

    fn with(field: &str, value: Value) -> Value {
        let mut entry = entry(7, "<a>");
        entry[field] = value;
        entry
    }

    #[test]
    fn all_fields_are_read() {
        assert_eq!(read(&json!(null)).unwrap(), []);
        assert_eq!(read(&json!([])).unwrap(), []);
        assert_eq!(read(&json!([entry(7, "<a>")])).unwrap(), [ControlToken::new(7, "<a>", true)]);
        let flags = [
            ("lstrip", Flags { lstrip: true, ..Flags::default() }),
            ("rstrip", Flags { rstrip: true, ..Flags::default() }),
            ("single_word", Flags { single_word: true, ..Flags::default() }),
            ("normalized", Flags { normalized: true, ..Flags::default() }),
        ];
        for (field, flags) in flags {
            assert_eq!(read(&json!([with(field, true.into())])).unwrap()[0].flags, flags);
        }
        assert!(!read(&json!([with("special", false.into())])).unwrap()[0].skip);
    }

    #[test]
    fn the_last_of_equal_entries_counts() {
        let tokens =
            read(&json!([entry(7, "<a>"), entry(8, "<b>"), with("lstrip", true.into()), entry(9, "<c>")])).unwrap();
        assert_eq!(
            tokens.iter().map(|t| (t.id, t.flags.lstrip)).collect::<Vec<_>>(),
            [(7, true), (8, false), (9, false)]
        );
    }

    #[test]
    fn an_id_may_have_two_contents() {
        let tokens = read(&json!([entry(7, "<a>"), entry(7, "<b>")])).unwrap();
        assert_eq!(tokens.iter().map(|t| (t.id, &*t.name)).collect::<Vec<_>>(), [(7, "<a>"), (7, "<b>")]);
    }

    #[test]
    fn damaged_entries_are_refused_by_index() {
        let damaged = [
            (json!(3), "`id` is no number from 0 on"),
            (with("id", json!(-1)), "`id` is no number from 0 on"),
            (with("id", json!(1.5)), "`id` is no number from 0 on"),
            (with("id", json!("7")), "`id` is no number from 0 on"),
            (with("id", json!(1 << 20)), "id 1048576 is not below 1048576"),
            (with("id", json!(u64::MAX)), "id 18446744073709551615 is not below 1048576"),
            (with("content", json!("")), "`content` is empty"),
            (with("content", json!(null)), "`content` is no string"),
            (with("lstrip", json!(1)), "`lstrip` is neither true nor false"),
            (json!({"id": 7, "content": "a"}), "there is no `lstrip`"),
            (entry(9, "<0>"), "\"<0>\" has id 9, but 6 in an earlier entry"),
        ];
        for (damage, reason) in damaged {
            let error = read(&json!([entry(6, "<0>"), damage])).unwrap_err().to_string();
            assert_eq!(error, format!("`added_tokens` entry 1: {reason}"));
        }
        assert_eq!(read(&json!({})).unwrap_err().to_string(), "`added_tokens` is no list");
    }

    #[test]
    fn ids_are_those_that_the_package_would_give() {
        let id_of = |name: &str| (name == "<v>").then_some(3);
        let check = |entries: &[(u32, &str)]| {
            let tokens: Vec<_> = entries.iter().map(|&(id, name)| ControlToken::new(id, name, true)).collect();
            check_ids(&tokens, 10, id_of)
        };
        assert!(check(&[(3, "<v>"), (10, "<a>"), (11, "<b>")]).is_ok());
        let error = check(&[(10, "<a>"), (12, "<b>")]).unwrap_err().to_string();
        assert_eq!(error, "added token \"<b>\" has id 12, but the `tokenizers` package would give it 11");
        assert!(check(&[(10, "<v>")]).is_err());
        // It gives no id to two of them.
        assert!(check(&[(10, "<a>"), (10, "<b>")]).is_err());
    }
}
