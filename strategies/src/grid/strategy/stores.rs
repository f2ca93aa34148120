//! Memory that the methods of a strategy keep between rounds.

use super::{HELD, Strategy};
use crate::correct::Companion;
use murmurate_protocol::{Contribution, Round};
use std::collections::BTreeSet;

impl Strategy {
    /// What the method keeps between rounds, store by store, in multiples of 4 bytes x parameters;
    /// what an exchange has under way comes on top. A trainer whose parameters are not at hand
    /// ([`Trainer::is_at_hand`](crate::Trainer::is_at_hand)) needs the store `local` with every method.
    pub fn stores(&self) -> Vec<(&'static str, usize)> {
        let gradients = self.architecture.contribution == Contribution::Gradient;
        let inner = self.inner.optimizer.state_multiple();
        let mut stores = vec![
            ("parameters", 1),
            ("gradients", 1),
            // Beside the trainer's own, the one that takes the mean gradient.
            ("inner optimizer", if gradients { 2 * inner } else { inner }),
            ("anchor", 1),
            ("local", usize::from(!self.leaves_trainer_free())),
            // Its part of anchor and local buffer.
            ("companion", 2 * self.companion().len(1)),
            ("outer optimizer", self.outer.state_multiple()),
            ("eager updates", self.eager_runs()),
            (
                "residual",
                usize::from(self.compression.error_feedback && self.architecture.rate.is_none()),
            ),
            ("replicas of neighbours", self.replica_runs()),
            ("codec", self.codec().properties().planes),
            (HELD, self.held_runs()),
            ("correction", self.inner.correction.state_multiple()),
        ];
        stores.retain(|(_, multiple)| *multiple > 0);
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
