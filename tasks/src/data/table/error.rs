//! Why a table cannot be used.

use crate::data::{Foreign, TextError};
use std::io;
use std::path::PathBuf;

/// The most cells of a table in memory, four bytes each.
pub const CELLS_MAX: usize = 1 << 28;

/// Why a table cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// A file or folder is missing or unreadable.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file or folder.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The files of a folder cannot be listed.
    #[error(transparent)]
    Files(#[from] TextError),
    /// A file in another format.
    #[error("{}: this is {}, not a table as text ({})", file.display(), format.name, format.advice)]
    Foreign {
        /// The file.
        file: PathBuf,
        /// The format.
        format: Foreign,
    },
    /// A folder without tables.
    #[error("{}: no table is in it (give a CSV file, or a folder of files that end in .csv or .tsv)", .0.display())]
    NoFiles(PathBuf),
    /// A line is no row of a table.
    #[error("{}:{line}: {reason}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        reason: String,
    },
    /// A column of the configuration is not in the header.
    #[error("{}: it has no column `{name}` (`task.{key}`); the nearest is `{nearest}`", file.display())]
    NoColumn {
        /// The file.
        file: PathBuf,
        /// The key that names it.
        key: &'static str,
        /// The column.
        name: String,
        /// The most similar column.
        nearest: String,
    },
    /// Two columns have one name.
    #[error("{}: two columns are called `{name}` (rename one)", file.display())]
    SameName {
        /// The file.
        file: PathBuf,
        /// The name.
        name: String,
    },
    /// A file of a folder has other columns than the first.
    #[error("{}: its columns differ from those of the first file, the first difference is `{name}`", file.display())]
    OtherColumns {
        /// The file.
        file: PathBuf,
        /// A column that only one of them has.
        name: String,
    },
    /// There is no column beside the target.
    #[error("{}: no column is left as an input", .0.display())]
    NoInputs(PathBuf),
    /// A cell has a value that its column cannot have.
    #[error("{}:{line}: column `{column}` has `{value}`: {reason}", file.display())]
    Cell {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The column.
        column: String,
        /// The value, or its beginning.
        value: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// Too many cells.
    #[error("{}: more than {CELLS_MAX} cells (give a part of the table to each daemon)", .0.display())]
    TooLarge(PathBuf),
    /// Too few rows.
    #[error("{}: {rows} rows are too few to train on some and hold out others", path.display())]
    TooFew {
        /// The file or folder.
        path: PathBuf,
        /// Number of rows.
        rows: usize,
    },
}
