//! The space that some models put before a text (`add_prefix_space` of a `ByteLevel`), so that its first word is spelled
//! like all others.
//!
//! It is put before every piece that the stages before make, if that does not begin with a space. Control tokens are found
//! first: a text between two of them has its own.

use std::borrow::Cow;
use std::sync::Arc;

use super::stage::{Stage, split};
use crate::error::Error;
use crate::num::ix;

/// Where the space is put. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Prefix {
    /// They make the pieces; none leaves a text in one.
    stages: Arc<[Stage]>,
}

impl Prefix {
    /// Behind these stages.
    #[must_use]
    pub fn behind(stages: Vec<Stage>) -> Self {
        Prefix { stages: stages.into() }
    }

    /// Calls `each` for the pieces of a text in order: where it stands in the text, and what is to be split further. A
    /// piece that needed no space is borrowed.
    ///
    /// # Errors
    /// [`Error::Pattern`] if a regex gave up; what `each` says.
    pub(crate) fn pieces<'t>(
        &self,
        text: &'t str,
        mut each: impl FnMut(usize, Cow<'t, str>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for (from, to) in split(&self.stages, text.as_bytes())? {
            let piece = &text[ix(from)..ix(to)];
            let piece = if piece.starts_with(' ') { piece.into() } else { format!(" {piece}").into() };
            each(ix(from), piece)?;
        }
        Ok(())
    }
}
