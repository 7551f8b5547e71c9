//! Typed segments: text with a statement of trust, and the pieces that a request is made of.
//!
//! Rule: segments never merge with each other. A segment is first cut ([`crate::cuts`]); in trusted text, control
//! tokens are then found inside each piece, so a name that a cut runs through stays text; what is left between
//! them is split and merged, each stretch on its own.

use crate::text::Text;

/// Longest segment in UTF-8 bytes: offsets inside one are 31 bits.
pub const MAX_BYTES: usize = (1 << 31) - 1;

/// A segment as the caller gives it.
#[derive(Debug, Clone, Copy)]
pub struct Segment<'a> {
    /// The characters.
    pub text: Text<'a>,
    /// Whether names of control tokens in it become their ids.
    pub allow_special: bool,
}
