//! One layer of a model.

/// One layer: its computation and its exchanged tensors.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Its name in the architecture.
    pub name: String,
    /// Parameters of each of its tensors, in the order of the forward pass.
    pub tensors: Vec<u64>,
    /// Floating-point operations of its forward pass for one sample.
    pub flops: f64,
}

impl Layer {
    /// Its parameters.
    pub fn parameters(&self) -> u64 {
        self.tensors.iter().sum()
    }
}

/// A layer of its name, the parameters of its tensors and the FLOPs of its forward pass for one
/// sample.
pub(super) fn layer(name: String, tensors: impl Into<Vec<u64>>, flops: u64) -> Layer {
    Layer {
        name,
        tensors: tensors.into(),
        flops: flops as f64,
    }
}
