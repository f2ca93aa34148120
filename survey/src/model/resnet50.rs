//! ResNet-50 (He et al. 2015, arXiv 1512.03385, table 1) at 224 x 224, as torchvision builds it:
//! the stride of a stage is in the 3 x 3 convolution of its first block.

use super::layer::{Layer, layer};

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

/// Layers in the order of the forward pass.
pub(super) fn layers() -> Vec<Layer> {
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
