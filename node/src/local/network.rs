//! The emulated network of a local swarm: one link and one router per daemon, and their counters.

use super::LocalError;
use super::options::LocalOptions;
use murmurate_net::emulate::{FlowCounters, LinkSpec, NatKind, Relay, Seat, Tally};
use serde::Serialize;

/// UDP and TCP port of daemon 0. Each further daemon has the next port.
const FIRST_PORT: u16 = 4_001;

/// Port of daemon 0 for bulk connections over TCP. Each further daemon has the next port.
const FIRST_BULK_PORT: u16 = 14_001;

/// Index of the daemon without a router. All others can reach it, and it relays for them.
const MEETING_PLACE: usize = 0;

/// The addresses of a daemon on the emulated network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Addresses to listen on. Other daemons do not learn them.
    pub listen: Vec<String>,
    /// Addresses to announce; empty behind a router that refuses inbound connections.
    pub announce: Vec<String>,
    /// Set where it relays for daemons behind routers.
    pub relay: bool,
    /// Port for bulk connections over TCP, if others can reach one.
    pub bulk_port: Option<u16>,
    /// The largest UDP payload that its link carries. The system knows only that of loopback.
    pub payload_max: u16,
}

/// The emulated network of a running swarm.
#[derive(Debug)]
pub struct LocalNetwork {
    relay: Relay,
    link: LinkSpec,
    nats: Vec<NatKind>,
    places: Vec<Place>,
}

impl LocalNetwork {
    /// Starts the network if `--link`, `--nat` or `--cut` was given.
    ///
    /// # Errors
    /// If addresses, ports or threads are not available.
    pub fn start(options: &LocalOptions) -> Result<Option<Self>, LocalError> {
        if options.emulated.link.is_none()
            && options.emulated.nat.is_none()
            && options.cuts.is_empty()
        {
            return Ok(None);
        }
        let mut network = Self {
            relay: Relay::start(options.seed.unwrap_or(1))?,
            link: options.emulated.link.unwrap_or_default(),
            nats: Vec::new(),
            places: Vec::new(),
        };
        let nat = options.emulated.nat.unwrap_or_default();
        let ports = (FIRST_PORT..).zip(FIRST_BULK_PORT..).take(options.nodes);
        for (index, ports) in ports.enumerate() {
            let nat = match index {
                MEETING_PLACE => NatKind::None,
                _ => nat,
            };
            let mut place = network.seat(nat, ports)?;
            place.relay = index == MEETING_PLACE && options.emulated.nat.is_some();
            network.places.push(place);
            network.nats.push(nat);
        }
        for cut in &options.cuts {
            let [a, b] = cut.between.map(|index| network.relay.seats().get(index));
            // The flags are checked later, so an index may be that of no daemon.
            if let (Some(a), Some(b)) = (a, b) {
                let lose = if cut.one_way { Relay::mute } else { Relay::cut };
                lose(&network.relay, *a, *b, cut.during.clone());
            }
        }
        Ok(Some(network))
    }

    fn seat(&mut self, nat: NatKind, (port, bulk): (u16, u16)) -> Result<Place, LocalError> {
        let seat = self.relay.add(nat, self.link)?;
        let addresses = |ip| {
            vec![
                format!("/ip4/{ip}/udp/{port}/quic-v1"),
                format!("/ip4/{ip}/tcp/{port}"),
            ]
        };
        let mut announce = Vec::new();
        let open = nat == NatKind::None;
        if open {
            self.relay.publish_udp(seat, port)?;
            self.relay.publish_tcp(seat, port)?;
            self.relay.publish_tcp(seat, bulk)?;
            announce = addresses(seat.public);
        } else {
            self.relay.dials_from(seat, port);
        }
        Ok(Place {
            listen: addresses(seat.inner),
            announce,
            relay: false,
            bulk_port: open.then_some(bulk),
            payload_max: self.link.payload_max(),
        })
    }

    /// The addresses of all daemons, by index.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Traffic over the link of daemon `index` so far.
    pub fn link_of(&self, index: usize) -> Option<LinkEntry> {
        let seat: Seat = *self.relay.seats().get(index)?;
        let counters = self.relay.counters(seat);
        Some(LinkEntry {
            link: self.link.to_string(),
            nat: self.nats.get(index)?.to_string(),
            address: seat.public.to_string(),
            up: FlowEntry::from(counters.up),
            down: FlowEntry::from(counters.down),
        })
    }

    /// Traffic that the links' counters do not contain.
    pub(super) fn leaks(&self) -> LeakEntry {
        LeakEntry {
            strangers: self.relay.strangers().into(),
            unsent: self.relay.unsent().into(),
            kernel_dropped_packets: self.relay.kernel_drops().relay,
        }
    }
}

/// A daemon's emulated link with its traffic.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LinkEntry {
    /// The link in the form of `--link`.
    pub link: String,
    /// Kind of the router between the daemon and the network.
    pub nat: String,
    /// The daemon's address as seen by others.
    pub address: String,
    /// Traffic from the daemon.
    pub up: FlowEntry,
    /// Traffic to the daemon.
    pub down: FlowEntry,
}

/// Traffic in one direction. `offered` is the sum of the other counts and of the traffic in transit at
/// the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct FlowEntry {
    /// Traffic that entered the link: from the daemon's sockets, or from the links of others.
    pub offered: TallyEntry,
    /// Traffic that arrived.
    pub delivered: TallyEntry,
    /// Traffic that was dropped because the link's queue was full.
    pub dropped_queue: TallyEntry,
    /// Traffic that the link lost at random.
    pub dropped_loss: TallyEntry,
    /// Traffic whose packets were larger than the link carries.
    pub dropped_size: TallyEntry,
    /// Traffic that the router refused.
    pub dropped_nat: TallyEntry,
}

/// A count and its bytes, without headers of IP, UDP and TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TallyEntry {
    /// Datagrams, or chunks of a TCP stream.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Traffic that bypassed the emulated links. If all counts are zero, the links' figures are
/// complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LeakEntry {
    /// Traffic from or to an address that no daemon has.
    pub strangers: TallyEntry,
    /// Traffic that the system refused to deliver to daemons.
    pub unsent: TallyEntry,
    /// Packets that the kernel dropped before the emulator read them, because the machine was too
    /// busy.
    pub kernel_dropped_packets: u64,
}

impl From<Tally> for TallyEntry {
    fn from(tally: Tally) -> Self {
        Self {
            packets: tally.packets,
            bytes: tally.bytes,
        }
    }
}

impl From<FlowCounters> for FlowEntry {
    fn from(flow: FlowCounters) -> Self {
        Self {
            offered: flow.offered.into(),
            delivered: flow.delivered.into(),
            dropped_queue: flow.dropped_queue.into(),
            dropped_loss: flow.dropped_loss.into(),
            dropped_size: flow.dropped_size.into(),
            dropped_nat: flow.dropped_nat.into(),
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::local::options::Emulated;

    fn options(nat: Option<NatKind>) -> LocalOptions {
        LocalOptions {
            nodes: 3,
            emulated: Emulated {
                link: Some("50mbit/100ms/1%".parse().unwrap()),
                nat,
            },
            ..LocalOptions::default()
        }
    }

    #[tokio::test]
    async fn without_flags_there_is_no_network() {
        let plain = LocalOptions {
            nodes: 3,
            ..LocalOptions::default()
        };
        assert!(LocalNetwork::start(&plain).unwrap().is_none());
    }

    #[tokio::test]
    async fn every_daemon_announces_what_the_relay_has_and_listens_elsewhere() {
        let network = LocalNetwork::start(&options(None)).unwrap().unwrap();
        for (index, place) in network.places().iter().enumerate() {
            let link = network.link_of(index).unwrap();
            let expected = format!("/ip4/{}/udp/{}/quic-v1", link.address, 4_001 + index);
            assert_eq!(place.announce[0], expected);
            assert!(
                place
                    .listen
                    .iter()
                    .all(|a| !a.contains(&format!("/{}/", link.address)))
            );
            assert_eq!(
                (link.link.as_str(), link.nat.as_str()),
                ("50mbit/100ms/1%", "none")
            );
        }
        assert!(network.link_of(3).is_none());
        assert_eq!(network.leaks(), LeakEntry::default());
    }

    #[tokio::test]
    async fn behind_routers_only_the_meeting_place_announces_anything() {
        let symmetric = options(Some(NatKind::Symmetric));
        let network = LocalNetwork::start(&symmetric).unwrap().unwrap();
        let announced: Vec<_> = network.places().iter().map(|p| p.announce.len()).collect();
        assert_eq!(announced, [2, 0, 0]);
        let relays: Vec<_> = network.places().iter().map(|p| p.relay).collect();
        assert_eq!(relays, [true, false, false]);
        assert_eq!(network.link_of(2).unwrap().nat, "symmetric");
    }
}
