//! The link to one peer, as `/status` shows it.

use crate::net::{BulkPath, LinkView};
use murmurate_protocol::wire::WireVersion;
use serde::{Deserialize, Serialize};

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

/// Bytes of one direction, counted at three points of their way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Values as f32, before the codec.
    pub payload: u64,
    /// After the codec.
    pub encoded: u64,
    /// On the network, with headers and control messages.
    pub wire: u64,
}

impl Traffic {
    /// Traffic of which only the bytes on the network are known.
    pub(crate) fn on_the_wire(wire: u64) -> Self {
        Self {
            wire,
            ..Self::default()
        }
    }
}

impl std::ops::Add for Traffic {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            payload: self.payload + other.payload,
            encoded: self.encoded + other.encoded,
            wire: self.wire + other.wire,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{MetricsFormat, PeerStatus, Presence, Status, metrics_text};
    use crate::net::tests::{PathView, QuicView};
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
            presence: Presence::Linked,
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
