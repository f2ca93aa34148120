//! Packets larger than Ethernet's: they are found, used, and given up where a path loses them.

use crate::support::{node, within};
use bytes::Bytes;
use murmurate_net::quic::{BulkConnection, Config};

/// Bytes of one stream.
const STREAM: usize = 10_000_000;

/// Sends streams from one end to the other and checks their bytes.
async fn send(from: &BulkConnection, to: &BulkConnection, streams: u8) {
    for first in 0..streams {
        let bytes: Vec<u8> = (0..STREAM)
            .map(|i| first.wrapping_add((i % 253) as u8))
            .collect();
        let bytes = Bytes::from(bytes);
        let push = async {
            let mut stream = from.open_uni().await.unwrap();
            stream.write_chunk(bytes.clone()).await.unwrap();
            stream.finish().unwrap();
        };
        let pull = async {
            let mut stream = to.accept_uni().await.unwrap();
            stream.read_to_end(STREAM).await.unwrap()
        };
        let ((), got) = tokio::join!(push, pull);
        assert!(got == bytes, "other bytes arrived");
    }
}

/// A hundred megabytes are enough to notice that packets are refused: then the connection falls
/// back to 1200 bytes within the first of them.
async fn carries(payload_max: u16) {
    within(async {
        let config = Config {
            payload_max,
            ..Config::default()
        };
        let (here, there) = (node(config.clone()), node(config));
        let at = here.listen();
        let (dialed, arrived) = tokio::join!(
            there.endpoint.dial_bulk(&at, here.peer),
            here.endpoint.accept_bulk()
        );
        let (dialed, arrived) = (dialed.unwrap(), arrived.unwrap());
        for (from, to) in [(&dialed, &arrived), (&arrived, &dialed)] {
            send(from, to, 11).await;
            let path = from.stats();
            // The search ends when the next step is small.
            let found = f64::from(path.mtu) / f64::from(payload_max);
            assert!((0.98..=1.0).contains(&found), "{path:?}");
            assert_eq!(path.black_holes, 0, "{path:?}");
            // All at Ethernet's size would be 76,000 packets.
            let mean = path.sent_bytes / path.sent_packets;
            assert!(mean > u64::from(payload_max) / 2, "{mean}: {path:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn six_kilobytes_are_the_most_that_fits_ten_to_a_batch() {
    carries(6500).await;
}

#[tokio::test]
async fn jumbo_frames_leave_in_parts_of_a_batch() {
    carries(8932).await;
}

#[tokio::test]
async fn loopback_is_used_up_to_the_largest_datagram() {
    carries(65_487).await;
}
