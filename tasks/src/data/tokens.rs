//! From text to tokens: by a `tokenizer.json`, or each byte as it is.

use crate::model::ModelDirError;
use std::ops::Range;
use std::path::Path;
use tokenizers::Tokenizer;

/// Bytes that are encoded as one piece. Pieces end after a line, so that long texts need no memory
/// for the positions of all tokens.
const PIECE: usize = 1 << 16;

/// Pieces that are encoded beside each other.
const PIECES: usize = 32;

// Marks in the upper bits of a token's number.

/// A document begins with this token: it and those behind it do not see those in front.
pub(crate) const START: u32 = 1 << 31;

/// This token is seen and not trained: what a person said to a model, or what fills a row.
pub(crate) const SEEN: u32 = 1 << 30;

/// The number of a token without its marks.
pub(crate) const fn number(token: u32) -> u32 {
    token & (SEEN - 1)
}

/// Turns text into tokens and back.
#[derive(Debug)]
pub enum Tokens {
    /// Each byte is a token.
    Bytes,
    /// A `tokenizer.json` of Hugging Face.
    File(Box<Tokenizer>),
}

impl Tokens {
    /// Reads a `tokenizer.json`, or the one of a folder.
    ///
    /// # Errors
    /// If there is none, or it is damaged.
    pub fn read(path: &Path) -> Result<Self, ModelDirError> {
        let file = if path.is_dir() {
            path.join("tokenizer.json")
        } else {
            path.to_path_buf()
        };
        if !file.exists() {
            let reason = "it is missing (`task.tokenizer` takes another file, or \"bytes\")";
            return Err(ModelDirError::new(&file, reason));
        }
        let read = Tokenizer::from_file(&file);
        let mut tokenizer = read.map_err(|error| {
            ModelDirError::new(&file, format!("it is not a tokenizer.json ({error})"))
        })?;
        // A tokenizer may be saved with the limits of one call.
        tokenizer.with_padding(None);
        let _ = tokenizer.with_truncation(None);
        Ok(Self::File(Box::new(tokenizer)))
    }

    /// One more than the largest token.
    pub fn vocabulary(&self) -> usize {
        match self {
            Self::Bytes => 256,
            Self::File(tokenizer) => {
                let largest = tokenizer.get_vocab(true).into_values().max();
                largest.map_or(0, |largest| largest as usize + 1)
            }
        }
    }

    /// The number of a token by its text.
    pub(crate) fn number_of(&self, token: &str) -> Option<u32> {
        match self {
            Self::Bytes => None,
            Self::File(tokenizer) => tokenizer.token_to_id(token),
        }
    }

    /// The tokens of a text, without tokens that mark its beginning or end.
    ///
    /// # Errors
    /// The tokenizer's, if it cannot encode the text.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        match self {
            Self::Bytes => Ok(text.bytes().map(u32::from).collect()),
            Self::File(tokenizer) => {
                let mut tokens = Vec::new();
                let mut pieces = Pieces(text).peekable();
                while pieces.peek().is_some() {
                    let some: Vec<&str> = pieces.by_ref().take(PIECES).collect();
                    let encoded = tokenizer
                        .encode_batch_fast(some, false)
                        .map_err(|error| error.to_string())?;
                    for piece in encoded {
                        tokens.extend_from_slice(piece.get_ids());
                    }
                }
                Ok(tokens)
            }
        }
    }

    /// The tokens of a text, with those that the tokenizer's post-processor puts around one, such as the first of a
    /// Gemma. Of none, `begin`, after which models begin a text.
    ///
    /// # Errors
    /// As [`Tokens::encode`], and where there is no token.
    pub(crate) fn encode_or_begin(
        &self,
        text: &str,
        begin: Option<u32>,
    ) -> Result<Vec<u32>, String> {
        let tokens = match self {
            Self::Bytes => self.encode(text)?,
            Self::File(tokenizer) => {
                let encoded = tokenizer.encode_fast(text, true);
                encoded.map_err(|e| e.to_string())?.get_ids().to_vec()
            }
        };
        match begin {
            _ if !tokens.is_empty() => Ok(tokens),
            Some(begin) => Ok(vec![begin]),
            None => Err("give some text to continue".to_owned()),
        }
    }

    /// The tokens of a text, and the bytes of it that each one stands for.
    ///
    /// # Errors
    /// As [`Tokens::encode`].
    pub(super) fn encode_with_places(
        &self,
        text: &str,
    ) -> Result<(Vec<u32>, Vec<Range<usize>>), String> {
        let Self::File(tokenizer) = self else {
            let places = (0..text.len()).map(|byte| byte..byte + 1);
            return Ok((self.encode(text)?, places.collect()));
        };
        let encoded = tokenizer.encode(text, false).map_err(|e| e.to_string())?;
        let places = encoded.get_offsets().iter();
        let places = places.map(|&(start, end)| start..end).collect();
        Ok((encoded.get_ids().to_vec(), places))
    }

    /// The tokens of each of several texts.
    ///
    /// # Errors
    /// As [`Tokens::encode`].
    pub fn encode_all(&self, texts: &[&str]) -> Result<Vec<Vec<u32>>, String> {
        let Self::File(tokenizer) = self else {
            return texts.iter().map(|text| self.encode(text)).collect();
        };
        let mut all = Vec::with_capacity(texts.len());
        for some in texts.chunks(PIECES) {
            if some.iter().any(|text| text.len() > PIECE) {
                for text in some {
                    all.push(self.encode(text)?);
                }
                continue;
            }
            let encoded = tokenizer
                .encode_batch_fast(some.to_vec(), false)
                .map_err(|error| error.to_string())?;
            all.extend(encoded.iter().map(|encoding| encoding.get_ids().to_vec()));
        }
        Ok(all)
    }

    /// Bytes of the text that tokens stand for; `None` if it is not known.
    pub fn text_bytes(&self, tokens: &[u32]) -> Option<usize> {
        match self {
            Self::Bytes => Some(tokens.len()),
            Self::File(_) => self.decode(tokens).ok().map(|text| text.len()),
        }
    }

    /// The text of tokens. Bytes that are no UTF-8 become replacement characters.
    ///
    /// # Errors
    /// The tokenizer's, if it does not know a token.
    pub fn decode(&self, tokens: &[u32]) -> Result<String, String> {
        match self {
            Self::Bytes => {
                let bytes: Vec<u8> = tokens.iter().map(|&token| token as u8).collect();
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            Self::File(tokenizer) => tokenizer
                .decode(tokens, true)
                .map_err(|error| error.to_string()),
        }
    }
}

/// A text in pieces of about [`PIECE`] bytes.
struct Pieces<'a>(&'a str);

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.0.is_empty() {
            return None;
        }
        let rest = self.0.as_bytes().get(PIECE..).unwrap_or_default();
        let line = rest.iter().position(|&byte| byte == b'\n');
        let end = line.map_or(self.0.len(), |line| PIECE + line + 1);
        let (piece, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_text() {
        let text = "a line of text\n".repeat(20_000);
        let pieces: Vec<&str> = Pieces(&text).collect();
        assert!(pieces.len() > 3);
        assert!(pieces.iter().all(|piece| piece.ends_with('\n')));
        assert_eq!(pieces.concat(), text);
        assert_eq!(Pieces("").count(), 0);
    }

    #[test]
    fn bytes_are_tokens() {
        let tokens = Tokens::Bytes.encode("a\u{e9}").unwrap();
        assert_eq!(tokens, [97, 0xc3, 0xa9]);
        assert_eq!(Tokens::Bytes.decode(&tokens).unwrap(), "a\u{e9}");
    }
}
