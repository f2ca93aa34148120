//! Costs of each exchange: bytes of a round and the time that they take, and the stores that it is expected to
//! keep in memory beside those of its method (encoded slices, owned shards, history).

use super::Cluster;
use murmurate_protocol::limits::{
    HISTORY_BYTES_MAX, HISTORY_NEWEST_BYTES_MAX, HISTORY_ROUNDS_MAX, WINDOW_BYTES,
};
use murmurate_protocol::{FragmentPlan, Plan};

/// Bytes of a round and their times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Bytes sent.
    pub up: f64,
    /// Bytes received.
    pub down: f64,
    /// Seconds that links and latencies take.
    pub seconds: f64,
    /// Values that the mix lane reads.
    pub values: f64,
    /// Encoded bytes that the peer holds at the same time.
    pub held: f64,
}

impl Traffic {
    /// Bytes of the encoded contribution and of the encoded aggregate that one round exchanges: of
    /// the whole model, or of its share in a round where fragments are staggered.
    pub fn encoded(plan: &Plan) -> (f64, f64) {
        let whole = plan.fragments.iter().fold((0.0, 0.0), |(c, a), fragment| {
            (
                c + fragment.contribution.of(fragment.len) as f64,
                a + fragment.aggregate.of(fragment.len) as f64,
            )
        });
        let turns = f64::from(plan.overlap.stagger);
        (whole.0 / turns, whole.1 / turns)
    }

    /// Values that one round exchanges.
    pub fn exchanged(plan: &Plan, cluster: &Cluster) -> f64 {
        cluster.parameters as f64 / f64::from(plan.overlap.stagger)
    }
}

/// A store's name, and its size in multiples of 4 bytes x parameters.
pub type Store = (&'static str, f64);

/// Sizes of one round's slices, in multiples of 4 bytes x parameters.
#[derive(Clone, Copy, Debug)]
pub struct UnderWay {
    /// All contributions of one peer, encoded.
    pub(crate) contribution: f64,
    /// All aggregates, encoded.
    pub(crate) aggregate: f64,
    /// The share of the fragments that are exchanged at the same time.
    pub(crate) window: f64,
    /// Bytes of the parameters.
    whole: f64,
}

impl UnderWay {
    /// By the bounds of a plan for this many parameters.
    pub fn of(plan: &Plan, parameters: u64) -> Self {
        let whole = 4.0 * parameters as f64;
        let encoded = |of: fn(&FragmentPlan) -> u64| {
            let bytes: u64 = plan.fragments.iter().map(of).sum();
            bytes as f64 / whole
        };
        Self {
            contribution: encoded(|f| f.contribution.of(f.len)),
            aggregate: encoded(|f| f.aggregate.of(f.len)),
            window: (WINDOW_BYTES as f64 / whole).min(1.0),
            whole,
        }
    }

    /// This many contributions, or as many as fit these bytes, and at least one.
    pub(crate) fn queue(&self, iterates: usize, bytes: u64) -> f64 {
        let all = iterates as f64 * self.contribution;
        all.min((bytes as f64 / self.whole).max(self.contribution))
    }

    /// Decided slices that are kept for stragglers and newcomers, where a round decides this much.
    pub(crate) fn history(&self, decided: f64) -> f64 {
        let newest = decided.min(HISTORY_NEWEST_BYTES_MAX as f64 / self.whole);
        let bytes = HISTORY_BYTES_MAX as f64 / self.whole;
        (decided * HISTORY_ROUNDS_MAX as f64).min(bytes.max(newest))
    }
}
