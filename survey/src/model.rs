//! Models as the network sees them: tensors and FLOPs, layer by layer, generated from the
//! architecture. No weights.

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
            "ResNet-50" => (NAMES[0], resnet50()),
            "BERT-Base" => (NAMES[1], bert(768, 12, sentence)),
            "BERT-Large" => (NAMES[2], bert(1024, 24, sentence)),
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
fn layer(name: String, tensors: impl Into<Vec<u64>>, flops: u64) -> Layer {
    Layer {
        name,
        tensors: tensors.into(),
        flops: flops as f64,
    }
}

const VOCABULARY: u64 = 30_522;
const POSITIONS: u64 = 512;
const SEGMENTS: u64 = 2;

/// BERT for pre-training (Devlin et al. 2018, arXiv 1810.04805): encoder, masked-language head with
/// the decoder tied to the word embedding, next-sentence head.
///
/// The tied weight is one tensor: it belongs to the first layer, because its gradient is complete
/// only when the backward pass has come back to the embedding.
///
/// Layers in the order of the forward pass, for a hidden size, a depth and tokens of a sample.
fn bert(hidden: u64, depth: usize, tokens: u64) -> Vec<Layer> {
    let h = hidden;
    let dense = |name: String, from: u64, to: u64, more: u64| {
        layer(name, [from * to, to], 2 * from * to * tokens + more)
    };
    let norm = |name: String| layer(name, [h, h], 8 * h * tokens);
    let embeddings = [VOCABULARY * h, POSITIONS * h, SEGMENTS * h, h, h];
    let mut layers = vec![layer("embeddings".to_owned(), embeddings, 8 * h * tokens)];
    for block in 0..depth {
        let name = |part: &str| format!("encoder.{block}.{part}");
        layers.push(dense(name("query"), h, h, 0));
        layers.push(dense(name("key"), h, h, 0));
        // Scores and their product with the values have no parameters of their own.
        layers.push(dense(name("value"), h, h, 4 * tokens * tokens * h));
        layers.push(dense(name("attention"), h, h, 0));
        layers.push(norm(name("attention-norm")));
        layers.push(dense(name("wide"), h, 4 * h, 0));
        layers.push(dense(name("narrow"), 4 * h, h, 0));
        layers.push(norm(name("norm")));
    }
    // The pooler and the next-sentence head see one token of each sample.
    layers.push(layer("pooler".to_owned(), [h * h, h], 2 * h * h));
    let transform = [h * h, h, h, h];
    layers.push(layer("transform".to_owned(), transform, 2 * h * h * tokens));
    let decoder = 2 * VOCABULARY * h * tokens;
    layers.push(layer("decoder".to_owned(), [VOCABULARY], decoder));
    layers.push(layer("next-sentence".to_owned(), [2 * h, 2], 4 * h));
    layers
}

/// Width, blocks and output resolution of each stage.
const STAGES: [(u64, usize, u64); 4] = [(64, 3, 56), (128, 4, 28), (256, 6, 14), (512, 3, 7)];

/// Ratio of a bottleneck's output width to its inner width.
const EXPANSION: u64 = 4;

const CLASSES: u64 = 1000;

/// A convolution without bias and its batch norm.
fn convolution(name: &str, (from, to): (u64, u64), kernel: u64, side: u64, into: &mut Vec<Layer>) {
    let weights = from * to * kernel * kernel;
    let pixels = side * side;
    into.push(layer(
        format!("{name}.conv"),
        [weights],
        2 * weights * pixels,
    ));
    into.push(layer(format!("{name}.bn"), [to, to], 4 * to * pixels));
}

/// ResNet-50 (He et al. 2015, arXiv 1512.03385, table 1) at 224 x 224, as torchvision builds it:
/// the stride of a stage is in the 3 x 3 convolution of its first block.
///
/// Layers in the order of the forward pass.
fn resnet50() -> Vec<Layer> {
    let mut layers = Vec::new();
    convolution("stem", (3, 64), 7, 112, &mut layers);
    let mut width = 64;
    for (stage, (inside, blocks, side)) in STAGES.into_iter().enumerate() {
        for block in 0..blocks {
            let name = format!("stage{}.{block}", stage + 1);
            let strided = block == 0 && stage > 0;
            let entry = if strided { 2 * side } else { side };
            let out = inside * EXPANSION;
            convolution(&format!("{name}.a"), (width, inside), 1, entry, &mut layers);
            convolution(&format!("{name}.b"), (inside, inside), 3, side, &mut layers);
            convolution(&format!("{name}.c"), (inside, out), 1, side, &mut layers);
            if block == 0 {
                convolution(&format!("{name}.skip"), (width, out), 1, side, &mut layers);
            }
            width = out;
        }
    }
    layers.push(layer(
        "fc".to_owned(),
        [width * CLASSES, CLASSES],
        2 * width * CLASSES,
    ));
    layers
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
