//! The `[task]` table as it is written, with the keys of every kind.

use super::classes::Classes;
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
    pub(super) on_bad_record: Option<String>,
    pub(super) model: Option<String>,
    pub(super) hidden: Option<u32>,
    pub(super) batch: Option<u32>,
    pub(super) augmentation: Option<String>,
    pub(super) layers: Option<u32>,
    pub(super) width: Option<u32>,
    pub(super) heads: Option<u32>,
    pub(super) context: Option<u32>,
    pub(super) patience_s: Option<f64>,
    pub(super) architecture: Option<String>,
    pub(super) tokenizer: Option<String>,
    pub(super) kv_heads: Option<u32>,
    pub(super) tied: Option<bool>,
    pub(super) accumulate: Option<u32>,
    pub(super) clip_norm: Option<f64>,
    pub(super) label_smoothing: Option<f64>,
    pub(super) lora_rank: Option<u32>,
    pub(super) lora_alpha: Option<f64>,
    pub(super) lora_targets: Option<Vec<String>>,
    pub(super) classes: Option<Classes>,
    pub(super) size: Option<[u32; 2]>,
    pub(super) channels: Option<u32>,
    pub(super) target: Option<String>,
    pub(super) objective: Option<String>,
    pub(super) categories: Option<Vec<String>>,
    pub(super) buckets: Option<u32>,
    pub(super) ignore: Option<Vec<String>>,
    pub(super) missing: Option<Vec<String>>,
    pub(super) scale: Option<BTreeMap<String, [f64; 2]>>,
    pub(super) column: Option<String>,
    #[serde(flatten)]
    pub(super) others: BTreeMap<String, IgnoredAny>,
}

impl RawTask {
    /// The keys that only a causal language model has, for [`RawTask::only`].
    pub(super) fn causal(&self) -> [(&'static str, bool); 10] {
        [
            ("architecture", self.architecture.is_some()),
            ("tokenizer", self.tokenizer.is_some()),
            ("kv_heads", self.kv_heads.is_some()),
            ("tied", self.tied.is_some()),
            ("accumulate", self.accumulate.is_some()),
            ("clip_norm", self.clip_norm.is_some()),
            ("label_smoothing", self.label_smoothing.is_some()),
            ("lora_rank", self.lora_rank.is_some()),
            ("lora_alpha", self.lora_alpha.is_some()),
            ("lora_targets", self.lora_targets.is_some()),
        ]
    }

    /// The keys that only tasks on labelled data have, for [`RawTask::only`].
    pub(super) fn labelled(&self) -> [(&'static str, bool); 10] {
        let [a, b, c, d, e, f, g] = self.tables();
        let classes = ("classes", self.classes.is_some());
        let size = ("size", self.size.is_some());
        let channels = ("channels", self.channels.is_some());
        [classes, size, channels, a, b, c, d, e, f, g]
    }

    /// The keys that only tables have, for [`RawTask::only`].
    pub(super) fn tables(&self) -> [(&'static str, bool); 7] {
        [
            ("target", self.target.is_some()),
            ("objective", self.objective.is_some()),
            ("categories", self.categories.is_some()),
            ("buckets", self.buckets.is_some()),
            ("ignore", self.ignore.is_some()),
            ("missing", self.missing.is_some()),
            ("scale", self.scale.is_some()),
        ]
    }

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
