//! Mistral `tekken.json`: ranks with a pattern of their own. Ids of ordinary tokens follow those of the special ones.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::saved::Description;
use crate::error::Error;
use crate::num::{ix, to_u32};
use crate::special::ControlToken;
use crate::tables::Tables;
use crate::tokenizer::Tokenizer;
use crate::vocab::{MAX_TOKENS, Vocab};

/// Names of the special tokens of files that do not list them, by id; the others are called `<SPECIAL_n>`.
const NAMES: [&str; 20] = [
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
];

/// Reads a `tekken.json`.
///
/// # Errors
/// [`Error::Vocabulary`] if it is not JSON (with the line) or cannot be what it claims; [`Error::Pattern`].
pub fn read_tekken(text: &[u8]) -> Result<Tokenizer, Error> {
    let file: Value =
        serde_json::from_slice(text).map_err(|e| Error::Vocabulary { line: e.line(), reason: e.to_string() })?;
    let fault = |reason: String| Error::Vocabulary { line: 0, reason };
    let number = |name: &str| {
        let value = &file["config"][name];
        let number = value.as_u64().and_then(|n| usize::try_from(n).ok()).filter(|&n| n <= MAX_TOKENS);
        number.ok_or_else(|| fault(format!("config.{name}: {value} is no number of tokens")))
    };
    let (size, specials) = (number("default_vocab_size")?, number("default_num_special_tokens")?);
    let pattern = file["config"]["pattern"].as_str().ok_or_else(|| fault("config.pattern is no string".into()))?;
    let ordinary = size.checked_sub(specials).ok_or_else(|| fault(format!("{specials} special tokens of {size}")))?;
    let entries = file["vocab"].as_array().ok_or_else(|| fault("vocab is no list".into()))?;
    // A file may hold more tokens than the model uses.
    if entries.len() < ordinary {
        return Err(fault(format!("vocab has {} tokens; config asks for {ordinary}", entries.len())));
    }
    let mut tokens = vec![Vec::new(); ordinary];
    for (at, entry) in entries[..ordinary].iter().enumerate() {
        let rank = entry["rank"].as_u64().and_then(|n| usize::try_from(n).ok());
        let slot = rank.and_then(|rank| tokens.get_mut(rank));
        let slot = slot.ok_or_else(|| fault(format!("vocab[{at}]: {} is no rank below {ordinary}", entry["rank"])))?;
        if !slot.is_empty() {
            return Err(fault(format!("vocab[{at}]: rank {} is there twice", entry["rank"])));
        }
        let bytes = entry["token_bytes"].as_str().ok_or_else(|| fault(format!("vocab[{at}] has no token_bytes")))?;
        *slot = STANDARD.decode(bytes).map_err(|e| fault(format!("vocab[{at}]: token_bytes: {e}")))?;
    }
    let first = to_u32(specials);
    let vocab = Vocab::from_ranked(&tokens)?.with_ids((0..to_u32(ordinary)).map(|rank| rank + first).collect())?;
    let tables = Tables::build(vocab)?;
    let controls = special_tokens(&file["special_tokens"], first)?;
    // Mistral's own tokenizer never reads names in text: what is between control tokens is put together by id.
    let description = Description { split: pattern.into(), normalizer: Value::Null, cuts: false, named: false };
    description.build(tables.into(), controls)
}

fn special_tokens(listed: &Value, count: u32) -> Result<Vec<ControlToken>, Error> {
    let mut tokens: Vec<ControlToken> = (0..count)
        .map(|id| {
            let name = NAMES.get(ix(id)).filter(|_| listed.is_null());
            ControlToken::new(id, name.map_or_else(|| format!("<SPECIAL_{id}>"), |name| (*name).to_owned()), true)
        })
        .collect();
    if !listed.is_null() && !listed.is_array() {
        return Err(Error::Vocabulary { line: 0, reason: "special_tokens is no list".into() });
    }
    for (at, entry) in listed.as_array().into_iter().flatten().enumerate() {
        let fault = || Error::Vocabulary { line: 0, reason: format!("special_tokens[{at}] is no rank and token_str") };
        let rank = entry["rank"].as_u64().and_then(|n| usize::try_from(n).ok()).ok_or_else(fault)?;
        let name = entry["token_str"].as_str().ok_or_else(fault)?;
        tokens.get_mut(rank).ok_or_else(fault)?.name = name.to_owned();
    }
    Ok(tokens)
}
