//! Settings that are one of several names.

use super::error::{ConfigError, unknown};
use serde::Serialize;

macro_rules! names {
    ($(#[$doc:meta])* $kind:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        pub enum $kind { $($(#[$variant_doc])* #[serde(rename = $name)] $variant),+ }

        impl $kind {
            pub(super) const NAMES: &[&'static str] = &[$($name),+];

            pub(super) fn parse(key: &'static str, name: &str) -> Result<Self, ConfigError> {
                match name {
                    $($name => Ok(Self::$variant),)+
                    _ => Err(unknown("task", key, name, Self::NAMES)),
                }
            }
        }
    };
}

names!(
    /// Built-in image classifiers.
    ImageModel {
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
    Architecture {
        /// Llama.
        Llama = "llama",
        /// GPT-2.
        Gpt2 = "gpt2",
    }
);

names!(
    /// What a model of a table predicts.
    Objective {
        /// One of several classes.
        Classification = "classification",
        /// A number.
        Regression = "regression",
    }
);

names!(
    /// What is done with a record of the data that cannot be read: a line, a row or an image.
    OnBadRecord {
        /// The daemon that meets it stops and names it.
        Stop = "stop",
        /// It is left out, counted and named.
        Skip = "skip",
    }
);

impl OnBadRecord {
    /// Whether it is what a configuration means that says nothing.
    pub(super) fn is_usual(&self) -> bool {
        *self == Self::Stop
    }

    pub(super) fn from_raw(name: Option<&str>) -> Result<Self, ConfigError> {
        name.map_or(Ok(Self::Stop), |name| Self::parse("on_bad_record", name))
    }
}

names!(
    /// Random changes of training images.
    Augmentation {
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
