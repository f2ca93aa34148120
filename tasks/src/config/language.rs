//! The keys of `kind = "language-model"`.

use super::error::ConfigError;
use super::raw::RawTask;
use super::values::{DataSource, NO_TEXT, OnBadRecord, WIDTH_MAX, count, share};
use serde::Serialize;

/// The value of `task.kind`.
pub(super) const KIND: &str = "language-model";

const KEYS: [&str; 10] = [
    "kind",
    "data",
    "column",
    "held_out",
    "on_bad_record",
    "layers",
    "width",
    "heads",
    "context",
    "batch",
];

/// A byte-level language model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LanguageConfig {
    /// Source of the text.
    pub data: DataSource,
    /// The key of JSON objects or the column of Parquet files with the text; `None` for "text".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Share of the text to hold out, from its end.
    pub held_out: f64,
    /// Treatment of records that cannot be read.
    #[serde(skip_serializing_if = "OnBadRecord::is_usual")]
    pub on_bad_record: OnBadRecord,
    /// Number of transformer blocks.
    pub layers: u32,
    /// Size of the vector for one byte.
    pub width: u32,
    /// Number of attention heads.
    pub heads: u32,
    /// Length of the model's input in bytes.
    pub context: u32,
    /// Number of windows of `context` bytes in a batch.
    pub batch: u32,
}

impl LanguageConfig {
    /// The small default model on a text.
    pub const fn of(data: DataSource) -> Self {
        Self {
            data,
            column: None,
            held_out: 0.05,
            on_bad_record: OnBadRecord::Stop,
            layers: 4,
            width: 128,
            heads: 4,
            context: 128,
            batch: 16,
        }
    }

    /// Reads the table of a language model.
    ///
    /// # Errors
    /// Names the key that is wrong or belongs to another kind.
    pub(super) fn from_raw(raw: RawTask) -> Result<Self, ConfigError> {
        raw.only(KIND, &KEYS)?;
        let usual = Self::of(raw.data.unwrap_or_default());
        Ok(Self {
            column: raw.column,
            held_out: raw.held_out.unwrap_or(usual.held_out),
            on_bad_record: OnBadRecord::from_raw(raw.on_bad_record.as_deref())?,
            layers: raw.layers.unwrap_or(usual.layers),
            width: raw.width.unwrap_or(usual.width),
            heads: raw.heads.unwrap_or(usual.heads),
            context: raw.context.unwrap_or(usual.context),
            batch: raw.batch.unwrap_or(usual.batch),
            data: usual.data,
        })
    }

    /// Checks every number against its bounds.
    ///
    /// # Errors
    /// Names the key that is out of bounds, or the data that are missing.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        count("layers", self.layers, 1..=256)?;
        count("width", self.width, 8..=WIDTH_MAX)?;
        count("heads", self.heads, 1..=256)?;
        count("context", self.context, 2..=16_384)?;
        count("batch", self.batch, 1..=65_536)?;
        share(self.held_out)?;
        if !self.width.is_multiple_of(self.heads) {
            return Err(ConfigError::Heads {
                heads: self.heads,
                width: self.width,
            });
        }
        self.data.path(NO_TEXT).map(drop)
    }
}
