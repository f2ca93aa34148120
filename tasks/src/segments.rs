//! A forward pass cut into segments, so that its backward pass goes segment by segment and every
//! gradient can leave as soon as it is there.
//!
//! burn runs a tape from its end to its beginning and gives the gradients out at the end of it. Between two
//! segments the activation is a fresh leaf: the backward pass of the later segment ends there, and the
//! gradient that it leaves at the leaf begins that of the earlier one. The numbers are those of one tape.

use burn::tensor::{Gradients, Tensor};

/// Where a forward pass was cut.
#[derive(Debug, Default)]
pub struct Segments {
    /// Whether it is cut at all.
    cutting: bool,
    /// What a segment ended with, and the leaf that the next one began with.
    cuts: Vec<(Tensor<2>, Tensor<2>)>,
}

impl Segments {
    /// For a forward pass whose gradients are wanted all at once, or not at all.
    pub fn whole() -> Self {
        Self::default()
    }

    /// For one that is cut wherever it can be.
    pub fn cut() -> Self {
        Self {
            cutting: true,
            cuts: Vec::new(),
        }
    }

    /// Ends a segment with these activations, `[rows, columns]`, and begins the next one with what is given
    /// back. Tensors of the model must be used on one side of it only, or what leaves is a part of their
    /// gradient.
    #[must_use]
    pub fn boundary(&mut self, x: Tensor<2>) -> Tensor<2> {
        if !self.cutting {
            return x;
        }
        let leaf = x.clone().detach().require_grad();
        self.cuts.push((x, leaf.clone()));
        leaf
    }

    /// The backward pass of a loss, the last segment first: `f(gradients)` is called after each with what
    /// came with it.
    pub fn backward(mut self, loss: &Tensor<1>, f: &mut dyn FnMut(Gradients)) {
        let mut gradients = loss.backward();
        while let Some((x, leaf)) = self.cuts.pop() {
            let up = leaf.grad_remove(&mut gradients);
            f(gradients);
            // A segment that the loss does not depend on has no gradient, and neither has what is before it.
            let Some(up) = up else {
                return;
            };
            gradients = (x * Tensor::from_inner(up)).sum().backward();
        }
        f(gradients);
    }
}
