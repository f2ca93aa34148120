//! A task by its settings: one variant for each kind.

use super::attached::{self, AttachedConfig};
use super::error::{ConfigError, unknown};
use super::image::{self, ImageConfig};
use super::language::{self, LanguageConfig};
use super::names::ImageModel;
use super::raw::RawTask;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Every value of `task.kind`.
const KINDS: [&str; 3] = [image::KIND, language::KIND, attached::KIND];

/// The settings of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", try_from = "RawTask")]
pub enum TaskConfig {
    /// An image classifier on IDX files.
    ImageClassifier(ImageConfig),
    /// A transformer on bytes of text.
    LanguageModel(LanguageConfig),
    /// A trainer in a process of its own, in any framework.
    Attached(AttachedConfig),
}

impl Default for TaskConfig {
    /// The task of a run without configuration. `examples/label_shards.rs` shows how these values were
    /// chosen.
    fn default() -> Self {
        Self::ImageClassifier(ImageConfig::default())
    }
}

impl TaskConfig {
    /// The value of `task.kind`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::ImageClassifier(_) => image::KIND,
            Self::LanguageModel(_) => language::KIND,
            Self::Attached(_) => attached::KIND,
        }
    }

    /// Checks all settings.
    ///
    /// # Errors
    /// Names the invalid key.
    pub fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::ImageClassifier(config) => config.validate(),
            Self::LanguageModel(config) => config.validate(),
            Self::Attached(config) => config.validate(),
        }
    }
}

impl fmt::Display for TaskConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ImageClassifier(c) => {
                write!(
                    f,
                    "image classifier ({}, hidden {}, batch {})",
                    ImageModel::NAMES[c.model as usize],
                    c.hidden,
                    c.batch
                )
            }
            Self::LanguageModel(c) => {
                write!(
                    f,
                    "language model ({} layers, width {}, context {}, batch {})",
                    c.layers, c.width, c.context, c.batch
                )
            }
            Self::Attached(_) => f.write_str("attached trainer"),
        }
    }
}

impl TryFrom<RawTask> for TaskConfig {
    type Error = ConfigError;

    fn try_from(raw: RawTask) -> Result<Self, ConfigError> {
        let kind = raw.kind.clone().ok_or(ConfigError::Missing {
            table: "task",
            key: "kind",
            hint: "\"image-classifier\", \"language-model\" or \"attached\"",
        })?;
        let config = match kind.as_str() {
            image::KIND => Self::ImageClassifier(ImageConfig::from_raw(raw)?),
            language::KIND => Self::LanguageModel(LanguageConfig::from_raw(raw)?),
            attached::KIND => Self::Attached(AttachedConfig::from_raw(raw)?),
            _ => return Err(unknown("task", "kind", &kind, &KINDS)),
        };
        config.validate()?;
        Ok(config)
    }
}
