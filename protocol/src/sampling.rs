//! Client sampling: which of the peers train in a round. A function of run, round and peer alone,
//! so that no two peers can differ about it, however their views do.

use crate::rendezvous::rendezvous;
use crate::{Contribution, PeerId, Plan, Round, Schedule};
use serde::{Deserialize, Serialize};

/// The slot of the rendezvous hash that draws the sample: zero picks proposers.
const SLOT: u8 = 1;

/// The share of the peers that train in a round.
///
/// Each peer is drawn by itself with the same probability C, and a round's count is binomial: n C
/// on average. (FedAvg draws max(C n, 1) of n known clients; here no peer knows n for certain, and
/// a count would make the sample depend on who is in whose view.) A peer that is not drawn says at
/// once that it is ready, with the weight 0: it brings nothing without delaying others, votes, and
/// reduces its shards of what the others bring. A round in which no peer is drawn is void and takes
/// as long as its group.
///
/// ```text
/// a' = outer(a, sum_{i in S_r} w_i C(d_i) / sum_{i in S_r} w_i),
/// i in S_r iff hash(run, r, i) < C 2^64
/// ```
///
/// Cost: with m of n drawn the contributions are m (n - 1) pushes in place of n (n - 1); aggregates
/// and votes as without. **Source:** McMahan et al. 2017, "Communication-efficient learning of deep
/// networks from decentralized data", algorithm 1 (C); independent draws: McMahan et al. 2018,
/// "Learning differentially private recurrent language models", algorithm 1 (q).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampling {
    /// The probability in millionths: from 1 to a million.
    pub per_million: u32,
}

impl Sampling {
    /// All peers, always.
    pub const ALL: Self = Self {
        per_million: 1_000_000,
    };

    /// Whether it can be: somebody must be drawn sooner or later.
    pub const fn fits(self) -> bool {
        self.per_million > 0 && self.per_million <= Self::ALL.per_million
    }
}

impl Default for Sampling {
    fn default() -> Self {
        Self::ALL
    }
}

impl Plan {
    /// Whether its exchange can leave out peers that are not drawn.
    pub(crate) fn samples_well(&self) -> bool {
        // Where sums are passed on, a member that is left out would break the chain.
        let apart = self.exchange.facts().may_leave_out && self.schedule == Schedule::Butterfly;
        let sampling = self.synchronization.sampling;
        let deltas = self.contribution == Contribution::Delta;
        let apart = apart && self.overlap.late_steps == 0;
        sampling.fits() && (sampling == Sampling::ALL || (apart && deltas))
    }

    /// Whether a peer trains in a round.
    pub fn draws(&self, round: Round, peer: PeerId) -> bool {
        let sampling = self.synchronization.sampling;
        if sampling == Sampling::ALL {
            return true;
        }
        let place = u128::from(rendezvous(&self.run, round, SLOT, peer));
        let all = u128::from(Sampling::ALL.per_million);
        (place * all) >> 64 < u128::from(sampling.per_million)
    }
}
