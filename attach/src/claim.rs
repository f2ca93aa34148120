//! Checks a trainer's description of its tensors and makes a layout of it.

use crate::error::ClaimError;
use crate::limits::{DIMENSIONS_MAX, NAME_BYTES_MAX, TENSORS_MAX, VALUES_MAX, VERSION};
use crate::message::{Hello, TensorClaim};
use crate::terms::Mode;
use murmurate_strategies::Layout;
use std::collections::BTreeSet;

/// The layout that a trainer describes.
///
/// # Errors
/// Names the first tensor that cannot be.
fn layout_of(tensors: &[TensorClaim]) -> Result<Layout, ClaimError> {
    let too_many = |what, found, max| Err(ClaimError::TooMany { what, found, max });
    if tensors.is_empty() {
        return Err(ClaimError::Empty);
    }
    if tensors.len() > TENSORS_MAX {
        return too_many("tensors", tensors.len() as u64, TENSORS_MAX as u64);
    }
    let mut names = BTreeSet::new();
    let mut total = 0_u64;
    for (index, tensor) in tensors.iter().enumerate() {
        let name = &tensor.name;
        let printable =
            (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.contains(char::is_control);
        if !printable || !names.insert(name) {
            let name = name
                .chars()
                .take(NAME_BYTES_MAX)
                .filter(|c| !c.is_control())
                .collect();
            return Err(ClaimError::Name { index, name });
        }
        if tensor.dtype != "float32" {
            return Err(ClaimError::Dtype {
                name: name.clone(),
                dtype: tensor.dtype.chars().take(64).collect(),
            });
        }
        let count = tensor
            .shape
            .iter()
            .try_fold(1_u64, |n, d| n.checked_mul(*d));
        let count = count.filter(|n| *n > 0 && tensor.shape.len() <= DIMENSIONS_MAX);
        let after = count.and_then(|n| total.checked_add(n));
        let Some(after) = after else {
            return Err(ClaimError::Shape {
                name: name.clone(),
                shape: tensor.shape.iter().take(DIMENSIONS_MAX).copied().collect(),
            });
        };
        total = after;
    }
    if total > VALUES_MAX {
        return too_many("values", total, VALUES_MAX);
    }
    let tensors = tensors.iter();
    Ok(Layout::new(
        tensors.map(|t| (t.name.clone(), t.shape.clone())),
    ))
}

/// Checks that a trainer can take part in this mode.
pub(crate) fn check(hello: &Hello, mode: Mode) -> Result<Layout, ClaimError> {
    if hello.version != VERSION {
        return Err(ClaimError::Version {
            theirs: hello.version,
            ours: VERSION,
        });
    }
    if mode == Mode::Gradients && !hello.gradients {
        return Err(ClaimError::Gradients);
    }
    layout_of(&hello.tensors)
}

/// Checks that a trainer that comes back trains the daemon's model.
pub(crate) fn same(found: &Layout, needed: &Layout) -> Result<(), ClaimError> {
    let pairs = found.tensors().iter().zip(needed.tensors());
    for (index, (a, b)) in pairs.enumerate() {
        if a != b {
            return Err(ClaimError::Other {
                index,
                name: a.name.clone(),
                shape: a.shape.clone(),
                needed: b.name.clone(),
                needed_shape: b.shape.clone(),
            });
        }
    }
    let (n, m) = (found.tensors().len(), needed.tensors().len());
    let more = if n > m { found } else { needed };
    match more.tensors().get(n.min(m)) {
        None => Ok(()),
        Some(first) => Err(ClaimError::Count {
            found: n,
            needed: m,
            name: first.name.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(name: &str, shape: &[u64], dtype: &str) -> TensorClaim {
        TensorClaim {
            name: name.to_owned(),
            shape: shape.to_vec(),
            dtype: dtype.to_owned(),
        }
    }

    #[test]
    fn tensors_lie_back_to_back() {
        let claims = [tensor("w", &[3, 2], "float32"), tensor("b", &[], "float32")];
        let layout = layout_of(&claims).unwrap();
        assert_eq!(layout.len(), 7);
        assert_eq!(layout.tensors()[1].offset, 6);
    }

    #[test]
    fn what_cannot_be_is_named() {
        let line = |claims: &[TensorClaim]| layout_of(claims).unwrap_err().to_string();
        assert_eq!(line(&[]), "there is no tensor to train");
        let wide = [tensor("w", &[2], "float64")];
        assert_eq!(line(&wide), "tensor `w` is float64, only float32 travels");
        let empty = [tensor("w", &[2, 0], "float32")];
        assert!(line(&empty).starts_with("tensor `w` has shape [2, 0]"));
        let huge = [tensor("w", &[u64::MAX, 2], "float32")];
        assert!(line(&huge).starts_with("tensor `w` has shape [18446744073709551615, 2]"));
        let many = [tensor("w", &[1 << 41], "float32")];
        assert!(line(&many).starts_with("the model has 2199023255552 values"));
        let twice = [tensor("w", &[1], "float32"), tensor("w", &[1], "float32")];
        assert!(line(&twice).starts_with("tensor 1 is called `w`"));
        let odd = [tensor("a\nb", &[1], "float32")];
        assert!(!line(&odd).contains('\n'));
    }

    #[test]
    fn another_model_is_named_by_its_first_tensor_that_differs() {
        let layout = |shape: &[u64], more: bool| {
            let mut claims = vec![tensor("w", shape, "float32")];
            if more {
                claims.push(tensor("b", &[4], "float32"));
            }
            layout_of(&claims).unwrap()
        };
        let ours = layout(&[3, 2], true);
        assert_eq!(same(&ours, &ours), Ok(()));
        let line = same(&layout(&[2, 3], true), &ours).unwrap_err().to_string();
        assert_eq!(
            line,
            "tensor 0 is `w` of shape [2, 3], this daemon trains `w` of shape [3, 2] there"
        );
        let line = same(&layout(&[3, 2], false), &ours)
            .unwrap_err()
            .to_string();
        assert!(line.ends_with("the first other one is `b`"), "{line}");
    }
}
