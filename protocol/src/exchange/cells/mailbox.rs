//! What arrives for a round of cells: words, slices and messages, early, in time or late.

use super::{CellsExchange, CellsMessage};
use crate::core::context::Context;
use crate::exchange::agreed::Scoped;
use crate::exchange::{Arrived, broke, foreign_tag};
use crate::limits::{EARLY_SLICES_MAX, ROUNDS_AHEAD_MAX};
use crate::{Dealing, FragmentId, Order, PeerError, PeerId, Round, Wait};

impl CellsExchange {
    pub(super) fn cell_message(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        message: &CellsMessage,
    ) -> Result<(), PeerError> {
        match message {
            CellsMessage::Ready { round, news } => {
                self.news.learn(cx.round, news);
                self.ready(cx, from, *round);
            }
            CellsMessage::Form { round, members } => {
                self.told_members(cx, from, *round, members)?;
            }
            CellsMessage::Passed { round, now } => {
                if let Some(remote) = cx.view.get_mut(from) {
                    // Messages may overtake each other, and a round never goes back.
                    remote.round = remote.round.max(*now);
                }
                if *round == cx.round {
                    if let Some(forming) = &mut self.forming {
                        self.passed_by = Some(from);
                        forming.passed(cx, from);
                    }
                    if let Some(cell) = &mut self.cell {
                        // It is a member by this cell and works in another, so nothing of it will
                        // come.
                        cell.gone(cx, from);
                    }
                }
            }
            CellsMessage::Seats(news) => self.news.learn(cx.round, news),
        }
        Ok(())
    }

    fn ready(&mut self, cx: &mut Context, from: PeerId, round: Round) {
        if round >= cx.round {
            // It has trained, so it is waited for, whatever was suspected before.
            cx.view.did_its_part(from, round);
        }
        let now = cx.round;
        if round > now || (round == now && self.is_before_forming()) {
            // No peer may make this one keep words of rounds that are far off.
            if round.since(now) <= ROUNDS_AHEAD_MAX {
                self.early_ready.keep(round, from);
            }
            return;
        }
        let forming = self.forming.as_mut().filter(|_| round == now);
        if let Some(forming) = forming.filter(|forming| forming.knows(from)) {
            forming.ready(cx, from);
            return;
        }
        let cell = self.cell.as_ref().filter(|_| round == now);
        if let Some(cell) = cell.filter(|cell| cell.has(from)) {
            // Another member may have heard it first. One that says it again has not heard of the cell.
            if !self.heard.insert(from) {
                let members = cell.members();
                cx.send(from, CellsMessage::Form { round, members });
            }
            return;
        }
        if let Some((_, since)) = self.last.filter(|(last, _)| *last == round) {
            // The next deadline allows for peers that are always as late.
            let waited = cx.now.since(since);
            cx.deadlines.record(Wait::Group, from, waited);
        }
        cx.view.forgive(from);
        cx.send(from, CellsMessage::Passed { round, now });
    }

    /// A peer says who is in the round's cell.
    fn told_members(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        round: Round,
        members: &[PeerId],
    ) -> Result<(), PeerError> {
        let now = cx.round;
        if members.len() > Dealing::largest_of(cx.plan.agreement.grouping) {
            return broke("a cell of more peers than the plan deals");
        }
        // A member cannot form a cell for others without being in it.
        let has_me = members.contains(&cx.me()) && members.contains(&from);
        let forming = self.forming.as_mut().filter(|_| round == now);
        match forming.filter(|forming| forming.knows(from)) {
            Some(_) if has_me => self.formed(cx, members),
            // It is in a cell without this peer: as good as a word that it has passed.
            Some(forming) => forming.passed(cx, from),
            // It counts on this peer, which is in another cell, or alone.
            None if has_me && round <= now => {
                let cell = self.cell.as_ref().filter(|_| round == now);
                if cell.is_none_or(|cell| cell.members() != members) {
                    cx.send(from, CellsMessage::Passed { round, now });
                }
            }
            None => {}
        }
        Ok(())
    }

    /// This peer has not trained in its round yet.
    fn is_before_forming(&self) -> bool {
        let over = self.alone || self.outcome.is_some();
        self.forming.is_none() && self.cell.is_none() && !over
    }

    pub(super) fn arrived(&mut self, cx: &mut Context, arrived: Arrived) -> Result<(), PeerError> {
        let Arrived { slice, meta, .. } = arrived;
        let Some(group) = meta.tag.group() else {
            cx.order(Order::Release { slice });
            return Err(foreign_tag(meta.tag, super::EXCHANGE));
        };
        if slice.round == cx.round
            && let Some(cell) = &mut self.cell
        {
            // The window has not come to that fragment here.
            if cell.tag() == group && !cell.has_opened(slice.fragment) {
                return self.keep_early(cx, arrived);
            }
            let taken = cell.arrived(cx, arrived);
            // A late copy has the name of a kept slice, and releasing it would take that one.
            if !matches!(taken, Ok(true)) && !self.history.keeps(&slice) {
                cx.order(Order::Release { slice });
            }
            return taken.map(|_| ());
        }
        let soon = slice.round >= cx.round && slice.round.since(cx.round) <= ROUNDS_AHEAD_MAX;
        if soon && !(slice.round == cx.round && (self.alone || self.outcome.is_some())) {
            return self.keep_early(cx, arrived);
        }
        if !self.history.keeps(&slice) {
            cx.order(Order::Release { slice });
        }
        Ok(())
    }

    fn keep_early(&mut self, cx: &mut Context, early: Arrived) -> Result<(), PeerError> {
        self.early
            .keep_slice(cx, early, EARLY_SLICES_MAX)
            .map(|_| ())
    }

    pub(super) fn deliver(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        message: &Scoped,
    ) -> Result<(), PeerError> {
        let (round, fragment) = (message.round, message.fragment);
        if round < cx.round {
            // A group of this number may have been another cell.
            let decision = self.history.decision(round, fragment);
            if decision.is_some_and(|decision| decision.group == message.group) {
                self.history.tell(cx, from, message);
            }
            return Ok(());
        }
        let open = |fragment| {
            let cell = self.cell.as_ref();
            cell.is_some_and(|cell| cell.has_opened(fragment))
        };
        if round > cx.round || !open(fragment) {
            if round.since(cx.round) <= ROUNDS_AHEAD_MAX {
                self.early.keep_message(from, message);
            }
            return Ok(());
        }
        match &mut self.cell {
            Some(cell) => cell.message(cx, from, message),
            None => Ok(()),
        }
    }

    /// A fragment is open: gives it what came early.
    pub(super) fn deliver_early(&mut self, cx: &mut Context, fragment: FragmentId) {
        let round = cx.round;
        let belongs = |r: Round, f: FragmentId| r == round && f == fragment;
        for arrived in self.early.take_slices(belongs) {
            if let Err(error) = self.arrived(cx, arrived) {
                cx.accuse(arrived.from, error.to_string());
            }
        }
        for (from, message) in self.early.take_messages(belongs) {
            if let Err(error) = self.deliver(cx, from, &message) {
                cx.accuse(from, error.to_string());
            }
        }
    }
}
