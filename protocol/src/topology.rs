//! Who pushes to whom in a round of gossip. `strategies` implements it; no tensors here.

use crate::{LinkRates, Round};

/// Where one peer's mass goes in one round, and from where it expects some.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Partners {
    /// Ranks to push to, each with the share of this peer's mass that it gets. The shares sum to
    /// less than one; the rest stays. With W the mixing matrix, the share for `j` is `W[j][me]`.
    pub send: Vec<(usize, f64)>,
    /// Ranks whose push is expected, in ascending order.
    pub receive: Vec<usize>,
}

/// A mixing matrix as a function of round and rank.
///
/// Ranks are positions in the list of live peers sorted by `PeerId`. Where two peers' lists
/// differ, push-sum keeps the mean right: it does not need both ends to agree.
pub trait Topology: Send {
    /// The partners of `rank` among `count` peers in `round`.
    fn partners(&self, round: Round, rank: usize, count: usize) -> Partners;

    /// The same where all peers agree on the rates of their links. Only for a topology with
    /// [`Topology::rates_every`].
    fn partners_by_rate(&self, round: Round, rank: usize, rates: &LinkRates) -> Partners {
        self.partners(round, rank, rates.count())
    }

    /// Rounds after which peers tell each other the rates of their links; zero for never.
    fn rates_every(&self) -> u64 {
        0
    }
}
