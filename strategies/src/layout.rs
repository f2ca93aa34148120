//! The layout: the place of each tensor in the flat parameters.

use murmurate_protocol::{Digest, LayoutHash, wire};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// One tensor of the flat parameters, row-major.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorSpec {
    /// Its path in the model, such as `layer1.weight`.
    pub name: String,
    /// Its shape, outermost first.
    pub shape: Vec<u64>,
    /// Index of its first value in the flat parameters.
    pub offset: u64,
}

impl TensorSpec {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.shape.iter().product::<u64>() as usize
    }

    /// Set for a tensor without values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its range in the flat parameters.
    pub fn range(&self) -> Range<usize> {
        let start = self.offset as usize;
        start..start + self.len()
    }
}

/// All tensors of a model, back to back in a fixed order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    tensors: Vec<TensorSpec>,
}

impl Layout {
    /// Lays tensors out back to back in the order given.
    pub fn new<N: Into<String>>(tensors: impl IntoIterator<Item = (N, Vec<u64>)>) -> Self {
        let mut offset = 0;
        let tensors = tensors
            .into_iter()
            .map(|(name, shape)| {
                let spec = TensorSpec {
                    name: name.into(),
                    shape,
                    offset,
                };
                offset += spec.len() as u64;
                spec
            })
            .collect();
        Self { tensors }
    }

    /// The tensors in order.
    pub fn tensors(&self) -> &[TensorSpec] {
        &self.tensors
    }

    /// Number of values of all tensors.
    pub fn len(&self) -> usize {
        self.tensors.last().map_or(0, |t| t.range().end)
    }

    /// Set where there is nothing to train.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The hash that peers compare: of names, shapes and order.
    pub fn hash(&self) -> LayoutHash {
        LayoutHash::from_bytes(*Digest::of(&wire::canonical(self)).as_bytes())
    }
}
