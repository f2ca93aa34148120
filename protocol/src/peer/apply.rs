//! The end of a round: its result is applied, fragment by fragment.

use crate::core::{Event, Phase};
use crate::exchange::Ending;
use crate::peer::Peer;
use crate::{Done, FragmentId, Order, WorkError};

impl Peer {
    /// Applies the ending of one fragment, while others may still be under way.
    pub(super) fn apply(&mut self, fragment: FragmentId, ending: Ending) {
        let round = self.cx.round;
        if self.cx.plan.fragments_of(round).next() == Some(fragment) {
            self.life.voided = ending == Ending::Void;
        }
        let rules = self.with_codec(self.cx.directed.in_force().training);
        let order = match ending {
            Ending::Apply(aggregates) => Order::Apply {
                round,
                fragment,
                aggregates,
                keep_local: false,
                rules,
            },
            Ending::Gather(inputs) => Order::Gather {
                round,
                fragment,
                inputs,
                keep_local: false,
                rules,
            },
            Ending::Merge(aggregates) => Order::Merge {
                round,
                fragment,
                aggregates,
            },
            Ending::Void => Order::Void { round, fragment },
        };
        let id = self.cx.order(order);
        self.life.applies.insert(id, fragment);
    }

    pub(super) fn applied(&mut self, fragment: FragmentId, done: &Done) {
        match done {
            Done::Applied { digest, note } => {
                self.cx.rolls.note.extend_from_slice(note);
                if let Some(slot) = self.cx.digests.get_mut(usize::from(fragment.0)) {
                    *slot = *digest;
                }
            }
            other => {
                // The same bytes fail at every peer. So all of them apply the fragment without
                // these bytes, or all void it, and they hold the same anchor either way.
                self.report_failure(other);
                if let Done::Failed(WorkError::BadSlice { slice, reason, .. }) = other
                    && let Some(ending) = self.exchange.without(&mut self.cx, *slice, reason)
                {
                    self.apply(fragment, ending);
                    return;
                }
                let round = self.cx.round;
                let id = self.cx.order(Order::Void { round, fragment });
                self.life.applies.insert(id, fragment);
                return;
            }
        }
        self.exchange.applied(&mut self.cx, fragment);
        self.go_on_when_done();
    }

    pub(super) fn report_failure(&mut self, done: &Done) {
        if let Done::Failed(error) = done {
            self.cx.emit(Event::WorkFailed {
                what: format!("{error}"),
            });
        }
    }

    pub(super) fn end_round(&mut self) {
        let (round, digest) = (self.cx.round, self.cx.anchor());
        let seconds = self.cx.now.since(self.life.started).as_secs_f64();
        self.exchange.finish(&mut self.cx);
        if std::mem::take(&mut self.life.alone) {
            self.cx.emit(Event::Alone { round, seconds });
        } else {
            self.cx.round = self.cx.round.max(round).next();
            let kept = std::mem::take(&mut self.life.voided);
            self.turn(round, kept);
            self.cx.emit(Event::RoundEnded {
                round,
                digest,
                seconds,
            });
        }
        if self.phase == Phase::Leaving {
            self.save();
            return;
        }
        self.enter(Phase::Settle);
        self.donor_round_ended();
        self.settle();
    }
}
