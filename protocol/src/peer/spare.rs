//! Links that a peer of a grid can spare. Founding a run, and newcomers on their way in, leave links
//! between peers that are neither in one row nor in one column.

use crate::core::Output;
use crate::limits::{STRANGER_LINKS, STRANGER_LINKS_MAX};
use crate::peer::Peer;
use crate::wire::{MembershipMessage, Reason, canonical};
use crate::{Digest, PeerId};

/// Orders a peer's links with strangers, alike at both ends, so that both keep the same ones.
fn rank(one: PeerId, other: PeerId) -> Digest {
    Digest::of(&canonical(&(one.min(other), one.max(other))))
}

impl Peer {
    /// Closes links with members of the roll that are no mates, beyond [`STRANGER_LINKS_MAX`].
    pub(super) fn close_spare_links(&mut self) {
        if !self.sits() || self.founding.is_some() || !self.catch_up.idle() {
            return;
        }
        let Some(roll) = &self.cx.rolls.roll else {
            return;
        };
        let (me, mates) = (self.cx.me(), &self.cx.rolls.mates);
        let linked = self.cx.view.greeted();
        // One that takes over a state, or has no place yet, may be here for help.
        let strangers = linked.filter(|(peer, remote)| {
            remote.ready && roll.place_of(*peer).is_some() && !mates.contains(peer)
        });
        let mut strangers: Vec<PeerId> = strangers.map(|(peer, _)| peer).collect();
        if strangers.len() <= STRANGER_LINKS_MAX {
            return;
        }
        strangers.sort_by_cached_key(|peer| rank(me, *peer));
        let reason = Reason::Spare;
        for peer in strangers.split_off(STRANGER_LINKS_MAX) {
            self.cx.send(peer, MembershipMessage::Goodbye(reason));
            self.cx.put(Output::Disconnect { peer, reason });
            self.spared(peer);
        }
    }

    /// This link was one too many for one of its ends.
    pub(super) fn spared(&mut self, peer: PeerId) {
        if let Some(remote) = self.cx.view.get_mut(peer) {
            remote.contact.spared = true;
            remote.linked = false;
        }
        self.peer_gone(peer);
    }

    /// Dials a few peers that are no mates, so that news reach the whole swarm.
    pub(super) fn dial_strangers(&mut self) {
        let mates = self.cx.rolls.mates.clone();
        let linked = self.cx.view.iter().filter(|(_, remote)| remote.linked);
        let strangers = linked.filter(|(peer, _)| !mates.contains(peer)).count();
        let room = STRANGER_LINKS.saturating_sub(strangers);
        if room == 0 {
            return;
        }
        let (me, now) = (self.cx.me(), self.cx.now);
        let spared = |peer: &PeerId| {
            let remote = self.cx.view.get(*peer);
            remote.is_some_and(|remote| remote.contact.spared)
        };
        let mut due = self.cx.view.due(now);
        due.retain(|peer| !spared(peer));
        due.sort_by_cached_key(|peer| rank(me, *peer));
        for peer in due.into_iter().take(room) {
            if let Some(record) = self.cx.view.dial(peer, now) {
                self.cx.put(Output::Dial(record));
            }
        }
    }
}
