//! One Parquet file: its footer, and ranges of rows of its columns.

use super::column::{Column, ColumnKind, columns};
use super::values::{self, Cells, Wanted};
use crate::data::error::{DataError, Problem, at};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    PageIndexPolicy, ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader,
    ParquetStatisticsPolicy,
};
use parquet::file::reader::SerializedPageReader;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// First and last bytes of a Parquet file.
const MAGIC: &[u8; 4] = b"PAR1";

/// A Parquet file whose footer has been read. Its rows lie in row groups; each read takes rows of one
/// group and opens the file for itself, so that threads do not disturb each other.
#[derive(Debug)]
pub(crate) struct ParquetFile {
    path: PathBuf,
    metadata: ParquetMetaData,
    columns: Vec<Column>,
}

impl ParquetFile {
    /// Reads the footer.
    ///
    /// # Errors
    /// If the file cannot be read, is not a Parquet file, or its footer is missing or damaged.
    pub(crate) fn open(path: &Path) -> Result<Self, DataError> {
        let file = check_ends(path)?;
        // Statistics of columns may be many times as large as the rest, and nothing here uses them.
        let options = ParquetMetaDataOptions::new()
            .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll);
        let metadata = ParquetMetaDataReader::new()
            .with_metadata_options(Some(options))
            .with_offset_index_policy(PageIndexPolicy::Optional)
            .parse_and_finish(&file)
            .map_err(|error| match error {
                ParquetError::External(error) if error.is::<io::Error>() => {
                    Problem::Io(io::Error::other(error))
                }
                error => Problem::Footer(format!("cannot be read: {}", one_line(&error))),
            })
            .map_err(at(path))?;
        Ok(Self {
            path: path.into(),
            columns: columns(metadata.file_metadata().schema_descr()),
            metadata,
        })
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// All columns.
    pub(crate) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The column of this name.
    ///
    /// # Errors
    /// If there is none; the error lists those that there are.
    pub(crate) fn column(&self, name: &str) -> Result<&Column, DataError> {
        let found = self.columns.iter().find(|column| column.name == name);
        found.ok_or_else(|| {
            let known = self.columns.iter().map(|c| format!("`{}`", c.name));
            let known = known.collect::<Vec<_>>().join(", ");
            at(&self.path)(Problem::NoColumn {
                name: name.to_owned(),
                known: if known.is_empty() {
                    "none".to_owned()
                } else {
                    known
                },
            })
        })
    }

    /// Number of row groups.
    pub(crate) fn row_groups(&self) -> usize {
        self.metadata.num_row_groups()
    }

    /// Number of rows of a row group.
    ///
    /// # Panics
    /// If there is no such row group.
    pub(crate) fn rows(&self, group: usize) -> usize {
        usize::try_from(self.metadata.row_group(group).num_rows()).unwrap_or(0)
    }

    /// Bytes of a column in a row group, unpacked: about those of its values.
    ///
    /// # Panics
    /// If there is no such row group.
    pub(crate) fn unpacked_bytes(&self, column: &Column, group: usize) -> u64 {
        let chunk = self.metadata.row_group(group).column(column.leaf);
        u64::try_from(chunk.uncompressed_size()).unwrap_or(0)
    }

    /// Number of rows before a row group.
    pub(crate) fn rows_before(&self, group: usize) -> u64 {
        (0..group).map(|group| self.rows(group) as u64).sum()
    }

    /// Texts or bytes of a row group's rows, `None` where a value is missing. Texts are not checked to
    /// be UTF-8.
    ///
    /// # Errors
    /// If the column has other values, or cannot be unpacked.
    ///
    /// # Panics
    /// If there is no such row group.
    pub(crate) fn bytes(
        &self,
        column: &Column,
        group: usize,
        rows: Range<usize>,
    ) -> Result<Vec<Option<Vec<u8>>>, DataError> {
        let text = matches!(column.kind, ColumnKind::Text | ColumnKind::Bytes);
        self.needs(column, text && !column.is_list, "text or bytes")?;
        let (cells, wanted) = self.read(column, group, rows, values::bytes)?;
        Ok(cells.scalars(&wanted))
    }

    /// Integers of a row group's rows, `None` where a value is missing.
    ///
    /// # Errors
    /// If the column has other values, or cannot be unpacked.
    ///
    /// # Panics
    /// If there is no such row group.
    pub(crate) fn ints(
        &self,
        column: &Column,
        group: usize,
        rows: Range<usize>,
    ) -> Result<Vec<Option<i64>>, DataError> {
        let int = matches!(column.kind, ColumnKind::Int | ColumnKind::Unsigned);
        self.needs(column, int && !column.is_list, "integers")?;
        let (cells, wanted) = self.read(column, group, rows, values::ints)?;
        Ok(cells.scalars(&wanted))
    }

    /// Lists of integers of a row group's rows. A missing list is empty.
    ///
    /// # Errors
    /// If the column has other values, a list has an empty value, or it cannot be unpacked.
    ///
    /// # Panics
    /// If there is no such row group.
    pub(crate) fn int_lists(
        &self,
        column: &Column,
        group: usize,
        rows: Range<usize>,
    ) -> Result<Vec<Vec<i64>>, DataError> {
        let int = matches!(column.kind, ColumnKind::Int | ColumnKind::Unsigned);
        self.needs(column, int && column.is_list, "lists of integers")?;
        let (cells, wanted) = self.read(column, group, rows, values::ints)?;
        let lists = cells.lists(&wanted);
        lists.map_err(|row| {
            let row = self.rows_before(group) + (wanted.rows.start + row) as u64;
            let column = column.name.clone();
            at(&self.path)(Problem::EmptyValue { column, row })
        })
    }

    fn needs(&self, column: &Column, fits: bool, needed: &'static str) -> Result<(), DataError> {
        if fits {
            return Ok(());
        }
        Err(at(&self.path)(Problem::Kind {
            column: column.name.clone(),
            found: column.to_string(),
            needed,
        }))
    }

    fn read<T>(
        &self,
        column: &Column,
        group: usize,
        rows: Range<usize>,
        decode: Decode<T>,
    ) -> Result<(Cells<T>, Wanted), DataError> {
        let file = File::open(&self.path).map_err(at(&self.path))?;
        let chunk = self.metadata.row_group(group).column(column.leaf);
        let descriptor = chunk.column_descr_ptr();
        let wanted = Wanted {
            unsigned: column.kind == ColumnKind::Unsigned,
            full: descriptor.max_def_level(),
            member: descriptor.repeated_ancestor_def_level(),
            rows,
        };
        // Where the file says where its pages begin, earlier pages are not even looked at.
        let index = self.metadata.page_index_for_row_group(group);
        let pages = index.page_locations(column.leaf).cloned();
        let cells = SerializedPageReader::new(Arc::new(file), chunk, self.rows(group), pages)
            .map(|pages| get_column_reader(descriptor, Box::new(pages)))
            .and_then(|reader| decode(reader, &wanted))
            .map_err(|error| Problem::Pages {
                column: column.name.clone(),
                row: self.rows_before(group) + wanted.rows.start as u64,
                reason: one_line(&error),
            })
            .map_err(at(&self.path))?;
        Ok((cells, wanted))
    }
}

/// Decodes rows of a column as values of one type.
type Decode<T> = fn(ColumnReader, &Wanted) -> Result<Cells<T>, ParquetError>;

/// Opens a file and looks at its first and last bytes.
fn check_ends(path: &Path) -> Result<File, DataError> {
    let io = at(path);
    let mut file = File::open(path).map_err(io)?;
    let mut ends = [[0; 4]; 2];
    let long = file.metadata().map_err(io)?.len() >= 12;
    let begins = file.read_exact(&mut ends[0]).is_ok() && &ends[0] == MAGIC;
    if !begins {
        return Err(at(path)(Problem::NotParquet));
    }
    if long {
        file.seek(SeekFrom::End(-4)).map_err(io)?;
        file.read_exact(&mut ends[1]).map_err(io)?;
    }
    if &ends[1] != MAGIC {
        return Err(at(path)(Problem::Footer("is missing".to_owned())));
    }
    Ok(file)
}

/// The reader's error without its prefix and line breaks.
fn one_line(error: &ParquetError) -> String {
    let text = match error {
        ParquetError::General(text) | ParquetError::NYI(text) | ParquetError::EOF(text) => text,
        error => &error.to_string(),
    };
    match text.strip_prefix("Disabled feature at compile time: ") {
        Some(codec) => format!("it is packed with {codec}: write it with zstd or snappy"),
        None => text.replace('\n', " "),
    }
}
