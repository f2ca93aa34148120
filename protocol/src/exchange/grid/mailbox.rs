//! What arrives for a grid's round: slices and messages, early, in time or late.

use super::seating::Seating;
use super::{EXCHANGE, GridExchange, GridMessage};
use crate::core::context::Context;
use crate::exchange::agreed::{FragmentMessage, Scoped};
use crate::exchange::{Arrived, Outcome, broke, foreign_tag};
use crate::limits::{APPLICANTS_MAX, EARLY_SLICES_MAX, ROUNDS_AHEAD_MAX};
use crate::{Digest, FragmentId, Order, PeerError, PeerId, Round};

impl GridExchange {
    /// Begins the round's parts for which something came early.
    pub(super) fn deliver_early(&mut self, cx: &mut Context) {
        let round = cx.round;
        for arrived in self.early.take_slices(|of, _| of == round) {
            if let Err(error) = self.arrived(cx, arrived) {
                cx.accuse(arrived.from, error.to_string());
            }
        }
        for (from, message) in self.early.take_messages(|of, _| of == round) {
            if let Err(error) = self.deliver(cx, from, &message) {
                cx.accuse(from, error.to_string());
            }
        }
    }

    pub(super) fn arrived(&mut self, cx: &mut Context, arrived: Arrived) -> Result<(), PeerError> {
        let Arrived {
            from, slice, meta, ..
        } = arrived;
        let Some(tag) = meta.tag.group() else {
            cx.order(Order::Release { slice });
            return Err(foreign_tag(meta.tag, EXCHANGE));
        };
        if slice.round >= cx.round && cx.rolls.is_mate(from) {
            cx.view.did_its_part(from, slice.round);
        }
        let open = self.seating.as_ref().filter(|s| s.round == slice.round);
        let Some(seating) = open.cloned() else {
            return self.keep_early(cx, arrived);
        };
        // Its sender has another anchor or roll: one of the two is to take the other's over.
        if tag != seating.tag() && tag != seating.column_tag {
            cx.order(Order::Release { slice });
            self.differs(cx, from, &seating);
            return Ok(());
        }
        let Some(part) = self.part(cx, slice.fragment) else {
            cx.order(Order::Release { slice });
            return broke("a slice of a fragment whose round it is not");
        };
        let result = part.arrived(cx, arrived);
        if result.is_err() {
            cx.order(Order::Release { slice });
        }
        result
    }

    /// Keeps a slice of a later round, or of this one before it began here.
    fn keep_early(&mut self, cx: &mut Context, early: Arrived) -> Result<(), PeerError> {
        let Arrived { from, slice, .. } = early;
        if slice.round >= cx.round && slice.round.since(cx.round) <= ROUNDS_AHEAD_MAX {
            // A further slice of a later round shows that its sender is ahead.
            if self.early.keep_slice(cx, early, EARLY_SLICES_MAX)? {
                self.look_ahead(cx, from);
            }
        } else if !self.history.keeps(&slice) {
            cx.order(Order::Release { slice });
        }
        Ok(())
    }

    /// A peer in this round has another anchor or roll.
    fn differs(&mut self, cx: &mut Context, from: PeerId, seating: &Seating) {
        let (round, state) = (seating.round, seating.state);
        if cx.rolls.is_mate(from) {
            cx.send(from, GridMessage::Apart { round, state });
        }
    }

    /// A peer in this round says that it has another anchor or roll. If more of this peer's mates have
    /// the same other one than have this peer's, it takes that one over.
    fn told_apart(&mut self, from: PeerId, state: Digest) {
        let Some(seating) = self.seating.clone() else {
            return;
        };
        let mates = seating.roll.mates(seating.place);
        // Only mates exchange with this peer, so only they can leave it alone.
        if state == seating.state || !mates.contains(&from) {
            return;
        }
        self.apart.insert(from, state);
        let same = self.apart.values().filter(|theirs| **theirs == state);
        if 2 * same.count() > mates.len() && self.outcome.is_none() {
            let resync = true;
            self.outcome = Some(Outcome::Behind {
                teller: from,
                resync,
            });
        }
    }

    pub(super) fn deliver(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        message: &Scoped,
    ) -> Result<(), PeerError> {
        let (round, fragment) = (message.round, message.fragment);
        if round < cx.round {
            self.history.tell(cx, from, message);
            return Ok(());
        }
        let open = self.seating.as_ref().filter(|s| s.round == round);
        let Some(seating) = open.cloned() else {
            if round.since(cx.round) <= ROUNDS_AHEAD_MAX {
                self.early.keep_message(from, message);
            }
            return Ok(());
        };
        let Some(part) = self.part(cx, fragment) else {
            return broke("a message of a fragment whose round it is not");
        };
        match &message.body {
            FragmentMessage::Collected { known, versions } if message.group == seating.tag() => {
                part.collected(cx, from, (known, versions))
            }
            _ if message.group == seating.column_tag => part.column_said(cx, from, message),
            _ => {
                self.differs(cx, from, &seating);
                Ok(())
            }
        }
    }

    pub(super) fn grid_message(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        message: &GridMessage,
    ) -> Result<(), PeerError> {
        match message {
            GridMessage::Report { round, change } => {
                let fits = self.seating.as_ref().filter(|s| s.round == *round);
                let Some(seating) = fits.filter(|_| *round == cx.round).cloned() else {
                    return Ok(());
                };
                self.report_came(cx, from, change, &seating)?;
            }
            GridMessage::Returned { round, fragment } => {
                let open = self.seating.as_ref().is_some_and(|s| s.round == *round);
                if let Some(part) = self.parts.get_mut(fragment).filter(|_| open) {
                    part.returned(cx, from)?;
                }
            }
            GridMessage::Ask { round, fragment } => self.asked(cx, from, *round, *fragment),
            GridMessage::Apart { round, state } => {
                if *round == cx.round {
                    self.told_apart(from, *state);
                }
            }
            GridMessage::Apply(record) => {
                if record.peer != from || record.run != cx.plan.run {
                    return broke("another peer's wish for a place");
                }
                if self.applicants.len() < APPLICANTS_MAX {
                    self.applicants.insert(from, record.clone());
                }
            }
            // It is a sign of life, and the peer looks at what it follows from.
            GridMessage::Placed { .. } => {}
        }
        Ok(())
    }

    fn asked(&mut self, cx: &mut Context, from: PeerId, round: Round, fragment: FragmentId) {
        if let Some(decision) = self.history.decision(round, fragment) {
            let decision = decision.clone();
            cx.send(from, decision);
        } else if round == cx.round
            && let Some(part) = self.parts.get_mut(&fragment)
        {
            part.asked(cx, from);
        }
    }
}
