//! The gate between real networks on loopback, and its other end without our checks.

mod crowd;
mod ends;
#[cfg(target_os = "linux")]
mod hostile;
mod versions;

use super::news::read;
pub(in crate::net) use super::news::write;
use super::{GateError, Membership, now_s};
use crate::bulk::tests::TestStore;
use crate::net::streams::Kind;
use crate::net::tests::{Side, WAIT, raw_swarm, started};
use crate::net::{NetConfig, NetEvent, from_libp2p};
use futures::StreamExt;
use futures::io::{AsyncReadExt, AsyncWriteExt};
use libp2p::Stream;
use libp2p::core::Transport as _;
use libp2p::core::muxing::StreamMuxerBox;
use libp2p::core::transport::Boxed;
use libp2p::identity::Keypair;
use libp2p::swarm::SwarmEvent;
use murmurate_net::quic;
use murmurate_protocol::wire::{self, MembershipMessage, Reason, WireVersion, WireVersions};
use murmurate_protocol::{Digest, FragmentId, GroupTag, PeerId, Proof, Round, Saying, Signature};
use murmurate_trust::gate::{Message, answer, ask};
use murmurate_trust::limits::GATE_MESSAGE_MAX;
use murmurate_trust::{Invite, Issuer, News, Refusal, Register, Run, RunKey, Terms};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Passes the gate of `to` as a dialer without our checks.
pub(in crate::net) async fn pass(stream: &mut Stream, membership: &Membership, to: PeerId) {
    let run = membership.run();
    let tag = ask(run, &membership.me(), &to);
    write(stream, &Message::Ask { tag }).await.unwrap();
    let Message::Answer { tag, register, .. } = read(stream, GATE_MESSAGE_MAX).await.unwrap()
    else {
        panic!("no answer");
    };
    assert_eq!(tag, answer(run, &membership.me(), &to));
    let chain = membership.chain().clone();
    let wire = WireVersions::OURS;
    let proof = Message::Proof {
        chain,
        register,
        wire,
    };
    write(stream, &proof).await.unwrap();
    let verdict = read(stream, GATE_MESSAGE_MAX).await.unwrap();
    assert_eq!(verdict, Message::Verdict(Ok(())));
    write(stream, &Message::Ready).await.unwrap();
    // Dropping it now would reset it, and what was not read yet would be lost.
    stream.close().await.unwrap();
}

pub(super) fn id_of(keys: &Keypair) -> PeerId {
    from_libp2p(&keys.public().to_peer_id()).unwrap()
}

pub(in crate::net) fn birds() -> RunKey {
    RunKey::from_seed("birds".to_owned(), [7; 32])
}

pub(super) fn listening(keys: Keypair, membership: Membership, on: &str) -> NetConfig {
    let mut config = NetConfig::new(keys, Arc::new(membership));
    config.listen = vec![on.parse().unwrap()];
    config
}

/// The settings of a member of the closed run with this key.
pub(in crate::net) fn owners(key: &RunKey, on: &str) -> NetConfig {
    let keys = Keypair::generate_ed25519();
    let me = id_of(&keys);
    let run = key.run();
    let chain = key.certify_self(&run, me, now_s());
    listening(keys, Membership::new(me, chain, Register::new(run)), on)
}

/// A member of the closed run with this key.
pub(super) async fn owner(key: &RunKey, on: &str) -> Side {
    started(owners(key, on), TestStore::default()).await
}

/// A member that used this invite.
async fn invited(invite: &Invite, on: &str) -> Side {
    let keys = Keypair::generate_ed25519();
    let me = id_of(&keys);
    let chain = invite.accept(me, now_s()).unwrap();
    let membership = Membership::new(me, chain, Register::new(invite.run()));
    started(listening(keys, membership, on), TestStore::default()).await
}

pub(super) fn invite(key: &RunKey, uses: u32) -> Invite {
    let terms = Terms {
        uses,
        ..Terms::default()
    };
    let issuer = Issuer::Owner(key.clone());
    Invite::new((&key.run(), key.name()), &issuer, terms, now_s(), [3; 32])
}

async fn turned_away(side: &mut Side) -> GateError {
    let error = side.until(|event| match event {
        NetEvent::TurnedAway { error, .. } => Some(error),
        NetEvent::LinkUp(peer) => panic!("a link to {peer}"),
        _ => None,
    });
    error.await
}

pub(super) const QUIC: &str = "/ip4/127.0.0.1/udp/0/quic-v1";
pub(super) const TCP: &str = "/ip4/127.0.0.1/tcp/0";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_of_a_closed_run_are_linked_over_quic_and_tcp() {
    for on in [QUIC, TCP] {
        let key = birds();
        let mut a = owner(&key, on).await;
        let mut b = invited(&invite(&key, 1), on).await;
        b.net.dial(a.record.clone()).unwrap();
        b.up(a.id).await;
        a.up(b.id).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_of_another_run_is_told_nothing_but_that() {
    let here = owner(&birds(), QUIC).await;
    let other = RunKey::from_seed("birds".to_owned(), [8; 32]);
    let mut stranger = owner(&other, QUIC).await;
    stranger.net.dial(here.record.clone()).unwrap();
    assert_eq!(turned_away(&mut stranger).await, GateError::OtherRun);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invite_for_one_lets_one_in() {
    let key = birds();
    let mut a = owner(&key, QUIC).await;
    let once = invite(&key, 1);
    let mut b = invited(&once, QUIC).await;
    b.net.dial(a.record.clone()).unwrap();
    a.up(b.id).await;
    let mut c = invited(&once, QUIC).await;
    c.net.dial(a.record.clone()).unwrap();
    let refused = GateError::Refused(Refusal::InviteUsed { uses: 1 });
    assert_eq!(turned_away(&mut c).await, refused);
    // The other member has learned it, too.
    b.up(a.id).await;
    let mut d = invited(&once, QUIC).await;
    d.net.dial(b.record.clone()).unwrap();
    // Of two certificates of one second either may be the earlier one: then d finds it out by itself.
    let used = Refusal::InviteUsed { uses: 1 };
    let error = turned_away(&mut d).await;
    assert!(
        [GateError::Refused(used), GateError::Refuses(used)].contains(&error),
        "{error}"
    );
}

/// Each of three is linked to the others, and knows it.
async fn all_linked(a: &mut Side, b: &mut Side, c: &mut Side) {
    for side in [&mut *b, &mut *c] {
        side.net.dial(a.record.clone()).unwrap();
        a.up(side.id).await;
        side.up(a.id).await;
    }
    c.net.dial(b.record.clone()).unwrap();
    b.up(c.id).await;
    c.up(b.id).await;
}

/// A member that loses its link to another dials it again. Returns why it is turned away.
async fn stays_out(member: &mut Side, other: &Side) -> GateError {
    member.down(other.id).await;
    member.net.dial(other.record.clone()).unwrap();
    turned_away(member).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_member_loses_all_its_links_and_stays_out() {
    let key = birds();
    let mut a = owner(&key, QUIC).await;
    let twice = invite(&key, 2);
    let mut b = invited(&twice, QUIC).await;
    let mut c = invited(&twice, QUIC).await;
    all_linked(&mut a, &mut b, &mut c).await;
    let revocation = Issuer::Owner(key.clone()).revoke(&key.run(), c.id, now_s());
    let news = News {
        revocations: vec![revocation],
        ..News::default()
    };
    a.net.learn(news).unwrap();
    for side in [&mut a, &mut b] {
        side.dismisses(c.id).await;
    }
    assert_eq!(
        stays_out(&mut c, &b).await,
        GateError::Refused(Refusal::Revoked)
    );
}

/// A proof that the holder of these keys lies.
fn lie_of(keys: &Keypair, run: &Run) -> Proof {
    let say = |value: &[u8]| Saying::Vote {
        ballot: 0,
        value: Digest::of(value),
    };
    let place = (Round(3), FragmentId(0), GroupTag::from_bits(5));
    let by = id_of(keys);
    let said = [say(b"one"), say(b"two")];
    let blank = Proof::new(by, place, said.map(|saying| (saying, Signature::BLANK))).unwrap();
    let [one, two] = blank
        .statements(&run.id)
        .map(|bytes| Signature::from_bytes(keys.sign(&bytes).unwrap().try_into().unwrap()));
    Proof::new(by, place, [(said[0], one), (said[1], two)]).unwrap()
}

fn bans(proof: Proof) -> News {
    News {
        bans: vec![proof],
        ..News::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proven_liar_loses_all_its_links_and_stays_out() {
    let key = birds();
    let mut a = owner(&key, QUIC).await;
    let twice = invite(&key, 2);
    let mut b = invited(&twice, QUIC).await;
    let keys = Keypair::generate_ed25519();
    let me = id_of(&keys);
    let chain = twice.accept(me, now_s()).unwrap();
    let membership = Membership::new(me, chain, Register::new(twice.run()));
    let config = listening(keys.clone(), membership, QUIC);
    let mut c = started(config, TestStore::default()).await;
    all_linked(&mut a, &mut b, &mut c).await;
    a.net.learn(bans(lie_of(&keys, &key.run()))).unwrap();
    for side in [&mut a, &mut b] {
        let banned = side.until(|event| match event {
            NetEvent::Banned { peer, what } => Some((peer, what)),
            _ => None,
        });
        let (peer, what) = banned.await;
        assert_eq!(peer, c.id);
        assert!(what.contains("round 3"), "{what}");
        side.dismisses(c.id).await;
    }
    assert_eq!(
        stays_out(&mut c, &b).await,
        GateError::Refused(Refusal::Banned)
    );
}

/// Connects without our checks, and asks for a stream. Returns the answer, and how long the
/// connection lasted.
async fn stranger(to: &Side, kind: Kind) -> (io::Result<Stream>, oneshot::Receiver<Duration>) {
    let mut swarm = raw_swarm();
    swarm.dial(to.address.clone()).unwrap();
    let (reply, opened) = oneshot::channel();
    let (ended, lasted) = oneshot::channel();
    tokio::spawn(async move {
        let mut reply = Some(reply);
        let mut since = Instant::now();
        loop {
            match swarm.select_next_some().await {
                SwarmEvent::ConnectionEstablished {
                    peer_id,
                    connection_id,
                    ..
                } => {
                    since = Instant::now();
                    let streams = &mut swarm.behaviour_mut().streams;
                    streams.open(peer_id, connection_id, kind, reply.take().unwrap());
                }
                SwarmEvent::ConnectionClosed { .. } => {
                    let _ = ended.send(since.elapsed());
                    return;
                }
                _ => {}
            }
        }
    });
    let opened = timeout(WAIT, opened).await.unwrap().unwrap();
    (opened, lasted)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_opens_nothing_and_is_closed_within_five_seconds() {
    for on in [QUIC, TCP] {
        let a = owner(&birds(), on).await;
        for kind in [Kind::Control, Kind::Bulk] {
            let (opened, lasted) = stranger(&a, kind).await;
            assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::Unsupported);
            let lasted = timeout(WAIT, lasted).await.unwrap().unwrap();
            // A busy machine closes it a little later.
            assert!(lasted < Duration::from_secs(7), "{lasted:?} on {on}");
        }
        // A gate that is asked with a wrong tag says only that.
        let (opened, _lasted) = stranger(&a, Kind::Gate).await;
        let mut stream = opened.unwrap();
        write(&mut stream, &Message::Ask { tag: [0; 32] })
            .await
            .unwrap();
        assert_eq!(
            read(&mut stream, GATE_MESSAGE_MAX).await.unwrap(),
            Message::Unknown
        );
        let mut rest = Vec::new();
        let _ = timeout(WAIT, stream.read_to_end(&mut rest)).await.unwrap();
        assert!(rest.is_empty());
    }
}

/// The transport of a stranger, without our checks.
fn stock_transport(keys: &Keypair) -> Boxed<(libp2p::PeerId, StreamMuxerBox)> {
    let admits = |_: &libp2p::PeerId, _: quic::Kind| true;
    let made = quic::Endpoint::new(quic::Config::default(), keys, Arc::new(admits));
    let (_, transport) = made.unwrap();
    transport
        .map(|(peer, muxer), _| (peer, StreamMuxerBox::new(muxer)))
        .boxed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_learns_no_address_and_no_protocol_of_members() {
    use libp2p::swarm::NetworkBehaviour;
    use libp2p::{SwarmBuilder, identify, ping};
    #[derive(NetworkBehaviour)]
    struct Stock {
        identify: identify::Behaviour,
        ping: ping::Behaviour,
    }
    let a = owner(&birds(), QUIC).await;
    let mut swarm = SwarmBuilder::with_new_identity()
        .with_tokio()
        .with_other_transport(stock_transport)
        .unwrap()
        .with_behaviour(|keys| Stock {
            identify: identify::Behaviour::new(identify::Config::new(
                "x".to_owned(),
                keys.public(),
            )),
            ping: ping::Behaviour::default(),
        })
        .unwrap()
        .build();
    swarm.dial(a.address.clone()).unwrap();
    let (mut pinged, mut silent) = (false, false);
    let asked = async {
        while !(pinged && silent) {
            match swarm.select_next_some().await {
                SwarmEvent::Behaviour(StockEvent::Identify(identify::Event::Received {
                    info,
                    ..
                })) => {
                    panic!("it identified itself: {info:?}")
                }
                SwarmEvent::Behaviour(StockEvent::Identify(identify::Event::Error { .. })) => {
                    silent = true;
                }
                SwarmEvent::Behaviour(StockEvent::Ping(event)) => pinged |= event.result.is_ok(),
                _ => {}
            }
        }
    };
    timeout(WAIT, asked).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_of_members_carries_for_no_stranger() {
    use libp2p::multiaddr::Protocol;
    use libp2p::{SwarmBuilder, noise, yamux};
    let mut config = owners(&birds(), QUIC);
    config.relay = true;
    let a = started(config, TestStore::default()).await;
    let mut swarm = SwarmBuilder::with_new_identity()
        .with_tokio()
        .with_other_transport(stock_transport)
        .unwrap()
        .with_relay_client(noise::Config::new, yamux::Config::default)
        .unwrap()
        .with_behaviour(|_, relay| relay)
        .unwrap()
        .build();
    let through = a.address.clone().with(Protocol::P2pCircuit);
    swarm.listen_on(through).unwrap();
    let refused = async {
        loop {
            match swarm.select_next_some().await {
                SwarmEvent::ListenerClosed { reason, .. } => return reason.is_err(),
                SwarmEvent::NewListenAddr { address, .. } => panic!("it listens at {address}"),
                SwarmEvent::Behaviour(event) => panic!("{event:?}"),
                _ => {}
            }
        }
    };
    assert!(timeout(WAIT, refused).await.unwrap());
}
