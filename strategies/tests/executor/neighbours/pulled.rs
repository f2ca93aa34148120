//! Hop and WAGMA with real peers and Executors, against their papers' equations in f64: which
//! iterates a mean may have, what each counts, and what a member makes of the mean of its group.

use super::DIM;
use crate::common::check::losses;
use crate::common::decode::decode;
use crate::common::{Swarm, near, peer};
use murmurate_protocol::{
    Combination, FragmentId, Order, Output, Part, PeerId, Piece, Round, SliceId,
};
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::toy::ToyTask;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

const ROUNDS: u64 = 24;

/// What each member was ordered to combine.
type Ordered = Rc<RefCell<Vec<(PeerId, Order)>>>;

/// A swarm on the noisy quadratic, with different data at each member.
fn swarm(text: &str, peers: usize, seed: u64) -> (Swarm, Ordered) {
    let strategy: Strategy = text.parse().unwrap();
    let task = ToyTask::Quadratic {
        dim: DIM,
        heterogeneity: 0.5,
        noise: 0.1,
        inner: *strategy.inner_kind(),
    };
    let mut swarm = Swarm::training(text, task, peers, [seed, 3]);
    let ordered = Ordered::default();
    let written = Rc::clone(&ordered);
    swarm.fatal = Box::new(move |who, _, output| {
        if let Output::Order { order, .. } = output {
            written.borrow_mut().push((who, order.clone()));
        }
        false
    });
    (swarm, ordered)
}

fn ranges(swarm: &Swarm) -> Vec<Range<usize>> {
    let mut from = 0;
    let lens = swarm.plan.fragments.iter().map(|f| f.len as usize);
    let range = lens.map(|len| {
        from += len;
        from - len..from
    });
    range.collect()
}

/// What a member had after its inner steps of a round.
fn trained(swarm: &Swarm, who: PeerId, round: Round, range: Range<usize>) -> Option<Vec<f64>> {
    let member = &swarm.members[&who];
    let before = match round.0 {
        0 => &swarm.initial,
        round => member.anchors.get(&Round(round - 1))?,
    };
    let delta = member.deltas.get(&round)?;
    let value = |at: usize| f64::from(before[at]) + delta[at];
    Some(range.map(value).collect())
}

/// A slice's values, from its bytes.
fn values(swarm: &Swarm, slice: &SliceId) -> Vec<f64> {
    let len = swarm.plan.fragment(slice.fragment).unwrap().len as usize;
    decode(&swarm.encoded[slice], len)
}

/// Luo et al. 2019, sections 4.3 and 4.4, by the definition: in round k the updates u of the round or
/// up to s rounds before, each counting u.round - (k - s) + 1; on a ring all shares are equal.
fn hop(own: &[f64], updates: &[(u64, Vec<f64>)], (round, staleness): (u64, u64)) -> Vec<f64> {
    let counts = |of: u64| (of + staleness + 1 - round) as f64;
    let all = updates.iter().map(|(of, x)| (counts(*of), x.as_slice()));
    let all: Vec<_> = all.chain([(counts(round), own)]).collect();
    let total: f64 = all.iter().map(|(count, _)| count).sum();
    let mean = |at: usize| all.iter().map(|(count, x)| count * x[at]).sum::<f64>() / total;
    (0..own.len()).map(mean).collect()
}

#[test]
fn hop_takes_iterates_of_the_round_or_a_little_older_by_their_age() {
    for (staleness, backup, lossy) in [(0, 0, false), (0, 1, false), (2, 1, true), (4, 0, true)] {
        let mut ages = BTreeMap::<u64, usize>::new();
        for seed in 0..4 {
            let lead = if backup > 0 {
                "lead = 6\n"
            } else {
                "lead = 1_000_000\n"
            };
            let text = format!(
                "preset = \"hop\"\n[architecture]\nstaleness = {staleness}\nbackup = {backup}\n\
                 {lead}skip = 0\n[overlap]\nfragments = 2"
            );
            let (mut swarm, ordered) = swarm(&text, 7, seed);
            if lossy {
                swarm.fate = Box::new(losses(31 * (seed + 1), 1));
            }
            swarm.run(ROUNDS);
            let ranges = ranges(&swarm);
            let mut mixed = BTreeSet::new();
            let mut checked = 0;
            for (who, order) in ordered.borrow().iter() {
                let Order::Combine {
                    piece: Piece { fragment, .. },
                    how: Combination::Mix { round, inputs, .. },
                } = order
                else {
                    continue;
                };
                for (slice, _) in inputs {
                    // An update is dequeued once, and none is too old or of a later round.
                    assert!(mixed.insert((*who, *slice)), "{who:?} {slice:?}");
                    assert!(slice.round <= *round, "{slice:?} in {round:?}");
                    let age = round.since(slice.round);
                    assert!(age <= staleness, "{slice:?} in {round:?}");
                    *ages.entry(age).or_default() += 1;
                }
                let range = ranges[usize::from(fragment.0)].clone();
                let member = &swarm.members[who];
                let own = trained(&swarm, *who, *round, range.clone());
                let (Some(own), Some(after)) = (own, member.anchors.get(round)) else {
                    continue; // the last round, which has not ended
                };
                let updates = inputs.iter();
                let updates = updates.map(|(slice, _)| (slice.round.0, values(&swarm, slice)));
                let updates: Vec<_> = updates.collect();
                let expected = hop(&own, &updates, (round.0, staleness));
                // A few roundings of f32 of values up to ten.
                near(
                    &after[range],
                    &expected,
                    1e-5,
                    &format!("{who:?} {round:?}"),
                );
                checked += 1;
            }
            assert!(checked >= 7 * ROUNDS as usize, "{checked} mixes");
        }
        println!("s = {staleness}, b = {backup}: updates by age {ages:?}");
    }
}

/// Li et al. 2021, algorithm 2, lines 8 to 14, by the definition: the mean over the group of what is in
/// the send buffers, to which a late member adds its own once more.
fn wagma(parts: &[Vec<f64>], late: Option<&[f64]>) -> Vec<f64> {
    let sum = |at: usize| parts.iter().map(|x| x[at]).sum::<f64>();
    let count = parts.len() as f64;
    let value = |at: usize| match late {
        None => sum(at) / count,
        Some(own) => (sum(at) + own[at]) / (count + 1.0),
    };
    (0..parts[0].len()).map(value).collect()
}

/// The sums that were made, by their names: round, fragment and maker.
fn sums(ordered: &Ordered) -> BTreeMap<(Round, FragmentId, PeerId), Vec<SliceId>> {
    let mut sums = BTreeMap::new();
    let ordered = ordered.borrow();
    let mut reduced = BTreeMap::new();
    for (who, order) in ordered.iter() {
        match order {
            Order::Combine {
                piece: Piece { fragment, .. },
                how: Combination::Reduce(inputs),
            } => {
                let parts = inputs.iter().map(|(slice, _)| *slice).collect();
                reduced.insert((*who, *fragment), parts);
            }
            Order::Encode { slice, .. } if slice.part == Part::Aggregate => {
                let parts = reduced.remove(&(*who, slice.fragment)).unwrap();
                sums.insert((slice.round, slice.fragment, *who), parts);
            }
            _ => {}
        }
    }
    sums
}

/// One mean for each round, fragment and group: of two of eight, or of all.
fn one_mean_a_group(made: impl Iterator<Item = (Round, FragmentId)>) {
    let mut makers: BTreeMap<(Round, FragmentId), usize> = BTreeMap::new();
    for of in made {
        *makers.entry(of).or_default() += 1;
    }
    for ((round, fragment), count) in makers {
        let all = (round.0 + 1).is_multiple_of(6);
        let groups = if all { 1 } else { 4 };
        assert!(
            count <= groups,
            "{count} means of {fragment:?} in {round:?}"
        );
    }
}

#[test]
fn wagma_gives_all_members_of_a_group_one_mean_and_late_ones_keep_what_is_new() {
    let (mut late_ones, mut fresh_ones, mut stale_parts) = (0, 0, 0);
    for (seed, lossy) in [(0, false), (1, false), (2, true), (3, true), (4, false)] {
        let text = "preset = \"wagma\"\n[architecture]\ngroup = 2\nstaleness = 5\nsync_every = 6\n\
                    [overlap]\nfragments = 3";
        let (mut swarm, ordered) = swarm(text, 8, seed);
        if lossy {
            swarm.fate = Box::new(losses(31 * (seed + 1), 1));
        }
        swarm.run(ROUNDS);
        let (ranges, sums) = (ranges(&swarm), sums(&ordered));
        let mut same: BTreeMap<SliceId, Vec<f32>> = BTreeMap::new();
        for (who, order) in ordered.borrow().iter() {
            let Order::Combine {
                piece: Piece { fragment, .. },
                how: Combination::Mix { round, inputs, .. },
            } = order
            else {
                continue;
            };
            let [(mean, _)] = inputs[..] else {
                panic!("{inputs:?} is not one mean");
            };
            let parts = &sums[&(*round, *fragment, mean.origin)];
            let syncs = (round.0 + 1).is_multiple_of(6);
            for part in parts {
                let age = round.since(part.round);
                assert!(age <= 5 && !(syncs && age > 0), "{part:?} in {round:?}");
                stale_parts += u64::from(age > 0);
            }
            let of_each: BTreeSet<PeerId> = parts.iter().map(|part| part.origin).collect();
            assert_eq!(of_each.len(), parts.len(), "each member once");
            let range = ranges[usize::from(fragment.0)].clone();
            let own = trained(&swarm, *who, *round, range.clone());
            let after = swarm.members[who].anchors.get(round);
            let (Some(own), Some(after)) = (own, after) else {
                continue;
            };
            let after = &after[range];
            let counted = parts.iter().find(|part| part.origin == *who);
            let fresh = counted.is_some_and(|part| part.round == *round);
            let of_parts: Vec<Vec<f64>> = parts.iter().map(|part| values(&swarm, part)).collect();
            let expected = wagma(&of_parts, (!fresh).then_some(&own));
            near(
                after,
                &expected,
                1e-5,
                &format!("{who:?} {round:?} {fresh}"),
            );
            if fresh {
                // To the bit.
                let first = same.entry(mean).or_insert_with(|| after.to_vec());
                let bits = |x: &[f32]| x.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(first), bits(after), "{who:?} {round:?}");
                fresh_ones += 1;
            } else {
                late_ones += 1;
            }
        }
        if !lossy {
            one_mean_a_group(sums.keys().map(|(round, fragment, _)| (*round, *fragment)));
        }
    }
    println!("{fresh_ones} in time, {late_ones} late, {stale_parts} parts of earlier rounds");
    assert!(fresh_ones > 200 && late_ones > 20 && stale_parts > 20);
}

/// A death before any output of a round, of a member that makes means or asks for them.
#[test]
fn a_death_at_any_output_leaves_members_that_go_on() {
    for text in [
        "preset = \"hop\"",
        "preset = \"wagma\"\n[architecture]\ngroup = 2\nstaleness = 5\nsync_every = 6",
    ] {
        for moment in 0..24 {
            let (mut swarm, _) = swarm(text, 8, 5);
            let mut left = moment;
            swarm.fatal = Box::new(move |who, round, output| {
                let talks = !matches!(output, Output::Emit(_));
                let counts = who == peer(3) && round == Round(7) && talks;
                left -= i32::from(counts);
                counts && left < 0
            });
            swarm.run(ROUNDS);
            assert!(swarm.dead.len() <= 1, "{text} {moment}");
            let rounds = swarm.rounds();
            assert!(rounds.iter().all(|round| *round >= ROUNDS), "{rounds:?}");
        }
    }
}
