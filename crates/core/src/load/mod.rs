//! Readers of vocabulary files: one file a format. Each turns bytes into a checked [`crate::Vocab`] or says
//! what is wrong and in which line.

#[cfg(feature = "formats")]
pub mod pre_tokenizer;
mod rank_file;

pub use rank_file::{read_rank_file, write_rank_file};
