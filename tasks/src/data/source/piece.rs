//! Parts of a source, and the pieces of documents in them.

use crate::data::error::Problem;
use crate::data::{BadRecords, Chat};
use std::ops::Range;

/// A part of a source: lines of a text or JSON file, or rows of a row group of a Parquet file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Passage {
    /// Index of the file.
    pub(super) file: u32,
    /// Row group of a Parquet file.
    pub(super) group: u32,
    /// Bytes of a file, from which lines are found; or rows of the group.
    pub(super) range: Range<u64>,
    /// Bytes of text, about.
    pub(crate) bytes: u64,
}

/// A document, or the part of one that is in a passage.
pub(crate) enum Piece {
    /// Text; the last piece of a document says so.
    Text {
        /// The text.
        text: String,
        /// The document ends here.
        ends: bool,
    },
    /// The tokens of a document as they are in the file, or of a conversation with their marks.
    Tokens(Vec<u32>),
}

/// The part of each record that is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    /// The column or key with the documents.
    pub(super) column: &'a str,
    /// Number of the model's tokens; `None` if documents must be text.
    pub(super) vocabulary: Option<usize>,
    /// Documents are conversations.
    pub(super) chat: Option<&'a Chat>,
    /// Treatment of records that cannot be read.
    pub(super) bad: &'a BadRecords,
}

impl Wanted<'_> {
    /// Checked tokens, or the place of the first that the model does not have. `None` if documents must be
    /// text.
    pub(super) fn tokens(&self, tokens: &[i64]) -> Option<Result<Vec<u32>, usize>> {
        let vocabulary = self.vocabulary?;
        let token = |(at, &token): (usize, &i64)| match u32::try_from(token) {
            Ok(token) if (token as usize) < vocabulary => Ok(token),
            _ => Err(at),
        };
        Some(tokens.iter().enumerate().map(token).collect())
    }

    /// The problem of a token at this row or line that the model does not have.
    pub(super) fn unknown(&self, place: String, token: i64) -> Problem {
        Problem::Token {
            place,
            token,
            vocabulary: self.vocabulary.unwrap_or_default(),
        }
    }
}
