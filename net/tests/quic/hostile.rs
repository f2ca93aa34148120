//! Remotes that send garbage, have no identity, or connect without end.

use crate::support::{node, node_of, within};
use futures::FutureExt;
use libp2p::PeerId;
use libp2p::core::Endpoint as Role;
use libp2p::identity::Keypair;
use murmurate_net::quic::{CloseCode, Config, Endpoint, InboundCounts, Kind, QuicAddr, Unproven};
use quinn::ConnectionError;
use quinn::crypto::rustls::QuicClientConfig;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{DigitallySignedStruct, Error as TlsError, SignatureScheme};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::UdpSocket;

#[tokio::test]
async fn garbage_changes_nothing() {
    within(async {
        let here = node(Config::default());
        let at = here.listen();
        let to = QuicAddr::parse(&at).unwrap().socket;
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let mut packet = vec![0; 1500];
        for i in 0..4000 {
            random.fill_bytes(&mut packet);
            let length = (random.next_u64() % 1473) as usize;
            // Every second packet looks like the first one of a QUIC connection.
            if i % 2 == 0 {
                packet[..6].copy_from_slice(&[0xc3, 0, 0, 0, 1, 8]);
            }
            socket.send_to(&packet[..length], to).await.unwrap();
        }
        let there = node(Config::default());
        let (dialed, arrived) = tokio::join!(
            there.endpoint.dial_bulk(&at, here.peer),
            here.endpoint.accept_bulk()
        );
        assert_eq!(dialed.unwrap().peer(), here.peer);
        assert_eq!(arrived.unwrap().peer(), there.peer);
        assert_eq!(here.endpoint.inbound().accepted, 1);
    })
    .await;
}

/// Trusts every server, as a client without a certificate does.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

/// Connects as a client with this certificate or none. Returns why the connection ended.
async fn knock(to: SocketAddr, kind: Kind, shows: Option<CertifiedKey>) -> ConnectionError {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody));
    let mut tls = match shows {
        None => tls.with_no_client_auth(),
        Some(shown) => tls.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(shown))),
    };
    tls.alpn_protocols = vec![kind.alpn().to_vec()];
    let client = QuicClientConfig::try_from(tls).unwrap();
    let endpoint = quinn::Endpoint::client(([127, 0, 0, 1], 0).into()).unwrap();
    let config = quinn::ClientConfig::new(Arc::new(client));
    match endpoint.connect_with(config, to, "l").unwrap().await {
        Ok(connection) => connection.closed().await,
        Err(error) => error,
    }
}

/// Both kinds of connection end with this TLS alert and leave nothing behind.
async fn is_refused(shows: Option<CertifiedKey>, alert: u8) {
    within(async {
        for kind in [Kind::Control, Kind::Bulk] {
            let here = node(Config::default());
            let to = QuicAddr::parse(&here.listen()).unwrap().socket;
            let ended = knock(to, kind, shows.clone()).await;
            let code = quinn::TransportErrorCode::crypto(alert);
            assert!(
                matches!(&ended, ConnectionError::ConnectionClosed(close) if close.error_code == code),
                "{ended}"
            );
            let counts = here.endpoint.inbound();
            assert_eq!((counts.accepted, counts.failed), (0, 1), "{counts:?}");
            assert!(here.endpoint.links().is_empty());
        }
    })
    .await;
}

#[tokio::test]
async fn a_client_without_a_certificate_is_refused() {
    // The alert `certificate_required` (RFC 8446, 6.2).
    is_refused(None, 116).await;
}

/// Certificates are not secret: every peer that the victim dialled has its certificate. The key is
/// secret.
#[tokio::test]
async fn who_shows_another_peers_certificate_is_refused() {
    let victim = node(Config::default());
    let mut thief = node(Config::default());
    let (_, connection) = within(thief.dial(&victim.listen(), Role::Dialer))
        .await
        .unwrap();
    let shown = connection.quinn().peer_identity().unwrap();
    let of_the_victim: Box<Vec<CertificateDer<'static>>> = shown.downcast().unwrap();
    let own = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new());
    let own = PrivatePkcs8KeyDer::from(own.unwrap().as_ref().to_vec());
    let keys = rustls::crypto::ring::default_provider().key_provider;
    let own = keys.load_private_key(own.into()).unwrap();
    let shows = Some(CertifiedKey::new(*of_the_victim, own));
    // The alert `decrypt_error`: the handshake is not signed with the certificate's key.
    is_refused(shows, 51).await;
}

#[tokio::test]
async fn one_decision_holds_for_both_kinds() {
    within(async {
        let banned = Keypair::generate_ed25519();
        let banned_peer = banned.public().to_peer_id();
        let identity = Keypair::generate_ed25519();
        let admission = move |peer: &PeerId, _: Kind| *peer != banned_peer;
        let made = Endpoint::new(Config::default(), &identity, Arc::new(admission));
        let (here, _transport) = made.unwrap();
        let at = here.listen(([127, 0, 0, 1], 0).into()).unwrap();
        let at = murmurate_net::quic::multiaddr_of(at);
        let mut there = node_of(&banned, Config::default());
        let bulk = there.endpoint.dial_bulk(&at, here.local_peer_id()).await;
        let reason = bulk.unwrap().closed().await;
        assert_eq!(CloseCode::of(&reason), Some(CloseCode::Denied), "{reason}");
        let (_, control) = there.dial(&at, Role::Dialer).await.unwrap();
        let reason = control.quinn().closed().await;
        assert_eq!(CloseCode::of(&reason), Some(CloseCode::Denied), "{reason}");
        let outward = here
            .dial_bulk(&there.listen(), banned_peer)
            .await
            .unwrap_err();
        assert_eq!(
            outward.to_string(),
            format!("{banned_peer} is not admitted")
        );
        assert_eq!(here.inbound().turned_away, 2);
        assert!(here.links().is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_stranger_fills_a_small_window_and_opens_few_streams_until_it_is_proven() {
    within(async {
        const WINDOW: u64 = 64 << 10;
        let unproven = Unproven {
            window: WINDOW,
            streams: 2,
        };
        let config = Config {
            unproven: Some(unproven),
            ..Config::default()
        };
        let mut here = node(config);
        let at = here.listen();
        let mut there = node(Config::default());
        let dial = there.dial(&at, Role::Dialer);
        let (dialed, _arrived) = tokio::join!(dial, here.incoming());
        let (_, muxer) = dialed.unwrap();
        let quic = muxer.quinn();
        let (mut first, _answer) = quic.open_bi().await.unwrap();
        let (mut second, _answer) = quic.open_bi().await.unwrap();
        let mut third = Box::pin(quic.open_bi());
        // What the other end does not allow waits here, so writing stops at its window.
        let mut written = 0;
        let bytes = vec![7; 1 << 20];
        for stream in [&mut first, &mut second] {
            while let Some(count) = (stream.write(&bytes)).now_or_never() {
                written += count.unwrap() as u64;
            }
        }
        assert_eq!(written, WINDOW);
        assert!(third.as_mut().now_or_never().is_none());
        here.endpoint.prove(there.peer);
        third.await.unwrap();
        first.write_all(&bytes).await.unwrap();
    })
    .await;
}

/// Forwards the first packet, as a stranger would that forges the address of a victim. Counts the bytes of that
/// packet, and of all that the victim would receive.
async fn forged(to: SocketAddr, counted: Arc<[AtomicU64; 2]>) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let at = socket.local_addr().unwrap();
    let victim = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    tokio::spawn(async move {
        let mut packet = [0; 2000];
        let (length, _) = socket.recv_from(&mut packet).await.unwrap();
        counted[0].store(length as u64, Ordering::Relaxed);
        victim.send_to(&packet[..length], to).await.unwrap();
        while let Ok((length, _)) = victim.recv_from(&mut packet).await {
            counted[1].fetch_add(length as u64, Ordering::Relaxed);
        }
    });
    at
}

#[tokio::test]
async fn a_forged_first_packet_is_answered_with_three_times_its_bytes_at_most() {
    within(async {
        let here = node(Config::default());
        let at = here.listen();
        let counted = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let to = QuicAddr::parse(&at).unwrap().socket;
        let hole = forged(to, Arc::clone(&counted)).await;
        let hole = murmurate_net::quic::multiaddr_of(hole);
        // A hello in one packet, as most have.
        let small = Config {
            post_quantum: false,
            ..Config::default()
        };
        let there = node(small);
        assert!(there.endpoint.dial_bulk(&hole, here.peer).await.is_err());
        while here.endpoint.inbound().failed == 0 {
            tokio::task::yield_now().await;
        }
        let [first, answered] = counted
            .each_ref()
            .map(|count| count.load(Ordering::Relaxed));
        assert!(
            answered > 0 && answered <= 3 * first,
            "{answered} for {first}"
        );
    })
    .await;
}

/// A router: what comes in at either of two addresses goes to `to` from one address, and all answers go to who came
/// in at the first. Counts what came in at the second.
async fn one_router(to: SocketAddr, counted: Arc<AtomicU64>) -> [SocketAddr; 2] {
    let bind = || UdpSocket::bind("127.0.0.1:0");
    let (first, second, out) = tokio::try_join!(bind(), bind(), bind()).unwrap();
    let at = [&first, &second].map(|socket| socket.local_addr().unwrap());
    tokio::spawn(async move {
        let [mut one, mut other, mut back] = [(); 3].map(|()| vec![0; 65_535]);
        let mut inside = None;
        loop {
            tokio::select! {
                Ok((length, from)) = first.recv_from(&mut one) => {
                    inside = Some(from);
                    let _ = out.send_to(&one[..length], to).await;
                }
                Ok((length, _)) = second.recv_from(&mut other) => {
                    let _ = out.send_to(&other[..length], to).await;
                    counted.fetch_add(1, Ordering::Relaxed);
                }
                Ok((length, _)) = out.recv_from(&mut back) => {
                    if let Some(inside) = inside {
                        let _ = first.send_to(&back[..length], inside).await;
                    }
                }
            }
        }
    });
    at
}

#[tokio::test]
async fn a_handshake_that_never_ends_holds_up_no_connection_to_the_same_address() {
    within(async {
        let here = node(Config::default());
        let at = here.listen();
        let begun = Arc::new(AtomicU64::new(0));
        let to = QuicAddr::parse(&at).unwrap().socket;
        let ways = one_router(to, Arc::clone(&begun)).await;
        let [way, hole] = ways.map(murmurate_net::quic::multiaddr_of);
        let (there, other) = (node(Config::default()), node(Config::default()));
        let (dialed, arrived) = tokio::join!(
            there.endpoint.dial_bulk(&way, here.peer),
            here.endpoint.accept_bulk()
        );
        let (dialed, arrived) = (dialed.unwrap(), arrived.unwrap());
        let (endpoint, peer) = (other.endpoint.clone(), here.peer);
        let endless = tokio::spawn(async move { endpoint.dial_bulk(&hole, peer).await });
        while begun.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        let sent = vec![7; 8 << 20];
        let push = async {
            let mut stream = arrived.open_uni().await.unwrap();
            stream.write_all(&sent).await.unwrap();
            stream.finish().unwrap();
        };
        let pull = async {
            let mut stream = dialed.accept_uni().await.unwrap();
            stream.read_to_end(sent.len()).await.unwrap()
        };
        let ((), got) = tokio::join!(push, pull);
        assert!(got == sent, "other bytes arrived");
        assert_eq!(
            here.endpoint.inbound().failed,
            0,
            "it waited for the end of the handshake"
        );
        endless.abort();
    })
    .await;
}

/// The number of all attempts.
fn attempts(counts: InboundCounts) -> u64 {
    counts.accepted + counts.failed + counts.turned_away + counts.too_often + counts.too_many
}

#[tokio::test]
async fn a_peer_that_connects_without_end_gets_its_burst_and_its_few_connections() {
    within(async {
        const BURST: u32 = 40;
        let mut config = Config::default();
        config.limits.attempts_per_second = 0;
        config.limits.attempts_burst = BURST;
        let mut here = node(config.clone());
        let at = here.listen();
        let mut bold = Config::default();
        bold.limits.control_per_peer = usize::MAX;
        bold.limits.connections_max = usize::MAX;
        let mut there = node(bold);
        let dials = (0..2000).map(|_| there.dial(&at, Role::Dialer));
        let dialed = futures::future::join_all(dials).await;
        let made: Vec<_> = dialed.into_iter().filter_map(Result::ok).collect();
        assert!(made.len() <= BURST as usize, "{} connections", made.len());
        let mut closed = 0;
        while closed < made.len() - config.limits.control_per_peer {
            let ends = made
                .iter()
                .filter(|(_, muxer)| muxer.quinn().close_reason().is_some());
            closed = ends.count();
            tokio::task::yield_now().await;
        }
        let counts = here.endpoint.inbound();
        assert!(attempts(counts) >= 2000, "{counts:?}");
        assert_eq!(counts.accepted, config.limits.control_per_peer as u64);
        assert!(counts.turned_away <= u64::from(BURST), "{counts:?}");
        assert_eq!(here.endpoint.links().len(), config.limits.control_per_peer);
        for _ in 0..config.limits.control_per_peer {
            drop(here.incoming().await);
        }
        assert!(
            here.endpoint.links().is_empty(),
            "and it costs nothing when they are gone"
        );
    })
    .await;
}

/// Forwards packets in one direction only, so that handshakes through it never complete.
async fn one_way(to: std::net::SocketAddr) -> std::net::SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let at = socket.local_addr().unwrap();
    let out = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    tokio::spawn(async move {
        let mut packet = [0; 2000];
        while let Ok((length, _)) = socket.recv_from(&mut packet).await {
            let _ = out.send_to(&packet[..length], to).await;
        }
    });
    at
}

#[tokio::test]
async fn handshakes_that_never_end_are_few_and_keep_no_peer_out() {
    within(async {
        let mut config = Config::default();
        config.limits.handshakes_max = 8;
        let here = node(config);
        let at = here.listen();
        let hole = one_way(QuicAddr::parse(&at).unwrap().socket).await;
        let hole = murmurate_net::quic::multiaddr_of(hole);
        let there = node(Config::default());
        let endless = (0..60).map(|_| {
            let (endpoint, hole, peer) = (there.endpoint.clone(), hole.clone(), here.peer);
            tokio::spawn(async move { endpoint.dial_bulk(&hole, peer).await })
        });
        let endless: Vec<_> = endless.collect();
        while here.endpoint.inbound().retried < 20 {
            tokio::task::yield_now().await;
        }
        let other = node(Config::default());
        let (dialed, arrived) = tokio::join!(
            other.endpoint.dial_bulk(&at, here.peer),
            here.endpoint.accept_bulk()
        );
        assert!(dialed.is_ok(), "who answers a Retry gets in: {dialed:?}");
        assert_eq!(arrived.unwrap().peer(), other.peer);
        assert_eq!(here.endpoint.inbound().too_many, 0);
        for dial in endless {
            dial.abort();
        }
    })
    .await;
}
