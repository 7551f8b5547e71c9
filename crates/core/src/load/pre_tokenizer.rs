//! The `pre_tokenizer` of a Hugging Face `tokenizer.json`, for a byte-level vocabulary.
//!
//! It is one object, or a `Sequence` of them, each with a `type`; defaults are those of `tokenizers` 0.23. All that splits
//! text is a `Split` in the end: `Digits`, `Punctuation`, `Whitespace` and `WhitespaceSplit` have fixed patterns, and so has
//! `ByteLevel` with `use_regex`. What `ByteLevel` is named for, the spelling of bytes, needs no work here, for the engine
//! takes bytes as they are; but there must be one, and where others stand behind it, they see that spelling
//! ([`Stage::behind_byte_level`]).
//!
//! `trim_offsets` changes offsets only. `add_prefix_space` adds text, while pre-tokens are ranges of the text: it is a step
//! of its own ([`prefix`]), with all stages before it; the pattern is what stands behind.

use serde_json::Value;

use crate::error::Error;
use crate::pretoken::{Behavior, GPT2_PATTERN, GeneralPattern, Pattern, Prefix, Stage};

/// What `Punctuation` takes for it: ASCII, and what was punctuation in Unicode 8 (two characters are none any more).
const PUNCTUATION: &str = r"[[\p{P}&&\p{Age=8.0}]\x{166D}\x{111C9}!-/:-@\[-`{-~]";

/// What `Digits` takes for one: `\p{N}` as of Unicode 17.
const DIGIT: &str = r"[\p{N}\x{11DE0}-\x{11DE9}\x{16FF4}-\x{16FF6}]";

/// The pattern of `Whitespace`, which is meant for another engine: `\w` has the joiners there.
const WORDS: &str = r"[\w\x{200C}\x{200D}]+|[^\w\x{200C}\x{200D}\s]+";

/// What one object of the file does.
enum Step {
    Split {
        regex: String,
        behavior: Behavior,
        invert: bool,
    },
    /// A space before each piece that begins with none.
    Prefix,
    /// From here on, bytes are spelled as characters.
    ByteLevel,
}

/// Reads the value of the key `pre_tokenizer`: the pattern, behind the [`prefix`] if there is one.
///
/// # Errors
/// [`Error::Unsupported`] for what does not belong to a byte-level vocabulary or has no exact twin here,
/// [`Error::Vocabulary`] for an object that is not what its type says, [`Error::Pattern`] for a regex that does not compile.
pub fn read(value: &Value) -> Result<Pattern, Error> {
    let steps = steps(value)?;
    let behind = steps.iter().position(|step| matches!(step, Step::Prefix)).map_or(0, |at| at + 1);
    match scanner(&steps[behind..]) {
        Some(scanner) => Ok(scanner),
        None => Ok(Pattern::General(GeneralPattern::of_stages(stages(&steps[behind..])?))),
    }
}

/// The space that is put before pieces of text, if the value says so.
///
/// # Errors
/// As [`read`].
pub fn prefix(value: &Value) -> Result<Option<Prefix>, Error> {
    let steps = steps(value)?;
    let at = steps.iter().position(|step| matches!(step, Step::Prefix));
    at.map(|at| Ok(Prefix::behind(stages(&steps[..at])?))).transpose()
}

/// All steps, one `ByteLevel` among them.
fn steps(value: &Value) -> Result<Vec<Step>, Error> {
    let mut steps = Vec::new();
    add(value, &mut steps)?;
    match steps.iter().filter(|step| matches!(step, Step::ByteLevel)).count() {
        1 => Ok(steps),
        0 => Err(unsupported(&format!("{} without ByteLevel", describe(value)))),
        _ => Err(unsupported("more than one ByteLevel")),
    }
}

/// The stages of steps without a prefix.
fn stages(steps: &[Step]) -> Result<Vec<Stage>, Error> {
    let mut stages = Vec::new();
    let mut spelled = false;
    for step in steps {
        match step {
            Step::Prefix => {}
            Step::ByteLevel => spelled = true,
            Step::Split { regex, behavior, invert } => {
                let stage = Stage::new(regex, *behavior, *invert)?;
                stages.push(if spelled { stage.behind_byte_level() } else { stage });
            }
        }
    }
    Ok(stages)
}

/// The scanner that does the same as `steps`, if there is one.
fn scanner(steps: &[Step]) -> Option<Pattern> {
    let [splits @ .., Step::ByteLevel] = steps else { return None };
    let regexes: Vec<&str> = splits
        .iter()
        .map(|step| match step {
            Step::Split { regex, behavior: Behavior::Isolated, .. } => Some(regex.as_str()),
            // All but the matches vanishes, and a scanner's matches leave nothing out.
            Step::Split { regex, behavior: Behavior::Removed, invert: true } if splits.len() == 1 => {
                Some(regex.as_str())
            }
            _ => None,
        })
        .collect::<Option<_>>()?;
    Pattern::scanner_for_stages(&regexes)
}

/// Adds what `value` and those in it do.
fn add(value: &Value, steps: &mut Vec<Step>) -> Result<(), Error> {
    let mut split = |regex: &str, behavior, invert| {
        steps.push(Step::Split { regex: regex.to_owned(), behavior, invert });
        Ok(())
    };
    match kind(value)? {
        "Sequence" => array(value, "pretokenizers")?.iter().try_for_each(|value| add(value, steps)),
        "Split" => split(&split_regex(value)?, behavior(value, None)?, flag(value, "invert", None)?),
        "ByteLevel" => {
            flag(value, "trim_offsets", None)?;
            if flag(value, "add_prefix_space", None)? {
                steps.push(Step::Prefix);
            }
            if flag(value, "use_regex", Some(true))? {
                let regex = GPT2_PATTERN.to_owned();
                steps.push(Step::Split { regex, behavior: Behavior::Isolated, invert: false });
            }
            steps.push(Step::ByteLevel);
            Ok(())
        }
        "Digits" => {
            let single = flag(value, "individual_digits", None)?;
            split(DIGIT, if single { Behavior::Isolated } else { Behavior::Contiguous }, false)
        }
        "Punctuation" => split(PUNCTUATION, behavior(value, Some(Behavior::Isolated))?, false),
        "Whitespace" => split(WORDS, Behavior::Removed, true),
        "WhitespaceSplit" => split(r"\s", Behavior::Removed, false),
        other => Err(unsupported(other)),
    }
}

/// The pattern of a `Split`, as a regex.
fn split_regex(value: &Value) -> Result<String, Error> {
    let pattern = value.get("pattern").and_then(Value::as_object).filter(|pattern| pattern.len() == 1);
    match pattern.and_then(|pattern| pattern.iter().next()) {
        Some((kind, Value::String(regex))) if kind == "Regex" => Ok(regex.clone()),
        Some((kind, Value::String(text))) if kind == "String" => Ok(fancy_regex::escape(text).into_owned()),
        _ => Err(malformed(value, "pattern")),
    }
}

fn behavior(value: &Value, default: Option<Behavior>) -> Result<Behavior, Error> {
    match (value.get("behavior"), default) {
        (None, Some(default)) => Ok(default),
        (name, _) => match name.and_then(Value::as_str) {
            Some("Removed") => Ok(Behavior::Removed),
            Some("Isolated") => Ok(Behavior::Isolated),
            Some("MergedWithPrevious") => Ok(Behavior::MergedWithPrevious),
            Some("MergedWithNext") => Ok(Behavior::MergedWithNext),
            Some("Contiguous") => Ok(Behavior::Contiguous),
            _ => Err(malformed(value, "behavior")),
        },
    }
}

fn flag(value: &Value, name: &str, default: Option<bool>) -> Result<bool, Error> {
    match (value.get(name), default) {
        (Some(Value::Bool(flag)), _) => Ok(*flag),
        (None, Some(default)) => Ok(default),
        _ => Err(malformed(value, name)),
    }
}

fn array<'a>(value: &'a Value, name: &str) -> Result<&'a [Value], Error> {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).ok_or_else(|| malformed(value, name))
}

fn kind(value: &Value) -> Result<&str, Error> {
    if value.is_null() {
        return Err(unsupported("none"));
    }
    value.get("type").and_then(Value::as_str).ok_or_else(|| malformed(value, "type"))
}

/// The types in `value`, as in `Sequence(Split, Digits)`.
fn describe(value: &Value) -> String {
    let name = kind(value).unwrap_or("an object without type");
    match array(value, "pretokenizers") {
        Ok(parts) => format!("{name}({})", parts.iter().map(describe).collect::<Vec<_>>().join(", ")),
        Err(_) => name.to_owned(),
    }
}

fn unsupported(what: &str) -> Error {
    Error::Unsupported(format!(
        "pre_tokenizer: {what}; only byte-level ones are read, for others use the package `tokenizers` instead"
    ))
}

fn malformed(value: &Value, field: &str) -> Error {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or("object");
    Error::Vocabulary { line: 0, reason: format!("pre_tokenizer: {kind} with a missing or wrong {field:?}") }
}
