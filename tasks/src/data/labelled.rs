//! Labelled images: a training set and a held-out set, from a folder of IDX files or bundled.

use super::idx::{self, IdxError, Images};
use super::{ShardError, Shards};
use std::path::{Path, PathBuf};

/// The smallest share to hold out.
const SHARE_MIN: f64 = 0.001;

/// Why labelled images cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file is invalid.
    #[error(transparent)]
    Idx(#[from] IdxError),
    /// A file is missing.
    #[error(
        "{}: neither `{name}` nor `{name}.gz` is there (a data folder needs the four IDX files \
         that MNIST comes in; with `held_out` = a share, only the two `train-` files)", dir.display()
    )]
    Missing {
        /// The folder.
        dir: PathBuf,
        /// The file's name.
        name: &'static str,
    },
    /// The numbers of images and labels differ.
    #[error("{}: {images} {what} images but {labels} labels (copy the files again)", dir.display())]
    Count {
        /// The folder.
        dir: PathBuf,
        /// The set.
        what: &'static str,
        /// Images.
        images: usize,
        /// Labels.
        labels: usize,
    },
    /// Training and held-out images have different sizes.
    #[error("{}: training and held-out images differ in size or classes, or one is empty", .0.display())]
    Differ(PathBuf),
}

/// Images and their classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labelled {
    /// The images.
    pub images: Images,
    /// The class of each image.
    pub labels: Vec<u8>,
}

impl Labelled {
    /// Number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are no images.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Copies the images with these indices.
    ///
    /// # Panics
    /// If an index is out of bounds.
    pub fn pick(&self, indices: &[u32]) -> Self {
        let area = self.images.area();
        let mut pixels = Vec::with_capacity(indices.len() * area);
        for &index in indices {
            pixels.extend_from_slice(self.images.image(index as usize));
        }
        let labels = indices
            .iter()
            .map(|&index| self.labels[index as usize])
            .collect();
        Self {
            images: Images {
                pixels,
                ..self.images.shape_only()
            },
            labels,
        }
    }
}

impl Images {
    fn shape_only(&self) -> Self {
        Self {
            height: self.height,
            width: self.width,
            pixels: Vec::new(),
        }
    }
}

/// Training and held-out images of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledPair {
    /// The training images: all of them, or one shard after [`LabelledPair::keep_shard`].
    pub train: Labelled,
    /// The held-out images, the same for all peers.
    pub held: Labelled,
    /// Number of classes: one more than the largest label of the whole training set.
    pub classes: usize,
}

impl LabelledPair {
    /// Combines a training set and a held-out set. Errors name `from`.
    ///
    /// # Errors
    /// If the sets do not fit each other.
    pub fn new(train: Labelled, held: Labelled, from: &Path) -> Result<Self, DataError> {
        for (what, set) in [("training", &train), ("held-out", &held)] {
            let (images, labels) = (set.images.len(), set.labels.len());
            if images != labels {
                return Err(DataError::Count {
                    dir: from.into(),
                    what,
                    images,
                    labels,
                });
            }
        }
        let top = |set: &Labelled| {
            set.labels
                .iter()
                .max()
                .map_or(0, |&top| usize::from(top) + 1)
        };
        let classes = top(&train);
        let sides = |set: &Labelled| (set.images.height, set.images.width);
        if train.is_empty()
            || held.is_empty()
            || sides(&train) != sides(&held)
            || top(&held) > classes
        {
            return Err(DataError::Differ(from.into()));
        }
        Ok(Self {
            train,
            held,
            classes,
        })
    }

    /// Reads `train-images-idx3-ubyte`, `train-labels-idx1-ubyte` and the two `t10k-` files in a
    /// folder, each with or without `.gz`. If `share` is given, it holds out evenly spaced training
    /// images instead and does not read the `t10k-` files.
    ///
    /// # Errors
    /// If a file is missing or invalid.
    pub fn read(dir: &Path, share: Option<f64>) -> Result<Self, DataError> {
        let train = Labelled {
            images: idx::read_images(&find(dir, "train-images-idx3-ubyte")?)?,
            labels: idx::read_labels(&find(dir, "train-labels-idx1-ubyte")?)?,
        };
        if let Some(share) = share {
            let (images, labels) = (train.images.len(), train.labels.len());
            if images != labels {
                let what = "training";
                return Err(DataError::Count {
                    dir: dir.into(),
                    what,
                    images,
                    labels,
                });
            }
            let every = (1.0 / share.max(SHARE_MIN)).round().max(2.0) as u32;
            let all = 0..train.len() as u32;
            let (held, rest): (Vec<u32>, Vec<u32>) = all.partition(|i| i % every == every - 1);
            return Self::new(train.pick(&rest), train.pick(&held), dir);
        }
        let held = Labelled {
            images: idx::read_images(&find(dir, "t10k-images-idx3-ubyte")?)?,
            labels: idx::read_labels(&find(dir, "t10k-labels-idx1-ubyte")?)?,
        };
        Self::new(train, held, dir)
    }

    /// Keeps one shard of the training images, and all held-out images.
    ///
    /// # Errors
    /// If the shard does not exist, or has fewer than `needed` images.
    pub fn keep_shard(&mut self, shards: &Shards, needed: usize) -> Result<(), ShardError> {
        let mine = shards.samples(&self.train.labels, needed)?;
        if mine.len() < self.train.len() {
            self.train = self.train.pick(&mine);
        }
        Ok(())
    }
}

fn find(dir: &Path, name: &'static str) -> Result<PathBuf, DataError> {
    let candidates = [dir.join(name), dir.join(format!("{name}.gz"))];
    let found = candidates.into_iter().find(|path| path.is_file());
    found.ok_or_else(|| DataError::Missing {
        dir: dir.into(),
        name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn set(count: usize) -> Labelled {
        let images = Images {
            height: 1,
            width: 2,
            pixels: (0..2 * count as u8).collect(),
        };
        Labelled {
            images,
            labels: (0..count).map(|index| (index % 3) as u8).collect(),
        }
    }

    fn write(dir: &Path, prefix: &str, set: &Labelled) {
        let images = dir.join(format!("{prefix}-images-idx3-ubyte"));
        fs::write(images, idx::encode_images(&set.images)).unwrap();
        let labels = dir.join(format!("{prefix}-labels-idx1-ubyte"));
        fs::write(labels, idx::encode_labels(&set.labels)).unwrap();
    }

    #[test]
    fn a_folder_is_read_and_a_missing_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "train", &set(12));
        let error = LabelledPair::read(dir.path(), None)
            .unwrap_err()
            .to_string();
        assert!(error.contains("t10k-images-idx3-ubyte"), "{error}");
        write(dir.path(), "t10k", &set(6));
        let pair = LabelledPair::read(dir.path(), None).unwrap();
        assert_eq!(
            (pair.train.len(), pair.held.len(), pair.classes),
            (12, 6, 3)
        );
    }

    #[test]
    fn a_share_of_the_training_images_can_be_held_out() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "train", &set(12));
        let pair = LabelledPair::read(dir.path(), Some(0.25)).unwrap();
        assert_eq!((pair.train.len(), pair.held.len()), (9, 3));
        assert_eq!(pair.held.images.image(0), set(12).images.image(3));
    }

    #[test]
    fn a_shard_keeps_images_and_labels_together() {
        let mut pair = LabelledPair::new(set(12), set(3), Path::new("test")).unwrap();
        let kind = super::super::ShardKind::ByLabel;
        pair.keep_shard(
            &Shards {
                kind,
                index: 1,
                of: 3,
                seed: 4,
            },
            1,
        )
        .unwrap();
        assert_eq!(pair.train.len(), 4);
        for (at, &label) in pair.train.labels.iter().enumerate() {
            assert_eq!(pair.train.images.image(at)[0] / 2 % 3, label);
        }
    }
}
