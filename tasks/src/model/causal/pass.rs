//! One pass through a model: the tokens that it reads, the keys and values that it keeps, and its last layer.

use super::parts::linear;
use crate::model::layers::{Sight, capped};
use burn::tensor::{Int, Tensor};
use std::sync::Arc;

/// Tokens of a batch.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// `[batch, context]`, each below the vocabulary.
    pub(crate) tokens: Tensor<2, Int>,
    /// Position at which the document of each token begins, `[batch * context]`, where a row has several that
    /// do not see one another.
    pub(crate) starts: Option<Arc<[u32]>>,
}

impl Row {
    /// Each row is one document.
    pub(crate) const fn whole(tokens: Tensor<2, Int>) -> Self {
        Self {
            tokens,
            starts: None,
        }
    }

    pub(super) fn sight(&self, before: usize) -> Sight {
        Sight {
            before,
            window: None,
            starts: self.starts.clone(),
        }
    }
}

/// The last layer of a model: from activations to logits.
pub(crate) struct Output {
    /// `[vocabulary, width]`.
    pub(crate) weight: Tensor<2>,
    /// Logits are `cap tanh(logit / cap)`.
    pub(crate) cap: Option<f64>,
}

impl Output {
    /// Logits `[rows, vocabulary]` of activations `[rows, width]`.
    pub(crate) fn logits(&self, x: &Tensor<2>) -> Tensor<2> {
        capped(linear(x, self.weight.clone()), self.cap)
    }
}

/// The keys and values of every layer for one text, so that each further token costs one row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cache {
    /// `[1, heads, length, d]` of each layer.
    layers: Vec<[Tensor<4>; 2]>,
}

impl Cache {
    /// Tokens seen.
    pub(crate) fn len(&self) -> usize {
        self.layers.first().map_or(0, |[keys, _]| keys.dims()[2])
    }

    /// Adds those of new tokens to one layer and returns all of it. A new layer is the one after the last.
    pub(super) fn extend(&mut self, layer: usize, new: [Tensor<4>; 2]) -> [Tensor<4>; 2] {
        match self.layers.get_mut(layer) {
            None => {
                assert_eq!(self.layers.len(), layer, "layers come in their order");
                self.layers.push(new);
            }
            Some(old) => {
                let pairs = old.each_mut().into_iter().zip(new);
                for (old, new) in pairs {
                    *old = Tensor::cat(vec![old.clone(), new], 2);
                }
            }
        }
        self.layers[layer].clone()
    }
}
