//! The emulated network of a local swarm: one link and router a daemon, and what its counters say at the end.

use super::LocalError;
use super::options::LocalOptions;
use murmurate_net::emulate::{FlowCounters, LinkSpec, NatKind, Relay, Seat, Tally};
use serde::Serialize;

/// The UDP and TCP port of daemon 0; each further one has the next.
const FIRST_PORT: u16 = 4_001;

/// The daemon without a router, which all others can reach. It relays for them.
const MEETING_PLACE: usize = 0;

/// The addresses of a daemon on the emulated network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The addresses it listens on. Other daemons are not told them.
    pub listen: Vec<String>,
    /// The addresses it announces; none behind a router that refuses inbound connections.
    pub announce: Vec<String>,
    /// Whether it relays for daemons behind routers.
    pub relay: bool,
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
    /// Starts the network if `--link` or `--nat` was given.
    ///
    /// # Errors
    /// When there are no addresses, ports or threads for it.
    pub fn start(options: &LocalOptions) -> Result<Option<Self>, LocalError> {
        if options.link.is_none() && options.nat.is_none() {
            return Ok(None);
        }
        let mut network = Self {
            relay: Relay::start(options.seed.unwrap_or(1))?,
            link: options.link.unwrap_or_default(),
            nats: Vec::new(),
            places: Vec::new(),
        };
        let nat = options.nat.unwrap_or_default();
        for (index, port) in (FIRST_PORT..).take(options.nodes).enumerate() {
            let nat = match index {
                MEETING_PLACE => NatKind::None,
                _ => nat,
            };
            let mut place = network.seat(nat, port)?;
            place.relay = index == MEETING_PLACE && options.nat.is_some();
            network.places.push(place);
            network.nats.push(nat);
        }
        Ok(Some(network))
    }

    fn seat(&mut self, nat: NatKind, port: u16) -> Result<Place, LocalError> {
        let seat = self.relay.add(nat, self.link)?;
        let addresses = |ip| {
            vec![
                format!("/ip4/{ip}/udp/{port}/quic-v1"),
                format!("/ip4/{ip}/tcp/{port}"),
            ]
        };
        let mut announce = Vec::new();
        if nat == NatKind::None {
            self.relay.publish_udp(seat, port)?;
            self.relay.publish_tcp(seat, port)?;
            announce = addresses(seat.public);
        } else {
            self.relay.dials_from(seat, port);
        }
        Ok(Place {
            listen: addresses(seat.inner),
            announce,
            relay: false,
        })
    }

    /// The addresses of each daemon.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// What passed over the link of daemon `index` so far.
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

    /// What no daemon's link accounts for.
    pub(super) fn leaks(&self) -> LeakEntry {
        LeakEntry {
            strangers: self.relay.strangers().into(),
            unsent: self.relay.unsent().into(),
            kernel_dropped_packets: self.relay.kernel_drops().relay,
        }
    }
}

/// A daemon's emulated link and what passed over it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LinkEntry {
    /// The link as `--link` says it.
    pub link: String,
    /// The router before the daemon.
    pub nat: String,
    /// The address that others see.
    pub address: String,
    /// From the daemon.
    pub up: FlowEntry,
    /// To the daemon.
    pub down: FlowEntry,
}

/// One direction: `offered` is the sum of the others and of what was still under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct FlowEntry {
    /// What the link was given: what the daemon's sockets sent, or what others' links delivered.
    pub offered: TallyEntry,
    /// What came out.
    pub delivered: TallyEntry,
    /// What found its queue full.
    pub dropped_queue: TallyEntry,
    /// What it lost.
    pub dropped_loss: TallyEntry,
    /// What the router refused.
    pub dropped_nat: TallyEntry,
}

/// A count and its bytes, as the sockets count them: without headers of IP, UDP and TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TallyEntry {
    /// Datagrams; of TCP, chunks.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// What went past the emulated links; all zero when every figure is what it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LeakEntry {
    /// From or to an address that no daemon has.
    pub strangers: TallyEntry,
    /// What the system refused to hand to daemons.
    pub unsent: TallyEntry,
    /// What the kernel dropped before the relay had read it, because the machine was too busy.
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
            dropped_nat: flow.dropped_nat.into(),
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    fn options(nat: Option<NatKind>) -> LocalOptions {
        LocalOptions {
            nodes: 3,
            link: Some("50mbit/100ms/1%".parse().unwrap()),
            nat,
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
