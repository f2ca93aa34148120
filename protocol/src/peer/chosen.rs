//! Rounds whose codec the members choose by how long exchanges hold their training up
//! ([`Ladder`](crate::Ladder)).
//!
//! The choice is followed in all rounds, also while the owner has given a codec of its own: then no one
//! measures, so it stays. It goes by the inner steps of the configuration, not by those that the owner has given:
//! so peers that hear of a directive at different times agree on the same codec.

use crate::data::Counted;
use crate::peer::Peer;
use crate::{Chosen, Event, Ladder, Loss, Pace, Rung, StepBudget, TrainingRules};

impl Peer {
    /// The codecs from which members choose, where they do.
    pub fn ladder(&self) -> Option<&Ladder> {
        self.cx.plan.agreement.ladder.as_ref()
    }

    /// What the peers agree on about the codec, where they choose it.
    pub fn chosen(&self) -> Option<&Chosen> {
        self.ladder().map(|_| &self.cx.data.chosen)
    }

    /// The codec that the members have chosen for this round, where they choose it.
    pub fn chosen_codec(&self) -> Option<Rung> {
        Some(*self.chosen()?.codec(self.ladder()?))
    }

    /// Rules of the owner, with the codec that the members have chosen.
    pub(super) fn with_codec(&self, rules: TrainingRules) -> TrainingRules {
        let rung = self.ladder().map(|ladder| self.cx.data.chosen.rung(ladder));
        TrainingRules {
            rung: rung.unwrap_or(0),
            ..rules
        }
    }

    /// Takes over the codec of a state.
    pub(super) fn take_chosen(&mut self, chosen: Chosen) {
        if self.ladder().is_some() {
            self.waits.forget();
        }
        self.cx.data.chosen = chosen;
    }

    /// A round is over: the wait that its members have said is in force. The peer is in the next round already.
    /// Returns whether that has another codec.
    pub(super) fn settle_codec(&mut self, counted: Option<&Counted>, wait: Option<Loss>) -> bool {
        let Some(ladder) = self.cx.plan.agreement.ladder else {
            return false;
        };
        let most = self.steps_at_most();
        let (round, chosen) = (self.cx.round, &mut self.cx.data.chosen);
        if counted == Some(&Counted::Merged) {
            // Each branch had a codec of its own: the rule begins again at that of the configuration.
            let changes = chosen.rung(&ladder) != 0;
            *chosen = Chosen::default();
            self.waits.forget();
            return changes;
        }
        chosen.note(wait);
        let Some(change) = chosen.open(round, &ladder, most) else {
            return false;
        };
        self.waits.forget();
        self.cx.emit(Event::Recoded { round, change });
        true
    }

    /// The inner steps of this round by the configuration; the most that it may have where the pace follows what
    /// members measure. So longer rounds come before a codec that loses more.
    fn steps_at_most(&self) -> u32 {
        match self.cx.directed.configured() {
            (_, Pace::Measured { most, .. }) => most,
            (budget, pace) => match pace.budget(budget, self.cx.round) {
                StepBudget::Steps(steps) => steps,
                StepBudget::Time(_) => 1,
            },
        }
    }
}
