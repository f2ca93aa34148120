//! Outer optimizer `delayed-nesterov`: Nesterov momentum for deltas that arrive at a center one by
//! one.

use super::kind::{Fragment, Method, Nature, OuterSpec, lr, momentum};
use crate::parameter::{Number, Parameter, Range as Values};
use std::collections::BTreeMap;

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
    state_multiple: 2,
    build: |kind| {
        let [lr, momentum, spread] = ["lr", "momentum", "spread"].map(|key| kind.single(key));
        Box::new(DelayedNesterov {
            lr,
            momentum,
            every: kind.count("every") as u32,
            spread,
            arrivals: BTreeMap::new(),
        })
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
/// `nesterov`; momentum 0 is `center + lr delta / N`.
struct DelayedNesterov {
    lr: f32,
    momentum: f32,
    every: u32,
    spread: f32,
    /// By where a run begins.
    arrivals: BTreeMap<usize, u64>,
}

impl Method for DelayedNesterov {
    fn apply(&mut self, of: Fragment<'_>) {
        let arrivals = self.arrivals.entry(of.range.start).or_default();
        *arrivals += 1;
        let share = 1.0 / self.every as f32;
        let turn = arrivals.is_multiple_of(u64::from(self.every));
        let pull = if turn {
            1.0 - self.spread * self.every as f32 + self.spread
        } else {
            self.spread
        } * self.momentum;
        let (velocity, buffer) = of.state.split_at_mut(of.state.len() / 2);
        let velocity = velocity[of.range.clone()].iter_mut();
        let state = velocity.zip(&mut buffer[of.range]);
        for ((x, d), (m, b)) in of.anchor.iter_mut().zip(of.delta).zip(state) {
            *b -= *d;
            if turn {
                *m = self.momentum * *m + share * *b;
                *b = 0.0;
            }
            *x -= self.lr * (pull * *m - share * *d);
        }
    }

    fn reset(&mut self, state: &mut [f32]) {
        state.fill(0.0);
        self.arrivals.clear();
    }
}
