//! Rows of Parquet files: a column of texts, or of lists of tokens.

use super::piece::{Piece, Wanted};
use crate::data::parquet::{Column, ColumnKind, ParquetFile, ParquetFileError};
use crate::data::text::TextError;
use std::ops::Range;

/// Rows and bytes of each row group.
pub(super) fn groups(file: &ParquetFile, column: &str) -> Result<Vec<(u64, u64)>, TextError> {
    let column = find(file, column)?;
    let group = |group| (file.rows(group) as u64, file.unpacked_bytes(column, group));
    Ok((0..file.row_groups()).map(group).collect())
}

/// Reads rows of a row group. An empty value is no document.
pub(super) fn read(
    file: &ParquetFile,
    wanted: Wanted<'_>,
    group: usize,
    rows: Range<usize>,
    f: &mut dyn FnMut(Piece) -> Result<(), TextError>,
) -> Result<(), TextError> {
    let column = find(file, wanted.column)?;
    let first = rows.start;
    let row = |at: usize| file.rows_before(group) + (first + at) as u64;
    if !column.is_list {
        let texts = file.bytes(column, group, rows)?;
        for (at, bytes) in texts.into_iter().enumerate() {
            let text = bytes.map(String::from_utf8).transpose();
            let text = text.map_err(|_| TextError::NotTextRow {
                file: file.path().into(),
                column: column.name.clone(),
                row: row(at),
            });
            if let Some(text) = wanted.bad.checked(text)?.flatten() {
                f(Piece::Text { text, ends: true })?;
            }
        }
        return Ok(());
    }
    for (at, tokens) in file.int_lists(column, group, rows)?.into_iter().enumerate() {
        let (path, place) = (file.path().into(), || format!("row {}", row(at)));
        match wanted.tokens(&tokens) {
            Some(Ok(tokens)) => f(Piece::Tokens(tokens))?,
            Some(Err(wrong)) => {
                wanted.bad.judge(TextError::Token {
                    file: path,
                    place: place(),
                    token: tokens[wrong],
                    vocabulary: wanted.vocabulary.unwrap_or_default(),
                })?;
            }
            None => {
                return Err(TextError::Tokens {
                    file: path,
                    place: place(),
                });
            }
        }
    }
    Ok(())
}

fn find<'a>(file: &'a ParquetFile, name: &str) -> Result<&'a Column, TextError> {
    let column = file.column(name).map_err(TextError::NoColumn)?;
    let fits = match column.kind {
        ColumnKind::Text | ColumnKind::Bytes => !column.is_list,
        ColumnKind::Int | ColumnKind::Unsigned => column.is_list,
        ColumnKind::Float | ColumnKind::Other => false,
    };
    match fits {
        true => Ok(column),
        false => Err(TextError::NoColumn(ParquetFileError::Kind {
            file: file.path().into(),
            column: name.to_owned(),
            found: column.to_string(),
            needed: "text or lists of tokens",
        })),
    }
}
