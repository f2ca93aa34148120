//! Sums along a tree, member by member: whose parameters are in whose mean and with which weight,
//! how many messages it takes, and what remains when a member dies, stalls, lies, comes late or is
//! seen by some only.

use crate::common::club::{Club, Value};
use crate::common::{self, BinaryTree, peer, plan};
use core::time::Duration;
use murmurate_protocol::limits::{PATIENCE_ROUNDS, RELAY_SUM_UNDER_WAY_MAX, RELAY_SUM_WAITING_MAX};
use murmurate_protocol::{
    Digest, Event, ExchangeKind, FragmentId, Input, Output, Part, PeerError, PeerId, Phase,
    PushOutcome, Round, SliceId, SliceMeta, SpanningTree, Tag,
};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A club of `count` members whose parameters are two fragments.
fn club(count: u8) -> Club {
    let plan = plan(ExchangeKind::RelaySum, 2);
    let mut club = Club::of(count, &plan, |_| Digest::of(b"anchor"));
    // Time must pass for a member that waits while others train.
    club.training = Duration::from_millis(1);
    club
}

/// The tree over `count` ranks.
fn tree(count: u8) -> SpanningTree {
    SpanningTree::of(&BinaryTree, usize::from(count))
}

/// The distance of every member from one peer, in the tree of a fragment.
fn distances(count: u8, fragment: FragmentId, from: PeerId) -> BTreeMap<PeerId, u64> {
    let tree = tree(count);
    // In the second fragment's tree the ranks are reversed.
    let flip = |id: u8| if fragment.0 == 0 { id } else { count + 1 - id };
    let id = |rank: usize| peer(flip(rank as u8 + 1));
    let mut open = vec![(usize::from(flip(from.as_bytes()[0])) - 1, 0)];
    let mut far = BTreeMap::new();
    while let Some((rank, distance)) = open.pop() {
        far.insert(id(rank), distance);
        let on = tree.neighbours(rank).into_iter();
        let on = on.filter(|to| !far.contains_key(&id(*to)));
        open.extend(on.map(|to| (to, distance + 1)).collect::<Vec<_>>());
    }
    far
}

/// A mix is a convex combination, and the peer's parameters have a share in it.
fn assert_convex(who: PeerId, value: &Value) {
    let sum: f64 = value.values().sum();
    let all = value.values().all(|share| *share > 0.0);
    assert!(
        (sum - 1.0).abs() < 1e-9 && all && value.contains_key(&who),
        "{value:?}"
    );
}

/// While no peer's parent changes, no other peer weighs more than 1/n.
fn assert_fair(who: PeerId, value: &Value, count: u8) {
    assert_convex(who, value);
    let most = 1.0 / f64::from(count) + 1e-9;
    let fair = value.iter().all(|(of, share)| *of == who || *share < most);
    assert!(fair, "{who:?}: {value:?}");
}

/// From round `since` on, every mix is the exact mean over `all`, and each of them mixed.
fn assert_exact(club: &Club, since: u64, all: &BTreeSet<PeerId>) {
    let mut mixed = BTreeSet::new();
    for (who, round, fragment, value) in &club.mixes {
        if round.0 < since || !all.contains(who) {
            continue;
        }
        let share = 1.0 / all.len() as f64;
        let whole = value.keys().eq(all.iter());
        let alike = value.values().all(|s| (s - share).abs() < 1e-9);
        assert!(whole && alike, "{who:?} {round} {fragment:?}: {value:?}");
        mixed.insert((*who, *fragment));
    }
    assert_eq!(mixed.len(), 2 * all.len());
}

fn ids(ids: impl IntoIterator<Item = u8>) -> BTreeSet<PeerId> {
    ids.into_iter().map(peer).collect()
}

fn furthest(club: &Club) -> u64 {
    let rounds = club.members.values().map(|m| m.peer.round().0);
    rounds.max().unwrap_or(0)
}

#[test]
fn every_mean_has_each_peer_s_parameters_once_delayed_by_the_distance() {
    for count in 2..=17u8 {
        let mut club = club(count);
        let diameter = tree(count).diameter() as u64;
        let rounds = diameter + 3;
        club.run_to(rounds);
        let mut seen = 0;
        for (who, round, fragment, value) in &club.mixes {
            if round.0 >= rounds {
                continue;
            }
            let far = distances(count, *fragment, *who);
            // In the first round no peer waits, and a message counts in that round or in the next.
            let within = |most: u64| {
                far.iter()
                    .filter(move |(_, far)| **far <= most)
                    .map(|(id, _)| *id)
            };
            assert!(
                within(round.0).all(|id| value.contains_key(&id)),
                "{count} {who:?} {round}"
            );
            let near: BTreeSet<PeerId> = within(round.0 + 1).collect();
            assert!(
                value.keys().all(|id| near.contains(id)),
                "{count} {who:?} {round}"
            );
            let share = 1.0 / f64::from(count);
            for (of, found) in value {
                let missing = usize::from(count) - value.len();
                let own = (missing + 1) as f64 * share;
                let expected = if of == who { own } else { share };
                assert!((found - expected).abs() < 1e-9, "{count}: {value:?}");
            }
            seen += 1;
        }
        // A member to which nothing had come yet mixed nothing.
        assert!(seen >= 2 * (rounds - 1) * u64::from(count));
        assert_exact(&club, diameter, &ids(1..=count));
        club.assert_rules();
    }
}

#[test]
fn a_round_is_one_push_along_every_edge_in_either_way_and_no_message() {
    for count in 2..=33u8 {
        let mut club = club(count);
        let told = Rc::new(Cell::new(0));
        let count_told = Rc::clone(&told);
        club.hears = Box::new(move |_, _, message| {
            let rest = matches!(message.name(), "hello" | "alive" | "records");
            count_told.set(count_told.get() + u64::from(!rest));
            true
        });
        club.run_to(5);
        let edges = 2 * (u64::from(count) - 1);
        for round in 0..5 {
            let sent = club.sent(round);
            let pushes: u64 = sent.values().map(|(pushes, _)| pushes).sum();
            let bytes: u64 = sent.values().map(|(_, bytes)| bytes).sum();
            // Two fragments of ten values.
            assert_eq!((pushes, bytes), (2 * edges, 2 * edges * 40), "{count}");
            let most = tree(count).degree() as u64 * 2;
            assert!(sent.values().all(|(pushes, _)| *pushes <= most));
        }
        assert_eq!(told.get(), 0, "{count} peers tell each other nothing");
        let kept = club.members.values().map(|m| m.store.len());
        // The peer's messages, the last ones of its neighbours, and their next ones.
        assert!(kept.max() <= Some(2 * 3 * 3), "{count}");
    }
}

/// A member dies before, with or after one of its pushes.
#[test]
fn a_death_at_any_message_leaves_the_others_with_their_own_mean() {
    let count = 7;
    for victim in [1u8, 2, 7] {
        for dies_after in 0..8 {
            let mut club = club(count);
            club.run_to(6);
            let doom = Rc::clone(&club.doom);
            let left = Cell::new(dies_after);
            let gone = peer(victim);
            club.fate = Box::new(move |from, _, _| {
                if from != gone {
                    return Some(PushOutcome::Delivered);
                }
                if left.get() == 0 {
                    doom.set(Some(gone));
                    return None;
                }
                left.set(left.get() - 1);
                Some(PushOutcome::Delivered)
            });
            club.run_until(60, |club| !club.members.contains_key(&gone));
            let from = furthest(&club);
            club.run_to(from + 12);
            let others = ids((1..=count).filter(|id| *id != victim));
            for (who, _, _, value) in &club.mixes {
                assert_convex(*who, value);
            }
            // The views differ for a round at most; then the smaller tree fills.
            assert_exact(&club, from + 8, &others);
            club.assert_waits();
            club.assert_rules();
        }
    }
}

#[test]
fn the_tree_re_forms_around_a_stalled_peer() {
    let count = 7;
    // Rank 0 is the root, 1 has children, and 6 is a leaf. In the other fragment's tree, root and
    // leaf change places; the middle rank stays where it is.
    for silent in [1, 2, 4, 7].map(peer) {
        let mut club = club(count);
        club.run_to(6);
        club.isolate(silent, &Rc::new(Cell::new(true)));
        let reach = |club: &Club, round: u64| {
            let mut all = club.members.iter().filter(|(id, _)| **id != silent);
            all.all(|(_, m)| m.peer.round().0 >= round)
        };
        club.run_until(600, |club| reach(club, 50));
        assert!(reach(&club, 50));
        for (id, member) in &club.members {
            let expired = |e: &&Event| matches!(e, Event::Waited { expired: true, .. });
            let waits = member.events.iter().filter(expired).count();
            assert!(*id == silent || waits <= 9, "{waits} deadlines");
            // No more messages are made for a peer that does not take them.
            let kept = 2 * (3 * 4 + RELAY_SUM_UNDER_WAY_MAX);
            assert!(member.store.len() <= kept, "{}", member.store.len());
        }
        let mut whole = 0;
        for (who, round, _, value) in &club.mixes {
            assert_convex(*who, value);
            if round.0 >= 40 && *who != silent {
                // This peer's parameters take its share.
                assert_fair(*who, value, count);
                assert!(
                    !value.contains_key(&silent) && value.len() == 6,
                    "{value:?}"
                );
                whole += 1;
            }
        }
        assert!(whole >= 2 * 6 * 10, "{whole}");
        club.assert_waits();
        club.kill(silent);
        let from = furthest(&club);
        club.run_until(600, |club| reach(club, from + 16));
        let others = ids((1..=count).filter(|id| peer(*id) != silent));
        assert_exact(&club, from + 12, &others);
    }
}

#[test]
fn what_was_lost_is_pushed_again_and_what_stays_lost_counts_for_a_while() {
    let (from, to) = (peer(1), peer(2));
    for (outcome, for_ever) in [
        (PushOutcome::Lost, false),
        (PushOutcome::Unknown, false),
        (PushOutcome::Lost, true),
        (PushOutcome::Refused, true),
    ] {
        let mut club = club(5);
        club.run_to(6);
        let tried: Rc<RefCell<BTreeSet<SliceId>>> = Rc::default();
        let lost = Rc::clone(&tried);
        club.fate = Box::new(move |a, b, slice| {
            let hit = (a, b) == (from, to) && slice.round >= Round(6);
            let hit = hit && (lost.borrow_mut().insert(*slice) || for_ever);
            Some(if hit { outcome } else { PushOutcome::Delivered })
        });
        club.run_to(20);
        assert!(!tried.borrow().is_empty());
        if !for_ever {
            assert_exact(&club, 4, &ids(1..=5));
            continue;
        }
        // The last message counts for some more rounds. Then the peers behind that edge are
        // missing.
        let mixes = club
            .mixes
            .iter()
            .filter(|(who, _, f, _)| (*who, f.0) == (to, 0));
        for (who, round, _, value) in mixes {
            assert_fair(*who, value, 5);
            let holds = value.contains_key(&from);
            assert_eq!(holds, round.0 <= 5 + PATIENCE_ROUNDS, "{round} {value:?}");
        }
        club.assert_waits();
    }
}

#[test]
fn nonsense_is_left_out_and_its_sender_cut_off() {
    for garbles in [false, true] {
        let mut club = club(6);
        club.run_to(4);
        let liar = peer(3);
        match garbles {
            true => club.garbles = Some((liar, 4)),
            false => club.bad = Some(liar),
        }
        let others = ids((1..=6).filter(|id| peer(*id) != liar));
        let cut = |club: &Club| {
            let banned = |id: &PeerId| {
                club.members[id]
                    .peer
                    .view()
                    .get(liar)
                    .is_some_and(|r| r.banned)
            };
            others.iter().filter(|id| banned(id)).count()
        };
        // The neighbours above and below it notice.
        club.run_until(60, |club| cut(club) >= 2);
        assert!(cut(&club) >= 2, "{garbles}");
        club.kill(liar);
        let from = furthest(&club);
        club.run_to(from + 12);
        assert_exact(&club, from + 8, &others);
        for (who, _, _, value) in &club.mixes {
            assert_convex(*who, value);
        }
    }
}

#[test]
fn slices_that_no_neighbour_would_send_are_refused() {
    let mut club = club(3);
    club.run_to(2);
    let (from, to) = (peer(3), peer(1));
    let name = |round| SliceId {
        attempt: murmurate_protocol::Attempt(9),
        ..common::slice(round, Part::Contribution, 3)
    };
    let relayed = |peers| Tag::Relayed { up: true, peers };
    let meta = SliceMeta {
        of: 1,
        bytes: 40,
        tag: relayed(1),
    };
    let now = club.now;
    let mut arrives = |slice: SliceId, meta: SliceMeta| {
        let member = club.members.get_mut(&to).unwrap();
        let digest = None;
        let input = Input::Arrived {
            from,
            slice,
            meta,
            digest,
        };
        let result = member.peer.handle(now, input);
        let waiting = member.peer.inbox_len();
        while let Some(output) = member.peer.poll_output() {
            drop::<Output>(output);
        }
        (result, waiting)
    };
    let (good, tagged) = (name(50), |tag| SliceMeta { tag, ..meta });
    let (shard, part, fragment) = (1, Part::Partial, FragmentId(2));
    for bad in [
        (SliceId { shard, ..good }, meta),
        (SliceId { part, ..good }, meta),
        (SliceId { fragment, ..good }, meta),
        (good, SliceMeta { of: 2, ..meta }),
        (good, tagged(relayed(0))),
        (good, tagged(Tag::Answer { round: Round(50) })),
        (good, tagged(relayed(1_000_000_000))),
        (good, tagged(Tag::Mass { weight: 1.0 })),
    ] {
        let (result, _) = arrives(bad.0, bad.1);
        let refused = matches!(
            result,
            Err(PeerError::Unexpected { .. } | PeerError::ForeignTag { .. })
        );
        assert!(refused, "{bad:?}: {result:?}");
    }
    // Only a bounded number of messages of later rounds wait.
    let mut most = 0;
    for round in 50..80 {
        let (result, waiting) = arrives(name(round), meta);
        assert_eq!(result, Ok(()));
        most = most.max(waiting);
    }
    assert!(most <= 4 * RELAY_SUM_WAITING_MAX, "{most}");
}

/// Two peers lose sight of each other while all others see both: three views, and so three trees.
#[test]
fn views_that_differ_exclude_no_peer() {
    let count = 7;
    for pair in [[1, 2], [1, 7], [2, 4], [3, 4], [5, 6]] {
        let pair = pair.map(peer);
        let mut club = club(count);
        club.run_to(6);
        club.tell(pair[0], Input::LinkDown(pair[1]));
        club.tell(pair[1], Input::LinkDown(pair[0]));
        let lost = pair;
        club.hears = Box::new(move |from, to, _| !(lost.contains(&from) && lost.contains(&to)));
        club.fate = Box::new(move |from, to, _| {
            let cut = lost.contains(&from) && lost.contains(&to);
            Some(if cut {
                PushOutcome::Lost
            } else {
                PushOutcome::Delivered
            })
        });
        let from = furthest(&club);
        club.run_to(from + 30);
        for (who, round, fragment, value) in &club.mixes {
            assert_convex(*who, value);
            // In the first fragment 2 sees no lower peer, so it is a root.
            let roots = fragment.0 == 0 && pair == [peer(1), peer(2)];
            let settled = round.0 > from + 12 && !roots;
            assert!(
                !settled || value.len() == usize::from(count),
                "{who:?} {round} {value:?}"
            );
        }
        let expired = |e: &&Event| matches!(e, Event::Waited { expired: true, .. });
        for member in club.members.values() {
            assert!(member.events.iter().filter(expired).count() <= 6);
        }
        club.assert_waits();
        club.hears = Box::new(|_, _, _| true);
        club.fate = Box::new(|_, _, _| Some(PushOutcome::Delivered));
        club.tell(pair[0], Input::LinkUp(pair[1]));
        club.tell(pair[1], Input::LinkUp(pair[0]));
        // A peer counts as ready once its next sign of life says so.
        club.run_until(8, |_| false);
        let from = furthest(&club);
        club.run_to(from + 16);
        assert_exact(&club, from + 12, &ids(1..=count));
        club.assert_waits();
    }
}

/// Acknowledgements may come after the end of a round. A neighbour that got no message of a round
/// gets it as soon as an earlier one is acknowledged, because it waits for it.
#[test]
fn one_that_had_too_many_messages_under_way_gets_the_round_s_with_the_next_acknowledgement() {
    let (from, to) = (peer(1), peer(2));
    let mut club = club(2);
    let held: Rc<RefCell<Vec<SliceId>>> = Rc::default();
    let holds = Rc::clone(&held);
    club.fate = Box::new(move |who, _, slice| {
        let mut held = holds.borrow_mut();
        let holds = who == from && slice.fragment == FragmentId(0) && slice.round >= Round(3);
        if holds && held.len() < RELAY_SUM_UNDER_WAY_MAX {
            held.push(*slice);
            return None;
        }
        Some(PushOutcome::Delivered)
    });
    let made = |club: &Club, round: u64| {
        let of = |slice: &SliceId| slice.fragment == FragmentId(0) && slice.round == Round(round);
        club.pushes
            .iter()
            .any(|(who, slice, _)| *who == from && of(slice))
    };
    club.run_until(60, |club| {
        let member = &club.members[&from];
        member.peer.round() == Round(5) && member.peer.phase() == Phase::Exchange
    });
    assert_eq!(held.borrow().len(), RELAY_SUM_UNDER_WAY_MAX);
    assert!(!made(&club, 5), "two are under way");
    let slice = held.borrow()[0];
    let outcome = PushOutcome::Lost;
    club.tell(from, Input::Pushed { to, slice, outcome });
    let (now, round) = (club.now, Round(6));
    club.run_until(60, |club| club.members[&to].peer.round() >= round);
    assert!(made(&club, 5));
    assert!(
        club.now.since(now) < Duration::from_secs(1),
        "no peer waits for a deadline"
    );
}
