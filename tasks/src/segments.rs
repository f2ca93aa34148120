//! A forward pass cut into segments, so that the backward pass runs segment by segment: every gradient can leave as
//! soon as it is computed, or the activations of a segment are computed again instead of kept.
//!
//! burn runs a tape from its end to its beginning and returns the gradients at the end. Between two
//! segments the activation is a new leaf. The backward pass of the later segment ends there, and
//! its gradient at the leaf starts the backward pass of the earlier segment. The results are those
//! of one tape.

use burn::module::Module;
use burn::tensor::{Gradients, Tensor};
use std::fmt::{self, Debug, Formatter};

/// The cuts of a forward pass.
#[derive(Debug, Default)]
pub struct Segments {
    kind: Kind,
    cuts: Vec<Cut>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Whole,
    Cut,
    Recomputing,
}

/// The end of a segment, and the leaf with which the next one begins.
#[derive(Debug)]
struct Cut {
    segment: Segment,
    leaf: Tensor<2>,
}

/// How the backward pass goes through a segment.
enum Segment {
    /// Its last activation, with its tape.
    Kept(Tensor<2>),
    /// Its first activation, and the block that is computed again.
    Again(Tensor<2>, Box<dyn FnOnce(Tensor<2>) -> Tensor<2> + Send>),
}

impl Debug for Segment {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kept(_) => "Kept",
            Self::Again(..) => "Again",
        })
    }
}

impl Segments {
    /// Segments for a forward pass whose gradients are needed together or not at all.
    pub fn whole() -> Self {
        Self::default()
    }

    /// Segments for a forward pass that is cut at every boundary.
    pub fn cut() -> Self {
        Self {
            kind: Kind::Cut,
            cuts: Vec::new(),
        }
    }

    /// Segments for a forward pass that keeps only what each block begins with, and computes a block again when
    /// the backward pass comes to it.
    ///
    /// **Source:** Chen et al., Training deep nets with sublinear memory cost, 2016, section 3.
    pub fn recomputing() -> Self {
        Self {
            kind: Kind::Recomputing,
            cuts: Vec::new(),
        }
    }

    /// Ends a segment with these activations, `[rows, columns]`. The next segment begins with the
    /// returned tensor. Each tensor of the model must be used on one side only; otherwise its
    /// gradient would be incomplete.
    #[must_use]
    pub fn boundary(&mut self, x: Tensor<2>) -> Tensor<2> {
        match self.kind {
            Kind::Cut => self.keep(x),
            Kind::Whole | Kind::Recomputing => x,
        }
    }

    /// What comes before the first block. `is_trained` says whether it has parameters that are.
    #[must_use]
    pub(crate) fn first(&mut self, x: Tensor<2>, is_trained: bool) -> Tensor<2> {
        match self.kind {
            Kind::Recomputing if is_trained => self.keep(x),
            _ => x,
        }
    }

    fn keep(&mut self, x: Tensor<2>) -> Tensor<2> {
        let leaf = x.clone().detach().require_grad();
        let segment = Segment::Kept(x);
        self.cuts.push(Cut {
            segment,
            leaf: leaf.clone(),
        });
        leaf
    }

    /// One block of a model, behind a boundary. `f` must compute the same for the same activations.
    pub(crate) fn block<M: Module + Send + 'static>(
        &mut self,
        block: &M,
        x: Tensor<2>,
        f: impl Fn(&M, Tensor<2>) -> Tensor<2> + Send + 'static,
    ) -> Tensor<2> {
        if self.kind != Kind::Recomputing {
            return f(block, self.boundary(x));
        }
        let input = x.inner();
        let y = f(&block.valid(), input.clone());
        let leaf = Tensor::from_inner(y).require_grad();
        let block = block.clone();
        let again = Box::new(move |x| f(&block, x));
        self.cuts.push(Cut {
            segment: Segment::Again(input, again),
            leaf: leaf.clone(),
        });
        leaf
    }

    /// The backward pass of a loss, the last segment first. Calls `f(gradients)` after each segment
    /// with its gradients.
    pub fn backward(mut self, loss: &Tensor<1>, f: &mut dyn FnMut(Gradients)) {
        let mut gradients = loss.backward();
        // The leaf with which the last segment passed began, if it was computed again.
        let mut began: Option<Tensor<2>> = None;
        while let Some(Cut { segment, leaf }) = self.cuts.pop() {
            let up = began.take().unwrap_or(leaf).grad_remove(&mut gradients);
            f(gradients);
            // If the loss does not depend on a segment, neither it nor earlier segments have
            // gradients.
            let Some(up) = up else {
                return;
            };
            let x = match segment {
                Segment::Kept(x) => x,
                Segment::Again(input, again) => {
                    let input = Tensor::from_inner(input).require_grad();
                    began = Some(input.clone());
                    again(input)
                }
            };
            gradients = (x * Tensor::from_inner(up)).sum().backward();
        }
        f(gradients);
    }
}
