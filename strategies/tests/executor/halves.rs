//! Steps whose gradients come in two rounds, with peers and Executors together, against a reference in f64 of
//! ACCO (Nabli et al., arXiv 2406.02613) as it is written.

use crate::common::store::Store;
use crate::common::{
    Make, Swarm, ended_alike, gradient, near, orders, peer, quadratic, quadratics, refused_key,
    wide,
};
use murmurate_protocol::{Done, Event, FragmentId, Order, Part, Round, RunId, SliceId, StoreId};
use murmurate_strategies::executor::Executor;
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::inner::InnerKind;
use murmurate_strategies::toy::Quadratic;

const DIM: usize = 61;
const PEERS: usize = 3;

const SGD: &str = "[inner]\noptimizer = \"sgd\"\nlr = 0.3\nmomentum = 0.5\n";
const ADAM: &str = "[inner]\noptimizer = \"adam-w\"\nlr = 0.05\nbetas = [0.8, 0.9]\neps = 0.01\n\
                    weight_decay = 0.1\n";

fn make() -> Make {
    let task = quadratic(DIM, 1.0, InnerKind::sgd(0.1));
    Box::new(move |index| task.build(index, PEERS, 11))
}

fn acco(more: &str) -> String {
    format!("preset = \"acco\"\n[overlap]\nfragments = 2\n{more}")
}

fn tasks() -> Vec<Quadratic> {
    quadratics(DIM, 1.0, PEERS, 11)
}

/// The mean gradient of some peers at `x`.
fn mean(tasks: &[Quadratic], x: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; x.len()];
    for task in tasks {
        let all = sum.iter_mut().zip(gradient(task, x));
        all.for_each(|(sum, g)| *sum += g);
    }
    sum.iter().map(|g| g / tasks.len() as f64).collect()
}

/// An optimizer in f64: two moments, and inner steps taken.
#[derive(Clone)]
struct Opt {
    sgd: bool,
    moments: [Vec<f64>; 2],
    steps: i32,
}

impl Opt {
    fn new(text: &str) -> Self {
        Self {
            sgd: text == SGD,
            moments: [vec![0.0; DIM], vec![0.0; DIM]],
            steps: 0,
        }
    }

    fn step(&mut self, x: &[f64], gradient: &[f64]) -> Vec<f64> {
        self.steps += 1;
        let [first, second] = &mut self.moments;
        let mut next = Vec::new();
        for at in 0..x.len() {
            let (g, m, v) = (gradient[at], &mut first[at], &mut second[at]);
            next.push(if self.sgd {
                *m = 0.5 * *m + g;
                x[at] - 0.3 * *m
            } else {
                *m = 0.8 * *m + 0.2 * g;
                *v = 0.9 * *v + 0.1 * g * g;
                let [m, v] = [
                    *m / (1.0 - 0.8f64.powi(self.steps)),
                    *v / (1.0 - 0.9f64.powi(self.steps)),
                ];
                (1.0 - 0.05 * 0.1) * x[at] - 0.05 * m / (v.sqrt() + 0.01)
            });
        }
        next
    }
}

/// What is in force after every round: estimates after first halves, parameters after second ones.
fn reference(text: &str, tasks: &[Quadratic], initial: &[f32], steps: usize) -> Vec<Vec<f64>> {
    let mut opt = Opt::new(text);
    let mut theta = wide(initial);
    let mut first = mean(tasks, &theta);
    let mut all = Vec::new();
    for _ in 0..steps {
        // While the first half is summed, the second one is computed.
        let second = mean(tasks, &theta);
        let estimate = opt.clone().step(&theta, &first);
        // While both are summed, the next first half is computed at the estimate.
        let next = mean(tasks, &estimate);
        let both: Vec<f64> = first
            .iter()
            .zip(&second)
            .map(|(u, w)| (u + w) / 2.0)
            .collect();
        theta = opt.step(&theta, &both);
        all.push(estimate);
        all.push(theta.clone());
        first = next;
    }
    all
}

/// What f32 rounds in thirty steps of values below ten.
const ROUNDING: f64 = 2e-5;

#[test]
fn both_halves_move_the_parameters_that_the_second_one_was_computed_at() {
    for inner in [SGD, ADAM] {
        for exchange in ["all-reduce", "gathered", "parameter-server"] {
            for seed in [0, 3] {
                let text = format!(
                    "{}[architecture]\nexchange = \"{exchange}\"\ncontribution = \"gradient\"\n",
                    acco(inner)
                );
                let mut swarm = Swarm::new(&text, PEERS, seed, make());
                swarm.run(30);
                let expected = reference(inner, &tasks(), &swarm.initial.clone(), 15);
                for (round, expected) in expected.iter().enumerate() {
                    for index in 0..PEERS {
                        let at = |index: usize| {
                            &swarm.members[&peer(index)].anchors[&Round(round as u64)]
                        };
                        assert_eq!(at(index), at(0), "the same bits");
                        near(
                            at(index),
                            expected,
                            ROUNDING,
                            &format!("{text} round {round}"),
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn it_converges_where_a_late_gradient_does_not() {
    let loss = |text: &str, rounds: u64| {
        let mut swarm = Swarm::new(text, PEERS, 0, make());
        swarm.run(rounds);
        tasks()[0].global_loss(swarm.members[&peer(0)].executor.anchor())
    };
    let inner = "[inner]\noptimizer = \"sgd\"\nlr = 1.4\nmomentum = 0.0\n";
    let late = format!("preset = \"bsp\"\n[overlap]\nlate_steps = 1\n{inner}");
    let before = tasks()[0].global_loss(&[0.0; DIM]);
    let (halves, late) = (loss(&acco(inner), 200), loss(&late, 60));
    assert!(halves < 1e-9, "{halves}");
    assert!(late > before, "{late} of {before}");
}

#[test]
fn a_death_in_any_half_leaves_the_others_with_the_same_bits_and_a_newcomer_joins_them() {
    for seed in 1..24 {
        let mut swarm = Swarm::new(&acco(ADAM), PEERS + 1, seed, make());
        swarm.run(3);
        let stop = swarm.now + core::time::Duration::from_millis(130 * seed);
        swarm.run_until(|swarm| swarm.now >= stop);
        swarm.kill(peer(seed as usize % PEERS));
        swarm.run(8 + seed % 2);
        // In the middle of a step, or between two.
        swarm.add(PEERS + 2, true);
        let last = 16 + seed % 2;
        let all = |swarm: &Swarm| {
            let rounds = swarm
                .members
                .values()
                .map(|m| m.digests.contains_key(&Round(last)));
            rounds.collect::<Vec<_>>() == [true; PEERS + 1]
        };
        swarm.run_until(all);
        ended_alike(&swarm, last, &format!("{seed}"));
        let joined = swarm.members[&peer(PEERS + 2)].events.iter();
        let joined = joined.filter(|e| matches!(e, Event::Voided { .. })).count();
        assert_eq!(joined, 0, "{seed}");
    }
}

fn executor(text: &str) -> Executor {
    let strategy: Strategy = text.parse().unwrap();
    orders::executor(&strategy, make()(0))
}

fn slice(round: u64, part: Part) -> SliceId {
    orders::slice(Round(round), FragmentId(0), part)
}

fn train(round: u64, steps: u32, cut: bool) -> Order {
    orders::training(round, steps, cut, 1)
}

/// Ends a round whose cut is here, once the next round's gradient is computed.
fn end(executor: &mut Executor, store: &Store, round: u64, void: bool) {
    let (own, fragment) = (slice(round, Part::Contribution), FragmentId(0));
    let mut orders = vec![
        train(round + 1, 1, false),
        orders::encode(StoreId::Local, own),
    ];
    match void {
        true => orders.push(orders::void(Round(round), fragment)),
        false => orders.extend(orders::alone(Round(round), fragment, own)),
    }
    orders.push(train(round + 1, 0, true));
    orders::perform(executor, store, &orders);
}

fn started(text: &str) -> (Executor, Store) {
    let (mut executor, store) = (executor(text), Store::default());
    executor.perform(&train(0, 1, true), &store);
    (executor, store)
}

/// As [`reference`] for one peer, where some rounds are void.
fn with_void(text: &str, rounds: u64, void: &[u64]) -> Vec<Vec<f64>> {
    let tasks = &tasks()[..1];
    let mut opt = Opt::new(text);
    let mut theta = vec![0.0; DIM];
    let mut anchor = theta.clone();
    // The gradients of the round that is summed and of the next one.
    let mut under_way = mean(tasks, &anchor);
    let mut held: Option<(u64, Vec<f64>)> = None;
    let mut all = Vec::new();
    for round in 0..rounds {
        let next = mean(tasks, &anchor);
        opt.steps = (round / 2) as i32;
        if !void.contains(&round) {
            if let Some((_, first)) = held.take_if(|(pair, _)| *pair != round / 2) {
                opt.steps = (round / 2) as i32 - 1;
                opt.step(&theta, &first);
                theta = anchor.clone();
                opt.steps = (round / 2) as i32;
            }
            if round % 2 == 0 {
                theta = anchor.clone();
                anchor = opt.clone().step(&theta, &under_way);
                held = Some((round / 2, under_way));
            } else {
                let both = match held.take() {
                    Some((_, first)) => {
                        let pairs = first.iter().zip(&under_way);
                        pairs.map(|(u, w)| (u + w) / 2.0).collect()
                    }
                    None => under_way,
                };
                theta = opt.step(&theta, &both);
                anchor = theta.clone();
            }
        }
        all.push(anchor.clone());
        under_way = next;
    }
    all
}

#[test]
fn void_rounds_leave_no_half_behind() {
    for inner in [SGD, ADAM] {
        let text = format!("preset = \"acco\"\n[overlap]\nfragments = 1\n{inner}");
        for void in [
            &[][..],
            &[4],
            &[5],
            &[4, 5],
            &[5, 6],
            &[3, 6, 9],
            &[0],
            &[1, 2, 3],
        ] {
            let (mut executor, store) = started(&text);
            let expected = with_void(inner, 14, void);
            for round in 0..14 {
                end(&mut executor, &store, round, void.contains(&round));
                let what = format!("{inner} void {void:?} round {round}");
                near(
                    executor.anchor(),
                    &expected[round as usize],
                    ROUNDING,
                    &what,
                );
            }
        }
    }
}

#[test]
fn a_restart_between_the_halves_goes_on_bit_by_bit() {
    let text = format!("preset = \"acco\"\n[overlap]\nfragments = 1\n{ADAM}");
    for (rounds, void) in [(5, None), (6, None), (6, Some(5))] {
        let (mut whole, store) = started(&text);
        for round in 0..rounds {
            end(&mut whole, &store, round, void == Some(round));
        }
        let mut again = orders::restarted(&mut whole, executor(&text));
        // Who restarts computes the gradient again: both do, from the same parameters.
        let ends = [&mut whole, &mut again].map(|executor| {
            let store = Store::default();
            executor.perform(&train(rounds, 1, true), &store);
            let mut digests = Vec::new();
            for round in rounds..rounds + 4 {
                end(executor, &store, round, false);
                digests.push(executor.digests());
            }
            digests
        });
        assert_eq!(ends[0], ends[1], "{rounds} {void:?}");
    }
}

#[test]
fn a_state_of_the_middle_of_a_step_is_as_long_as_the_plan_says_and_goes_on() {
    let text = format!("preset = \"acco\"\n[overlap]\nfragments = 1\n{ADAM}");
    let (mut donor, store) = started(&text);
    for round in 0..5 {
        end(&mut donor, &store, round, false);
    }
    let round = Round(5);
    let pin = Order::Pin {
        round,
        note: Vec::new(),
    };
    let Some(Done::Pinned(state)) = donor.perform(&pin, &store) else {
        panic!("a state is pinned");
    };
    let bytes = store.states.borrow()[&state].clone();
    // Parameters, two moments, parameters in force, the first half, and whether there is one.
    let values = 5 * DIM + 1;
    assert_eq!(bytes.len(), 56 + 4 * values);
    let strategy: Strategy = text.parse().unwrap();
    let plan = strategy.plan(RunId::from_bytes([1; 32]), make()(0).layout(), 0);
    assert!(bytes.len() as u64 <= plan.unwrap().state_bytes);
    let fresh = Store::default();
    fresh.states.borrow_mut().insert(state, bytes);
    let mut newcomer = executor(&text);
    let load = Order::Load { state };
    assert!(matches!(
        newcomer.perform(&load, &fresh),
        Some(Done::Loaded { .. })
    ));
    let ends = [&mut donor, &mut newcomer].map(|executor| {
        let store = Store::default();
        executor.perform(&train(5, 1, true), &store);
        (5..9).for_each(|round| end(executor, &store, round, false));
        executor.digests()
    });
    assert_eq!(ends[0], ends[1]);
}

#[test]
fn rounds_that_are_no_halves_are_refused() {
    let blend = "[overlap]\nblend = \"estimate\"\nlate_steps = \"1/1\"\n";
    let early = "[synchronization]\ninner_steps = 3\n[overlap]\nlate_steps = 2\n";
    let momenta = format!("[inner]\nsends = \"momenta\"\n{blend}");
    for (preset, keys, key) in [
        ("diloco", blend, "overlap.blend"),
        ("acco", early, "overlap.late_steps"),
        ("acco", "[overlap]\nlate_steps = 0\n", "overlap.blend"),
        ("one-bit-adam", &momenta, "inner.sends"),
    ] {
        let text = format!("preset = \"{preset}\"\n{keys}");
        assert_eq!(refused_key(&text), key, "{text}");
    }
    let strategy: Strategy = "preset = \"acco\"".parse().unwrap();
    assert_eq!(strategy.to_toml().parse::<Strategy>().unwrap(), strategy);
    assert!(strategy.stores().contains(&("first halves", 2.0)));
}
