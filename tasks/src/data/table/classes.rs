//! The cells of a target, and from their values to labels.

use crate::config::Classes;
use crate::data::error::{DataError, Problem, at};
use murmurate_strategies::names::hint;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The most classes, as labels are 16 bits.
const CLASSES_MAX: usize = 1 << 16;

/// The most characters of a value that an error shows.
const SHOWN: usize = 40;

/// One cell of a file.
pub(super) struct Place {
    pub(super) file: PathBuf,
    pub(super) line: u64,
    pub(super) column: String,
    pub(super) value: String,
}

impl Place {
    /// An error about the cell.
    pub(super) fn wrong(&self, reason: &str) -> DataError {
        let cell = Problem::Cell {
            column: self.column.clone(),
            value: self.value.escape_debug().take(SHOWN).collect(),
            reason: reason.to_owned(),
        };
        at(format!("{}:{}", self.file.display(), self.line).as_ref())(cell)
    }
}

/// The different values of a target in the order of their first rows.
#[derive(Default)]
pub(super) struct Values {
    numbers: BTreeMap<String, u32>,
    places: Vec<Place>,
    /// The value of each row.
    rows: Vec<u32>,
}

impl Values {
    /// Takes the value of the next row.
    ///
    /// # Errors
    /// If there are too many different values.
    pub(super) fn push(&mut self, text: &str, place: impl Fn() -> Place) -> Result<(), DataError> {
        let number = match self.numbers.get(text) {
            Some(number) => *number,
            None if self.places.len() == CLASSES_MAX => {
                let reason = "the column has too many values for classes (is it a number? then write \
                              objective = \"regression\")";
                return Err(place().wrong(reason));
            }
            None => {
                let number = self.places.len() as u32;
                self.numbers.insert(text.to_owned(), number);
                self.places.push(place());
                number
            }
        };
        self.rows.push(number);
        Ok(())
    }

    /// Names of the labels in their order; none where the values are labels themselves.
    pub(super) fn names(&self, given: Option<&Classes>) -> Vec<String> {
        let mut values = self.numbers.keys();
        match given.and_then(Classes::names) {
            Some(names) => names.to_vec(),
            None if given.is_some() || values.all(|text| text.parse::<u16>().is_ok()) => Vec::new(),
            None => self.numbers.keys().cloned().collect(),
        }
    }

    /// The label of each row, and the number of classes. Given names are labels in their order; otherwise
    /// whole numbers are labels, and other values are classes in the order of their names.
    ///
    /// # Errors
    /// If a value is none of the given classes.
    pub(super) fn labels(self, given: Option<&Classes>) -> Result<(Vec<u16>, usize), DataError> {
        let mut labels = vec![0; self.places.len()];
        let all = || self.numbers.iter().map(|(text, n)| (text, *n as usize));
        let whole = |text: &String| text.parse::<u16>().ok();
        let classes = if let Some(names) = given.and_then(Classes::names) {
            for (text, n) in all() {
                let found = names.iter().position(|name| name == text);
                labels[n] =
                    found.ok_or_else(|| self.places[n].wrong(&none_of(text, names)))? as u16;
            }
            names.len()
        } else if given.is_some() || all().all(|(text, _)| whole(text).is_some()) {
            for (text, n) in all() {
                let no_label = "it is no label (write the names of the classes as `task.classes`)";
                labels[n] = whole(text).ok_or_else(|| self.places[n].wrong(no_label))?;
            }
            self.count(&labels, given.map(Classes::count))?
        } else {
            // The map is in the order of names.
            for (label, (_, n)) in all().enumerate() {
                labels[n] = label as u16;
            }
            labels.len()
        };
        let rows = self.rows.iter().map(|&n| labels[n as usize]);
        Ok((rows.collect(), classes))
    }

    /// Number of classes: the given one, or one more than the largest label, if at least half of the labels
    /// occur.
    fn count(&self, labels: &[u16], given: Option<usize>) -> Result<usize, DataError> {
        let largest = labels.iter().enumerate().max_by_key(|(_, label)| **label);
        let Some((n, &label)) = largest else {
            return Ok(given.unwrap_or_default());
        };
        let (found, needed) = (labels.len(), usize::from(label) + 1);
        match given {
            Some(classes) if needed > classes => Err(self.places[n].wrong(&format!(
                "`task.classes` is {classes} (labels count from 0)"
            ))),
            None if 2 * found < needed => Err(self.places[n].wrong(&format!(
                "only {found} of the labels up to it occur (set `task.classes` = {needed} if that is right)"
            ))),
            _ => Ok(given.unwrap_or(needed)),
        }
    }
}

fn none_of(text: &str, names: &[String]) -> String {
    format!("it is none of `task.classes`; {}", hint(text, names))
}
