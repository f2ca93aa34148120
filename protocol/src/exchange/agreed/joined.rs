//! Who has joined which group. Members that sign vote only once a quorum of the group has joined it: a
//! vote binds them to the group, and a group that lacks a quorum decides nothing.

use super::group::Group;
use crate::{GroupTag, PeerId, Round};
use std::collections::BTreeMap;

/// The last group that each linked peer has said, or shown, that it is in.
#[derive(Debug, Default)]
pub(super) struct Joined(BTreeMap<PeerId, (Round, GroupTag)>);

impl Joined {
    /// A peer is in this group.
    pub(super) fn note(&mut self, peer: PeerId, round: Round, group: GroupTag) {
        self.0.insert(peer, (round, group));
    }

    /// A peer is gone.
    pub(super) fn forget(&mut self, peer: PeerId) {
        self.0.remove(&peer);
    }

    /// A peer is not in this group. It may be in another one.
    pub(super) fn left(&mut self, peer: PeerId, round: Round, group: GroupTag) {
        if self.0.get(&peer) == Some(&(round, group)) {
            self.forget(peer);
        }
    }

    /// Whether enough have joined this group for a decision.
    pub(super) fn enough(&self, group: &Group, round: Round) -> bool {
        let here = |peer: &PeerId| self.0.get(peer) == Some(&(round, group.tag));
        let others = group.others().filter(|(_, peer)| here(peer));
        group.decides(1 + others.count())
    }
}
