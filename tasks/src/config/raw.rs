//! The `[task]` table as it is written, with the keys of every kind.

use super::error::{ConfigError, nearest};
use super::source::DataSource;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

/// The keys of all kinds of tasks. Each kind checks which keys it accepts, because its message is
/// clearer than serde's.
#[derive(Deserialize)]
pub(super) struct RawTask {
    pub(super) kind: Option<String>,
    pub(super) data: Option<DataSource>,
    pub(super) held_out: Option<f64>,
    pub(super) model: Option<String>,
    pub(super) hidden: Option<u32>,
    pub(super) batch: Option<u32>,
    pub(super) augmentation: Option<String>,
    pub(super) layers: Option<u32>,
    pub(super) width: Option<u32>,
    pub(super) heads: Option<u32>,
    pub(super) context: Option<u32>,
    pub(super) patience_s: Option<f64>,
    #[serde(flatten)]
    pub(super) others: BTreeMap<String, IgnoredAny>,
}

impl RawTask {
    /// Refuses keys of other kinds and unknown keys.
    ///
    /// # Errors
    /// Names the first such key, and the known key that is nearest to it.
    pub(super) fn only(
        &self,
        kind: &'static str,
        foreign: &[(&'static str, bool)],
        keys: &[&'static str],
    ) -> Result<(), ConfigError> {
        let foreign = foreign
            .iter()
            .filter(|(_, there)| *there)
            .map(|(key, _)| *key);
        let wrong = foreign.chain(self.others.keys().map(String::as_str)).next();
        match wrong {
            None => Ok(()),
            Some(key) => Err(ConfigError::Key {
                table: "task",
                key: key.to_owned(),
                kind,
                nearest: nearest(key, keys),
            }),
        }
    }
}
