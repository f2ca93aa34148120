//! Tables: rows of numbers and names, and a column to predict.

mod classes;
mod columns;
mod read;

pub use columns::{Column, Targets, WantedTable};

use super::error::{DataError, Problem, at};
use crate::rng;
use murmurate_protocol::Digest;
use std::path::{Path, PathBuf};

/// The rows of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    path: PathBuf,
    columns: Vec<Column>,
    /// `[rows, columns]`.
    cells: Vec<f32>,
    rows: usize,
    targets: Targets,
    meaning: Digest,
}

impl Table {
    /// Reads a CSV file, or all of a folder in the order of their names, which must have the same columns.
    /// Files that end in `.tsv` have tabs instead of commas.
    ///
    /// # Errors
    /// If a file is unreadable, or a cell has another value than its column needs.
    pub fn read(path: &Path, wanted: &WantedTable<'_>) -> Result<Self, DataError> {
        let mut reader = read::Reader::new(wanted);
        for file in read::files(path)? {
            reader.read(&file)?;
        }
        let read = reader.finish()?;
        Ok(Self {
            path: path.into(),
            columns: read.columns,
            cells: read.cells,
            rows: read.rows,
            targets: read.targets,
            meaning: read.meaning,
        })
    }

    /// The inputs, in the order of their names.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Hash of what the inputs and outputs of a model stand for: names, scales and buckets of the columns, and
    /// the names of the classes or the scale of the target.
    pub const fn meaning(&self) -> Digest {
        self.meaning
    }

    /// Number of inputs of the model.
    pub fn inputs(&self) -> usize {
        self.columns.iter().map(Column::inputs).sum()
    }

    /// The targets, one for each row.
    pub const fn targets(&self) -> &Targets {
        &self.targets
    }

    /// Appends the inputs of one row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn append(&self, row: usize, into: &mut Vec<f32>) {
        let cells = &self.cells[row * self.columns.len()..][..self.columns.len()];
        for (column, cell) in self.columns.iter().zip(cells) {
            column.append(*cell, into);
        }
    }

    /// The rows to train on, and a share of all rows to hold out, by a hash of their numbers.
    ///
    /// # Errors
    /// If one of them is empty.
    pub fn split(&self, share: f64) -> Result<(Vec<u32>, Vec<u32>), DataError> {
        let out = (self.rows as f64 * share).round().max(1.0) as usize;
        if self.rows <= out {
            return Err(at(&self.path)(Problem::TooFewRows(self.rows)));
        }
        let hash = |row: u32| (rng::mix(u64::from(row)), row);
        let mut order: Vec<(u64, u32)> = (0..self.rows as u32).map(hash).collect();
        order.sort_unstable();
        let mut rows: Vec<u32> = order.into_iter().map(|(_, row)| row).collect();
        let mut train = rows.split_off(out);
        train.sort_unstable();
        rows.sort_unstable();
        Ok((train, rows))
    }
}

#[cfg(test)]
mod tests;
