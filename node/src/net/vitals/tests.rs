//! Boards with real signatures: on their own, and between networks on loopback.

use super::board::{Queue, VitalsBoard};
use super::table::{KEPT, Table};
use crate::bulk::tests::TestStore;
use crate::net::tests::{link, open_config, side, started};
use crate::net::{Membership, from_libp2p, now_s};
use libp2p::identity::Keypair;
use murmurate_protocol::limits::VITALS_PEERS_MAX;
use murmurate_protocol::vitals::{DaemonName, Heard, Known, SignedVitals, Vitals, VitalsMessage};
use murmurate_protocol::wire::WireError;
use murmurate_protocol::{PeerId, Phase, Round, RunId, Signature, SortedMap, SortedSet};
use murmurate_trust::{Register, RunKey};
use std::sync::Arc;
use std::time::{Duration, Instant};

const RUN: RunId = RunId::from_bytes([1; 32]);

fn vitals(round: u64) -> Vitals {
    Vitals {
        sequence: 0,
        unix_ms: 1,
        name: Some(DaemonName::new("gpu 1").unwrap()),
        steps_per_s: Some(3.0),
        ..crate::tests::vitals(PeerId::from_bytes([0; 32]), round, Phase::Train)
    }
}

/// A daemon's key and its board in an open run.
fn board() -> (PeerId, VitalsBoard) {
    let keys = Keypair::generate_ed25519();
    let me = from_libp2p(&keys.public().to_peer_id()).unwrap();
    let membership = Arc::new(Membership::open(RUN, me));
    (me, VitalsBoard::new(keys, membership))
}

/// Two daemons with one key, as in a copied directory, which have run for a minute; and a third one.
fn copied() -> (PeerId, [VitalsBoard; 2], (PeerId, VitalsBoard)) {
    let keys = Keypair::generate_ed25519();
    let me = from_libp2p(&keys.public().to_peer_id()).unwrap();
    let born = Instant::now() - Duration::from_secs(60);
    let twin = || {
        let membership = Arc::new(Membership::open(RUN, me));
        VitalsBoard::since(born, keys.clone(), membership)
    };
    (me, [twin(), twin()], board())
}

/// Delivers what waits in a queue, and the answers to it, until nothing waits.
fn deliver(between: [(&VitalsBoard, PeerId, &mut Queue); 2]) {
    let [(a, a_id, to_b), (b, b_id, to_a)] = between;
    loop {
        let (there, back) = (to_b.try_recv(), to_a.try_recv());
        if there.is_err() && back.is_err() {
            return;
        }
        for (bytes, to, from) in [(there, b, a_id), (back, a, b_id)] {
            if let Ok(bytes) = bytes {
                to.take(from, VitalsMessage::decode(&bytes).unwrap())
                    .unwrap();
            }
        }
    }
}

#[test]
fn two_daemons_with_one_identity_hear_of_each_other_through_a_third_one() {
    let (me, [old, copy], (third_id, third)) = copied();
    let meet = |one: &VitalsBoard| {
        let (mut there, mut back) = (one.open(third_id), third.open(me));
        deliver([(one, me, &mut there), (&third, third_id, &mut back)]);
        one.close(&third_id);
        third.close(&me);
    };
    let at = |unix_ms, phase| Vitals {
        unix_ms,
        phase,
        ..vitals(unix_ms)
    };
    old.say(at(1_000, Phase::Train));
    meet(&old);
    assert_eq!(old.elsewhere(), None, "these are its own");
    copy.say(at(900, Phase::Train));
    meet(&copy);
    let seen = copy.elsewhere().expect("the copy hears of the other one");
    assert_eq!(seen.vitals.round, Round(1_000));
    // The other one has said nothing since, and hears of the copy at once.
    copy.say_to_the_other(at(910, Phase::Leaving));
    assert_eq!(old.elsewhere(), None);
    // Another third one, because one looks at vitals of a peer every two seconds.
    let (third_id, third) = board();
    for one in [&copy, &old] {
        let (mut there, mut back) = (one.open(third_id), third.open(me));
        deliver([(one, me, &mut there), (&third, third_id, &mut back)]);
        one.close(&third_id);
        third.close(&me);
    }
    let seen = old.elsewhere().expect("it is told of the copy");
    assert_eq!(
        (seen.vitals.round, seen.vitals.phase),
        (Round(910), Phase::Leaving)
    );
}

/// In a run of one other daemon the two replace each other's link, and the newer words are always those of the one
/// that is linked.
#[test]
fn two_daemons_that_are_linked_in_turn_hear_of_each_other() {
    let (me, [old, copy], (third_id, third)) = copied();
    for (one, number) in [(&copy, 900), (&old, 1_000)] {
        one.say(Vitals {
            unix_ms: number,
            ..vitals(number)
        });
        let (mut there, mut back) = (one.open(third_id), third.open(me));
        deliver([(one, me, &mut there), (&third, third_id, &mut back)]);
        one.close(&third_id);
        third.close(&me);
    }
    assert_eq!(copy.elsewhere(), None);
    let seen = old.elsewhere().expect("the old one hears of the copy");
    assert_eq!(seen.vitals.round, Round(900));
}

#[test]
fn vitals_of_an_earlier_life_are_not_those_of_another_daemon() {
    let keys = Keypair::generate_ed25519();
    let me = from_libp2p(&keys.public().to_peer_id()).unwrap();
    let (third, _) = board();
    let membership = || Arc::new(Membership::open(RUN, me));
    let life = Duration::from_secs(30);
    let here = VitalsBoard::since(Instant::now() - life, keys.clone(), membership());
    // The clock was set back between the two lives, so the number is higher than any of this life.
    let told = |age: Duration| {
        let signed = signed(&keys, me, 1_000_000);
        let age_ms = age.as_millis() as u32;
        VitalsMessage::Vitals(vec![Heard { age_ms, signed }])
    };
    assert_eq!(
        here.take(third, told(life + Duration::from_secs(1))),
        Ok(())
    );
    assert_eq!(here.elsewhere(), None);
    assert_eq!(here.take(third, told(life / 2)), Ok(()));
    assert!(here.elsewhere().is_some(), "this life did not make them");
    // No other peer can pretend it.
    let here = VitalsBoard::since(Instant::now() - life, keys.clone(), membership());
    let forged = signed(&Keypair::generate_ed25519(), me, 1_000_000);
    let forged = VitalsMessage::Vitals(vec![heard(forged)]);
    assert_eq!(here.take(third, forged), Err(WireError::Signature));
    assert_eq!(here.elsewhere(), None);
}

/// Vitals with this sequence, signed by these keys.
fn signed(keys: &Keypair, about: PeerId, sequence: u64) -> SignedVitals {
    let vitals = Vitals {
        peer: about,
        sequence,
        ..vitals(sequence)
    };
    let signature = keys.sign(&SignedVitals::statement(&RUN, &vitals)).unwrap();
    let signature = Signature::from_bytes(signature.try_into().unwrap());
    SignedVitals { vitals, signature }
}

fn heard(signed: SignedVitals) -> Heard {
    Heard { age_ms: 0, signed }
}

fn someone(number: u16) -> PeerId {
    let mut bytes = [0xee; 32];
    bytes[..2].copy_from_slice(&number.to_be_bytes());
    PeerId::from_bytes(bytes)
}

/// Vitals whose signature no one has looked at.
fn of_someone(number: u16, sequence: u64) -> Heard {
    heard(signed(
        &Keypair::generate_ed25519(),
        someone(number),
        sequence,
    ))
}

#[test]
fn what_a_daemon_says_is_believed_of_itself_only() {
    let (me, here) = board();
    let keys = Keypair::generate_ed25519();
    let honest = from_libp2p(&keys.public().to_peer_id()).unwrap();
    let (liar, _) = board();
    let told = VitalsMessage::Vitals(vec![heard(signed(&keys, honest, 5))]);
    // Passed on by a third one, which is fine.
    assert_eq!(here.take(liar, told), Ok(()));
    assert_eq!(here.seen()[0].vitals.round, Round(5));
    for forged in [
        // In the name of another.
        signed(&Keypair::generate_ed25519(), honest, 9),
        // A changed field.
        {
            let mut changed = signed(&keys, honest, 9);
            changed.vitals.loss = Some(0.0);
            changed
        },
        // A name that is no key.
        signed(&keys, PeerId::from_bytes([2; 32]), 9),
    ] {
        let about = forged.vitals.peer;
        let (_, other) = board();
        let told = VitalsMessage::Vitals(vec![heard(forged)]);
        assert_eq!(other.take(liar, told), Err(WireError::Signature), "{about}");
        assert_eq!(other.seen(), []);
    }
    // What it says of this daemon is not looked at.
    let told = VitalsMessage::Vitals(vec![heard(signed(&keys, me, 9))]);
    assert_eq!(here.take(liar, told), Ok(()));
    assert_eq!(here.seen().len(), 1);
}

#[test]
fn only_members_of_a_closed_run_are_shown() {
    let key = RunKey::from_seed("birds".to_owned(), [7; 32]);
    let run = key.run();
    let keys = Keypair::generate_ed25519();
    let me = from_libp2p(&keys.public().to_peer_id()).unwrap();
    let (chain, mut register) = (
        key.certify_self(&run, me, now_s()),
        Register::new(run.clone()),
    );
    let member = Keypair::generate_ed25519();
    let of_member = from_libp2p(&member.public().to_peer_id()).unwrap();
    let certified = key.certify_self(&run, of_member, now_s());
    register.admit(&certified, &of_member, now_s()).unwrap();
    let here = VitalsBoard::new(keys, Arc::new(Membership::new(me, chain, register)));
    let sign = |keys: &Keypair, about| {
        let vitals = Vitals {
            peer: about,
            sequence: 1,
            ..vitals(1)
        };
        let signature = keys.sign(&SignedVitals::statement(&run.id, &vitals));
        let signature = Signature::from_bytes(signature.unwrap().try_into().unwrap());
        heard(SignedVitals { vitals, signature })
    };
    let stranger = Keypair::generate_ed25519();
    let of_stranger = from_libp2p(&stranger.public().to_peer_id()).unwrap();
    let told = vec![sign(&member, of_member), sign(&stranger, of_stranger)];
    // The sender may know of members that this daemon does not know.
    let from = PeerId::from_bytes([3; 32]);
    assert_eq!(here.take(from, VitalsMessage::Vitals(told)), Ok(()));
    let seen: Vec<PeerId> = here.seen().iter().map(|seen| seen.vitals.peer).collect();
    assert_eq!(seen, [of_member]);
}

#[test]
fn the_newest_wins_and_checks_are_rare() {
    let mut table = Table::new(someone(999));
    let (now, none) = (Instant::now(), SortedSet::new());
    assert!(table.keep(of_someone(1, 5), now, &none));
    let later = now + Duration::from_secs(3);
    assert!(!table.wants(&of_someone(1, 4), later), "older");
    assert!(!table.wants(&of_someone(1, 5), later), "the same");
    assert!(!table.wants(&of_someone(1, 6), now), "a moment later");
    assert!(table.keep(of_someone(1, 6), later, &none));
    let age_ms = u32::try_from(KEPT.as_millis()).unwrap();
    let old = Heard {
        age_ms,
        ..of_someone(2, 1)
    };
    assert!(!table.wants(&old, later), "too old to show");
    let aged = Heard {
        age_ms: 4000,
        ..of_someone(3, 1)
    };
    assert!(table.keep(aged, later, &none));
    let seen = table.seen(later + Duration::from_secs(1));
    let ages: Vec<u64> = seen.iter().map(|seen| seen.age.as_secs()).collect();
    assert_eq!(ages, [1, 5], "ages add up on the way");
    table.tidy(later + KEPT - Duration::from_secs(2), |_| true);
    let left = table.seen(later).len();
    assert_eq!(left, 1, "the aged one is forgotten first");
    table.tidy(later, |peer| *peer != someone(1));
    assert!(table.seen(later).is_empty(), "no member any more");
}

#[test]
fn of_three_hundred_peers_as_many_are_kept_as_there_is_room_for() {
    let mut table = Table::new(someone(999));
    let now = Instant::now();
    let linked: SortedSet<PeerId> = (0..20).chain(290..300).map(someone).collect();
    let keep = |table: &mut Table, number, now| table.keep(of_someone(number, 1), now, &linked);
    let kept = (0..290).filter(|number| keep(&mut table, *number, now));
    assert_eq!(kept.count(), VITALS_PEERS_MAX);
    // Those that are linked find room, at the cost of those that are not.
    assert!((290..300).all(|number| keep(&mut table, number, now)));
    assert_eq!(table.seen(now).len(), VITALS_PEERS_MAX);
    let known: Vec<Known> = table.known();
    assert_eq!(known.len(), VITALS_PEERS_MAX);
    // Once vitals are old, others take their place, but never that of a link.
    assert!(!keep(&mut table, 280, now + Duration::from_secs(10)));
    let later = now + Duration::from_secs(20);
    let more = (300..700).filter(|number| keep(&mut table, *number, later));
    assert_eq!(more.count(), VITALS_PEERS_MAX - linked.len());
    let seen: SortedSet<PeerId> = table.seen(later).iter().map(|s| s.vitals.peer).collect();
    assert!(linked.is_subset(&seen));
    // A daemon without room asks for none that it does not have.
    let strangers: Vec<Known> = (1000..1100)
        .map(|peer| Known { peer, sequence: 1 })
        .collect();
    assert!(table.difference(&strangers, later).wanted.is_empty());
}

/// Carries what waits in the queues until all are empty.
fn carry(boards: &[(PeerId, VitalsBoard)], queues: &mut SortedMap<(usize, usize), Queue>) {
    loop {
        let mut moved = false;
        for ((from, to), queue) in queues.iter_mut() {
            while let Ok(bytes) = queue.try_recv() {
                let message = VitalsMessage::decode(&bytes).unwrap();
                boards[*to].1.take(boards[*from].0, message).unwrap();
                moved = true;
            }
        }
        if !moved {
            return;
        }
    }
}

#[test]
fn gossip_carries_vitals_around_a_ring() {
    let boards: Vec<_> = (0..12).map(|_| board()).collect();
    let mut queues = SortedMap::new();
    for at in 0..boards.len() {
        boards[at].1.say(vitals(at as u64));
        for next in [(at + 1) % 12, (at + 11) % 12] {
            queues.insert((at, next), boards[at].1.open(boards[next].0));
        }
    }
    let most = 12;
    let rounds = (0..most).find(|_| {
        for (_, board) in &boards {
            board.gossip();
        }
        carry(&boards, &mut queues);
        boards.iter().all(|(_, board)| board.seen().len() == 11)
    });
    assert!(rounds.is_some(), "not all heard of all after {most} rounds");
    // What has not changed is not sent again: only lists travel.
    let before = boards[0].1.clone();
    before.gossip();
    let lists = queues
        .values_mut()
        .filter_map(|queue| queue.try_recv().ok());
    let lists: Vec<_> = lists
        .map(|bytes| VitalsMessage::decode(&bytes).unwrap())
        .collect();
    assert!(matches!(lists.as_slice(), [VitalsMessage::Known(all)] if all.len() == 12));
    // The link to a peer ends: nothing is queued for it.
    before.close(&boards[1].0);
    before.say(vitals(99));
    assert!(queues.get_mut(&(0, 1)).unwrap().try_recv().is_err());
    assert!(queues.get_mut(&(0, 11)).unwrap().try_recv().is_ok());
}

#[test]
fn a_full_queue_drops_what_is_said() {
    let (_, here) = board();
    let mut waiting = here.open(someone(1));
    for round in 0..100 {
        here.say(vitals(round));
    }
    let mut count = 0;
    while waiting.try_recv().is_ok() {
        count += 1;
    }
    assert!((2..=20).contains(&count), "{count}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vitals_cross_links_and_daemons_between() {
    let (mut a, mut b) = (side().await, side().await);
    let mut config = open_config(Keypair::generate_ed25519());
    config.listen = vec!["/ip4/127.0.0.1/udp/0/quic-v1".parse().unwrap()];
    let mut c = started(config, TestStore::default()).await;
    // The first and the last never meet.
    a.net.block(SortedSet::from([c.id])).unwrap();
    c.net.block(SortedSet::from([a.id])).unwrap();
    a.net.vitals().say(vitals(7));
    link(&mut a, &mut b).await;
    link(&mut b, &mut c).await;
    let until = Instant::now() + Duration::from_secs(60);
    let found = loop {
        if let Some(seen) = c
            .net
            .vitals()
            .seen()
            .into_iter()
            .find(|s| s.vitals.peer == a.id)
        {
            break seen;
        }
        assert!(Instant::now() < until, "{:?}", c.net.vitals().seen());
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(found.vitals.round, Round(7));
    assert_eq!(found.vitals.name, Some(DaemonName::new("gpu 1").unwrap()));
    let (sent, received) = b.net.vitals().traffic();
    assert!(sent > 0 && received > 0, "{sent} {received}");
}
