//! Reads CSV files cell by cell.

use super::classes::{Place, Values};
use super::columns::{Column, Targets, number, scaled};
use crate::config::{Objective, TabularConfig};
use crate::data::BadRecords;
use crate::data::error::{CELLS_MAX, DataError, Problem, at};
use crate::data::first_bytes::{foreign_format, without_mark};
use crate::data::text::files_of;
use crate::rng;
use csv::{ErrorKind, ReaderBuilder, StringRecord};
use murmurate_protocol::Digest;
use murmurate_strategies::names::hint;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// The rows of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    path: PathBuf,
    pub(super) columns: Vec<Column>,
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
    pub(crate) fn read(
        path: &Path,
        config: &TabularConfig,
        bad: &BadRecords,
    ) -> Result<Self, DataError> {
        let mut reader = Reader::new(config, bad);
        for file in files(path)? {
            reader.read(&file)?;
        }
        reader.finish(path)
    }

    /// Hash of what the inputs and outputs of a model stand for: names, scales and buckets of the columns, and
    /// the names of the classes or the scale of the target.
    pub(crate) const fn meaning(&self) -> Digest {
        self.meaning
    }

    /// Number of inputs of the model.
    pub(crate) fn inputs(&self) -> usize {
        self.columns.iter().map(Column::inputs).sum()
    }

    /// The targets, one for each row.
    pub(crate) const fn targets(&self) -> &Targets {
        &self.targets
    }

    /// Appends the inputs of one row.
    ///
    /// # Panics
    /// If there is no such row.
    pub(crate) fn append(&self, row: usize, into: &mut Vec<f32>) {
        let cells = &self.cells[row * self.columns.len()..][..self.columns.len()];
        for (column, cell) in self.columns.iter().zip(cells) {
            column.append(*cell, into);
        }
    }

    /// The rows to train on, and a share of all rows to hold out, by a hash of their numbers.
    ///
    /// # Errors
    /// If one of them is empty.
    pub(crate) fn split(&self, share: f64) -> Result<(Vec<u32>, Vec<u32>), DataError> {
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

/// Bytes in which the first line is looked at.
const FIRST_LINE: usize = 64 << 10;

/// The file, or the tables of a folder and its sub-folders in the order of their names.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>, DataError> {
    let mut files = files_of(path)?;
    if path.is_dir() {
        files.retain(|file| {
            let name = lower_name(file);
            let name = name.strip_suffix(".gz").unwrap_or(&name);
            name.ends_with(".csv") || name.ends_with(".tsv")
        });
    }
    if files.is_empty() {
        return Err(at(path)(Problem::NoTables));
    }
    Ok(files)
}

fn lower_name(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default();
    name.to_string_lossy().to_lowercase()
}

/// An open file at its header.
struct Opened {
    file: BufReader<File>,
    /// The byte between two cells.
    delimiter: u8,
    /// Lines before the header.
    passed: u64,
}

impl Opened {
    /// Passes over a byte-order mark and the line `sep=;` that spreadsheets write. Without that line, a
    /// file that does not end in `.tsv` and has no comma in its header has semicolons or tabs.
    fn new(path: &Path) -> Result<Self, DataError> {
        let io = at(path);
        let mut file = BufReader::with_capacity(FIRST_LINE, File::open(path).map_err(io)?);
        let bytes = file.fill_buf().map_err(io)?;
        if let Some(format) = foreign_format(bytes) {
            let needed = "a table as text";
            return Err(at(path)(Problem::Foreign { format, needed }));
        }
        let text = without_mark(bytes);
        let mark = bytes.len() - text.len();
        let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let has = |byte: u8| line.contains(&byte);
        let (delimiter, passed) = match line.trim_ascii_end() {
            [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', byte] => (*byte, 1),
            _ if lower_name(path).ends_with(".tsv") => (b'\t', 0),
            _ if !has(b',') && has(b';') => (b';', 0),
            _ if !has(b',') && has(b'\t') => (b'\t', 0),
            _ => (b',', 0),
        };
        let before = match passed {
            0 => mark,
            _ => bytes.len().min(mark + line.len() + 1),
        };
        file.consume(before);
        Ok(Self {
            file,
            delimiter,
            passed,
        })
    }
}

/// Collects the rows of one or more files.
pub(super) struct Reader<'a> {
    config: &'a TabularConfig,
    bad: &'a BadRecords,
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
    pub(super) fn new(config: &'a TabularConfig, bad: &'a BadRecords) -> Self {
        Self {
            config,
            bad,
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
    pub(super) fn read(&mut self, file: &Path) -> Result<(), DataError> {
        let Opened {
            file: opened,
            delimiter,
            passed,
        } = Opened::new(file)?;
        let mut reader = ReaderBuilder::new()
            .delimiter(delimiter)
            .from_reader(opened);
        let header = reader
            .headers()
            .map_err(|error| wrong(file, passed, &error))?;
        let header: Vec<String> = header.iter().map(|name| name.trim().to_owned()).collect();
        let columns = inputs(file, &header, self.config)?;
        let columns = match self.columns.take() {
            None => columns,
            Some(first) => same(file, first, &columns)?,
        };
        let place = |name: &str| header.iter().position(|found| found == name);
        let target = place(&self.config.target).unwrap_or_default();
        let places: Vec<usize> = columns
            .iter()
            .filter_map(|column| place(column.name()))
            .collect();
        let mut record = StringRecord::new();
        loop {
            let read = match reader.read_record(&mut record) {
                Ok(true) => {
                    if self.cells.len() + places.len() > CELLS_MAX {
                        return Err(at(file)(Problem::TooManyCells));
                    }
                    let cell = |at: usize| Place {
                        file: file.into(),
                        line: passed + record.position().map_or(0, csv::Position::line),
                        column: header[at].clone(),
                        value: record[at].to_owned(),
                    };
                    self.row((&columns, &places), target, &record, &cell)
                }
                Ok(false) => break,
                Err(error) if error.is_io_error() => return Err(wrong(file, passed, &error)),
                Err(error) => Err(wrong(file, passed, &error)),
            };
            self.bad.checked(read)?;
        }
        self.columns = Some(columns);
        Ok(())
    }

    /// Appends a row, or nothing of it if one of its cells is wrong.
    fn row(
        &mut self,
        (columns, places): (&[Column], &[usize]),
        target: usize,
        record: &StringRecord,
        cell: &dyn Fn(usize) -> Place,
    ) -> Result<(), DataError> {
        let missing = &self.config.missing;
        let text = |at: usize| match record[at].trim() {
            text if missing.iter().any(|known| known == text) => "",
            text => text,
        };
        let before = self.cells.len();
        let mut read = Ok(());
        for (column, &at) in columns.iter().zip(places) {
            match column.cell(text(at)) {
                Ok(found) => self.cells.push(found),
                Err(reason) => read = read.and(Err(cell(at).wrong(&reason))),
            }
        }
        let read = read.and_then(|()| self.target(text(target), || cell(target)));
        match read {
            Ok(()) => self.rows += 1,
            Err(_) => self.cells.truncate(before),
        }
        read
    }

    fn target(&mut self, text: &str, place: impl Fn() -> Place) -> Result<(), DataError> {
        if text.is_empty() {
            return Err(place().wrong("it is what to predict, so it must not be empty"));
        }
        if self.config.objective == Objective::Classification {
            return self.values.push(text, place);
        }
        let found = number(text).map_err(|reason| {
            place().wrong(&format!(
                "{reason} (for classes write objective = \"classification\")"
            ))
        })?;
        let scale = self.config.scale.get(&self.config.target);
        let found = scale.map_or(found as f32, |scale| scaled(found, *scale));
        if !found.is_finite() {
            return Err(place().wrong("it is too large"));
        }
        self.numbers.push(found);
        Ok(())
    }

    /// The table, which errors call by its path.
    fn finish(self, path: &Path) -> Result<Table, DataError> {
        let given = self.config.classes.as_ref();
        let columns = self.columns.unwrap_or_default();
        let scale = self.config.scale.get(&self.config.target);
        let classes = self.values.names(given);
        let meaning = Digest::of(format!("{columns:?} {classes:?} {scale:?}").as_bytes());
        let targets = match self.config.objective {
            Objective::Regression => Targets::Values(self.numbers),
            Objective::Classification => {
                let (labels, classes) = self.values.labels(given)?;
                Targets::Labels { labels, classes }
            }
        };
        Ok(Table {
            path: path.into(),
            columns,
            cells: self.cells,
            rows: self.rows,
            targets,
            meaning,
        })
    }
}

/// An error of the CSV reader, with its line.
fn wrong(file: &Path, passed: u64, error: &csv::Error) -> DataError {
    let line = passed + error.position().map_or(1, csv::Position::line);
    let reason = match error.kind() {
        ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => format!("it has {len} cells, but the header {expected_len}"),
        ErrorKind::Utf8 { .. } => "it is no UTF-8 (a table is a text file)".to_owned(),
        other => format!("it cannot be read: {other:?}"),
    };
    at(format!("{}:{line}", file.display()).as_ref())(Problem::Malformed(reason))
}

/// The columns that are inputs, sorted by name, so that their order in the file does not matter.
fn inputs(
    file: &Path,
    header: &[String],
    wanted: &TabularConfig,
) -> Result<Vec<Column>, DataError> {
    let mut names = header.to_vec();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(at(file)(Problem::SameName(pair[0].clone())));
    }
    let given = [
        ("target", vec![wanted.target.as_str()]),
        ("categories", strs(&wanted.categories)),
        ("ignore", strs(&wanted.ignore)),
        ("scale", wanted.scale.keys().map(String::as_str).collect()),
    ];
    for (key, columns) in given {
        if let Some(name) = columns
            .iter()
            .find(|name| !header.iter().any(|h| h == *name))
        {
            return Err(at(file)(Problem::NotInHeader {
                key,
                name: (*name).to_owned(),
                hint: hint(name, header),
            }));
        }
    }
    let is_input = |name: &String| *name != wanted.target && !wanted.ignore.contains(name);
    let column = |name: String| {
        if wanted.categories.contains(&name) {
            Column::Category {
                buckets: wanted.buckets as usize,
                name,
            }
        } else {
            Column::Number {
                scale: wanted.scale.get(&name).copied(),
                name,
            }
        }
    };
    let columns: Vec<Column> = names.into_iter().filter(is_input).map(column).collect();
    if columns.is_empty() {
        return Err(at(file)(Problem::NoInputs));
    }
    Ok(columns)
}

fn strs(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// Checks that a file has the columns of the first one.
fn same(file: &Path, first: Vec<Column>, columns: &[Column]) -> Result<Vec<Column>, DataError> {
    let only = |a: &[Column], b: &[Column]| a.iter().find(|column| !b.contains(column)).cloned();
    match only(columns, &first).or_else(|| only(&first, columns)) {
        None => Ok(first),
        Some(column) => Err(at(file)(Problem::OtherColumns(column.name().to_owned()))),
    }
}
