//! From a checked strategy to the parts of its Executor.

use super::Strategy;
use crate::executor::{Blend, Keeps, Late, Mixing, Overlap, Parts};
use murmurate_protocol::{Contribution, ExchangeKind, Plan};

impl Parts {
    /// What a strategy's Executor is made of, for `len` parameters.
    pub fn new(strategy: &Strategy, plan: &Plan, len: usize) -> Self {
        let gradients = strategy.contribution() == Contribution::Gradient;
        let replicas = strategy.exchange().facts().has_replicas;
        Self {
            plan: plan.hash(),
            contribution: strategy.contribution(),
            companion: strategy.companion(),
            fragments: plan.ranges(),
            codec: strategy.codec(),
            // Between neighbours what is left out is kept for each neighbour.
            error_feedback: strategy.error_feedback() && !replicas,
            mixing: mixing(strategy),
            overlap: Overlap {
                layers: plan.overlap.layers,
                trains_ahead: plan.overlap.stagger > 1 || plan.overlap.late_steps > 0,
                late: Late::new(strategy.blend(), plan),
                eager: (strategy.blend() == Blend::Eager).then(|| strategy.outer(len)),
            },
            outer: strategy.outer(len),
            inner: gradients.then(|| strategy.inner(len)),
            correction: strategy.correction(len),
        }
    }
}

/// How the strategy's exchange combines contributions.
fn mixing(strategy: &Strategy) -> Mixing {
    let rule = strategy.aggregation().build();
    let facts = strategy.exchange().facts();
    match strategy.exchange() {
        ExchangeKind::Center(plan) => Mixing::Center {
            plan,
            rule: strategy.center(),
        },
        ExchangeKind::Relay => Mixing::Relayed,
        _ if facts.agrees && facts.shows_contributions => Mixing::Gathered { rule },
        _ if facts.agrees => Mixing::Agreed { rule },
        _ if facts.has_replicas => {
            let (rate, corrects) = strategy.replicas().unwrap_or((1.0, false));
            Mixing::Replicas {
                rate,
                keeps: match (corrects, strategy.error_feedback()) {
                    (true, _) => Keeps::Moves,
                    (false, true) => Keeps::Residual,
                    (false, false) => Keeps::Replicas,
                },
            }
        }
        // Means of parameters; without an exchange, of this peer's alone.
        _ => Mixing::Gossip,
    }
}
