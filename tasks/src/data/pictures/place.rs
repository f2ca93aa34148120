//! Where an encoded image is: a file of its own, or a row of a Parquet file.

use crate::data::error::{DataError, Problem, at};
use crate::data::parquet::{Column, ParquetFile};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most bytes of one encoded image.
const ENCODED_BYTES_MAX: u64 = 128 << 20;

/// The most rows that are read at once.
const ROWS_AT_ONCE: usize = 32;

/// A Parquet file with a column of encoded images.
#[derive(Debug)]
pub(in crate::data) struct Pack {
    pub(super) file: ParquetFile,
    pub(super) images: Column,
}

/// A row of a row group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) pack: u32,
    pub(super) group: u32,
    pub(super) row: u32,
}

/// Where an encoded image is.
#[derive(Clone, Debug)]
pub(in crate::data) enum Place {
    /// A file.
    File(PathBuf),
    /// A row of a row group of a Parquet file.
    Row(Arc<Pack>, usize, usize),
}

impl Place {
    /// Its name in errors: the file, and the row counted from the file's first one.
    pub(super) fn name(&self) -> PathBuf {
        match self {
            Self::File(path) => path.clone(),
            Self::Row(pack, group, row) => {
                let row = pack.file.rows_before(*group) + *row as u64;
                format!("{}: row {row}", pack.file.path().display()).into()
            }
        }
    }

    /// An error about this image.
    pub(super) fn wrong(&self, problem: Problem) -> DataError {
        at(&self.name())(problem)
    }

    /// The row after another one, in the same row group.
    fn follows(&self, before: &Self) -> bool {
        match (before, self) {
            (Self::Row(pack, group, row), Self::Row(next, of, at)) => {
                Arc::ptr_eq(pack, next) && group == of && *at == row + 1
            }
            _ => false,
        }
    }
}

/// The encoded images at the first of these places, or why there is none: one file, or as many rows as lie
/// side by side, up to a bound.
///
/// # Errors
/// If the Parquet file cannot be read.
///
/// # Panics
/// If there is no place.
pub(super) fn read_some(places: &[Place]) -> Result<Vec<Result<Vec<u8>, DataError>>, DataError> {
    match &places[0] {
        Place::File(path) => Ok(vec![read_file(path)]),
        Place::Row(pack, group, row) => {
            let pairs = places.windows(2).take(ROWS_AT_ONCE - 1);
            let more = pairs.take_while(|pair| pair[1].follows(&pair[0])).count();
            let rows = *row..row + 1 + more;
            let cells = pack.file.bytes(&pack.images, *group, rows)?;
            let named = cells.into_iter().zip(places);
            let image = |(cell, place): (Option<Vec<u8>>, &Place)| {
                cell.ok_or_else(|| place.wrong(Problem::NoImage))
            };
            Ok(named.map(image).collect())
        }
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, DataError> {
    let mut bytes = Vec::new();
    let opened = File::open(path).map_err(at(path))?;
    let read = opened.take(ENCODED_BYTES_MAX + 1).read_to_end(&mut bytes);
    if read.map_err(at(path))? as u64 > ENCODED_BYTES_MAX {
        let reason = format!("it has more than {ENCODED_BYTES_MAX} bytes");
        return Err(at(path)(Problem::Unreadable(reason)));
    }
    Ok(bytes)
}
