//! The keys of `kind = "attached"`: a trainer in a process of its own.

use super::error::ConfigError;
use super::raw::RawTask;
use serde::Serialize;

/// The value of `task.kind`.
pub(super) const KIND: &str = "attached";

const KEYS: [&str; 2] = ["kind", "patience_s"];

/// The longest patience: a day.
const PATIENCE_MAX_S: f64 = 86_400.0;

/// A trainer in a process of its own, which chooses its model and its data itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AttachedConfig {
    /// The least time in seconds without an inner step after which the trainer counts as hung.
    pub patience_s: f64,
}

impl Default for AttachedConfig {
    fn default() -> Self {
        Self { patience_s: 120.0 }
    }
}

impl AttachedConfig {
    /// Reads the table of an attached trainer.
    ///
    /// # Errors
    /// Names the key that belongs to another kind.
    pub(super) fn from_raw(raw: RawTask) -> Result<Self, ConfigError> {
        raw.only(KIND, &KEYS)?;
        let usual = Self::default();
        Ok(Self {
            patience_s: raw.patience_s.unwrap_or(usual.patience_s),
        })
    }

    /// Checks the patience against its bounds.
    ///
    /// # Errors
    /// When it is out of bounds.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        if (1.0..=PATIENCE_MAX_S).contains(&self.patience_s) {
            return Ok(());
        }
        Err(ConfigError::Patience(self.patience_s))
    }
}
