//! Exchanges between two, with real peers and Executors: what one end gains the other loses, on links that
//! lose, repeat and forget; consensus follows the mixing matrix; costs are those of the doc.

use super::{DIM, MOMENTS, conserved, dies, resting, starts, sum};
use crate::common::check::{losses, worst_loss};
use crate::common::decode::decode;
use crate::common::{Fate, Swarm, peer, quadratic};
use murmurate_protocol::{Part, PeerId, Round, Standing, Tag};
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::toy::Quadratic;

/// How far apart peers may rest: bf16 does not tell values of 4 and more apart that are closer.
const ROUNDING: f64 = 1.0 / 32.0;

/// Replicas, coarse and fine, and pairs.
const METHODS: [&str; 6] = [
    "preset = \"choco\"\n[architecture]\nrate = 0.1\n[compression]\ncodec = \"top-k\"\ndensity = 0.1",
    "preset = \"choco\"\n[architecture]\nrate = 0.5\n[compression]\ncodec = \"int8\"",
    "preset = \"choco\"\n[architecture]\nrate = 0.5\n[compression]\ncodec = \"event-triggered\"\nof = \"int8\"\nquiet = 0.004",
    "preset = \"deepsqueeze\"\n[compression]\ncodec = \"int8\"",
    "preset = \"ad-psgd\"",
    "preset = \"ad-psgd\"\n[architecture]\ntopology = \"ring\"\n[compression]\ncodec = \"bf16\"",
];

/// What both ends decode of one's half of an exchange: with replicas all that was sent in the session.
fn half(swarm: &Swarm, from: PeerId, to: PeerId, [session, number]: [u32; 2]) -> (Vec<f64>, f64) {
    let strategy = &swarm.strategy;
    let sums = strategy.replicas().is_some() && !strategy.error_feedback();
    let first = if sums { 0 } else { number };
    let (mut values, mut share) = (vec![0.0; DIM], 0.0);
    for at in first..=number {
        let (slice, meta) = swarm.pushes[&(from, to, u64::from(session), u64::from(at))];
        let decoded = decode(&swarm.encoded[&slice], DIM);
        values.iter_mut().zip(decoded).for_each(|(v, d)| *v += d);
        if let Tag::Half { share: offered, .. } = meta.tag {
            share = offered;
        }
    }
    (values, share)
}

/// What is still to come to peers: one end of a link may have mixed what the other has not come to.
fn owed(swarm: &Swarm) -> Vec<f64> {
    let rate = swarm
        .strategy
        .replicas()
        .map_or(1.0, |(rate, _)| f64::from(rate));
    let mut owed = vec![0.0; DIM];
    for (me, member) in &swarm.members {
        for mine in member.peer.standings() {
            let Some(other) = swarm.members.get(&mine.peer) else {
                continue;
            };
            let mut theirs = other.peer.standings().into_iter();
            let ahead =
                |s: &Standing| s.session == mine.session && s.exchanges == mine.exchanges + 1;
            if !theirs.any(|s| s.peer == *me && ahead(&s)) {
                continue;
            }
            let at = [mine.session, mine.exchanges];
            let (own, offered) = half(swarm, *me, mine.peer, at);
            let (other, asked) = half(swarm, mine.peer, *me, at);
            for (owed, (own, other)) in owed.iter_mut().zip(own.iter().zip(&other)) {
                *owed += rate * offered.min(asked) * (other - own);
            }
        }
    }
    owed
}

/// The sum of every value over the peers and what is owed to them, and the largest distance of a peer
/// from the mean.
fn sums(swarm: &Swarm) -> (Vec<f64>, f64) {
    let owed = owed(swarm);
    let n = swarm.members.len() as f64;
    let anchors: Vec<&[f32]> = swarm
        .members
        .values()
        .map(|member| member.executor.anchor())
        .collect();
    let sum = |at: usize| owed[at] + anchors.iter().map(|x| f64::from(x[at])).sum::<f64>();
    let sums: Vec<f64> = (0..DIM).map(sum).collect();
    let off = anchors.iter().flat_map(|x| {
        let pairs = x.iter().zip(&sums);
        pairs.map(|(x, sum)| (f64::from(*x) - sum / n).abs())
    });
    let off = off.fold(0.0, f64::max);
    (sums, off)
}

#[test]
fn the_sum_over_the_peers_is_conserved_and_they_come_together() {
    for text in METHODS {
        for (peers, seed) in [(2, 0), (3, 1), (5, 2), (8, 3)] {
            let mut swarm = resting(text, peers, seed);
            swarm.run(1);
            let start = sums(&swarm).1;
            swarm.run(300);
            let (after, end) = sums(&swarm);
            conserved(&sum(&starts(0..peers)), &after, &format!("{text} {peers}"));
            assert!(end < 0.6 * start, "{text} {peers}: {start} to {end}");
        }
    }
}

#[test]
fn the_sum_is_conserved_where_pushes_are_lost_or_of_unknown_fate() {
    for text in METHODS {
        for seed in 1..6 {
            let mut swarm = resting(text, 4, seed);
            swarm.fate = Box::new(losses(seed * 77, 1));
            swarm.run(200);
            let after = sums(&swarm).0;
            conserved(&sum(&starts(0..4)), &after, &format!("{text} seed {seed}"));
        }
    }
}

#[test]
fn a_round_of_replicas_is_one_push_to_each_neighbour() {
    let text = "preset = \"choco\"\n[compression]\ncodec = \"int8\"";
    for peers in 2..=33 {
        let mut swarm = resting(text, peers, 0);
        let rounds = 4;
        swarm.run(rounds);
        let degree = if peers == 2 { 1 } else { 2 };
        let plan = swarm.plan.fragments[0];
        let pushed = swarm.encoded.iter().filter(|(s, _)| s.round.0 < rounds);
        let (mut whole, mut differences) = (0, 0);
        for (slice, bytes) in pushed {
            match slice.part {
                Part::Aggregate => {
                    whole += 1;
                    assert_eq!(bytes.len() as u64, plan.aggregate.of(plan.len));
                }
                Part::Contribution => {
                    differences += 1;
                    assert!(bytes.len() as u64 <= plan.contribution.of(plan.len));
                }
                other => panic!("neighbours push no {other:?}: {slice:?}"),
            }
        }
        // A session begins with the parameters whole; every later round has one difference a link.
        assert_eq!(whole, peers * degree, "{peers} peers");
        let later = peers * degree * (rounds as usize - 1);
        assert_eq!(differences, later, "{peers} peers");
    }
}

#[test]
fn a_death_at_any_message_leaves_the_others_sum_as_it_is() {
    for text in METHODS {
        for (name, moment) in MOMENTS {
            let mut swarm = resting(text, 4, 9);
            let from = dies(&mut swarm, 1, 7, moment);
            swarm.run(from + 30);
            let (before, far) = sums(&swarm);
            swarm.run(from + 200);
            let (after, near) = sums(&swarm);
            let what = format!("{text}, {name}");
            conserved(&before, &after, &what);
            assert!(near <= far.max(ROUNDING), "{what}: {far} to {near}");
        }
    }
}

#[test]
fn a_link_that_was_down_restarts_and_a_dead_neighbour_takes_nothing_along() {
    for text in METHODS {
        let mut swarm = resting(text, 5, 4);
        swarm.run(20);
        swarm.kill(peer(2));
        swarm.run_until(|swarm| {
            swarm
                .members
                .values()
                .all(|m| m.peer.view().live().count() == 3)
        });
        let from = swarm.rounds().into_iter().max().unwrap();
        swarm.run(from + 20);
        let (middle, far) = sums(&swarm);
        swarm.run(from + 200);
        let (after, near) = sums(&swarm);
        conserved(&middle, &after, text);
        assert!(near <= far.max(ROUNDING), "{text}: {far} to {near}");
    }
}

#[test]
fn exact_diffusion_reaches_the_optimum_with_coarse_codecs() {
    for (codec, rate) in [("int8", 0.5), ("int4", 0.5), ("int4", 0.2), ("bf16", 0.5)] {
        let text = format!(
            "preset = \"d2\"\n[architecture]\nrate = {rate}\n[compression]\ncodec = \"{codec}\""
        );
        let strategy: Strategy = text.parse().unwrap();
        let (dim, peers, apart) = (32, 4, 0.3);
        let task = quadratic(dim, apart, *strategy.inner_kind());
        let mut swarm = Swarm::training(&text, task, peers, [0, 3]);
        swarm.run_long(2000);
        let loss = worst_loss(&swarm, &Quadratic::new(dim, apart, 0.0, [0, peers], 3));
        println!("{codec} {rate}: {loss:e}");
        assert!(loss < 1e-6, "{codec} {rate}: {loss:e}");
    }
}

#[test]
fn a_neighbour_that_never_answers_does_not_block_other_exchanges() {
    for text in METHODS {
        let mut swarm = resting(text, 5, 6);
        swarm.fate = Box::new(
            |slice| match slice.origin == peer(4) && slice.round >= Round(5) {
                true => Fate::Vanished,
                false => Fate::Delivered,
            },
        );
        let spread = |swarm: &Swarm| {
            let of = |at: usize| {
                let values = (0..4).map(|i| swarm.members[&peer(i)].executor.anchor()[at]);
                let (low, high) =
                    values.fold((f32::MAX, f32::MIN), |(l, h), v| (l.min(v), h.max(v)));
                high - low
            };
            (0..DIM).map(of).fold(0.0, f32::max)
        };
        swarm.run(8);
        let start = spread(&swarm);
        swarm.run(100);
        let end = spread(&swarm);
        assert!(end < 0.2 * start, "{text}: {start} to {end}");
    }
}
