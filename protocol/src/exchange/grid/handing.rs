//! What follows a column's agreement: its result goes to the rows, and the results of all columns end
//! the fragment.

use super::part::{ColumnResult, GridPart, Task};
use crate::core::FetchId;
use crate::core::context::Context;
use crate::exchange::agreed::{FragmentMessage, Scoped, ShardVersion};
use crate::exchange::{broke, settlement};
use crate::limits::GROUP_MEMBERS_MAX;
use crate::{
    Attempt, Digest, Ending, Event, Order, Output, PeerError, PeerId, SliceId, SliceMeta, Source,
    Tag, Wait,
};

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
                let order = Order::Encode {
                    slice: self.bundle(mine),
                    of: self.seating.columns(),
                    from: Source::Bundle {
                        parts: parts.clone(),
                        noted: self.seating.decides_the_roll(&cx.plan, self.fragment),
                    },
                };
                self.tasks.insert(cx.order(order), Task::Bundle);
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
    pub(super) fn returned(&mut self, cx: &mut Context, peer: PeerId) -> Result<(), PeerError> {
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
    ) -> Result<(), PeerError> {
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
            if version.owner != slice.origin {
                return broke("a column's result in another peer's name");
            }
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
    ) -> Result<(), PeerError> {
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
