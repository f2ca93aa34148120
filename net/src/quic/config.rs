//! The settings of an endpoint, and the quinn configurations derived from them.

use crate::congestion::{self, MaxRate};
use crate::quic::admission::Kind;
use crate::quic::batches::PAYLOAD_MAX;
use crate::quic::error::Error;
use crate::quic::ids::{self, Ids};
use crate::quic::limits::{Limits, Unproven};
use crate::quic::route;
use crate::quic::tls::{Cipher, Tls};
use crate::quic::verifier::Verifier;
use libp2p::identity::Keypair;
use quinn::congestion::ControllerFactory;
use quinn::{EndpointConfig, MtuDiscoveryConfig, ServerConfig, TransportConfig, VarInt};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Makes the congestion controllers of new connections.
pub type Congestion = Arc<dyn ControllerFactory + Send + Sync>;

/// The largest UDP payload that quinn receives without being told of more: 1500 bytes minus the
/// headers of IPv4 and UDP.
const ETHERNET_PAYLOAD: u16 = 1472;

/// The largest UDP payload that is looked for on a control connection: a jumbo frame's. Where it is the way of bulk
/// streams too, that is most of the gain; where it is not, a probe of 64 KiB costs more than all of its messages.
const CONTROL_PAYLOAD_MAX: u16 = 8932;

/// Bytes of an early connection attempt that are stored until it is handled, which is at once.
const ATTEMPT_BUFFER: u64 = 16 << 10;

/// The payload with which every connection begins, bytes (RFC 9000, section 14).
const SMALLEST_PAYLOAD: u16 = 1200;

/// The flow-control windows of an endpoint's connections, in bytes. A sender stops when a receive window is full, so
/// a connection carries at most window / RTT. The congestion window is a separate limit, which follows the
/// capacity of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// Received and unread bytes of one stream.
    pub stream: u64,
    /// Received and unread bytes of a control connection.
    pub control: u64,
    /// Received and unread bytes of a bulk connection.
    pub bulk: u64,
    /// Written and unacknowledged bytes of a bulk connection. A control connection's send window is
    /// at most its receive window, because libp2p streams copy what they write, and a large window
    /// of copies does not fit the processor's caches.
    pub send: u64,
}

impl Default for Windows {
    /// 64 MiB for a stream: 5 Gbit/s at 100 ms.
    fn default() -> Self {
        Self {
            stream: 64 << 20,
            control: 8 << 20,
            bulk: 128 << 20,
            send: 64 << 20,
        }
    }
}

/// The least by which a step of path MTU discovery must raise the payload, bytes. A quarter of the whole range
/// means three probes, the last of which is `largest`. A probe is padding up to the size that it tries, and the
/// receiver parses each byte of padding as a frame: over loopback, where `largest` is 64 KiB, quinn's twelve
/// probes were half of the CPU time of a starting swarm, and three on each control connection still a fifth.
fn mtu_step(largest: u16) -> u16 {
    (largest.saturating_sub(SMALLEST_PAYLOAD) / 4).max(20)
}

/// The settings of an [`Endpoint`](super::Endpoint).
#[derive(Clone)]
pub struct Config {
    /// Time allowed for a handshake, in either direction, and for a hole punch.
    pub handshake_timeout: Duration,
    /// A connection that received nothing for this time is dead.
    pub idle_timeout: Duration,
    /// Time between keep-alive packets on an idle connection. Less than half the idle timeout.
    pub keep_alive: Duration,
    /// Streams that the remote may have open on a control connection.
    pub control_streams: u32,
    /// Streams that the remote may have open on a bulk connection, for each direction.
    pub bulk_streams: u32,
    /// Bulk connections require a control connection to the same peer.
    pub bulk_beside_control: bool,
    /// Flow-control windows.
    pub windows: Windows,
    /// Bounds of control connections at first; `None` gives them all at once.
    pub unproven: Option<Unproven>,
    /// Bounds on the resources that remotes can use.
    pub limits: Limits,
    /// Requested size of each socket's receive and send buffer, bytes.
    pub socket_buffer: usize,
    /// The largest UDP payload in bytes that path MTU discovery tries, if the route to the peer
    /// carries it. 1452 fits Ethernet with IPv6, 8932 jumbo frames; the default is the largest that
    /// UDP has, which fits loopback.
    pub payload_max: u16,
    /// Packets per acknowledgement if the remote supports the extension; 0 keeps two.
    pub ack_every: u32,
    /// A connection survives a change of the remote's address, for example after a NAT
    /// mapping expired.
    pub migration: bool,
    /// The cipher that a dial prefers.
    pub cipher: Cipher,
    /// The key exchange resists quantum computers (X25519MLKEM768), as libp2p's does. Costs
    /// one more packet in the handshake.
    pub post_quantum: bool,
    /// Session keys are written to the file named by the environment variable
    /// `SSLKEYLOGFILE`. That file decrypts all traffic.
    pub key_log: bool,
    /// Makes the congestion controllers. The default is [`Bbr3`](congestion::Bbr3) without a limit.
    pub congestion: Congestion,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            handshake_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(10),
            keep_alive: Duration::from_secs(4),
            control_streams: 256,
            bulk_streams: 1024,
            bulk_beside_control: false,
            windows: Windows::default(),
            unproven: None,
            limits: Limits::default(),
            socket_buffer: 4 << 20,
            payload_max: PAYLOAD_MAX,
            ack_every: 0,
            migration: true,
            cipher: Cipher::Auto,
            post_quantum: true,
            key_log: false,
            congestion: congestion::Congestion::default().factory(&MaxRate::default()),
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("windows", &self.windows)
            .field("limits", &self.limits)
            .field("cipher", &self.cipher)
            .field("payload_max", &self.payload_max)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// The largest UDP payload that is looked for on the route to `remote`.
    pub(super) fn payload(&self, kind: Kind, remote: Option<SocketAddr>) -> u16 {
        let route = remote.map_or(route::ETHERNET_PAYLOAD, route::payload_of);
        let useful = match kind {
            Kind::Control => CONTROL_PAYLOAD_MAX,
            Kind::Bulk => PAYLOAD_MAX,
        };
        self.payload_max.min(route).min(useful)
    }

    /// quinn's settings for a connection that looks for packets of up to `payload` bytes. Inbound connections
    /// begin with those of [`Kind::Control`], until the handshake shows their kind; then `Shared::settle` raises
    /// the bounds of bulk connections.
    pub(super) fn transport(&self, kind: Kind, payload: u16) -> Result<TransportConfig, Error> {
        let windows = self.windows;
        let (window, send) = match kind {
            Kind::Control => (
                self.unproven.map_or(windows.control, |few| few.window),
                windows.send.min(windows.control),
            ),
            Kind::Bulk => (windows.bulk, windows.send),
        };
        let (bi, uni) = self.streams(kind);
        let bi = match (kind, self.unproven) {
            (Kind::Control, Some(few)) => few.streams,
            _ => bi,
        };
        let mut mtu = MtuDiscoveryConfig::default();
        mtu.upper_bound(payload).minimum_change(mtu_step(payload));
        let idle = quinn::IdleTimeout::try_from(self.idle_timeout).map_err(|_| {
            let value = u64::try_from(self.idle_timeout.as_millis()).unwrap_or(u64::MAX);
            setting("idle_timeout", value, VarInt::MAX.into_inner())
        })?;
        let mut transport = TransportConfig::default();
        transport
            .max_concurrent_bidi_streams(VarInt::from_u32(bi))
            .max_concurrent_uni_streams(VarInt::from_u32(uni))
            .max_idle_timeout(Some(idle))
            .keep_alive_interval(Some(self.keep_alive))
            .stream_receive_window(varint("windows.stream", self.windows.stream)?)
            .receive_window(varint("windows", window)?)
            .send_window(send)
            .datagram_receive_buffer_size(None)
            .allow_spin(false)
            .mtu_discovery_config(Some(mtu))
            .congestion_controller_factory(Arc::clone(&self.congestion));
        if self.ack_every > 0 {
            let mut acks = quinn::AckFrequencyConfig::default();
            acks.ack_eliciting_threshold(VarInt::from_u32(self.ack_every));
            transport.ack_frequency_config(Some(acks));
        }
        Ok(transport)
    }

    /// How many bidirectional and unidirectional streams the remote may open.
    pub(super) fn streams(&self, kind: Kind) -> (u32, u32) {
        match kind {
            Kind::Control => (self.control_streams, 0),
            Kind::Bulk => (self.bulk_streams, self.bulk_streams),
        }
    }

    /// quinn's settings for a socket.
    pub(super) fn endpoint(&self, tls: &Tls, identity: &Keypair) -> Result<EndpointConfig, Error> {
        let mut config = match tls.reset_key(identity) {
            Some(key) => EndpointConfig::new(Arc::new(key)),
            None => EndpointConfig::default(),
        };
        config.cid_generator(|| Box::new(Ids::new()));
        config.supported_versions(vec![1]);
        if self.payload_max > PAYLOAD_MAX {
            let (value, max) = (self.payload_max.into(), PAYLOAD_MAX.into());
            return Err(setting("payload_max", value, max));
        }
        if self.payload_max > ETHERNET_PAYLOAD {
            config
                .max_udp_payload_size(self.payload_max)
                .map_err(|_| setting("payload_max", self.payload_max.into(), PAYLOAD_MAX.into()))?;
        }
        Ok(config)
    }

    /// quinn's settings for the listening side.
    pub(super) fn server(&self, tls: &Tls) -> Result<ServerConfig, Error> {
        let attempts = self.limits.handshakes_max;
        let payload = self.payload(Kind::Control, None);
        let mut server = ServerConfig::with_crypto(Arc::new(tls.server()?));
        server
            .transport_config(Arc::new(self.transport(Kind::Control, payload)?))
            .migration(self.migration)
            .max_incoming(attempts)
            .incoming_buffer_size(ATTEMPT_BUFFER)
            .incoming_buffer_size_total(ATTEMPT_BUFFER.saturating_mul(attempts as u64));
        Ok(server)
    }

    /// quinn's settings for the dialling side.
    pub(super) fn client(
        &self,
        tls: &Tls,
        kind: Kind,
        verifier: Arc<Verifier>,
        remote: Option<SocketAddr>,
    ) -> Result<quinn::ClientConfig, Error> {
        let mut client = quinn::ClientConfig::new(Arc::new(tls.client(kind, verifier)?));
        client.transport_config(Arc::new(self.transport(kind, self.payload(kind, remote))?));
        if kind == Kind::Bulk {
            client.initial_dst_cid_provider(Arc::new(ids::first_of_bulk));
        }
        Ok(client)
    }
}

fn varint(name: &'static str, value: u64) -> Result<VarInt, Error> {
    VarInt::from_u64(value).map_err(|_| setting(name, value, VarInt::MAX.into_inner()))
}

fn setting(name: &'static str, value: u64, max: u64) -> Error {
    Error::Setting { name, value, max }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_congestion_control_is_our_own() {
        let built = Config::default()
            .congestion
            .build(std::time::Instant::now(), 1200);
        assert!(congestion::path_model(built).is_some());
    }

    #[test]
    fn what_quinn_would_not_take_is_refused_by_name() {
        let mut config = Config::default();
        assert!(config.transport(Kind::Bulk, 1452).is_ok());
        config.windows.stream = u64::MAX;
        let refused = config.transport(Kind::Bulk, 1452).map(drop).unwrap_err();
        assert!(
            refused.to_string().starts_with("windows.stream = "),
            "{refused}"
        );
        let identity = Keypair::generate_ed25519();
        let tls = Tls::new(&identity, Cipher::Auto, true, false).unwrap();
        config.payload_max = u16::MAX;
        let refused = config.endpoint(&tls, &identity).map(drop).unwrap_err();
        assert!(
            refused.to_string().starts_with("payload_max = "),
            "{refused}"
        );
    }
}
