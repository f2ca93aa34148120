//! The keys of `kind = "image-classifier"`.

use super::error::ConfigError;
use super::raw::RawTask;
use super::values::{
    Augmentation, Classes, DataSource, ImageModel, OnBadRecord, WIDTH_MAX, count, share,
};
use crate::data::IMAGE_SIDE_MAX;
use serde::Serialize;

/// The value of `task.kind`.
pub(super) const KIND: &str = "image-classifier";

const KEYS: [&str; 12] = [
    "kind",
    "data",
    "held_out",
    "on_bad_record",
    "model",
    "hidden",
    "batch",
    "augmentation",
    "classes",
    "size",
    "channels",
    "width",
];

/// An image classifier.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImageConfig {
    /// Source of the images.
    pub data: DataSource,
    /// Share of the training images to hold out instead of using the `t10k-` files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_out: Option<f64>,
    /// Treatment of records that cannot be read.
    #[serde(skip_serializing_if = "OnBadRecord::is_usual")]
    pub on_bad_record: OnBadRecord,
    /// The model.
    pub model: ImageModel,
    /// Number of units of the hidden layer.
    pub hidden: u32,
    /// Number of images in a batch.
    pub batch: u32,
    /// Random changes of training images.
    pub augmentation: Augmentation,
    /// The classes; `None` for those of the training images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Classes>,
    /// Height and width; `None` for those of the first image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<[u32; 2]>,
    /// 1 for grey, 3 for colours; `None` for that of the first image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channels: Option<u32>,
    /// Channels of the first stage of a ResNet; `None` for 64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
}

impl Default for ImageConfig {
    fn default() -> Self {
        Self {
            data: DataSource::Bundled,
            held_out: None,
            on_bad_record: OnBadRecord::Stop,
            model: ImageModel::Mlp,
            hidden: 256,
            batch: 128,
            augmentation: Augmentation::Shift1,
            classes: None,
            size: None,
            channels: None,
            width: None,
        }
    }
}

impl ImageConfig {
    /// Reads the table of an image classifier.
    ///
    /// # Errors
    /// Names the key that is wrong or belongs to another kind.
    pub(super) fn from_raw(raw: RawTask) -> Result<Self, ConfigError> {
        raw.only(KIND, &KEYS)?;
        let usual = Self::default();
        let model = raw.model.as_deref();
        let augmentation = raw.augmentation.as_deref();
        let model = model.map_or(Ok(usual.model), |name| ImageModel::parse("model", name))?;
        if raw.width.is_some() && model != ImageModel::ResNet18 {
            return Err(ConfigError::OtherModel {
                key: "width",
                model: ImageModel::NAMES[model as usize],
            });
        }
        Ok(Self {
            model,
            augmentation: augmentation.map_or(Ok(usual.augmentation), |name| {
                Augmentation::parse("augmentation", name)
            })?,
            data: raw.data.unwrap_or(usual.data),
            held_out: raw.held_out,
            on_bad_record: OnBadRecord::from_raw(raw.on_bad_record.as_deref())?,
            hidden: raw.hidden.unwrap_or(usual.hidden),
            batch: raw.batch.unwrap_or(usual.batch),
            classes: raw.classes,
            size: raw.size,
            channels: raw.channels,
            width: raw.width,
        })
    }

    /// Checks every number against its bounds.
    ///
    /// # Errors
    /// Names the key that is out of bounds.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        count("hidden", self.hidden, 1..=WIDTH_MAX)?;
        count("batch", self.batch, 1..=65_536)?;
        self.classes.as_ref().map_or(Ok(()), Classes::validate)?;
        for side in self.size.into_iter().flatten() {
            count("size", side, 1..=IMAGE_SIDE_MAX)?;
        }
        if let Some(channels) = self.channels.filter(|channels| ![1, 3].contains(channels)) {
            return Err(ConfigError::Channels(channels));
        }
        self.width
            .map_or(Ok(()), |width| count("width", width, 1..=1_024))?;
        self.held_out.map_or(Ok(()), share)
    }
}
