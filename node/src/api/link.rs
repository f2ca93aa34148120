//! The link to one peer, as `/status` and `/metrics` show it.

use super::Traffic;
use crate::net::{BulkPath, LinkView};
use murmurate_protocol::wire::WireVersion;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde::Serialize;
use std::sync::atomic::AtomicU64;

/// The link to a peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LinkStatus {
    /// Transport of slices and states: `quic` or `tls` (a connection of their own), `stream` (streams of
    /// the link) or `unused` (none was sent yet).
    pub bulk: &'static str,
    /// Why it is this transport, if there was a choice or a failure.
    pub reason: Option<String>,
    /// Seconds until another transport is tried.
    pub retry_in_s: Option<f64>,
    /// Smoothed round-trip time, seconds.
    pub rtt_s: Option<f64>,
    /// Smallest round-trip time, seconds.
    pub min_rtt_s: Option<f64>,
    /// Bytes per second that the path carries, as estimated by the congestion control.
    pub delivery_bytes_per_s: Option<f64>,
    /// Bytes per second of acknowledged pushes, smoothed.
    pub push_bytes_per_s: Option<u64>,
    /// Fraction of the sent bytes that was lost, 0 to 1.
    pub loss: Option<f64>,
    /// Bytes that were lost and sent again.
    pub lost_bytes: Option<u64>,
    /// Congestion window: bytes that may be in flight.
    pub congestion_window: Option<u64>,
    /// Time that pushes waited for their turn, seconds, smoothed.
    pub queueing_s: Option<f64>,
    /// The version of the wire protocol that both ends use.
    pub wire_version: Option<u8>,
    /// Bytes sent to the peer. `wire` counts its connections over QUIC and TLS since the link came up.
    pub sent: Traffic,
    /// Bytes received from the peer.
    pub received: Traffic,
}

impl LinkStatus {
    /// Builds the status from the network's view. The payload counts are bytes before the codec.
    pub fn new(view: &LinkView, payload_sent: u64, payload_received: u64) -> Self {
        let quic = view.quic.as_ref();
        Self {
            bulk: match view.bulk.path {
                BulkPath::Unused => "unused",
                BulkPath::Quic => "quic",
                BulkPath::Tls => "tls",
                BulkPath::Stream => "stream",
            },
            reason: view.bulk.reason.clone(),
            retry_in_s: view.bulk.retry_in.map(|wait| wait.as_secs_f64()),
            rtt_s: view.rtt.map(|rtt| rtt.as_secs_f64()),
            min_rtt_s: quic.map(|quic| quic.min_rtt.as_secs_f64()),
            delivery_bytes_per_s: quic.and_then(|quic| quic.delivery_rate),
            push_bytes_per_s: view.push_rate,
            loss: quic.map(|quic| quic.loss()),
            lost_bytes: quic.map(|quic| quic.lost),
            congestion_window: quic.map(|quic| quic.congestion_window),
            queueing_s: view.queueing.map(|wait| wait.as_secs_f64()),
            wire_version: view.wire.map(WireVersion::number),
            sent: Traffic {
                payload: payload_sent,
                encoded: view.traffic.bulk_out,
                wire: quic.map_or(0, |quic| quic.sent) + view.tls.sent,
            },
            received: Traffic {
                payload: payload_received,
                encoded: view.traffic.bulk_in,
                wire: quic.map_or(0, |quic| quic.received) + view.tls.received,
            },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LinkLabels {
    peer: String,
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LinkByteLabels {
    peer: String,
    name: String,
    direction: &'static str,
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LinkPathLabels {
    peer: String,
    name: String,
    bulk: &'static str,
}

/// A link with the id and the name of its peer.
pub(super) type Named<'a> = (&'a str, String, &'a LinkStatus);

/// Registers the metrics of these links, by peer.
pub(super) fn register(registry: &mut Registry, links: &[Named<'_>]) {
    type Read = fn(&LinkStatus) -> Option<f64>;
    let gauges: [(&str, &str, Read); 7] = [
        ("link_rtt_seconds", "Smoothed round-trip time", |l| l.rtt_s),
        ("link_min_rtt_seconds", "Smallest round-trip time", |l| {
            l.min_rtt_s
        }),
        (
            "link_delivery_bytes_per_second",
            "What the path carries, as the congestion control estimates it",
            |l| l.delivery_bytes_per_s,
        ),
        (
            "link_push_bytes_per_second",
            "Rate of acknowledged pushes",
            |l| l.push_bytes_per_s.map(|rate| rate as f64),
        ),
        ("link_loss_ratio", "Lost over sent bytes", |l| l.loss),
        (
            "link_congestion_window_bytes",
            "Bytes that may be in flight",
            |l| l.congestion_window.map(|bytes| bytes as f64),
        ),
        (
            "link_queueing_seconds",
            "How long pushes wait for their turn",
            |l| l.queueing_s,
        ),
    ];
    for (name, help, read) in gauges {
        let family = Family::<LinkLabels, Gauge<f64, AtomicU64>>::default();
        for (peer, name, link) in links {
            let (peer, name) = ((*peer).to_owned(), name.clone());
            if let Some(value) = read(link) {
                family.get_or_create(&LinkLabels { peer, name }).set(value);
            }
        }
        registry.register(name, help, family);
    }
    lost(registry, links);
    paths(registry, links);
    bytes(registry, links);
}

fn lost(registry: &mut Registry, links: &[Named<'_>]) {
    let family = Family::<LinkLabels, Counter>::default();
    for (peer, name, link) in links {
        let (peer, name) = ((*peer).to_owned(), name.clone());
        if let Some(bytes) = link.lost_bytes {
            family
                .get_or_create(&LinkLabels { peer, name })
                .inc_by(bytes);
        }
    }
    let help = "Bytes lost and sent again since it was linked";
    registry.register("link_lost_bytes", help, family);
}

fn paths(registry: &mut Registry, links: &[Named<'_>]) {
    let family = Family::<LinkPathLabels, Gauge>::default();
    for (peer, name, link) in links {
        let labels = LinkPathLabels {
            peer: (*peer).to_owned(),
            name: name.clone(),
            bulk: link.bulk,
        };
        family.get_or_create(&labels).set(1);
    }
    registry.register("link_bulk", "What slices and states go over", family);
}

fn bytes(registry: &mut Registry, links: &[Named<'_>]) {
    let family = Family::<LinkByteLabels, Counter>::default();
    for (peer, name, link) in links {
        for (direction, traffic) in [("sent", link.sent), ("received", link.received)] {
            let kinds = [
                ("payload", traffic.payload),
                ("encoded", traffic.encoded),
                ("wire", traffic.wire),
            ];
            for (kind, bytes) in kinds {
                let labels = LinkByteLabels {
                    peer: (*peer).to_owned(),
                    name: name.clone(),
                    direction,
                    kind,
                };
                family.get_or_create(&labels).inc_by(bytes);
            }
        }
    }
    registry.register(
        "link_bytes",
        "Bytes by peer: of slices and states, before the codec and after it, and UDP payload",
        family,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{MetricsFormat, PeerStatus, Status, metrics_text};
    use crate::net::{PathView, QuicView};
    use std::time::Duration;

    #[test]
    fn the_measures_are_shown_by_peer() {
        let view = LinkView {
            bulk: PathView {
                path: BulkPath::Stream,
                reason: Some("no handshake within 5000 ms".to_owned()),
                retry_in: Some(Duration::from_secs(4)),
            },
            rtt: Some(Duration::from_millis(20)),
            queueing: Some(Duration::from_millis(500)),
            quic: Some(QuicView {
                sent: 1000,
                lost: 10,
                delivery_rate: Some(2e6),
                ..QuicView::default()
            }),
            ..LinkView::default()
        };
        let link = LinkStatus::new(&view, 7, 0);
        assert_eq!((link.bulk, link.retry_in_s), ("stream", Some(4.0)));
        assert_eq!((link.loss, link.sent.wire), (Some(0.01), 1000));
        let peer = PeerStatus {
            name: Some("gpu".to_owned()),
            linked: true,
            link: Some(link),
            ..PeerStatus::default()
        };
        let status = Status {
            peers: [("ab".to_owned(), peer)].into(),
            ..Status::default()
        };
        let text = metrics_text(&status, MetricsFormat::OpenMetrics);
        for line in [
            "murmurate_link_rtt_seconds{peer=\"ab\",name=\"gpu\"} 0.02",
            "murmurate_link_loss_ratio{peer=\"ab\",name=\"gpu\"} 0.01",
            "murmurate_link_queueing_seconds{peer=\"ab\",name=\"gpu\"} 0.5",
            "murmurate_link_lost_bytes_total{peer=\"ab\",name=\"gpu\"} 10",
            "murmurate_link_delivery_bytes_per_second{peer=\"ab\",name=\"gpu\"} 2000000.0",
            "murmurate_link_bulk{peer=\"ab\",name=\"gpu\",bulk=\"stream\"} 1",
            "murmurate_link_bytes_total{peer=\"ab\",name=\"gpu\",direction=\"sent\",kind=\"payload\"} 7",
            "murmurate_link_bytes_total{peer=\"ab\",name=\"gpu\",direction=\"sent\",kind=\"wire\"} 1000",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }
}
