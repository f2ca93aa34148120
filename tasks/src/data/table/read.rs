//! Reads CSV files cell by cell.

use super::classes::{Given, Values};
use super::columns::{Column, Targets, WantedTable, number, scaled};
use super::error::{CELLS_MAX, TableError};
use super::place::Place;
use csv::{ErrorKind, ReaderBuilder, StringRecord};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Endings of the files of a folder.
const ENDINGS: [&str; 2] = ["csv", "tsv"];

/// The file, or those of a folder in the order of their names.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>, TableError> {
    let io = |source| io_error(path, source);
    if !fs::metadata(path).map_err(io)?.is_dir() {
        return Ok(vec![path.into()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(io)? {
        let file = entry.map_err(io)?.path();
        let ending = file.extension().and_then(|ending| ending.to_str());
        if ending.is_some_and(|ending| ENDINGS.contains(&ending)) {
            files.push(file);
        }
    }
    files.sort_unstable();
    match files.is_empty() {
        true => Err(TableError::NoFiles(path.into())),
        false => Ok(files),
    }
}

fn io_error(file: &Path, source: io::Error) -> TableError {
    let file = file.to_path_buf();
    TableError::Io { file, source }
}

/// What was read.
pub(super) struct Read {
    pub(super) columns: Vec<Column>,
    pub(super) cells: Vec<f32>,
    pub(super) rows: usize,
    pub(super) targets: Targets,
}

/// Collects the rows of one or more files.
pub(super) struct Reader<'a> {
    wanted: &'a WantedTable<'a>,
    /// Of the first file, sorted by name.
    columns: Option<Vec<Column>>,
    cells: Vec<f32>,
    rows: usize,
    /// Targets that are classes.
    values: Values,
    /// Targets that are numbers.
    numbers: Vec<f32>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(wanted: &'a WantedTable<'a>) -> Self {
        Self {
            wanted,
            columns: None,
            cells: Vec::new(),
            rows: 0,
            values: Values::default(),
            numbers: Vec::new(),
        }
    }

    /// Appends the rows of a file.
    ///
    /// # Errors
    /// Names the file, and the line and column if a cell is wrong.
    pub(super) fn read(&mut self, file: &Path) -> Result<(), TableError> {
        let tabs = file.extension().is_some_and(|ending| ending == "tsv");
        let opened = File::open(file).map_err(|source| io_error(file, source))?;
        let mut reader = ReaderBuilder::new()
            .delimiter(if tabs { b'\t' } else { b',' })
            .from_reader(opened);
        let header = reader.headers().map_err(|error| wrong(file, &error))?;
        let header: Vec<String> = header.iter().map(|name| name.trim().to_owned()).collect();
        let columns = inputs(file, &header, self.wanted)?;
        let columns = match self.columns.take() {
            None => columns,
            Some(first) => same(file, first, &columns)?,
        };
        let place = |name: &str| header.iter().position(|found| found == name);
        let target = place(self.wanted.target).unwrap_or_default();
        let places: Vec<usize> = columns
            .iter()
            .filter_map(|column| place(column.name()))
            .collect();
        let mut record = StringRecord::new();
        while reader
            .read_record(&mut record)
            .map_err(|error| wrong(file, &error))?
        {
            let line = record.position().map_or(0, csv::Position::line);
            let cell = |at: usize| Place {
                file: file.into(),
                line,
                column: header[at].clone(),
                value: record[at].to_owned(),
            };
            if self.cells.len() + places.len() > CELLS_MAX {
                return Err(TableError::TooLarge(file.into()));
            }
            for (column, &at) in columns.iter().zip(&places) {
                let found = column.cell(record[at].trim());
                self.cells
                    .push(found.map_err(|reason| cell(at).wrong(&reason))?);
            }
            self.target(record[target].trim(), || cell(target))?;
            self.rows += 1;
        }
        self.columns = Some(columns);
        Ok(())
    }

    fn target(&mut self, text: &str, place: impl Fn() -> Place) -> Result<(), TableError> {
        if text.is_empty() {
            return Err(place().wrong("it is what to predict, so it must not be empty"));
        }
        if !self.wanted.numbers {
            return self.values.push(text, place);
        }
        let found = number(text).map_err(|reason| {
            place().wrong(&format!(
                "{reason} (for classes write objective = \"classification\")"
            ))
        })?;
        let scale = self.wanted.scale.get(self.wanted.target);
        let found = scale.map_or(found as f32, |scale| scaled(found, *scale));
        if !found.is_finite() {
            return Err(place().wrong("it is too large"));
        }
        self.numbers.push(found);
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Read, TableError> {
        let targets = match self.wanted.numbers {
            true => Targets::Values(self.numbers),
            false => {
                let (labels, classes) = self.values.labels(Given {
                    count: self.wanted.classes,
                    names: self.wanted.names,
                })?;
                Targets::Labels { labels, classes }
            }
        };
        Ok(Read {
            columns: self.columns.unwrap_or_default(),
            cells: self.cells,
            rows: self.rows,
            targets,
        })
    }
}

/// An error of the CSV reader, with its line.
fn wrong(file: &Path, error: &csv::Error) -> TableError {
    let line = error.position().map_or(1, csv::Position::line);
    let reason = match error.kind() {
        ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => format!("it has {len} cells, but the header {expected_len}"),
        ErrorKind::Utf8 { .. } => "it is no UTF-8 (a table is a text file)".to_owned(),
        other => format!("it cannot be read: {other:?}"),
    };
    TableError::Malformed {
        file: file.into(),
        line,
        reason,
    }
}

/// The columns that are inputs, sorted by name, so that their order in the file does not matter.
fn inputs(
    file: &Path,
    header: &[String],
    wanted: &WantedTable<'_>,
) -> Result<Vec<Column>, TableError> {
    let mut names = header.to_vec();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(TableError::SameName {
            file: file.into(),
            name: pair[0].clone(),
        });
    }
    let given = [
        ("target", vec![wanted.target]),
        ("categories", strs(wanted.categories)),
        ("ignore", strs(wanted.ignore)),
        ("scale", wanted.scale.keys().map(String::as_str).collect()),
    ];
    for (key, columns) in given {
        if let Some(name) = columns
            .iter()
            .find(|name| !header.iter().any(|h| h == *name))
        {
            let likeness = |known: &&String| (strsim::jaro_winkler(name, known) * 1e6) as u64;
            let nearest = header.iter().max_by_key(likeness).cloned();
            return Err(TableError::NoColumn {
                file: file.into(),
                key,
                name: (*name).to_owned(),
                nearest: nearest.unwrap_or_default(),
            });
        }
    }
    let is_input = |name: &String| name != wanted.target && !wanted.ignore.contains(name);
    let column = |name: String| match wanted.categories.contains(&name) {
        true => Column::Category {
            buckets: wanted.buckets,
            name,
        },
        false => Column::Number {
            scale: wanted.scale.get(&name).copied(),
            name,
        },
    };
    let columns: Vec<Column> = names.into_iter().filter(is_input).map(column).collect();
    match columns.is_empty() {
        true => Err(TableError::NoInputs(file.into())),
        false => Ok(columns),
    }
}

fn strs(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// Checks that a file has the columns of the first one.
fn same(file: &Path, first: Vec<Column>, columns: &[Column]) -> Result<Vec<Column>, TableError> {
    let only = |a: &[Column], b: &[Column]| a.iter().find(|column| !b.contains(column)).cloned();
    match only(columns, &first).or_else(|| only(&first, columns)) {
        None => Ok(first),
        Some(column) => Err(TableError::OtherColumns {
            file: file.into(),
            name: column.name().to_owned(),
        }),
    }
}
