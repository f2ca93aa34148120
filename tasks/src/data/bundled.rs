//! The subset of MNIST in the binary, for runs without other data: 10,000 training and 2,000
//! held-out images. `tasks/data/mnist-subset` describes them and their source.

use super::idx::{self, ImageShape, Images};
use super::labelled::wide;

const TRAIN_IMAGES: &[u8] = include_bytes!("../../data/mnist-subset/train-images-idx3-ubyte.gz");
const TRAIN_LABELS: &[u8] = include_bytes!("../../data/mnist-subset/train-labels-idx1-ubyte.gz");
const HELD_IMAGES: &[u8] = include_bytes!("../../data/mnist-subset/t10k-images-idx3-ubyte.gz");
const HELD_LABELS: &[u8] = include_bytes!("../../data/mnist-subset/t10k-labels-idx1-ubyte.gz");

/// The digits.
pub(super) const CLASSES: usize = 10;

/// The shape of all images.
pub(super) const SHAPE: ImageShape = ImageShape {
    height: 28,
    width: 28,
    channels: 1,
};

/// One of the two sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bundled {
    Train,
    Held,
}

impl Bundled {
    /// The class of each image.
    pub(super) fn labels(self) -> Vec<u16> {
        let labels = match self {
            Self::Train => TRAIN_LABELS,
            Self::Held => HELD_LABELS,
        };
        wide(&idx::parse_labels(labels).expect("the bundled labels are tested"))
    }

    /// Unpacks all images: about 20 ms, and 7.8 MB for training.
    pub(super) fn images(self) -> Images {
        idx::parse_images(self.packed()).expect("the bundled images are tested")
    }

    /// Unpacks the images with these indices, in this order. The others take no memory.
    ///
    /// # Panics
    /// If an index is out of bounds.
    pub(super) fn chosen(self, indices: &[u32]) -> Images {
        idx::parse_chosen(self.packed(), indices).expect("the bundled images are tested")
    }

    const fn packed(self) -> &'static [u8] {
        match self {
            Self::Train => TRAIN_IMAGES,
            Self::Held => HELD_IMAGES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_images_are_all_there() {
        for (set, count) in [(Bundled::Train, 10_000), (Bundled::Held, 2_000)] {
            let (images, labels) = (set.images(), set.labels());
            assert_eq!((images.len(), labels.len()), (count, count));
            assert_eq!(images.shape(), SHAPE);
            assert!(labels.iter().all(|&label| usize::from(label) < CLASSES));
        }
        assert_eq!(
            Bundled::Train.labels()[..10],
            [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
        );
        let held = Bundled::Held.labels();
        for class in 0..10 {
            assert_eq!(held.iter().filter(|&&label| label == class).count(), 200);
        }
    }

    #[test]
    fn chosen_images_are_those_of_all_in_the_order_asked_for() {
        let chosen = [1999, 3, 0, 3, 512];
        assert_eq!(
            Bundled::Held.chosen(&chosen),
            Bundled::Held.images().pick(&chosen)
        );
    }
}
