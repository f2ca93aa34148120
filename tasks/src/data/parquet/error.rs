//! Why a Parquet file or one of its columns cannot be read.

use std::io;
use std::path::PathBuf;

/// Why a Parquet file or one of its columns cannot be read. Rows count from 0 in the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParquetFileError {
    /// The file is missing or unreadable.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It does not begin as a Parquet file does.
    #[error("{}: this is not a Parquet file", .0.display())]
    NotParquet(PathBuf),
    /// The end of the file, which says what is in it, is missing or damaged.
    #[error("{}: the Parquet file is cut off or damaged, its footer {reason} (copy it again)",
        file.display())]
    Footer {
        /// The file.
        file: PathBuf,
        /// What is wrong with the footer.
        reason: String,
    },
    /// A part of a column cannot be unpacked.
    #[error("{}: column `{column}` cannot be read from row {row} on ({reason})", file.display())]
    Pages {
        /// The file.
        file: PathBuf,
        /// The column.
        column: String,
        /// The first row that was asked for.
        row: u64,
        /// The reader's error.
        reason: String,
    },
    /// There is no such column.
    #[error("{}: there is no column `{name}` (it has {})", file.display(), names(known))]
    NoColumn {
        /// The file.
        file: PathBuf,
        /// The column.
        name: String,
        /// The columns that it has.
        known: Vec<String>,
    },
    /// A column has values of another type.
    #[error("{}: column `{column}` has {found}, {needed} is needed", file.display())]
    Kind {
        /// The file.
        file: PathBuf,
        /// The column.
        column: String,
        /// What it has.
        found: String,
        /// What is needed.
        needed: &'static str,
    },
    /// A value is missing in a list.
    #[error("{}: row {row} of column `{column}` has a list with an empty value", file.display())]
    EmptyValue {
        /// The file.
        file: PathBuf,
        /// The column.
        column: String,
        /// The row.
        row: u64,
    },
}

/// Names as a list in a sentence.
fn names(known: &[String]) -> String {
    let quoted: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    match quoted.is_empty() {
        true => "none".to_owned(),
        false => quoted.join(", "),
    }
}
