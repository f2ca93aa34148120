//! The part of the network's task that begins and ends streams of vitals.

use super::streams::{read, write};
use crate::net::swarm::Network;
use libp2p::Stream;
use murmurate_protocol::PeerId;

impl Network {
    /// Begins to send vitals to a peer whose link is up.
    pub(in crate::net) fn send_vitals(&mut self, peer: PeerId) {
        let Some(link) = self.links.get_mut(&peer) else {
            return;
        };
        let queue = self.vitals.open(peer);
        let task = write(
            link.end.clone(),
            queue,
            self.vitals.clone(),
            link.vitals.moved(),
        );
        link.vitals.writes(self.tasks.spawn(task));
    }

    /// Reads vitals from a stream that a peer opened.
    pub(in crate::net) fn read_vitals(&mut self, peer: PeerId, stream: Stream) {
        let Some(link) = self.links.get_mut(&peer) else {
            return;
        };
        let task = read(peer, stream, self.vitals.clone(), self.events.clone());
        link.vitals.reads(self.tasks.spawn(task));
    }
}
