//! Machines that cannot reach each other for the rest of the run, though both reach others. Their link fails
//! after the detection time. Where the network has relays, they get another one through a third machine.

use crate::due::Due;
use crate::random::{Purpose, Random};
use crate::swarm::Swarm;

impl Swarm<'_> {
    /// Takes the links between these machines, and a share of all others that is drawn from the seed.
    pub(crate) fn lose_links(&mut self, pairs: &[(usize, usize)], share: f64) {
        let machines = self.slots.len();
        let mut random = Random::new(self.scenario.seed, Purpose::Missing);
        let all = (0..machines).flat_map(|a| (a + 1..machines).map(move |b| (a, b)));
        let drawn = all.filter(|_| share > 0.0 && random.chance(share));
        let lost: Vec<(usize, usize)> = drawn.chain(pairs.iter().copied()).collect();
        for (a, b) in lost {
            self.net.lose(a, b);
            self.note_fault("missing-link", a);
            self.notice_dead_link(a, b);
        }
    }

    /// Both ends of a link that may be dead find out after the detection time.
    pub(crate) fn notice_dead_link(&mut self, a: usize, b: usize) {
        let at = self.now + self.scenario.network.detection;
        for (host, other) in [(a, b), (b, a)] {
            if let Some(connection) = self.net.connection(host, other) {
                let (host, other) = (host as u32, other as u32);
                let due = Due::Down {
                    host,
                    other,
                    connection,
                };
                self.queue.push(at, due);
            }
        }
    }
}
