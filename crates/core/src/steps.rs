//! The two steps of encoding, one at a time: for who asks where a text is split, or merges bytes that are no text.
//!
//! Nothing here is fast: encoding does not come this way.

use std::ops::Range;

use crate::error::{Error, reserve};
use crate::merge::Scratch;
use crate::num::ix;
use crate::pretoken::Batch;
use crate::segment::MAX_BYTES;
use crate::tokenizer::Tokenizer;

impl Tokenizer {
    /// The pre-tokens of a text, as ranges of bytes. The text is taken as one stretch: no names are looked for in it, it is
    /// neither cut nor normalized.
    ///
    /// # Errors
    /// [`Error::TooLong`]; [`Error::Pattern`] if a general pattern gave up; [`Error::Memory`].
    ///
    /// # Examples
    /// ```
    /// # use kizami_core::{*, special::Controls, pretoken::Pattern};
    /// # let tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).chain([b"ab".to_vec()]).collect();
    /// # let tables = Tables::build(Vocab::from_ranked(&tokens)?)?;
    /// # let tokenizer = Tokenizer::new(tables.into(), Controls::new(vec![], 257)?, Pattern::Kimi);
    /// assert_eq!(tokenizer.split("two words")?, [0..3, 3..9]);
    /// # Ok::<(), kizami_core::Error>(())
    /// ```
    pub fn split(&self, text: &str) -> Result<Vec<Range<usize>>, Error> {
        if text.len() > MAX_BYTES {
            return Err(Error::TooLong { segment: 0, bytes: text.len() });
        }
        let (mut batch, mut found, mut at) = (Batch::default(), Vec::new(), 0);
        while at < text.len() {
            at = self.pattern.fill(text.as_bytes(), at, &mut batch)?;
            reserve(&mut found, batch.ranges().len())?;
            found.extend(batch.ranges().iter().map(|&(from, to)| ix(from)..ix(to)));
        }
        Ok(found)
    }

    /// The ids of bytes that are merged as one pre-token, whatever they hold; they need not be UTF-8.
    ///
    /// `whole`: if the bytes are a token, that token is the answer even where no merge makes it, as for a pre-token.
    ///
    /// # Errors
    /// [`Error::TooLong`]; [`Error::Unsupported`] for a byte that the vocabulary lacks.
    ///
    /// # Examples
    /// ```
    /// # use kizami_core::{*, special::Controls, pretoken::Pattern};
    /// # let tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).chain([b"o w".to_vec(), b" w".to_vec()]).collect();
    /// # let tables = Tables::build(Vocab::from_ranked(&tokens)?)?;
    /// # let tokenizer = Tokenizer::new(tables.into(), Controls::new(vec![], 258)?, Pattern::Kimi);
    /// assert_eq!(tokenizer.merge(b"two w\xff", true)?, [116, 119, 256, 255]);
    /// # Ok::<(), kizami_core::Error>(())
    /// ```
    pub fn merge(&self, piece: &[u8], whole: bool) -> Result<Vec<u32>, Error> {
        if piece.len() > MAX_BYTES {
            return Err(Error::TooLong { segment: 0, bytes: piece.len() });
        }
        if piece.is_empty() {
            return Ok(Vec::new());
        }
        let tables = &self.tables;
        if whole && let Some(id) = tables.words.find(&tables.vocab, piece, 0, piece.len()) {
            return Ok(vec![id]);
        }
        let singles = tables.merges.single_bytes();
        if let Some(&byte) = piece.iter().find(|&&byte| tables.vocab.bytes_of(singles[usize::from(byte)]).is_none()) {
            return Err(Error::Unsupported(format!(
                "the byte 0x{byte:02x} is no token of this vocabulary, so these bytes cannot be encoded"
            )));
        }
        let mut scratch = Scratch::default();
        tables.merges.merge(piece, &mut scratch);
        let mut ids = scratch.tokens().to_vec();
        tables.vocab.to_ids(&mut ids);
        Ok(ids)
    }
}

#[cfg(test)]
mod tests {
    use crate::merge::scan;
    use crate::pretoken::Pattern;
    use crate::special::Controls;
    use crate::{Options, Segment, Tables, Text, Tokenizer, Vocab};

    fn tokenizer(more: &[&str], ids: Option<Vec<u32>>) -> Tokenizer {
        let tokens: Vec<Vec<u8>> =
            (0..=255).map(|byte| vec![byte]).chain(more.iter().map(|t| t.as_bytes().to_vec())).collect();
        let vocab = Vocab::from_ranked(&tokens).unwrap();
        let vocab = ids.map_or(vocab.clone(), |ids| vocab.with_ids(ids).unwrap());
        let end = vocab.end();
        Tokenizer::new(Tables::build(vocab).unwrap().into(), Controls::new(vec![], end).unwrap(), Pattern::Kimi)
    }

    #[test]
    fn pre_tokens_tile_the_text_and_give_its_ids() {
        let tokenizer = tokenizer(&["th", "the", " t", " the", "  ", "\n\n", "é", "12"], None);
        for text in ["", "the the  the", "été 1234\n\n the", &"the 12 été\n\n  ".repeat(500)] {
            let ranges = tokenizer.split(text).unwrap();
            let mut at = 0;
            let mut ids = Vec::new();
            for range in ranges {
                assert!(range.start == at && range.end > at);
                ids.extend(tokenizer.merge(&text.as_bytes()[range.clone()], true).unwrap());
                at = range.end;
            }
            assert_eq!(at, text.len());
            let segment = Segment { text: Text::Utf8(text), allow_special: false };
            assert_eq!(tokenizer.encode(&[segment], Options::default()).unwrap(), ids);
        }
    }

    #[test]
    fn any_bytes_merge_as_the_slow_rule_says() {
        let tokenizer = tokenizer(&["th", "the", " t", " the", "ab", "abc", "bc", "é"], None);
        let oracle = scan::oracle(&tokenizer.tables.vocab);
        let (mut state, alphabet) = (1u32, b"the abc\xc3\xa9\xff\x80");
        for len in 1..300 {
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                alphabet[usize::try_from(state >> 16).unwrap() % alphabet.len()]
            };
            let piece: Vec<u8> = (0..len).map(|_| next()).collect();
            assert_eq!(tokenizer.merge(&piece, false).unwrap(), oracle(&piece), "{piece:?}");
        }
    }

    #[test]
    fn ids_are_those_of_the_vocabulary() {
        let ids = (0..258).map(|rank| rank + 10 * u32::from(rank > 100)).collect();
        let tokenizer = tokenizer(&["zz", "yz"], Some(ids));

        assert_eq!(tokenizer.merge(b"ayzz", false).unwrap(), [97, 121 + 10, 256 + 10]);
        assert_eq!(tokenizer.merge(b"yz", true).unwrap(), [257 + 10]);
    }

    #[test]
    fn a_token_that_no_merge_makes_is_whole_only_on_request() {
        let tokenizer = tokenizer(&["abc"], None);

        assert_eq!(tokenizer.merge(b"abc", true).unwrap(), [256]);
        assert_eq!(tokenizer.merge(b"abc", false).unwrap(), [97, 98, 99]);
        assert!(tokenizer.merge(b"", true).unwrap().is_empty());
    }

    #[test]
    fn a_byte_without_a_token_is_an_error() {
        let tokens: Vec<Vec<u8>> = (0..=0xf4).map(|byte| vec![byte]).collect();
        let tables = Tables::build(Vocab::from_ranked(&tokens).unwrap()).unwrap();
        let tokenizer = Tokenizer::new(tables.into(), Controls::new(vec![], 245).unwrap(), Pattern::Kimi);

        assert!(tokenizer.merge(b"a\xff", false).unwrap_err().to_string().contains("0xff"));
    }
}
