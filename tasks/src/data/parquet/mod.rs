//! Columns of Parquet files: which there are, and the values of a range of rows. Only the pages that
//! hold these rows are unpacked, so a file of any size needs little memory.
//!
//! **Source:** Apache Parquet format, <https://parquet.apache.org/docs/file-format/>.

mod column;
mod file;
mod values;

pub(super) use column::{Column, ColumnKind};
pub(super) use file::ParquetFile;

#[cfg(test)]
mod tests;
