//! Rounds that admit contributions by their scores ([`Scoring`](crate::Scoring)): ratings, and the scores of
//! rounds that are replayed.

use super::lag::CatchUp;
use crate::core::Event;
use crate::data::Counted;
use crate::exchange::scores_of;
use crate::peer::Peer;
use crate::wire::FragmentMessage;
use crate::{Done, Order, OrderId, Ratings, Round, Scores, SliceId};
use std::collections::BTreeMap;

impl Peer {
    /// What the peers agree on about each other's contributions, where they score them.
    pub fn ratings(&self) -> Option<&Ratings> {
        self.cx.plan.scores().then_some(&self.cx.data.ratings)
    }

    /// A round is over: the scores that its members agreed on change the ratings.
    pub(super) fn settle_ratings(&mut self, round: Round, counted: Option<&Counted>) {
        let Some(scoring) = self.cx.plan.agreement.scoring else {
            return;
        };
        let judged = self.cx.data.judged.take();
        if counted == Some(&Counted::Merged) {
            // Each branch had ratings of its own: they begin again at zero.
            self.cx.data.ratings = Ratings::default();
            return;
        }
        if let Some((_, scores)) = judged.filter(|(of, _)| *of == round) {
            self.cx.data.ratings.note(round, scoring, &scores);
        }
    }

    /// Whether the scores of the round that is being replayed are here; orders them to be read.
    pub(super) fn scores_are_read(&mut self) -> bool {
        let CatchUp::Replaying(replay) = &mut self.catch_up else {
            return false;
        };
        if let Some(reads) = &replay.scores.reads {
            return reads.is_empty();
        }
        let slices: Vec<SliceId> = replay.decisions.values().flat_map(scores_of).collect();
        let mut reads = BTreeMap::new();
        for slice in slices {
            let order = self.cx.order(Order::Read { slice });
            reads.insert(order, slice.origin);
        }
        let none = reads.is_empty();
        replay.scores.reads = Some(reads);
        none
    }

    /// An order that reads scores was answered; false when it is not one.
    pub(super) fn scores_replayed(&mut self, order: OrderId, done: &Done) -> bool {
        let CatchUp::Replaying(replay) = &mut self.catch_up else {
            return false;
        };
        let reads = replay.scores.reads.as_mut();
        let Some(scorer) = reads.and_then(|reads| reads.remove(&order)) else {
            return false;
        };
        let Done::Read { bytes } = done else {
            let what = format!("cannot read the scores of a fetched round: {done:?}");
            self.cx.emit(Event::WorkFailed { what });
            self.ask_others();
            return true;
        };
        let members = replay
            .decisions
            .values()
            .find_map(|decision| match &decision.body {
                FragmentMessage::Decided { members, .. } => Some(members.len()),
                _ => None,
            });
        // The same bytes are no scores at every member, so no member counts them.
        if let Some(said) = Scores::from_bytes(bytes, members.unwrap_or_default()) {
            replay.scores.said.insert(scorer, said);
        }
        self.apply_replay();
        true
    }
}
