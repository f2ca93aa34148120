//! A column of a grid: its members agree on one shard of a fragment. Everything that a group of the
//! whole fragment does holds for it, with the means of rows in place of contributions.

use super::ballot::ShardVersion;
use super::fragment::FragmentRound;
use super::group::Group;
use super::message::{FragmentMessage, Member, Scoped};
use super::scope::Within;
use crate::core::context::Context;
use crate::exchange::Ending;
use crate::exchange::broke;
use crate::{
    Digest, Done, FragmentId, GroupTag, Members, OrderId, PeerError, PeerId, PushOutcome, SliceId,
    SliceMeta, TallyEntry, Time,
};
use core::time::Duration;
use std::collections::BTreeMap;

/// Where a column is in its fragment.
#[derive(Clone, Debug)]
pub(in crate::exchange) struct Shape {
    pub(in crate::exchange) column: u16,
    pub(in crate::exchange) columns: u16,
    /// Into how many parts its shard is cut.
    pub(in crate::exchange) parts: u16,
    /// The members among whom these are dealt, in `PeerId` order.
    pub(in crate::exchange) owners: Vec<PeerId>,
    /// Whether it decides a note beside the parameters.
    pub(in crate::exchange) noted: bool,
}

/// One column's agreement on its shard of a fragment.
#[derive(Debug)]
pub(in crate::exchange) struct Column(FragmentRound);

impl Column {
    pub(super) const fn fragment_round(&self) -> &FragmentRound {
        &self.0
    }

    /// Begins. `members` are in `PeerId` order. `longer` is added to the wait for the rows, which have
    /// waits of their own.
    pub(in crate::exchange) fn new(
        cx: &mut Context,
        fragment: FragmentId,
        members: &[PeerId],
        tag: GroupTag,
        shape: &Shape,
        longer: Duration,
    ) -> Self {
        // A row's weight is known with its mean. Until then it counts as one that contributes.
        let weight = 1.0;
        let all = members.iter().map(|peer| Member {
            peer: *peer,
            weight,
            taken: None,
            loss: None,
        });
        let group = Group::new(&cx.plan, cx.round, all.collect(), cx.me());
        let mut group = group.expect("a peer is in its own column");
        group.tag = tag;
        // One that came back a moment ago is not waited for, but may vote.
        let unsure = group.others().filter(|(_, peer)| !cx.view.serves(*peer));
        let lost = unsure.map(|(index, _)| index).collect();
        let owners = shape.owners.iter().filter_map(|peer| group.index(*peer));
        let within = Within {
            column: shape.column,
            columns: shape.columns,
            owners: owners.collect(),
            longer,
            fed: None,
            weight: 0.0,
            note: shape.noted.then(Vec::new),
            tallies: BTreeMap::new(),
        };
        Self(FragmentRound::within(
            cx,
            fragment,
            group,
            shape.parts,
            lost,
            within,
        ))
    }

    /// The mean of this peer's row lies in the Executor. `tally` says whose contributions it holds.
    pub(in crate::exchange) fn feed(
        &mut self,
        cx: &mut Context,
        weight: f64,
        tally: Vec<TallyEntry>,
    ) {
        let me = self.0.scope.group.me;
        if let Some(within) = &mut self.0.scope.within {
            within.weight = weight;
            within.fed = Some(cx.now);
            within.tallies.insert(me, tally);
        }
        self.0.scope.group.members[me].weight = weight;
        self.0.encode_all(cx);
        self.0.advance(cx);
    }

    /// This peer's row brings nothing: its column need not wait for it.
    pub(in crate::exchange) fn pass(&mut self, cx: &mut Context) {
        let me = self.0.scope.group.me;
        self.0.brings_nothing(me);
        let message = self.0.scope.scoped(FragmentMessage::EmptyRow);
        for (_, peer) in self.0.scope.group.others() {
            if cx.view.takes_part(peer) {
                cx.send(peer, message.clone());
            }
        }
        self.0.advance(cx);
    }

    /// What to decide beside the parameters, while that is open.
    pub(in crate::exchange) fn set_note(&mut self, note: Vec<u8>) {
        if let Some(within) = &mut self.0.scope.within
            && within.note.is_some()
        {
            within.note = Some(note);
        }
    }

    /// The member that makes the note in the first ballot.
    pub(in crate::exchange) fn notary(&self) -> Option<PeerId> {
        let target = self.0.targets.first()?;
        Some(self.0.scope.group.peer(target.owner))
    }

    /// When it must look again.
    pub(in crate::exchange) fn due(&self) -> Option<Time> {
        (!self.0.over()).then(|| self.0.due())
    }

    /// How it ended: the decided parts, or nothing.
    pub(in crate::exchange) fn ending(&self) -> Option<&Ending> {
        self.0.ending.as_ref()
    }

    /// A member that knows more, where decided parts can no longer be found.
    pub(in crate::exchange) fn missed(&self) -> Option<PeerId> {
        self.0.missed
    }

    /// The rows whose contributions are in every decided part, in the order of the members.
    pub(in crate::exchange) fn rows(&self) -> Members {
        let all = self.0.scope.group.all();
        let versions = self.0.agreement.decided.iter().flat_map(|(_, v)| v);
        versions.fold(all, |rows, v: &ShardVersion| rows & v.contributors)
    }

    /// Whether this peer's row is in every decided part.
    pub(in crate::exchange) fn has_own_row(&self) -> bool {
        self.rows().has(self.0.scope.group.me)
    }

    pub(in crate::exchange) fn timeout(&mut self, cx: &mut Context) {
        self.0.timeout(cx);
    }

    /// A member's link is gone.
    pub(in crate::exchange) fn gone(&mut self, cx: &mut Context, peer: PeerId) {
        if let Some(index) = self.0.scope.group.index(peer) {
            self.0.give_up(Members::one(index));
            self.0.advance(cx);
        }
    }

    /// A message of the column.
    ///
    /// # Errors
    /// When its sender broke a rule.
    pub(in crate::exchange) fn message(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        message: &Scoped,
    ) -> Result<(), PeerError> {
        if self.0.scope.group.index(from).is_none() {
            return broke("a message of a column from a peer outside it");
        }
        self.0.hear(cx, from, &message.body)
    }

    /// A slice of the column.
    ///
    /// # Errors
    /// When its sender broke a rule.
    pub(in crate::exchange) fn arrived(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        slice: SliceId,
        meta: SliceMeta,
        digest: Option<Digest>,
    ) -> Result<(), PeerError> {
        self.0.arrived(cx, from, slice, meta, digest)
    }

    /// Whether it needs no more slices.
    pub(in crate::exchange) fn over(&self) -> bool {
        self.0.over()
    }

    pub(in crate::exchange) fn pushed(
        &mut self,
        cx: &mut Context,
        to: PeerId,
        slice: SliceId,
        outcome: PushOutcome,
    ) {
        self.0.pushed(cx, to, slice, outcome);
    }

    /// A fetch of one of its slices ended.
    pub(in crate::exchange) fn fetched(
        &mut self,
        cx: &mut Context,
        slice: SliceId,
        digest: Option<Digest>,
    ) {
        self.0.fetched(cx, slice, digest);
    }

    pub(in crate::exchange) fn fetch_failed(&mut self, cx: &mut Context, slice: SliceId) {
        self.0.fetch_failed(cx, slice);
    }

    /// Whether a slice's bytes are here for it.
    pub(in crate::exchange) fn holds(&self, slice: &SliceId) -> bool {
        self.0.transfers.slices.contains(slice)
    }

    /// An order was answered; false when it is not one of the column.
    pub(in crate::exchange) fn done(
        &mut self,
        cx: &mut Context,
        order: OrderId,
        done: &Done,
    ) -> bool {
        self.0.done(cx, order, done)
    }

    /// Gives up what is under way, and releases all bytes.
    pub(in crate::exchange) fn release(&mut self, cx: &mut Context) {
        self.0.stop_waiting(cx);
        self.0.release(cx, &[]);
    }
}
