//! The values of a column's rows, from the values and levels that the format stores.

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::{ParquetError, Result};
use std::ops::Range;

/// The cells of a column in a range of rows: values, and the levels that say which row each belongs to.
pub(super) struct Cells<T> {
    /// The values that are there.
    values: Vec<T>,
    /// For each row or member of a list, whether its value is there. Empty if no value can be
    /// missing.
    levels: Vec<i16>,
    /// For each of the same, zero where a row begins. Empty without lists.
    repetitions: Vec<i16>,
}

/// Which rows of a chunk of a column to read, and what its levels mean.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// The rows, counted in the row group.
    pub(super) rows: Range<usize>,
    /// Integers have no sign.
    pub(super) unsigned: bool,
    /// The level of a value that is there.
    pub(super) full: i16,
    /// The least level of a member of a list; lower levels are missing or empty lists.
    pub(super) member: i16,
}

/// Texts or bytes.
pub(super) fn bytes(reader: ColumnReader, wanted: &Wanted) -> Result<Cells<Vec<u8>>> {
    match reader {
        ColumnReader::ByteArrayColumnReader(r) => cells(r, wanted, |v| v.data().to_vec()),
        _ => Err(other_type()),
    }
}

/// Integers. Those of 64 bits without a sign wrap around from 2^63 on.
pub(super) fn ints(reader: ColumnReader, wanted: &Wanted) -> Result<Cells<i64>> {
    match reader {
        ColumnReader::BoolColumnReader(r) => cells(r, wanted, i64::from),
        ColumnReader::Int32ColumnReader(r) if wanted.unsigned => {
            // The format stores them as the 32-bit integers with a sign that have the same bits.
            cells(r, wanted, |v| i64::from(v as u32))
        }
        ColumnReader::Int32ColumnReader(r) => cells(r, wanted, i64::from),
        ColumnReader::Int64ColumnReader(r) => cells(r, wanted, |v| v),
        _ => Err(other_type()),
    }
}

fn other_type() -> ParquetError {
    ParquetError::NYI("it has values of another type".into())
}

fn cells<T: DataType, V>(
    mut reader: ColumnReaderImpl<T>,
    wanted: &Wanted,
    value: impl Fn(T::T) -> V,
) -> Result<Cells<V>> {
    let short = || ParquetError::EOF("rows are missing".into());
    let rows = &wanted.rows;
    if reader.skip_records(rows.start)? != rows.start {
        return Err(short());
    }
    let (mut levels, mut repetitions, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let (levels_of, repetitions_of) = (Some(&mut levels), Some(&mut repetitions));
    let (read, _, _) = reader.read_records(rows.len(), levels_of, repetitions_of, &mut values)?;
    if read != rows.len() {
        return Err(short());
    }
    Ok(Cells {
        values: values.into_iter().map(value).collect(),
        levels,
        repetitions,
    })
}

impl<T> Cells<T> {
    /// One value in each row, `None` where it is missing.
    pub(super) fn scalars(self, wanted: &Wanted) -> Vec<Option<T>> {
        let Self { values, levels, .. } = self;
        let mut values = values.into_iter();
        if levels.is_empty() {
            values.map(Some).collect()
        } else {
            levels
                .into_iter()
                .map(|level| (level == wanted.full).then(|| values.next()).flatten())
                .collect()
        }
    }

    /// One list in each row. A missing list is empty.
    ///
    /// # Errors
    /// The row of the range whose list has an empty value.
    pub(super) fn lists(self, wanted: &Wanted) -> Result<Vec<Vec<T>>, usize> {
        let mut values = self.values.into_iter();
        let mut rows: Vec<Vec<T>> = Vec::new();
        for (at, repetition) in self.repetitions.into_iter().enumerate() {
            if repetition == 0 {
                rows.push(Vec::new());
            }
            let level = self.levels.get(at).copied().unwrap_or(wanted.full);
            if level < wanted.full && level >= wanted.member {
                return Err(rows.len().saturating_sub(1));
            }
            let value = (level == wanted.full).then(|| values.next()).flatten();
            if let (Some(value), Some(list)) = (value, rows.last_mut()) {
                list.push(value);
            }
        }
        Ok(rows)
    }
}
