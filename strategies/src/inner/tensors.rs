//! Ranges of whole tensors, for optimizers that need norms or shapes.

use crate::Layout;
use std::ops::Range;

/// One tensor as a matrix: the first dimension by all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Matrix {
    pub(super) range: Range<usize>,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

/// The tensors of a layout in order.
pub(super) fn matrices(layout: &Layout) -> Vec<Matrix> {
    let tensors = layout.tensors().iter().filter(|tensor| !tensor.is_empty());
    tensors
        .map(|tensor| {
            let rows = match tensor.shape.as_slice() {
                [] | [_] => 1,
                [first, ..] => *first as usize,
            };
            Matrix {
                range: tensor.range(),
                rows,
                columns: tensor.len() / rows,
            }
        })
        .collect()
}

/// The tensors in `piece`, which must contain only whole ones.
///
/// # Panics
/// If a border of the piece is inside a tensor: the norm of a part would be wrong.
pub(super) fn whole<'a>(
    tensors: &'a [Matrix],
    piece: &Range<usize>,
) -> impl Iterator<Item = &'a Matrix> {
    let from = tensors.partition_point(|tensor| tensor.range.start < piece.start);
    let to = tensors.partition_point(|tensor| tensor.range.start < piece.end);
    let inside = &tensors[from..to];
    let covered: usize = inside.iter().map(|tensor| tensor.range.len()).sum();
    assert_eq!(covered, piece.len(), "a piece of whole tensors");
    inside.iter()
}
