//! The keys of `kind = "tabular"`.

use super::error::ConfigError;
use super::raw::RawTask;
use super::values::{
    Classes, DataSource, NO_TABLE, Objective, OnBadRecord, WIDTH_MAX, count, share,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// The value of `task.kind`.
pub(super) const KIND: &str = "tabular";

const KEYS: [&str; 15] = [
    "kind",
    "data",
    "held_out",
    "on_bad_record",
    "missing",
    "target",
    "objective",
    "classes",
    "categories",
    "buckets",
    "ignore",
    "scale",
    "hidden",
    "layers",
    "batch",
];

/// A perceptron on the rows of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TabularConfig {
    /// A CSV file, or a folder of them.
    pub data: DataSource,
    /// Share of the rows to hold out.
    pub held_out: f64,
    /// Treatment of records that cannot be read.
    #[serde(skip_serializing_if = "OnBadRecord::is_usual")]
    pub on_bad_record: OnBadRecord,
    /// The column to predict.
    pub target: String,
    /// The kind of target: a class or a number.
    pub objective: Objective,
    /// The classes; `None` for those of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Classes>,
    /// Columns of names instead of numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// Inputs of the model for each of these columns.
    pub buckets: u32,
    /// Columns that are no inputs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// Cells that mean the same as an empty one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Number of hidden layers.
    pub layers: u32,
    /// Number of units of each hidden layer.
    pub hidden: u32,
    /// Number of rows in a batch.
    pub batch: u32,
    /// Mean and standard deviation of columns of numbers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub scale: BTreeMap<String, [f64; 2]>,
}

impl TabularConfig {
    /// A small perceptron that predicts a column of a table.
    pub const fn of(data: DataSource, target: String, objective: Objective) -> Self {
        Self {
            data,
            held_out: 0.1,
            on_bad_record: OnBadRecord::Stop,
            target,
            objective,
            classes: None,
            categories: Vec::new(),
            buckets: 16,
            ignore: Vec::new(),
            missing: Vec::new(),
            layers: 2,
            hidden: 64,
            batch: 64,
            scale: BTreeMap::new(),
        }
    }

    /// Reads the table of a task on tables.
    ///
    /// # Errors
    /// Names the key that is wrong, missing or belongs to another kind.
    pub(super) fn from_raw(raw: RawTask) -> Result<Self, ConfigError> {
        raw.only(KIND, &KEYS)?;
        let missing = ConfigError::missing;
        let target = raw.target.ok_or(missing("target", "the column to predict"));
        let objective = raw.objective.ok_or(missing(
            "objective",
            "\"classification\" for classes, \"regression\" for numbers",
        ));
        let objective = Objective::parse("objective", &objective?)?;
        let usual = Self::of(raw.data.unwrap_or_default(), target?, objective);
        Ok(Self {
            held_out: raw.held_out.unwrap_or(usual.held_out),
            on_bad_record: OnBadRecord::from_raw(raw.on_bad_record.as_deref())?,
            classes: raw.classes,
            categories: raw.categories.unwrap_or_default(),
            buckets: raw.buckets.unwrap_or(usual.buckets),
            ignore: raw.ignore.unwrap_or_default(),
            missing: raw.missing.unwrap_or_default(),
            layers: raw.layers.unwrap_or(usual.layers),
            hidden: raw.hidden.unwrap_or(usual.hidden),
            batch: raw.batch.unwrap_or(usual.batch),
            scale: raw.scale.unwrap_or_default(),
            ..usual
        })
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
