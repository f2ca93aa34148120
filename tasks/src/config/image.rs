//! The keys of `kind = "image-classifier"`.

use super::error::ConfigError;
use super::names::{Augmentation, ImageModel};
use super::range::{WIDTH_MAX, count, share};
use super::raw::RawTask;
use super::source::DataSource;
use serde::Serialize;

/// The value of `task.kind`.
pub(super) const KIND: &str = "image-classifier";

const KEYS: [&str; 7] = [
    "kind",
    "data",
    "held_out",
    "model",
    "hidden",
    "batch",
    "augmentation",
];

/// An image classifier.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImageConfig {
    /// Source of the images.
    pub data: DataSource,
    /// Share of the training images to hold out instead of using the `t10k-` files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_out: Option<f64>,
    /// The model.
    pub model: ImageModel,
    /// Number of units of the hidden layer.
    pub hidden: u32,
    /// Number of images in a batch.
    pub batch: u32,
    /// Random changes of training images.
    pub augmentation: Augmentation,
}

impl Default for ImageConfig {
    fn default() -> Self {
        Self {
            data: DataSource::Bundled,
            held_out: None,
            model: ImageModel::Mlp,
            hidden: 256,
            batch: 128,
            augmentation: Augmentation::Shift1,
        }
    }
}

impl ImageConfig {
    /// Reads the table of an image classifier.
    ///
    /// # Errors
    /// Names the key that is wrong or belongs to another kind.
    pub(super) fn from_raw(raw: RawTask) -> Result<Self, ConfigError> {
        let foreign = [
            ("patience_s", raw.patience_s.is_some()),
            ("column", raw.column.is_some()),
            ("layers", raw.layers.is_some()),
            ("width", raw.width.is_some()),
            ("heads", raw.heads.is_some()),
            ("context", raw.context.is_some()),
        ];
        raw.only(KIND, &foreign, &KEYS)?;
        raw.only(KIND, &raw.causal(), &KEYS)?;
        let usual = Self::default();
        let model = raw.model.as_deref();
        let augmentation = raw.augmentation.as_deref();
        Ok(Self {
            model: model.map_or(Ok(usual.model), |name| ImageModel::parse("model", name))?,
            augmentation: augmentation.map_or(Ok(usual.augmentation), |name| {
                Augmentation::parse("augmentation", name)
            })?,
            data: raw.data.unwrap_or(usual.data),
            held_out: raw.held_out,
            hidden: raw.hidden.unwrap_or(usual.hidden),
            batch: raw.batch.unwrap_or(usual.batch),
        })
    }

    /// Checks every number against its bounds.
    ///
    /// # Errors
    /// Names the key that is out of bounds.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        count("hidden", self.hidden, 1..=WIDTH_MAX)?;
        count("batch", self.batch, 1..=65_536)?;
        self.held_out.map_or(Ok(()), share)
    }
}
