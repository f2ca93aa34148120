//! The training loss that the peers of a round agree on, and the inner steps that follow from it
//! ([`Pace::Loss`](crate::Pace::Loss)).
//!
//! Peers measure different losses. Each says its own with its contribution, and what a round decides
//! names whose contributions count. So all members know the same losses with the same weights.
//!
//! **The weighted median of these is the round's loss**, and not their mean: one member that claims an
//! enormous loss would move the mean as far as it likes. The median stays among the losses of honest
//! members while liars have less than half of the weight. It costs nothing more, because every member has
//! all losses at hand.
//!
//! What follows is replicated state, as the ledger of the data is: it is in states and checkpoints.
//!
//! With [`Pace::Measured`](crate::Pace::Measured) members say in the same place how long exchanges hold their
//! training up, in inner steps. All of the above holds for that number too.

use crate::limits::LOSS_MAX;
use crate::{Round, StepBudget};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// A training loss that a peer may claim: from zero to [`LOSS_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize)]
pub struct Loss(f32);

/// A number that is no loss: negative, not finite, or above the limit.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{found} is no training loss: it must be from 0 to {LOSS_MAX:e}")]
pub struct NoLoss {
    /// The number.
    pub found: f32,
}

impl Loss {
    /// What a peer claims of a measured loss. Training that diverged has the highest loss, and one that
    /// is negative counts as zero, because the rule is about the ratio of two losses.
    pub fn of(measured: f64) -> Self {
        if measured.is_nan() {
            Self(LOSS_MAX)
        } else {
            // A negative zero becomes a zero.
            Self((measured as f32).clamp(0.0, LOSS_MAX) + 0.0)
        }
    }

    /// In the unit of the task.
    pub fn value(self) -> f64 {
        f64::from(self.0)
    }
}

impl TryFrom<f32> for Loss {
    type Error = NoLoss;

    fn try_from(found: f32) -> Result<Self, NoLoss> {
        // A negative zero is left out too: equal losses have equal bytes.
        let fits = found.is_sign_positive() && found <= LOSS_MAX;
        if fits {
            Ok(Self(found))
        } else {
            Err(NoLoss { found })
        }
    }
}

impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(f32::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// The weighted median: the least of these losses such that those up to it have half of the weight.
/// `None` where nothing has a weight. The order in which they are given is the same at all peers.
pub(crate) fn median(mut said: Vec<(Loss, f64)>) -> Option<Loss> {
    said.retain(|(_, weight)| *weight > 0.0);
    said.sort_by(|(a, _), (b, _)| a.0.total_cmp(&b.0));
    let half = 0.5 * said.iter().map(|(_, weight)| weight).sum::<f64>();
    let mut below = 0.0;
    let found = said.iter().find(|(_, weight)| {
        below += weight;
        below >= half
    });
    found.map(|(loss, _)| *loss)
}

/// What the peers agree on about their training loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Losses {
    /// F_0: that of the first round with a result.
    first: Option<Loss>,
    last: Option<Loss>,
    /// H of the interval, once it is not that of the first.
    steps: Option<u32>,
}

impl Losses {
    /// The loss of the last round with a result.
    pub const fn last(&self) -> Option<Loss> {
        self.last
    }

    /// The inner steps of the round, given those of the first, and the fewest and the most.
    pub(crate) fn steps(&self, first: u32, (least, most): (u32, u32)) -> u32 {
        let least = least.max(1);
        self.steps
            .map_or(first, |steps| steps.clamp(least, most.max(least)))
    }

    /// A round ended with this loss; with none, it had no result.
    pub(crate) fn note(&mut self, loss: Option<Loss>) {
        if let Some(loss) = loss {
            self.first.get_or_insert(loss);
            self.last = Some(loss);
        }
    }

    /// Forgets the last number, which was measured under another codec: inner steps stay until the next result.
    pub(crate) fn forget_last(&mut self) {
        self.last = None;
    }

    /// `opened` begins. Where an interval of `every` rounds begins with it, its inner steps follow from
    /// the last loss F_l:
    ///
    /// `H_l = ceil(H_0 sqrt(F_l / F_0))` if that is less than `H_(l-1)`, and else
    /// `max(1, floor(g H_(l-1)))` with the factor g, given in thousandths.
    ///
    /// H never rises, and is in [1, H_0]. Division and square root are exactly rounded, so all machines
    /// get the same result.
    /// **Source:** Wang and Joshi 2019, "Adaptive communication strategies to achieve the best
    /// error-runtime trade-off in local-update SGD", section 4, equations (17) and (18) (numbers not
    /// verified).
    pub(crate) fn open(&mut self, opened: Round, every: u64, factor: u16, budget: StepBudget) {
        let (StepBudget::Steps(start), Some(first), Some(last)) = (budget, self.first, self.last)
        else {
            return;
        };
        if !opened.0.is_multiple_of(every.max(1)) {
            return;
        }
        let before = self.steps(start, (1, start));
        let wanted = (f64::from(start) * (last.value() / first.value()).sqrt()).ceil();
        // A loss that was zero from the beginning has not fallen: then `wanted` is not a number.
        let now = if wanted < f64::from(before) {
            wanted as u32
        } else {
            (u64::from(before) * u64::from(factor) / 1000) as u32
        };
        self.steps = Some(now.clamp(1, before));
    }

    /// As [`open`](Self::open), where the last number is how many inner steps w an exchange holds training
    /// up: `H = ceil(w s / (1 - s))` between the fewest and the most, with the share s in thousandths. A
    /// change by less than a quarter is noise of the machines, and left out.
    pub(crate) fn open_measured(
        &mut self,
        opened: Round,
        (every, share): (u64, u16),
        bounds: (u32, u32),
        start: u32,
    ) {
        let Some(waits) = self.last.filter(|_| opened.0.is_multiple_of(every.max(1))) else {
            return;
        };
        let before = f64::from(self.steps(start, bounds));
        let share = f64::from(share.clamp(1, 999));
        let wanted = (waits.value() * share / (1000.0 - share)).ceil();
        // The cast saturates.
        let wanted = (wanted as u32).clamp(bounds.0, bounds.1);
        if (f64::from(wanted) - before).abs() >= 0.25 * before {
            self.steps = Some(wanted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{decode_value, encode_value};
    use proptest::prelude::*;

    fn loss(value: f32) -> Loss {
        Loss::try_from(value).unwrap()
    }

    /// Both equations as the paper has them, in f64, with a factor of one half. The paper's factor is
    /// not rounded; ours is rounded down.
    fn reference(start: f64, first: f64, last: f64, before: f64) -> f64 {
        let wanted = (start * (last / first).sqrt()).ceil();
        if wanted < before {
            wanted.max(1.0)
        } else {
            (0.5 * before).floor().max(1.0)
        }
    }

    #[test]
    fn inner_steps_follow_the_root_of_the_loss_and_halve_where_it_stagnates() {
        let mut losses = Losses::default();
        let mut found = Vec::new();
        // F_0 = 4. The loss falls to a quarter, stays there, and falls to a sixteenth of that.
        for (round, value) in (0..).zip([4.0, 3.0, 1.0, 1.0, 1.0, 1.0, 0.0625, 0.0625]) {
            losses.note(Some(loss(value)));
            losses.open(Round(round + 1), 2, 500, StepBudget::Steps(64));
            found.push(losses.steps(64, (1, 64)));
        }
        // sqrt(3 / 4) of 64 is 55.4; then the half of it, twice; then sqrt(1 / 64) of 64.
        assert_eq!(found, [64, 56, 56, 32, 32, 16, 16, 8]);
    }

    fn measured(waits: f64, start: u32, bounds: (u32, u32), share: u16) -> u32 {
        let mut losses = Losses::default();
        losses.note(Some(Loss::of(waits)));
        losses.open_measured(Round(8), (8, share), bounds, start);
        losses.steps(start, bounds)
    }

    #[test]
    fn training_takes_its_share_of_the_time() {
        // 10 inner steps of waiting and 90 of training are 0.9.
        assert_eq!(measured(10.0, 16, (1, 1000), 900), 90);
        assert_eq!(measured(10.0, 16, (1, 64), 900), 64);
        assert_eq!(measured(0.1, 16, (4, 64), 900), 4);
        assert_eq!(measured(0.0, 16, (1, 64), 900), 1);
        assert_eq!(measured(f64::NAN, 16, (1, 64), 900), 64);
        // Between two intervals, and by less than a quarter, nothing changes.
        assert_eq!(measured(2.0, 16, (1, 64), 900), 16);
        let mut losses = Losses::default();
        losses.note(Some(loss(10.0)));
        losses.open_measured(Round(7), (8, 900), (1, 1000), 16);
        assert_eq!(losses.steps(16, (1, 1000)), 16);
        losses.note(None);
        losses.open_measured(Round(16), (8, 900), (1, 1000), 16);
        assert_eq!(losses.steps(16, (1, 1000)), 90);
        // A state of a liar moves no one out of the bounds.
        assert_eq!(losses.steps(16, (1, 50)), 50);
    }

    proptest! {
        #[test]
        fn a_measured_number_is_the_least_with_its_share(
            waits in 0.0f64..5_000.0,
            start in 1u32..600,
            share in 1u16..1000,
        ) {
            let found = measured(waits, start, (1, u32::MAX), share);
            let waits = Loss::of(waits).value();
            let s = f64::from(share) / 1000.0;
            let of = |steps: u32| f64::from(steps) / (f64::from(steps) + waits);
            let kept = found == start && (waits * s / (1.0 - s)).ceil() < 1.25 * f64::from(start) + 1.0;
            prop_assert!(kept || of(found) >= s - 1e-9);
            prop_assert!(kept || found == 1 || of(found - 1) < s + 1e-9);
        }

        #[test]
        fn the_rule_is_that_of_the_paper(
            start in 1u32..5000,
            said in proptest::collection::vec(1e-6f32..1e6, 2..40),
        ) {
            let (mut losses, mut before) = (Losses::default(), f64::from(start));
            let first = f64::from(said[0]);
            for (round, value) in (0..).zip(&said) {
                losses.note(Some(loss(*value)));
                losses.open(Round(round + 1), 1, 500, StepBudget::Steps(start));
                before = reference(f64::from(start), first, f64::from(*value), before);
                prop_assert_eq!(f64::from(losses.steps(start, (1, start))), before);
            }
        }

        #[test]
        fn no_claim_takes_inner_steps_out_of_their_bounds(
            start in 1u32..=u32::MAX,
            said in proptest::collection::vec(any::<f64>(), 1..20),
            factor in 1u16..=1000,
        ) {
            let (mut losses, mut before) = (Losses::default(), start);
            for (round, value) in (0..).zip(said) {
                losses.note(Some(Loss::of(value)));
                losses.open(Round(round + 1), 1, factor, StepBudget::Steps(start));
                let now = losses.steps(start, (1, start));
                prop_assert!((1..=before).contains(&now));
                before = now;
            }
            prop_assert_eq!(decode_value(&encode_value(&losses)), Ok(losses));
        }

        #[test]
        fn liars_with_less_than_half_of_the_weight_keep_the_median_among_the_others(
            honest in proptest::collection::vec((0.0f32..100.0, 1u32..100), 1..12),
            lies in proptest::collection::vec((0.0f32..=LOSS_MAX, 1u32..100), 0..12),
        ) {
            let weight = |said: &[(f32, u32)]| said.iter().map(|(_, w)| *w).sum::<u32>();
            prop_assume!(weight(&lies) < weight(&honest));
            let said = honest.iter().chain(&lies);
            let found = median(said.map(|(l, w)| (loss(*l), f64::from(*w))).collect());
            let found = found.unwrap().0;
            let of = honest.iter().map(|(l, _)| *l);
            let (least, most) = (of.clone().fold(f32::MAX, f32::min), of.fold(0.0, f32::max));
            prop_assert!((least..=most).contains(&found), "{found} of {least} to {most}");
        }
    }

    #[test]
    fn a_round_without_a_result_keeps_the_last_loss() {
        let mut losses = Losses::default();
        losses.note(None);
        losses.open(Round(1), 1, 500, StepBudget::Steps(8));
        assert_eq!((losses.last(), losses.steps(8, (1, 8))), (None, 8));
        losses.note(Some(loss(2.0)));
        losses.note(None);
        assert_eq!(losses.last(), Some(loss(2.0)));
        // A round within an interval changes nothing.
        losses.open(Round(5), 4, 500, StepBudget::Steps(8));
        assert_eq!(losses.steps(8, (1, 8)), 8);
    }

    /// States and checkpoints hold them.
    #[test]
    fn their_bytes_do_not_change() {
        let mut losses = Losses::default();
        assert_eq!(encode_value(&losses), [0, 0, 0]);
        losses.note(Some(loss(2.5)));
        losses.note(Some(loss(0.625)));
        losses.open(Round(2), 2, 500, StepBudget::Steps(16));
        let bytes = [
            &[1u8][..],
            &2.5f32.to_le_bytes(),
            &[1],
            &0.625f32.to_le_bytes(),
            &[1, 8, 0, 0, 0],
        ];
        assert_eq!(encode_value(&losses), bytes.concat());
        assert_eq!(decode_value(&bytes.concat()), Ok(losses));
    }

    #[test]
    fn a_loss_of_zero_from_the_beginning_is_one_that_stagnates() {
        let mut losses = Losses::default();
        losses.note(Some(loss(0.0)));
        losses.open(Round(1), 1, 500, StepBudget::Steps(8));
        assert_eq!(losses.steps(8, (1, 8)), 4);
        // One that rises from zero is infinitely larger.
        losses.note(Some(loss(1.0)));
        losses.open(Round(2), 1, 1000, StepBudget::Steps(8));
        assert_eq!(losses.steps(8, (1, 8)), 4);
    }

    #[test]
    fn what_is_no_loss_cannot_be_decoded_and_is_claimed_within_the_bounds() {
        for bad in [
            f32::NAN,
            f32::INFINITY,
            -f32::INFINITY,
            -1.0,
            -0.0,
            2.0 * LOSS_MAX,
        ] {
            assert!(decode_value::<Loss>(&bad.to_le_bytes()).is_err(), "{bad}");
        }
        for (measured, claimed) in [
            (f64::NAN, LOSS_MAX),
            (f64::INFINITY, LOSS_MAX),
            (1e300, LOSS_MAX),
            (-3.0, 0.0),
            (-0.0, 0.0),
            (2.5, 2.5),
        ] {
            let loss = Loss::of(measured);
            assert_eq!(loss.0, claimed, "{measured}");
            assert_eq!(decode_value(&encode_value(&loss)), Ok(loss), "{measured}");
        }
    }

    #[test]
    fn the_median_weighs_members_and_takes_the_smaller_of_two_halves() {
        let of = |said: &[(f32, f64)]| {
            let said = said.iter().map(|(value, weight)| (loss(*value), *weight));
            median(said.collect()).map(|found| found.0)
        };
        assert_eq!(of(&[(3.0, 1.0), (1.0, 1.0), (2.0, 1.0)]), Some(2.0));
        assert_eq!(of(&[(3.0, 5.0), (1.0, 1.0), (2.0, 1.0)]), Some(3.0));
        assert_eq!(of(&[(3.0, 1.0), (1.0, 1.0)]), Some(1.0));
        assert_eq!(of(&[(3.0, 0.0), (1.0, 0.0)]), None);
        assert_eq!(of(&[]), None);
    }
}
