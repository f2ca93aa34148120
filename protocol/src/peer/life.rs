//! Orders under way in a peer's round, times of its last actions, and others' statements before the first round.

use super::replay::Replay;
use crate::sorted::{SortedMap, SortedSet};
use crate::wire::Offer;
use crate::{Base, Digest, FragmentId, OrderId, PeerId, Round, Time, TrainSummary};

/// Orders of the round that are under way, and when things were last done.
#[derive(Debug, Default)]
pub(super) struct Life {
    pub(super) train: Option<OrderId>,
    pub(super) ahead: TrainedAhead,
    pub(super) applies: SortedMap<OrderId, FragmentId>,
    pub(super) evaluate: Option<OrderId>,
    pub(super) save: Option<OrderId>,
    /// Set if this peer left the run while fragments of the round were undecided.
    pub(super) broken_off: bool,
    pub(super) once: Once,
    /// Set if the round found no group and continues.
    pub(super) alone: bool,
    /// Set if its first fragment found no result: its training is kept.
    pub(super) voided: bool,
    pub(super) started: Time,
    pub(super) saved_at: Time,
    pub(super) saved_round: Option<Round>,
    pub(super) evaluated_round: Option<Round>,
    pub(super) evaluation: EvaluationTime,
}

/// When the last evaluation began and ended.
#[derive(Debug, Default)]
pub(super) struct EvaluationTime {
    pub(super) began: Time,
    pub(super) ended: Time,
}

impl EvaluationTime {
    /// Returns `true` if one more, as long as the last, would take at most this share of the time since the last.
    pub(super) fn is_worth_another(&self, now: Time, percent: u8) -> bool {
        let (took, since) = (self.ended.since(self.began), now.since(self.ended));
        let percent = u32::from(percent);
        // Multiplied out, so that no division by a time of zero is needed.
        percent == 0 || since * percent >= took * 100_u32.saturating_sub(percent)
    }
}

/// The beginning of the next round's training, while fragments of this one are still exchanged.
#[derive(Debug, Default)]
pub(super) struct TrainedAhead {
    pub(super) order: Option<OrderId>,
    /// Set for a forward pass, which waits for fragments of this round.
    pub(super) forward: bool,
    pub(super) taken: Option<TrainSummary>,
    /// Set while the next round waits for training that is still under way.
    pub(super) held: bool,
}

/// What happens once in a life.
#[derive(Debug, Default)]
pub(super) struct Once {
    /// Set once this peer has told the others that it has met enough of them.
    pub(super) met: bool,
    /// Set once it has begun its first round.
    pub(super) begun: bool,
    /// How far the wait before that has come.
    pub(super) patience: Patience,
    /// In a grid, the first counterpart for which it waits.
    pub(super) waits_for: Option<Missing>,
    /// Set if its certificate gives this peer no part in rounds.
    pub(super) observes: bool,
    /// When such a peer last asked others for what they decided.
    pub(super) followed: Time,
    /// Set once most others' clocks differ from this peer's.
    pub(super) clock_off: bool,
}

/// What a counterpart has not done yet that a peer waits for before its first round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// It is not here.
    Link(PeerId),
    /// It has not met as many itself.
    Met(PeerId),
}

/// How far the wait before the first round of a life has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Patience {
    /// All companions of the earlier life may still come.
    #[default]
    ForAll,
    /// Most of the companions suffice. A fresh peer has no such stage.
    ForMost,
    /// `start_wait` is over.
    Over,
}

/// What others say of the states with which peers wait for their first round.
#[derive(Debug, Default)]
pub(super) struct Rest {
    pub(super) rounds: SortedMap<Round, Said>,
}

/// What others say of one round.
#[derive(Debug)]
pub(super) struct Said {
    /// Until when their answers are waited for.
    pub(super) until: Time,
    pub(super) asked: SortedSet<PeerId>,
    /// How often those that are silent are asked again.
    pub(super) again: u8,
    /// With which parameters each of them began it, if it did.
    pub(super) began: SortedMap<PeerId, Option<Digest>>,
}

impl Said {
    /// Answers may still come.
    pub(super) fn is_open(&self, now: Time) -> bool {
        now < self.until || self.again > 0
    }
}

/// Where this peer's state stands among those of the peers that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is the newest, or none is to be waited for.
    Newest,
    /// This one is to be taken over first.
    Behind(Base),
    /// Too few have said yet what they know.
    Unclear,
}

/// How far the catch-up is.
#[derive(Debug)]
pub(super) enum CatchUp {
    /// Nothing to catch up with.
    Idle,
    /// Donors were asked.
    Asking {
        asked: SortedSet<PeerId>,
        offers: SortedMap<Offer, Vec<PeerId>>,
    },
    /// Others are asked whether an offered state is the run's.
    Vouching(Vouching),
    /// A state is on its way, from these donors.
    Fetching(Offer, Vec<PeerId>),
    /// It is here. Before it is loaded, this peer's branch is saved.
    Keeping(OrderId, Offer, Vec<PeerId>),
    /// The Executor loads it.
    Loading(OrderId, Offer, Vec<PeerId>),
    /// A past round is being replayed.
    Replaying(Replay),
}

impl CatchUp {
    pub(super) fn idle(&self) -> bool {
        matches!(self, Self::Idle)
    }
}

/// An offered state about which others are asked.
#[derive(Debug)]
pub(super) struct Vouching {
    pub(super) offer: Offer,
    pub(super) donors: Vec<PeerId>,
    /// What the others say that the state's round was opened with.
    pub(super) said: SortedMap<PeerId, Digest>,
    pub(super) asked: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluations_take_at_most_their_share_of_the_time() {
        let at = |seconds: u64| Time::ZERO + core::time::Duration::from_secs(seconds);
        let mut evaluation = EvaluationTime::default();
        assert!(evaluation.is_worth_another(at(0), 5), "none has been made");
        (evaluation.began, evaluation.ended) = (at(10), at(12));
        assert!(!evaluation.is_worth_another(at(12), 5));
        assert!(!evaluation.is_worth_another(at(49), 5));
        assert!(evaluation.is_worth_another(at(50), 5), "2 of 40 seconds");
        assert!(evaluation.is_worth_another(at(12), 0), "no bound");
    }
}
