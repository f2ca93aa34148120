//! Machines are cut off from all others for a while. Links across fall after the detection time,
//! unless the partition heals before.

use crate::due::Due;
use crate::swarm::Swarm;
use core::time::Duration;

impl Swarm<'_> {
    /// Cuts machines off.
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

    /// Ends a partition. Machines dial one of the other side, as their users would have them do.
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
