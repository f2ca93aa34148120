//! The state of the link to each peer: the path of bulk streams, and measurements of its QUIC
//! connections.

use super::paths::PathView;
use crate::net::from_libp2p;
use crate::net::paths::Paths;
use crate::traffic::{Counters, LinkMeters, Reading, Traffic};
use murmurate_net::mux::Volume;
use murmurate_net::quic::{self, Kind, LinkStats, Traffic as Gone};
use murmurate_net::tcp::Endpoint;
use murmurate_protocol::wire::WireVersion;
use murmurate_protocol::{PeerId, SortedMap};
use std::time::Duration;

/// One linked peer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkView {
    /// The transport of bulk streams.
    pub bulk: PathView,
    /// Bytes of frames, slices and states.
    pub traffic: Traffic,
    /// Round-trip time of the QUIC connection that sent most, otherwise of the last ping.
    pub rtt: Option<Duration>,
    /// Bytes per second of acknowledged pushes, smoothed.
    pub push_rate: Option<u64>,
    /// Time that pushes waited for their turn, smoothed.
    pub queueing: Option<Duration>,
    /// Measurements of its QUIC connections; `None` over TCP and relays.
    pub quic: Option<QuicView>,
    /// Bytes over TLS and TCP since the peer was linked.
    pub tls: Volume,
    /// The version of the wire that is used with it.
    pub wire: Option<WireVersion>,
}

/// Measurements of a peer's QUIC connections. Estimates are those of the open connections; bytes
/// include connections that have ended since the peer was connected.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QuicView {
    /// Smallest round-trip time.
    pub min_rtt: Duration,
    /// Bytes per second that the path carries, if the congestion control estimates it (`bbr3`).
    pub delivery_rate: Option<f64>,
    /// Congestion window in bytes of the connection that sent most.
    pub congestion_window: u64,
    /// Bytes of UDP payload sent.
    pub sent: u64,
    /// Bytes of UDP payload received.
    pub received: u64,
    /// Bytes that were lost and sent again.
    pub lost: u64,
}

impl QuicView {
    /// Lost bytes divided by sent bytes.
    pub fn loss(&self) -> f64 {
        self.lost as f64 / (self.sent as f64).max(1.0)
    }
}

/// The sources of the figures.
#[derive(Clone)]
pub(super) struct Views {
    pub(super) quic: quic::Endpoint,
    pub(super) paths: Paths,
    pub(super) meters: std::sync::Arc<LinkMeters>,
}

impl Views {
    pub(super) fn read(&self, counters: &Counters) -> SortedMap<PeerId, LinkView> {
        let traffic = counters.snapshot().peers;
        let past = self.quic.past();
        let past: SortedMap<PeerId, Gone> = past
            .iter()
            .filter_map(|(peer, gone)| Some((from_libp2p(peer)?, *gone)))
            .collect();
        let volumes = self.paths.tcp().map(Endpoint::volumes).unwrap_or_default();
        let tls: SortedMap<PeerId, Volume> = volumes
            .iter()
            .filter_map(|(peer, volume)| Some((from_libp2p(peer)?, *volume)))
            .collect();
        let mut quic: SortedMap<PeerId, Vec<LinkStats>> = SortedMap::new();
        for link in self.quic.links() {
            if let Some(peer) = from_libp2p(&link.peer) {
                quic.entry(peer).or_default().push(link);
            }
        }
        let all = self.paths.views().into_iter().map(|(peer, bulk)| {
            let links = quic.get(&peer).map_or(&[][..], Vec::as_slice);
            let traffic = traffic.get(&peer).copied().unwrap_or_default();
            let past = past.get(&peer).copied().unwrap_or_default();
            let meter = self.meters.read(peer);
            let tls = tls.get(&peer).copied().unwrap_or_default();
            let view = view(bulk, traffic, (links, past), meter);
            (peer, LinkView { tls, ..view })
        });
        all.collect()
    }
}

fn view(
    bulk: PathView,
    traffic: Traffic,
    (links, past): (&[LinkStats], Gone),
    meter: Reading,
) -> LinkView {
    // An idle connection's estimates are old or initial guesses.
    let busiest = links
        .iter()
        .max_by_key(|link| (link.path.sent_bytes, link.kind == Kind::Bulk));
    let sum = |f: fn(&LinkStats) -> u64| links.iter().map(f).sum::<u64>();
    LinkView {
        bulk,
        traffic,
        rtt: busiest.map(|link| link.path.rtt).or(meter.rtt),
        push_rate: meter.rate,
        queueing: meter.queueing,
        quic: busiest.map(|busiest| QuicView {
            min_rtt: links
                .iter()
                .map(|link| link.path.min_rtt)
                .min()
                .unwrap_or_default(),
            delivery_rate: busiest
                .model
                .map(|model| model.bandwidth)
                .filter(|rate| rate.is_finite()),
            congestion_window: busiest.path.congestion_window,
            sent: past.sent + sum(|link| link.path.sent_bytes),
            received: past.received + sum(|link| link.path.received_bytes),
            lost: past.lost + sum(|link| link.path.lost_bytes),
        }),
        tls: Volume::default(),
        wire: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libp2p::identity::Keypair;
    use murmurate_net::quic::PathStats;

    #[test]
    fn bytes_of_connections_that_ended_still_count() {
        let link = |kind, sent_bytes, micros| LinkStats {
            peer: Keypair::generate_ed25519().public().to_peer_id(),
            kind,
            remote: ([127, 0, 0, 1], 9).into(),
            path: PathStats {
                sent_bytes,
                min_rtt: Duration::from_micros(micros),
                ..PathStats::default()
            },
            model: None,
        };
        let links = [link(Kind::Control, 70, 9), link(Kind::Bulk, 100, 30)];
        let past = Gone {
            sent: 1000,
            received: 20,
            lost: 50,
        };
        let of = |links| {
            let (bulk, traffic) = (PathView::default(), Traffic::default());
            view(bulk, traffic, (links, past), Reading::default()).quic
        };
        let quic = of(&links[..]).unwrap();
        assert_eq!((quic.sent, quic.received, quic.lost), (1170, 20, 50));
        assert_eq!(quic.min_rtt, Duration::from_micros(9));
        assert_eq!(of(&[]), None);
    }
}
