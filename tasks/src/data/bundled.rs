//! The subset of MNIST in the binary, for runs without other data: 10,000 training and 2,000
//! held-out images. `tasks/data/mnist-subset` describes them and their source.

use super::idx;
use super::labelled::{Labelled, LabelledPair, wide};
use std::path::Path;

const TRAIN_IMAGES: &[u8] = include_bytes!("../../data/mnist-subset/train-images-idx3-ubyte.gz");
const TRAIN_LABELS: &[u8] = include_bytes!("../../data/mnist-subset/train-labels-idx1-ubyte.gz");
const HELD_IMAGES: &[u8] = include_bytes!("../../data/mnist-subset/t10k-images-idx3-ubyte.gz");
const HELD_LABELS: &[u8] = include_bytes!("../../data/mnist-subset/t10k-labels-idx1-ubyte.gz");

/// The digits.
const CLASSES: usize = 10;

/// Unpacks the images: about 20 ms and 9.4 MB.
pub fn mnist() -> LabelledPair {
    let set = |images, labels| Labelled {
        images: idx::parse_images(images).expect("the bundled images are tested"),
        labels: wide(&idx::parse_labels(labels).expect("the bundled labels are tested")),
    };
    let (train, held) = (
        set(TRAIN_IMAGES, TRAIN_LABELS),
        set(HELD_IMAGES, HELD_LABELS),
    );
    LabelledPair::new(train, held, CLASSES, Path::new("bundled"))
        .expect("the bundled sets are tested")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_images_are_all_there() {
        let pair = mnist();
        assert_eq!(
            (pair.train.len(), pair.held.len(), pair.classes),
            (10_000, 2_000, 10)
        );
        assert_eq!(
            (
                pair.train.images.shape().height,
                pair.train.images.shape().area()
            ),
            (28, 784)
        );
        assert_eq!(pair.train.labels[..10], [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]);
        for class in 0..10 {
            assert_eq!(
                pair.held
                    .labels
                    .iter()
                    .filter(|&&label| label == class)
                    .count(),
                200
            );
        }
    }
}
