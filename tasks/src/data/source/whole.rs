//! All text of a source in memory, for models that read bytes.

use super::files::{Format, Source};
use super::piece::Piece;
use crate::data::BadRecords;
use crate::data::error::{DataError, Problem, TEXT_BYTES_MAX, at};
use crate::data::text::read_files;
use std::path::Path;

/// Bytes of a passage while all of them are read.
const PASSAGE: u64 = 16 << 20;

/// The bytes of all documents, joined by newlines. Text files need not be UTF-8. `column` is the key of
/// JSON objects or the column of Parquet files, `None` for "text".
///
/// # Errors
/// If a file cannot be read, has another format than the others or lacks the column, documents are
/// lists of tokens, or there is no text or too much.
pub fn read_text(
    path: &Path,
    column: Option<&str>,
    bad: &BadRecords,
) -> Result<Vec<u8>, DataError> {
    let mut source = Source::open(path, column)?;
    source.bad = bad.clone();
    if source.format() == Format::Text {
        return read_files(path);
    }
    if source.bytes() > TEXT_BYTES_MAX {
        return Err(at(path)(Problem::TooLarge));
    }
    let mut all = Vec::new();
    source.read(&source.passages(PASSAGE), None, &mut |_, piece| {
        if let Piece::Text { text, .. } = piece {
            if !all.is_empty() {
                all.push(b'\n');
            }
            all.extend(text.into_bytes());
        }
        Ok(())
    })?;
    Ok(all)
}
