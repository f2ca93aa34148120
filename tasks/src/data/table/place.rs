//! Where a cell is, for errors.

use crate::data::error::{DataError, Problem, at};
use std::path::PathBuf;

/// The most characters of a value that an error shows.
const SHOWN: usize = 40;

/// One cell of a file.
pub(super) struct Place {
    pub(super) file: PathBuf,
    pub(super) line: u64,
    pub(super) column: String,
    pub(super) value: String,
}

impl Place {
    /// An error about the cell.
    pub(super) fn wrong(&self, reason: &str) -> DataError {
        let cell = Problem::Cell {
            column: self.column.clone(),
            value: self.value.escape_debug().take(SHOWN).collect(),
            reason: reason.to_owned(),
        };
        at(format!("{}:{}", self.file.display(), self.line).as_ref())(cell)
    }
}
