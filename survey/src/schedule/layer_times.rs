//! How long each layer computes: its share of the model's FLOPs, scaled to the iteration that was
//! measured on one GPU.

use crate::constants::Constants;
use crate::model::{Layer, ModelProfile};

/// Seconds of each layer, in the order of the forward pass.
#[derive(Clone, Debug)]
pub(super) struct LayerTimes {
    pub(super) forward: Vec<f64>,
    pub(super) backward: Vec<f64>,
    pub(super) optimizer: Vec<f64>,
}

impl LayerTimes {
    /// T_single = forward + backward + optimizer; forward and backward have shares f and 1 - f of
    /// what the optimizer leaves, and a layer has the share of its FLOPs in both.
    ///
    /// Special case: an optimizer as long as the whole iteration leaves no time to compute.
    pub(super) fn new(model: &ModelProfile, constants: &Constants, single: f64) -> Self {
        let optimizer = constants.optimizer_seconds(model.parameters());
        let compute = (single - optimizer).max(0.0);
        let flops = model.flops();
        let times = |seconds: f64| -> Vec<f64> {
            let share = |layer: &Layer| seconds * layer.flops / flops;
            model.layers.iter().map(share).collect()
        };
        let of_layer = |layer: &Layer| constants.optimizer_seconds(layer.parameters());
        Self {
            forward: times(compute * constants.forward_share),
            backward: times(compute * (1.0 - constants.forward_share)),
            optimizer: model.layers.iter().map(of_layer).collect(),
        }
    }

    /// Seconds from the start of backward until a layer's gradients are ready.
    pub(super) fn gradient_ready(&self, layer: usize) -> f64 {
        self.backward[layer..].iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iteration_is_all_of_its_parts() {
        let constants = Constants::shipped().unwrap();
        let model = ModelProfile::named("ResNet-50", &constants).unwrap();
        let times = LayerTimes::new(&model, &constants, 0.25);
        let sum = |values: &[f64]| values.iter().sum::<f64>();
        let whole = sum(&times.forward) + sum(&times.backward) + sum(&times.optimizer);
        assert!((whole - 0.25).abs() < 1e-9);
        assert!((sum(&times.backward) / sum(&times.forward) - 2.0).abs() < 1e-9);
        assert!((times.gradient_ready(0) - sum(&times.backward)).abs() < 1e-12);
    }
}
