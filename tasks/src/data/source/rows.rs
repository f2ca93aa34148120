//! Rows of Parquet files: a column of texts, or of lists of tokens.

use super::piece::{Piece, Wanted};
use crate::data::error::{DataError, Problem, at};
use crate::data::parquet::{Column, ColumnKind, ParquetFile};
use std::ops::Range;

/// Rows and bytes of each row group.
pub(super) fn groups(file: &ParquetFile, column: &str) -> Result<Vec<(u64, u64)>, DataError> {
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
    f: &mut dyn FnMut(Piece) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let column = find(file, wanted.column)?;
    let first = rows.start;
    let number = |row: usize| file.rows_before(group) + (first + row) as u64;
    let here = at(file.path());
    if !column.is_list {
        let texts = file.bytes(column, group, rows)?;
        for (row, bytes) in texts.into_iter().enumerate() {
            let text = bytes.map(String::from_utf8).transpose();
            let text = text.map_err(|_| {
                let (column, row) = (column.name.clone(), number(row));
                here(Problem::NotTextRow { column, row })
            });
            if let Some(text) = wanted.bad.checked(text)?.flatten() {
                f(Piece::Text { text, ends: true })?;
            }
        }
        return Ok(());
    }
    for (row, tokens) in file.int_lists(column, group, rows)?.into_iter().enumerate() {
        let place = || format!("row {}", number(row));
        match wanted.tokens(&tokens) {
            Some(Ok(tokens)) => f(Piece::Tokens(tokens))?,
            Some(Err(wrong)) => {
                let unknown = wanted.unknown(place(), tokens[wrong]);
                wanted.bad.judge(here(unknown))?;
            }
            None => return Err(here(Problem::Tokens(place()))),
        }
    }
    Ok(())
}

fn find<'a>(file: &'a ParquetFile, name: &str) -> Result<&'a Column, DataError> {
    let column = file.column(name).map_err(DataError::of_chosen_column)?;
    let fits = match column.kind {
        ColumnKind::Text | ColumnKind::Bytes => !column.is_list,
        ColumnKind::Int | ColumnKind::Unsigned => column.is_list,
        ColumnKind::Float | ColumnKind::Other => false,
    };
    if fits {
        return Ok(column);
    }
    let kind = Problem::Kind {
        column: name.to_owned(),
        found: column.to_string(),
        needed: "text or lists of tokens",
    };
    Err(at(file.path())(kind).of_chosen_column())
}
