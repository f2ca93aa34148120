//! Codecs as data: what the `[compression]` table says. Ranges are checked by the grid.

use super::{Bf16, Codec, F32, Int8, TopK};
use serde::{Deserialize, Serialize};

/// A codec with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "codec", rename_all = "kebab-case", deny_unknown_fields)]
pub enum CodecKind {
    /// [`F32`].
    F32,
    /// [`Bf16`].
    Bf16,
    /// [`Int8`].
    Int8,
    /// [`TopK`].
    TopK {
        /// Share of the values that are kept, in `(0, 1]`.
        density: f64,
    },
}

impl CodecKind {
    /// Its name in the configuration.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::Int8 => "int8",
            Self::TopK { .. } => "top-k",
        }
    }

    /// The codec itself.
    ///
    /// # Panics
    /// If a parameter is out of its range.
    pub fn build(&self) -> Box<dyn Codec> {
        match *self {
            Self::F32 => Box::new(F32),
            Self::Bf16 => Box::new(Bf16),
            Self::Int8 => Box::new(Int8::default()),
            Self::TopK { density } => Box::new(TopK::new(density)),
        }
    }
}
