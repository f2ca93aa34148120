//! A forward pass cut into segments, so that the backward pass runs segment by segment and every
//! gradient can leave as soon as it is computed.
//!
//! burn runs a tape from its end to its beginning and returns the gradients at the end. Between two
//! segments the activation is a new leaf. The backward pass of the later segment ends there, and
//! its gradient at the leaf starts the backward pass of the earlier segment. The results are those
//! of one tape.

use burn::tensor::{Gradients, Tensor};

/// The cuts of a forward pass.
#[derive(Debug, Default)]
pub struct Segments {
    /// The pass is cut at its boundaries.
    cutting: bool,
    /// The last activation of each segment, and the leaf with which the next one begins.
    cuts: Vec<(Tensor<2>, Tensor<2>)>,
}

impl Segments {
    /// Segments for a forward pass whose gradients are needed together or not at all.
    pub fn whole() -> Self {
        Self::default()
    }

    /// Segments for a forward pass that is cut at every boundary.
    pub fn cut() -> Self {
        Self {
            cutting: true,
            cuts: Vec::new(),
        }
    }

    /// Ends a segment with these activations, `[rows, columns]`. The next segment begins with the
    /// returned tensor. Each tensor of the model must be used on one side only; otherwise its
    /// gradient would be incomplete.
    #[must_use]
    pub fn boundary(&mut self, x: Tensor<2>) -> Tensor<2> {
        if !self.cutting {
            return x;
        }
        let leaf = x.clone().detach().require_grad();
        self.cuts.push((x, leaf.clone()));
        leaf
    }

    /// The backward pass of a loss, the last segment first. Calls `f(gradients)` after each segment
    /// with its gradients.
    pub fn backward(mut self, loss: &Tensor<1>, f: &mut dyn FnMut(Gradients)) {
        let mut gradients = loss.backward();
        while let Some((x, leaf)) = self.cuts.pop() {
            let up = leaf.grad_remove(&mut gradients);
            f(gradients);
            // If the loss does not depend on a segment, neither it nor earlier segments have
            // gradients.
            let Some(up) = up else {
                return;
            };
            gradients = (x * Tensor::from_inner(up)).sum().backward();
        }
        f(gradients);
    }
}
