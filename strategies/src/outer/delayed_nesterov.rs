//! Outer optimizer `delayed-nesterov`: Nesterov momentum for deltas that arrive at a center one by
//! one.

use super::OuterOptimizer;
use super::kind::{Nature, OuterSpec, lr, momentum};
use crate::parameter::{Number, Parameter, Range as Values};
use std::collections::BTreeMap;
use std::ops::Range;

pub(super) const SPEC: OuterSpec = OuterSpec {
    name: "delayed-nesterov",
    summary: "momentum with every N-th arrival",
    equation: "b' = b - D; every N-th: m' = mu m + b' / N, a' = a - lr ((1 - c N + c) mu m' - D / N); else a' = a - lr (c mu m - D / N)",
    source: "Liu et al., arXiv 2401.09135",
    parameters: &[lr(0.7), momentum(0.9), EVERY, SPREAD],
    nature: Nature::Arrivals,
    unfit: |kind| {
        let spread = kind.number("spread");
        let fits = spread >= 0.0 && spread * kind.number("every") <= 1.0;
        (!fits).then_some("spread")
    },
    build: |kind, len| {
        let [lr, momentum, spread] = ["lr", "momentum", "spread"].map(|key| kind.single(key));
        let every = kind.count("every") as u32;
        Box::new(DelayedNesterov::new(len, lr, momentum, every, spread))
    },
};

const EVERY: Parameter = Parameter::new(
    "every",
    Values::Count(Number::Size, 1, 1000),
    4.0,
    "arrivals for which momentum is applied once",
);

const SPREAD: Parameter = Parameter::new(
    "spread",
    Values::Words(Number::Real, "in [0, 1/every]"),
    0.0,
    "how much of the momentum is spread over the arrivals between",
);

/// Applies momentum only with every N-th arrival, because momentum and staleness add up.
///
/// ```text
/// g = -delta,   buffer' = buffer + g
/// every N-th arrival:  m'      = momentum * m + buffer' / N,   buffer' = 0
///                      center' = center - lr ((1 - c N + c) momentum m' + g / N)
/// the others:          center' = center - lr (c momentum m + g / N)
/// ```
///
/// Shapes: center, delta, m, buffer: `[len]`, f32; the state is m, then the buffer, twice the
/// parameters. Arrivals are counted for each shard of the center (or fragment) since the owner
/// became its owner: a successor starts to count at zero. c in `[0, 1/N]` spreads the
/// momentum over the arrivals between. Source: Liu et al., "Asynchronous local-SGD training for
/// language modeling" (2024), algorithm 3. Special cases: N = 1, c = 0 is
/// [`Nesterov`](super::Nesterov); momentum 0 is `center + lr delta / N`.
#[derive(Clone, Debug)]
pub struct DelayedNesterov {
    lr: f32,
    momentum: f32,
    every: u32,
    spread: f32,
    /// By where a run begins.
    arrivals: BTreeMap<usize, u64>,
    /// The velocity, then the buffer.
    state: Vec<f32>,
}

impl DelayedNesterov {
    /// For `len` parameters; `every` is N, at least one, `spread` is c.
    pub fn new(len: usize, lr: f32, momentum: f32, every: u32, spread: f32) -> Self {
        Self {
            lr,
            momentum,
            every: every.max(1),
            spread,
            arrivals: BTreeMap::new(),
            state: vec![0.0; 2 * len],
        }
    }

    /// Takes one arrival of all parameters in.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn arrive(&mut self, center: &mut [f32], delta: &[f32]) {
        let whole = 0..self.state.len() / 2;
        self.apply(whole, center, &mut delta.to_vec());
    }
}

impl OuterOptimizer for DelayedNesterov {
    fn state_multiple(&self) -> usize {
        2
    }

    fn apply(&mut self, range: Range<usize>, anchor: &mut [f32], delta: &mut [f32]) {
        assert!(anchor.len() == range.len() && delta.len() == range.len());
        let arrivals = self.arrivals.entry(range.start).or_default();
        *arrivals += 1;
        let share = 1.0 / self.every as f32;
        let turn = arrivals.is_multiple_of(u64::from(self.every));
        let pull = if turn {
            1.0 - self.spread * self.every as f32 + self.spread
        } else {
            self.spread
        } * self.momentum;
        let half = self.state.len() / 2;
        let (velocity, buffer) = self.state.split_at_mut(half);
        let state = velocity[range.clone()].iter_mut().zip(&mut buffer[range]);
        for ((x, d), (m, b)) in anchor.iter_mut().zip(delta).zip(state) {
            *b -= *d;
            if turn {
                *m = self.momentum * *m + share * *b;
                *b = 0.0;
            }
            *x -= self.lr * (pull * *m - share * *d);
        }
    }

    fn reset(&mut self) {
        self.state.fill(0.0);
        self.arrivals.clear();
    }

    fn state(&self) -> &[f32] {
        &self.state
    }

    fn state_mut(&mut self) -> &mut [f32] {
        &mut self.state
    }
}
