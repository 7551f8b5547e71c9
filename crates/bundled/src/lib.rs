//! Vocabularies that come with Kizami, and the control names of each model.
//!
//! For the Kimi line, [`Model::load`] maps, it does not build: a table image lies in the program itself. Others are packed
//! ranks, of which tables are made.

#[cfg(feature = "kimi")]
use std::sync::{Arc, OnceLock};

use kizami_core::special::ControlToken;
#[cfg(feature = "kimi")]
use kizami_core::special::Controls;
use kizami_core::{Error, Tokenizer};

#[cfg(feature = "kimi")]
pub mod kimi;
#[cfg(feature = "openai")]
pub mod openai;

/// A bundled model.
#[derive(Debug, Clone)]
pub struct Model {
    /// The name that `kizami.load` takes.
    pub name: &'static str,
    /// Control tokens that have a name of their own: id, name, left out by a decode that skips special tokens.
    pub named: &'static [(u32, &'static str, bool)],
    /// All control ids, or none if all are in `named`; those not in `named` are called `<|reserved_token_{id}|>`, by OpenAI
    /// `<|reserved_{id}|>`.
    pub control_ids: std::ops::Range<u32>,
    /// Ids that end a reply.
    pub eos_ids: &'static [u32],
    /// Where the ranks come from.
    pub source: Source,
}

/// Where the ranks of a model come from.
#[derive(Debug, Clone, Copy)]
pub enum Source {
    /// The table image of the Kimi line.
    #[cfg(feature = "kimi")]
    Kimi,
    /// Packed ranks.
    #[cfg(feature = "openai")]
    OpenAi(&'static openai::Encoding),
}

/// The models in this build.
pub const MODELS: &[Model] = &[
    #[cfg(feature = "kimi")]
    kimi::K3,
    #[cfg(feature = "kimi")]
    kimi::K2,
    #[cfg(feature = "kimi")]
    kimi::K2_5,
    #[cfg(feature = "openai")]
    openai::O200K_MODEL,
    #[cfg(feature = "openai")]
    openai::O200K_HARMONY,
    #[cfg(feature = "openai")]
    openai::GPT_OSS,
    #[cfg(feature = "openai")]
    openai::CL100K_MODEL,
];

/// The control tokens of a model in the style of Moonshot's files: `ids`, of which some are named.
#[must_use]
pub fn control_tokens<'a>(
    ids: std::ops::Range<u32>,
    named: impl Iterator<Item = (u32, &'a str, bool)>,
) -> Vec<ControlToken> {
    let mut tokens: Vec<ControlToken> =
        ids.clone().map(|id| ControlToken::new(id, format!("<|reserved_token_{id}|>"), false)).collect();
    for (id, name, skip) in named {
        if let Some(token) = id.checked_sub(ids.start).and_then(|i| tokens.get_mut(kizami_core::num::ix(i))) {
            *token = ControlToken::new(id, name, skip);
        }
    }
    tokens
}

impl Model {
    /// The tokenizer of this model. All models of one rank file share their tables.
    ///
    /// # Errors
    /// [`Error::Image`] on a machine that the image was not made for (big-endian).
    pub fn load(&self) -> Result<Tokenizer, Error> {
        match self.source {
            #[cfg(feature = "kimi")]
            Source::Kimi => {
                let tables = kimi_tables()?;
                let tokens = control_tokens(self.control_ids.clone(), self.named.iter().copied());
                let controls = Controls::new(tokens, tables.vocab.len())?;
                Ok(Tokenizer::new(tables, controls, kizami_core::pretoken::Pattern::Kimi))
            }
            #[cfg(feature = "openai")]
            Source::OpenAi(encoding) => encoding.load(openai::control_tokens(self)),
        }
    }

    /// SHA-256 of the published rank file.
    #[must_use]
    pub fn sha256(&self) -> &'static str {
        match self.source {
            #[cfg(feature = "kimi")]
            Source::Kimi => kimi::RANK_FILE_SHA256,
            #[cfg(feature = "openai")]
            Source::OpenAi(encoding) => encoding.sha256,
        }
    }
}

#[cfg(feature = "kimi")]
fn kimi_tables() -> Result<Arc<kizami_core::Tables>, Error> {
    static TABLES: OnceLock<Result<Arc<kizami_core::Tables>, Error>> = OnceLock::new();
    let load = || {
        let tables = kizami_core::image::from_trusted_static(kimi::IMAGE)?;
        tables.warm(2);
        Ok(Arc::new(tables))
    };
    TABLES.get_or_init(load).clone()
}

/// The model of that name, if it is in this build.
#[must_use]
pub fn find(name: &str) -> Option<&'static Model> {
    MODELS.iter().find(|m| m.name == name)
}
