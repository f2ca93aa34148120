//! Peers tell each other the rates of their links, where the topology chooses partners by them.

use crate::peer::Peer;
use crate::wire::{MembershipMessage, Rates};
use crate::{PeerError, PeerId};

impl Peer {
    /// A round begins: tells the others what this peer has measured, if it opens an epoch.
    pub(super) fn tell_rates(&mut self) {
        if !self.cx.view.links.is_used() {
            return;
        }
        let live: Vec<PeerId> = self.cx.view.live().map(|(peer, _)| peer).collect();
        let (now, round, me) = (self.cx.now, self.cx.round, self.cx.me());
        if let Some(told) = self.cx.view.links.enter(now, round, me, &live) {
            for peer in live {
                self.cx.send(peer, MembershipMessage::Rates(told.clone()));
            }
        }
    }

    /// Another peer tells what it has measured.
    pub(super) fn rates(&mut self, from: PeerId, told: &Rates) -> Result<(), PeerError> {
        if !self.cx.view.links.is_used() {
            return Err(PeerError::Unexpected {
                what: "rates of links in a run whose topology needs none".to_owned(),
            });
        }
        self.cx.view.links.hear(from, told);
        Ok(())
    }
}
