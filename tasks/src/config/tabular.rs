//! The keys of `kind = "tabular"`.

use super::error::ConfigError;
use super::raw::{RawTask, settings};
use super::values::{
    Classes, DataSource, NO_TABLE, Objective, OnBadRecord, WIDTH_MAX, count, share,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// The value of `task.kind`.
pub(super) const KIND: &str = "tabular";

settings! {
    /// A perceptron on the rows of a table.
    TabularConfig {
        /// A CSV file, or a folder of them.
        data: DataSource = DataSource::Bundled,
        /// Share of the rows to hold out.
        held_out: f64 = 0.1,
        /// Treatment of records that cannot be read.
        #[serde(skip_serializing_if = "OnBadRecord::is_usual")]
        on_bad_record: OnBadRecord = OnBadRecord::Stop,
        /// The column to predict.
        target: String = String::new(),
        /// The kind of target: a class or a number.
        objective: Objective = Objective::Classification,
        /// The classes; `None` for those of the target.
        classes: Option<Classes> = None,
        /// Columns of names instead of numbers.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        categories: Vec<String> = Vec::new(),
        /// Inputs of the model for each of these columns.
        buckets: u32 = 16,
        /// Columns that are no inputs.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        ignore: Vec<String> = Vec::new(),
        /// Cells that mean the same as an empty one.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        missing: Vec<String> = Vec::new(),
        /// Number of hidden layers.
        layers: u32 = 2,
        /// Number of units of each hidden layer.
        hidden: u32 = 64,
        /// Number of rows in a batch.
        batch: u32 = 64,
        /// Mean and standard deviation of columns of numbers.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        scale: BTreeMap<String, [f64; 2]> = BTreeMap::new(),
    }
}

impl TabularConfig {
    /// A small perceptron that predicts a column of a table.
    pub fn of(data: DataSource, target: String, objective: Objective) -> Self {
        Self {
            data,
            target,
            objective,
            ..Self::default()
        }
    }

    /// Reads the table of a task on tables.
    ///
    /// # Errors
    /// Names the key that is wrong, missing or belongs to another kind.
    pub(super) fn from_raw(mut raw: RawTask) -> Result<Self, ConfigError> {
        raw.only(KIND, &[Self::KEYS])?;
        let missing = |key, hint| Err(ConfigError::missing(key, hint));
        let Some(objective) = raw.objective else {
            let hint = "\"classification\" for classes, \"regression\" for numbers";
            return missing("objective", hint);
        };
        let Some(target) = raw.target.clone() else {
            return missing("target", "the column to predict");
        };
        Ok(Self::of(DataSource::Bundled, target, objective).over(&mut raw))
    }

    /// Checks every number against its bounds, and that no column has two uses.
    ///
    /// # Errors
    /// Names the key.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        count("layers", self.layers, 0..=64)?;
        count("hidden", self.hidden, 1..=WIDTH_MAX)?;
        count("batch", self.batch, 1..=65_536)?;
        count("buckets", self.buckets, 1..=4_096)?;
        share(self.held_out)?;
        self.classes.as_ref().map_or(Ok(()), Classes::validate)?;
        if self.objective == Objective::Regression && self.classes.is_some() {
            return Err(ConfigError::Numbers);
        }
        let is_number = self.objective == Objective::Regression;
        let one_use = [("categories", &self.categories), ("ignore", &self.ignore)];
        let mut used = vec![&self.target];
        for (key, name) in one_use
            .iter()
            .flat_map(|(key, names)| names.iter().map(|name| (*key, name)))
        {
            if used.contains(&name) {
                let name = name.clone();
                return Err(ConfigError::Twice { key, name });
            }
            used.push(name);
        }
        for (name, &[mean, deviation]) in &self.scale {
            if used.contains(&name) && !(is_number && *name == self.target) {
                let (key, name) = ("scale", name.clone());
                return Err(ConfigError::Twice { key, name });
            }
            if !(mean.is_finite() && deviation > 0.0 && deviation.is_finite()) {
                return Err(ConfigError::Scale(name.clone()));
            }
        }
        self.data.path(NO_TABLE).map(drop)
    }
}
