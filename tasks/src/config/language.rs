//! The keys of `kind = "language-model"`.

use super::error::ConfigError;
use super::raw::{RawTask, settings};
use super::values::{DataSource, NO_TEXT, OnBadRecord, WIDTH_MAX, count, share};
use serde::Serialize;

/// The value of `task.kind`.
pub(super) const KIND: &str = "language-model";

settings! {
    /// A byte-level language model.
    LanguageConfig {
        /// Source of the text.
        data: DataSource = DataSource::Bundled,
        /// The key of JSON objects or the column of Parquet files with the text; `None` for "text".
        column: Option<String> = None,
        /// Share of the text to hold out, from its end.
        held_out: f64 = 0.05,
        /// Treatment of records that cannot be read.
        #[serde(skip_serializing_if = "OnBadRecord::is_usual")]
        on_bad_record: OnBadRecord = OnBadRecord::Stop,
        /// Number of transformer blocks.
        layers: u32 = 4,
        /// Size of the vector for one byte.
        width: u32 = 128,
        /// Number of attention heads.
        heads: u32 = 4,
        /// Length of the model's input in bytes.
        context: u32 = 128,
        /// Number of windows of `context` bytes in a batch.
        batch: u32 = 16,
    }
}

impl LanguageConfig {
    /// The small default model on a text.
    pub fn of(data: DataSource) -> Self {
        Self {
            data,
            ..Self::default()
        }
    }

    /// Reads the table of a language model.
    ///
    /// # Errors
    /// Names the key that is wrong or belongs to another kind.
    pub(super) fn from_raw(mut raw: RawTask) -> Result<Self, ConfigError> {
        raw.only(KIND, &[Self::KEYS])?;
        Ok(Self::of(DataSource::Bundled).over(&mut raw))
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
