//! Checks of labels: the number of classes decides the size of a model, so a wrong byte in a file of
//! labels must not.

use std::path::{Path, PathBuf};

/// A label that cannot be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelError {
    /// The configuration has fewer classes.
    #[error(
        "{}: item {index} has label {label}, but `task.classes` is {classes} (labels count from 0, \
         as items do)", file.display()
    )]
    Above {
        /// The file of labels.
        file: PathBuf,
        /// Index of the item.
        index: usize,
        /// Its label.
        label: usize,
        /// Number of classes.
        classes: usize,
    },
    /// Held-out data have a class that the training data lack.
    #[error(
        "{}: item {index} has label {label}, but the training data have {classes} classes (set \
         `task.classes` if that is right; labels count from 0, as items do)", file.display()
    )]
    Held {
        /// The file of labels.
        file: PathBuf,
        /// Index of the item.
        index: usize,
        /// Its label.
        label: usize,
        /// Number of classes.
        classes: usize,
    },
    /// Most labels below the largest one do not occur.
    #[error(
        "{}: item {index} has label {label}, but only {found} of the labels up to it occur (copy the \
         file again, or set `task.classes` = {} if that is right)", file.display(), label + 1
    )]
    Sparse {
        /// The file of labels.
        file: PathBuf,
        /// Index of the item.
        index: usize,
        /// The largest label.
        label: usize,
        /// Number of different labels.
        found: usize,
    },
}

/// Number of classes of training labels: `classes` if it is given, otherwise one more than the
/// largest label. Without `classes` at least half of the labels up to the largest must occur, so that
/// one damaged byte does not make another model.
///
/// # Errors
/// Names the file, the item and its label.
pub(super) fn count_classes(
    file: &Path,
    labels: &[u16],
    classes: Option<usize>,
) -> Result<usize, LabelError> {
    if let Some(classes) = classes {
        check_held(file, labels, classes, true)?;
        return Ok(classes);
    }
    let Some((index, label)) = largest(labels) else {
        return Ok(0);
    };
    let mut there = vec![false; label + 1];
    labels
        .iter()
        .for_each(|&label| there[usize::from(label)] = true);
    let found = there.iter().filter(|there| **there).count();
    match 2 * found < there.len() {
        false => Ok(label + 1),
        true => Err(LabelError::Sparse {
            file: file.into(),
            index,
            label,
            found,
        }),
    }
}

/// Checks labels against a number of classes, which the configuration gives (`said`) or the training
/// data.
///
/// # Errors
/// Names the file, the item and its label.
pub(super) fn check_held(
    file: &Path,
    labels: &[u16],
    classes: usize,
    said: bool,
) -> Result<(), LabelError> {
    let above = |&(_, label): &(usize, u16)| usize::from(label) >= classes;
    let Some((index, label)) = labels.iter().copied().enumerate().find(above) else {
        return Ok(());
    };
    let (file, label) = (file.to_path_buf(), usize::from(label));
    Err(match said {
        true => LabelError::Above {
            file,
            index,
            label,
            classes,
        },
        false => LabelError::Held {
            file,
            index,
            label,
            classes,
        },
    })
}

/// The first item with the largest label.
fn largest(labels: &[u16]) -> Option<(usize, usize)> {
    let top = labels.iter().max()?;
    let index = labels.iter().position(|label| label == top)?;
    Some((index, usize::from(*top)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_without_a_class_names_file_item_label_and_classes() {
        let file = Path::new("train-labels");
        assert_eq!(count_classes(file, &[1, 0, 2, 2], None), Ok(3));
        assert_eq!(count_classes(file, &[1, 0, 2, 2], Some(10)), Ok(10));
        assert_eq!(count_classes(file, &[], None), Ok(0));
        let line = |labels: &[u16], classes| {
            let found = count_classes(file, labels, classes);
            found.unwrap_err().to_string()
        };
        let above = line(&[1, 0, 9, 10, 11], Some(10));
        assert!(
            above.starts_with("train-labels: item 3 has label 10, but `task.classes` is 10"),
            "{above}"
        );
        let sparse = line(&[0, 1, 2, 200, 3, 200], None);
        assert!(
            sparse.contains("item 3 has label 200, but only 5 of the labels up to it occur"),
            "{sparse}"
        );
        assert!(sparse.contains("`task.classes` = 201"), "{sparse}");
        // Half of the labels is enough: some data sets count from one.
        assert_eq!(count_classes(file, &[1, 3], None), Ok(4));
        let held = check_held(file, &[0, 7], 3, false).unwrap_err().to_string();
        assert!(
            held.contains("item 1 has label 7, but the training data have 3 classes"),
            "{held}"
        );
    }
}
