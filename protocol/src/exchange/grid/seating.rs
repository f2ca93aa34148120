//! A round's rows and columns as one peer sees them: who sums what, and who is in its column.

use crate::exchange::agreed::column::Shape;
use crate::locality::fast_enough;
use crate::{Digest, FragmentId, GroupTag, PeerId, Plan, Roll, Round};
use std::sync::Arc;

/// A peer's place in one round's grid.
#[derive(Clone, Debug)]
pub(super) struct Seating {
    pub(super) round: Round,
    pub(super) roll: Arc<Roll>,
    pub(super) place: usize,
    /// Names roll, round, anchor and ledger: peers that differ in one of them do not exchange.
    pub(super) state: Digest,
    pub(super) column_tag: GroupTag,
}

impl Seating {
    /// `None` for a peer that is not in the roll.
    pub(super) fn new(roll: &Arc<Roll>, round: Round, shared: Digest, me: PeerId) -> Option<Self> {
        let place = roll.place_of(me)?;
        let grid = roll.grid();
        let state = crate::wire::canonical(&(round, roll.digest(), shared));
        let state = Digest::of(&state);
        let column = crate::wire::canonical(&(state, grid.column_of(place) as u64));
        Some(Self {
            round,
            roll: roll.clone(),
            place,
            state,
            column_tag: GroupTag::of_digest(&Digest::of(&column)),
        })
    }

    pub(super) fn tag(&self) -> GroupTag {
        GroupTag::of_digest(&self.state)
    }

    pub(super) fn column(&self) -> usize {
        self.roll.grid().column_of(self.place)
    }

    pub(super) fn columns(&self) -> u16 {
        self.roll.grid().columns() as u16
    }

    /// A peer has had a round to catch up since it entered: nothing depends on it before.
    pub(super) fn is_settled(&self, place: usize) -> bool {
        let place = self.roll.place(place);
        place.is_some_and(|place| place.since <= self.round)
    }

    /// The place that sums a row's contributions to a column: the row's own, or that of the nearest
    /// row above, or else below, that has a settled one.
    fn owner(&self, row: usize, column: usize) -> usize {
        let at = |row: usize| row * self.roll.grid().columns() + column;
        let above = (0..=row).rev().map(at);
        let below = (row + 1..self.roll.grid().rows()).map(at);
        let mut all = above.chain(below);
        let own = self.roll.grid().owner(row, column);
        all.find(|place| self.is_settled(*place)).unwrap_or(own)
    }

    /// The peer that sums this peer's contributions to a column's shard.
    pub(super) fn owner_of(&self, column: usize) -> Option<PeerId> {
        let row = self.roll.grid().row_of(self.place);
        self.roll.peer(self.owner(row, column))
    }

    /// The peers whose contributions this peer sums, itself included.
    pub(super) fn served(&self) -> Vec<PeerId> {
        let column = self.column();
        let rows =
            (0..self.roll.grid().rows()).filter(|row| self.owner(*row, column) == self.place);
        let places = rows.flat_map(|row| self.roll.grid().row(row));
        places.filter_map(|place| self.roll.peer(place)).collect()
    }

    /// A peer sums the contribution of the peer at a place, for its column.
    pub(super) fn sums_for(&self, peer: PeerId, place: usize) -> bool {
        let Some(owner) = self.roll.place_of(peer) else {
            return false;
        };
        let (row, column) = (
            self.roll.grid().row_of(place),
            self.roll.grid().column_of(owner),
        );
        place < self.roll.len() && self.owner(row, column) == owner
    }

    /// The members of a column that agree in this round, in `PeerId` order: those that are settled.
    pub(super) fn members(&self, column: usize) -> Vec<PeerId> {
        let places = self.roll.grid().column(column);
        let places = places.filter(|place| self.is_settled(*place));
        let mut members: Vec<PeerId> = places.filter_map(|p| self.roll.peer(p)).collect();
        members.sort_unstable();
        members
    }

    /// The members of a column that own parts, in `PeerId` order: those that are not slow beside others.
    fn part_owners(&self, column: usize) -> Vec<PeerId> {
        let members = self.members(column);
        if !self.roll.is_rated() {
            return members;
        }
        let rate = |peer: &PeerId| self.roll.place(self.roll.place_of(*peer)?)?.rate();
        let rates: Vec<_> = members.iter().map(rate).collect();
        let fast = fast_enough(&rates).into_iter().zip(members);
        fast.filter_map(|(fast, peer)| fast.then_some(peer))
            .collect()
    }

    /// Members that can own parts in the column that has the fewest.
    fn fewest_owners(&self) -> usize {
        let columns = self.roll.grid().columns();
        if self.roll.is_rated() {
            let owners = (0..columns).map(|column| self.part_owners(column).len());
            return owners.min().unwrap_or(0);
        }
        if self.roll.newest() <= self.round {
            return self.roll.grid().column(columns - 1).count();
        }
        let mut members = vec![0; columns];
        let settled = (0..self.roll.len()).filter(|place| self.is_settled(*place));
        settled.for_each(|place| members[self.roll.grid().column_of(place)] += 1);
        members.into_iter().min().unwrap_or(0)
    }

    /// The peer in whose name a column's decided bytes travel.
    pub(super) fn first_of(&self, column: usize) -> Option<PeerId> {
        self.roll.peer(column)
    }

    pub(super) fn column_of(&self, peer: PeerId) -> Option<usize> {
        Some(self.roll.grid().column_of(self.roll.place_of(peer)?))
    }

    /// This peer's column decides about the roll in a round, with a fragment.
    pub(super) fn decides_the_roll(&self, plan: &Plan, fragment: FragmentId) -> bool {
        let first = plan.fragments_of(self.round).next() == Some(fragment);
        first && self.round.0 % self.roll.grid().columns() as u64 == self.column() as u64
    }

    pub(super) fn shape(&self, plan: &Plan, fragment: FragmentId, len: u64) -> Shape {
        let columns = self.columns();
        let shard = (len / u64::from(columns)).max(1);
        let column = self.column();
        // All columns are cut alike, so that a part's number is the same at all peers.
        let fewest = self.fewest_owners().max(1);
        let parts = self
            .roll
            .grid()
            .part_owners(self.roll.grid().columns() - 1)
            .min(fewest) as u64;
        Shape {
            column: column as u16,
            columns,
            parts: parts.min(shard) as u16,
            owners: self.part_owners(column),
            noted: self.decides_the_roll(plan, fragment),
        }
    }
}
