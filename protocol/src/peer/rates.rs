//! Peers tell each other the rates of their links, where the topology chooses partners by them or the schedule of
//! an all-reduce goes by them.

use crate::peer::Peer;
use crate::wire::{MembershipMessage, Rates};
use crate::{LinkRates, PeerError, PeerId};

impl Peer {
    /// A round begins: tells the others what this peer has measured, if it opens an epoch.
    pub(super) fn tell_rates(&mut self) {
        let view = &self.cx.view;
        if !view.links.is_used() && !view.measured.is_used() {
            return;
        }
        let live: Vec<PeerId> = view.live().map(|(peer, _)| peer).collect();
        let (now, round, me) = (self.cx.now, self.cx.round, self.cx.me());
        let view = &mut self.cx.view;
        let told = match view.links.is_used() {
            true => view.links.enter(now, round, me, &live),
            false => view.measured.enter(now, round, me, &live),
        };
        if let Some(told) = told {
            for peer in live {
                self.cx.send(peer, MembershipMessage::Rates(told.clone()));
            }
        }
    }

    /// Another peer tells what it has measured.
    pub(super) fn rates(&mut self, from: PeerId, told: &Rates) -> Result<(), PeerError> {
        let view = &mut self.cx.view;
        if view.measured.is_used() {
            view.measured.hear(from, told);
            return Ok(());
        }
        let classes = told.rates.iter().map(|(_, class)| *class);
        let known = classes
            .max()
            .is_none_or(|class| class <= LinkRates::CLASS_MAX);
        if !view.links.is_used() || !known {
            return Err(PeerError::Unexpected {
                what: "rates of links in a run that needs none, or none of its classes".to_owned(),
            });
        }
        view.links.hear(from, told);
        Ok(())
    }
}
