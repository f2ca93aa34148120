//! Corrections of the gradients of inner steps, chosen in the grid and carried out by real peers and
//! Executors: they do what their equations say, and a peer that resumes goes on with them.

use crate::common::check::worst_loss;
use crate::common::store::Store;
use crate::common::{Swarm, gradient, near, orders, peer, quadratic, quadratics};
use murmurate_protocol::{Combination, FragmentId, Order, Part, Piece, Round, StepBudget, StoreId};
use murmurate_strategies::correct::CorrectionKind;
use murmurate_strategies::executor::Executor;
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::state::StateSink;
use murmurate_strategies::toy::{Quadratic, ToyTask};

const DIM: usize = 16;
const PEERS: usize = 4;
const SEED: u64 = 5;
const HETEROGENEITY: f64 = 0.5;

fn swarm(strategy: &str) -> Swarm {
    let inner = *strategy.parse::<Strategy>().unwrap().inner_kind();
    let task = quadratic(DIM, HETEROGENEITY, inner);
    Swarm::training(strategy, task, PEERS, [0, SEED])
}

fn objectives() -> Vec<Quadratic> {
    quadratics(DIM, HETEROGENEITY, PEERS, SEED)
}

/// What f32 rounds in some hundred inner steps on values of a few units.
const ROUNDING: f64 = 1e-4;

fn loss(swarm: &Swarm) -> f64 {
    worst_loss(swarm, &objectives()[0])
}

#[test]
fn fed_prox_pulls_every_inner_step_to_the_anchor() {
    let text =
        "preset = \"fedprox\"\n[synchronization]\ninner_steps = 8\n[inner]\nlr = 0.1\nmu = 0.5";
    let mut swarm = swarm(text);
    let (rounds, lr, mu) = (12, 0.1, 0.5);
    swarm.run(rounds);
    let mut anchor = vec![0.0f64; DIM];
    for _ in 0..rounds {
        let mut mean = vec![0.0f64; DIM];
        for of in objectives() {
            let mut x = anchor.clone();
            for _ in 0..8 {
                let g = gradient(&of, &x);
                for ((x, g), a) in x.iter_mut().zip(g).zip(&anchor) {
                    *x -= lr * (g + mu * (*x - a));
                }
            }
            mean.iter_mut()
                .zip(x)
                .for_each(|(m, x)| *m += x / PEERS as f64);
        }
        anchor = mean;
    }
    for member in swarm.members.values() {
        near(member.executor.anchor(), &anchor, ROUNDING, "anchor");
    }
}

#[test]
fn fed_prox_drifts_less_than_plain_local_sgd() {
    let run = |correction: &str| {
        let text = format!(
            "preset = \"local-sgd\"\n[synchronization]\ninner_steps = 50\n[inner]\nlr = 0.1\n{correction}"
        );
        let mut swarm = swarm(&text);
        swarm.run(200);
        loss(&swarm)
    };
    let (plain, sprung) = (run(""), run("correction = \"fed-prox\"\nmu = 2.0"));
    assert!(plain > 1e-4 && sprung < 0.5 * plain, "{sprung} {plain}");
}

#[test]
fn quasi_global_momentum_is_of_how_mixing_moved_the_parameters() {
    let text = "preset = \"d-psgd\"\n[inner]\nlr = 0.1\ncorrection = \"quasi-global\"\nbeta = 0.8";
    let mut swarm = swarm(text);
    let (rounds, lr, beta) = (15, 0.1, 0.8);
    swarm.run(rounds);
    let (mut x, mut m) = (
        vec![vec![0.0f64; DIM]; PEERS],
        vec![vec![0.0f64; DIM]; PEERS],
    );
    for _ in 0..rounds {
        let objectives = objectives();
        let half: Vec<Vec<f64>> = (0..PEERS)
            .map(|i| {
                let g = gradient(&objectives[i], &x[i]);
                (0..DIM)
                    .map(|d| x[i][d] - lr * (beta * m[i][d] + g[d]))
                    .collect()
            })
            .collect();
        for i in 0..PEERS {
            for d in 0..DIM {
                // The ring's W: a third to itself and to both neighbours.
                let (left, right) = (half[(i + PEERS - 1) % PEERS][d], half[(i + 1) % PEERS][d]);
                let mixed = (half[i][d] + left + right) / 3.0;
                m[i][d] = beta * m[i][d] + (1.0 - beta) * (x[i][d] - mixed) / lr;
                x[i][d] = mixed;
            }
        }
    }
    for (at, x) in x.iter().enumerate() {
        let found = &swarm.members[&peer(at)].anchors[&Round(rounds - 1)];
        near(found, x, ROUNDING, &format!("peer {at}"));
    }
}

#[test]
fn a_delta_that_is_kept_stays_as_far_from_its_anchor() {
    let kind = CorrectionKind::new("fed-prox", &[("mu", 2.0)]).unwrap();
    let mut spring = kind.build(3, 0.1).unwrap();
    spring.taken_over(0, &[9.0; 3], &[1.0, 1.0, 1.0], true, 0);
    // Training went to 4, the anchor to 3, and the delta of 3 is kept on top of it.
    spring.taken_over(0, &[4.0; 3], &[6.0; 3], false, 5);
    let mut gradient = [0.0; 3];
    spring.correct(0, &[6.0; 3], &mut gradient);
    assert_eq!(gradient, [6.0; 3], "2 (6 - 3)");
}

#[test]
fn corrections_come_piece_by_piece() {
    for kind in [
        CorrectionKind::new("fed-prox", &[("mu", 0.7)]).unwrap(),
        CorrectionKind::new("quasi-global", &[("beta", 0.6)]).unwrap(),
    ] {
        let value = |at: usize, salt: usize| ((at * 37 + salt * 101) % 17) as f32 / 4.0 - 2.0;
        let run = |pieces: &[std::ops::Range<usize>]| {
            let mut correction = kind.build(10, 0.1).unwrap();
            let mut gradients = vec![0.0f32; 10];
            for round in 0..3 {
                for piece in pieces {
                    let of = |salt| piece.clone().map(|at| value(at, salt)).collect::<Vec<_>>();
                    let (before, after) = (of(round), of(round + 1));
                    correction.taken_over(piece.start, &before, &after, true, 4 * round as u64);
                    let gradient = &mut gradients[piece.clone()];
                    correction.correct(piece.start, &of(round + 2), gradient);
                }
            }
            (gradients, correction.state().to_vec())
        };
        assert_eq!(run(&[0..9, 9..10]), run(&[3..7, 0..3, 7..10]), "{kind:?}");
    }
    assert!(CorrectionKind::none().build(3, 0.1).is_none());
}

const MOMENTUM: &str = "preset = \"d-psgd\"\n[inner]\ncorrection = \"quasi-global\"";

fn executor() -> Executor {
    let strategy: Strategy = MOMENTUM.parse().unwrap();
    orders::executor(&strategy, ToyTask::quadratic(DIM).build(0, 2, SEED))
}

/// A round of gossip with a single peer: half is sent and returns.
fn round(executor: &mut Executor, store: &Store, round: u64) -> Vec<f32> {
    let (round, fragment, budget) = (Round(round), FragmentId(0), StepBudget::Steps(2));
    let slice = orders::slice(round, fragment, Part::Contribution);
    let orders = [
        orders::train(round, budget),
        orders::encode(StoreId::Local, slice),
        Order::Combine {
            piece: Piece::whole(fragment),
            how: Combination::Mix {
                round,
                keep: 0.5,
                inputs: vec![(slice, 0.5)],
            },
        },
        orders::apply(round, fragment, Vec::new()),
    ];
    orders::perform(executor, store, &orders);
    executor.anchor().to_vec()
}

#[test]
fn a_restored_momentum_goes_on_to_the_bit() {
    let (mut first, store) = (executor(), Store::default());
    (0..4).for_each(|at| _ = round(&mut first, &store, at));
    let mut again = orders::restarted(&mut first, executor());
    for at in 4..9 {
        let [one, other] = [&mut first, &mut again].map(|e| round(e, &store, at));
        assert_eq!(one, other, "round {at}");
    }
}

#[test]
fn a_damaged_momentum_is_refused_and_changes_nothing() {
    let (mut donor, store) = (executor(), Store::default());
    (0..3).for_each(|at| _ = round(&mut donor, &store, at));
    for (name, short) in [
        ("trainer.correction.state", false),
        ("trainer.correction.steps", true),
    ] {
        let mut damaged = orders::saved(&mut donor);
        match short {
            true => damaged.bytes(name, &[1, 2]).unwrap(),
            false => damaged.tensor(name, &[f32::NAN; 2 * DIM]).unwrap(),
        }
        let mut restored = executor();
        round(&mut restored, &store, 0);
        let before = orders::saved(&mut restored);
        let error = restored.restore(&damaged).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        assert!(orders::saved(&mut restored) == before, "{name}");
    }
}
