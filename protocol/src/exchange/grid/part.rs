//! One fragment's exchange in a grid, as one peer does its part of it.
//!
//! 1. It pushes each shard of its contribution to the member of its row that sums that shard.
//! 2. It sums the shard of its own column over its row (`Row`).
//! 3. Its column agrees on the sum over all rows ([`Column`]).
//! 4. It hands the column's result to its row, and gets theirs (`Results`).
//!
//! A member that is late in its own training does its part for others meanwhile: only its contribution
//! is missing.

use super::message::GridMessage;
use super::seating::Seating;
use crate::core::FetchId;
use crate::core::context::Context;
use crate::exchange::agreed::column::GridColumn;
use crate::exchange::agreed::{FragmentMessage, Scoped, ShardVersion};
use crate::exchange::{Arrived, PushEnd, broke, forbid, settlement};
use crate::limits::{GRID_ASKS_MAX, GRID_TALLY_MAX, GROUP_MEMBERS_MAX};
use crate::sorted::{SortedMap, SortedSet};
use crate::{
    Attempt, Checked, Combination, Digest, Done, Ending, Event, FragmentId, Members, Order,
    OrderId, Output, Part, PeerId, Piece, Roll, SliceId, SliceMeta, Source, StoreId, Tag, Taken,
    TallyEntry, Time, Wait, WorkError,
};
use std::sync::Arc;

/// An order whose answer is awaited.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    /// Encode this peer's contribution to a shard.
    Share(u16),
    /// Sum the row.
    Sum,
    /// Put the decided parts together.
    Bundle,
}

/// One fragment's exchange.
#[derive(Debug)]
pub(super) struct GridPart {
    pub(super) fragment: FragmentId,
    pub(super) seating: Arc<Seating>,
    pub(super) row: Row,
    /// None for a newcomer that is not settled yet.
    pub(super) column: Option<GridColumn>,
    pub(super) results: Results,
    pub(super) tasks: SortedMap<OrderId, Task>,
    /// Encoded bytes of this peer's contribution to each shard.
    pub(super) shares: SortedMap<u16, u64>,
    /// Samples behind this peer's contribution, once it has trained.
    pub(super) weight: Option<f64>,
    /// End of the wait for results of other columns; none yet where this one has none.
    pub(super) due: Option<Time>,
    /// Slices whose bytes the Executor holds, beside the column's.
    pub(super) slices: SortedSet<SliceId>,
    pub(super) ending: Option<Ending>,
    /// A peer that knows more, where results can no longer be found.
    pub(super) missed: Option<PeerId>,
    pub(super) told: bool,
}

impl GridPart {
    /// Begins with the first contribution, this peer's or another's.
    pub(super) fn new(cx: &mut Context, fragment: FragmentId, seating: Arc<Seating>) -> Self {
        let served: SortedSet<PeerId> = seating.served().into_iter().collect();
        let all = served.iter().copied();
        let awaited = all.filter(|peer| waits_for(cx, &seating, *peer));
        let awaited: SortedSet<PeerId> = awaited.collect();
        let others = awaited.iter().copied().filter(|peer| *peer != cx.me());
        let allowed = cx.deadlines.allow_alike(Wait::Group, others);
        let len = cx.plan.fragment(fragment).map_or(1, |f| f.len);
        // Nothing depends on a newcomer before it has had a round to catch up.
        let column = seating.is_settled(seating.place).then(|| {
            let members = seating.members(seating.column());
            let shape = seating.shape(&cx.plan, fragment, len);
            GridColumn::new(cx, fragment, &members, seating.column_tag, &shape, allowed)
        });
        let deadline = cx.wait_in(fragment, Wait::Group, allowed);
        Self {
            row: Row {
                served,
                awaited,
                since: cx.now,
                deadline,
                ..Row::default()
            },
            fragment,
            seating,
            column,
            results: Results::default(),
            tasks: SortedMap::new(),
            shares: SortedMap::new(),
            weight: None,
            due: None,
            slices: SortedSet::new(),
            ending: None,
            missed: None,
            told: false,
        }
    }

    /// The peers behind a wait: of the row, the column, or those that hand results down.
    pub(super) fn awaited(&self, wait: Wait) -> Vec<PeerId> {
        match wait {
            Wait::Group => self.row.awaited.iter().copied().collect(),
            Wait::Results => self.missing_owners().collect(),
            _ => self
                .column
                .as_ref()
                .map_or(Vec::new(), |column| column.round.awaited()),
        }
    }

    /// The peers that hand down the results that are not here.
    pub(super) fn missing_owners(&self) -> impl Iterator<Item = PeerId> {
        let columns = 0..self.seating.columns();
        let missing = columns.filter(|column| !self.results.columns.contains_key(column));
        missing.filter_map(|column| self.seating.owner_of(usize::from(column)))
    }

    pub(super) fn over(&self) -> bool {
        self.ending.is_some() || self.missed.is_some()
    }

    pub(super) fn next(&self) -> Option<Time> {
        let column = self.column.as_ref().filter(|column| !column.round.over());
        let column = column.map(|column| column.round.due());
        if self.over() {
            return column;
        }
        let waits = self.row.sum == Sum::Collecting || self.row.held.is_some();
        let row = waits.then_some(self.row.deadline);
        [row, column, self.due].into_iter().flatten().min()
    }

    /// This peer has trained: its contribution lies in the Executor.
    pub(super) fn contribute(&mut self, cx: &mut Context, weight: f64) {
        self.weight = Some(weight);
        // The results are here already, or it has trained nothing: its row need not wait.
        if self.is_complete() || weight <= 0.0 {
            self.row.awaited.remove(&cx.me());
            self.advance(cx);
            return;
        }
        let columns = self.seating.columns();
        // Each member begins with another column, so that owners do not all hear from the same one.
        let first = self.seating.column() as u16;
        for step in 0..columns {
            let shard = (first + step) % columns;
            let slice = self.share(cx.me(), shard);
            let order = cx.encode(slice, columns, Source::Store(StoreId::Local));
            self.tasks.insert(order, Task::Share(shard));
        }
        if cx.this_life.newcomer {
            // The others may be about to end this round: they tell how it ended.
            self.ask(cx);
        } else if self.column.is_none() || self.results.columns.contains_key(&self.mine()) {
            self.await_results(cx);
        }
    }

    fn column_over(&self) -> bool {
        self.column
            .as_ref()
            .is_none_or(|column| column.round.over())
    }

    pub(super) fn share(&self, origin: PeerId, shard: u16) -> SliceId {
        SliceId {
            round: self.seating.round,
            fragment: self.fragment,
            shard,
            part: Part::Contribution,
            origin,
            attempt: Attempt::FIRST,
        }
    }

    pub(super) fn bundle(&self, column: u16) -> SliceId {
        let owner = self.seating.first_of(usize::from(column));
        SliceId {
            part: Part::Bundle,
            ..self.share(owner.unwrap_or(self.first()), column)
        }
    }

    pub(super) fn first(&self) -> PeerId {
        self.seating.first_of(0).expect("a roll has a first peer")
    }

    /// This peer's column, and the shard that it sums.
    pub(super) fn mine(&self) -> u16 {
        self.seating.column() as u16
    }

    /// An order was answered; false when it is not one of this fragment.
    pub(super) fn done(&mut self, cx: &mut Context, order: OrderId, done: &Done) -> bool {
        let Some(task) = self.tasks.remove(&order) else {
            let column = self.column.as_mut();
            let mine = column.is_some_and(|column| column.round.done(cx, order, done));
            if mine {
                self.advance(cx);
            }
            return mine;
        };
        match (task, done) {
            (Task::Share(shard), Done::Encoded { bytes, .. }) => self.shared(cx, shard, *bytes),
            (Task::Sum, Done::Combined) => {
                let sum = self.row.summed.iter();
                let weights = sum.filter_map(|peer| self.row.here.get(peer));
                let weight = weights.sum();
                self.row.sum = Sum::Over;
                self.row.held = Some(weight);
                self.feed(cx);
            }
            (Task::Sum, Done::Failed(WorkError::BadSlice { slice, reason, .. }))
                if self.row.here.contains_key(&slice.origin) =>
            {
                cx.accuse(
                    slice.origin,
                    format!("a contribution that is bad: {reason}"),
                );
                self.row.here.remove(&slice.origin);
                self.row.sum = Sum::Collecting;
            }
            (
                Task::Bundle,
                Done::Encoded {
                    bytes,
                    digest: Some(digest),
                },
            ) => {
                self.hand_down(cx, *bytes, *digest);
            }
            // This peer's Executor failed: others go on without its part.
            (Task::Share(_), _) => {}
            (Task::Sum, _) => self.pass(cx),
            (Task::Bundle, _) => {}
        }
        self.advance(cx);
        true
    }

    fn shared(&mut self, cx: &mut Context, shard: u16, bytes: u64) {
        let slice = self.share(cx.me(), shard);
        self.slices.insert(slice);
        self.shares.insert(shard, bytes);
        let weight = self.weight.unwrap_or(0.0);
        if shard == self.mine() && self.row.served.contains(&cx.me()) {
            self.row.awaited.remove(&cx.me());
            self.row.here.insert(cx.me(), weight);
            let taken = cx.data.taken.map(|taken| (cx.me(), taken));
            self.row.taken.extend(taken);
            return;
        }
        // That column has ended, so the contribution would come too late.
        if self.results.columns.contains_key(&shard) {
            return;
        }
        if let Some(owner) = self
            .seating
            .owner_of(usize::from(shard))
            .filter(|p| *p != cx.me())
        {
            let tag = Tag::Share {
                group: self.seating.tag(),
                weight,
                taken: cx.data.taken,
            };
            let of = self.seating.columns();
            // The mean of this peer's row waits until these have left.
            self.row.sending.insert(shard);
            cx.push(owner, slice, SliceMeta { of, bytes, tag }, 1);
        }
    }

    /// Takes every next step that is possible.
    pub(super) fn advance(&mut self, cx: &mut Context) {
        if self.row.is_complete() {
            self.sum_up(cx);
        }
        self.look_at_the_column(cx);
        self.conclude(cx);
    }

    pub(super) fn gone(&mut self, cx: &mut Context, peer: PeerId) {
        self.row.awaited.remove(&peer);
        if let Some(column) = &mut self.column {
            column.round.gone(cx, peer);
        }
        // If it was to hand a result on, others have it.
        let lost =
            self.missing_owners().any(|owner| owner == peer) || self.results.helper == Some(peer);
        if lost && self.weight.is_some() && self.results.columns.contains_key(&self.mine()) {
            self.ask(cx);
        }
        self.advance(cx);
    }

    pub(super) fn timeout(&mut self, cx: &mut Context) {
        // The row goes on with what is here: one late member must not hold up all columns.
        if self.row.sum == Sum::Collecting && cx.now >= self.row.deadline {
            cx.waited_in(self.fragment, Wait::Group);
            let me = cx.me();
            for peer in std::mem::take(&mut self.row.awaited) {
                if peer != me {
                    cx.suspect(peer);
                }
            }
        }
        self.feed(cx);
        if let Some(column) = &mut self.column {
            column.round.timeout(cx);
        }
        if self.due.is_some_and(|due| cx.now >= due) {
            cx.waited_in(self.fragment, Wait::Results);
            self.due = None;
            self.ask(cx);
        }
        self.advance(cx);
    }

    /// Asks another member of this peer's column, which gets the results from another row.
    pub(super) fn ask(&mut self, cx: &mut Context) {
        if self.over() || self.weight.is_none() || self.is_complete() {
            return;
        }
        let linked = |peer: &PeerId| {
            let remote = cx.view.get(*peer);
            *peer != cx.me() && remote.is_some_and(|r| r.is_here() && !r.suspected)
        };
        let column = self.seating.members(self.seating.column());
        let column: Vec<PeerId> = column.into_iter().filter(linked).collect();
        let at = column.partition_point(|peer| *peer < cx.me()) + usize::from(self.results.asked);
        let next = column.get(at % column.len().max(1)).copied();
        // The next question goes to the next member, because this one may have nothing either.
        self.results.asked += 1;
        match next {
            Some(peer) if self.results.asked <= GRID_ASKS_MAX => {
                let (round, fragment) = (self.seating.round, self.fragment);
                cx.send(peer, GridMessage::Ask { round, fragment });
                // It answers once it knows, and a column that cannot decide knows that after some ballots.
                let allowed = cx.deadlines.ceiling().min(cx.deadlines.answer() * 4);
                cx.waited_in(self.fragment, Wait::Results);
                self.results.helper = Some(peer);
                self.due = Some(cx.wait_in(self.fragment, Wait::Results, allowed));
            }
            Some(peer) => self.missed = Some(peer),
            None => {
                // No member of the column is linked: any other peer of the roll may know.
                let placed = |peer: PeerId| self.seating.roll.place_of(peer).is_some();
                let live = cx.view.live().map(|(peer, _)| peer);
                self.missed = live.filter(|peer| placed(*peer)).max();
                let allowed = cx.deadlines.answer();
                cx.waited_in(self.fragment, Wait::Results);
                self.due = Some(cx.wait_in(self.fragment, Wait::Results, allowed));
            }
        }
    }

    /// The peers whose contributions are in this peer's sum of the row.
    pub(super) fn contributors(&self) -> impl Iterator<Item = PeerId> {
        self.row.here.keys().copied()
    }

    /// The other peers that this one serves.
    pub(super) fn others(&self) -> Vec<PeerId> {
        let me = self.seating.roll.peer(self.seating.place);
        let others = self.row.served.iter().copied();
        others.filter(|peer| Some(*peer) != me).collect()
    }

    pub(super) fn set_note(&mut self, note: Vec<u8>) {
        if let Some(column) = &mut self.column {
            column.set_note(note);
        }
    }

    /// The round is over: releases all bytes but those of its result.
    pub(super) fn close(&mut self, cx: &mut Context, keep: bool) {
        for wait in [Wait::Group, Wait::Results] {
            cx.waited_in(self.fragment, wait);
        }
        if let Some(column) = &mut self.column {
            column.round.give_back(cx);
        }
        let kept = |slice: &SliceId| keep && slice.part == Part::Bundle;
        for slice in std::mem::take(&mut self.slices) {
            if !kept(&slice) {
                cx.release(slice);
            }
        }
    }
}

fn waits_for(cx: &Context, seating: &Seating, peer: PeerId) -> bool {
    if !cx.plan.draws(seating.round, peer) {
        return false;
    }
    let place = seating.roll.place_of(peer);
    let settled = place.is_some_and(|place| seating.is_settled(place));
    peer == cx.me() || (settled && cx.view.serves(peer))
}

impl GridPart {
    fn sum_up(&mut self, cx: &mut Context) {
        cx.waited_in(self.fragment, Wait::Group);
        // Without a contribution there is no mean, and an ended column takes none.
        if self.row.here.is_empty() || self.column_over() {
            self.pass(cx);
            return;
        }
        self.row.sum = Sum::Summing;
        // One that comes while the Executor sums is not in it.
        self.row.summed = self.row.here.keys().copied().collect();
        let shard = self.mine();
        let of = self.seating.columns();
        let here = self.row.here.iter();
        let inputs = here.map(|(peer, weight)| (self.share(*peer, shard), *weight));
        let piece = Piece {
            fragment: self.fragment,
            shard,
            of,
        };
        let how = Combination::SumRow(inputs.collect());
        self.tasks
            .insert(cx.order(Order::Combine { piece, how }), Task::Sum);
    }

    /// Brings the mean of the row to the column, once this peer's own contributions have left: other rows
    /// wait for those, and would wait longer if they shared the link with the parts of the mean. A member
    /// that takes nothing holds it up only as long as the row waits.
    pub(super) fn feed(&mut self, cx: &mut Context) {
        if !self.row.sending.is_empty() && cx.now < self.row.deadline {
            return;
        }
        let tally = self.row.tally(&self.seating.roll);
        if let (Some(weight), Some(column)) = (self.row.held.take(), &mut self.column) {
            column.feed(cx, weight, tally);
        }
    }

    /// This peer came back in this round. Shares went where it was not yet, and it may have no
    /// result to hand down. It does only its own work, and others need not wait for it.
    pub(super) fn come_back(&mut self, cx: &mut Context) {
        let (round, fragment) = (self.seating.round, self.fragment);
        for peer in self.others() {
            if cx.view.takes_part(peer) {
                cx.send(peer, GridMessage::Returned { round, fragment });
            }
        }
        self.pass(cx);
    }

    /// The row brings nothing to this round.
    pub(super) fn pass(&mut self, cx: &mut Context) {
        cx.waited_in(self.fragment, Wait::Group);
        self.row.sum = Sum::Over;
        self.row.awaited.clear();
        if let Some(column) = &mut self.column
            && !column.round.over()
        {
            column.pass(cx);
        }
    }
}

impl GridPart {
    pub(super) fn arrived(&mut self, cx: &mut Context, arrived: Arrived) -> Checked {
        let (from, slice, meta) = (arrived.from, arrived.slice, arrived.meta);
        match (meta.tag, arrived.digest) {
            (Tag::Share { weight, taken, .. }, _) => {
                self.share_arrived(cx, from, slice, &meta, (weight, taken))?;
            }
            (Tag::Result { rows, counted, .. }, Some(digest)) => {
                let column = self.seating.column_of(from);
                let named = slice == self.bundle(slice.shard);
                if column != Some(usize::from(slice.shard)) || !named {
                    return broke("a column's result from a peer outside it");
                }
                let version = ShardVersion {
                    owner: slice.origin,
                    attempt: Attempt::FIRST,
                    contributors: rows,
                    digest,
                };
                self.result_arrived(cx, from, slice, (version, counted))?;
            }
            (Tag::RowMean { .. } | Tag::Mean { .. }, _) => match &mut self.column {
                Some(column) if !column.round.over() => column.round.arrived(cx, arrived)?,
                // A push that is repeated brings bytes that are kept for others.
                Some(column) if column.round.holds(&slice) => {}
                _ => cx.release(slice),
            },
            _ => return broke("a slice that has no place in a grid"),
        }
        self.advance(cx);
        Ok(())
    }

    fn share_arrived(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        slice: SliceId,
        meta: &SliceMeta,
        (weight, taken): (f64, Option<Taken>),
    ) -> Checked {
        let fits = slice.part == Part::Contribution
            && slice.shard == self.mine()
            && meta.of == self.seating.columns()
            && slice.attempt == Attempt::FIRST;
        if !fits || !self.row.served.contains(&from) || !weight.is_finite() || weight <= 0.0 {
            return broke("a contribution that this peer does not sum");
        }
        self.slices.insert(slice);
        let waited = cx.now.since(self.row.since);
        // A late one counts as well, or a deadline that is too short would stay so.
        cx.deadlines.record(Wait::Group, from, waited);
        if self.row.sum == Sum::Collecting {
            self.row.awaited.remove(&from);
            self.row.here.insert(from, weight);
            self.row.taken.extend(taken.map(|taken| (from, taken)));
        }
        Ok(())
    }

    pub(super) fn pushed(&mut self, cx: &mut Context, end: PushEnd) {
        let slice = end.slice;
        // Delivered or not: what counts is that it no longer shares the link.
        if slice.part == Part::Contribution && self.row.sending.remove(&slice.shard) {
            self.feed(cx);
            self.advance(cx);
        }
        if matches!(slice.part, Part::RowMean | Part::Aggregate)
            && let Some(column) = &mut self.column
        {
            column.round.pushed(cx, end);
        }
    }

    pub(super) fn column_said(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        message: &Scoped,
    ) -> Checked {
        let Some(column) = &mut self.column else {
            return broke("a message of a column to a newcomer");
        };
        if let FragmentMessage::Tally(entries) = &message.body {
            let mut places = entries.iter().map(|entry| usize::from(entry.place));
            // Otherwise a member could claim data in the name of peers of other rows.
            if !places.all(|place| self.seating.sums_for(from, place)) {
                return broke("contributions that the sender does not sum");
            }
        }
        let heard = if column.round.has(from) {
            column.round.hear(cx, from, &message.body)
        } else {
            broke("a message of a column from a peer outside it")
        };
        self.advance(cx);
        heard
    }
}

/// Progress of a row's sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sum {
    /// Waits for contributions.
    #[default]
    Collecting,
    /// The Executor sums.
    Summing,
    /// The column has it, or there is nothing to have.
    Over,
}

/// The contributions of the peers that this one sums for.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// All whom it serves, itself included.
    pub(super) served: SortedSet<PeerId>,
    /// Those that it still waits for.
    pub(super) awaited: SortedSet<PeerId>,
    /// Whose contributions are here, with their weights.
    pub(super) here: SortedMap<PeerId, f64>,
    /// The data behind these, of those that say it.
    pub(super) taken: SortedMap<PeerId, Taken>,
    /// Whose contributions are in the sum.
    pub(super) summed: SortedSet<PeerId>,
    pub(super) sum: Sum,
    /// Shards of this peer's own contribution that are on their way to other members.
    pub(super) sending: SortedSet<u16>,
    /// The weight of a sum that waits until they have arrived.
    pub(super) held: Option<f64>,
    pub(super) since: Time,
    pub(super) deadline: Time,
}

impl Row {
    /// Whose contributions are in the sum, with the data behind them, by their places.
    pub(super) fn tally(&self, roll: &Roll) -> Vec<TallyEntry> {
        let known = self.summed.iter().filter_map(|peer| {
            let place = u16::try_from(roll.place_of(*peer)?).ok()?;
            let taken = *self.taken.get(peer)?;
            Some(TallyEntry { place, taken })
        });
        let mut entries: Vec<TallyEntry> = known.collect();
        entries.sort_unstable_by_key(|entry| entry.place);
        entries.truncate(GRID_TALLY_MAX);
        entries
    }

    /// Nothing is waited for any more.
    pub(super) fn is_complete(&self) -> bool {
        self.sum == Sum::Collecting && self.awaited.is_empty()
    }
}

/// One column's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ColumnResult {
    /// Its bundle's version. Without contributors the column found no result: its shard stays.
    pub(super) version: ShardVersion,
    /// This peer's contribution is in it; `None` where no member of its row said so.
    pub(super) counted: Option<bool>,
}

impl ColumnResult {
    /// A column that found no result.
    pub(super) fn void(owner: PeerId) -> Self {
        Self {
            version: ShardVersion {
                owner,
                attempt: Attempt::VOID,
                contributors: Members::NONE,
                digest: Digest::from_bytes([0; 32]),
            },
            counted: Some(false),
        }
    }
}

/// The results of a fragment's columns.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) columns: SortedMap<u16, ColumnResult>,
    /// Bundles that are on their way by a fetch, with what they must be.
    pub(super) fetching: SortedMap<SliceId, (u16, ShardVersion)>,
    /// Members of the row that came back in this round and hand nothing down.
    pub(super) returned: SortedSet<PeerId>,
    /// Time since which only the results of other columns are missing.
    pub(super) since: Option<Time>,
    /// Peers that wait for this peer's results.
    pub(super) askers: SortedSet<PeerId>,
    /// Questions to other peers.
    pub(super) asked: u8,
    /// The peer that it asked last.
    pub(super) helper: Option<PeerId>,
}

/// What follows a column's agreement: its result goes to the rows, and the results of all columns end
/// the fragment.
impl GridPart {
    pub(super) fn look_at_the_column(&mut self, cx: &mut Context) {
        let mine = self.mine();
        // Another row may have handed this column's result here before the column ended.
        if self.results.columns.contains_key(&mine) {
            return;
        }
        let Some(column) = &self.column else {
            return;
        };
        if let Some(teller) = column.round.missed {
            self.missed.get_or_insert(teller);
            return;
        }
        let bundling = self.tasks.values().any(|task| matches!(task, Task::Bundle));
        match &column.round.ending {
            Some(Ending::Apply(parts)) if !bundling => {
                let from = Source::Bundle {
                    parts: parts.clone(),
                    noted: self.seating.decides_the_roll(&cx.plan, self.fragment),
                };
                let order = cx.encode(self.bundle(mine), self.seating.columns(), from);
                self.tasks.insert(order, Task::Bundle);
            }
            // The row learns it at once: nothing else would tell that no result comes.
            Some(Ending::Void) => {
                let void = ColumnResult::void(self.bundle(mine).origin);
                self.results.columns.insert(mine, void);
                self.await_results(cx);
                let message = self.partial();
                for peer in self.others() {
                    cx.send(peer, message.clone());
                }
            }
            _ => {}
        }
    }

    /// The column's result is one slice: the row gets it.
    pub(super) fn hand_down(&mut self, cx: &mut Context, bytes: u64, digest: Digest) {
        let Some(column) = &self.column else {
            return;
        };
        let (mine, rows, has_row) = (self.mine(), column.rows(), column.has_own_row());
        let slice = self.bundle(mine);
        self.slices.insert(slice);
        let in_it = |peer: PeerId, part: &Self| has_row && part.row.summed.contains(&peer);
        let version = ShardVersion {
            owner: slice.origin,
            attempt: Attempt::FIRST,
            contributors: rows,
            digest,
        };
        let served = self.row.served.contains(&cx.me());
        let counted = served.then(|| in_it(cx.me(), self));
        let result = ColumnResult { version, counted };
        self.results.columns.entry(mine).or_insert(result);
        for peer in self.others() {
            let tag = Tag::Result {
                group: self.seating.tag(),
                rows,
                counted: in_it(peer, self),
            };
            let of = self.seating.columns();
            cx.push(peer, slice, SliceMeta { of, bytes, tag }, 0);
        }
        if let Some(column) = &mut self.column {
            // The bundle holds what its parts held.
            column.round.give_back(cx);
        }
        self.await_results(cx);
    }

    /// Starts the clock of the results of other columns.
    pub(super) fn await_results(&mut self, cx: &mut Context) {
        if self.over() {
            return;
        }
        cx.waited_in(self.fragment, Wait::Results);
        let owners = self.missing_owners().filter(|peer| *peer != cx.me());
        let owners: Vec<PeerId> = owners.collect();
        // From here on an owner's lateness is its column's, and not that of this peer's row.
        self.results.since.get_or_insert(cx.now);
        let returned = &self.results.returned;
        let all = owners
            .iter()
            .all(|peer| cx.view.serves(*peer) && !returned.contains(peer));
        if self.weight.is_some() && !all {
            // Nothing comes from a member that is gone, or comes too late from one that came back a moment
            // ago: another row has its column's result.
            self.ask(cx);
            return;
        }
        let allowed = cx.deadlines.allow_alike(Wait::Results, owners);
        self.due = Some(cx.wait_in(self.fragment, Wait::Results, allowed));
    }

    /// A member of the row came back in this round.
    pub(super) fn returned(&mut self, cx: &mut Context, peer: PeerId) -> Checked {
        let column = self.seating.column_of(peer);
        if column.and_then(|column| self.seating.owner_of(column)) != Some(peer) {
            return broke("a return to a row that is not its own");
        }
        // It came back after its column began, so it may have no result to hand down.
        self.results.returned.insert(peer);
        if self.results.since.is_some() && self.due.is_some() && self.results.helper.is_none() {
            self.await_results(cx);
        }
        Ok(())
    }

    pub(super) fn is_complete(&self) -> bool {
        self.results.columns.len() == usize::from(self.seating.columns())
            && self.results.fetching.is_empty()
    }

    /// Ends the fragment once every column's result is here.
    pub(super) fn conclude(&mut self, cx: &mut Context) {
        if self.over() || self.weight.is_none() || !self.is_complete() {
            return;
        }
        let shares = |task: &Task| matches!(task, Task::Share(_));
        if self.tasks.values().any(shares) {
            return;
        }
        for wait in [Wait::Group, Wait::Results] {
            cx.waited_in(self.fragment, wait);
        }
        self.due = None;
        for (column, result) in &self.results.columns {
            if self.shares.contains_key(column) {
                let outcome = settlement(result.counted.unwrap_or(false));
                let slice = self.share(cx.me(), *column);
                cx.order(Order::Settle { slice, outcome });
            }
        }
        let round = self.seating.round;
        let versions = self.results.columns.values().map(|result| result.version);
        let is_void = |v: &ShardVersion| v.attempt == Attempt::VOID;
        let void = versions.clone().all(|v| is_void(&v));
        let any_void = versions.clone().any(|v| is_void(&v));
        let bundles: Vec<SliceId> = (0u16..)
            .zip(versions)
            .map(|(column, version)| SliceId {
                attempt: version.attempt,
                ..self.bundle(column)
            })
            .collect();
        let fragment = self.fragment;
        if any_void {
            cx.emit(Event::Voided { round, fragment })
        } else {
            cx.emit(Event::Decided {
                round,
                fragment,
                ballot: 0,
                contributors: Vec::new(),
            })
        }
        self.ending = Some(if void {
            Ending::Void
        } else {
            Ending::Apply(bundles)
        });
        let message = self.partial();
        for asker in std::mem::take(&mut self.results.askers) {
            cx.send(asker, message.clone());
        }
    }

    /// Results that are here, as a message.
    fn partial(&self) -> Scoped {
        let none = ColumnResult::void(self.first());
        let columns = 0..self.seating.columns();
        let known = columns.map(|column| {
            let result = self.results.columns.get(&column);
            let version = result.map_or(none.version, |result| result.version);
            let is_here = !self.results.fetching.contains_key(&self.bundle(column));
            (result.is_some() && is_here, version)
        });
        let (known, versions) = known.unzip();
        Scoped {
            round: self.seating.round,
            fragment: self.fragment,
            group: self.seating.tag(),
            body: FragmentMessage::Collected { known, versions },
        }
    }

    pub(super) fn decision(&self) -> Option<Scoped> {
        self.ending.is_some().then(|| self.partial())
    }

    /// A peer asks how the fragment ended. It hears at once the results that are here, because each row
    /// may miss another column, and all results at the end.
    pub(super) fn asked(&mut self, cx: &mut Context, from: PeerId) {
        if self.ending.is_none() {
            if self.results.askers.len() >= GROUP_MEMBERS_MAX {
                return;
            }
            self.results.askers.insert(from);
        }
        if !self.results.columns.is_empty() {
            cx.send(from, self.partial());
        }
    }

    /// A column's result is on its way from a member of the row.
    fn is_handed_down(&self, cx: &Context, column: u16) -> bool {
        let owner = self.seating.owner_of(usize::from(column));
        let gone = |peer: &PeerId| self.results.returned.contains(peer) || !cx.view.serves(*peer);
        owner.is_some_and(|owner| owner != cx.me() && !gone(&owner))
    }

    /// Another peer names the columns' results that it holds.
    pub(super) fn collected(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        (known, versions): (&[bool], &[ShardVersion]),
    ) -> Checked {
        if versions.len() != usize::from(self.seating.columns()) || known.len() != versions.len() {
            return broke("results of another number of columns");
        }
        let whole = known.iter().all(|known| *known);
        for (column, (known, version)) in (0u16..).zip(known.iter().zip(versions)) {
            if !known || self.results.columns.contains_key(&column) {
                continue;
            }
            // Another site's row is no place to fetch what a member of this row is about to hand down.
            if !whole && version.attempt != Attempt::VOID && self.is_handed_down(cx, column) {
                continue;
            }
            let slice = self.bundle(column);
            // All members of a column make the same bundle, in the name of its first place.
            forbid(
                version.owner != slice.origin,
                "a column's result in another peer's name",
            )?;
            let counted = self.was_counted(column, version);
            let version = *version;
            self.results
                .columns
                .insert(column, ColumnResult { version, counted });
            if version.attempt != Attempt::VOID {
                self.results.fetching.insert(slice, (column, version));
                let deadline = cx.now + cx.deadlines.ceiling();
                cx.put(Output::Fetch {
                    what: FetchId::Slice(slice),
                    from: vec![from],
                    deadline,
                });
            }
        }
        self.advance(cx);
        Ok(())
    }

    /// This peer's contribution is in a column's result, as far as the rows in it show.
    fn was_counted(&self, column: u16, version: &ShardVersion) -> Option<bool> {
        let column = usize::from(column);
        let owner = self.seating.owner_of(column)?;
        let at = self.seating.members(column).binary_search(&owner).ok()?;
        Some(version.contributors.has(at))
    }

    pub(super) fn result_arrived(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        slice: SliceId,
        (version, counted): (ShardVersion, bool),
    ) -> Checked {
        // By how much its column was later than this peer's. Rows that wait for a peer that died hold
        // up all columns alike.
        let late = self.results.since.map(|since| cx.now.since(since));
        cx.deadlines
            .record(Wait::Results, from, late.unwrap_or_default());
        self.slices.insert(slice);
        if let Some(known) = self.results.columns.get_mut(&slice.shard) {
            // One agreement fixes a column's bits, so two results cannot both be true.
            if known.version.digest != version.digest {
                return broke("another result of a column than its members have");
            }
            self.results.fetching.remove(&slice);
            return Ok(());
        }
        let counted = Some(counted);
        self.results
            .columns
            .insert(slice.shard, ColumnResult { version, counted });
        Ok(())
    }

    /// A fetch ended; false when it is not of this fragment.
    pub(super) fn fetched(&mut self, cx: &mut Context, slice: SliceId, digest: Option<Digest>) {
        if let Some((column, version)) = self.results.fetching.remove(&slice) {
            self.slices.insert(slice);
            // Other bytes under that name count for nothing, and the column is asked for again.
            if digest != Some(version.digest) {
                self.results.columns.remove(&column);
            }
        } else if let Some(column) = &mut self.column {
            column.round.fetched(cx, slice, digest);
        }
        self.advance(cx);
    }

    pub(super) fn fetch_failed(&mut self, cx: &mut Context, slice: SliceId) {
        if let Some((column, _)) = self.results.fetching.remove(&slice) {
            self.results.columns.remove(&column);
            self.ask(cx);
        } else if let Some(column) = &mut self.column {
            column.round.fetch_failed(cx, slice);
        }
        self.advance(cx);
    }
}
