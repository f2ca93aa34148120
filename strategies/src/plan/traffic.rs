//! Bytes of a round and the time that they take. Each exchange computes its own.

use super::Cluster;
use murmurate_protocol::Plan;

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
