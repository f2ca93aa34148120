//! The keys of `kind = "image-classifier"`.

use super::error::ConfigError;
use super::raw::{RawTask, settings};
use super::values::{
    Augmentation, Classes, DataSource, ImageModel, OnBadRecord, WIDTH_MAX, count, share,
};
use crate::data::IMAGE_SIDE_MAX;
use serde::Serialize;

/// The value of `task.kind`.
pub(super) const KIND: &str = "image-classifier";

settings! {
    /// An image classifier.
    ImageConfig {
        /// Source of the images.
        data: DataSource = DataSource::Bundled,
        /// Share of the training images to hold out instead of using the `t10k-` files.
        held_out: Option<f64> = None,
        /// Treatment of records that cannot be read.
        #[serde(skip_serializing_if = "OnBadRecord::is_usual")]
        on_bad_record: OnBadRecord = OnBadRecord::Stop,
        /// Number of units of the hidden layer.
        hidden: u32 = 256,
        /// Number of images in a batch.
        batch: u32 = 128,
        /// Random changes of training images.
        augmentation: Augmentation = Augmentation::Shift1,
        /// The classes; `None` for those of the training images.
        classes: Option<Classes> = None,
        /// Height and width; `None` for those of the first image.
        size: Option<[u32; 2]> = None,
        /// 1 for grey, 3 for colours; `None` for that of the first image.
        channels: Option<u32> = None,
        /// Channels of the first stage of a ResNet; `None` for 64.
        width: Option<u32> = None,
    }
    also {
        /// The model.
        model: ImageModel = ImageModel::Mlp,
    }
}

impl ImageConfig {
    /// Reads the table of an image classifier.
    ///
    /// # Errors
    /// Names the key that is wrong or belongs to another kind.
    pub(super) fn from_raw(mut raw: RawTask) -> Result<Self, ConfigError> {
        raw.only(KIND, &[Self::KEYS, &["model"]])?;
        let mut usual = Self::default();
        if let Some(name) = &raw.model {
            usual.model = name.clone().try_into()?;
        }
        let this = usual.over(&mut raw);
        if this.width.is_some() && this.model != ImageModel::ResNet18 {
            return Err(ConfigError::OtherModel {
                key: "width",
                model: ImageModel::NAMES[this.model as usize],
            });
        }
        Ok(this)
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
