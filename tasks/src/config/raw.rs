//! The `[task]` table as it is written: every key of every kind, and which belong together.

use super::error::unknown;
use super::{
    Augmentation, ConfigError, DataSource, ImageConfig, ImageModel, LanguageConfig, TaskConfig,
    nearest,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

pub(super) const KINDS: [&str; 2] = ["image-classifier", "language-model"];
const IMAGE_KEYS: [&str; 7] = [
    "kind",
    "data",
    "held_out",
    "model",
    "hidden",
    "batch",
    "augmentation",
];
const LANGUAGE_KEYS: [&str; 8] = [
    "kind", "data", "held_out", "layers", "width", "heads", "context", "batch",
];

/// Every key of every kind: which belong together is checked with better words than serde's.
#[derive(Deserialize)]
pub(super) struct RawTask {
    kind: Option<String>,
    data: Option<DataSource>,
    held_out: Option<f64>,
    model: Option<String>,
    hidden: Option<u32>,
    batch: Option<u32>,
    augmentation: Option<String>,
    layers: Option<u32>,
    width: Option<u32>,
    heads: Option<u32>,
    context: Option<u32>,
    #[serde(flatten)]
    others: BTreeMap<String, IgnoredAny>,
}

impl TryFrom<RawTask> for TaskConfig {
    type Error = ConfigError;

    fn try_from(raw: RawTask) -> Result<Self, ConfigError> {
        let kind = raw.kind.as_deref().ok_or(ConfigError::Missing {
            table: "task",
            key: "kind",
            hint: "\"image-classifier\" or \"language-model\"",
        })?;
        let config = match kind {
            "image-classifier" => Self::ImageClassifier(raw.image()?),
            "language-model" => Self::LanguageModel(raw.language()?),
            _ => return Err(unknown("task", "kind", kind, &KINDS)),
        };
        config.validate()?;
        Ok(config)
    }
}

impl RawTask {
    fn image(self) -> Result<ImageConfig, ConfigError> {
        let foreign = [
            ("layers", self.layers.is_some()),
            ("width", self.width.is_some()),
            ("heads", self.heads.is_some()),
            ("context", self.context.is_some()),
        ];
        self.only(KINDS[0], &foreign, &IMAGE_KEYS)?;
        let usual = ImageConfig::default();
        let model = self.model.as_deref();
        let augmentation = self.augmentation.as_deref();
        Ok(ImageConfig {
            model: model.map_or(Ok(usual.model), |name| ImageModel::parse("model", name))?,
            augmentation: augmentation.map_or(Ok(usual.augmentation), |name| {
                Augmentation::parse("augmentation", name)
            })?,
            data: self.data.unwrap_or(usual.data),
            held_out: self.held_out,
            hidden: self.hidden.unwrap_or(usual.hidden),
            batch: self.batch.unwrap_or(usual.batch),
        })
    }

    fn language(self) -> Result<LanguageConfig, ConfigError> {
        let foreign = [
            ("model", self.model.is_some()),
            ("hidden", self.hidden.is_some()),
            ("augmentation", self.augmentation.is_some()),
        ];
        self.only(KINDS[1], &foreign, &LANGUAGE_KEYS)?;
        let usual = LanguageConfig::of(self.data.unwrap_or_default());
        Ok(LanguageConfig {
            held_out: self.held_out.unwrap_or(usual.held_out),
            layers: self.layers.unwrap_or(usual.layers),
            width: self.width.unwrap_or(usual.width),
            heads: self.heads.unwrap_or(usual.heads),
            context: self.context.unwrap_or(usual.context),
            batch: self.batch.unwrap_or(usual.batch),
            data: usual.data,
        })
    }

    fn only(
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
