//! What an outer optimizer is, and outer optimizers as data, from the `[outer]` table.

use crate::compress::{BF16_SPEC, F32_SPEC};
use crate::correct::Companion;
use crate::kind::Kind;
use crate::parameter::{Parameter, Range as Values};
use crate::state::{StateError, StateSink};
use std::ops::Range;

/// One fragment of a round: its values as in [`OuterOptimizer::apply`].
pub(super) struct Fragment<'a> {
    /// All of the state, not only this fragment's part.
    pub(super) state: &'a mut [f32],
    pub(super) range: Range<usize>,
    pub(super) anchor: &'a mut [f32],
    pub(super) delta: &'a mut [f32],
}

/// The arithmetic of an outer optimizer, on a state that [`OuterOptimizer`] keeps. A closure is a step whose state
/// begins with zeros.
pub(super) trait Method: Send {
    /// As [`OuterOptimizer::apply`].
    fn apply(&mut self, of: Fragment<'_>);

    /// Writes what the state is before the first delta.
    fn reset(&mut self, state: &mut [f32]) {
        state.fill(0.0);
    }
}

impl<F: FnMut(Fragment<'_>) + Send> Method for F {
    fn apply(&mut self, of: Fragment<'_>) {
        self(of);
    }
}

/// Turns an aggregated delta into the next anchor. Its state is shared: it is the same on all
/// peers of a run and part of a state transfer.
pub struct OuterOptimizer {
    method: Box<dyn Method>,
    state: Vec<f32>,
}

impl OuterOptimizer {
    /// Puts one fragment's aggregated delta (theta after - theta before) into the anchor:
    /// `range` is where the fragment lies in the flat parameters, `anchor` and `delta` are its
    /// values; `delta` may be overwritten.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn apply(&mut self, range: Range<usize>, anchor: &mut [f32], delta: &mut [f32]) {
        assert!(anchor.len() == range.len() && delta.len() == range.len());
        let state = &mut self.state;
        self.method.apply(Fragment {
            state,
            range,
            anchor,
            delta,
        });
    }

    /// The state, [`OuterKind::state_multiple`] runs of the whole parameters' length, back to back.
    pub fn state(&self) -> &[f32] {
        &self.state
    }

    /// The state, for a state transfer or a resumed checkpoint to be written into.
    pub fn state_mut(&mut self) -> &mut [f32] {
        &mut self.state
    }

    /// Begins again, as if no delta had come yet.
    pub fn reset(&mut self) {
        self.method.reset(&mut self.state);
    }

    /// Writes the state as `outer.state`.
    ///
    /// # Errors
    /// The sink's.
    pub fn save(&self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        match self.state() {
            [] => Ok(()),
            state => sink.tensor("outer.state", state),
        }
    }
}

/// One outer optimizer as the configuration knows it.
#[derive(Clone, Copy, Debug)]
pub struct OuterSpec {
    /// Its name in the configuration.
    pub name: &'static str,
    /// Its description, in a line.
    pub summary: &'static str,
    /// Its step, in a line.
    pub equation: &'static str,
    /// The paper.
    pub source: &'static str,
    /// Its parameters, as keys of `[outer]`.
    pub parameters: &'static [Parameter],
    /// The deltas that it works on.
    pub nature: Nature,
    /// The parameter that does not fit the others.
    pub unfit: fn(&OuterKind) -> Option<&'static str>,
    /// f32 per parameter that it keeps.
    pub state_multiple: usize,
    /// Makes it of parameters within their ranges.
    pub(super) build: fn(&OuterKind) -> Box<dyn Method>,
}

/// The deltas that an outer optimizer works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// The anchor becomes the mean.
    Average,
    /// Its answer to a sum of deltas is the sum of its answers to them.
    Linear,
    /// Agreed means.
    Agreed,
    /// Deltas that arrive at a center one by one.
    Arrivals,
    /// Parameters that arrive at a center one by one; the Executor's rule of arrivals moves both.
    Elastic,
    /// Means of random pairs, in which each has an anchor of its own.
    Pairs,
}

/// An outer optimizer with its parameters.
pub type OuterKind = Kind<OuterSpec>;

pub(super) const fn lr(default: f64) -> Parameter {
    Parameter::new("lr", Values::Above, default, "how far along the aggregate")
}

pub(super) const fn momentum(default: f64) -> Parameter {
    let about = "the factor on the momentum in each step";
    Parameter::new("momentum", Values::BelowOne, default, about)
}

/// The precisions of a state, in the order of [`StatePrecision`](super::StatePrecision).
pub(super) const STATE: Parameter = Parameter::new(
    "state",
    Values::Names(&[F32_SPEC.name, BF16_SPEC.name]),
    0.0,
    "how the momentum is kept; bf16 takes half the memory, checkpoints keep f32",
);

/// `anchor' = anchor + delta`, with delta the weighted mean of the peers' deltas. No state.
///
/// That is the weighted mean of the peers' parameters. Source: McMahan et al.,
/// "Communication-efficient learning of deep networks from decentralized data" (AISTATS 2017),
/// algorithm 1 (FedAvg); Stich, "Local SGD converges fast and communicates little" (ICLR 2019),
/// algorithm 1. Special case of `nesterov` with momentum 0 and learning rate 1.
pub(super) const AVERAGE: OuterSpec = OuterSpec {
    name: "average",
    summary: "the anchor becomes the mean",
    equation: "a' = a + D",
    source: "McMahan et al., AISTATS 2017",
    parameters: &[],
    nature: Nature::Average,
    unfit: |_| None,
    state_multiple: 0,
    build: |_| {
        Box::new(|of: Fragment<'_>| {
            for (a, d) in of.anchor.iter_mut().zip(of.delta) {
                *a += *d;
            }
        })
    },
};

impl OuterKind {
    /// Set where the anchor becomes the mean.
    pub fn is_average(&self) -> bool {
        self.spec().nature == Nature::Average
    }

    /// Set where it takes what arrives at a center one by one, and counts arrivals as they come:
    /// peers that agree on one mean would count differently after a restart.
    pub fn is_for_arrivals(&self) -> bool {
        matches!(self.spec().nature, Nature::Arrivals | Nature::Elastic)
    }

    /// Set where its answer to a sum of deltas is the sum of its answers to them.
    pub fn is_linear(&self) -> bool {
        matches!(self.spec().nature, Nature::Average | Nature::Linear)
    }

    /// Set where its state is one momentum that forgets by a factor below one in every step.
    pub fn is_momentum(&self) -> bool {
        self.spec().nature == Nature::Linear
    }

    /// The share of the distance between center and parameters that goes each way, in elastic averaging.
    pub fn elastic(&self) -> Option<f64> {
        let elastic = self.spec().nature == Nature::Elastic;
        elastic.then(|| self.number("alpha"))
    }

    /// The companion that it needs beside the parameters.
    pub fn companion(&self) -> Companion {
        if self.spec().nature != Nature::Pairs {
            return Companion::None;
        }
        Companion::Anchors {
            lr: self.number("lr") as f32,
            pull: self.number("pull") as f32,
        }
    }

    /// f32 per parameter that it keeps.
    pub fn state_multiple(&self) -> usize {
        self.spec().state_multiple
    }

    /// The optimizer itself, for `len` parameters.
    pub fn build(&self, len: usize) -> OuterOptimizer {
        let mut optimizer = OuterOptimizer {
            method: (self.spec().build)(self),
            state: vec![0.0; self.state_multiple() * len],
        };
        optimizer.reset();
        optimizer
    }

    /// A parameter in f32, in which the arithmetic is done.
    pub(super) fn single(&self, parameter: &str) -> f32 {
        self.number(parameter) as f32
    }
}
