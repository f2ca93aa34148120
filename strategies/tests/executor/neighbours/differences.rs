//! Differences to one copy of each peer, with real peers and Executors: what a peer mixes is what
//! its neighbours' own copies were, also on links that lose, repeat and forget.

use super::{DIM, MOMENTS, dies, near_their_mean, resting};
use crate::common::check::{losses, worst_loss};
use crate::common::decode::decode;
use crate::common::{Fate, Swarm, mixing_matrix, peer, quadratic};
use murmurate_protocol::{Part, PeerId, Round, SliceId};
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::topology::Ring;
use murmurate_strategies::toy::Quadratic;
use std::collections::BTreeMap;

/// Rounds that a neighbour's newest difference may be ahead of the mix that it is in.
const AHEAD: u64 = 8;

pub(crate) const DCD: &str = "preset = \"dcd-psgd\"";
pub(crate) const ECD: &str = "preset = \"ecd-psgd\"";

/// The copies of a peer after each round in which it sent something, from what was encoded, by the
/// papers' equations: algorithm 1, line 6, and algorithm 2, lines 5 and 6.
fn copies(swarm: &Swarm, of: PeerId, estimates: bool) -> BTreeMap<Round, Vec<f64>> {
    let own = swarm.encoded.iter().filter(|(s, _)| s.origin == of);
    let mut slices: Vec<SliceId> = own.map(|(slice, _)| *slice).collect();
    // A round's difference is in the whole copy of the same round.
    slices.sort_by_key(|slice| (slice.round, slice.part == Part::Aggregate));
    let (mut all, mut copy) = (BTreeMap::new(), vec![0.0; DIM]);
    for slice in slices {
        let decoded = decode(&swarm.encoded[&slice], DIM);
        let share = match (slice.part, estimates) {
            (Part::Aggregate, _) => [0.0, 1.0],
            (_, false) => [1.0, 1.0],
            (_, true) => {
                let t = slice.round.0 as f64 + 1.0;
                [1.0 - 2.0 / t, 2.0 / t]
            }
        };
        let moved = copy.iter_mut().zip(decoded);
        moved.for_each(|(h, q)| *h = share[0] * *h + share[1] * q);
        all.insert(slice.round, copy.clone());
    }
    all
}

/// Whether x is the mix of this peer's copy and of one copy of each of these two, of this round, of some
/// before, or of a few after it where a neighbour is ahead: gives how old the older one is.
fn late(
    x: &[f32],
    own: &[f64],
    (share, near): (f64, [&BTreeMap<Round, Vec<f64>>; 2]),
    round: Round,
) -> Option<u64> {
    let tried = near.map(|copies| {
        let until = copies.range(..=Round(round.0 + AHEAD)).rev().take(40);
        let all = until.map(|(of, values)| (round.0.saturating_sub(of.0), values.as_slice()));
        // Before the first whole copy a neighbour does not count.
        all.chain([(0, own)]).collect::<Vec<_>>()
    });
    let pairs = tried[0]
        .iter()
        .flat_map(|one| tried[1].iter().map(move |other| (one, other)));
    let mut found = pairs.filter(|((_, one), (_, other))| {
        (0..DIM).all(|d| {
            let mixed = own[d] + share * (one[d] - own[d]) + share * (other[d] - own[d]);
            (f64::from(x[d]) - mixed).abs() < 2e-4
        })
    });
    found.next().map(|((one, _), (other, _))| *one.max(other))
}

/// Goes through all mixes of a swarm on a ring, which closes without a peer that is suspected: how old
/// the oldest copy in any of them is.
fn oldest(swarm: &Swarm, peers: usize, estimates: bool) -> u64 {
    // Both neighbours on a ring have the same share, however many peers are in it.
    let share = mixing_matrix(&Ring, Round(0), peers)[0][1];
    let all: Vec<_> = (0..peers)
        .map(|index| copies(swarm, peer(index), estimates))
        .collect();
    let mut oldest = 0;
    for index in 0..peers {
        let member = &swarm.members[&peer(index)];
        let others: Vec<usize> = (0..peers).filter(|other| *other != index).collect();
        for (round, x) in &member.anchors {
            let Some(own) = all[index].get(round) else {
                continue;
            };
            let ends = others
                .iter()
                .flat_map(|a| others.iter().map(move |b| (*a, *b)));
            let ends = ends.filter(|(a, b)| a < b);
            let ages = ends.filter_map(|(a, b)| late(x, own, (share, [&all[a], &all[b]]), *round));
            let found = ages.min();
            let found = found.unwrap_or_else(|| panic!("peer {index}, {round}: a wrong copy"));
            oldest = oldest.max(found);
        }
    }
    oldest
}

#[test]
fn mixes_are_those_of_the_copies_that_the_equations_give() {
    for (text, estimates) in [(DCD, false), (ECD, true)] {
        for peers in [3, 5, 8] {
            let mut swarm = resting(text, peers, 0);
            swarm.run(30);
            assert_eq!(oldest(&swarm, peers, estimates), 0, "{text}, {peers} peers");
        }
    }
}

#[test]
fn where_pushes_are_lost_a_copy_is_late_and_never_wrong() {
    for (text, estimates) in [(DCD, false), (ECD, true)] {
        let mut latest = 0;
        for seed in 1..5 {
            let mut swarm = resting(text, 5, seed);
            swarm.fate = Box::new(losses(seed * 77, 3));
            swarm.run(80);
            let oldest = oldest(&swarm, 5, estimates);
            println!("{text}, seed {seed}: {oldest} rounds late");
            assert!(oldest < 12, "{text}, seed {seed}: {oldest}");
            latest = latest.max(oldest);
        }
        assert!(
            latest > 0,
            "{text}: no copy was late, so nothing was lost that matters"
        );
    }
}

/// All slices of one peer vanish for a while: more than is kept of its differences. The others ask
/// for the whole copy, or are told it, and hold it again.
#[test]
fn a_neighbour_that_was_cut_off_for_long_is_told_whole_again() {
    for (text, estimates) in [(DCD, false), (ECD, true)] {
        let mut swarm = resting(text, 5, 3);
        swarm.run(10);
        swarm.fate =
            Box::new(
                |slice| match slice.origin == peer(2) && (10..24).contains(&slice.round.0) {
                    true => Fate::Vanished,
                    false => Fate::Delivered,
                },
            );
        swarm.run(60);
        let wholes = swarm.encoded.keys();
        let wholes = wholes.filter(|s| s.part == Part::Aggregate && s.origin == peer(2));
        assert!(wholes.count() > 1, "{text}");
        oldest(&swarm, 5, estimates);
        for (of, member) in &mut swarm.members {
            let last = member.anchors.split_off(&Round(50));
            member.anchors = last;
            assert!(!member.anchors.is_empty(), "{of:?}");
        }
        assert_eq!(oldest(&swarm, 5, estimates), 0, "{text}");
    }
}

#[test]
fn a_round_is_one_encoding_and_a_push_of_it_to_each_neighbour() {
    for text in [DCD, ECD] {
        for peers in [2, 3, 5, 12] {
            let mut swarm = resting(text, peers, 0);
            let rounds = 6;
            swarm.run(rounds);
            let encoded = swarm.encoded.keys().copied();
            let encoded = encoded.filter(|s| s.round.0 < rounds);
            let (whole, differences): (Vec<SliceId>, Vec<SliceId>) =
                encoded.partition(|slice: &SliceId| slice.part == Part::Aggregate);
            // All know of each other from the first round on.
            assert_eq!(whole.len(), peers, "{text}, {peers} peers");
            assert_eq!(differences.len(), peers * (rounds as usize - 1), "{text}");
        }
    }
}

/// Without training the peers come together, where they end near the mean: what int8 leaves out has
/// no bias. Not so with estimates: their errors are a share of the parameters, and without a gradient
/// nothing takes the peers back.
#[test]
fn peers_at_rest_come_together_near_their_mean() {
    for (peers, seed) in [(2, 0), (3, 1), (5, 2), (8, 3)] {
        let mut swarm = resting(DCD, peers, seed);
        swarm.run(200);
        // Half a level of 127 in a range of ten, over some rounds that are far apart.
        near_their_mean(&swarm, 0.3, &format!("{peers} peers"));
    }
}

#[test]
fn a_death_at_any_message_leaves_others_that_find_their_optimum() {
    let (dim, peers) = (16, 5);
    // Errors of estimates average out as 1 / rounds, and not at all where there are none.
    let lossless = format!("{ECD}\n[compression]\ncodec = \"f32\"");
    for (text, left) in [(DCD, 1e-5), (ECD, 3e-3), (lossless.as_str(), 1e-5)] {
        for (name, moment) in MOMENTS {
            let strategy: Strategy = text.parse().unwrap();
            let task = quadratic(dim, 0.0, *strategy.inner_kind());
            let mut swarm = Swarm::training(text, task, peers, [9, 3]);
            let from = dies(&mut swarm, 1, 7, moment);
            swarm.run(from + 150);
            swarm.run(from + 300);
            let loss = worst_loss(&swarm, &Quadratic::new(dim, 0.0, 0.0, [0, peers], 3));
            assert!(loss < left, "{text}, {name}: {loss:e}");
        }
    }
}
