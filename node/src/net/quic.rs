//! Settings of the daemon's QUIC endpoint, which `murmurate-net` implements.

use crate::net::{NetConfig, NetError};
use murmurate_net::quic::{Config, Endpoint, Transport, Windows};
use murmurate_net::tcp::{self, BulkChoice};
use std::sync::Arc;
use std::time::Duration;

/// How long a handshake may take.
pub(super) const HANDSHAKE_WAIT: Duration = Duration::from_secs(5);

/// Streams that the remote may have open on one control connection.
pub(super) const STREAMS_PER_CONNECTION_MAX: u32 = 256;

/// Streams that the remote may have open on one bulk connection: half of them are served at once,
/// the others wait.
const BULK_STREAMS_MAX: u32 = 64;

const MIB: u64 = 1 << 20;

/// Flow control windows of one connection. A stream's window allows 1 Gbit/s at 100 ms. The
/// connection's windows are four times as large, because four pushes run at a time: a push of low
/// priority that fills its window still leaves room for a more urgent one, and so do streams that
/// wait to be read.
const WINDOWS: Windows = Windows {
    stream: 12 * MIB,
    control: 8 * MIB,
    bulk: 64 * MIB,
    send: 64 * MIB,
};

/// The settings of the endpoint.
pub(super) fn settings(config: &NetConfig) -> Config {
    let standard = Config::default();
    Config {
        payload_max: config.payload_max.unwrap_or(standard.payload_max),
        handshake_timeout: HANDSHAKE_WAIT,
        idle_timeout: config.idle,
        keep_alive: config.keep_alive,
        control_streams: STREAMS_PER_CONNECTION_MAX,
        bulk_streams: BULK_STREAMS_MAX,
        bulk_beside_control: true,
        windows: WINDOWS,
        congestion: config.congestion.factory(&config.max_rate),
        ..standard
    }
}

/// Creates the endpoint of bulk connections over TCP; `None` if they are not wanted. Opens no port
/// yet.
pub(super) fn tcp_endpoint(config: &NetConfig) -> Result<Option<tcp::Endpoint>, NetError> {
    if config.bulk == BulkChoice::Quic {
        return Ok(None);
    }
    // A token is given only to peers that have a bulk connection over QUIC.
    let anybody = |_: &libp2p::PeerId, _| true;
    let made = tcp::Endpoint::new(&settings(config), &config.identity, Arc::new(anybody));
    made.map(Some).map_err(|error| NetError::Transport {
        transport: "tls over tcp",
        reason: error.to_string(),
    })
}

/// Creates the endpoint and the swarm's transport on it. Binds no port yet.
pub(super) fn endpoint(config: &NetConfig) -> Result<(Endpoint, Transport), NetError> {
    // The endpoint admits every peer, because the driver decides which peers to disconnect.
    let anybody = |_: &libp2p::PeerId, _| true;
    let made = Endpoint::new(settings(config), &config.identity, Arc::new(anybody));
    made.map_err(|error| NetError::Transport {
        transport: "quic",
        reason: error.to_string(),
    })
}
