//! Every way in which this crate can say no.
//!
//! Errors depend on what the caller asked for, never on the bytes of a text: encoding a text that fits
//! in memory does not fail with a scanner pattern.

use std::fmt;

/// An error of the core. Messages are lower case and name the value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A token id outside the vocabulary.
    UnknownId {
        /// The id as the caller gave it.
        id: u32,
        /// Its index among the ids given.
        position: usize,
        /// Ids are below this.
        vocab_size: u32,
    },
    /// A rank file that cannot be what it claims.
    Vocabulary {
        /// 1-based line of the file, or 0 where no one line is at fault.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// A compiled image that is damaged or was made by another version.
    Image(String),
    /// A split pattern that does not compile or that gave up.
    Pattern(String),
    /// A file that is sound, but of a kind that this crate does not read: what was found, and what to use instead.
    Unsupported(String),
    /// The system gave no memory.
    Memory {
        /// What was asked for.
        bytes: usize,
    },
    /// A segment longer than offsets can say.
    TooLong {
        /// Index of the segment.
        segment: usize,
        /// An upper bound of its length in UTF-8 bytes.
        bytes: usize,
    },
    /// Tokens that do not spell the text they were made of, so that they have no place in it.
    NoOffsets {
        /// Index of the segment.
        segment: usize,
    },
    /// A hasher of blocks that cannot be: what is wrong.
    BlockHash(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::UnknownId { id, position, vocab_size } if id < vocab_size => {
                write!(f, "token id {id} at position {position} is in a gap of the vocabulary: no token has it")
            }
            Error::UnknownId { id, position, vocab_size } => {
                write!(f, "token id {id} at position {position} is outside the vocabulary (0 to {})", vocab_size - 1)
            }
            Error::Vocabulary { line: 0, reason } => write!(f, "{reason}"),
            Error::Vocabulary { line, reason } => write!(f, "line {line}: {reason}"),
            Error::Image(reason) => write!(f, "unusable vocabulary image: {reason}"),
            Error::Pattern(reason) => write!(f, "split pattern: {reason}"),
            Error::Unsupported(reason) | Error::BlockHash(reason) => write!(f, "{reason}"),
            Error::Memory { bytes } => write!(f, "no memory for {bytes} bytes"),
            Error::NoOffsets { segment } => write!(f, "the tokens of segment {segment} do not spell its text"),
            Error::TooLong { segment, bytes } => {
                write!(
                    f,
                    "segment {segment} may take {bytes} bytes of UTF-8; the limit is {}",
                    crate::segment::MAX_BYTES
                )
            }
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    /// The same where the segment at fault is another one to the caller.
    pub(crate) fn at_segment(self, index: impl Fn(usize) -> usize) -> Self {
        match self {
            Error::TooLong { segment, bytes } => Error::TooLong { segment: index(segment), bytes },
            other => other,
        }
    }
}

/// Makes room for `more` elements, or says that there is none; for buffers whose size a caller decides.
pub(crate) fn reserve<T>(buffer: &mut Vec<T>, more: usize) -> Result<(), Error> {
    buffer.try_reserve(more).map_err(|_| Error::Memory { bytes: more.saturating_mul(size_of::<T>()) })
}
