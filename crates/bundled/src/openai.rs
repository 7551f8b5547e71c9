//! Encodings of OpenAI: ranks, split patterns and control names.
//!
//! Patterns, names and ids are facts of `tiktoken` 0.14.0. The ranks are packed; the tables are made of them when a model
//! is loaded, and kept as long as the process lives.

use std::sync::{Arc, OnceLock};

use kizami_core::load::saved::Description;
use kizami_core::special::ControlToken;
use kizami_core::{Error, Tables, Tokenizer, Vocab};

use crate::{Model, Source};

include!("openai_sha256.rs");
include!("packed.rs");

const CL100K: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s";
const O200K: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);

/// Ranks and the pattern that goes with them.
#[derive(Debug)]
pub struct Encoding {
    /// SHA-256 of the published rank file.
    pub sha256: &'static str,
    packed: &'static [u8],
    pattern: &'static str,
    tables: OnceLock<Result<Arc<Tables>, Error>>,
}

static CL100K_BASE: Encoding = Encoding {
    sha256: CL100K_SHA256,
    packed: include_bytes!(concat!(env!("OUT_DIR"), "/cl100k_base.packed")),
    pattern: CL100K,
    tables: OnceLock::new(),
};

static O200K_BASE: Encoding = Encoding {
    sha256: O200K_SHA256,
    packed: include_bytes!(concat!(env!("OUT_DIR"), "/o200k_base.packed")),
    pattern: O200K,
    tables: OnceLock::new(),
};

impl Encoding {
    fn tables(&self) -> Result<Arc<Tables>, Error> {
        let build = || {
            let tokens = unpack(self.packed).ok_or_else(|| Error::Image("the packed ranks are damaged".into()))?;
            Ok(Tables::build(Vocab::from_ranked(&tokens)?)?.into())
        };
        self.tables.get_or_init(build).clone()
    }

    pub(crate) fn load(&self, controls: Vec<ControlToken>) -> Result<Tokenizer, Error> {
        Description::of_ranks(self.pattern, "null", false)?.build(self.tables()?, controls)
    }
}

/// GPT-4, GPT-3.5.
pub const CL100K_MODEL: Model = Model {
    name: "cl100k_base",
    named: &[
        (100_257, "<|endoftext|>", true),
        (100_258, "<|fim_prefix|>", true),
        (100_259, "<|fim_middle|>", true),
        (100_260, "<|fim_suffix|>", true),
        (100_276, "<|endofprompt|>", true),
    ],
    control_ids: 0..0,
    eos_ids: &[100_257],
    source: Source::OpenAi(&CL100K_BASE),
};

/// GPT-4o and later.
pub const O200K_MODEL: Model = Model {
    name: "o200k_base",
    named: &[(199_999, "<|endoftext|>", true), (200_018, "<|endofprompt|>", true)],
    control_ids: 0..0,
    eos_ids: &[199_999],
    source: Source::OpenAi(&O200K_BASE),
};

/// gpt-oss, by the name of its encoding.
pub const O200K_HARMONY: Model = Model {
    name: "o200k_harmony",
    // The first is a second name of its id.
    named: &[
        (200_018, "<|endofprompt|>", true),
        (199_998, "<|startoftext|>", true),
        (199_999, "<|endoftext|>", true),
        (200_002, "<|return|>", true),
        (200_003, "<|constrain|>", true),
        (200_005, "<|channel|>", true),
        (200_006, "<|start|>", true),
        (200_007, "<|end|>", true),
        (200_008, "<|message|>", true),
        (200_012, "<|call|>", true),
    ],
    control_ids: 199_998..201_088,
    eos_ids: &[200_002],
    source: Source::OpenAi(&O200K_BASE),
};

/// gpt-oss.
pub const GPT_OSS: Model = Model { name: "gpt-oss", ..O200K_HARMONY };

/// All control tokens of a model: the named ones, and those that are called by their id.
pub(crate) fn control_tokens(model: &Model) -> Vec<ControlToken> {
    let named = model.named.iter().map(|&(id, name, skip)| ControlToken::new(id, name, skip));
    // 200018 has both.
    let has_own = |id: u32| id != 200_018 && model.named.iter().any(|&(named, ..)| named == id);
    let reserved = model.control_ids.clone().filter(|&id| !has_own(id));
    named.chain(reserved.map(|id| ControlToken::new(id, format!("<|reserved_{id}|>"), true))).collect()
}
