//! Readers of vocabulary files: one file a format. Each turns bytes into a checked [`crate::Vocab`] or a whole
//! [`crate::Tokenizer`], or says what is wrong and in which line.

#[cfg(feature = "formats")]
pub mod added_tokens;
#[cfg(feature = "formats")]
pub mod byte_level;
#[cfg(feature = "formats")]
pub mod merge_list;
#[cfg(feature = "formats")]
pub mod normalizer;
#[cfg(feature = "formats")]
pub mod pre_tokenizer;
#[cfg(feature = "formats")]
mod quick_json;
mod rank_file;
#[cfg(feature = "formats")]
pub mod saved;
#[cfg(feature = "formats")]
mod tekken;
#[cfg(feature = "formats")]
mod token_names;
#[cfg(feature = "formats")]
mod tokenizer_json;

pub use rank_file::{read_rank_file, read_rank_file_with_gaps, write_rank_file};
#[cfg(feature = "formats")]
pub use tekken::read_tekken;
#[cfg(feature = "formats")]
pub use tokenizer_json::{odd_entries, parts_of_tokenizer_json, read_tokenizer_json, vocab_of_tokenizer_json};
