//! The keys of `kind = "attached"`: a trainer in a process of its own.

use super::error::ConfigError;
use super::raw::{RawTask, settings};
use serde::Serialize;

/// The value of `task.kind`.
pub(super) const KIND: &str = "attached";

/// The longest patience: a day.
const PATIENCE_MAX_S: f64 = 86_400.0;

settings! {
    /// A trainer in a process of its own, which chooses its model and its data itself.
    AttachedConfig {
        /// The least time in seconds without an inner step after which the trainer counts as hung.
        patience_s: f64 = 120.0,
    }
}

impl AttachedConfig {
    /// Reads the table of an attached trainer.
    ///
    /// # Errors
    /// Names the key that belongs to another kind.
    pub(super) fn from_raw(mut raw: RawTask) -> Result<Self, ConfigError> {
        raw.only(KIND, &[Self::KEYS])?;
        Ok(Self::default().over(&mut raw))
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
