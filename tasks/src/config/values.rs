//! The values of keys that several kinds of tasks have: names, counts, shares, classes, and where data come from.

use super::error::{ConfigError, unknown};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// The largest number of hidden units, and the largest width of a model.
pub(super) const WIDTH_MAX: u32 = 16_384;

/// Checks a count against its bounds.
pub(super) fn count(
    key: &'static str,
    found: u32,
    bounds: RangeInclusive<u32>,
) -> Result<(), ConfigError> {
    if bounds.contains(&found) {
        return Ok(());
    }
    let (least, most) = bounds.into_inner();
    Err(ConfigError::Count {
        key,
        found,
        least,
        most,
    })
}

/// Checks the share of data that is held out.
pub(super) fn share(held_out: f64) -> Result<(), ConfigError> {
    if (0.001..=0.5).contains(&held_out) {
        return Ok(());
    }
    Err(ConfigError::HeldOut(held_out))
}

/// Name of the data inside the binary.
pub const BUNDLED: &str = "bundled";

/// Advice for tasks on text without a path.
pub(crate) const NO_TEXT: &str = "no text is bundled: give a text file or a folder of them";

/// Advice for tasks on tables without a path.
pub(crate) const NO_TABLE: &str = "no table is bundled: give a CSV file or a folder of them";

/// Source of the data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum DataSource {
    /// The images in the binary.
    #[default]
    Bundled,
    /// A folder of IDX files, or a text file or folder.
    Path(PathBuf),
}

impl DataSource {
    /// The path; the task has no data inside the binary.
    ///
    /// # Errors
    /// With this advice, if there is none.
    pub(crate) fn path(&self, advice: &'static str) -> Result<&Path, ConfigError> {
        match self {
            Self::Bundled => Err(ConfigError::missing("data", advice)),
            Self::Path(path) => Ok(path),
        }
    }
}

impl From<String> for DataSource {
    fn from(text: String) -> Self {
        match text.as_str() {
            BUNDLED => Self::Bundled,
            _ => Self::Path(text.into()),
        }
    }
}

impl From<DataSource> for String {
    fn from(source: DataSource) -> Self {
        match source {
            DataSource::Bundled => BUNDLED.to_owned(),
            DataSource::Path(path) => path.to_string_lossy().into_owned(),
        }
    }
}

/// The most classes.
pub const CLASSES_MAX: u32 = 65_536;

/// The classes of labelled data as the configuration gives them, so that daemons with different data
/// make the same model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "`classes` must be a number of classes or a list of their names"
)]
pub enum Classes {
    /// Their number. Labels count from zero.
    Count(u32),
    /// Their names in the order of their labels.
    Names(Vec<String>),
}

impl Classes {
    /// Number of classes.
    pub fn count(&self) -> usize {
        match self {
            Self::Count(count) => *count as usize,
            Self::Names(names) => names.len(),
        }
    }

    /// Their names, if these are given.
    pub fn names(&self) -> Option<&[String]> {
        match self {
            Self::Count(_) => None,
            Self::Names(names) => Some(names),
        }
    }

    /// Checks the number, and that no name is given twice.
    ///
    /// # Errors
    /// Names the key.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let found = u32::try_from(self.count()).unwrap_or(u32::MAX);
        count("classes", found, 1..=CLASSES_MAX)?;
        let mut names = self.names().unwrap_or_default().to_vec();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(ConfigError::Twice {
                key: "classes",
                name: pair[0].clone(),
            }),
            None => Ok(()),
        }
    }
}

/// Declares the names that one key may have.
macro_rules! names {
    ($(#[$doc:meta])* $kind:ident of $key:literal { $($(#[$variant_doc:meta])* $variant:ident = $name:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub enum $kind { $($(#[$variant_doc])* #[serde(rename = $name)] $variant),+ }

        impl $kind {
            pub(super) const NAMES: &[&'static str] = &[$($name),+];
        }

        impl TryFrom<String> for $kind {
            type Error = ConfigError;

            fn try_from(name: String) -> Result<Self, ConfigError> {
                match name.as_str() {
                    $($name => Ok(Self::$variant),)+
                    _ => Err(unknown("task", $key, &name, Self::NAMES)),
                }
            }
        }
    };
}

names!(
    /// Built-in image classifiers.
    ImageModel of "model" {
        /// One hidden layer.
        Mlp = "mlp",
        /// Two convolutions and one hidden layer.
        Cnn = "cnn",
        /// Eighteen layers with shortcuts.
        ResNet18 = "resnet18",
    }
);

names!(
    /// Architectures of causal language models.
    Architecture of "architecture" {
        /// Llama.
        Llama = "llama",
        /// GPT-2.
        Gpt2 = "gpt2",
    }
);

names!(
    /// The kind of target that a model of a table predicts.
    Objective of "objective" {
        /// One of several classes.
        Classification = "classification",
        /// A number.
        Regression = "regression",
    }
);

names!(
    /// Treatment of a record of the data that cannot be read: a line, a row or an image.
    OnBadRecord of "on_bad_record" {
        /// The daemon that meets it stops and names it.
        Stop = "stop",
        /// It is left out, counted and named.
        Skip = "skip",
    }
);

impl OnBadRecord {
    /// The value of a configuration that has no such key.
    pub(super) fn is_usual(&self) -> bool {
        *self == Self::Stop
    }
}

names!(
    /// Random changes of training images.
    Augmentation of "augmentation" {
        /// Leaves images unchanged.
        None = "none",
        /// Shifts images by up to one pixel in each direction.
        Shift1 = "shift-1",
        /// Shifts images by up to two pixels in each direction.
        Shift2 = "shift-2",
    }
);

impl Augmentation {
    /// Largest shift in pixels, in each direction.
    pub const fn shift_px(self) -> usize {
        match self {
            Self::None => 0,
            Self::Shift1 => 1,
            Self::Shift2 => 2,
        }
    }
}
