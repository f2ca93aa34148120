//! The simulated network: which machines are linked, and when messages and slices arrive.
//!
//! It knows machines by their index and does not interpret bytes.

mod flows;
mod places;
mod transport;
mod ways;

pub(crate) use flows::{Appointment, Owner};
pub use transport::Transport;
pub(crate) use transport::{Fate, Loss};

use crate::random::Random;
use crate::scenario::NetworkSpec;
use core::time::Duration;
use flows::{Demand, Flows};
use murmurate_protocol::Time;
use places::Places;
use std::collections::BTreeMap;
use ways::{RELAYED_AFTER, Ways};

/// One machine's view of its link to another.
#[derive(Clone, Copy, Debug, Default)]
struct View {
    up: bool,
    /// Increases whenever the link comes up. Data of an earlier connection is not delivered.
    connection: u32,
    life: u32,
    /// Arrival of the last control message from this machine. Control messages keep their order.
    last_arrival: Time,
    /// When this machine last sent a bulk transfer over this connection.
    last_bulk: Option<Time>,
}

/// All links and flows.
#[derive(Debug)]
pub(crate) struct Network {
    /// Sparse, because in a large swarm each machine is linked to a few others.
    views: Vec<BTreeMap<u32, View>>,
    sides: Vec<u32>,
    ways: Ways,
    places: Places,
    flows: Flows,
    transport: Transport,
    loss: Loss,
    packet_loss: f64,
    random: Random,
}

impl Network {
    /// A network with this number of machines and no links.
    pub(crate) fn new(spec: &NetworkSpec, machines: usize, random: Random) -> Self {
        let mut flows = Flows::default();
        Self {
            views: vec![BTreeMap::new(); machines],
            sides: vec![0; machines],
            ways: Ways::new(spec.relays),
            places: Places::new(spec, machines, &mut flows),
            flows,
            transport: spec.transport,
            loss: Loss {
                probability: spec.loss,
            },
            packet_loss: spec.packet_loss,
            random,
        }
    }

    fn view(&self, of: usize, to: usize) -> View {
        self.views[of]
            .get(&(to as u32))
            .copied()
            .unwrap_or_default()
    }

    fn view_mut(&mut self, of: usize, to: usize) -> &mut View {
        self.views[of].entry(to as u32).or_default()
    }

    /// The link to `to` as `of` sees it: set while it is up.
    pub(crate) fn is_up(&self, of: usize, to: usize) -> bool {
        self.view(of, to).up
    }

    /// The current connection from the view of `of`, if any. Sent data carries its number.
    pub(crate) fn connection(&self, of: usize, to: usize) -> Option<u32> {
        let view = self.view(of, to);
        view.up.then_some(view.connection)
    }

    /// Set while data over `connection` still reaches the machine `to`.
    pub(crate) fn delivers(&self, from: usize, to: usize, connection: u32) -> bool {
        let view = self.view(to, from);
        view.up && view.connection == connection && self.reachable(from, to)
    }

    /// A number for a new connection between two machines.
    pub(crate) fn next_connection(&self, a: usize, b: usize) -> u32 {
        self.view(a, b).connection.max(self.view(b, a).connection) + 1
    }

    /// The current connection from the view of `of`, if it is with this life of `to`.
    pub(crate) fn connection_with(&self, of: usize, to: usize, life: u32) -> Option<u32> {
        self.connection(of, to)
            .filter(|_| self.view(of, to).life == life)
    }

    /// Sets the connection of `of` to a life of `to`.
    pub(crate) fn bring_up(&mut self, of: usize, (to, life): (usize, u32), connection: u32) {
        let view = self.view_mut(of, to);
        view.up = true;
        view.life = life;
        view.connection = connection;
        view.last_bulk = None;
    }

    /// Marks the link to `to` as down from the view of `of`.
    pub(crate) fn bring_down(&mut self, of: usize, to: usize) {
        if let Some(view) = self.views[of].get_mut(&(to as u32)) {
            view.up = false;
        }
    }

    /// The machines that are linked from the view of `of`.
    pub(crate) fn linked(&self, of: usize) -> impl Iterator<Item = usize> + '_ {
        let up = self.views[of].iter().filter(|(_, view)| view.up);
        up.map(|(to, _)| *to as usize)
    }

    /// Removes the links of a crashed machine.
    pub(crate) fn forget(&mut self, of: usize) {
        for view in self.views[of].values_mut() {
            view.up = false;
        }
    }

    /// Set while two machines reach each other, perhaps through a third.
    pub(crate) fn reachable(&self, a: usize, b: usize) -> bool {
        let together = self.sides[a] == self.sides[b];
        together
            && (!self.ways.is_missing(a, b)
                || self.ways.via(a, b).is_some_and(|via| self.joins(via, a, b)))
    }

    /// Set while a machine has links of its own to two others.
    fn joins(&self, via: usize, a: usize, b: usize) -> bool {
        [a, b].iter().all(|end| {
            let direct = self.sides[via] == self.sides[*end] && !self.ways.is_missing(via, *end);
            direct && self.is_up(via, *end) && self.is_up(*end, via)
        })
    }

    /// Set if one machine can dial another: where their link is missing, through one with which both are linked.
    pub(crate) fn can_dial(&mut self, a: usize, b: usize) -> bool {
        if self.reachable(a, b) || self.sides[a] != self.sides[b] {
            return self.reachable(a, b);
        }
        let common: Vec<usize> = self
            .linked(a)
            .filter(|via| self.joins(*via, a, b))
            .collect();
        self.ways.choose(a, b, &common)
    }

    /// From now on two machines cannot reach each other.
    pub(crate) fn lose(&mut self, a: usize, b: usize) {
        self.ways.lose(a, b);
    }

    /// The pairs whose links go through a machine.
    pub(crate) fn through(&self, machine: usize) -> Vec<(usize, usize)> {
        self.ways.through(machine)
    }

    /// The latency between two machines without its jitter.
    fn fixed(&self, a: usize, b: usize) -> Duration {
        match self.ways.via(a, b) {
            None => self.places.latency(a, b).fixed,
            Some(via) => self.places.latency(a, via).fixed + self.places.latency(via, b).fixed,
        }
    }

    pub(crate) fn side(&self, of: usize) -> u32 {
        self.sides[of]
    }

    pub(crate) fn set_side(&mut self, of: usize, side: u32) {
        self.sides[of] = side;
    }

    /// Draws the latency between two machines.
    pub(crate) fn latency(&mut self, a: usize, b: usize) -> Duration {
        let Some(via) = self.ways.via(a, b) else {
            return self.places.latency(a, b).draw(&mut self.random);
        };
        let first = self.places.latency(a, via).draw(&mut self.random);
        first + self.places.latency(via, b).draw(&mut self.random)
    }

    /// Set for two machines whose bytes leave a site.
    pub(crate) fn is_far(&self, a: usize, b: usize) -> bool {
        self.places.apart(a, b)
    }

    pub(crate) fn round_trip(&self, a: usize, b: usize) -> Duration {
        2 * self.fixed(a, b)
    }

    /// Draws the time until a dialled machine notices.
    pub(crate) fn dialling(&mut self, a: usize, b: usize) -> Duration {
        let more = 2 * (self.transport.round_trips_to_connect() - 1);
        let tried = if self.ways.is_missing(a, b) {
            RELAYED_AFTER
        } else {
            Duration::ZERO
        };
        tried + self.latency(a, b) + self.fixed(a, b) * more
    }

    /// When a control message sent now arrives: after all earlier ones of its direction, or `None` if it is lost. It
    /// uses a stream of its own beside the slices. A lost packet is sent again after one and a half round trips.
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
        let (up, _) = self.places.links(from);
        let on_wire = Duration::from_secs_f64(bytes as f64 / self.flows.capacity(up));
        let mut arrival = now + on_wire + self.latency(from, to);
        while self.random.chance(self.packet_loss) {
            arrival = arrival + self.fixed(from, to) * 3;
        }
        let last = &mut self.view_mut(from, to).last_arrival;
        *last = arrival.max(*last);
        Some(*last)
    }

    /// Delays later messages from `from` to `to` until `at`.
    pub(crate) fn hold_back(&mut self, from: usize, to: usize, at: Time) {
        let last = &mut self.view_mut(from, to).last_arrival;
        *last = at.max(*last);
    }

    pub(crate) fn fate(&mut self) -> Fate {
        self.loss.fate(&mut self.random)
    }

    /// Starts a transfer from one machine to another. Returns the flow's number and the time that
    /// slow start adds at its end.
    pub(crate) fn start_flow(
        &mut self,
        now: Time,
        owner: Owner,
        (from, to): (usize, usize),
        (bytes, priority): (u64, u8),
    ) -> (u32, Duration) {
        let path = match self.ways.via(from, to) {
            None => self.places.path(from, to),
            Some(via) => self.places.path(from, via).then(&self.places.path(via, to)),
        };
        let round_trip = self.round_trip(from, to);
        let most = self.transport.rate_under_loss(self.packet_loss, round_trip);
        let on_wire = bytes as f64 / (1.0 - self.packet_loss);
        let slowly = self
            .transport
            .starts_slowly(self.view(from, to).last_bulk, now);
        let extra = if slowly {
            let rate = self.flows.narrowest(&path).min(most);
            self.transport.slow_start(on_wire, rate, round_trip)
        } else {
            Duration::ZERO
        };
        self.view_mut(from, to).last_bulk = Some(now);
        let flow = self.flows.start(
            now,
            owner,
            path,
            Demand {
                bytes: on_wire,
                most,
                priority,
            },
        );
        (flow, extra)
    }

    pub(crate) fn end_flow(&mut self, now: Time, flow: u32) {
        self.flows.end(now, flow);
    }

    /// Handles an appointment. Returns the owner if the flow is complete.
    pub(crate) fn keep_appointment(&mut self, now: Time, flow: u32, serial: u32) -> Option<Owner> {
        self.flows.keep(now, flow, serial)
    }

    /// Before time passes: flows that started at this instant change the rates of others.
    pub(crate) fn settle(&mut self, now: Time) {
        self.flows.settle(now);
    }

    /// Set while [`Network::settle`] has nothing to do.
    pub(crate) const fn is_settled(&self) -> bool {
        self.flows.is_settled()
    }

    /// The appointments made since the last call.
    pub(crate) fn appointments(&mut self) -> std::vec::Drain<'_, Appointment> {
        self.flows.appointments()
    }

    /// Changes the capacity of a machine's links in bytes per second, out and in.
    pub(crate) fn set_capacity(&mut self, now: Time, of: usize, rates: (Option<f64>, Option<f64>)) {
        let (up, down) = self.places.links(of);
        for (link, rate) in [(up, rates.0), (down, rates.1)] {
            if let Some(rate) = rate {
                self.flows.set_capacity(now, link, rate);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;
    use crate::scenario::Scenario;

    fn network(more: &str) -> Network {
        let text = format!(
            "seed = 1\npeers = 3\nrounds = 1\n[task]\nkind = \"quadratic\"\ndim = 2\n[network]\n\
             latency_ms = 10.0\n{more}"
        );
        let scenario = Scenario::from_toml(&text, "s.toml", "s").unwrap();
        Network::new(&scenario.network, 3, Random::new(5, Purpose::Network))
    }

    #[test]
    fn messages_of_one_direction_keep_their_order() {
        let mut network = network("jitter_ms = 50.0\npacket_loss = 0.1\n");
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
        let mut network = network("");
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
        let mut network = network("");
        network.set_side(2, 1);
        assert_eq!(network.message(Time::ZERO, 0, 2, 1), None);
        assert!(network.message(Time::ZERO, 0, 1, 1).is_some());
    }

    #[test]
    fn tcp_pays_for_its_start_and_connects_later() {
        let mut ideal = network("uplink_mbit = 80.0\n");
        let mut tcp = network("uplink_mbit = 80.0\ntransport = \"tcp\"\n");
        let start = |net: &mut Network| {
            net.start_flow(Time::ZERO, Owner::Push(0), (0, 1), (10_000_000, 0))
                .1
        };
        assert!(start(&mut ideal).is_zero());
        assert!(start(&mut tcp) > Duration::from_millis(20));
        assert!(start(&mut tcp).is_zero(), "the window is open");
        assert_eq!(ideal.dialling(0, 1), Duration::from_millis(10));
        assert_eq!(tcp.dialling(0, 1), Duration::from_millis(30));
    }

    #[test]
    fn lost_packets_slow_a_flow_down() {
        let mut network = network("uplink_mbit = 80.0\ntransport = \"quic\"\npacket_loss = 0.01\n");
        network.start_flow(Time::ZERO, Owner::Push(0), (0, 1), (1_000_000, 0));
        let last = network.appointments().next_back().expect("it ends");
        // 1.22 * 1460 / (0.02 * 0.1) = 890.6 kB/s, a hundredth more bytes.
        let seconds = last.at.as_secs_f64();
        assert!((seconds - 1.0 / (0.8906 * 0.99)).abs() < 1e-3, "{seconds}");
    }
}
