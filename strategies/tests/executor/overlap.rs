//! Overlap, with peers and Executors together: what staggered fragments are equal to, and what late
//! results do, against a reference of its own in f64.

use crate::common::store::Store;
use crate::common::{Make, Swarm, gradient, near, orders, peer, quadratic, quadratics, wide};
use murmurate_protocol::{Done, FragmentId, Order, Part, Round, SliceId, StoreId};
use murmurate_strategies::Layout;
use murmurate_strategies::executor::Executor;
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::inner::InnerKind;
use murmurate_strategies::slices::SliceStore;
use murmurate_strategies::toy::{Objective, Quadratic};

const DIM: usize = 203;
const PEERS: usize = 3;

/// A quadratic without noise: every coordinate goes its way whatever the others do.
fn separable() -> Make {
    let task = quadratic(DIM, 1.0, InnerKind::sgd(0.1));
    Box::new(move |index| task.build(index, PEERS, 11))
}

fn run(text: &str, rounds: u64) -> Swarm {
    let mut swarm = Swarm::new(text, PEERS, 0, separable());
    swarm.run(rounds);
    swarm
}

/// A member's anchor when a round had ended.
fn anchor(swarm: &Swarm, index: usize, round: u64) -> &[f32] {
    &swarm.members[&peer(index)].anchors[&Round(round)]
}

/// Checks that all hold the same bits after a round, and those of a reference.
fn follow(swarm: &Swarm, round: u64, expected: &[f64], what: &str) {
    for index in 0..PEERS {
        let found = anchor(swarm, index, round);
        assert_eq!(found, anchor(swarm, 0, round), "the same bits");
        near(found, expected, 1e-5, &format!("{what} round {round}"));
    }
}

fn tasks() -> Vec<Quadratic> {
    quadratics(DIM, 1.0, PEERS, 11)
}

#[test]
fn staggered_fragments_are_as_many_plain_runs_each_begun_a_round_later() {
    let staggered = "preset = \"diloco\"\n[synchronization]\ninner_steps = 3\n\
                     [overlap]\nfragments = 8\nstagger = 4\n";
    let staggered = run(staggered, 16);
    let whole = "preset = \"diloco\"\n[synchronization]\ninner_steps = 12\n\
                 [overlap]\nfragments = 8\n";
    let whole = run(whole, 4);
    let layout = Layout::new([("x", vec![DIM as u64])]);
    let ranges = staggered.strategy.fragments(&layout);
    for (fragment, range) in ranges.into_iter().enumerate() {
        let turn = fragment as u64 % 4;
        for round in 0..16 {
            let at = |round: u64| &anchor(&staggered, 0, round)[range.clone()];
            for other in 1..PEERS {
                let theirs = &anchor(&staggered, other, round)[range.clone()];
                assert_eq!(theirs, at(round), "fragment {fragment}, round {round}");
            }
            let moved = round == 0 || at(round) != at(round - 1);
            let first = round == 0 && turn != 0;
            assert_eq!(
                moved && !first,
                round % 4 == turn,
                "fragment {fragment}, round {round}"
            );
        }
    }
    // The last in turn have their first exchange after four rounds of three inner steps, and from
    // then on every four: a plain run of twelve, to the bit.
    for fragment in [3, 7] {
        let range = staggered.strategy.fragments(&layout)[fragment].clone();
        for cycle in 0..4 {
            assert_eq!(
                anchor(&staggered, 1, 4 * cycle + 3)[range.clone()],
                anchor(&whole, 1, cycle)[range.clone()],
                "fragment {fragment}, cycle {cycle}"
            );
        }
    }
}

/// Rounds of H inner steps of SGD and the mean outside, results late by `late` inner steps.
#[derive(Clone, Copy)]
struct Reference {
    inner_steps: usize,
    late: usize,
    stagger: usize,
    fragments: usize,
    /// `None` is a peer's own progress on top of the new anchor.
    alpha: Option<f64>,
}

/// The means of the deltas of the paper's algorithm as it is written: each peer has parameters and an outer
/// optimizer of its own, and moves by its share of its delta at once and by the others' a round late.
fn means_of_eager_updates(
    initial: &[f32],
    inner_steps: usize,
    [lr, momentum]: [f64; 2],
    rounds: usize,
) -> Vec<Vec<f64>> {
    let (tasks, initial) = (tasks(), wide(initial));
    let (mut theta, mut velocity) = (vec![initial; PEERS], vec![vec![0.0; DIM]; PEERS]);
    let mut old = vec![vec![0.0; DIM]; PEERS];
    let mut means = vec![vec![0.0; DIM]];
    for round in 0..rounds {
        let trained = theta.iter().zip(&tasks).map(|(theta, task)| {
            let (curvature, center) = task.own();
            let rows = theta.iter().zip(curvature).zip(center);
            let delta = rows.map(|((x, k), c)| {
                let shrunk = (1.0 - 0.1 * f64::from(*k)).powi(inner_steps as i32);
                (shrunk - 1.0) * (x - f64::from(*c))
            });
            delta.collect()
        });
        let deltas: Vec<Vec<f64>> = trained.collect();
        for (peer, theta) in theta.iter_mut().enumerate() {
            for at in 0..DIM {
                let own = (deltas[peer][at] - old[peer][at]) / PEERS as f64;
                let moved = own + means[round][at];
                let m = &mut velocity[peer][at];
                *m = momentum * *m - moved;
                theta[at] -= lr * (momentum * *m - moved);
            }
        }
        let mean = |at: usize| deltas.iter().map(|d| d[at]).sum::<f64>() / PEERS as f64;
        means.push((0..DIM).map(mean).collect());
        old = deltas;
    }
    means.split_off(1)
}

impl Reference {
    fn text(self) -> String {
        let blend = match self.alpha {
            Some(alpha) => alpha.to_string(),
            None => "\"own-progress\"".to_owned(),
        };
        format!(
            "preset = \"local-sgd\"\n[synchronization]\ninner_steps = {}\n\
             [overlap]\nfragments = {}\nstagger = {}\nlate_steps = {}\nblend = {blend}\n",
            self.inner_steps, self.fragments, self.stagger, self.late
        )
    }

    /// The anchor after every round.
    fn anchors(self, initial: &[f32], rounds: usize) -> Vec<Vec<f64>> {
        let tasks = tasks();
        let step = |theta: &mut Vec<Vec<f64>>, count: usize| {
            for (theta, task) in theta.iter_mut().zip(&tasks) {
                for _ in 0..count {
                    let down = gradient(task, theta);
                    theta.iter_mut().zip(down).for_each(|(x, g)| *x -= 0.1 * g);
                }
            }
        };
        let cut = |at: usize| at * DIM / self.fragments;
        let mut anchor = wide(initial);
        let mut theta = vec![anchor.clone(); PEERS];
        let mut anchors = Vec::new();
        step(&mut theta, self.inner_steps);
        for round in 0..rounds {
            let cuts = theta.clone();
            step(&mut theta, self.late);
            for fragment in (0..self.fragments).filter(|f| f % self.stagger == round % self.stagger)
            {
                for at in cut(fragment)..cut(fragment + 1) {
                    let mean = cuts.iter().map(|c| c[at]).sum::<f64>() / PEERS as f64;
                    anchor[at] = mean;
                    for (theta, cuts) in theta.iter_mut().zip(&cuts) {
                        theta[at] = match self.alpha {
                            Some(alpha) => alpha * theta[at] + (1.0 - alpha) * mean,
                            None => mean + (theta[at] - cuts[at]),
                        };
                    }
                }
            }
            anchors.push(anchor.clone());
            step(&mut theta, self.inner_steps - self.late);
        }
        anchors
    }
}

#[test]
fn late_results_follow_the_reference() {
    let plain = Reference {
        inner_steps: 5,
        late: 2,
        stagger: 1,
        fragments: 2,
        alpha: None,
    };
    let half = Some(0.5);
    for reference in [
        plain,
        Reference { late: 5, ..plain },
        Reference {
            alpha: half,
            ..plain
        },
        Reference {
            alpha: Some(0.0),
            late: 3,
            ..plain
        },
        Reference {
            stagger: 3,
            fragments: 6,
            ..plain
        },
        Reference {
            stagger: 2,
            fragments: 4,
            late: 5,
            alpha: half,
            ..plain
        },
    ] {
        let text = reference.text();
        for seed in [0, 3] {
            let mut swarm = Swarm::new(&text, PEERS, seed, separable());
            swarm.run(12);
            let expected = reference.anchors(&swarm.initial.clone(), 12);
            for (round, expected) in (0..).zip(&expected) {
                follow(&swarm, round, expected, &text);
            }
        }
    }
}

#[test]
fn eager_updates_are_the_papers_algorithm_beside_an_anchor_that_all_agree_on() {
    for (outer, lr, momentum) in [
        ("optimizer = \"average\"", 1.0, 0.0),
        (
            "optimizer = \"nesterov\"\nlr = 0.7\nmomentum = 0.6",
            0.7,
            0.6,
        ),
    ] {
        let text = format!(
            "preset = \"local-sgd\"\n[synchronization]\ninner_steps = 5\n\
             [overlap]\nfragments = 2\nlate_steps = 5\nblend = \"eager\"\n[outer]\n{outer}\n"
        );
        for seed in [0, 3] {
            let mut swarm = Swarm::new(&text, PEERS, seed, separable());
            swarm.run(12);
            let mut expected = wide(&swarm.initial);
            let mut velocity = [0.0; DIM];
            let means = means_of_eager_updates(&swarm.initial.clone(), 5, [lr, momentum], 12);
            for (round, mean) in (0..).zip(&means) {
                for ((a, m), d) in expected.iter_mut().zip(&mut velocity).zip(mean) {
                    *m = momentum * *m - d;
                    *a -= lr * (momentum * *m - d);
                }
                follow(&swarm, round, &expected, &text);
            }
        }
    }
}

#[test]
fn a_delayed_gradient_is_that_of_the_parameters_one_inner_step_ago() {
    let text = "preset = \"bsp\"\n[overlap]\nlate_steps = 1\n[inner]\noptimizer = \"sgd\"\nlr = 0.1\nmomentum = 0.0\n";
    let mut swarm = Swarm::new(text, PEERS, 0, separable());
    swarm.run(10);
    let mut theta = wide(&swarm.initial);
    let mut stale = theta.clone();
    for round in 0..10 {
        let now = theta.clone();
        for task in &tasks() {
            let pairs = theta.iter_mut().zip(gradient(task, &stale));
            pairs.for_each(|(x, g)| *x -= 0.1 / PEERS as f64 * g);
        }
        stale = now;
        follow(&swarm, round, &theta, text);
    }
}

fn executor(text: &str) -> Executor {
    let strategy: Strategy = text.parse().unwrap();
    orders::executor(&strategy, separable()(0))
}

fn slice(round: u64, fragment: u16, part: Part) -> SliceId {
    orders::slice(Round(round), FragmentId(fragment), part)
}

fn train(round: u64, steps: u32, cut: bool) -> Order {
    orders::training(round, steps, cut, PEERS)
}

/// The cut of a round, and the beginning of the next one while the first fragment's result comes.
fn one_round(executor: &mut Executor, store: &Store, round: u64) {
    let own = slice(round, 0, Part::Contribution);
    let begun = [
        train(round, 3, true),
        train(round + 1, 2, false),
        orders::encode(StoreId::Local, own),
    ];
    orders::perform(executor, store, &begun);
    let ended = orders::alone(Round(round), FragmentId(0), own);
    orders::perform(executor, store, &ended);
}

/// What fragment 0's contribution is after a whole round's inner steps.
fn next_contribution(executor: &mut Executor, store: &Store, round: u64) -> Vec<u8> {
    let own = slice(round, 0, Part::Contribution);
    for order in [train(round, 6, true), orders::encode(StoreId::Local, own)] {
        executor.perform(&order, store);
    }
    store.get(&own).unwrap().to_vec()
}

#[test]
fn a_delta_that_was_left_behind_comes_back_with_a_void_round_and_with_a_restart() {
    let text = "preset = \"eager-diloco\"\n[overlap]\nfragments = 1\nlate_steps = 2\n";
    let (mut whole, store) = (executor(text), Store::default());
    for order in [train(0, 3, true), train(1, 2, false)] {
        whole.perform(&order, &store);
    }
    let mut again = orders::restarted(&mut whole, executor(text));
    let void = orders::void(Round(0), FragmentId(0));
    whole.perform(&void, &store);
    let voided = next_contribution(&mut whole, &store, 1);
    assert_eq!(voided, next_contribution(&mut again, &store, 1));
    let task = Quadratic::new(DIM, 1.0, 0.0, [0, PEERS], 11);
    let (curvature, center) = task.own();
    let (values, _) = voided[voided.len() - 4 * DIM..].as_chunks::<4>();
    for (at, value) in values.iter().enumerate() {
        let (anchor, c) = (f64::from(whole.anchor()[at]), f64::from(center[at]));
        let k = f64::from(curvature[at]);
        let after = |steps: i32, x: f64| c + (1.0 - 0.1 * k).powi(steps) * (x - c);
        let delta = after(3, anchor) - anchor;
        // Nesterov's first step at 0.4 and 0.8 by a third of it.
        let part = 0.4 * 1.8 * delta / 3.0;
        let expected = after(6, after(2, anchor + part) + delta - part) - anchor;
        let found = f64::from(f32::from_le_bytes(*value));
        assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
    }
}

#[test]
fn what_is_evaluated_is_the_anchor_and_the_trainer_goes_on_with_its_own() {
    for blend in ["\"own-progress\"", "\"eager\"", "0.25"] {
        let text = format!(
            "preset = \"diloco\"\n[overlap]\nfragments = 2\nstagger = 2\nlate_steps = 2\nblend = {blend}\n"
        );
        let evaluate = |executor: &mut Executor, store: &Store| {
            let order = Order::Evaluate { round: Round(1) };
            match executor.perform(&order, store) {
                Some(Done::Evaluated(evaluation)) => evaluation.loss,
                other => panic!("{other:?}"),
            }
        };
        let store = Store::default();
        let (mut looked, mut other) = (executor(&text), executor(&text));
        let before = evaluate(&mut looked, &store);
        one_round(&mut looked, &store, 0);
        one_round(&mut other, &Store::default(), 0);
        // The anchor's, by a trainer that has nothing but that.
        let after = evaluate(&mut looked, &store);
        let objective = Quadratic::new(DIM, 1.0, 0.0, [0, PEERS], 11);
        let expected = Objective::evaluate(&objective, looked.anchor()).loss;
        assert_eq!(after, expected, "{blend}");
        assert!(after < before, "{blend}: {after} of {before}");
        let contributions = [&mut looked, &mut other]
            .map(|executor| next_contribution(executor, &Store::default(), 1));
        assert_eq!(contributions[0], contributions[1], "{blend}");
    }
}

#[test]
fn the_private_momentum_of_eager_updates_survives_a_restart_bit_by_bit() {
    let text = "preset = \"eager-diloco\"\n[overlap]\nfragments = 1\nlate_steps = 2\n";
    let (mut whole, store) = (executor(text), Store::default());
    one_round(&mut whole, &store, 0);
    let mut again = orders::restarted(&mut whole, executor(text));
    let ends = [&mut whole, &mut again].map(|executor| {
        let store = Store::default();
        one_round(executor, &store, 1);
        (executor.digests(), next_contribution(executor, &store, 2))
    });
    assert_eq!(ends[0], ends[1]);
}

#[test]
fn what_was_trained_ahead_and_what_has_no_turn_outlive_a_restart_to_the_bit() {
    for blend in ["\"own-progress\"", "\"eager\"", "0.25"] {
        let text = format!(
            "preset = \"diloco\"\n[overlap]\nfragments = 2\nstagger = 2\nlate_steps = 2\nblend = {blend}\n"
        );
        let (mut whole, store) = (executor(&text), Store::default());
        one_round(&mut whole, &store, 0);
        let mut again = orders::restarted(&mut whole, executor(&text));
        let mut cuts = [&mut whole, &mut again].map(|executor| {
            executor.perform(&train(1, 6, true), &store);
            let encoded = [0, 1].map(|fragment| {
                let slice = slice(1, fragment, Part::Contribution);
                let order = orders::encode(StoreId::Local, slice);
                executor.perform(&order, &store);
                store.get(&slice).unwrap()
            });
            (encoded, executor.digests())
        });
        assert_eq!(cuts[0], cuts[1], "{blend}");
        // Fragment 1 has had no turn: its delta is that of all inner steps since the start.
        let fresh = executor(&text).perform(&train(0, 11, true), &store);
        assert!(fresh.is_some());
        cuts[0].0.swap(0, 1);
        assert_ne!(cuts[0].0, cuts[1].0, "the two fragments differ");
    }
}
