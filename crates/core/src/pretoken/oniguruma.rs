//! Patterns in the syntax of Oniguruma, the engine of Hugging Face's tokenizers, for ours.
//!
//! Both engines have the classes of Unicode 16: they were compared for all code points. `fancy-regex` knows most of the syntax itself ([`fancy_regex::RegexBuilder::oniguruma_mode`]): a `+` after `{1,3}` is
//! a second quantifier there, `^` and `$` are ends of lines. Here is the rest: `\w`, which means something else, and a
//! list of what is known to mean the same. What is not on it is refused: a pattern that splits almost as it should
//! gives wrong ids and no error.

use super::general::check_length;
use crate::error::Error;

/// `\w` and `\W` in a class: without the two joiners that Unicode's own definition has.
const WORD: &str = r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]";
const NOT_WORD: &str = r"[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]";
/// On their own: there, Oniguruma asks an older table below U+0100, which has six numbers more.
const WORD_ALONE: &str = r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}²³¹¼½¾]";
const NOT_WORD_ALONE: &str = r"[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}²³¹¼½¾]";

/// Names of properties that the engines define differently, or may.
const VAGUE: [&str; 12] =
    ["alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word"];

/// Letters that, in this order and with case ignored, Oniguruma also finds in one character, such as "ß".
const LIGATURES: [&str; 5] = ["ss", "st", "ff", "fi", "fl"];

/// Compiles `regex`.
///
/// # Errors
/// [`Error::Pattern`] with the engine's reason; [`Error::Unsupported`] for what might mean something else here.
pub(super) fn compile(regex: &str) -> Result<fancy_regex::Regex, Error> {
    check_length(regex)?;
    let mut reader = Reader { regex, at: 0, depth: 0, out: String::with_capacity(regex.len()) };
    while reader.at < regex.len() {
        reader.item()?;
    }
    fancy_regex::RegexBuilder::new(&reader.out)
        .oniguruma_mode(true)
        .multi_line(true)
        .build()
        .map_err(|e| Error::Pattern(e.to_string()))
}

struct Reader<'a> {
    regex: &'a str,
    /// In bytes of `regex`.
    at: usize,
    /// Classes that are open.
    depth: usize,
    out: String,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.regex[self.at..]
    }

    /// Takes over `len` bytes as they are.
    fn copy(&mut self, len: usize) {
        self.out.push_str(&self.rest()[..len]);
        self.at += len;
    }

    fn refuse(&self, what: &str) -> Error {
        Error::Unsupported(format!(
            "split pattern with {what} at byte {} of {:?}: use the package `tokenizers` instead",
            self.at, self.regex
        ))
    }

    /// One character, or more where they belong together.
    fn item(&mut self) -> Result<(), Error> {
        let rest = self.rest();
        match rest.as_bytes()[0] {
            b'\\' => self.escape(),
            b'[' if rest.starts_with("[:") && self.depth > 0 => Err(self.refuse("a bracket class")),
            b'[' if rest.starts_with("[]") || rest.starts_with("[^]") => Err(self.refuse("an empty class")),
            b'[' => {
                self.depth += 1;
                self.copy(1);
                Ok(())
            }
            b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.copy(1);
                Ok(())
            }
            b'-' | b'~' if self.depth > 0 && (rest.starts_with("--") || rest.starts_with("~~")) => {
                Err(self.refuse("two hyphens or tildes in a class"))
            }
            b'(' if self.depth == 0 && rest.starts_with("(?") => self.group(),
            _ => {
                self.copy(rest.chars().next().map_or(1, char::len_utf8));
                Ok(())
            }
        }
    }

    fn escape(&mut self) -> Result<(), Error> {
        let rest = self.rest();
        let Some(letter) = rest[1..].chars().next() else { return Err(self.refuse("nothing after a backslash")) };
        match letter {
            'w' | 'W' => {
                self.out.push_str(match (letter, self.depth) {
                    ('w', 0) => WORD_ALONE,
                    ('w', _) => WORD,
                    (_, 0) => NOT_WORD_ALONE,
                    (_, _) => NOT_WORD,
                });
                self.at += 2;
            }
            'p' | 'P' => self.property()?,
            's' | 'S' | 'd' | 'D' | 'h' | 'H' | 'r' | 'n' | 't' | 'f' | 'v' | 'a' | 'e' | 'u' => self.copy(2),
            'A' | 'z' if self.depth == 0 => self.copy(2),
            // Two digits are a byte, not a character.
            'x' if rest.starts_with(r"\x{") || rest[2..].starts_with(|digit| matches!(digit, '0'..='7')) => {
                self.copy(2)
            }
            _ if !letter.is_alphanumeric() => self.copy(1 + letter.len_utf8()),
            _ => return Err(self.refuse(&format!("the escape \\{letter}"))),
        }
        Ok(())
    }

    fn property(&mut self) -> Result<(), Error> {
        let rest = self.rest();
        let name = rest[2..].strip_prefix('{').and_then(|rest| rest.split_once('}')).map(|(name, _)| name);
        match name {
            Some(name) if !VAGUE.contains(&name.trim_start_matches('^').to_ascii_lowercase().as_str()) => {
                self.copy(r"\p{}".len() + name.len());
                Ok(())
            }
            Some(name) => Err(self.refuse(&format!("the property {name}"))),
            None => Err(self.refuse("a property without a name")),
        }
    }

    /// At `(?`.
    fn group(&mut self) -> Result<(), Error> {
        let rest = self.rest();
        if let Some(body) = rest.strip_prefix("(?i:") {
            let body = body.split_once(')').map_or(body, |(body, _)| body);
            let plain = |c: char| c.is_ascii_alphabetic() || matches!(c, '\'' | '|' | '[' | ']');
            let letters = body.replace(['[', ']'], "").to_ascii_lowercase();
            if !body.chars().all(plain) || LIGATURES.iter().any(|pair| letters.contains(pair)) {
                return Err(self.refuse("case ignored in more than plain words"));
            }
            self.copy("(?i:)".len() + body.len());
            return Ok(());
        }
        match ["(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"].into_iter().find(|&start| rest.starts_with(start)) {
            Some(start) => {
                self.copy(start.len());
                Ok(())
            }
            None => Err(self.refuse("a group of an unknown kind")),
        }
    }
}
