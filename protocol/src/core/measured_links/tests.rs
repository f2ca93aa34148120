//! Rates that are measured, told and adopted: not for noise, not too often, and the same for all.

use super::*;
use crate::{Attempt, FragmentId, Part};
use core::time::Duration;

const EVERY: u64 = 4;
const BYTES: u64 = 4_000_000;

fn peer(index: usize) -> PeerId {
    PeerId::from_bytes([index as u8 + 1; 32])
}

fn peers(n: usize) -> Vec<PeerId> {
    (0..n).map(peer).collect()
}

fn slice(shard: u16) -> SliceId {
    SliceId {
        round: Round(0),
        fragment: FragmentId(0),
        part: Part::Contribution,
        shard,
        origin: peer(0),
        attempt: Attempt::default(),
    }
}

fn plan() -> LinkPlan {
    LinkPlan {
        every: EVERY as u16,
        latency_micros: 1_000,
        start: LinkCodes::default(),
    }
}

fn links() -> MeasuredLinks {
    let mut links = MeasuredLinks::default();
    links.set_every(EVERY);
    links
}

/// All rows of a group with these rates in megabits per second.
fn tell(links: &mut MeasuredLinks, n: usize, epoch: u64, mbit: impl Fn(usize, usize) -> u64) {
    for from in 0..n {
        let others = (0..n).filter(|to| *to != from);
        let told = Rates {
            epoch,
            rates: others
                .map(|to| (peer(to), code_of(125_000 * mbit(from, to))))
                .collect(),
            heard: Digest::of(&[]),
        };
        links.hear(peer(from), &told);
    }
}

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

#[test]
fn a_push_counts_with_what_it_would_have_had_alone() {
    let mut links = links();
    links.enter(at(0), Round(0), peer(9), &peers(3));
    // Alone: a megabyte in a second. Then two at the same time, each at half of that.
    links.push(at(0), peer(0), slice(0), 1_000_000);
    links.pushed(at(1_000), peer(0), slice(0), PushOutcome::Delivered);
    links.push(at(1_000), peer(1), slice(1), 1_000_000);
    links.push(at(1_000), peer(2), slice(2), 1_000_000);
    links.pushed(at(3_000), peer(1), slice(1), PushOutcome::Delivered);
    links.pushed(at(3_000), peer(2), slice(2), PushOutcome::Delivered);
    let told = links
        .enter(at(4_000), Round(EVERY), peer(9), &peers(3))
        .unwrap();
    let code = code_of(1_000_000);
    assert_eq!(
        told.rates,
        peers(3).into_iter().map(|p| (p, code)).collect::<Vec<_>>()
    );
    assert_eq!(
        links.enter(at(4_000), Round(EVERY + 1), peer(9), &peers(3)),
        None
    );
}

#[test]
fn the_fastest_of_the_last_pushes_of_an_epoch_counts_and_small_ones_do_not() {
    let mut links = links();
    let mut now = 0;
    let mut send = |links: &mut MeasuredLinks, bytes, ms, outcome| {
        links.push(at(now), peer(0), slice(0), bytes);
        now += ms;
        links.pushed(at(now), peer(0), slice(0), outcome);
        now
    };
    let live = peers(1);
    links.enter(at(0), Round(0), peer(9), &live);
    for ms in [100, 400, 1_000, 2_000, 1_000] {
        send(&mut links, 1_000_000, ms, PushOutcome::Delivered);
    }
    send(&mut links, 1_000_000, 1, PushOutcome::Lost);
    let end = send(
        &mut links,
        MEASURED_BYTES_MIN - 1,
        1,
        PushOutcome::Delivered,
    );
    let told = links.enter(at(end), Round(EVERY), peer(9), &live).unwrap();
    // The first of five is forgotten.
    assert_eq!(told.rates, [(peer(0), code_of(2_500_000))]);
    // What nothing was sent over keeps its rate, and one push of a new epoch replaces it.
    let told = links
        .enter(at(end), Round(2 * EVERY), peer(9), &live)
        .unwrap();
    assert_eq!(told.rates, [(peer(0), code_of(2_500_000))]);
    let end = send(&mut links, 1_000_000, 4_000, PushOutcome::Delivered);
    let told = links
        .enter(at(end), Round(3 * EVERY), peer(9), &live)
        .unwrap();
    assert_eq!(told.rates, [(peer(0), code_of(250_000))]);
    let told = links
        .enter(at(end), Round(4 * EVERY), peer(9), &[])
        .unwrap();
    assert_eq!(told.rates, [], "one that is gone is forgotten");
}

#[test]
fn rates_are_adopted_where_they_gain_and_not_before_an_epoch_has_passed() {
    let (n, plan) = (5, plan());
    let members = peers(n);
    let mut links = links();
    let propose = |links: &mut MeasuredLinks, round| {
        let agreed = links.propose((&plan, BYTES), Round(round), &members);
        agreed.check(Round(round), n).unwrap();
        links.hold(&members, &agreed);
        agreed
    };
    assert_eq!(
        propose(&mut links, 1),
        AgreedLinks::default(),
        "nothing is known"
    );
    let slow =
        |who: usize| move |from: usize, to: usize| if from == who || to == who { 20 } else { 400 };
    tell(&mut links, n, 1, slow(0));
    let first = propose(&mut links, 5);
    assert_eq!((first.since, first.codes.len()), (Round(5), n * n));
    assert_eq!(propose(&mut links, 6), first);
    // Another line gets slow.
    tell(&mut links, n, 2, slow(3));
    for round in 7..5 + EVERY {
        assert_eq!(
            propose(&mut links, round),
            first,
            "not yet in round {round}"
        );
    }
    let second = propose(&mut links, 5 + EVERY);
    assert_eq!(second.since, Round(5 + EVERY));
    assert_ne!(second.codes, first.codes);
}

#[test]
fn noise_of_a_tenth_changes_nothing() {
    let (n, plan) = (6, plan());
    let members = peers(n);
    let mut links = links();
    let mut state = 7u64;
    let mut changes = Vec::new();
    for epoch in 1..60 {
        let mut noisy = |rate: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            rate * (90 + (state >> 33) % 21) / 100
        };
        let table: Vec<Vec<u64>> = (0..n)
            .map(|from| {
                (0..n)
                    .map(|to| noisy(if from == 2 || to == 2 { 20 } else { 400 }))
                    .collect()
            })
            .collect();
        tell(&mut links, n, epoch, |from, to| table[from][to]);
        for round in epoch * EVERY..(epoch + 1) * EVERY {
            let agreed = links.propose((&plan, BYTES), Round(round), &members);
            if agreed.since == Round(round) {
                changes.push(round);
            }
            links.hold(&members, &agreed);
        }
    }
    assert_eq!(changes, [EVERY], "only when the first rates were told");
}

#[test]
fn who_is_in_the_last_group_names_the_same_rates_and_others_keep_theirs() {
    let (n, plan) = (4, plan());
    let mut first = links();
    tell(&mut first, n, 1, |from, _| [10, 300, 300, 300][from]);
    let agreed = first.propose((&plan, BYTES), Round(4), &peers(n));
    assert_eq!(agreed.since, Round(4));
    // Another member has heard nothing, and was in the group.
    let mut second = links();
    second.hold(&peers(n), &agreed);
    assert_eq!(second.propose((&plan, BYTES), Round(5), &peers(n)), agreed);
    // Of a smaller group the rates of those that are left, of a larger one none of the new member.
    let three = second.propose((&plan, BYTES), Round(6), &peers(3));
    assert_eq!((three.since, three.codes.len()), (Round(4), 9));
    let five = second.propose((&plan, BYTES), Round(6), &peers(5));
    assert_eq!(five.codes[4], 0);
    assert_eq!(five.codes[5], agreed.codes[4]);
    assert_eq!(
        second.propose((&plan, BYTES), Round(7), &peers(17)).codes,
        []
    );
}

#[test]
fn where_nothing_is_measured_the_given_links_stay() {
    let start = LinkCodes::new(3, |from, to| (from + to) as u8 + 90);
    let plan = LinkPlan {
        every: 0,
        start,
        ..plan()
    };
    let mut links = MeasuredLinks::default();
    links.push(at(0), peer(0), slice(0), 1 << 20);
    assert!(links.under_way.pushes.is_empty());
    assert_eq!(links.enter(at(1), Round(9), peer(9), &peers(3)), None);
    tell(&mut links, 3, 1, |_, _| 7);
    let agreed = links.propose((&plan, BYTES), Round(5), &peers(3));
    assert_eq!(agreed, AgreedLinks::new(Round(0), &start));
}

#[test]
fn pushes_that_are_never_answered_are_forgotten() {
    let mut links = links();
    links.enter(at(0), Round(0), peer(9), &peers(2));
    links.push(at(1), peer(0), slice(0), 1 << 20);
    for epoch in 1..4 {
        links.enter(at(epoch), Round(epoch * EVERY), peer(9), &peers(2));
    }
    assert!(links.under_way.pushes.is_empty());
    for id in 0..2 * VIEW_PEERS_MAX {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&(id as u64).to_le_bytes());
        let told = Rates {
            epoch: 1,
            rates: Vec::new(),
            heard: Digest::of(&[]),
        };
        links.hear(PeerId::from_bytes(bytes), &told);
    }
    assert_eq!(links.told.len(), VIEW_PEERS_MAX);
}
