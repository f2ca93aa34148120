//! Settings of the daemon's QUIC endpoint, which `murmurate-net` implements.

use crate::descriptors::Places;
use crate::net::gate::Members;
use crate::net::{NetConfig, NetError};
use murmurate_net::quic::{Config, Endpoint, Kind, Transport, Unproven, Windows};
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

/// What a connection may use whose peer has not passed the gate: a message at the gate has 4 KiB, and only the
/// streams of the gate and of pings are answered.
const UNPROVEN: Unproven = Unproven {
    window: 64 << 10,
    streams: 8,
};

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
        unproven: Some(UNPROVEN),
        congestion: config.congestion.factory(&config.max_rate),
        ..standard
    }
}

/// Creates the endpoint of bulk connections over TCP; `None` if they are not wanted. Opens no port
/// yet.
pub(super) fn tcp_endpoint(
    config: &NetConfig,
    places: Places,
) -> Result<Option<tcp::Endpoint>, NetError> {
    if config.bulk.0 == BulkChoice::Quic {
        return Ok(None);
    }
    // A token is given only to peers that have a bulk connection over QUIC.
    let anybody = |_: &libp2p::PeerId, _| true;
    let mut settings = settings(config);
    settings.limits.handshakes_max = places.of(settings.limits.handshakes_max);
    let made = tcp::Endpoint::new(&settings, &config.identity, Arc::new(anybody));
    made.map(Some).map_err(|error| NetError::Transport {
        transport: "tls over tcp",
        reason: error.to_string(),
    })
}

/// Creates the endpoint and the swarm's transport on it. Binds no port yet. Everyone may come to the gate; bulk
/// connections, whose windows are large, are for those that have passed it.
pub(super) fn endpoint(
    config: &NetConfig,
    members: Members,
) -> Result<(Endpoint, Transport), NetError> {
    let may = move |peer: &libp2p::PeerId, kind: Kind| kind == Kind::Control || members.has(peer);
    let made = Endpoint::new(settings(config), &config.identity, Arc::new(may));
    made.map_err(|error| NetError::Transport {
        transport: "quic",
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::tests::{WAIT, open_config};
    use libp2p::core::Endpoint as Role;
    use libp2p::core::transport::{DialOpts, PortUse, Transport as _};
    use libp2p::identity::Keypair;
    use murmurate_net::quic::{CloseCode, multiaddr_of};
    use tokio::time::timeout;

    #[tokio::test]
    async fn bulk_connections_are_for_those_that_have_passed_the_gate() {
        let made = |members| {
            let config = open_config(Keypair::generate_ed25519());
            endpoint(&config, members).unwrap()
        };
        let passed = Members::default();
        let (here, _transport) = made(passed.clone());
        let at = multiaddr_of(here.listen(([127, 0, 0, 1], 0).into()).unwrap());
        let me = here.local_peer_id();
        let trusting = Members::default();
        trusting.add(me);
        let (there, mut dialer) = made(trusting);
        let opts = DialOpts {
            role: Role::Dialer,
            port_use: PortUse::Reuse,
        };
        let dial = dialer.dial(at.clone(), opts).map_err(|e| e.to_string());
        let _control = dial.unwrap().await.unwrap();
        let denied = there.dial_bulk(&at, me).await.unwrap();
        let end = timeout(WAIT, denied.closed()).await.unwrap();
        assert_eq!(CloseCode::of(&end), Some(CloseCode::Denied));
        passed.add(there.local_peer_id());
        let _bulk = there.dial_bulk(&at, me).await.unwrap();
        let accepted = timeout(WAIT, here.accept_bulk()).await.unwrap().unwrap();
        assert_eq!(accepted.peer(), there.local_peer_id());
    }
}
