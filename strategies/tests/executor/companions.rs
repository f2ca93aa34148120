//! Companions: what travels beside the parameters, chosen in the grid and carried out by real peers and Executors.
//! Corrections with one reach the common optimum where those without keep their bias, also if peers die or resume.

use crate::common::check::{losses, worst_loss};
use crate::common::store::{Still, Store};
use crate::common::{
    Fate, Swarm, gradient, mixing_matrix, near, off_optimum, orders, peer, quadratic, quadratics,
    secrets,
};
use murmurate_protocol::{FragmentId, Part, Round, RunId, StepBudget, StoreId};
use murmurate_strategies::executor::{Executor, Parts};
use murmurate_strategies::grid::{Strategy, registry};
use murmurate_strategies::state::{MemoryState, StateSource};
use murmurate_strategies::topology::Ring;
use murmurate_strategies::toy::{Quadratic, ToyTask};

const DIM: usize = 24;
const PEERS: usize = 4;
const SEED: u64 = 5;
const APART: f64 = 0.5;

fn task(text: &str) -> ToyTask {
    quadratic(DIM, APART, *text.parse::<Strategy>().unwrap().inner_kind())
}

fn swarm(text: &str, seed: u64) -> Swarm {
    Swarm::training(text, task(text), PEERS, [seed, SEED])
}

fn objectives() -> Vec<Quadratic> {
    quadratics(DIM, APART, PEERS, SEED)
}

fn loss(swarm: &Swarm) -> f64 {
    worst_loss(swarm, &objectives()[0])
}

/// Checks the anchors after the last round against a reference's.
fn follow(swarm: &Swarm, rounds: u64, expected: &[Vec<f64>]) {
    for (index, x) in expected.iter().enumerate() {
        let found = &swarm.members[&peer(index)].anchors[&Round(rounds - 1)];
        // f32 rounding of a dozen rounds on values below ten.
        near(found, x, 1e-4, &format!("peer {index}"));
    }
}

const SCAFFOLD: &str =
    "preset = \"scaffold\"\n[synchronization]\ninner_steps = 20\n[inner]\nlr = 0.1";

/// Each with what it must leave: codecs round what is small beside the blocks' largest.
const METHODS: [(&str, u64, f64); 8] = [
    (SCAFFOLD, 300, 1e-8),
    (
        "preset = \"scaffold\"\n[architecture]\nexchange = \"parameter-server\"\nowners = 2\n[overlap]\nfragments = 3",
        300,
        1e-8,
    ),
    (
        "preset = \"scaffold\"\n[compression]\ncodec = \"int8\"",
        300,
        3e-5,
    ),
    ("preset = \"gradient-tracking\"", 600, 1e-8),
    (
        "preset = \"gradient-tracking\"\n[architecture]\nrate = 0.5\n[compression]\ncodec = \"int8\"\n[overlap]\nfragments = 2",
        600,
        1e-8,
    ),
    (
        "preset = \"gradient-tracking\"\n[inner]\ncorrection = \"momentum-tracking\"\nbeta = 0.5\nlr = 0.05",
        800,
        1e-8,
    ),
    ("preset = \"beer\"", 3000, 1e-6),
    ("preset = \"motef\"", 3000, 1e-6),
];

#[test]
fn corrections_with_a_companion_reach_the_common_optimum() {
    for (text, rounds, most) in METHODS {
        let mut swarm = swarm(text, 1);
        swarm.run_long(rounds);
        let loss = loss(&swarm);
        println!("{text}: {loss:e}");
        assert!(loss < most, "{text}: {loss:e}");
    }
}

#[test]
fn without_the_correction_the_same_keeps_its_bias() {
    for (text, rounds, most) in METHODS {
        let table = "[inner]\ncorrection = \"none\"";
        let plain = match text.split_once("[inner]") {
            Some((before, _)) => format!("{before}{table}\nlr = 0.05"),
            None => format!("{text}\n{table}"),
        };
        let mut swarm = swarm(&plain, 1);
        swarm.run_long(rounds);
        let loss = loss(&swarm);
        assert!(loss > 20.0 * most.max(1e-5), "{plain}: {loss:e}");
    }
}

/// What a checkpoint holds of the companion.
fn companion(executor: &mut Executor) -> Vec<f32> {
    let (mut state, mut companion) = (MemoryState::default(), vec![0.0; DIM]);
    executor.save(&mut state).unwrap();
    state.tensor("companion", &mut companion).unwrap();
    companion
}

#[test]
fn scaffold_follows_its_equations_round_by_round() {
    let mut swarm = swarm(SCAFFOLD, 3);
    let (rounds, steps, lr) = (12, 20, 0.1);
    swarm.run(rounds);
    let (mut anchor, mut common) = (vec![0.0f64; DIM], vec![0.0f64; DIM]);
    let mut own = vec![vec![0.0f64; DIM]; PEERS];
    for _ in 0..rounds {
        let (mut mean, mut variates) = (vec![0.0; DIM], vec![0.0; DIM]);
        for (of, own) in objectives().iter().zip(&mut own) {
            let mut x = anchor.clone();
            for _ in 0..steps {
                let g = gradient(of, &x);
                for d in 0..DIM {
                    x[d] -= lr * (g[d] - own[d] + common[d]);
                }
            }
            for d in 0..DIM {
                own[d] += (anchor[d] - x[d]) / (f64::from(steps) * lr) - common[d];
                mean[d] += x[d] / PEERS as f64;
                variates[d] += own[d] / PEERS as f64;
            }
        }
        (anchor, common) = (mean, variates);
    }
    for member in swarm.members.values_mut() {
        near(member.executor.anchor(), &anchor, 1e-4, "anchor");
        near(&companion(&mut member.executor), &common, 1e-3, "variate");
    }
}

#[test]
fn trackers_follow_their_equations_and_what_flows_sums_to_zero() {
    let mut swarm = swarm("preset = \"gradient-tracking\"\n[inner]\nlr = 0.1", 2);
    let (rounds, lr) = (15, 0.1);
    swarm.run(rounds);
    let w = |i: usize, j: usize| if i.abs_diff(j) == 2 { 0.0 } else { 1.0 / 3.0 };
    let of = objectives();
    let mut x = vec![vec![0.0f64; DIM]; PEERS];
    let mut g: Vec<_> = (0..PEERS).map(|i| gradient(&of[i], &x[i])).collect();
    let mut y = g.clone();
    let mix = |of: &[Vec<f64>]| -> Vec<Vec<f64>> {
        let at = |i: usize, d: usize| (0..PEERS).map(|j| w(i, j) * of[j][d]).sum();
        (0..PEERS)
            .map(|i| (0..DIM).map(|d| at(i, d)).collect())
            .collect()
    };
    for _ in 0..rounds {
        for i in 0..PEERS {
            x[i].iter_mut().zip(&y[i]).for_each(|(x, y)| *x -= lr * y);
        }
        (x, y) = (mix(&x), mix(&y));
        for i in 0..PEERS {
            let news = gradient(&of[i], &x[i]);
            for d in 0..DIM {
                y[i][d] += news[d] - g[i][d];
            }
            g[i] = news;
        }
    }
    follow(&swarm, rounds, &x);
    let mut sum = [0.0f64; DIM];
    for member in swarm.members.values_mut() {
        let flowed = companion(&mut member.executor);
        sum.iter_mut()
            .zip(&flowed)
            .for_each(|(s, f)| *s += f64::from(*f));
        assert!(flowed.iter().any(|f| f.abs() > 1e-3), "something flowed");
    }
    assert!(sum.iter().all(|s| s.abs() < 1e-5), "{sum:?}");
}

#[test]
fn what_is_lost_or_of_unknown_fate_leaves_no_bias() {
    for (text, rounds, most) in [
        (SCAFFOLD, 300, 1e-7),
        ("preset = \"gradient-tracking\"", 600, 1e-7),
        ("preset = \"beer\"", 3000, 1e-5),
    ] {
        let mut swarm = swarm(text, 7);
        // Nothing is lost in the end: what is left is what was lost before.
        let (mut losses, mut pushes) = (losses(41, 1), 600);
        swarm.fate = Box::new(move |slice| {
            pushes -= i32::from(pushes > 0);
            match pushes {
                0 => Fate::Delivered,
                _ => losses(slice),
            }
        });
        swarm.run_long(rounds);
        let loss = loss(&swarm);
        println!("{text}: {loss:e}");
        assert!(loss < most, "{text}: {loss:e}");
    }
}

#[test]
fn the_dead_leave_the_optimum_of_those_that_are_left() {
    for (text, rounds) in [
        (SCAFFOLD, 600),
        ("preset = \"gradient-tracking\"", 1200),
        ("preset = \"beer\"", 4000),
    ] {
        let mut swarm = swarm(text, 0);
        swarm.run_long(40);
        swarm.kill(peer(1));
        swarm.run_long(rounds);
        let mut left = objectives();
        left.remove(1);
        let off = off_optimum(&swarm, &left);
        println!("{text}: {off:e}");
        assert!(off < 1e-3, "{text}: {off:e}");
    }
}

#[test]
fn a_newcomer_takes_the_common_variate_over() {
    let mut swarm = swarm(SCAFFOLD, 1);
    swarm.run_long(1);
    swarm.kill(peer(3));
    swarm.run_long(59);
    swarm.add(3, true);
    swarm.run_until(|swarm| {
        swarm
            .members
            .get(&peer(3))
            .is_some_and(|m| m.digests.len() > 3)
    });
    swarm.run_long(300);
    let loss = loss(&swarm);
    assert!(loss < 1e-8, "{loss:e}");
}

#[test]
fn pairs_follow_the_equations_of_noloco() {
    let text = "preset = \"noloco\"\n[overlap]\nfragments = 2";
    let mut swarm = swarm(text, 2);
    let (rounds, steps, lr) = (15, 8, 0.1);
    swarm.run(rounds);
    let matching = swarm.strategy.topology(7).unwrap();
    let of = objectives();
    let (mut a, mut m) = (
        vec![vec![0.0f64; DIM]; PEERS],
        vec![vec![0.0f64; DIM]; PEERS],
    );
    for round in 0..rounds {
        let mut x = a.clone();
        for (x, of) in x.iter_mut().zip(&of) {
            for _ in 0..steps {
                let g = gradient(of, x);
                x.iter_mut().zip(g).for_each(|(x, g)| *x -= lr * g);
            }
        }
        let before = a.clone();
        for i in 0..PEERS {
            let partners = matching.partners(Round(round), i, PEERS).send;
            let j = partners.first().map_or(i, |(j, _)| *j);
            for d in 0..DIM {
                let delta = (x[i][d] - before[i][d] + x[j][d] - before[j][d]) / 2.0;
                let mean = (before[i][d] + before[j][d]) / 2.0;
                m[i][d] = 0.5 * m[i][d] + 0.7 * delta + 0.7 * (mean - before[i][d]);
                a[i][d] += m[i][d];
            }
        }
    }
    follow(&swarm, rounds, &a);
}

/// Peers in pairs learn together what none finds alone.
#[test]
fn pairs_come_near_the_common_optimum() {
    let mut pairs = swarm("preset = \"noloco\"", 4);
    pairs.run_long(300);
    assert!(loss(&pairs) < 0.2, "{}", loss(&pairs));
    let mut alone = swarm("preset = \"none\"", 4);
    alone.run_long(300);
    assert!(loss(&alone) > 2.0);
}

fn executor(text: &str) -> Executor {
    let strategy: Strategy = text.parse().unwrap();
    let trainer = task(text).build(0, 2, SEED);
    let plan = strategy.plan(RunId::from_bytes([1; 32]), trainer.layout(), 100);
    let mut parts = Parts::new(&strategy, &plan.unwrap(), DIM);
    parts.hidden.secrets = Some(secrets(0, peer(0)));
    Executor::new(trainer, parts, Box::new(Still))
}

/// A round with a single peer, and the anchor after it.
fn alone(executor: &mut Executor, store: &Store, round: u64, agrees: bool) -> Vec<f32> {
    let (round, budget) = (Round(round), StepBudget::Steps(3));
    let mut orders = vec![orders::train(round, budget)];
    for fragment in [FragmentId(0), FragmentId(1)] {
        let slice = |part| orders::slice(round, fragment, part);
        let encode = |store, part| orders::encode(store, slice(part));
        if agrees {
            orders.push(encode(StoreId::Local, Part::Contribution));
            orders.push(orders::reduce(
                fragment,
                vec![(slice(Part::Contribution), 1.0)],
            ));
            orders.push(encode(StoreId::Shard(0), Part::Aggregate));
        }
        orders.push(orders::apply(
            round,
            fragment,
            if agrees {
                vec![slice(Part::Aggregate)]
            } else {
                Vec::new()
            },
        ));
    }
    orders::perform(executor, store, &orders);
    executor.anchor().to_vec()
}

/// Islamov et al. 2024, algorithm 1, without loss: there replicas are what they stand for.
#[test]
fn motef_follows_its_equations_round_by_round() {
    let (rounds, lr, beta, rate) = (12, 0.1, 0.7, 0.5);
    let text = format!(
        "preset = \"motef\"\n[architecture]\nrate = {rate}\n[compression]\ncodec = \"f32\"\n\
         [inner]\nlr = {lr}\nbeta = {beta}"
    );
    let mut swarm = swarm(&text, 1);
    swarm.run(rounds);
    let w = mixing_matrix(&Ring, Round(0), PEERS);
    let zeros = || vec![vec![0.0f64; DIM]; PEERS];
    let (mut x, mut average, mut flowed) = (zeros(), zeros(), zeros());
    for _ in 0..rounds {
        let mut y = zeros();
        for (i, of) in objectives().iter().enumerate() {
            let g = gradient(of, &x[i]);
            for d in 0..DIM {
                average[i][d] = beta * average[i][d] + (1.0 - beta) * g[d];
                y[i][d] = average[i][d] + flowed[i][d];
                x[i][d] -= lr * y[i][d];
            }
        }
        let moves = |all: &[Vec<f64>], i: usize, d: usize| -> f64 {
            let pulls = w[i].iter().zip(all);
            rate * pulls.map(|(w, of)| w * (of[d] - all[i][d])).sum::<f64>()
        };
        let (before, mut mixed) = (x, zeros());
        for i in 0..PEERS {
            for d in 0..DIM {
                mixed[i][d] = before[i][d] + moves(&before, i, d);
                flowed[i][d] += moves(&y, i, d);
            }
        }
        x = mixed;
    }
    follow(&swarm, rounds, &x);
}

#[test]
fn a_restored_companion_goes_on_to_the_bit() {
    let momentum =
        "preset = \"gradient-tracking\"\n[inner]\ncorrection = \"momentum-tracking\"\nlr = 0.01";
    for (text, agrees) in [
        ("preset = \"motef\"", false),
        (SCAFFOLD, true),
        (momentum, false),
        ("preset = \"noloco\"", false),
    ] {
        let (mut first, store) = (executor(text), Store::default());
        (0..4).for_each(|at| _ = alone(&mut first, &store, at, agrees));
        let mut again = orders::restarted(&mut first, executor(text));
        for at in 4..9 {
            let [one, other] = [&mut first, &mut again].map(|e| alone(e, &store, at, agrees));
            assert_eq!(one, other, "{text}, round {at}");
        }
    }
}

#[test]
fn a_companion_is_counted_in_memory_and_bytes() {
    // Without a companion the trainer keeps what it has trained: there is no local buffer.
    let presets = [
        ("scaffold", 4.0),
        ("gradient-tracking", 4.0),
        ("fedavg", 1.0),
    ];
    for (preset, runs) in presets {
        let text = format!("preset = \"{preset}\"");
        let strategy = Strategy::preset(preset).unwrap();
        let memory = executor(&text).split().1.memory();
        let values = (DIM * size_of::<f32>()) as u64;
        let kept = (memory.anchor + memory.local) as f64;
        assert_eq!(kept, runs * values as f64, "{preset}");
        let stores = strategy.stores().into_iter();
        let kept = stores.filter(|(store, _)| ["anchor", "local", "companion"].contains(store));
        let multiple: f64 = kept.map(|(_, multiple)| multiple).sum();
        assert_eq!(multiple, runs, "{preset}");
    }
}

#[test]
fn every_preset_keeps_a_copy_of_what_was_trained_only_where_it_says_so() {
    for preset in registry::PRESETS {
        let text = format!("preset = \"{}\"", preset.name);
        let strategy = Strategy::preset(preset.name).unwrap();
        let said = strategy.stores().iter().any(|(store, _)| *store == "local");
        let executor = executor(&text);
        assert_eq!(executor.copies_what_is_trained(), said, "{}", preset.name);
        let memory = executor.split().1.memory();
        assert_eq!(memory.local > 0, said, "{}", preset.name);
    }
}

#[test]
fn an_outer_state_in_bf16_takes_half_and_travels_as_it_is() {
    let values = (DIM * size_of::<f32>()) as u64;
    let of = |state: &str| {
        let text = format!("preset = \"diloco\"\n[outer]\nstate = \"{state}\"");
        let strategy: Strategy = text.parse().unwrap();
        let stores = strategy.stores().into_iter();
        let outer = stores.filter(|(store, _)| *store == "outer optimizer");
        let multiple: f64 = outer.map(|(_, multiple)| multiple).sum();
        let (_, mix) = executor(&text).split();
        assert_eq!(
            mix.memory().outer as f64,
            multiple * values as f64,
            "{state}"
        );
        (multiple, mix.state_bytes())
    };
    let (full, half) = (of("f32"), of("bf16"));
    assert_eq!((full.0, half.0), (1.0, 0.5));
    assert_eq!(full.1 - half.1, values / 2);
}
