//! Which peers a round waits for, which of them train, and how much: the settings that all exchanges with common
//! rounds share. Those of an asynchronous center are in [`CenterPlan`](crate::CenterPlan).

use crate::{Round, StepBudget};
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// A plan's synchronization. By default peers wait for all others, all rounds have the same budget,
/// and all peers train in every round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Synchronization {
    /// How the budget changes with the round.
    pub pace: Pace,
    /// How many ready peers are enough for a round.
    pub quorum: Quorum,
    /// Which of the peers train in a round.
    pub sampling: Sampling,
}

/// How many ready peers are enough for a round to continue without the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quorum {
    /// The number of contributions that is enough (n of m, backup workers); zero means all. A group
    /// needs a majority in any case, because two groups of one round would split the run.
    pub enough: u16,
    /// How long a round still waits for the others after that.
    pub grace: Grace,
}

/// How long a round waits for the others once enough peers are ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Grace {
    /// A fixed time.
    Fixed(Duration),
    /// Twice the median lateness of the others in the last rounds, within the bounds of
    /// [`DeadlinePlan`](crate::DeadlinePlan).
    Adaptive,
}

impl Default for Grace {
    fn default() -> Self {
        Self::Fixed(Duration::ZERO)
    }
}

// How the number of inner steps changes from round to round. Mostly it depends on the round only. With
// [`Pace::Loss`] and [`Pace::Measured`] it depends on losses or waits that peers agree on
// ([`Losses`](crate::Losses)), and in balanced rounds on the speeds of the machines, which each peer measures
// itself.

/// How the budget of a round follows from that of the first, H_0 inner steps.
///
/// Cost: none of its own. The cost of an exchange is spread over more or fewer inner steps.
/// **Source:** [`Pace::Switch`]: Lin et al. 2020, "Don't use large mini-batches, use local SGD",
/// section 3 (post-local SGD). [`Pace::Decay`]: Wang and Joshi 2019, "Adaptive communication
/// strategies to achieve the best error-runtime trade-off in local-update SGD" (AdaComm), whose
/// rule is `H_l = ceil(H_0 sqrt(F_l / F_0))` at the start of interval l, with the training loss F. Here
/// F_l / F_0 is replaced by `1 / (1 + l)`, the rate at which a loss falls under SGD. [`Pace::Loss`]: the
/// same paper, with the losses themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pace {
    /// The same number in every round.
    #[default]
    Steady,
    /// Another number of inner steps from some round on. One before and H after is post-local SGD.
    Switch {
        /// The first round with the other number.
        round: u64,
        /// Inner steps of that round and those after it.
        steps: u32,
    },
    /// A decreasing number: `H_l = ceil(H_0 / sqrt(1 + l))` in rounds `l every .. (l + 1) every`.
    Decay {
        /// Rounds of one interval.
        every: u64,
    },
    /// At most H_0 inner steps, and fewer on a slower machine, so that all end at about the same time:
    /// `H_i = H_0 t_fastest / t_i`, at least `H_0 / 4`, where t is the time for one sample. A peer
    /// measures t itself. Only for exchanges whose peers agree: they tell each other when they have
    /// trained.
    Balanced,
    /// A number that decreases with the loss: at the start of interval l, `H_l = ceil(H_0 sqrt(F_l / F_0))`
    /// if that is less than `H_(l-1)`, and else `H_(l-1)` times a factor. F is the weighted median of the
    /// members' losses in the last round with a result. Only for exchanges whose peers agree, in one group
    /// that tells no lies.
    Loss {
        /// Rounds of one interval.
        every: u64,
        /// The factor on an interval whose loss did not fall enough, in thousandths, from 1 to 1000.
        factor: u16,
    },
    /// A number that makes training a share s of the time: `H = ceil(w s / (1 - s))`. Here w is how long a
    /// round's exchange holds training up, counted in inner steps: the weighted median of what the members
    /// have measured, in the last round with a result. For exchanges as with [`Pace::Loss`].
    Measured {
        /// Rounds of one interval. The number only changes between two.
        every: u64,
        /// The share s in thousandths, from 1 to 999.
        share: u16,
        /// The fewest inner steps.
        least: u32,
        /// The most.
        most: u32,
    },
}

impl Pace {
    /// Returns `true` if the number follows from the losses or waits that members say with their contributions.
    pub const fn is_agreed(self) -> bool {
        matches!(self, Self::Loss { .. } | Self::Measured { .. })
    }

    /// The budget of a round, given that of the first. Of a balanced round, the most that it may be. Where
    /// it depends on the loss, this is a forecast: as if the loss fell as `1 / (1 + l)`. Peers go by the
    /// losses that they agree on. Where it depends on what exchanges take, the forecast is that of the first.
    pub fn budget(self, first: StepBudget, round: Round) -> StepBudget {
        match (self, first) {
            (Self::Switch { round: at, steps }, _) if round.0 >= at => StepBudget::Steps(steps),
            (Self::Decay { every } | Self::Loss { every, .. }, StepBudget::Steps(steps)) => {
                StepBudget::Steps(decayed(steps, round.0 / every.max(1)))
            }
            _ => first,
        }
    }

    /// The budget of a typical round, given that of the first: the one after a switch, or the first
    /// of those that decrease.
    pub const fn usual(self, first: StepBudget) -> StepBudget {
        match self {
            Self::Switch { steps, .. } => StepBudget::Steps(steps),
            Self::Steady
            | Self::Decay { .. }
            | Self::Balanced
            | Self::Loss { .. }
            | Self::Measured { .. } => first,
        }
    }

    /// The number of rounds that take `inner_steps` in all, on the fastest machine where machines take
    /// different numbers; `None` for a time budget. A forecast where they depend on what members say.
    pub fn rounds(self, first: StepBudget, inner_steps: u64) -> Option<u64> {
        let (mut left, mut rounds) = (inner_steps, 0);
        let alike = matches!(self, Self::Steady | Self::Balanced | Self::Measured { .. });
        if let (true, StepBudget::Steps(steps)) = (alike, first) {
            return Some(left.div_ceil(u64::from(steps.max(1))));
        }
        while left > 0 {
            let StepBudget::Steps(steps) = self.budget(first, Round(rounds)) else {
                return None;
            };
            left = left.saturating_sub(u64::from(steps.max(1)));
            rounds += 1;
        }
        Some(rounds)
    }

    /// Returns `true` if it works with the budget of the first round: every round must train, and only a
    /// number of inner steps can change.
    pub const fn fits(self, first: StepBudget) -> bool {
        match self {
            Self::Steady => true,
            Self::Balanced => matches!(first, StepBudget::Steps(_)),
            Self::Switch { round, steps } => {
                round > 0 && steps > 0 && matches!(first, StepBudget::Steps(_))
            }
            Self::Decay { every } => every > 0 && matches!(first, StepBudget::Steps(_)),
            Self::Loss { every, factor } => {
                let some = every > 0 && 0 < factor && factor <= 1000;
                some && matches!(first, StepBudget::Steps(_))
            }
            Self::Measured {
                every,
                share,
                least,
                most,
            } => {
                let some = every > 0 && 0 < share && share < 1000 && least > 0;
                matches!(first, StepBudget::Steps(steps) if some && least <= steps && steps <= most)
            }
        }
    }
}

/// `ceil(steps / sqrt(1 + interval))` in integers, so that all machines get the same result.
fn decayed(steps: u32, interval: u64) -> u32 {
    let square = (u64::from(steps) * u64::from(steps)).div_ceil(interval.saturating_add(1));
    let root = square.isqrt();
    let up = root + u64::from(root * root < square);
    u32::try_from(up).unwrap_or(steps)
}

/// Client sampling: which of the peers train in a round. It depends on the run, the round and the
/// peer alone, so all peers agree on it even where their views differ.
///
/// The share of the peers that train in a round.
///
/// Each peer is drawn independently with the same probability C, so the number of drawn peers is
/// binomial with mean n C. (FedAvg draws max(C n, 1) of n known clients. Here no peer knows n for
/// certain, and a fixed number would make the sample depend on each peer's view.) A peer that is
/// not drawn says at once that it is ready, with weight 0. It contributes nothing and delays no
/// other peer, but it votes and reduces its shards. A round in which no peer is drawn is void; it
/// takes as long as forming its group.
///
/// ```text
/// a' = outer(a, sum_{i in S_r} w_i C(d_i) / sum_{i in S_r} w_i),
/// i in S_r iff hash(run, r, i) < C 2^64
/// ```
///
/// Cost: with m of n peers drawn, contributions take m (n - 1) pushes instead of n (n - 1).
/// Aggregates and votes cost the same as without sampling. **Source:** McMahan et al. 2017,
/// "Communication-efficient learning of deep networks from decentralized data", algorithm 1 (C);
/// independent draws: McMahan et al. 2018, "Learning differentially private recurrent language
/// models", algorithm 1 (q).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampling {
    /// The probability in millionths, from 1 to 1,000,000.
    pub per_million: u32,
}

impl Sampling {
    /// All peers in every round.
    pub const ALL: Self = Self {
        per_million: 1_000_000,
    };

    /// Returns `true` if the probability is above zero and at most one: some peer must be drawn eventually.
    pub const fn fits(self) -> bool {
        self.per_million > 0 && self.per_million <= Self::ALL.per_million
    }
}

impl Default for Sampling {
    fn default() -> Self {
        Self::ALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(pace: Pace, first: u32, round: u64) -> u32 {
        match pace.budget(StepBudget::Steps(first), Round(round)) {
            StepBudget::Steps(steps) => steps,
            StepBudget::Time(_) => panic!("a count stays a count"),
        }
    }

    #[test]
    fn a_switch_is_at_its_round_and_for_good() {
        let pace = Pace::Switch {
            round: 5,
            steps: 16,
        };
        let all: Vec<u32> = (0..8).map(|round| steps(pace, 1, round)).collect();
        assert_eq!(all, [1, 1, 1, 1, 1, 16, 16, 16]);
        assert_eq!(pace.rounds(StepBudget::Steps(1), 5 + 2 * 16 + 1), Some(8));
        assert_eq!(pace.usual(StepBudget::Steps(1)), StepBudget::Steps(16));
        assert_eq!(Pace::Steady.rounds(StepBudget::Steps(7), 15), Some(3));
    }

    #[test]
    fn a_decay_is_the_smallest_count_above_the_root() {
        let pace = Pace::Decay { every: 3 };
        for first in [1u32, 2, 7, 16, 500, 46_341, u32::MAX] {
            for interval in [0u64, 1, 2, 3, 15, 99, 1 << 40] {
                let h = u128::from(steps(pace, first, 3 * interval));
                assert_eq!(h, u128::from(steps(pace, first, 3 * interval + 2)));
                let (first, parts) = (u128::from(first), u128::from(interval + 1));
                assert!(h >= 1 && h * h * parts >= first * first);
                assert!((h - 1) * (h - 1) * parts < first * first);
            }
        }
        assert_eq!(steps(pace, 16, 9), 8);
    }

    #[test]
    fn a_forecast_of_losses_is_a_decay() {
        let (every, first) = (3, StepBudget::Steps(12));
        let factor = 500;
        for round in (0..40).map(Round) {
            let forecast = Pace::Loss { every, factor }.budget(first, round);
            assert_eq!(forecast, Pace::Decay { every }.budget(first, round));
        }
        let rounds = |pace: Pace| pace.rounds(first, 100);
        assert_eq!(
            rounds(Pace::Loss { every, factor }),
            rounds(Pace::Decay { every })
        );
    }

    #[test]
    fn what_trains_nothing_or_by_time_has_no_other_pace() {
        use core::time::Duration;
        let time = StepBudget::Time(Duration::from_secs(1));
        let one = StepBudget::Steps(1);
        assert!(Pace::Steady.fits(time) && Pace::Decay { every: 1 }.fits(one));
        assert!(!Pace::Decay { every: 1 }.fits(time) && !Pace::Decay { every: 0 }.fits(one));
        let switch = |round, steps| Pace::Switch { round, steps };
        assert!(switch(1, 1).fits(one) && !switch(1, 1).fits(time));
        assert!(!switch(0, 1).fits(one) && !switch(1, 0).fits(one));
        assert!(Pace::Balanced.fits(one) && !Pace::Balanced.fits(time));
        let loss = |every, factor| Pace::Loss { every, factor };
        assert!(loss(1, 1).fits(one) && loss(9, 1000).fits(one) && !loss(1, 500).fits(time));
        assert!(!loss(0, 500).fits(one) && !loss(1, 0).fits(one) && !loss(1, 1001).fits(one));
        let measured = |every, share, least, most| Pace::Measured {
            every,
            share,
            least,
            most,
        };
        assert!(measured(1, 1, 1, 1).fits(one) && measured(8, 999, 1, 500).fits(one));
        assert!(!measured(0, 900, 1, 9).fits(one) && !measured(1, 1000, 1, 9).fits(one));
        assert!(!measured(1, 0, 1, 9).fits(one) && !measured(1, 900, 0, 9).fits(one));
        assert!(!measured(1, 900, 2, 9).fits(one) && !measured(1, 900, 1, 9).fits(time));
    }
}
