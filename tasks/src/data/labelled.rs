//! Labelled images: a training set and a held-out set, from a folder of IDX files or bundled.

use super::error::{DataError, Problem, at};
use super::idx::{self, Images};
use super::labels::{check_held, count_classes};
use std::path::{Path, PathBuf};

/// The files of a folder, each with or without `.gz`.
const FILES: [&str; 4] = [
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
];

/// The smallest share to hold out.
const SHARE_MIN: f64 = 0.001;

/// Images and their classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labelled {
    /// The images.
    pub images: Images,
    /// The class of each image.
    pub labels: Vec<u16>,
}

impl Labelled {
    /// Number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// True without images.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The images of two files of a folder, and the file of the labels.
    fn read(
        dir: &Path,
        images: &'static str,
        labels: &'static str,
    ) -> Result<(Self, PathBuf), DataError> {
        let file = find(dir, images)?;
        let images = idx::read_images(&file).map_err(at(&file))?;
        let file = find(dir, labels)?;
        let labels = wide(&idx::read_labels(&file).map_err(at(&file))?);
        Ok((Self { images, labels }, file))
    }

    fn check_count(&self, set: &'static str, from: &Path) -> Result<(), DataError> {
        let (images, labels) = (self.images.len(), self.labels.len());
        if images == labels {
            return Ok(());
        }
        Err(at(from)(Problem::Count {
            set,
            images,
            labels,
        }))
    }

    /// Copies the images with these indices.
    ///
    /// # Panics
    /// If an index is out of bounds.
    pub fn pick(&self, indices: &[u32]) -> Self {
        let labels = indices.iter().map(|&index| self.labels[index as usize]);
        Self {
            images: self.images.pick(indices),
            labels: labels.collect(),
        }
    }
}

/// Training and held-out images of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledPair {
    /// The training images.
    pub train: Labelled,
    /// The held-out images, the same for all peers.
    pub held: Labelled,
    /// Number of classes: as given, or one more than the largest label of the whole training set.
    pub classes: usize,
}

impl LabelledPair {
    /// Combines a training set and a held-out set, whose labels are below `classes`. Errors name
    /// `from`.
    ///
    /// # Errors
    /// If the sets do not fit each other.
    pub fn new(
        train: Labelled,
        held: Labelled,
        classes: usize,
        from: &Path,
    ) -> Result<Self, DataError> {
        train.check_count("training", from)?;
        held.check_count("held-out", from)?;
        let differ = train.images.shape() != held.images.shape();
        if train.is_empty() || held.is_empty() || differ {
            return Err(at(from)(Problem::Differ));
        }
        Ok(Self {
            train,
            held,
            classes,
        })
    }

    /// Reads `train-images-idx3-ubyte`, `train-labels-idx1-ubyte` and the two `t10k-` files in a
    /// folder, each with or without `.gz`. If `share` is given, it holds out evenly spaced training
    /// images instead and does not read the `t10k-` files. `classes` is their number; `None` for one
    /// more than the largest training label.
    ///
    /// # Errors
    /// If a file is missing or invalid, or a label is wrong.
    pub fn read(dir: &Path, share: Option<f64>, classes: Option<usize>) -> Result<Self, DataError> {
        let (train, file) =
            Labelled::read(dir, "train-images-idx3-ubyte", "train-labels-idx1-ubyte")?;
        let count = count_classes(&file, &train.labels, classes)?;
        if let Some(share) = share {
            train.check_count("training", dir)?;
            let every = (1.0 / share.max(SHARE_MIN)).round().max(2.0) as u32;
            let all = 0..train.len() as u32;
            let (held, rest): (Vec<u32>, Vec<u32>) = all.partition(|i| i % every == every - 1);
            return Self::new(train.pick(&rest), train.pick(&held), count, dir);
        }
        let (held, file) = Labelled::read(dir, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")?;
        check_held(&file, &held.labels, count, classes.is_some())?;
        Self::new(train, held, count, dir)
    }

    /// Finds at least one of the files in a folder.
    pub(super) fn is_in(dir: &Path) -> bool {
        FILES.iter().any(|name| find(dir, name).is_ok())
    }
}

/// Labels of an IDX file as those of any source.
pub(super) fn wide(labels: &[u8]) -> Vec<u16> {
    labels.iter().map(|&label| label.into()).collect()
}

fn find(dir: &Path, name: &'static str) -> Result<PathBuf, DataError> {
    let candidates = [dir.join(name), dir.join(format!("{name}.gz"))];
    let found = candidates.into_iter().find(|path| path.is_file());
    found.ok_or_else(|| at(dir)(Problem::Missing(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::assert_has;
    use std::fs;

    fn set(count: usize) -> Labelled {
        let shape = idx::ImageShape {
            height: 1,
            width: 2,
            channels: 1,
        };
        let images = Images::new(shape, (0..2 * count as u8).collect());
        Labelled {
            images,
            labels: (0..count).map(|index| (index % 3) as u16).collect(),
        }
    }

    fn write(dir: &Path, prefix: &str, set: &Labelled) {
        let images = dir.join(format!("{prefix}-images-idx3-ubyte"));
        fs::write(images, idx::encode_images(&set.images)).unwrap();
        let bytes: Vec<u8> = set.labels.iter().map(|&label| label as u8).collect();
        let labels = dir.join(format!("{prefix}-labels-idx1-ubyte"));
        fs::write(labels, idx::encode_labels(&bytes)).unwrap();
    }

    #[test]
    fn a_folder_is_read_and_a_missing_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "train", &set(12));
        let error = LabelledPair::read(dir.path(), None, None)
            .unwrap_err()
            .to_string();
        assert!(error.contains("t10k-images-idx3-ubyte"), "{error}");
        write(dir.path(), "t10k", &set(6));
        let pair = LabelledPair::read(dir.path(), None, None).unwrap();
        assert_eq!(
            (pair.train.len(), pair.held.len(), pair.classes),
            (12, 6, 3)
        );
    }

    #[test]
    fn classes_are_as_given_and_wrong_labels_name_their_file() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "train", &set(12));
        let mut held = set(6);
        write(dir.path(), "t10k", &held);
        let read = |classes| {
            let read = LabelledPair::read(dir.path(), None, classes);
            read.map_err(|error| error.to_string())
        };
        assert_eq!(read(Some(10)).unwrap().classes, 10);
        let line = read(Some(2)).unwrap_err();
        assert_has(&line, "train-labels-idx1-ubyte: item 2 has label 2");
        assert!(line.contains("`task.classes` is 2"), "{line}");
        held.labels[4] = 200;
        write(dir.path(), "t10k", &held);
        let line = read(None).unwrap_err();
        assert_has(&line, "t10k-labels-idx1-ubyte: item 4 has label 200");
        assert!(line.contains("set `task.classes`"), "{line}");
    }

    #[test]
    fn a_share_of_the_training_images_can_be_held_out() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "train", &set(12));
        let pair = LabelledPair::read(dir.path(), Some(0.25), None).unwrap();
        assert_eq!((pair.train.len(), pair.held.len()), (9, 3));
        assert_eq!(pair.held.images.image(0), set(12).images.image(3));
    }
}
