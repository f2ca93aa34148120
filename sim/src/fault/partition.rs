//! Machines cannot reach the others for a while. Links across the partition fail after the
//! detection time, unless the partition ends before.

use crate::due::Due;
use crate::swarm::Swarm;
use core::time::Duration;

impl Swarm<'_> {
    /// Starts a partition.
    pub(crate) fn cut_off(&mut self, peers: &[usize], lasts: Duration) {
        self.sides += 1;
        for peer in peers {
            self.net.set_side(*peer, self.sides);
            self.note_fault("partition", *peer);
        }
        for peer in peers {
            let across: Vec<usize> = self
                .net
                .linked(*peer)
                .filter(|other| !self.net.reachable(*peer, *other))
                .collect();
            for other in across {
                for (of, to) in [(*peer, other), (other, *peer)] {
                    if let Some(connection) = self.net.connection(of, to) {
                        let due = Due::Down {
                            host: of as u32,
                            other: to as u32,
                            connection,
                        };
                        self.queue
                            .push(self.now + self.scenario.network.detection, due);
                    }
                }
            }
        }
        self.queue.push(
            self.now + lasts,
            Due::Heal {
                peers: peers.to_vec(),
                side: self.sides,
            },
        );
    }

    /// Ends a partition. Each machine dials one of the other side, as a user would make it do.
    pub(crate) fn heal(&mut self, peers: &[usize], side: u32) {
        for peer in peers {
            if self.net.side(*peer) == side {
                self.net.set_side(*peer, 0);
                self.note_fault("heal", *peer);
            }
        }
        for peer in peers {
            self.dial_some(*peer);
        }
    }
}
