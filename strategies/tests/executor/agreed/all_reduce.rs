//! Peers and Executors together, against a reference of its own in f64: the survivors of every
//! round hold the same bits, and these are the anchor before, moved by the outer optimizer along
//! the weighted mean of the stated set.

use crate::common::{Fatal, Make, Swarm, peer, wide};
use murmurate_protocol::{Event, FragmentId, Order, Output, Part, PeerId, Round};
use murmurate_strategies::toy::ToyTask;
use std::collections::BTreeMap;

const DIM: usize = 203;
/// Orders in which links take turns; 0 is the order in which things were sent. With 45 a member's
/// word that it is ready is overtaken by the proposal that rests on it; with 1007 a link's fall overtakes
/// the proposal that still counts on it.
const SEEDS: [u64; 6] = [0, 45, 1, 2, 3, 1007];
const CODECS: [&str; 4] = [
    "codec = \"f32\"",
    "codec = \"bf16\"",
    "codec = \"int8\"\nerror_feedback = true",
    "codec = \"top-k\"\ndensity = 0.05",
];

fn strategy(codec: &str, fragments: usize) -> String {
    format!("preset = \"diloco\"\n[compression]\n{codec}\n[overlap]\nfragments = {fragments}\n")
}

fn quadratic(peers: usize) -> Make {
    Box::new(move |index| ToyTask::quadratic(DIM).build(index, peers, 11))
}

/// How far a codec's reduction may be from the exact mean: rounding of f32, and of the codec that
/// the mean goes back in.
fn slack(codec: &str, mean: &[f64]) -> f64 {
    let largest = mean.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    largest
        * match codec {
            _ if codec.contains("bf16") => 1.0 / 256.0,
            _ if codec.contains("int8") => 1.01 / 254.0,
            _ => 1e-6,
        }
        + 1e-7
}

/// The reference: the anchor by Nesterov's rule (lr 0.7, momentum 0.9), in f64 from the start.
struct Reference {
    anchor: Vec<f64>,
    momentum: Vec<f64>,
}

impl Reference {
    /// Applies one decided fragment, having checked that what was sent is the mean of what its
    /// contributors said.
    fn apply(&mut self, swarm: &Swarm, codec: &str, round: Round, fragment: FragmentId) {
        let aggregates = &swarm.applied[&(round, fragment)];
        let stated = &swarm.stated[&(round, fragment)];
        assert_eq!(aggregates.len(), stated.len(), "one set a shard");
        for (slice, set) in aggregates.iter().zip(stated) {
            let range = swarm.shard(fragment, usize::from(slice.shard), aggregates.len());
            let total: f64 = set.iter().map(|(_, weight)| weight).sum();
            let mut mean = vec![0.0; range.len()];
            for (from, weight) in set {
                let said = swarm.contribution(*from, slice, range.len());
                for (m, v) in mean.iter_mut().zip(said) {
                    *m += weight / total * v;
                }
            }
            let sent = crate::common::decode::decode(&swarm.encoded[slice], range.len());
            let slack = slack(codec, &mean);
            for (s, m) in sent.iter().zip(&mean) {
                assert!((s - m).abs() <= slack, "{codec} {slice:?}: {s} is not {m}");
            }
            for (at, delta) in range.zip(sent) {
                self.momentum[at] = 0.9 * self.momentum[at] - delta;
                self.anchor[at] -= 0.7 * (0.9 * self.momentum[at] - delta);
            }
        }
    }
}

/// Survivors hold the same digest in every round, and the anchor that the reference holds.
fn check_rounds(swarm: &Swarm, codec: &str, rounds: u64) {
    let mut reference = Reference {
        anchor: wide(&swarm.initial),
        momentum: vec![0.0; DIM],
    };
    let mut decided = 0;
    for round in (0..rounds).map(Round) {
        for fragment in (0..swarm.plan.fragments.len()).map(|f| FragmentId(f as u16)) {
            if swarm.applied.contains_key(&(round, fragment)) {
                reference.apply(swarm, codec, round, fragment);
                decided += 1;
            }
        }
        let mut digests: Vec<_> = swarm
            .members
            .values()
            .map(|m| m.digests.get(&round))
            .collect();
        digests.retain(Option::is_some);
        assert!(!digests.is_empty(), "{codec} {round:?}: somebody ended it");
        assert!(
            digests.windows(2).all(|w| w[0] == w[1]),
            "{codec} {round:?}"
        );
        for (who, member) in &swarm.members {
            let Some(anchor) = member.anchors.get(&round) else {
                continue;
            };
            for (a, r) in anchor.iter().zip(&reference.anchor) {
                let error = (f64::from(*a) - r).abs();
                assert!(
                    error < 1e-5 * (1.0 + r.abs()),
                    "{codec} {who:?} {round:?}: {a} {r}"
                );
            }
        }
    }
    assert!(decided > 0, "{codec}: something was decided");
}

/// Without faults no wait expires, no peer falls behind, and all peers are in every round.
fn check_all_contributed(swarm: &Swarm, rounds: u64, seed: u64) {
    let all: Vec<PeerId> = swarm.members.keys().copied().collect();
    for round in (0..rounds).map(Round) {
        for fragment in swarm.plan.fragment_ids() {
            let sets = &swarm.stated[&(round, fragment)];
            for set in sets {
                let who: Vec<PeerId> = set.iter().map(|(peer, _)| *peer).collect();
                assert_eq!(who, all, "seed {seed}: {round:?} {fragment:?}");
            }
        }
    }
    for (who, member) in &swarm.members {
        let bad = |e: &&Event| match e {
            Event::Waited { expired, .. } => *expired,
            Event::CatchUp { .. } | Event::Suspected { .. } | Event::Voided { .. } => true,
            _ => false,
        };
        let bad = member.events.iter().find(bad);
        assert!(bad.is_none(), "seed {seed}: {who:?}: {bad:?}");
    }
}

/// With error feedback no delta of a survivor is lost: its applied contributions and its residual sum to
/// its deltas. The delta of a void round is part of the next one.
fn check_telescopes(swarm: &mut Swarm, codec: &str, rounds: u64) {
    let members: Vec<PeerId> = swarm.members.keys().copied().collect();
    for who in members {
        let voided = swarm.voided(who);
        let mut left = vec![0.0; DIM];
        for (round, delta) in &swarm.members[&who].deltas {
            if round.0 < rounds && !voided.contains(round) {
                left.iter_mut().zip(delta).for_each(|(l, d)| *l += d);
            }
        }
        for ((_, fragment), aggregates) in swarm.applied.range(..(Round(rounds), FragmentId(0))) {
            let name = (aggregates[0].round, *fragment);
            for (slice, set) in aggregates.iter().zip(&swarm.stated[&name]) {
                if set.iter().any(|(from, _)| *from == who) {
                    let range = swarm.shard(*fragment, usize::from(slice.shard), aggregates.len());
                    let said = swarm.contribution(who, slice, range.len());
                    left[range].iter_mut().zip(said).for_each(|(l, s)| *l -= s);
                }
            }
        }
        let residual = swarm.residual(who, rounds);
        for (at, (l, e)) in left.iter().zip(&residual).enumerate() {
            let error = (l - f64::from(*e)).abs();
            assert!(
                error < 2e-4,
                "{codec} {who:?} at {at}: {l} of residual, {e} kept"
            );
        }
    }
}

#[test]
fn all_hold_the_weighted_mean_of_the_stated_set_in_groups_of_every_size() {
    for codec in CODECS {
        for peers in 2..=9 {
            let fragments = 1 + peers % 2;
            let text = strategy(codec, fragments);
            for seed in SEEDS {
                let mut swarm = Swarm::new(&text, peers, seed, quadratic(peers));
                swarm.run(5);
                check_rounds(&swarm, codec, 5);
                check_all_contributed(&swarm, 5, seed);
            }
        }
    }
}

/// An owner goes on with the bytes that it sent, so what it reduced is of no use once it is encoded.
#[test]
fn reductions_keep_the_room_of_one_shard() {
    let mut swarm = Swarm::new(&strategy(CODECS[0], 4), 3, 0, quadratic(3));
    swarm.run(2);
    for member in std::mem::take(&mut swarm.members).into_values() {
        let kept = member.executor.split().1.memory().shards;
        let shard = DIM.div_ceil(4).div_ceil(3) * size_of::<f32>();
        assert!(kept > 0 && kept <= shard as u64, "{kept} of {shard}");
    }
}

#[test]
fn with_error_feedback_nothing_learned_is_lost() {
    for codec in &CODECS[2..] {
        for peers in [2, 5] {
            for seed in SEEDS {
                let mut swarm = Swarm::new(&strategy(codec, 2), peers, seed, quadratic(peers));
                swarm.run(6);
                check_rounds(&swarm, codec, 6);
                check_telescopes(&mut swarm, codec, 6);
            }
        }
    }
}

/// Where a member dies.
#[derive(Clone, Copy, Debug)]
enum Death {
    Training,
    Pushing,
    HalfServed,
    BeforeItsVote,
}

const DEATHS: [Death; 4] = [
    Death::Training,
    Death::Pushing,
    Death::HalfServed,
    Death::BeforeItsVote,
];

/// Dies in `round` where `death` says; `half` pushes of each kind are let through.
fn dies(victim: PeerId, round: u64, death: Death, half: usize) -> Fatal {
    let (mut pushed, mut served) = (0, 0);
    Box::new(move |who, now, output| {
        if who != victim || now.0 != round {
            return false;
        }
        match (death, output) {
            (Death::Training, Output::Order { order, .. }) => {
                matches!(order, Order::Train { .. })
            }
            (Death::Pushing, Output::Push { slice, .. }) if slice.part == Part::Contribution => {
                pushed += 1;
                pushed > half
            }
            (Death::HalfServed, Output::Push { slice, .. }) if slice.part == Part::Aggregate => {
                served += 1;
                served > half
            }
            (Death::BeforeItsVote, Output::Send { message, .. }) => message.name() == "vote",
            // Others' votes may have made the majority before it had all shards.
            (Death::BeforeItsVote, Output::Order { order, .. }) => {
                matches!(order, Order::Apply { .. })
            }
            _ => false,
        }
    })
}

#[test]
fn survivors_of_a_death_anywhere_hold_the_same_bits() {
    for death in DEATHS {
        for codec in CODECS {
            for (peers, seed) in [3, 4, 6, 9].into_iter().flat_map(|n| SEEDS.map(|s| (n, s))) {
                let text = strategy(codec, 1 + (seed % 2) as usize);
                let mut swarm = Swarm::new(&text, peers, seed, quadratic(peers));
                swarm.fatal = dies(peer(1), 2, death, (peers - 1) / 2);
                swarm.run(6);
                let what = format!("{death:?} {codec} {peers} seed {seed}");
                assert_eq!(swarm.dead, [peer(1)], "{what}");
                check_rounds(&swarm, codec, 6);
                for round in 3..6 {
                    let name = (Round(round), FragmentId(0));
                    let names = |set: &Vec<(PeerId, f64)>| set.iter().map(|(p, _)| *p).collect();
                    let sets: Vec<Vec<PeerId>> = swarm.stated[&name].iter().map(names).collect();
                    let alive: Vec<PeerId> = swarm.members.keys().copied().collect();
                    assert!(sets.iter().all(|set| *set == alive), "{what}: {sets:?}");
                }
            }
        }
    }
}

#[test]
fn the_bytes_that_are_applied_are_those_that_were_checked() {
    for codec in [CODECS[0], CODECS[2]] {
        let mut swarm = Swarm::new(&strategy(codec, 2), 4, 0, quadratic(4));
        swarm.once = true;
        swarm.run(3);
        check_rounds(&swarm, codec, 3);
    }
}

#[test]
fn what_a_death_makes_void_or_lost_is_learned_later() {
    for death in DEATHS {
        for (codec, seed) in CODECS[2..].iter().flat_map(|c| SEEDS.map(|s| (c, s))) {
            let mut swarm = Swarm::new(&strategy(codec, 2), 4, seed, quadratic(4));
            swarm.fatal = dies(peer(2), 2, death, 1);
            swarm.run(5);
            assert_eq!(swarm.dead.len(), 1);
            check_rounds(&swarm, codec, 5);
            check_telescopes(&mut swarm, codec, 5);
        }
    }
}

#[test]
fn a_void_round_leaves_the_anchor_and_its_delta_for_the_next() {
    let mut void_rounds = BTreeMap::new();
    for codec in CODECS {
        for death in [Death::Pushing, Death::HalfServed, Death::BeforeItsVote] {
            let mut swarm = Swarm::new(&strategy(codec, 1), 2, 0, quadratic(2));
            swarm.fatal = dies(peer(1), 2, death, 0);
            swarm.run(5);
            check_rounds(&swarm, codec, 5);
            let voided = swarm.voided(peer(0));
            if voided.contains(&Round(2)) {
                *void_rounds.entry(codec).or_insert(0) += 1;
                let survivor = &swarm.members[&peer(0)];
                assert_eq!(survivor.anchors[&Round(1)], survivor.anchors[&Round(2)]);
                // The next delta goes on from this one: it is longer, not a fresh start.
                let norm = |d: &[f64]| d.iter().map(|v| v * v).sum::<f64>().sqrt();
                let (void, next) = (&survivor.deltas[&Round(2)], &survivor.deltas[&Round(3)]);
                let along: f64 = void.iter().zip(next).map(|(a, b)| a * b).sum();
                assert!(along > 0.9 * norm(void) * norm(void), "{codec}");
            }
            if codec.contains("error_feedback") || codec.contains("top-k") {
                check_telescopes(&mut swarm, codec, 5);
            }
        }
    }
    assert!(CODECS.iter().all(|c| void_rounds[c] > 0), "{void_rounds:?}");
}

#[test]
fn a_late_joiner_takes_over_anchor_outer_state_and_clock() {
    for (codec, seed) in CODECS.into_iter().flat_map(|c| SEEDS.map(|s| (c, s))) {
        let mut swarm = Swarm::new(&strategy(codec, 2), 3, seed, quadratic(4));
        swarm.run(4);
        swarm.add(3, true);
        swarm.run_until(|swarm| swarm.members[&peer(3)].digests.len() >= 4);
        let newcomer = &swarm.members[&peer(3)];
        let ended: Vec<Round> = newcomer.digests.keys().copied().collect();
        assert!(ended[0].0 >= 4, "{ended:?}: it takes the clock over");
        // The reference's momentum goes back to the first round: the newcomer has it, or its anchor
        // would leave the others' with its first round.
        check_rounds(&swarm, codec, ended[3].0 + 1);
        let last = &swarm.stated[&(ended[3], FragmentId(0))];
        let contributes = |set: &Vec<(PeerId, f64)>| set.iter().any(|(p, _)| *p == peer(3));
        assert!(last.iter().all(contributes), "{last:?}");
    }
}
