//! The all-reduce with agreement, member by member: deaths at the worst moments, liars, and slices
//! that no member needs any more.

use crate::common::club::Club;
use crate::common::{peer, slice};
use murmurate_protocol::limits::{HISTORY_ROUNDS_MAX, SCORE_MAX};
use murmurate_protocol::wire::{
    Ballot, FragmentMessage, Hello, Member, MembershipMessage, Muster, Scoped, ShardPlan,
    ShardVersion, WireError,
};
use murmurate_protocol::{
    Digest, Event, FragmentId, GroupTag, Input, Members, Output, Part, PeerId, Phase, PushOutcome,
    Round, SliceId, SliceMeta, Tag,
};

fn exchanging(club: &Club, round: u64) -> bool {
    club.members
        .values()
        .all(|m| m.peer.round().0 == round && m.peer.phase() == Phase::Exchange)
}

/// Runs to the moment when all members have a group for the round.
fn grouped(club: &mut Club, round: u64) -> GroupTag {
    let has = |e: &Event| matches!(e, Event::Group { round: r, .. } if r.0 == round);
    club.run_until(60, |club| {
        club.members.values().all(|m| m.events.iter().any(has))
    });
    assert!(exchanging(club, round));
    let members: Vec<PeerId> = club.members.keys().copied().collect();
    GroupTag::of(Round(round), &members)
}

#[test]
fn members_hold_the_same_bits_round_after_round() {
    let mut club = Club::new(4);
    club.run_to(5);
    club.run_until(1, |club| !exchanging(club, 5));
    let everyone: Vec<PeerId> = club.members.keys().copied().collect();
    for round in 0..5 {
        let decided = club.decided(round);
        assert_eq!(decided.len(), 4, "round {round}");
        assert!(decided.iter().all(|d| *d == (0, vec![everyone.clone(); 4])));
    }
    club.assert_rules();
}

#[test]
fn every_slice_is_released_but_those_that_stragglers_may_ask_for() {
    let mut club = Club::new(3);
    let rounds = 2 * HISTORY_ROUNDS_MAX as u64;
    club.run_to(rounds);
    for member in club.members.values() {
        let oldest = rounds - 1 - HISTORY_ROUNDS_MAX as u64;
        let past = member.store.keys().filter(|s| s.round.0 < rounds - 1);
        for slice in past {
            assert_eq!(slice.part, Part::Aggregate, "{slice:?}");
            assert!(slice.round.0 >= oldest, "{slice:?}");
        }
        assert!(member.store.len() <= 3 * (HISTORY_ROUNDS_MAX + 2) + 6);
    }
}

#[test]
fn survivors_decide_the_same_though_an_owner_died_after_serving_half_the_group() {
    let mut club = Club::new(5);
    club.run_to(1);
    let victim = peer(2);
    // Only two of four get its reduction before it dies.
    club.fate = Box::new(move |from, to, slice| {
        let served = to < peer(4);
        let reduction = from == victim && slice.part == Part::Aggregate && slice.round == Round(1);
        (served || !reduction).then_some(PushOutcome::Delivered)
    });
    club.run_until(60, |club| {
        let holds =
            |s: &SliceId| s.round == Round(1) && s.origin == victim && s.part == Part::Aggregate;
        club.members[&peer(3)].store.keys().any(holds)
    });
    club.kill(victim);
    club.run_to(3);
    let decided = club.decided(1);
    assert_eq!(decided.len(), 4);
    assert!(decided.iter().all(|d| *d == decided[0]), "{decided:?}");
    assert!(decided[0].0 > 0, "it took a ballot");
    club.run_until(1, |club| exchanging(club, 3));
    club.anchor();
}

#[test]
fn survivors_decide_the_same_though_the_coordinator_of_the_ballot_dies_too() {
    let mut club = Club::new(5);
    club.run_to(1);
    grouped(&mut club, 1);
    let victim = peer(2);
    club.fate = Box::new(move |from, _, slice| {
        let reduction = from == victim && slice.part == Part::Aggregate;
        (!reduction).then_some(PushOutcome::Delivered)
    });
    let mut coordinator = None;
    let (tell, told) = std::sync::mpsc::channel();
    club.hears = Box::new(move |from, _, message| {
        if matches!(message.name(), "prepare" | "repair") {
            let first = *coordinator.get_or_insert(from);
            let _ = tell.send(first);
            return from != first;
        }
        true
    });
    club.kill(victim);
    let mut dead = None;
    for _ in 0..10_000 {
        club.run_until(60, |club| {
            club.decided(1).len() >= 3 || club.voided(1) > 0 || told_some(&told, &mut dead)
        });
        match dead.take() {
            Some(coordinator) if club.members.contains_key(&coordinator) => club.kill(coordinator),
            _ => break,
        }
    }
    club.run_to(2);
    let decided = club.decided(1);
    assert_eq!(decided.len(), 3, "{decided:?}");
    assert!(
        decided.iter().all(|d| *d == decided[0] && d.0 > 1),
        "{decided:?}"
    );
}

fn told_some(told: &std::sync::mpsc::Receiver<PeerId>, dead: &mut Option<PeerId>) -> bool {
    *dead = dead.or(told.try_recv().ok());
    dead.is_some()
}

#[test]
fn a_pair_of_which_one_died_agrees_on_nothing() {
    let mut club = Club::new(2);
    club.run_to(1);
    let before = {
        club.run_until(60, |club| exchanging(club, 1));
        club.anchor()
    };
    grouped(&mut club, 1);
    club.kill(peer(2));
    club.run_to(2);
    assert_eq!((club.decided(1).len(), club.voided(1)), (0, 1));
    assert_eq!(club.anchor(), before, "the anchor stays");
}

#[test]
fn the_sender_of_bad_slices_is_left_out_scored_and_loses_its_seat() {
    let mut club = Club::new(3);
    club.run_to(1);
    club.run_until(60, |club| exchanging(club, 1));
    club.bad = Some(peer(3));
    club.run_to(2);
    let decided = club.decided(1);
    assert_eq!(decided.len(), 3);
    // It owns one shard and does not check its own contribution to it.
    assert_eq!(decided[0].1[0], [peer(1), peer(2)]);
    assert_eq!(decided[0].1[1], [peer(1), peer(2)]);
    let score = |club: &Club| {
        club.members[&peer(1)]
            .peer
            .view()
            .get(peer(3))
            .map(|r| r.score)
    };
    assert_eq!(score(&club), Some(SCORE_MAX / 10));
    // After some rounds in which nothing of it counts, rounds go on without it.
    club.run_to(12);
    assert!(
        score(&club) >= Some(7 * SCORE_MAX / 10),
        "{:?}",
        score(&club)
    );
    let without = club.decided(11);
    assert_eq!(without[0].1[0], [peer(1), peer(2)]);
}

#[test]
fn ten_broken_rules_cut_a_peer_off_and_nine_do_not() {
    let mut club = Club::new(2);
    club.run_to(1);
    for count in 1..=10u32 {
        let me = club.members.get_mut(&peer(1)).expect("a member");
        let input = Input::Malformed {
            from: peer(2),
            error: WireError::Empty,
        };
        assert!(me.peer.handle(club.now, input).is_err());
        let remote = me.peer.view().get(peer(2)).expect("it is known");
        assert_eq!((remote.score, remote.banned), (10 * count, count == 10));
    }
    let me = club.members.get_mut(&peer(1)).expect("a member");
    let mut closed = false;
    while let Some(output) = me.peer.poll_output() {
        closed |= matches!(output, Output::Disconnect { peer: p, .. } if p == peer(2));
    }
    assert!(closed);
}

#[test]
fn peers_outside_a_group_cannot_decide_repair_or_void_its_exchange() {
    let mut club = Club::new(4);
    club.run_to(1);
    club.kill(peer(4));
    let group = grouped(&mut club, 1);
    let (round, fragment) = (Round(1), FragmentId(0));
    let outsider = peer(9);
    let plan = club.members[&peer(1)].peer.plan().clone();
    let hello = Input::Received {
        from: outsider,
        message: MembershipMessage::Hello(Hello {
            run: plan.run,
            layout: plan.layout,
            plan: plan.hash(),
            round,
            anchor: club.anchor(),
            ready: false,
            muster: Muster::Waiting,
            branch: None,
        })
        .into(),
    };
    let ballot = Ballot {
        number: 3,
        coordinator: outsider,
    };
    let version = ShardVersion {
        owner: peer(1),
        attempt: murmurate_protocol::Attempt(0),
        contributors: Members::one(0),
        digest: Digest::of(b"made up"),
    };
    let lies = [
        FragmentMessage::Prepare { ballot },
        FragmentMessage::Void { ballot },
        FragmentMessage::Repair {
            ballot,
            alive: Members::one(0),
            shards: vec![ShardPlan::Redo { owner: peer(1) }; 3],
        },
        FragmentMessage::Decided {
            ballot: 0,
            members: vec![Member::new(peer(1), 1.0)],
            versions: vec![version; 3],
        },
    ];
    let me = club.members.get_mut(&peer(1)).expect("a member");
    let _ = me.peer.handle(club.now, Input::LinkUp(outsider));
    let _ = me.peer.handle(club.now, hello);
    for body in lies {
        let message = Scoped {
            round,
            fragment,
            group,
            body,
        };
        let input = Input::Received {
            from: outsider,
            message: message.into(),
        };
        assert!(me.peer.handle(club.now, input).is_err());
    }
    while me.peer.poll_output().is_some() {}
    club.run_to(2);
    let decided = club.decided(1);
    assert_eq!(decided.len(), 3, "{decided:?}");
    assert!(
        decided.iter().all(|d| d.0 == 0 && d.1.len() == 3),
        "{decided:?}"
    );
}

#[test]
fn a_stranger_s_slice_is_released_and_never_waits() {
    let mut club = Club::new(2);
    club.run_to(1);
    let meta = SliceMeta {
        of: 2,
        bytes: 48,
        tag: Tag::Contribution {
            group: GroupTag::from_bits(1),
        },
    };
    // A stranger's own, and one that a member took from this peer.
    for (from, origin) in [(9, 9), (2, 1)] {
        let arrived = Input::Arrived {
            from: peer(from),
            slice: slice(1, Part::Contribution, origin),
            meta,
            digest: None,
        };
        club.tell(peer(1), arrived);
    }
    club.run_to(2);
    assert!(
        club.members[&peer(1)]
            .store
            .keys()
            .all(|s| s.origin != peer(9))
    );
    assert_eq!(club.members[&peer(1)].broken.len(), 2);
}

#[test]
fn a_repeated_push_says_how_long_its_slice_is() {
    // The club asserts the length of every push; each first one is lost.
    let mut club = Club::new(3);
    let mut seen = std::collections::BTreeSet::new();
    club.fate = Box::new(move |from, to, slice| {
        Some(match seen.insert((from, to, *slice)) {
            true => PushOutcome::Lost,
            false => PushOutcome::Delivered,
        })
    });
    club.run_to(3);
    assert!(club.decided(1).iter().all(|d| d.0 == 0));
    assert_eq!(club.decided(1).len(), 3);
}

#[test]
fn peers_that_come_back_with_different_anchors_become_one_swarm_again() {
    // One for each way to be interrupted while a round is being applied.
    for count in [2, 3, 4] {
        let mut club = Club::with_anchors(count, |id| Digest::of(&[id % 2, id / 3]));
        club.run_to(8);
        let together = |e: &&Event| matches!(e, Event::Group { members, .. } if members.len() == usize::from(count));
        for (id, member) in &club.members {
            let groups = member.events.iter().filter(together).count();
            assert!(groups > 0, "{count}: {id:?} has met all others");
        }
    }
}
