//! What the weight of a contribution counts. After a void round the next contribution holds the training of
//! both, so where weights count inner steps, these add up.

use crate::{TrainSummary, Weighing};

/// Inner steps behind the contribution of this round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Carried {
    /// Of rounds before this one that were void.
    before: u64,
    /// Of this round.
    now: u64,
}

impl Carried {
    /// The weight of a contribution after this training.
    pub(super) fn weigh(&mut self, weighing: Weighing, summary: &TrainSummary) -> f64 {
        self.now = summary.steps;
        match weighing {
            Weighing::Samples => summary.samples as f64,
            Weighing::Steps => (self.before + self.now) as f64,
        }
    }

    /// A round has ended, perhaps without a result.
    pub(super) fn ended(&mut self, void: bool) {
        self.before = if void { self.before + self.now } else { 0 };
        self.now = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_steps_of_void_rounds_count_with_those_of_the_next() {
        let summary = |steps| TrainSummary {
            steps,
            samples: 8 * steps,
            ..TrainSummary::default()
        };
        let mut carried = Carried::default();
        assert_eq!(carried.weigh(Weighing::Steps, &summary(3)), 3.0);
        carried.ended(true);
        assert_eq!(carried.weigh(Weighing::Steps, &summary(4)), 7.0);
        assert_eq!(carried.weigh(Weighing::Samples, &summary(4)), 32.0);
        carried.ended(false);
        assert_eq!(carried.weigh(Weighing::Steps, &summary(5)), 5.0);
    }
}
