//! Exchanges between two, with real peers and Executors: what one end gains the other loses, on links that
//! lose, repeat and forget; consensus follows the mixing matrix; costs are those of the doc.

use crate::common::decode::decode;
use crate::common::{Draw, Fate, Resting, Swarm, peer, quadratic};
use murmurate_protocol::{Order, Output, Part, PeerId, Round, Standing, Tag};
use murmurate_strategies::Trainer;
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::topology::{Ring, mixing_matrix};
use murmurate_strategies::toy::Quadratic;

const DIM: usize = 37;

/// How far apart peers may rest: bf16 does not tell values of 4 and more apart that are closer.
const ROUNDING: f64 = 1.0 / 32.0;

fn swarm(text: &str, peers: usize, seed: u64) -> Swarm {
    let make = Box::new(|index| Box::new(Resting::new(index, DIM)) as Box<dyn Trainer>);
    Swarm::new(text, peers, seed, make)
}

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
            let mut swarm = swarm(text, peers, seed);
            swarm.run(1);
            let start = sums(&swarm).1;
            let before = initial(peers);
            swarm.run(300);
            let (after, end) = sums(&swarm);
            for (before, after) in before.iter().zip(&after) {
                let off = (before - after).abs();
                assert!(off < 2e-3, "{text} {peers}: {before} became {after}");
            }
            assert!(end < 0.6 * start, "{text} {peers}: {start} to {end}");
        }
    }
}

fn initial(peers: usize) -> Vec<f64> {
    let starts: Vec<Resting> = (0..peers).map(|index| Resting::new(index, DIM)).collect();
    let sum = |at: usize| starts.iter().map(|t| f64::from(t.x[at])).sum();
    (0..DIM).map(sum).collect()
}

#[test]
fn the_sum_is_conserved_where_pushes_are_lost_or_of_unknown_fate() {
    for text in METHODS {
        for seed in 1..6 {
            let mut swarm = swarm(text, 4, seed);
            let mut draw = Draw(seed * 77);
            swarm.fate = Box::new(move |_| match draw.below(10) {
                0 => Fate::Lost,
                1 => Fate::Unheard,
                2 => Fate::Vanished,
                _ => Fate::Delivered,
            });
            swarm.run(200);
            let before = initial(4);
            for (before, after) in before.iter().zip(&sums(&swarm).0) {
                let off = (before - after).abs();
                assert!(off < 2e-3, "{text} seed {seed}: {before} became {after}");
            }
        }
    }
}

#[test]
fn a_lossless_codec_at_rate_one_mixes_by_the_matrix() {
    let text = "preset = \"choco\"\n[architecture]\nrate = 1.0\n[compression]\ncodec = \"f32\"";
    for peers in [3, 5, 8] {
        let mut swarm = swarm(text, peers, 0);
        swarm.run(6);
        let w = mixing_matrix(&Ring, Round(0), peers);
        // Ranks are positions among all ids, which grow with the index.
        let mut x: Vec<Vec<f64>> = (0..peers)
            .map(|index| {
                let start = Resting::new(index, DIM).x;
                start.iter().map(|v| f64::from(*v)).collect()
            })
            .collect();
        for round in 0..6 {
            x = w
                .iter()
                .map(|row| {
                    let at = |d: usize| row.iter().zip(&x).map(|(w, x)| w * x[d]).sum();
                    (0..DIM).map(at).collect()
                })
                .collect();
            for (index, x) in x.iter().enumerate() {
                let found = &swarm.members[&peer(index)].anchors[&Round(round)];
                for (found, expected) in found.iter().zip(x) {
                    let off = (f64::from(*found) - expected).abs();
                    assert!(off < 1e-4, "{peers} peers, round {round}: {off}");
                }
            }
        }
    }
}

#[test]
fn a_round_of_replicas_is_one_push_to_each_neighbour() {
    let text = "preset = \"choco\"\n[compression]\ncodec = \"int8\"";
    for peers in 2..=33 {
        let mut swarm = swarm(text, peers, 0);
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

/// Before an output of so-and-so takes effect.
type Moment = fn(&Output) -> bool;

#[test]
fn a_death_at_any_message_leaves_the_others_sum_as_it_is() {
    let moments: [(&str, Moment); 5] = [
        ("train", |o| {
            matches!(
                o,
                Output::Order {
                    order: Order::Train { .. },
                    ..
                }
            )
        }),
        ("encode", |o| {
            matches!(
                o,
                Output::Order {
                    order: Order::Encode { .. },
                    ..
                }
            )
        }),
        ("push", |o| matches!(o, Output::Push { .. })),
        ("mix", |o| {
            matches!(
                o,
                Output::Order {
                    order: Order::Combine { .. },
                    ..
                }
            )
        }),
        ("apply", |o| {
            matches!(
                o,
                Output::Order {
                    order: Order::Apply { .. },
                    ..
                }
            )
        }),
    ];
    for text in METHODS {
        for (name, moment) in moments {
            let mut swarm = swarm(text, 4, 9);
            let victim = peer(1);
            swarm.fatal = Box::new(move |who: PeerId, round, output| {
                who == victim && round >= Round(7) && moment(output)
            });
            swarm.run_until(|swarm| swarm.dead.len() == 1);
            let from = swarm.rounds().into_iter().max().unwrap();
            swarm.run(from + 30);
            let before = sums(&swarm);
            swarm.run(from + 200);
            let after = sums(&swarm);
            for (before, after) in before.0.iter().zip(&after.0) {
                let off = (before - after).abs();
                assert!(off < 2e-3, "{text}, {name}: {before} became {after}");
            }
            assert!(
                after.1 <= before.1.max(ROUNDING),
                "{text}, {name}: {} to {}",
                before.1,
                after.1
            );
        }
    }
}

#[test]
fn a_link_that_was_down_restarts_and_a_dead_neighbour_takes_nothing_along() {
    for text in METHODS {
        let mut swarm = swarm(text, 5, 4);
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
        for (middle, after) in middle.iter().zip(&after) {
            assert!(
                (middle - after).abs() < 2e-3,
                "{text}: {middle} became {after}"
            );
        }
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
        let make = Box::new(move |index| task.build(index, peers, 3));
        let mut swarm = Swarm::new(&text, peers, 0, make);
        (200..=2000).step_by(200).for_each(|round| swarm.run(round));
        let objective = Quadratic::new(dim, apart, 0.0, [0, peers], 3);
        for member in swarm.members.values() {
            let loss = objective.global_loss(member.executor.anchor());
            println!("{codec} {rate}: {loss:e}");
            assert!(loss < 1e-6, "{codec} {rate}: {loss:e}");
        }
    }
}

/// What one peer's death takes along of exact diffusion leaves no bias: the others find the optimum of
/// those that are left.
#[test]
fn exact_diffusion_finds_the_optimum_of_those_that_are_left() {
    let text = "preset = \"d2\"";
    let strategy = Strategy::preset("d2").unwrap();
    let (dim, peers) = (32, 4);
    let task = quadratic(dim, 0.3, *strategy.inner_kind());
    let make = Box::new(move |index| task.build(index, peers, 3));
    let mut swarm = Swarm::new(text, peers, 0, make);
    swarm.run(50);
    swarm.kill(peer(1));
    for round in (200..=1000).step_by(200) {
        swarm.run(round);
    }
    let own: Vec<Quadratic> = [0, 2, 3]
        .into_iter()
        .map(|index| Quadratic::new(dim, 0.3, 0.0, [index, peers], 3))
        .collect();
    for at in 0..dim {
        // The gradients of the three sum to zero where their common loss is least.
        let pulls = own
            .iter()
            .map(|q| (f64::from(q.own().0[at]), f64::from(q.own().1[at])));
        let (weight, moment) = pulls.fold((0.0, 0.0), |(w, m), (k, c)| (w + k, m + k * c));
        for member in swarm.members.values() {
            let off = (f64::from(member.executor.anchor()[at]) - moment / weight).abs();
            assert!(off < 1e-4, "dimension {at}: {off} off");
        }
    }
}

#[test]
fn a_neighbour_that_never_answers_does_not_block_other_exchanges() {
    for text in METHODS {
        let mut swarm = swarm(text, 5, 6);
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
