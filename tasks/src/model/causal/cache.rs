//! Keys and values of the tokens that a model has seen, so that each further token costs one row.

use burn::tensor::Tensor;

/// The keys and values of every layer, for one text.
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
