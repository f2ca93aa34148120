//! One round of a cell: its members agree on the mean of every fragment, as those of any group do.
//! Members are known when it begins, and each has trained.

use super::fragment::FragmentRound;
use super::group::Group;
use super::history::History;
use super::message::{Member, Scoped};
use super::window::window;
use crate::core::context::Context;
use crate::exchange::{Ending, broke};
use crate::{
    Digest, Done, Event, FragmentId, GroupTag, Members, OrderId, PeerError, PeerId, PushOutcome,
    SliceId, SliceMeta, Time,
};

/// Every peer's parameters count the same, as in gossip.
const WEIGHT: f64 = 1.0;

/// The fragments of one round in one cell. A window of them is open at a time.
#[derive(Debug)]
pub(in crate::exchange) struct CellRound {
    group: Group,
    /// Those opened so far, in the order of the round.
    fragments: Vec<FragmentRound>,
    /// Members that were given up in some fragment.
    lost: Members,
}

impl CellRound {
    /// Begins with these members, in `PeerId` order; `None` for a peer that is not one of them.
    pub(in crate::exchange) fn new(cx: &mut Context, members: &[PeerId]) -> Option<Self> {
        let all = members.iter().map(|peer| Member {
            peer: *peer,
            weight: WEIGHT,
            taken: None,
            loss: None,
        });
        let group = Group::new(&cx.plan, cx.round, all.collect(), cx.me())?;
        let (round, members) = (cx.round, members.to_vec());
        cx.emit(Event::Group { round, members });
        let gone = group.others().filter(|(_, peer)| !is_linked(cx, *peer));
        let lost = gone.map(|(index, _)| index).collect();
        Some(Self {
            group,
            fragments: Vec::new(),
            lost,
        })
    }

    /// Keeps it apart from other groups of the round.
    pub(in crate::exchange) const fn tag(&self) -> GroupTag {
        self.group.tag
    }

    pub(in crate::exchange) fn members(&self) -> Vec<PeerId> {
        self.group
            .members
            .iter()
            .map(|member| member.peer)
            .collect()
    }

    pub(in crate::exchange) fn has(&self, peer: PeerId) -> bool {
        self.group.index(peer).is_some()
    }

    /// Opens the next fragment, if the window has room for one.
    pub(in crate::exchange) fn open(&mut self, cx: &mut Context) -> Option<FragmentId> {
        let open = self.fragments.iter().filter(|f| f.ending.is_none());
        if open.count() >= window(&cx.plan) {
            return None;
        }
        let next = cx.plan.fragments_of(cx.round).nth(self.fragments.len())?;
        let group = self.group.clone();
        let mut fragment = FragmentRound::new(cx, next, group, None, self.lost);
        fragment.advance(cx);
        self.fragments.push(fragment);
        Some(next)
    }

    pub(super) fn open_fragments(&self) -> &[FragmentRound] {
        &self.fragments
    }

    fn fragment(&mut self, fragment: FragmentId) -> Option<&mut FragmentRound> {
        let mut open = self.fragments.iter_mut();
        open.find(|open| open.scope.fragment == fragment)
    }

    /// Whether a fragment is open, or has ended.
    pub(in crate::exchange) fn has_opened(&self, fragment: FragmentId) -> bool {
        let mut open = self.fragments.iter();
        open.any(|open| open.scope.fragment == fragment)
    }

    /// After every signal: a member that was given up in one fragment is given up in all, and a fragment
    /// whose bytes can no longer be found is void here.
    pub(in crate::exchange) fn settle(&mut self, cx: &mut Context) {
        loop {
            for fragment in &self.fragments {
                self.lost |= self.group.all().without(fragment.hopeful);
            }
            // This peer does not give up itself.
            let lost = self.lost.without(Members::one(self.group.me));
            let hopes = |f: &&mut FragmentRound| !f.over() && !(f.hopeful & lost).is_empty();
            let mut hopeful = self.fragments.iter_mut().filter(hopes).peekable();
            if hopeful.peek().is_none() {
                break;
            }
            for fragment in hopeful {
                fragment.give_up(lost);
                fragment.advance(cx);
            }
        }
        let missed = |f: &&mut FragmentRound| f.missed.is_some() && f.ending.is_none();
        for fragment in self.fragments.iter_mut().filter(missed) {
            fragment.void(cx);
        }
    }

    /// When it must look again; `None` once every open fragment has ended.
    pub(in crate::exchange) fn due(&self) -> Option<Time> {
        let open = self.fragments.iter().filter(|f| f.ending.is_none());
        open.map(FragmentRound::due).min()
    }

    /// Whether all fragments of the round have ended.
    pub(in crate::exchange) fn is_over(&self, cx: &Context) -> bool {
        let all = cx.plan.fragments_of(cx.round).count();
        self.fragments.len() == all && self.fragments.iter().all(|f| f.ending.is_some())
    }

    /// Fragments that have ended since the last call.
    pub(in crate::exchange) fn ended(&mut self) -> Vec<(FragmentId, Ending)> {
        let untold = self.fragments.iter_mut().filter(|fragment| !fragment.told);
        let ended = untold.filter_map(|fragment| {
            let ending = fragment.ending.clone()?;
            fragment.told = true;
            Some((fragment.scope.fragment, ending))
        });
        ended.collect()
    }

    /// A fragment's result is applied: its bytes are kept for members that lack them.
    pub(in crate::exchange) fn applied(
        &mut self,
        cx: &mut Context,
        fragment: FragmentId,
        history: &mut History,
    ) {
        let open = self.fragment(fragment).filter(|fragment| fragment.told);
        if let Some(fragment) = open {
            history.close(cx, fragment);
        }
    }

    /// A fragment's result cannot be applied because of one slice.
    pub(in crate::exchange) fn without(
        &mut self,
        cx: &mut Context,
        bad: SliceId,
        reason: &str,
    ) -> Option<Ending> {
        self.fragment(bad.fragment)?.leave_out(cx, bad, reason)
    }

    /// A message of a member about an open fragment.
    ///
    /// # Errors
    /// When its sender broke a rule.
    pub(in crate::exchange) fn message(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        message: &Scoped,
    ) -> Result<(), PeerError> {
        if message.group != self.group.tag {
            return Ok(());
        }
        if !self.has(from) {
            return broke("a message of a cell from a peer outside it");
        }
        let Some(fragment) = self.fragment(message.fragment) else {
            return Ok(());
        };
        fragment.hear(cx, from, &message.body)
    }

    /// Takes a slice in; false if it needs none like it.
    ///
    /// # Errors
    /// When its sender broke a rule.
    pub(in crate::exchange) fn arrived(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        (slice, meta, digest): (SliceId, SliceMeta, Option<Digest>),
    ) -> Result<bool, PeerError> {
        let mine = meta.tag.group() == Some(self.group.tag);
        let Some(fragment) = self.fragment(slice.fragment).filter(|_| mine) else {
            return Ok(false);
        };
        if fragment.over() {
            return Ok(fragment.transfers.slices.contains(&slice));
        }
        fragment.arrived(cx, from, slice, meta, digest)?;
        Ok(true)
    }

    /// A member's link is gone.
    pub(in crate::exchange) fn gone(&mut self, cx: &mut Context, peer: PeerId) {
        let Some(index) = self.group.index(peer) else {
            return;
        };
        self.lost |= Members::one(index);
        for fragment in &mut self.fragments {
            fragment.give_up(Members::one(index));
            fragment.advance(cx);
        }
    }

    pub(in crate::exchange) fn timeout(&mut self, cx: &mut Context) {
        self.fragments.iter_mut().for_each(|f| f.timeout(cx));
    }

    pub(in crate::exchange) fn pushed(
        &mut self,
        cx: &mut Context,
        to: PeerId,
        slice: SliceId,
        outcome: PushOutcome,
    ) {
        if let Some(fragment) = self.fragment(slice.fragment) {
            fragment.pushed(cx, to, slice, outcome);
        }
    }

    /// A fetch ended; false when it was not for an open fragment.
    pub(in crate::exchange) fn fetched(
        &mut self,
        cx: &mut Context,
        slice: SliceId,
        digest: Option<Digest>,
    ) -> bool {
        let fragment = self.fragment(slice.fragment);
        fragment.is_some_and(|fragment| {
            fragment.fetched(cx, slice, digest);
            true
        })
    }

    pub(in crate::exchange) fn fetch_failed(&mut self, cx: &mut Context, slice: SliceId) {
        if let Some(fragment) = self.fragment(slice.fragment) {
            fragment.fetch_failed(cx, slice);
        }
    }

    /// An order was answered; false when it is not one of the cell.
    pub(in crate::exchange) fn done(
        &mut self,
        cx: &mut Context,
        order: OrderId,
        done: &Done,
    ) -> bool {
        let mut all = self.fragments.iter_mut();
        all.any(|fragment| fragment.done(cx, order, done))
    }

    /// The round is over: what is still under way is given up, and its bytes go.
    pub(in crate::exchange) fn release(&mut self, cx: &mut Context) {
        for fragment in &mut self.fragments {
            fragment.stop_waiting(cx);
            fragment.release(cx, &[]);
        }
    }
}

fn is_linked(cx: &Context, peer: PeerId) -> bool {
    let remote = cx.view.get(peer);
    remote.is_some_and(|remote| remote.linked && remote.greeted)
}
