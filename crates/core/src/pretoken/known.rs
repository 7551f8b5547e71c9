//! The patterns that have a scanner, by their text.
//!
//! A pattern is known by its exact spelling, never by a guess: two spellings of which one is here and one is not give the
//! same split, the second by the general engine. Spellings differ by dialect: tiktoken's engine takes `\p{N}{1,3}+` as
//! possessive and `$` as the end of the text, Oniguruma as two quantifiers and as the end of a line. What may be read by
//! both is marked.

#[cfg(feature = "general-pattern")]
use super::deepseek;
use super::{KIMI_PATTERN, Pattern, cl100k, o200k};

/// Which engine a spelling is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// tiktoken's: `fancy-regex`.
    Fancy,
    /// That of Hugging Face's tokenizers.
    #[cfg(feature = "general-pattern")]
    Oniguruma,
}

/// A spelling.
struct Known {
    regex: &'static str,
    pattern: Pattern,
    /// It means the same in both dialects.
    both: bool,
}

const fn known(regex: &'static str, pattern: Pattern) -> Known {
    Known { regex, pattern, both: true }
}

const fn only_fancy(regex: &'static str, pattern: Pattern) -> Known {
    Known { regex, pattern, both: false }
}

/// All spellings; the first of a pattern is the one that tests take for its rule.
static KNOWN: &[Known] = &[
    known(KIMI_PATTERN, Pattern::Kimi),
    known(super::GPT2_PATTERN, Pattern::Gpt2),
    only_fancy(r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s", Pattern::Gpt2),
    known(r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", Pattern::Gpt2),
    known(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        Pattern::Cl100k(cl100k::LLAMA3),
    ),
    only_fancy(
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
        Pattern::Cl100k(cl100k::LLAMA3),
    ),
    only_fancy(
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
        Pattern::Cl100k(cl100k::CL100K),
    ),
    known(
        r"'s|'t|'re|'ve|'m|'ll|'d|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        Pattern::Cl100k(cl100k::LOWER_CASE),
    ),
    known(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        Pattern::Cl100k(cl100k::QWEN2),
    ),
    known(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        Pattern::Cl100k(cl100k::QWEN3_5),
    ),
    known(
        concat!(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
            r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ),
        Pattern::O200k(o200k::O200K),
    ),
    known(
        concat!(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|",
            r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ),
        Pattern::O200k(o200k::TEKKEN),
    ),
];

/// The scanner for `regex`, whose successive matches are the pre-tokens.
pub(super) fn scanner(regex: &str, dialect: Dialect) -> Option<Pattern> {
    let fits = |known: &&Known| known.regex == regex && (known.both || dialect == Dialect::Fancy);
    KNOWN.iter().find(fits).map(|known| known.pattern.clone())
}

/// The stages that each isolate the matches of their pattern, of which `pattern` is made.
#[cfg(feature = "general-pattern")]
pub(super) fn isolating(regexes: &[&str]) -> Option<Pattern> {
    match regexes {
        [regex] => scanner(regex, Dialect::Oniguruma),
        _ if regexes == DEEPSEEK => Some(Pattern::Deepseek),
        _ => None,
    }
}

/// The three stages of [`Pattern::Deepseek`].
#[cfg(feature = "general-pattern")]
pub(super) const DEEPSEEK: &[&str] = &[deepseek::NUMBER_STAGE, deepseek::CJK_STAGE, deepseek::WORD_STAGE];

/// All spellings and what they give, in the dialect of tiktoken: for tests.
pub(super) fn spellings() -> impl Iterator<Item = (&'static str, &'static Pattern)> {
    KNOWN.iter().map(|known| (known.regex, &known.pattern))
}
