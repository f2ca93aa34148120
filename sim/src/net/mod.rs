//! The simulated network: who is linked to whom, and when what is sent arrives.
//!
//! It knows machines by their index and nothing of what the bytes mean.

mod bandwidth;
mod latency;
mod loss;

pub(crate) use bandwidth::Pipe;
pub(crate) use latency::Latency;
pub(crate) use loss::{Fate, Loss};

use crate::random::Random;
use core::time::Duration;
use murmurate_protocol::Time;

/// One machine's view of its link to another.
#[derive(Clone, Copy, Debug, Default)]
struct View {
    up: bool,
    /// Raised whenever the link comes up: what an earlier connection carried is not delivered.
    connection: u32,
    /// Which life of the other machine it is with.
    life: u32,
    /// When the last control message towards this machine arrives: they keep their order.
    last_arrival: Time,
}

/// All links and pipes.
#[derive(Debug)]
pub(crate) struct Network {
    machines: usize,
    views: Vec<View>,
    /// Which side of a partition a machine is on.
    sides: Vec<u32>,
    uplinks: Vec<Pipe>,
    downlinks: Vec<Pipe>,
    latency: Latency,
    loss: Loss,
    random: Random,
}

impl Network {
    /// Of machines with one kind of connection, in bytes per second, and no links.
    pub(crate) fn new(
        machines: usize,
        latency: Latency,
        loss: Loss,
        (uplink, downlink): (Option<f64>, Option<f64>),
        random: Random,
    ) -> Self {
        Self {
            machines,
            views: vec![View::default(); machines * machines],
            sides: vec![0; machines],
            uplinks: vec![Pipe::new(uplink); machines],
            downlinks: vec![Pipe::new(downlink); machines],
            latency,
            loss,
            random,
        }
    }

    fn view(&self, of: usize, to: usize) -> &View {
        &self.views[of * self.machines + to]
    }

    fn view_mut(&mut self, of: usize, to: usize) -> &mut View {
        &mut self.views[of * self.machines + to]
    }

    /// Whether `of` believes its link to `to` to be up.
    pub(crate) fn is_up(&self, of: usize, to: usize) -> bool {
        self.view(of, to).up
    }

    /// The connection that `of` believes in, if any: what is sent carries it.
    pub(crate) fn connection(&self, of: usize, to: usize) -> Option<u32> {
        let view = self.view(of, to);
        view.up.then_some(view.connection)
    }

    /// Whether something sent over `connection` still reaches the machine `to`.
    pub(crate) fn delivers(&self, from: usize, to: usize, connection: u32) -> bool {
        let view = self.view(to, from);
        view.up && view.connection == connection && self.reachable(from, to)
    }

    /// A number for a new connection between two machines.
    pub(crate) fn next_connection(&self, a: usize, b: usize) -> u32 {
        self.view(a, b).connection.max(self.view(b, a).connection) + 1
    }

    /// The connection that `of` believes in, if it is with this life of `to`.
    pub(crate) fn connection_with(&self, of: usize, to: usize, life: u32) -> Option<u32> {
        self.connection(of, to)
            .filter(|_| self.view(of, to).life == life)
    }

    /// `of` now believes in this connection to a life of `to`.
    pub(crate) fn bring_up(&mut self, of: usize, (to, life): (usize, u32), connection: u32) {
        let view = self.view_mut(of, to);
        view.up = true;
        view.life = life;
        view.connection = connection;
    }

    /// `of` now believes its link to `to` to be down.
    pub(crate) fn bring_down(&mut self, of: usize, to: usize) {
        self.view_mut(of, to).up = false;
    }

    /// The machines that `of` believes to be linked with.
    pub(crate) fn linked(&self, of: usize) -> impl Iterator<Item = usize> + '_ {
        let row = &self.views[of * self.machines..(of + 1) * self.machines];
        row.iter()
            .enumerate()
            .filter(|(_, view)| view.up)
            .map(|(to, _)| to)
    }

    /// Forgets all that a crashed machine believed and had queued.
    pub(crate) fn forget(&mut self, of: usize, now: Time) {
        for to in 0..self.machines {
            self.bring_down(of, to);
        }
        self.uplinks[of].clear(now);
        self.downlinks[of].clear(now);
    }

    /// Whether no partition lies between two machines.
    pub(crate) fn reachable(&self, a: usize, b: usize) -> bool {
        self.sides[a] == self.sides[b]
    }

    /// The side of a partition that a machine is on.
    pub(crate) fn side(&self, of: usize) -> u32 {
        self.sides[of]
    }

    /// Puts a machine on a side of a partition.
    pub(crate) fn set_side(&mut self, of: usize, side: u32) {
        self.sides[of] = side;
    }

    /// One draw of the latency.
    pub(crate) fn latency(&mut self) -> Duration {
        self.latency.draw(&mut self.random)
    }

    /// When a control message sent now arrives, behind all earlier ones of its direction; `None`
    /// when it gets lost. It passes beside slices, on a stream of its own.
    pub(crate) fn message(
        &mut self,
        now: Time,
        from: usize,
        to: usize,
        bytes: usize,
    ) -> Option<Time> {
        if self.loss.strikes(&mut self.random) || !self.reachable(from, to) {
            return None;
        }
        let on_wire = self.uplinks[from].duration(bytes as u64);
        let arrival = now + on_wire + self.latency();
        let last = &mut self.view_mut(to, from).last_arrival;
        *last = arrival.max(*last);
        Some(*last)
    }

    /// No later message from `from` reaches `to` before `at`.
    pub(crate) fn hold_back(&mut self, from: usize, to: usize, at: Time) {
        let last = &mut self.view_mut(to, from).last_arrival;
        *last = at.max(*last);
    }

    /// One push's fate.
    pub(crate) fn fate(&mut self) -> Fate {
        self.loss.fate(&mut self.random)
    }

    /// The uplink of a machine.
    pub(crate) fn uplink(&mut self, of: usize) -> &mut Pipe {
        &mut self.uplinks[of]
    }

    /// The downlink of a machine.
    pub(crate) fn downlink(&mut self, of: usize) -> &mut Pipe {
        &mut self.downlinks[of]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    fn network(loss: f64) -> Network {
        Network::new(
            3,
            Latency {
                fixed: Duration::from_millis(10),
                jitter: Duration::from_millis(50),
            },
            Loss { probability: loss },
            (None, None),
            Random::new(5, Purpose::Network),
        )
    }

    #[test]
    fn messages_of_one_direction_keep_their_order() {
        let mut network = network(0.0);
        let arrivals: Vec<_> = (0..100)
            .map(|i| {
                network
                    .message(Time::from_nanos(i), 0, 1, 10)
                    .expect("no loss")
            })
            .collect();
        assert!(arrivals.is_sorted());
    }

    #[test]
    fn an_old_connection_delivers_nothing() {
        let mut network = network(0.0);
        let first = network.next_connection(0, 1);
        network.bring_up(0, (1, 0), first);
        network.bring_up(1, (0, 0), first);
        assert!(network.delivers(0, 1, first));
        network.bring_down(1, 0);
        assert!(!network.delivers(0, 1, first));
        let second = network.next_connection(0, 1);
        network.bring_up(1, (0, 0), second);
        assert!(!network.delivers(0, 1, first) && network.delivers(0, 1, second));
    }

    #[test]
    fn nothing_crosses_a_partition() {
        let mut network = network(0.0);
        network.set_side(2, 1);
        assert_eq!(network.message(Time::ZERO, 0, 2, 1), None);
        assert!(network.message(Time::ZERO, 0, 1, 1).is_some());
    }
}
