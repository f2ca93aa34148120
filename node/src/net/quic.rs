//! The daemon's QUIC endpoint: what it is set to. How it works is `murmurate-net`'s business.

use crate::net::{NetConfig, NetError};
use murmurate_net::quic::{Config, Endpoint, Transport, Windows};
use std::sync::Arc;
use std::time::Duration;

/// How long a handshake may take.
pub(super) const HANDSHAKE_WAIT: Duration = Duration::from_secs(5);

/// Streams of one control connection that the remote may have open at a time.
pub(super) const STREAMS_PER_CONNECTION_MAX: u32 = 256;

/// Streams of one bulk connection that the remote may have open at a time: those that are answered
/// at once, and as many that wait for it.
const BULK_STREAMS_MAX: u32 = 64;

const MIB: u64 = 1 << 20;

/// Windows of one connection. A stream's is 1 Gbit/s at 100 ms. A connection may send four times as
/// much, as many pushes as run at a time: so one of low priority that fills its window leaves room for a
/// more urgent one. It may receive as much, so that streams which wait to be read leave room, too.
const WINDOWS: Windows = Windows {
    stream: 12 * MIB,
    control: 8 * MIB,
    bulk: 64 * MIB,
    send: 64 * MIB,
};

/// What the endpoint is set to.
pub(super) fn settings(config: &NetConfig) -> Config {
    Config {
        handshake_timeout: HANDSHAKE_WAIT,
        idle_timeout: config.idle,
        keep_alive: config.keep_alive,
        control_streams: STREAMS_PER_CONNECTION_MAX,
        bulk_streams: BULK_STREAMS_MAX,
        bulk_beside_control: true,
        windows: WINDOWS,
        congestion: config.congestion.factory(&config.max_rate),
        ..Config::default()
    }
}

/// Makes the endpoint and the swarm's transport on it. Binds nothing yet.
pub(super) fn endpoint(config: &NetConfig) -> Result<(Endpoint, Transport), NetError> {
    // The driver disconnects peers that break the rules, and knows why; here every peer may try.
    let anybody = |_: &libp2p::PeerId, _| true;
    let made = Endpoint::new(settings(config), &config.identity, Arc::new(anybody));
    made.map_err(|error| NetError::Transport {
        transport: "quic",
        reason: error.to_string(),
    })
}
