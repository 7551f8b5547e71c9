//! A whole tokenizer as one file: a description in JSON, and the image of its tables, which is mapped, not read.
//!
//! # Format (version 2, little-endian)
//! Magic `KIZAMI-T` and the version (8 bytes, then 4), length of the description in bytes (4), checksum of the
//! description (8), zeros up to 64 bytes; the description; zeros up to a multiple of 64; the image ([`crate::image`]),
//! which carries its own checksum. The description is an object: what [`Tokenizer`] needs beside the tables, and under
//! `"about"` whatever the caller wants to keep.

use std::fs::File;
use std::path::Path;

use serde_json::{Value, json};

use super::{added_tokens, normalizer, pre_tokenizer};
use crate::error::Error;
use crate::image;
use crate::num::{ix, to_u32};
use crate::pretoken::{KIMI_PATTERN, Pattern};
use crate::special::{ControlToken, Controls};
use crate::tokenizer::{Origin, Tokenizer};

const MAGIC: &[u8; 8] = b"KIZAMI-T";
const VERSION: u32 = 2;
const HEADER: usize = 64;

/// What a tokenizer is made of beside its tables, in the words of the files that it came from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Description {
    /// A split pattern, or the `pre_tokenizer` of a `tokenizer.json`.
    pub split: Value,
    /// The `normalizer` of a `tokenizer.json`.
    pub normalizer: Value,
    /// Whether the cuts of Kimi's published path are made.
    pub cuts: bool,
    /// Whether the names of control tokens count in trusted text.
    pub named: bool,
}

impl Description {
    /// For a rank file: its split pattern, and a normalizer as JSON.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the normalizer is none.
    pub fn of_ranks(pattern: &str, normalizer: &str, cuts: bool) -> Result<Self, Error> {
        let unknown = |e: serde_json::Error| Error::Unsupported(format!("normalizer: {e}"));
        let normalizer = serde_json::from_str(normalizer).map_err(unknown)?;
        Ok(Description { split: pattern.into(), normalizer, cuts, named: true })
    }

    /// The pattern.
    ///
    /// # Errors
    /// As [`Pattern::from_regex`]; [`Error::Unsupported`].
    pub fn pattern(&self) -> Result<Pattern, Error> {
        match &self.split {
            Value::String(regex) => Pattern::from_regex(regex),
            pre_tokenizer => pre_tokenizer::read(pre_tokenizer),
        }
    }

    /// A tokenizer of these tables.
    ///
    /// # Errors
    /// As [`Description::pattern`] and [`Controls::new`].
    pub fn build(self, tables: std::sync::Arc<crate::Tables>, controls: Vec<ControlToken>) -> Result<Tokenizer, Error> {
        let mut controls = Controls::from_added(controls, |id| tables.vocab.token_bytes(id))?;
        if !self.named {
            controls = controls.without_names();
        }
        let mut tokenizer = Tokenizer::new(tables, controls, self.pattern()?);
        if !self.cuts {
            tokenizer = tokenizer.without_cuts();
        }
        if !self.split.is_string() {
            tokenizer = tokenizer.with_prefix(pre_tokenizer::prefix(&self.split)?);
        }
        let Description { split, normalizer, named, .. } = self;
        let origin = Origin { split: split.to_string(), normalizer: normalizer.to_string(), named };
        // Names are normalized, too, if there are any.
        let normalizer = normalizer::read(&normalizer)?;
        if normalizer.is_some() {
            tokenizer = tokenizer.with_normalizer(normalizer)?;
        }
        Ok(tokenizer.with_origin(origin))
    }

    /// What a tokenizer is made of.
    #[must_use]
    pub fn of(tokenizer: &Tokenizer) -> Self {
        let parse = |json: &str| serde_json::from_str(json).unwrap_or_default();
        let (split, normalizer, named) = match tokenizer.origin() {
            Some(origin) => (parse(&origin.split), parse(&origin.normalizer), origin.named),
            None => (KIMI_PATTERN.into(), Value::Null, true),
        };
        Description { split, normalizer, cuts: tokenizer.makes_cuts(), named }
    }
}

/// The file of a tokenizer. `about` comes back from [`open`].
#[must_use]
pub fn write(tokenizer: &Tokenizer, about: &str) -> Vec<u8> {
    let Description { split, normalizer, cuts, named } = Description::of(tokenizer);
    let description = json!({
        "split": split, "normalizer": normalizer, "cuts": cuts, "named": named,
        "added_tokens": added_tokens::write(tokenizer.controls()),
        "about": about,
    });
    let description = description.to_string().into_bytes();
    let mut out = Vec::new();
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&to_u32(description.len()).to_le_bytes());
    out.extend_from_slice(&image::checksum(&description).to_le_bytes());
    out.resize(HEADER, 0);
    out.extend_from_slice(&description);
    out.resize(out.len().next_multiple_of(image::ALIGN), 0);
    out.extend_from_slice(&image::write(tokenizer.tables()));
    out
}

/// Whether a file that begins with `head` says that it is one of these.
#[must_use]
pub fn is_saved(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// The tokenizer in a file that [`write()`] wrote, and what was said about it. The file stays mapped as long as the process
/// lives; it must not be changed in place.
///
/// # Errors
/// [`Error::Image`] if it cannot be read, is damaged, or is of another version.
pub fn open(path: &Path) -> Result<(Tokenizer, String), Error> {
    let unreadable = |e: std::io::Error| Error::Image(format!("it cannot be read: {e}"));
    let file = File::open(path).map_err(unreadable)?;
    // SAFETY: the mapping is read-only and private; that nobody shortens or changes the file is the caller's part, as the
    // documentation says. What is read is checked by length and checksum before it is used.
    let map = unsafe { memmap2::Mmap::map(&file) }.map_err(unreadable)?;
    read(&Box::leak(Box::new(map))[..])
}

/// The same from bytes that were read, which are kept as long as the process lives.
///
/// # Errors
/// As [`open`].
pub fn from_bytes(bytes: &[u8]) -> Result<(Tokenizer, String), Error> {
    let mut aligned = Vec::new();
    crate::error::reserve(&mut aligned, bytes.len() + image::ALIGN)?;
    aligned.resize(image::ALIGN, 0);
    let skip = aligned.as_ptr().align_offset(image::ALIGN);
    aligned.truncate(skip);
    aligned.extend_from_slice(bytes);
    read(&Vec::leak(aligned)[skip..])
}

fn read(bytes: &'static [u8]) -> Result<(Tokenizer, String), Error> {
    let fault = |reason: &str| Error::Image(reason.into());
    let header = bytes.get(..HEADER).filter(|header| is_saved(header)).ok_or_else(|| fault("not a saved tokenizer"))?;
    let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    if number(8) != VERSION {
        return Err(Error::Image(format!(
            "it is of version {}, this build reads version {VERSION}: save it again from the model's own files",
            number(8)
        )));
    }
    let end = HEADER + ix(number(12));
    let description = bytes.get(HEADER..end).ok_or_else(|| fault("it ends too soon"))?;
    if header[24..].iter().any(|&byte| byte != 0) {
        return Err(fault("there is something where nothing is to be"));
    }
    if header[16..24] != image::checksum(description).to_le_bytes() {
        return Err(fault("the checksum of the description does not match"));
    }
    let parsed: Value = serde_json::from_slice(description).map_err(|e| Error::Image(e.to_string()))?;
    let flag = |name: &str| parsed[name].as_bool().ok_or_else(|| Error::Image(format!("{name} is missing")));
    let about = parsed["about"].as_str().ok_or_else(|| fault("about is missing"))?.to_owned();
    let controls = added_tokens::read(&parsed["added_tokens"])?;
    let description = Description {
        split: parsed["split"].clone(),
        normalizer: parsed["normalizer"].clone(),
        cuts: flag("cuts")?,
        named: flag("named")?,
    };
    let image = bytes.get(end.next_multiple_of(image::ALIGN)..).ok_or_else(|| fault("it ends too soon"))?;
    let tables = image::from_static(image)?;
    // Of files, many may be loaded: memory for a second thread is made when there is one.
    tables.warm(1);
    Ok((description.build(tables.into(), controls)?, about))
}
