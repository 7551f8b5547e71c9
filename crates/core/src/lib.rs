//! Exact byte-level BPE for LLM prompts: typed segments in, token ids out.
//!
//! A [`Tokenizer`] is [`Tables`] (built from ranks, or lying in an [`image`]), [`special::Controls`] and a split
//! [`pretoken::Pattern`]; some models have a normalizer besides. Reading order: [`segment`] (what a request is),
//! [`cuts`], [`pretoken`], [`lookup`], [`merge`] (the argument for exactness), then the files `request`, `encode` and
//! `piece` (the pipeline).
//!
//! This crate knows no Python, opens no file and prints nothing.

mod between;
#[cfg(feature = "block-hashes")]
mod blocks;
pub mod cuts;
mod decode;
mod encode;
mod error;
mod hash;
pub mod image;
pub mod load;
pub mod lookup;
pub mod merge;
mod names;
#[cfg(feature = "formats")]
pub mod normalize;
pub mod num;
mod offsets;
pub mod parallel;
mod piece;
mod places;
pub mod pretoken;
mod request;
#[cfg(feature = "formats")]
pub mod rows;
pub mod segment;
pub mod session;
pub mod simd;
pub mod special;
mod steps;
mod stops;
mod stream;
mod table;
mod tables;
mod text;
mod tokenizer;
pub mod turn;
pub mod unicode;
mod unknown;
mod utf8;
mod vocab;
mod worker;

#[cfg(feature = "block-hashes")]
pub use blocks::{BlockHasher, Scheme, Seed};
pub use encode::Encoded;
pub use error::Error;
pub use offsets::{OffsetUnit, Offsets};
pub use places::Places;
pub use segment::Segment;
pub use stops::Stops;
pub use stream::{DecodeStream, Step, Unfinished};
pub use tables::Tables;
pub use text::Text;
pub use tokenizer::{Options, Prepared, Tokenizer};
pub use vocab::Vocab;
pub use worker::Workers;

/// A build without the formats of other models has no normalizer.
#[cfg(not(feature = "formats"))]
mod normalize {
    use std::borrow::Cow;

    #[derive(Debug, Clone)]
    pub enum Normalizer {}

    impl Normalizer {
        pub fn apply<'t>(&self, _: Cow<'t, str>) -> Result<Cow<'t, str>, crate::Error> {
            match *self {}
        }

        pub fn leaves(&self, _: crate::Text<'_>) -> bool {
            match *self {}
        }

        pub fn origins(&self, _: &str, _: &str) -> Option<Vec<(usize, usize)>> {
            match *self {}
        }
    }
}
