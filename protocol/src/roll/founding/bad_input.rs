//! Messages that no peer should send, and what comes twice, late, or from another peer.

use super::tests::{Swarm, founding};
use super::*;
use crate::limits::{FOUNDING_RECORDS_MAX, ROLL_PEERS_MAX};
use crate::roll::tests::record;
use crate::wire::{Message, RecordFields};

fn said(peer: &mut Founding) -> Vec<FoundingMessage> {
    peer.says()
        .into_iter()
        .map(|(_, message)| message)
        .collect()
}

fn ballot(number: u32, founder: u16) -> FoundingBallot {
    FoundingBallot {
        number,
        founder: Some(record(founder).peer),
    }
}

fn roll(ids: std::ops::Range<u16>) -> Roll {
    Roll::found(ids.map(record), 0, Round(0))
}

fn page(roll: RollName, first: u16, records: Vec<PeerRecord>) -> FoundingMessage {
    let roll = roll.digest;
    FoundingMessage::Page {
        roll,
        first,
        records,
    }
}

/// The place from which a peer asks for a page, in the messages that it has to say.
fn asks_from(peer: &mut Founding) -> Vec<u16> {
    let first = |message| match message {
        FoundingMessage::PageAsk { first, .. } => Some(first),
        _ => None,
    };
    said(peer).into_iter().filter_map(first).collect()
}

#[test]
fn a_refused_founder_learns_which_number_is_too_low() {
    let mut registrar = founding(1, 2);
    let high = ballot(7, 3);
    registrar.said(&record(3), &FoundingMessage::Prepare { ballot: high });
    said(&mut registrar);
    let low = ballot(1, 2);
    registrar.said(&record(2), &FoundingMessage::Prepare { ballot: low });
    let promise = FoundingMessage::Promise {
        ballot: high,
        accepted: None,
    };
    assert_eq!(said(&mut registrar), std::slice::from_ref(&promise));
    let mut founder = founding(2, 1);
    founder.said(&record(1), &promise);
    (0..FOUNDING_QUIET_TICKS).for_each(|_| founder.tick(&[]));
    let number = founder.proposal.map(|proposal| proposal.ballot.number);
    assert_eq!(number, Some(8));
}

#[test]
fn nothing_is_accepted_below_a_promise() {
    let mut registrar = founding(1, 2);
    let high = ballot(7, 3);
    registrar.said(&record(3), &FoundingMessage::Prepare { ballot: high });
    said(&mut registrar);
    let roll = roll(1..4);
    registrar
        .rolls
        .insert(roll.digest(), Arc::new(roll.clone()));
    let accept = |ballot| FoundingMessage::Accept {
        ballot,
        roll: roll.name(),
    };
    registrar.said(&record(2), &accept(ballot(6, 2)));
    assert_eq!(registrar.acceptor.accepted, None);
    let promise = FoundingMessage::Promise {
        ballot: high,
        accepted: None,
    };
    assert_eq!(said(&mut registrar), [promise]);
    registrar.said(&record(3), &accept(high));
    let accepted = FoundingMessage::Accepted { ballot: high };
    assert_eq!(said(&mut registrar), [accepted]);
}

#[test]
fn no_registrar_accepts_two_rolls_in_one_ballot() {
    let mut acceptor = Acceptor::default();
    let (ballot, one, other) = (ballot(1, 2), roll(1..4).name(), roll(1..5).name());
    assert!(acceptor.accept(ballot, one));
    assert!(!acceptor.accept(ballot, other));
    assert!(acceptor.accept(ballot, one), "it may be asked twice");
    assert_eq!(acceptor.accepted, Some((ballot, one)));
}

#[test]
fn a_ballot_in_another_name_is_ignored() {
    let mut registrar = founding(1, 2);
    let (ballot, roll) = (ballot(7, 3), roll(1..4).name());
    registrar.said(&record(2), &FoundingMessage::Prepare { ballot });
    registrar.said(&record(2), &FoundingMessage::Accept { ballot, roll });
    assert_eq!(said(&mut registrar), []);
    assert_eq!(registrar.acceptor, Acceptor::default());
    assert!(registrar.asked.is_none());
}

/// A founder of three that has promised itself, and its ballot.
fn proposing() -> (Founding, FoundingBallot) {
    let mut swarm = Swarm::new(0..3, 3);
    let prepare = |message: &FoundingMessage| matches!(message, FoundingMessage::Prepare { .. });
    swarm.ticks(FOUNDING_QUIET_TICKS + 2, |message| !prepare(message));
    let founder = swarm.founder();
    let founder = swarm.peers.remove(&founder).expect("it lives");
    let ballot = founder.proposal.as_ref().map(|proposal| proposal.ballot);
    (founder, ballot.expect("it proposes"))
}

#[test]
fn only_registrars_count_and_each_counts_once() {
    let (mut founder, ballot) = proposing();
    let promises = |founder: &Founding| founder.proposal.as_ref().map(|p| p.promises.len());
    let accepted = None;
    let promise = FoundingMessage::Promise { ballot, accepted };
    founder.said(&record(9), &promise);
    assert_eq!(promises(&founder), Some(1), "a stranger");
    let others: Vec<u16> = (0..3)
        .filter(|id| record(*id).peer != founder.me.peer)
        .collect();
    founder.said(&record(others[0]), &promise);
    founder.said(&record(others[0]), &promise);
    assert_eq!(promises(&founder), Some(2), "the same twice");
    // What was accepted in a ballot above the promise makes no sense.
    let above = FoundingBallot {
        number: ballot.number + 1,
        ..ballot
    };
    let accepted = Some((above, roll(5..9).name()));
    let nonsense = FoundingMessage::Promise { ballot, accepted };
    founder.said(&record(others[1]), &nonsense);
    assert_eq!(promises(&founder), Some(2));
    founder.said(&record(others[1]), &promise);
    let accepted = FoundingMessage::Accepted { ballot };
    for from in [9, others[0], others[0]] {
        founder.said(&record(from), &accepted);
    }
    assert!(founder.roll().is_none(), "two of three");
    founder.said(&record(others[1]), &accepted);
    assert!(founder.roll().is_some());
}

#[test]
fn the_highest_number_leaves_a_founder_without_a_panic() {
    let mut founder = founding(1, 1);
    let last = ballot(u32::MAX, 3);
    founder.said(&record(3), &FoundingMessage::Prepare { ballot: last });
    (0..100).for_each(|_| founder.tick(&[record(3)]));
    assert!(founder.roll().is_none());
}

#[test]
fn pages_that_do_not_make_the_roll_are_asked_for_again() {
    let (right, wrong) = (roll(1..4), roll(4..7));
    let name = right.name();
    let mut peer = founding(9, 2);
    peer.said(&record(1), &FoundingMessage::Founded(name));
    assert_eq!(asks_from(&mut peer), [0]);
    peer.said(&record(1), &page(name, 0, wrong.page(0, 10_000)));
    assert!(peer.roll().is_none());
    let twice = vec![record(1), record(1), record(2)];
    peer.tick(&[record(2)]);
    assert_eq!(asks_from(&mut peer), [0], "from the beginning");
    peer.said(&record(1), &page(name, 0, twice));
    assert!(peer.roll().is_none());
    peer.said(&record(2), &page(name, 0, right.page(0, 10_000)));
    assert_eq!(peer.roll().map(|roll| roll.digest()), Some(name.digest));
}

#[test]
fn pages_beyond_a_roll_or_of_another_run_are_ignored() {
    let right = roll(1..6);
    let name = right.name();
    let mut peer = founding(9, 2);
    peer.said(&record(1), &FoundingMessage::Founded(name));
    let records = right.page(0, 10_000);
    let other_run = PeerRecord::from(RecordFields {
        run: RunId::from_bytes([2; 32]),
        ..(*record(1)).clone()
    });
    let long: Vec<PeerRecord> = (1..7).map(record).collect();
    for (first, records) in [
        (0, Vec::new()),
        (0, long),
        (0, vec![other_run]),
        (3, records[3..].to_vec()),
        (u16::MAX, records.clone()),
    ] {
        peer.said(&record(1), &page(name, first, records));
        assert_eq!(peer.incoming.as_ref().map(Incoming::next), Some(0));
    }
    peer.said(&record(1), &page(name, 0, records[..2].to_vec()));
    peer.said(&record(1), &page(name, 0, records[..2].to_vec()));
    assert_eq!(asks_from(&mut peer), [0, 2], "no ask for what came twice");
    peer.said(&record(2), &page(name, 2, records[2..].to_vec()));
    assert!(peer.roll().is_some());
    let roll = name.digest;
    for first in [5, u16::MAX] {
        peer.said(&record(1), &FoundingMessage::PageAsk { roll, first });
    }
    assert_eq!(said(&mut peer), []);
}

#[test]
fn a_roll_comes_from_holders_whose_records_differ_in_length() {
    let long = |id| {
        PeerRecord::from(RecordFields {
            addresses: vec![vec![7; 200]; 4],
            ..(*record(id)).clone()
        })
    };
    let short = roll(1..9);
    let long = Roll::found((1..9).map(long), 0, Round(0));
    assert_eq!(short.name(), long.name(), "addresses are no part of it");
    let mut peer = founding(9, 2);
    peer.said(&record(1), &FoundingMessage::Founded(short.name()));
    for (holder, from) in [(&short, 1), (&long, 2), (&short, 1), (&long, 2)].repeat(4) {
        let next = peer.incoming.as_ref().map(Incoming::next);
        if let Some(first) = next {
            let records = holder.page(first, 400);
            peer.said(&record(from), &page(short.name(), first, records));
        }
    }
    assert_eq!(peer.roll().map(|roll| roll.name()), Some(long.name()));
}

#[test]
fn no_more_peers_register_than_a_roll_holds_and_none_of_another_run() {
    let mut registrar = founding(0, 2);
    let all: Vec<PeerRecord> = (1..=ROLL_PEERS_MAX as u16 + 1).map(record).collect();
    for some in all.chunks(FOUNDING_RECORDS_MAX) {
        registrar.said(&record(1), &FoundingMessage::Here(some.to_vec()));
    }
    assert_eq!(registrar.register.here_count(), ROLL_PEERS_MAX);
    assert_eq!(registrar.register.registrars().count(), REGISTRARS_MAX);
    let mut registrar = founding(0, 2);
    let stranger = PeerRecord::from(RecordFields {
        run: RunId::from_bytes([2; 32]),
        ..(*record(1)).clone()
    });
    registrar.said(&record(1), &FoundingMessage::Here(vec![stranger.clone()]));
    registrar.said(&record(1), &FoundingMessage::Registrars(vec![stranger]));
    assert_eq!(registrar.register.here_count(), 1);
    assert_eq!(registrar.register.registrars().count(), 1);
}

#[test]
fn an_older_record_does_not_replace_a_newer_one() {
    let newer = PeerRecord::from(RecordFields {
        sequence: 5,
        ..(*record(1)).clone()
    });
    let mut peer = founding(0, 2);
    for record in [newer, record(1)] {
        peer.said(&record, &FoundingMessage::Here(vec![record.clone()]));
    }
    let sequence = |record: &PeerRecord| record.sequence;
    let at = record(1).peer;
    assert_eq!(peer.register.record(at).map(sequence), Some(5));
    let mut all = peer.register.registrars();
    let known = all.find(|record| record.peer == at);
    assert_eq!(known.map(sequence), Some(5));
}

#[test]
fn counts_beyond_the_limits_are_refused() {
    let digest = Digest::of(b"roll");
    let name = |peers| RollName { digest, peers };
    let most = ROLL_PEERS_MAX as u16;
    let roll = digest;
    let ask = |first| FoundingMessage::PageAsk { roll, first };
    let here = |count| FoundingMessage::Here((0..count).map(record).collect());
    for (message, fits) in [
        (FoundingMessage::Founded(name(most)), true),
        (FoundingMessage::Founded(name(most + 1)), false),
        (FoundingMessage::Founded(name(0)), false),
        (ask(most - 1), true),
        (ask(most), false),
        (here(FOUNDING_RECORDS_MAX as u16), true),
        (here(FOUNDING_RECORDS_MAX as u16 + 1), false),
    ] {
        assert_eq!(Message::Founding(message).check().is_ok(), fits);
    }
}
