//! Exact agreement in swarms of more than one group: rows sum, columns agree, results are handed down.
//!
//! All peers of a [`Roll`](crate::Roll) stand in a grid of g columns and c <= 64 rows. A fragment is cut
//! into g shards. A row sums shard s at its member in column s; column s agrees on the sum over all
//! rows, as a group of c members does on a whole fragment; and each of its members hands the result to
//! its row. One agreement fixes every bit of a shard, so all peers that apply a round hold the same
//! parameters. Rows need no agreement: a row's mean is an input like any other, and even an owner that
//! sends two different ones can change the decision but not split it.
//!
//! Messages per round, peer and fragment when all is well, with o owners of parts in a column: g - 1
//! pushes of contributions of 1/g of a fragment, o of the row's mean, c of the aggregate by an owner,
//! g - 1 of the column's result; c votes. A peer sends about two models and receives as much.
//!
//! | failure | cost |
//! |---|---|
//! | a member | its contribution; its row waits for it once |
//! | a member that comes back | nothing: in that round no other waits for it, and it votes |
//! | the member that sums a row's shard | the row's contributions to that shard; its row asks others for the column's result |
//! | an owner of a part | one ballot of its column |
//! | fewer than half of a column | nothing more |
//! | half of a column | its shard stays as it was; the others move |
//!
//! The note that travels with the first shard of a round says who leaves the roll and who enters it.

mod message;
mod part;
mod seating;

pub use message::GridMessage;

use crate::core::context::Context;
use crate::core::deadlines::Timer;
use crate::exchange::agreed::column::GridColumn;
use crate::exchange::agreed::{AgreedMessage, Early, FragmentMessage, History, Scoped, ahead};
use crate::exchange::{
    Arrived, Exchange, ExchangeMessage, Outcome, Signal, broke, forbid, foreign_message,
    foreign_tag, tell,
};
use crate::limits::{APPLICANTS_MAX, EARLY_SLICES_MAX, GRID_ABSENT_ROUNDS, ROUNDS_AHEAD_MAX};
use crate::sorted::{SortedMap, SortedSet};
use crate::wire::PeerRecord;
use crate::{
    Checked, Digest, Ending, Event, FragmentId, GroupTag, PeerId, RollChange, Round, SliceId,
    TrainSummary, Wait,
};
use part::GridPart;
use seating::Seating;
use std::sync::Arc;

const EXCHANGE: &str = "agreement in a grid";

/// The exchange of one peer of a grid.
#[derive(Default)]
pub(crate) struct GridExchange {
    /// This peer's place in the round; none between rounds, and for a peer without a place.
    seating: Option<Arc<Seating>>,
    parts: SortedMap<FragmentId, GridPart>,
    early: Early,
    /// Members of the row that did not contribute to the last rounds.
    absent: SortedMap<PeerId, u8>,
    /// Newcomers that asked this peer for a place.
    applicants: SortedMap<PeerId, PeerRecord>,
    reported: RollChange,
    /// Peers in the same round with another anchor or roll, each with theirs.
    apart: SortedMap<PeerId, Digest>,
    history: History,
    outcome: Option<Outcome>,
}

impl GridExchange {
    /// A fragment's part, begun if the round is open here.
    fn part(&mut self, cx: &mut Context, fragment: FragmentId) -> Option<&mut GridPart> {
        let seating = self.seating.as_ref().filter(|s| s.round == cx.round)?;
        if !cx.plan.overlap.exchanges(cx.round, fragment) || cx.plan.fragment(fragment).is_none() {
            return None;
        }
        if !self.parts.contains_key(&fragment) {
            let mut part = GridPart::new(cx, fragment, seating.clone());
            // A note travels with one shard of a round, so one column decides about the roll.
            if seating.decides_the_roll(&cx.plan, fragment) {
                let change = self.own_report(cx);
                self.merge_report(change);
                let notary = part.column.as_ref().and_then(GridColumn::notary);
                if let Some(notary) = notary.filter(|notary| *notary != cx.me())
                    && !self.reported.is_empty()
                {
                    let (round, change) = (cx.round, self.reported.clone());
                    cx.send(notary, GridMessage::Report { round, change });
                }
                // Every member has a note: in a later ballot any of them may have to make it.
                part.set_note(self.reported.to_bytes());
            }
            // The row began without it, and others must not wait for what it does not have.
            if cx.this_life.newcomer {
                part.come_back(cx);
            }
            self.parts.insert(fragment, part);
        }
        self.parts.get_mut(&fragment)
    }

    /// The part that a slice is of, if it is of this round.
    fn part_of(&mut self, cx: &Context, slice: &SliceId) -> Option<&mut GridPart> {
        let part = self.parts.get_mut(&slice.fragment);
        part.filter(|_| slice.round == cx.round)
    }

    fn message(&mut self, cx: &mut Context, from: PeerId, message: &ExchangeMessage) -> Checked {
        match message {
            ExchangeMessage::Grid(message) => self.grid_message(cx, from, message),
            ExchangeMessage::Agreed(AgreedMessage::Fragment(scoped)) => {
                self.deliver(cx, from, scoped)
            }
            other => Err(foreign_message(other, EXCHANGE)),
        }
    }

    fn gone(&mut self, cx: &mut Context, peer: PeerId) {
        self.parts.values_mut().for_each(|part| part.gone(cx, peer));
        self.early.drop_of(cx, peer);
    }

    /// Where others are rounds ahead, they go on without this peer, and tell it how its round ended. One
    /// round is no more than the time that results take. Only a peer that is ahead, or that no longer
    /// takes part, can change who is: the others are not counted again for each sign of life.
    pub(super) fn look_ahead(&mut self, cx: &Context, heard: PeerId) {
        let remote = cx.view.get(heard);
        let news = remote.is_none_or(|r| !r.ready || r.round.since(cx.round) > 1);
        if news && self.seating.is_some() && self.outcome.is_none() {
            let resync = false;
            let behind = ahead(cx, 1).map(|teller| Outcome::Behind { teller, resync });
            self.outcome = behind;
        }
    }

    /// After every signal: the timer follows the earliest open deadline.
    fn settle(&mut self, cx: &mut Context) {
        if self.outcome.is_some() || self.parts.is_empty() {
            return;
        }
        if let Some(teller) = self.parts.values().find_map(|part| part.missed) {
            cx.timers.stop(Timer::Exchange);
            let resync = false;
            self.outcome = Some(Outcome::Behind { teller, resync });
            return;
        }
        // A fragment that nothing has come for has no part yet, and is not over.
        let all = self.parts.len() == cx.plan.fragments_of(cx.round).count();
        let ended = self.parts.values().all(|part| part.ending.is_some());
        match self.parts.values().filter_map(GridPart::next).min() {
            Some(deadline) => cx.timers.set(Timer::Exchange, deadline),
            None => cx.timers.stop(Timer::Exchange),
        }
        if all && ended {
            // It has been through a whole round: from now on others may count on it.
            cx.this_life.newcomer = false;
            self.outcome = Some(Outcome::Ended);
        }
    }
}

impl Exchange for GridExchange {
    fn open(&mut self, cx: &mut Context) {
        let roll = cx.rolls.roll.clone();
        let seating = roll.and_then(|roll| Seating::new(&roll, cx.round, cx.shared(), cx.me()));
        if let Some(seating) = &seating {
            cx.emit(Event::Seated {
                round: cx.round,
                peers: seating.roll.len() as u32,
                columns: u32::from(seating.columns()),
                place: seating.place as u32,
                state: seating.state,
            });
        }
        self.seating = seating.map(Arc::new);
        self.outcome = None;
        self.reported = RollChange::default();
        self.apart.clear();
        let placed = |record: &PeerRecord| {
            let roll = cx.rolls.roll.as_ref();
            roll.is_some_and(|roll| roll.place_of(record.peer).is_some())
        };
        let round = cx.round;
        let (entered, waiting) = std::mem::take(&mut self.applicants)
            .into_iter()
            .partition(|(_, record)| placed(record));
        self.applicants = waiting;
        let entered: SortedMap<PeerId, PeerRecord> = entered;
        for peer in entered.into_keys() {
            cx.send(peer, GridMessage::Placed { round });
        }
        self.pass_on_newcomers(cx);
        // Others may have pushed to this round while this peer was in the one before.
        self.deliver_early(cx);
        self.settle(cx);
    }

    fn begin(&mut self, cx: &mut Context, summary: &TrainSummary) {
        let fragments: Vec<FragmentId> = cx.plan.fragments_of(cx.round).collect();
        for fragment in fragments {
            let weighing = cx.plan.agreement.weighing;
            let weight = weighing.weigh(summary.samples, summary.steps);
            match self.part(cx, fragment) {
                Some(part) => part.contribute(cx, weight),
                // Without a place no one sums what it trained.
                None => self.outcome = Some(Outcome::Alone),
            }
        }
        self.settle(cx);
    }

    fn signal(&mut self, cx: &mut Context, signal: Signal<'_>) -> Checked {
        let mut result = Ok(());
        match signal {
            Signal::Message { from, message } => result = self.message(cx, from, message),
            Signal::Arrived(arrived) => result = self.arrived(cx, arrived),
            Signal::Pushed(end) => {
                if let Some(part) = self.part_of(cx, &end.slice) {
                    part.pushed(cx, end);
                }
            }
            Signal::Fetched { slice, digest } => {
                let kept = self.history.keeps(&slice);
                match self.part_of(cx, &slice) {
                    Some(part) => part.fetched(cx, slice, digest),
                    None if !kept => cx.release(slice),
                    None => {}
                }
            }
            Signal::FetchFailed(slice) => {
                if let Some(part) = self.part_of(cx, &slice) {
                    part.fetch_failed(cx, slice);
                }
            }
            Signal::Done { order, done } => {
                self.parts
                    .values_mut()
                    .any(|part| part.done(cx, order, done));
            }
            Signal::Gone(peer) => self.gone(cx, peer),
            Signal::Timeout => {
                self.parts.values_mut().for_each(|part| part.timeout(cx));
            }
            Signal::Heard(peer) => self.look_ahead(cx, peer),
        }
        self.settle(cx);
        result
    }

    fn ended(&mut self, _cx: &Context) -> Vec<(FragmentId, Ending)> {
        let parts = self.parts.values_mut();
        tell(parts.map(|p| (p.fragment, p.ending.as_ref(), &mut p.told)))
    }

    fn applied(&mut self, cx: &mut Context, fragment: FragmentId) {
        let part = self.parts.get_mut(&fragment).filter(|part| part.told);
        if let Some(part) = part
            && let Some(decision) = part.decision()
        {
            // Its bundles stay for the history; everything else of the fragment is released.
            part.close(cx, true);
            self.history.keep(cx, decision);
        }
    }

    fn outcome(&mut self) -> Option<Outcome> {
        self.outcome.take()
    }

    fn finish(&mut self, cx: &mut Context) {
        // Before the parts go: they know who contributed.
        self.note_absence(cx);
        cx.timers.stop(Timer::Exchange);
        for mut part in std::mem::take(&mut self.parts).into_values() {
            part.close(cx, part.told);
        }
        self.seating = None;
        self.outcome = None;
        self.early
            .forget_the_round(cx, |slice| self.history.keeps(slice));
    }

    fn group(&self) -> Option<GroupTag> {
        self.seating.as_ref().map(|seating| seating.tag())
    }

    fn history(&self) -> Option<&History> {
        Some(&self.history)
    }

    fn history_mut(&mut self) -> Option<&mut History> {
        Some(&mut self.history)
    }

    fn awaited(&self, _cx: &Context, wait: Wait, fragment: FragmentId) -> Vec<PeerId> {
        let part = self.parts.get(&fragment);
        part.map(|part| part.awaited(wait)).unwrap_or_default()
    }

    fn waiting(&self) -> usize {
        self.early.len()
    }
}

impl GridExchange {
    /// Changes of the roll that this peer reports: members of its row that are gone, and newcomers.
    fn own_report(&self, cx: &Context) -> RollChange {
        let gone = |peer: &PeerId| {
            let remote = cx.view.get(*peer);
            remote.is_none_or(|r| !r.linked)
        };
        let seating = self.seating.as_ref();
        let served = seating.map(|s| s.served()).unwrap_or_default();
        let settled = |peer: &PeerId| {
            let place = seating.and_then(|s| Some((s, s.roll.place_of(*peer)?)));
            place.is_some_and(|(s, place)| s.is_settled(place))
        };
        let leave = served.into_iter().filter(|peer| {
            let rounds = self.absent.get(peer).copied().unwrap_or(0);
            // One that is gone loses its place after a round; one that is linked may only be slow.
            let long = rounds >= GRID_ABSENT_ROUNDS;
            *peer != cx.me() && settled(peer) && (long || (gone(peer) && rounds > 0))
        });
        let mut change = RollChange {
            leave: leave.collect(),
            join: self.applicants.values().cloned().collect(),
        };
        change.cut();
        change
    }

    /// A report came: of this column where it decides, or of newcomers from this peer's row.
    fn report_came(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        change: &RollChange,
        seating: &Seating,
    ) -> Checked {
        let column = seating.column_of(from) == Some(seating.column());
        // Only those that sum for a row know who is absent from it.
        let row = seating.served().contains(&from) && change.leave.is_empty();
        forbid(
            !column && !row,
            "a report from a peer of another row and column",
        )?;
        let me = cx.me();
        let mut change = change.clone();
        // This peer knows better whether it is here.
        change.leave.retain(|peer| *peer != me);
        let deciding = cx.plan.fragments_of(seating.round).next();
        let part = deciding.and_then(|fragment| self.parts.get(&fragment));
        let notary = part.and_then(|part| part.column.as_ref()?.notary());
        match notary.filter(|notary| *notary != me && !column) {
            Some(notary) => {
                let round = seating.round;
                cx.send(notary, GridMessage::Report { round, change });
            }
            None => {
                self.merge_report(change);
                let note = self.reported.to_bytes();
                let part = deciding.and_then(|fragment| self.parts.get_mut(&fragment));
                if let Some(part) = part {
                    part.set_note(note);
                }
            }
        }
        Ok(())
    }

    /// Tells the member of this peer's row that decides about the roll of the newcomers here.
    fn pass_on_newcomers(&self, cx: &mut Context) {
        let Some(seating) = &self.seating else { return };
        let deciding = (seating.round.0 % seating.columns() as u64) as usize;
        let registrar = seating.owner_of(deciding).filter(|peer| *peer != cx.me());
        if let Some(registrar) = registrar.filter(|_| !self.applicants.is_empty()) {
            let round = seating.round;
            let mut change = RollChange {
                leave: Vec::new(),
                join: self.applicants.values().cloned().collect(),
            };
            change.cut();
            cx.send(registrar, GridMessage::Report { round, change });
        }
    }

    fn merge_report(&mut self, change: RollChange) {
        for peer in change.leave {
            if !self.reported.leave.contains(&peer) {
                self.reported.leave.push(peer);
            }
        }
        for record in change.join {
            let mut join = self.reported.join.iter();
            if join.all(|known| known.peer != record.peer) {
                self.reported.join.push(record);
            }
        }
        self.reported.cut();
    }

    /// Counts in how many rounds each member of the row has not contributed.
    fn note_absence(&mut self, cx: &Context) {
        let Some(seating) = &self.seating else { return };
        let came = self.parts.values().flat_map(GridPart::contributors);
        let came: SortedSet<PeerId> = came.collect();
        let served = seating.served();
        // Places move, and with them whom this peer sums for.
        self.absent.retain(|peer, _| served.contains(peer));
        for peer in served.into_iter().filter(|peer| *peer != cx.me()) {
            // One that was not drawn had nothing to contribute.
            let drawn = cx.plan.draws(seating.round, peer);
            match came.contains(&peer) {
                true => {
                    self.absent.remove(&peer);
                }
                false if drawn => {
                    let rounds = self.absent.entry(peer).or_default();
                    *rounds = rounds.saturating_add(1);
                }
                false => {}
            }
        }
    }
}

impl GridExchange {
    /// Begins the round's parts for which something came early.
    fn deliver_early(&mut self, cx: &mut Context) {
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

    fn arrived(&mut self, cx: &mut Context, arrived: Arrived) -> Checked {
        let (from, slice, meta) = (arrived.from, arrived.slice, arrived.meta);
        let Some(tag) = meta.tag.group() else {
            cx.release(slice);
            return Err(foreign_tag(meta.tag, EXCHANGE));
        };
        if slice.round >= cx.round && cx.rolls.is_counterpart(from) {
            cx.view.did_its_part(from, slice.round);
        }
        let open = self.seating.as_ref().filter(|s| s.round == slice.round);
        let Some(seating) = open.cloned() else {
            return self.keep_early(cx, arrived);
        };
        // Its sender has another anchor or roll: one of the two is to take the other's over.
        if tag != seating.tag() && tag != seating.column_tag {
            cx.release(slice);
            self.differs(cx, from, &seating);
            return Ok(());
        }
        let Some(part) = self.part(cx, slice.fragment) else {
            cx.release(slice);
            return broke("a slice of a fragment whose round it is not");
        };
        let result = part.arrived(cx, arrived);
        if result.is_err() {
            cx.release(slice);
        }
        result
    }

    /// Keeps a slice of a later round, or of this one before it began here.
    fn keep_early(&mut self, cx: &mut Context, early: Arrived) -> Checked {
        let Arrived { from, slice, .. } = early;
        if slice.round >= cx.round && slice.round.since(cx.round) <= ROUNDS_AHEAD_MAX {
            // A further slice of a later round shows that its sender is ahead.
            if self.early.keep_slice(cx, early, EARLY_SLICES_MAX)? {
                self.look_ahead(cx, from);
            }
        } else if !self.history.keeps(&slice) {
            cx.release(slice);
        }
        Ok(())
    }

    /// A peer in this round has another anchor or roll.
    fn differs(&mut self, cx: &mut Context, from: PeerId, seating: &Seating) {
        let (round, state) = (seating.round, seating.state);
        if cx.rolls.is_counterpart(from) {
            cx.send(from, GridMessage::Apart { round, state });
        }
    }

    /// A peer in this round says that it has another anchor or roll. If more of this peer's
    /// row and column have the same other one than have this peer's, it takes that one over.
    fn told_apart(&mut self, from: PeerId, state: Digest) {
        let Some(seating) = self.seating.clone() else {
            return;
        };
        let exchanging = seating.roll.row_and_column(seating.place);
        // Only they exchange with this peer, so only they can leave it alone.
        if state == seating.state || !exchanging.contains(&from) {
            return;
        }
        self.apart.insert(from, state);
        let same = self.apart.values().filter(|theirs| **theirs == state);
        if 2 * same.count() > exchanging.len() && self.outcome.is_none() {
            let resync = true;
            self.outcome = Some(Outcome::Behind {
                teller: from,
                resync,
            });
        }
    }

    fn deliver(&mut self, cx: &mut Context, from: PeerId, message: &Scoped) -> Checked {
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

    fn grid_message(&mut self, cx: &mut Context, from: PeerId, message: &GridMessage) -> Checked {
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
