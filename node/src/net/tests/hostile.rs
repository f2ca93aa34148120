//! Peers that violate the protocol.

use super::*;
use crate::bulk::BulkEvent;
use crate::net::gate::tests::{birds, owners, write};
use crate::net::streams::Reply;
use crate::tests::assert_has;
use murmurate_protocol::vitals::{Heard, SignedVitals, Vitals, VitalsMessage};
use murmurate_protocol::{Change, Phase, Round, Signature};
use murmurate_trust::gate::Message;
use murmurate_trust::{News, RunKey};

/// A peer without our checks, whose streams the test writes to directly.
async fn raw_stream(to: &Side, kind: Kind) -> (PeerId, Stream) {
    let (id, ask) = raw_peer(config(&[]), to).await;
    (id, opened(ask, kind).await)
}

/// The same on a link that is up at the other end.
async fn raw_stream_of(config: NetConfig, to: &mut Side, kind: Kind) -> (PeerId, Stream) {
    let (id, ask) = raw_peer(config, to).await;
    to.up(id).await;
    (id, opened(ask, kind).await)
}

/// Who sent what cannot be read, and why.
async fn malformed(side: &mut Side) -> (PeerId, WireError) {
    let malformed = side.until(|event| match event {
        NetEvent::Malformed { from, error } => Some((from, error)),
        _ => None,
    });
    malformed.await
}

type Ask = oneshot::Sender<(Kind, Reply)>;

/// A peer without our checks that has passed the gate, and what asks it for one more stream.
async fn raw_peer(config: NetConfig, to: &Side) -> (PeerId, Ask) {
    let id = from_libp2p(&config.identity.public().to_peer_id()).unwrap();
    let theirs = to_libp2p(&to.id).unwrap();
    let (quic, mut swarm) = raw(&config, None);
    swarm.dial(to.address.clone()).unwrap();
    let (gate, passing) = oneshot::channel();
    let (ask, asked) = oneshot::channel();
    tokio::spawn(run_raw(swarm, gate, asked));
    let mut gate = timeout(WAIT, passing).await.unwrap().unwrap().unwrap();
    quic.prove(theirs);
    pass(&mut gate, &config.membership, to.id).await;
    (id, ask)
}

async fn opened(ask: Ask, kind: Kind) -> Stream {
    let (give, stream) = oneshot::channel();
    ask.send((kind, give)).unwrap();
    timeout(WAIT, stream).await.unwrap().unwrap().unwrap()
}

/// Opens the stream of the gate, and later the one that is asked for.
async fn run_raw(
    mut swarm: Swarm<Behaviour>,
    gate: Reply,
    mut asked: oneshot::Receiver<(Kind, Reply)>,
) {
    let mut gate = Some(gate);
    let mut at = None;
    loop {
        tokio::select! {
            event = swarm.select_next_some() => match event {
                SwarmEvent::ConnectionEstablished { peer_id, connection_id, .. } => {
                    at = Some((peer_id, connection_id));
                    let streams = &mut swarm.behaviour_mut().streams;
                    // It accepts the streams of the other end, as members do.
                    streams.hear(peer_id, connection_id, oneshot::channel().0);
                    streams.open(peer_id, connection_id, Kind::Gate, gate.take().unwrap());
                }
                SwarmEvent::ConnectionClosed { .. } => return,
                _ => {}
            },
            Ok((kind, reply)) = &mut asked, if !asked.is_terminated() => {
                let (peer, connection) = at.unwrap();
                swarm.behaviour_mut().streams.open(peer, connection, kind, reply);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_on_the_control_stream_is_reported_and_ends_the_stream() {
    let mut a = side().await;
    let (from, mut stream) = raw_stream(&a, Kind::Control).await;
    stream.write_all(&[0xff; 32]).await.unwrap();
    stream.flush().await.unwrap();
    let (who, error) = malformed(&mut a).await;
    assert_eq!(who, from);
    assert!(matches!(error, WireError::TooLong { .. }));
    let mut rest = Vec::new();
    let ended = futures::io::AsyncReadExt::read_to_end(&mut stream, &mut rest);
    let _ = timeout(WAIT, ended).await.expect("the stream ends");
    assert!(rest.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directive_without_the_owners_signature_is_reported() {
    let key = birds();
    let mut a = started(owners(&key, QUIC), TestStore::default()).await;
    let mut member = owners(&key, QUIC);
    member.listen.clear();
    let (from, mut stream) = raw_stream_of(member, &mut a, Kind::Gate).await;
    // A member signs it, and no other key than the run's counts.
    let forger = RunKey::from_seed(key.name().to_owned(), [8; 32]);
    let forged = forger.direct(1, 1_700_000_000, (Round(3), Change::Pause));
    let message = Message::Directives(vec![forged]);
    write(&mut stream, &message).await.unwrap();
    let (who, error) = malformed(&mut a).await;
    assert_eq!(who, from);
    assert_has(&error.to_string(), "the owner has not signed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forged_certificate_in_news_is_reported() {
    let key = birds();
    let mut a = started(owners(&key, QUIC), TestStore::default()).await;
    let mut member = owners(&key, QUIC);
    member.listen.clear();
    let (from, mut stream) = raw_stream_of(member, &mut a, Kind::Gate).await;
    let forger = RunKey::from_seed(key.name().to_owned(), [8; 32]);
    let someone = PeerId::from_bytes([5; 32]);
    let forged = forger.certify_self(&key.run(), someone, now_s());
    let news = News {
        members: vec![forged],
        ..News::default()
    };
    write(&mut stream, &Message::News(news)).await.unwrap();
    let (who, error) = malformed(&mut a).await;
    assert_eq!(who, from);
    assert_has(&error.to_string(), "a certificate, a revocation");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_on_a_bulk_stream_is_reported() {
    let mut a = side().await;
    let (from, mut stream) = raw_stream(&a, Kind::Bulk).await;
    stream.write_all(&[0xff; 32]).await.unwrap();
    stream.flush().await.unwrap();
    let who = a.until(|event| match event {
        NetEvent::Bulk(BulkEvent::Malformed { from, what }) if what.is_misbehaviour() => Some(from),
        _ => None,
    });
    assert_eq!(who.await, from);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vitals_in_the_name_of_another_are_reported_and_not_shown() {
    let (mut a, victim) = (side().await, side().await);
    let (from, mut stream) = raw_stream(&a, Kind::Vitals).await;
    let forged = SignedVitals {
        vitals: Vitals {
            unix_ms: 1,
            version: "1".to_owned(),
            steps_per_s: Some(1e9),
            accuracy: Some(1.0),
            ..crate::tests::vitals(victim.id, 1, Phase::Train)
        },
        signature: Signature::from_bytes([7; 64]),
    };
    let heard = Heard {
        age_ms: 0,
        signed: forged,
    };
    let bytes = VitalsMessage::Vitals(vec![heard]).encode();
    let length = u32::try_from(bytes.len()).unwrap();
    stream.write_all(&length.to_le_bytes()).await.unwrap();
    stream.write_all(&bytes).await.unwrap();
    stream.flush().await.unwrap();
    assert_eq!(malformed(&mut a).await, (from, WireError::Signature));
    assert_eq!(a.net.vitals().seen(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_vitals_that_is_too_long_is_reported() {
    let mut a = side().await;
    let (from, mut stream) = raw_stream(&a, Kind::Vitals).await;
    stream.write_all(&[0xff; 32]).await.unwrap();
    stream.flush().await.unwrap();
    let who = a.until(|event| match event {
        NetEvent::Malformed {
            from,
            error: WireError::TooLong { .. },
        } => Some(from),
        _ => None,
    });
    assert_eq!(who.await, from);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bulk_connection_without_a_link_is_turned_away() {
    let a = side().await;
    let stranger = config(&[]);
    let settings = Config {
        bulk_beside_control: false,
        ..quic::settings(&stranger)
    };
    let anybody = Arc::new(|_: &identity::PeerId, _| true);
    let (quic, _transport) = Endpoint::new(settings, &stranger.identity, anybody).unwrap();
    let to = to_libp2p(&a.id).unwrap();
    let connection = quic.dial_bulk(&a.address, to).await.unwrap();
    let end = timeout(WAIT, connection.closed()).await.unwrap();
    assert_eq!(CloseCode::of(&end), Some(CloseCode::Denied));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_with_another_key_than_expected_is_no_link() {
    let (b, other) = (side().await, config(&[]));
    let named = other.identity.public().to_peer_id();
    let mut joining = config(&[QUIC]);
    let port_of_b = b.address.iter().take(3).collect::<Multiaddr>();
    joining.join = vec![address_with_peer(port_of_b, named)];
    let mut a = started(joining, TestStore::default()).await;
    let reason = a.until(|event| match event {
        NetEvent::BootstrapFailed { reason, .. } => Some(reason),
        NetEvent::LinkUp(peer) => panic!("a link to {peer}"),
        _ => None,
    });
    let reason = reason.await;
    let expected = format!("answers where {named} was expected");
    assert!(reason.contains(&expected), "{reason}");
}
