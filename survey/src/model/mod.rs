//! Models as the network sees them: tensors and FLOPs, layer by layer, generated from the
//! architecture. No weights.

mod bert;
mod layer;
mod resnet50;

pub use layer::Layer;

use crate::constants::Constants;

/// A model: its layers in the order of the forward pass.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelProfile {
    /// Its name in the survey.
    pub name: &'static str,
    /// Layers.
    pub layers: Vec<Layer>,
}

/// The models of the survey.
pub(crate) const NAMES: [&str; 3] = ["ResNet-50", "BERT-Base", "BERT-Large"];

impl ModelProfile {
    /// A model of the survey by its name there.
    pub fn named(name: &str, constants: &Constants) -> Option<Self> {
        let sentence = u64::from(constants.sentence);
        let (name, layers) = match name {
            "ResNet-50" => (NAMES[0], resnet50::layers()),
            "BERT-Base" => (NAMES[1], bert::layers(768, 12, sentence)),
            "BERT-Large" => (NAMES[2], bert::layers(1024, 24, sentence)),
            _ => return None,
        };
        Some(Self { name, layers })
    }

    /// Parameters in all.
    pub fn parameters(&self) -> u64 {
        self.layers.iter().map(Layer::parameters).sum()
    }

    /// Tensors in all.
    pub fn tensors(&self) -> usize {
        self.layers.iter().map(|layer| layer.tensors.len()).sum()
    }

    /// Floating-point operations of the forward pass of one sample.
    pub fn flops(&self) -> f64 {
        self.layers.iter().map(|layer| layer.flops).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(name: &str) -> ModelProfile {
        ModelProfile::named(name, &Constants::shipped().unwrap()).unwrap()
    }

    #[test]
    fn parameters_are_those_of_the_architectures() {
        // torchvision's resnet50: 25,557,032 in 161 tensors.
        let resnet = model("ResNet-50");
        assert_eq!((resnet.parameters(), resnet.tensors()), (25_557_032, 161));
        // BertForPreTraining: 110,106,428 and 336,226,108 with the tied decoder counted once.
        assert_eq!(model("BERT-Base").parameters(), 110_106_428);
        assert_eq!(model("BERT-Large").parameters(), 336_226_108);
    }

    #[test]
    fn flops_are_those_of_the_architectures() {
        // 4.1 G multiply-adds at 224 x 224.
        let giga = model("ResNet-50").flops() * 1e-9;
        assert!((8.0..8.4).contains(&giga), "{giga}");
        // The vocabulary head is about a fifth of BERT-Base.
        let base = model("BERT-Base");
        let head = base.layers.iter().find(|l| l.name == "decoder").unwrap();
        let share = head.flops / base.flops();
        assert!((0.18..0.23).contains(&share), "{share}");
    }

    #[test]
    fn the_tied_embedding_is_the_first_of_forward() {
        let base = model("BERT-Base");
        assert_eq!(base.layers[0].tensors[0], 30_522 * 768);
    }

    #[test]
    fn others_are_not_known() {
        assert!(ModelProfile::named("VGG-16", &Constants::shipped().unwrap()).is_none());
    }
}
