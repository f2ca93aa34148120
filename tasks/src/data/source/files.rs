//! The files of a source.

use super::piece::{Passage, Piece, Wanted};
use super::{json, plain, rows};
use crate::data::error::{DataError, Problem, TEXT_BYTES_MAX, at};
use crate::data::first_bytes::{FIRST_BYTES, TABLE, foreign_format};
use crate::data::parquet::ParquetFile;
use crate::data::text::{files_of, read_files};
use crate::data::{BadRecords, Chat};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The column or key with the text, if the configuration names none.
const COLUMN: &str = "text";

/// Bytes of a passage while all of them are read.
const PASSAGE: u64 = 16 << 20;

/// How the files of a source are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Each file is one document in UTF-8.
    Text,
    /// Each line is a JSON object with a document under one key.
    Json,
    /// Each row has a document in one column.
    Parquet,
}

/// Takes a piece and its file.
pub(crate) type OnPiece<'a> = dyn FnMut(&Path, Piece) -> Result<(), DataError> + 'a;

/// Files of one format.
#[derive(Debug)]
pub(crate) struct Source {
    path: PathBuf,
    format: Format,
    files: Vec<PathBuf>,
    column: String,
    /// Parts that are not cut yet: whole files, or row groups.
    wholes: Vec<Passage>,
    /// Treatment of records that cannot be read.
    pub(crate) bad: BadRecords,
    /// Where its documents are conversations: how they become tokens.
    pub(crate) chat: Option<Arc<Chat>>,
}

impl Format {
    const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "JSON Lines",
            Self::Parquet => "Parquet",
        }
    }

    /// By the name of the file; Parquet also by its first bytes.
    fn of(file: &Path) -> Result<Self, DataError> {
        let name = file.extension().map(|name| name.to_ascii_lowercase());
        let mut first = Vec::new();
        let opened = File::open(file).map_err(at(file))?;
        let read = opened.take(FIRST_BYTES as u64).read_to_end(&mut first);
        read.map_err(at(file))?;
        let needed = "text";
        let foreign = |format| at(file)(Problem::Foreign { format, needed });
        let name = name.as_deref().and_then(|name| name.to_str());
        match (name, foreign_format(&first)) {
            (Some("parquet"), _) => Ok(Self::Parquet),
            _ if first.starts_with(b"PAR1") => Ok(Self::Parquet),
            (_, Some(format)) => Err(foreign(format)),
            (Some("json" | "jsonl" | "ndjson"), None) => Ok(Self::Json),
            (Some("csv" | "tsv"), None) => Err(foreign(TABLE)),
            _ => Ok(Self::Text),
        }
    }
}

impl Source {
    /// Finds the files of a path and reads the footers of Parquet files. `column` is the key or column
    /// with the text.
    ///
    /// # Errors
    /// If a file cannot be read, has another format than the others or lacks the column, or there is
    /// no text.
    pub(crate) fn open(path: &Path, column: Option<&str>) -> Result<Self, DataError> {
        let files = files_of(path)?;
        let Some(first) = files.first() else {
            return Err(at(path)(Problem::Empty));
        };
        let format = Format::of(first)?;
        for file in &files[1..] {
            let other = Format::of(file)?;
            if other != format {
                return Err(at(first)(Problem::Mixed {
                    format: format.name(),
                    other: file.display().to_string(),
                    other_format: other.name(),
                }));
            }
        }
        if format == Format::Text && column.is_some() {
            return Err(at(first)(Problem::NoColumns));
        }
        let mut source = Self {
            path: path.into(),
            format,
            files,
            column: column.unwrap_or(COLUMN).to_owned(),
            wholes: Vec::new(),
            bad: BadRecords::default(),
            chat: None,
        };
        if source.format == Format::Json
            && column.is_none()
            && json::has_only(&source.files[0], json::MESSAGES, COLUMN)
        {
            json::MESSAGES.clone_into(&mut source.column);
        }
        for file in 0..source.files.len() {
            source.wholes.extend(source.wholes_of(file)?);
        }
        match source.bytes() {
            0 => Err(at(path)(Problem::Empty)),
            _ => Ok(source),
        }
    }

    /// Its documents are conversations, as the first one is.
    pub(crate) fn has_conversations(&self) -> bool {
        self.format == Format::Json && json::is_conversation(&self.files[0], &self.column)
    }

    /// The file or folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The format of all files.
    pub(crate) const fn format(&self) -> Format {
        self.format
    }

    /// Bytes of text, about: those of the files, or of the column in them.
    pub(crate) fn bytes(&self) -> u64 {
        self.wholes.iter().map(|whole| whole.bytes).sum()
    }

    /// The parts of the source in the order of files and rows, each of about `bytes` bytes.
    ///
    /// # Panics
    /// If `bytes` is zero.
    pub(crate) fn passages(&self, bytes: u64) -> Vec<Passage> {
        let cut = |whole: &Passage| {
            let (start, length) = (whole.range.start, whole.range.end - whole.range.start);
            let parts = whole.bytes.div_ceil(bytes).clamp(1, length.max(1));
            let at = move |part: u64, of: u64| {
                (u128::from(of) * u128::from(part) / u128::from(parts)) as u64
            };
            let whole = whole.clone();
            (0..parts).map(move |part| Passage {
                range: start + at(part, length)..start + at(part + 1, length),
                bytes: at(part + 1, whole.bytes) - at(part, whole.bytes),
                ..whole
            })
        };
        self.wholes.iter().flat_map(cut).collect()
    }

    /// Reads passages. It is fastest if they are in their order. Documents may be lists of tokens if a
    /// vocabulary is given, which they are checked against.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged, and those of `f`.
    pub(crate) fn read<'a>(
        &self,
        passages: impl IntoIterator<Item = &'a Passage>,
        vocabulary: Option<usize>,
        f: &mut OnPiece<'_>,
    ) -> Result<(), DataError> {
        let mut open: Option<(u32, ParquetFile)> = None;
        let wanted = Wanted {
            column: &self.column,
            vocabulary,
            chat: self.chat.as_deref(),
            bad: &self.bad,
        };
        for passage in passages {
            let path = &self.files[passage.file as usize];
            let on = &mut |piece| f(path, piece);
            match self.format {
                Format::Text => plain::read(path, &self.bad, &passage.range, on)?,
                Format::Json => json::read(path, wanted, &passage.range, on)?,
                Format::Parquet => {
                    let file = match open.take() {
                        Some((index, file)) if index == passage.file => file,
                        _ => ParquetFile::open(path)?,
                    };
                    let rows = passage.range.start as usize..passage.range.end as usize;
                    rows::read(&file, wanted, passage.group as usize, rows, on)?;
                    open = Some((passage.file, file));
                }
            }
        }
        Ok(())
    }

    fn wholes_of(&self, index: usize) -> Result<Vec<Passage>, DataError> {
        let (path, file) = (&self.files[index], index as u32);
        if self.format == Format::Parquet {
            let groups = rows::groups(&ParquetFile::open(path)?, &self.column)?;
            let whole = |(group, (rows, bytes))| Passage {
                file,
                group,
                range: 0..rows,
                bytes,
            };
            return Ok((0..).zip(groups).map(whole).collect());
        }
        let bytes = path.metadata().map_err(at(path))?.len();
        Ok(vec![Passage {
            file,
            group: 0,
            range: 0..bytes,
            bytes,
        }])
    }
}

/// The bytes of all documents, joined by newlines. Text files need not be UTF-8. `column` is the key of
/// JSON objects or the column of Parquet files, `None` for "text".
///
/// # Errors
/// If a file cannot be read, has another format than the others or lacks the column, documents are
/// lists of tokens, or there is no text or too much.
pub(crate) fn read_text(
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
