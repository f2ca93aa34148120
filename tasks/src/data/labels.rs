//! Checks of labels: the number of classes decides the size of a model, so a wrong byte in a file of
//! labels must not.

use super::error::{DataError, Problem, at};
use std::path::Path;

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
) -> Result<usize, DataError> {
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
    if 2 * found >= there.len() {
        return Ok(label + 1);
    }
    let sparse = Problem::LabelSparse {
        index,
        label,
        found,
    };
    Err(at(file)(sparse))
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
) -> Result<(), DataError> {
    let above = |&(_, label): &(usize, u16)| usize::from(label) >= classes;
    let Some((index, label)) = labels.iter().copied().enumerate().find(above) else {
        return Ok(());
    };
    let label = usize::from(label);
    let problem = if said {
        Problem::LabelAbove {
            index,
            label,
            classes,
        }
    } else {
        Problem::LabelHeld {
            index,
            label,
            classes,
        }
    };
    Err(at(file)(problem))
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
    use crate::tests::{assert_begins, assert_has};

    #[test]
    fn a_label_without_a_class_names_file_item_label_and_classes() {
        let file = Path::new("train-labels");
        assert_eq!(count_classes(file, &[1, 0, 2, 2], None).unwrap(), 3);
        assert_eq!(count_classes(file, &[1, 0, 2, 2], Some(10)).unwrap(), 10);
        assert_eq!(count_classes(file, &[], None).unwrap(), 0);
        let line = |labels: &[u16], classes| {
            let found = count_classes(file, labels, classes);
            found.unwrap_err().to_string()
        };
        let above = line(&[1, 0, 9, 10, 11], Some(10));
        assert_begins(
            &above,
            "train-labels: item 3 has label 10, but `task.classes` is 10",
        );
        let sparse = line(&[0, 1, 2, 200, 3, 200], None);
        assert_has(
            &sparse,
            "item 3 has label 200, but only 5 of the labels up to it occur",
        );
        assert!(sparse.contains("`task.classes` = 201"), "{sparse}");
        // Half of the labels is enough: some data sets count from one.
        assert_eq!(count_classes(file, &[1, 3], None).unwrap(), 4);
        let held = check_held(file, &[0, 7], 3, false).unwrap_err().to_string();
        assert_has(
            &held,
            "item 1 has label 7, but the training data have 3 classes",
        );
    }
}
