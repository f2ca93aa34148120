//! A task by its settings: one variant for each kind.

use super::attached::{self, AttachedConfig};
use super::causal::{self, CausalConfig, CausalModel};
use super::error::{ConfigError, unknown};
use super::image::{self, ImageConfig};
use super::language::{self, LanguageConfig};
use super::raw::RawTask;
use super::tabular::{self, TabularConfig};
use super::values::{Architecture, DataSource, ImageModel, Objective};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Every value of `task.kind`.
const KINDS: [&str; 5] = [
    image::KIND,
    language::KIND,
    causal::KIND,
    attached::KIND,
    tabular::KIND,
];

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
    /// A Llama or GPT-2 on tokens of text.
    CausalLm(CausalConfig),
    /// A perceptron on the rows of a table.
    Tabular(TabularConfig),
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
            Self::CausalLm(_) => causal::KIND,
            Self::Tabular(_) => tabular::KIND,
        }
    }

    /// The preset of a configuration that names none. Plain SGD hardly trains a transformer and diverges with
    /// convolutions on few colour images, and outer momentum harms models that are averaged often.
    pub const fn usual_preset(&self) -> &'static str {
        match self {
            Self::ImageClassifier(config) if matches!(config.model, ImageModel::Mlp) => "diloco",
            Self::ImageClassifier(_)
            | Self::LanguageModel(_)
            | Self::CausalLm(_)
            | Self::Tabular(_)
            | Self::Attached(_) => "local-adam",
        }
    }

    /// Source of its data; `None` if the trainer in another process has it.
    pub const fn data(&self) -> Option<&DataSource> {
        match self {
            Self::ImageClassifier(config) => Some(&config.data),
            Self::LanguageModel(config) => Some(&config.data),
            Self::CausalLm(config) => Some(&config.data),
            Self::Tabular(config) => Some(&config.data),
            Self::Attached(_) => None,
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
            Self::CausalLm(config) => config.validate(),
            Self::Tabular(config) => config.validate(),
        }
    }
}

impl fmt::Display for TaskConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ImageClassifier(c) => {
                write!(
                    f,
                    "image classifier ({}",
                    ImageModel::NAMES[c.model as usize]
                )?;
                match (c.model, c.width) {
                    (ImageModel::ResNet18, None) => {}
                    (ImageModel::ResNet18, Some(width)) => write!(f, ", width {width}")?,
                    _ => write!(f, ", hidden {}", c.hidden)?,
                }
                write!(f, ", batch {})", c.batch)
            }
            Self::LanguageModel(c) => {
                write!(
                    f,
                    "language model ({} layers, width {}, context {}, batch {})",
                    c.layers, c.width, c.context, c.batch
                )
            }
            Self::Attached(_) => f.write_str("attached trainer"),
            Self::Tabular(c) => {
                let objective = Objective::NAMES[c.objective as usize];
                let (target, layers, hidden, batch) = (&c.target, c.layers, c.hidden, c.batch);
                write!(
                    f,
                    "{objective} of {target} ({layers} layers, hidden {hidden}, batch {batch})"
                )
            }
            Self::CausalLm(c) => {
                write!(f, "{} (", causal::KIND)?;
                match &c.model {
                    CausalModel::Folder { model } => write!(f, "{}", model.display())?,
                    CausalModel::Fresh(m) => {
                        let name = Architecture::NAMES[m.architecture as usize];
                        write!(f, "{name}, {} layers, width {}", m.layers, m.width)?;
                    }
                }
                if let Some(lora) = &c.lora {
                    write!(f, ", adapters of rank {}", lora.rank)?;
                }
                if let Some(context) = c.context {
                    write!(f, ", context {context}")?;
                }
                write!(f, ", batch {})", c.batch)
            }
        }
    }
}

impl TryFrom<RawTask> for TaskConfig {
    type Error = ConfigError;

    fn try_from(raw: RawTask) -> Result<Self, ConfigError> {
        let kind = raw.kind.clone().ok_or(ConfigError::missing(
            "kind",
            "\"image-classifier\", \"language-model\", \"causal-lm\", \"tabular\" or \"attached\"",
        ))?;
        let config = match kind.as_str() {
            image::KIND => Self::ImageClassifier(ImageConfig::from_raw(raw)?),
            language::KIND => Self::LanguageModel(LanguageConfig::from_raw(raw)?),
            attached::KIND => Self::Attached(AttachedConfig::from_raw(raw)?),
            causal::KIND => Self::CausalLm(CausalConfig::from_raw(raw)?),
            tabular::KIND => Self::Tabular(TabularConfig::from_raw(raw)?),
            _ => return Err(unknown("task", "kind", &kind, &KINDS)),
        };
        config.validate()?;
        Ok(config)
    }
}
