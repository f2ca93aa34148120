//! Text as bytes: one file, or all files of a folder one after the other. The bytes are not
//! decoded, because a byte-level model accepts any bytes.

use super::first_bytes::{Foreign, MARK, foreign_format};
use super::parquet::ParquetFileError;
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Most bytes of text to read into memory.
pub const TEXT_BYTES_MAX: u64 = 4 << 30;

/// Greatest depth of nested folders.
const DEPTH_MAX: usize = 16;

/// What can be done about any record that cannot be read.
pub(super) const OR_SKIP: &str = "or leave such records out: `task.on_bad_record = \"skip\"`";

/// Why text cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The file or folder is missing or unreadable.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file or folder.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// There is no text.
    #[error("{}: there is no text in it (give a file, or a folder of files)", .0.display())]
    Empty(PathBuf),
    /// There is too much text.
    #[error("{}: more than {TEXT_BYTES_MAX} bytes of text (give a part of it)", .0.display())]
    TooLarge(PathBuf),
    /// Folders are nested too deeply, for example by circular links.
    #[error("{}: folders more than {DEPTH_MAX} deep are not followed", .0.display())]
    TooDeep(PathBuf),
    /// The file is not text.
    #[error("{}: byte {at} is no UTF-8 (convert the file, {OR_SKIP})", file.display())]
    NotText {
        /// The file.
        file: PathBuf,
        /// Position of the first such byte.
        at: usize,
    },
    /// The tokenizer failed.
    #[error("{}: the tokenizer cannot encode it ({reason})", file.display())]
    Encoding {
        /// The file or folder.
        file: PathBuf,
        /// The tokenizer's error.
        reason: String,
    },
    /// A file in a format that is read as text nowhere.
    #[error("{}: this is {}, not text ({})", file.display(), format.name, format.advice)]
    Foreign {
        /// The file.
        file: PathBuf,
        /// The format.
        format: Foreign,
    },
    /// Too few tokens for training or held-out data.
    #[error(
        "{}: {train} tokens to train on and {held} held out, a window is {window} (give more text, \
         a smaller `task.context` or another `task.held_out`)", file.display()
    )]
    TooFewTokens {
        /// The file or folder.
        file: PathBuf,
        /// Tokens to train on.
        train: usize,
        /// Tokens held out.
        held: usize,
        /// Tokens of a window.
        window: usize,
    },
    /// A folder with files of two formats.
    #[error("{}: this is {format}, but {} is {other_format} (give a folder with one format)",
        file.display(), other.display())]
    Mixed {
        /// A file.
        file: PathBuf,
        /// Its format.
        format: &'static str,
        /// A file of another format.
        other: PathBuf,
        /// The format of that file.
        other_format: &'static str,
    },
    /// A column is chosen, but plain text has none.
    #[error("{}: this is text without columns (leave out `task.column`)", .0.display())]
    NoColumns(PathBuf),
    /// A Parquet file cannot be read.
    #[error(transparent)]
    Parquet(#[from] ParquetFileError),
    /// A Parquet file does not have the column with the text.
    #[error("{0}: `task.column` chooses another")]
    NoColumn(ParquetFileError),
    /// A line is not JSON.
    #[error("{}: line {line} is not a JSON object: {reason} (mend the line, {OR_SKIP})",
        file.display())]
    Json {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A JSON object does not have the text.
    #[error("{}: line {line} has no `{key}` (it has {known}): `task.column` chooses another, \
        {OR_SKIP}", file.display())]
    NoKey {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The key.
        key: String,
        /// The keys that the line has.
        known: String,
    },
    /// A row is not text.
    #[error("{}: row {row} of column `{column}` is not UTF-8 (mend the row, {OR_SKIP})",
        file.display())]
    NotTextRow {
        /// The file.
        file: PathBuf,
        /// The column.
        column: String,
        /// The row, counted from 0.
        row: u64,
    },
    /// A token that the model does not have.
    #[error(
        "{}: {place} has token {token}, the model has tokens from 0 to {} (use the tokenizer \
         that made them, {OR_SKIP})", file.display(), vocabulary.saturating_sub(1)
    )]
    Token {
        /// The file.
        file: PathBuf,
        /// The row or line.
        place: String,
        /// The token.
        token: i64,
        /// Number of the model's tokens.
        vocabulary: usize,
    },
    /// Tokens where a byte-level model needs text.
    #[error("{}: {place} has tokens, this model reads text (kind = \"causal-lm\" reads both)",
        file.display())]
    Tokens {
        /// The file.
        file: PathBuf,
        /// The row or line.
        place: String,
    },
    /// A part of a large text that has less than a window.
    #[error("{}: {part} has less than a window of {window} tokens (give more text, or a smaller \
             `task.context`)", file.display())]
    NoWindow {
        /// The file or folder.
        file: PathBuf,
        /// The part.
        part: &'static str,
        /// Tokens of a window.
        window: usize,
    },
    /// Too few bytes for training and held-out data.
    #[error("{}: {found} bytes of text, at least {needed} are needed", file.display())]
    TooShort {
        /// The file or folder.
        file: PathBuf,
        /// Bytes found.
        found: usize,
        /// Bytes needed.
        needed: usize,
    },
}

impl TextError {
    /// Whether one record is wrong, and not the source.
    pub(crate) const fn is_of_a_record(&self) -> bool {
        matches!(
            self,
            Self::Json { .. }
                | Self::NoKey { .. }
                | Self::NotText { .. }
                | Self::NotTextRow { .. }
                | Self::Token { .. }
                | Self::Encoding { .. }
        )
    }
}

/// All bytes of a file, or of all files of a folder and its sub-folders in the order of their
/// names (as bytes, so that it is the same on every machine), joined by a newline. Names that
/// begin with a dot are left out.
///
/// # Errors
/// If a file cannot be read, or there is no text or too much.
pub(super) fn read_files(path: &Path) -> Result<Vec<u8>, TextError> {
    let mut text = Vec::new();
    each_document(path, &mut |_, bytes| {
        if !text.is_empty() {
            text.push(b'\n');
        }
        match text.is_empty() {
            true => text = bytes,
            false => text.extend(bytes),
        }
        Ok(())
    })?;
    Ok(text)
}

/// Takes a file and its bytes.
pub(super) type OnDocument<'a> = dyn FnMut(&Path, Vec<u8>) -> Result<(), TextError> + 'a;

/// Calls `f(file, bytes)` for the files of [`read_files`].
///
/// # Errors
/// As [`read_files`], and those of `f`.
pub(super) fn each_document(path: &Path, f: &mut OnDocument<'_>) -> Result<(), TextError> {
    let mut size = 0;
    for file in files_of(path)? {
        let io = |source| TextError::Io {
            file: file.clone(),
            source,
        };
        let (mut bytes, room) = (Vec::new(), TEXT_BYTES_MAX - size);
        let read = File::open(&file)
            .map_err(io)?
            .take(room + 1)
            .read_to_end(&mut bytes)
            .map_err(io)?;
        if read as u64 > room {
            return Err(TextError::TooLarge(path.into()));
        }
        size += read as u64;
        if let Some(format) = foreign_format(&bytes) {
            return Err(TextError::Foreign { file, format });
        }
        if bytes.starts_with(MARK) {
            bytes.drain(..MARK.len());
        }
        f(&file, bytes)?;
    }
    match size {
        0 => Err(TextError::Empty(path.into())),
        _ => Ok(()),
    }
}

/// The file, or all files of a folder and its sub-folders in the order of their names.
pub(super) fn files_of(path: &Path) -> Result<Vec<PathBuf>, TextError> {
    let mut files = Vec::new();
    append(path, &mut files, 0)?;
    Ok(files)
}

fn append(path: &Path, files: &mut Vec<PathBuf>, depth: usize) -> Result<(), TextError> {
    let io = |source| TextError::Io {
        file: path.into(),
        source,
    };
    if depth > DEPTH_MAX {
        return Err(TextError::TooDeep(path.into()));
    }
    if !fs::metadata(path).map_err(io)?.is_dir() {
        files.push(path.into());
        return Ok(());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(io)? {
        names.push(entry.map_err(io)?.file_name());
    }
    names.sort_unstable();
    let seen = names
        .iter()
        .filter(|name| !name.as_encoded_bytes().starts_with(b"."));
    seen.into_iter()
        .try_for_each(|name| append(&path.join(name), files, depth + 1))
}

/// Ranges of the training bytes and of the held-out bytes, which are the last `held_out` share.
pub fn split_text(len: usize, held_out: f64) -> (Range<usize>, Range<usize>) {
    let held = ((len as f64 * held_out).ceil() as usize).min(len);
    (0..len - held, len - held..len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_read_in_the_order_of_its_names() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("b")).unwrap();
        fs::write(dir.path().join("c.txt"), "three").unwrap();
        fs::write(dir.path().join("b/x.txt"), "two").unwrap();
        fs::write(dir.path().join("a.txt"), "one").unwrap();
        fs::write(dir.path().join(".hidden"), "no").unwrap();
        assert_eq!(read_files(dir.path()).unwrap(), b"one\ntwo\nthree");
        assert_eq!(read_files(&dir.path().join("a.txt")).unwrap(), b"one");
    }

    #[test]
    fn errors_name_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("novel.txt");
        let error = read_files(&missing).unwrap_err().to_string();
        assert!(error.contains("novel.txt"), "{error}");
        assert!(matches!(read_files(dir.path()), Err(TextError::Empty(_))));
    }

    #[test]
    fn a_binary_file_is_refused_by_its_format() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.txt"), "text").unwrap();
        fs::write(dir.path().join("b"), b"PAR1\x15\x04").unwrap();
        let error = read_files(dir.path()).unwrap_err().to_string();
        assert!(error.contains("b: this is Parquet, not text"), "{error}");
    }

    #[test]
    fn the_end_is_held_out() {
        assert_eq!(split_text(1000, 0.05), (0..950, 950..1000));
        assert_eq!(split_text(3, 0.5), (0..1, 1..3));
    }
}
