//! Memory that the methods of a strategy keep between rounds.

use super::{HELD, Strategy};
use crate::correct::Companion;
use murmurate_protocol::{Contribution, Round};
use std::collections::BTreeSet;

impl Strategy {
    /// What the method keeps between rounds, store by store, in multiples of 4 bytes x parameters;
    /// what an exchange has under way comes on top. A trainer whose parameters are not at hand
    /// ([`Trainer::is_at_hand`](crate::Trainer::is_at_hand)) needs the store `local` with every method.
    pub fn stores(&self) -> Vec<(&'static str, f64)> {
        let gradients = self.architecture.contribution == Contribution::Gradient;
        let inner = self.inner.optimizer.state_multiple();
        let inner = if gradients { 2 * inner } else { inner };
        let residual = self.compression.error_feedback && self.architecture.rate.is_none();
        let runs = |name, runs: usize| (name, runs as f64);
        let mut stores = vec![
            runs("parameters", 1),
            runs("gradients", 1),
            // Where peers exchange gradients: the trainer's own, and the one that takes the mean gradient.
            runs("inner optimizer", inner),
            runs("anchor", 1),
            runs("local", usize::from(!self.leaves_trainer_free())),
            // Its part of anchor and local buffer.
            runs("companion", 2 * self.companion().len(1)),
            ("outer optimizer", self.outer_bytes() as f64 / 4.0),
            runs("eager updates", self.eager_runs()),
            runs("first halves", self.halves_runs()),
            runs("residual", usize::from(residual)),
            runs("replicas of neighbours", self.replica_runs()),
            runs("codec", self.codec().properties().planes),
            runs(HELD, self.held_runs()),
            runs("correction", self.inner.correction.state_multiple()),
        ];
        stores.retain(|(_, multiple)| *multiple > 0.0);
        stores
    }

    /// Runs of replicas among 16 peers: two for each neighbour that one meets, three with exact
    /// diffusion or error feedback, and three of a companion that flows.
    fn replica_runs(&self) -> usize {
        let Some((_, corrects)) = self.replicas() else {
            return 0;
        };
        let met = self.topology(0).map_or(0, |topology| {
            let rounds = (0..64).map(Round);
            let met = rounds.flat_map(|round| topology.partners(round, 5, 16).send);
            let met: BTreeSet<usize> = met.map(|(rank, _)| rank).collect();
            met.len()
        });
        let flows = if self.companion() == Companion::Flows {
            3
        } else {
            0
        };
        met * (2 + usize::from(corrects || self.compression.error_feedback) + flows)
    }
}
