//! One round of a cell: its members agree on the mean of every fragment, as those of any group do.
//! Members are known when it begins, and each has trained.

use super::fragment::FragmentRound;
use super::fragments::{Fragments, window};
use super::group::Group;
use super::member::Member;
use super::message::Scoped;
use crate::core::context::Context;
use crate::exchange::{Arrived, forbid};
use crate::{Checked, Event, FragmentId, GroupTag, Members, PeerError, PeerId};

/// Every peer's parameters count the same, as in gossip.
const WEIGHT: f64 = 1.0;

/// The fragments of one round in one cell. A window of them is open at a time.
#[derive(Debug)]
pub(crate) struct CellRound {
    group: Group,
    pub(crate) fragments: Fragments,
}

impl CellRound {
    /// Begins with these members, in `PeerId` order; `None` for a peer that is not one of them.
    pub(crate) fn new(cx: &mut Context, members: &[PeerId]) -> Option<Self> {
        let all = members.iter().map(|peer| Member::new(*peer, WEIGHT));
        let group = Group::new(&cx.plan, cx.round, all.collect(), cx.me())?;
        let (round, members) = (cx.round, members.to_vec());
        cx.emit(Event::Group { round, members });
        // A link may have ended between the word of a member and the cell.
        let gone = group.others().filter(|(_, peer)| !cx.view.is_here(*peer));
        let fragments = Fragments {
            lost: gone.map(|(index, _)| index).collect(),
            ..Fragments::default()
        };
        Some(Self { group, fragments })
    }

    /// Keeps it apart from other groups of the round.
    pub(crate) const fn tag(&self) -> GroupTag {
        self.group.tag
    }

    pub(crate) fn members(&self) -> Vec<PeerId> {
        let members = self.group.members.iter();
        members.map(|member| member.peer).collect()
    }

    pub(crate) fn has(&self, peer: PeerId) -> bool {
        self.group.index(peer).is_some()
    }

    /// Opens the next fragment, if the window has room for one.
    pub(crate) fn open(&mut self, cx: &mut Context) -> Option<FragmentId> {
        if self.fragments.open().count() >= window(&cx.plan) {
            return None;
        }
        let opened = self.fragments.all.len();
        let next = cx.plan.fragments_of(cx.round).nth(opened)?;
        let group = self.group.clone();
        let mut fragment = FragmentRound::new(cx, next, group, None, self.fragments.lost);
        fragment.advance(cx);
        self.fragments.insert(fragment);
        Some(next)
    }

    pub(crate) fn has_opened(&self, fragment: FragmentId) -> bool {
        let mut open = self.fragments.all.iter();
        open.any(|open| open.scope.fragment == fragment)
    }

    /// After every signal: losses are shared, and a fragment is void whose bytes are not found.
    pub(crate) fn settle(&mut self, cx: &mut Context) {
        self.fragments.share_losses(cx);
        let missed = |f: &&mut FragmentRound| f.missed.is_some() && f.ending.is_none();
        for fragment in self.fragments.all.iter_mut().filter(missed) {
            // A cell has no state to take over: its members go on with their own parameters.
            fragment.void(cx);
        }
    }

    pub(crate) fn is_over(&self, cx: &Context) -> bool {
        let all = cx.plan.fragments_of(cx.round).count();
        self.fragments.all.len() == all && self.fragments.open().next().is_none()
    }

    /// A message of a member about an open fragment.
    ///
    /// # Errors
    /// When its sender broke a rule.
    pub(crate) fn message(&mut self, cx: &mut Context, from: PeerId, message: &Scoped) -> Checked {
        // Peers may be dealt into another cell by another view: no rule is broken by that.
        if message.group != self.group.tag {
            return Ok(());
        }
        forbid(
            !self.has(from),
            "a message of a cell from a peer outside it",
        )?;
        match self.fragments.get(message.fragment) {
            Some(fragment) => fragment.hear(cx, from, &message.body),
            None => Ok(()),
        }
    }

    /// Takes a slice in; false if it needs none like it.
    ///
    /// # Errors
    /// When its sender broke a rule.
    pub(crate) fn arrived(
        &mut self,
        cx: &mut Context,
        arrived: Arrived,
    ) -> Result<bool, PeerError> {
        let mine = arrived.meta.tag.group() == Some(self.group.tag);
        let fragment = self.fragments.get(arrived.slice.fragment);
        let Some(fragment) = fragment.filter(|_| mine) else {
            return Ok(false);
        };
        if fragment.over() {
            return Ok(fragment.holds(&arrived.slice));
        }
        fragment.arrived(cx, arrived)?;
        Ok(true)
    }

    pub(crate) fn gone(&mut self, cx: &mut Context, peer: PeerId) {
        if let Some(index) = self.group.index(peer) {
            self.fragments.lost |= Members::one(index);
            self.fragments.gone(cx, peer);
        }
    }
}
