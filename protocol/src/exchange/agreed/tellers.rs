//! Peers that say that a round continues without this one. A single one may lie: as many must say it
//! as leave one that does not.

use super::electorate::electorate;
use crate::core::context::Context;
use crate::limits::GROUP_MEMBERS_MAX;
use crate::{PeerId, Round};
use std::collections::BTreeMap;

/// Who said so in the round that this peer is in, and whether its state differs too.
#[derive(Debug, Default)]
pub(super) struct Tellers {
    round: Round,
    said: BTreeMap<PeerId, bool>,
}

impl Tellers {
    /// Counts a linked peer's word. Returns whether the state differs once enough say that the round
    /// continues without this peer. What fewer say is decided by what this peer hears from all: by
    /// their anchors, or at the deadline by the rounds that they have ended.
    pub(super) fn believed(&mut self, cx: &Context, teller: PeerId, resync: bool) -> Option<bool> {
        let liars = cx.plan.liars_of(electorate(cx, 0).min(GROUP_MEMBERS_MAX));
        if self.round != cx.round {
            self.round = cx.round;
            self.said.clear();
        }
        self.said.insert(teller, resync);
        let differs = self.said.values().filter(|resync| **resync).count();
        (self.said.len() > liars).then_some(differs > liars)
    }
}
