//! The linear model of each preset on the quadratic task, and its spectral radius.
//!
//! On a quadratic every method with a linear inner optimizer is a linear map of the peers' state
//! from one round to the next, the same for each dimension but for the curvatures D_i. The method
//! converges exactly if the spectral radius of that map is below one. The models are built from the
//! shipped presets: their learning rates, rounds, topologies.

use crate::numbers::quadratics;
use crate::numbers::spectrum::{eigenvalues, mixing_matrix};
use crate::{Count, mixed, topology};
use murmurate_protocol::{
    CopyPlan, Dealing, ExchangeKind, Grouping, Round, RunId, SpanningTree, StepBudget,
};
use murmurate_strategies::executor::Blend;
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::inner::InnerKind;
use murmurate_strategies::outer::OuterKind;
use murmurate_strategies::topology::{OnePeerExponential, Ring, TopologyKind};
use murmurate_strategies::toy::ToyTask;

const PEERS: usize = 8;

/// Growth of a linear map by power iteration: the geometric mean over many rounds, because complex
/// pairs of eigenvalues make single rounds swing.
fn growth(len: usize, mut round: impl FnMut(u64, &mut Vec<f64>)) -> f64 {
    let mut state: Vec<f64> = (0..len)
        .map(|i| 1.0 + ((i * 7919) % 13) as f64 / 17.0)
        .collect();
    let (warm, counted) = (2000, 4000);
    let mut logs = 0.0;
    for at in 0..warm + counted {
        round(at, &mut state);
        let norm = state.iter().map(|v| v * v).sum::<f64>().sqrt();
        if norm == 0.0 {
            return 0.0;
        }
        state.iter_mut().for_each(|v| *v /= norm);
        logs += if at < warm { 0.0 } else { norm.ln() };
    }
    (logs / counted as f64).exp()
}

/// The values of these keys.
fn numbers<const N: usize>(kind: &OuterKind, keys: [&str; N]) -> [f64; N] {
    keys.map(|key| kind.number(key))
}

/// The curvatures of all peers, dimension by dimension, on the toy task.
fn curvatures() -> Vec<Vec<f64>> {
    let peers = quadratics(12, 1.0, PEERS, 1);
    (0..12)
        .map(|d| peers.iter().map(|p| f64::from(p.own().0[d])).collect())
        .collect()
}

/// The numbers of a linear inner optimizer, looked up once.
#[derive(Clone, Copy)]
struct Inner {
    /// Of AdamW: decay is decoupled, and the momentum is a mean.
    lr: Option<f64>,
    momentum: f64,
    weight_decay: f64,
}

impl Inner {
    fn of(kind: &InnerKind) -> Self {
        let (lr, momentum) = match kind.name() {
            "sgd" => (None, kind.number("momentum")),
            "adam-w" => (Some(kind.lr()), kind.pair("betas")[0]),
            _ => panic!("presets take SGD or AdamW inside"),
        };
        Self {
            lr,
            momentum,
            weight_decay: kind.number("weight_decay"),
        }
    }

    /// One inner step at curvature `k` as a linear map of (x, v). AdamW is linear once its second moment stands
    /// at the level that the gradients' noise gives it: `rate` is the learning rate over the root of that moment.
    fn step(self, rate: f64, k: f64, x: &mut f64, v: &mut f64) {
        match self.lr {
            None => {
                *v = self.momentum * *v + (k + self.weight_decay) * *x;
                *x -= rate * *v;
            }
            Some(lr) => {
                *v = self.momentum * *v + (1.0 - self.momentum) * k * *x;
                *x -= lr * self.weight_decay * *x + rate * *v;
            }
        }
    }
}

/// The rates to try: the learning rate, or for AdamW with moments from 1 down to 0.001.
fn rates(kind: &InnerKind) -> Vec<f64> {
    let lr = kind.lr();
    match kind.name() {
        "sgd" => vec![lr],
        "adam-w" => [1.0, 0.3, 0.1, 0.01, 0.001].map(|root| lr / root).to_vec(),
        _ => panic!("presets take SGD or AdamW inside"),
    }
}

/// Checks that a map of these curvatures shrinks what it is applied to.
fn converges(what: &str, radius: impl Fn(&[f64]) -> f64) {
    for k in curvatures() {
        let radius = radius(&k);
        assert!(radius < 1.0, "{what}: {radius}");
    }
}

/// The same, at each rate of a strategy.
fn converges_at_all_rates(strategy: &Strategy, radius: impl Fn(f64, &[f64]) -> f64) {
    for rate in rates(strategy.inner_kind()) {
        let what = format!("{} at rate {rate}", strategy.name());
        converges(&what, |k| radius(rate, k));
    }
}

fn inner_steps(strategy: &Strategy) -> u32 {
    match strategy.budget() {
        StepBudget::Steps(count) => count,
        StepBudget::Time(_) => panic!("presets count inner steps"),
    }
}

/// The rate at which peers move to their neighbours, and that of inner steps.
fn replica_rates(strategy: &Strategy) -> (f64, f64) {
    let (rate, _) = strategy.replicas().expect("replicas have a rate");
    (f64::from(rate), rates(strategy.inner_kind())[0])
}

/// `sum_j W[i][j] (x_j - x_i)` for each i.
fn pulls(w: &[Vec<f64>], x: &[f64]) -> Vec<f64> {
    let pull = |(row, own): (&Vec<f64>, &f64)| {
        let pulls = row.iter().zip(x).map(|(w, other)| w * (other - own));
        pulls.sum()
    };
    w.iter().zip(x).map(pull).collect()
}

/// Adds `rate` times each of these to what is there.
fn moved(all: &mut [f64], rate: f64, by: &[f64]) {
    all.iter_mut().zip(by).for_each(|(x, by)| *x += rate * by);
}

/// W of the ring.
fn ring() -> Vec<Vec<f64>> {
    mixing_matrix(&Ring, Round(0), PEERS)
}

/// State: anchor, outer momentum, then each peer's inner momentum.
fn all_reduce_of_deltas(strategy: &Strategy, steps: u32, rate: f64, curvatures: &[f64]) -> f64 {
    let inner = Inner::of(strategy.inner_kind());
    growth(2 + PEERS, |_, state| {
        let (shared, velocities) = state.split_at_mut(2);
        let mut delta = 0.0;
        for (v, k) in velocities.iter_mut().zip(curvatures) {
            let mut x = shared[0];
            for _ in 0..steps {
                inner.step(rate, *k, &mut x, v);
            }
            delta += (x - shared[0]) / PEERS as f64;
        }
        let outer = strategy.outer_kind();
        match outer.name() {
            "average" => {
                shared[0] += delta;
                shared[1] = 0.0;
            }
            "nesterov" => {
                let [lr, momentum] = numbers(outer, ["lr", "momentum"]);
                shared[1] = momentum * shared[1] - delta;
                shared[0] -= lr * (momentum * shared[1] - delta);
            }
            "slow-mo" => {
                let [lr, momentum] = numbers(outer, ["lr", "momentum"]);
                shared[1] = momentum * shared[1] - delta;
                shared[0] -= lr * shared[1];
            }
            _ => panic!("an adaptive outer optimizer is not linear"),
        }
    })
}

#[test]
fn all_reduce_of_deltas_converges() {
    for name in ["local-sgd", "fedavg", "slowmo", "diloco"] {
        let strategy = Strategy::preset(name).unwrap();
        deltas_converge(&strategy, inner_steps(&strategy));
    }
    // Before and after its switch.
    let strategy = Strategy::preset("post-local").unwrap();
    for (round, steps) in [(0, 1), (200, 16)] {
        assert_eq!(strategy.budget_of(Round(round)), StepBudget::Steps(steps));
        deltas_converge(&strategy, steps);
    }
}

fn deltas_converge(strategy: &Strategy, steps: u32) {
    converges_at_all_rates(strategy, |rate, k| {
        all_reduce_of_deltas(strategy, steps, rate, k)
    });
}

/// One fragment of a run with late results, from its cut to its next: state is anchor, outer momentum,
/// then each peer's parameters, then, of eager updates, its own outer momentum.
fn late_results(strategy: &Strategy, rate: f64, curvatures: &[f64]) -> f64 {
    let plan = strategy.overlap_plan();
    let late = plan.late_steps;
    let period = inner_steps(strategy) * u32::from(plan.stagger);
    let inner = Inner::of(strategy.inner_kind());
    let train = |x: &mut f64, k: f64, steps: u32| {
        (0..steps).for_each(|_| inner.step(rate, k, x, &mut 0.0));
    };
    let eager = strategy.blend() == Blend::Eager;
    growth(2 + PEERS * (1 + usize::from(eager)), |_, state| {
        let (shared, rest) = state.split_at_mut(2);
        let (own, velocities) = rest.split_at_mut(PEERS);
        let delta = own.iter().map(|x| x - shared[0]).sum::<f64>() / PEERS as f64;
        for (x, v) in own.iter_mut().zip(velocities) {
            let outer = strategy.outer_kind();
            assert_eq!(outer.name(), "nesterov", "the preset with eager updates");
            let [lr, momentum] = numbers(outer, ["lr", "momentum"]);
            let share = (*x - shared[0]) / PEERS as f64;
            *v = momentum * *v - share;
            *x = shared[0] - lr * (momentum * *v - share);
        }
        let outer = strategy.outer_kind();
        match outer.name() {
            "nesterov" => {
                let [lr, momentum] = numbers(outer, ["lr", "momentum"]);
                shared[1] = momentum * shared[1] - delta;
                shared[0] -= lr * (momentum * shared[1] - delta);
            }
            // Not linear, but of degree one as long as nothing is clipped: it grows or it shrinks.
            "co2" => {
                let [lr, momentum, penalty] = numbers(outer, ["lr", "momentum", "penalty"]);
                let gap = lr * shared[1].abs() / delta.abs().max(f64::MIN_POSITIVE);
                shared[1] = momentum * shared[1] - delta / (1.0 + penalty * gap);
                shared[0] -= lr * shared[1];
            }
            _ => panic!("presets with late results take momentum outside"),
        }
        for (x, k) in own.iter_mut().zip(curvatures) {
            let cut = *x;
            train(x, *k, late);
            *x = match strategy.blend() {
                Blend::OwnProgress | Blend::Eager | Blend::Estimate => shared[0] + (*x - cut),
                Blend::Alpha(alpha) => f64::from(alpha) * *x + f64::from(1.0 - alpha) * shared[0],
            };
            train(x, *k, period - late);
        }
    })
}

#[test]
fn late_results_converge() {
    for name in [
        "streaming-diloco",
        "eager-diloco",
        "decoupled-diloco",
        "co2",
    ] {
        let strategy = Strategy::preset(name).unwrap();
        assert!(strategy.overlap_plan().late_steps > 0, "{name}");
        converges_at_all_rates(&strategy, |rate, k| late_results(&strategy, rate, k));
    }
}

/// The center of a parameter server at which eight peers arrive in turn, each with what it made of the
/// center as it pulled it eight arrivals ago. State: center, momentum, its buffer, arrivals that wait; then
/// what each peer pulled (elastic: its own parameters).
fn arrivals_at_a_center(strategy: &Strategy, rate: f64, curvatures: &[f64]) -> f64 {
    let ExchangeKind::Center(plan) = strategy.exchange() else {
        panic!("a preset with a center");
    };
    let at_once = u64::from(plan.buffer);
    let inner = Inner::of(strategy.inner_kind());
    let rule = strategy.center();
    let weight = rule.staleness.of((PEERS as u64 - 1) / at_once) / at_once as f64;
    growth(4 + PEERS, |at, state| {
        let (shared, pulled) = state.split_at_mut(4);
        let peer = at as usize % PEERS;
        if strategy.outer_kind().name() != "delayed-nesterov" {
            shared[1..3].fill(0.0);
        }
        let (mut x, mut v) = (pulled[peer], 0.0);
        for _ in 0..inner_steps(strategy) {
            inner.step(rate, curvatures[peer], &mut x, &mut v);
        }
        if let Some(alpha) = rule.elastic {
            let pull = alpha * (x - shared[0]);
            shared[0] += pull;
            pulled[peer] = x - pull;
            shared[3] = 0.0;
            return;
        }
        shared[3] += weight * (x - pulled[peer]);
        if (at + 1).is_multiple_of(at_once) {
            let delta = std::mem::take(&mut shared[3]);
            let outer = strategy.outer_kind();
            match outer.name() {
                "delayed-nesterov" => {
                    let keys = ["lr", "momentum", "every", "spread"];
                    let [lr, momentum, n, spread] = numbers(outer, keys);
                    shared[2] -= delta;
                    let turn = (at + 1).is_multiple_of(n as u64);
                    if turn {
                        shared[1] = momentum * shared[1] + shared[2] / n;
                        shared[2] = 0.0;
                    }
                    let share = if turn {
                        1.0 - spread * n + spread
                    } else {
                        spread
                    };
                    shared[0] -= lr * (share * momentum * shared[1] - delta / n);
                }
                _ => shared[0] += delta,
            }
        }
        pulled[peer] = shared[0];
    })
}

#[test]
fn arrivals_at_a_center_converge() {
    for name in ["asp", "ssp", "fedbuff", "async-local-sgd", "easgd"] {
        let strategy = Strategy::preset(name).unwrap();
        converges_at_all_rates(&strategy, |rate, k| {
            arrivals_at_a_center(&strategy, rate, k)
        });
    }
}

#[test]
fn momentum_on_every_late_arrival_diverges_and_delayed_it_does_not() {
    // Rounds that go all the way: delayed to every eighth arrival 0.5 is stable, on every arrival it is not.
    let text = |every: u32| {
        format!(
            "[synchronization]\nmode = \"asp\"\ninner_steps = 60\n[outer]\nmomentum = 0.5\nevery = {every}\n"
        )
    };
    let radius = |every| {
        let strategy = Strategy::parse(&text(every), Some("async-local-sgd")).unwrap();
        arrivals_at_a_center(&strategy, 0.1, &[1.0; PEERS])
    };
    assert!(radius(8) < 1.0, "{}", radius(8));
    assert!(radius(1) > 1.0, "{}", radius(1));
}

#[test]
fn the_mean_gradient_converges() {
    // The codecs of the others are unbiased: their mean follows the same map.
    for name in ["bsp", "qsgd", "terngrad"] {
        let strategy = Strategy::preset(name).unwrap();
        let inner = Inner::of(strategy.inner_kind());
        for rate in rates(strategy.inner_kind()) {
            for k in curvatures() {
                let mean = k.iter().sum::<f64>() / PEERS as f64;
                let radius = growth(2, |_, state| {
                    let (x, v) = state.split_at_mut(1);
                    inner.step(rate, mean, &mut x[0], &mut v[0]);
                });
                assert!(radius < 1.0, "{name} at rate {rate}: {radius}");
                // Heavy ball with complex eigenvalues has the radius sqrt(momentum).
                let complex = (1.9 - rate * mean).powi(2) < 4.0 * 0.9;
                let off = (radius - 0.9f64.sqrt()).abs();
                assert!(!complex || off < 2e-3, "{name}: {radius}");
            }
        }
    }
}

/// State: parameters, momentum, and the mean gradient of a first half, computed at the estimate.
fn halves(rate: f64, momentum: f64, mean: f64) -> f64 {
    growth(3, |_, state| {
        let [theta, v, first] = [state[0], state[1], state[2]];
        let estimate = theta - rate * (momentum * v + first);
        state[1] = momentum * v + (first + mean * theta) / 2.0;
        state[0] = theta - rate * state[1];
        state[2] = mean * estimate;
    })
}

#[test]
fn steps_of_two_halves_converge_as_those_of_a_whole_gradient_do() {
    let strategy = Strategy::preset("acco").unwrap();
    assert_eq!(strategy.blend(), Blend::Estimate);
    assert_eq!(strategy.inner_kind().name(), "sgd");
    let [lr, momentum] = ["lr", "momentum"].map(|key| strategy.inner_kind().number(key));
    for k in curvatures() {
        let mean = k.iter().sum::<f64>() / PEERS as f64;
        let radius = halves(lr, momentum, mean);
        println!("curvature {mean:.2}: {radius:.4}");
        assert!(radius < 1.0, "{radius}");
    }
    // As far as gradient descent itself, and twice as far as with gradients that are a step late.
    assert!(halves(1.9, 0.0, 1.0) < 1.0 && halves(2.1, 0.0, 1.0) > 1.0);
    let late = |rate: f64| {
        growth(2, |_, state| {
            let x = state[0];
            state[0] -= rate * state[1];
            state[1] = x;
        })
    };
    assert!(late(0.9) < 1.0 && late(1.1) > 1.0);
}

/// State: x of each peer, then each one's inner momentum; inner steps, then mixing of x.
fn gossip_of_parameters(
    matrices: &[Vec<Vec<f64>>],
    steps: u32,
    inner: &InnerKind,
    curvatures: &[f64],
) -> f64 {
    let (rate, inner) = (rates(inner)[0], Inner::of(inner));
    growth(2 * PEERS, |round, state| {
        let (all, velocities) = state.split_at_mut(PEERS);
        for ((x, v), k) in all.iter_mut().zip(velocities).zip(curvatures) {
            (0..steps).for_each(|_| inner.step(rate, *k, x, v));
        }
        let w = &matrices[round as usize % matrices.len()];
        all.copy_from_slice(&mixed(w, all));
    })
}

/// W of as many rounds as any schedule's period divides; random ones repeat after them.
fn matrices(kind: TopologyKind) -> Vec<Vec<Vec<f64>>> {
    let topology = kind.build(5);
    (0..240)
        .map(|round| mixing_matrix(&*topology, Round(round), PEERS))
        .collect()
}

/// The means over cells of the places of a roll in a round.
fn matrix_of_cells(dealing: &Dealing, places: usize, round: u64) -> Vec<Vec<f64>> {
    let row = |place| {
        let members = dealing.cell(place, Round(round));
        let share = |at| match members.contains(&at) {
            true => 1.0 / members.len() as f64,
            false => 0.0,
        };
        (0..places).map(share).collect()
    };
    (0..places).map(row).collect()
}

fn matrices_of_cells(dealing: &Dealing) -> Vec<Vec<Vec<f64>>> {
    let matrix = |round| matrix_of_cells(dealing, PEERS, round);
    (0..240).map(matrix).collect()
}

/// The mean of W over all partitions of n places into k cells: two places share a cell of c with
/// probability c (c - 1) / (n (n - 1)), and then take 1 / c of each other.
fn mean_of_random_cells(n: usize, cell: usize) -> Vec<Vec<f64>> {
    let k = n.div_ceil(cell);
    let sizes = (0..k).map(|at| (n - at).div_ceil(k) as f64);
    let pairs = (n * (n - 1)) as f64;
    let apart: f64 = sizes.map(|c| c * (c - 1.0) / pairs / c).sum();
    let own = 1.0 - (n - 1) as f64 * apart;
    let share = |i, j| if i == j { own } else { apart };
    (0..n)
        .map(|i| (0..n).map(|j| share(i, j)).collect())
        .collect()
}

#[test]
fn random_cells_mix_at_the_rate_of_random_groups() {
    for (cell, n) in [(2, 8), (4, 8), (4, 16), (3, 10), (5, 12)] {
        let run = RunId::from_bytes([5; 32]);
        let grouping = Grouping::RandomCells { cell: cell as u16 };
        let dealing = Dealing::new(grouping, run, n).expect("it has cells");
        let descending = |matrix| {
            let mut all = eigenvalues(matrix);
            all.sort_by(|a, b| b.total_cmp(a));
            all
        };
        let law = descending(mean_of_random_cells(n, cell));
        let second = law[1];
        // All but that of the mean are equal: (k - 1) / (n - 1), or (n - g) / (g (n - 1)) with equal cells.
        let k = n.div_ceil(cell) as f64;
        for other in &law[1..] {
            assert!(
                (other - (k - 1.0) / (n as f64 - 1.0)).abs() < 1e-12,
                "{other}"
            );
        }
        let rounds = 20_000;
        let mut mean = vec![vec![0.0; n]; n];
        let start: Vec<f64> = (0..n).map(|i| ((i * 37) % 11) as f64 + i as f64).collect();
        let from_mean = |x: &[f64]| -> Vec<f64> {
            let middle = x.iter().sum::<f64>() / n as f64;
            x.iter().map(|v| v - middle).collect()
        };
        let square = |x: &[f64]| x.iter().map(|v| v * v).sum::<f64>();
        let (mut x, mut left) = (from_mean(&start), 0.0);
        for round in 0..rounds {
            let w = matrix_of_cells(&dealing, n, round);
            for (into, row) in mean.iter_mut().zip(&w) {
                for (into, share) in into.iter_mut().zip(row) {
                    *into += share / rounds as f64;
                }
            }
            let mixed = mixed(&w, &x);
            left += square(&mixed) / square(&x) / rounds as f64;
            // Rounding stays small beside what is left; where nothing is left, it begins again.
            let norm = square(&mixed).sqrt();
            x = match norm > 1e-9 {
                true => from_mean(&mixed.iter().map(|v| v / norm).collect::<Vec<f64>>()),
                false => from_mean(&start),
            };
        }
        // The noise of a mean over independent rounds: the norm of a matrix with entries of 1 / (2 sqrt T).
        let noise = 2.0 * (n as f64 / rounds as f64).sqrt();
        for (found, law) in descending(mean).iter().zip(&law) {
            assert!((found - law).abs() < noise, "{found}, not {law}");
        }
        // Whatever is left of the rounds before, a round leaves this part of its square in the mean.
        println!("{n} in cells of {cell}: a round leaves {left:.4}, by the law {second:.4}");
        assert!((left - second).abs() < noise, "{left}, not {second}");
    }
}

#[test]
fn the_gossip_of_presets_converges() {
    for name in ["d-psgd", "sgp", "gossipgrad", "moshpit", "prague"] {
        let strategy = Strategy::preset(name).unwrap();
        let run = RunId::from_bytes([5; 32]);
        let dealing = strategy
            .grouping()
            .and_then(|cells| Dealing::new(cells, run, PEERS));
        let matrices = match dealing {
            Some(dealing) => matrices_of_cells(&dealing),
            None => matrices(strategy.topology_kind().expect("gossip has one")),
        };
        let (steps, inner) = (inner_steps(&strategy), strategy.inner_kind());
        converges(name, |k| gossip_of_parameters(&matrices, steps, inner, k));
    }
}

/// State: x of each peer, then the last message of every rank to every other (along the tree's edges).
fn relayed(tree: &SpanningTree, strategy: &Strategy, curvatures: &[f64]) -> f64 {
    let rate = rates(strategy.inner_kind())[0];
    let near: Vec<Vec<usize>> = (0..PEERS).map(|i| tree.neighbours(i)).collect();
    let at = |from: usize, to: usize| PEERS + from * PEERS + to;
    growth(PEERS + PEERS * PEERS, |_, state| {
        for (x, k) in state.iter_mut().zip(curvatures) {
            *x -= rate * k * *x;
        }
        let before = state.clone();
        for i in 0..PEERS {
            for &j in &near[i] {
                let others = near[i].iter().filter(|l| **l != j);
                state[at(i, j)] = before[i] + others.map(|l| before[at(*l, i)]).sum::<f64>();
            }
        }
        for i in 0..PEERS {
            let came = near[i].iter().map(|j| state[at(*j, i)]);
            state[i] = (before[i] + came.sum::<f64>()) / PEERS as f64;
        }
        // Where there is no edge nothing is relayed.
        for i in 0..PEERS {
            for j in (0..PEERS).filter(|j| !near[i].contains(j)) {
                state[at(i, j)] = 0.0;
            }
        }
    })
}

#[test]
fn sums_along_a_tree_converge() {
    let strategy = Strategy::preset("relaysgd").unwrap();
    for kind in ["binary-tree", "exponential", "hypercube", "ring", "torus"] {
        let tree = SpanningTree::of(&*topology(kind, &[]).build(0), PEERS);
        converges(kind, |k| relayed(&tree, &strategy, k));
    }
}

/// State: x of each peer, then its replica at the neighbours. The codec is linear and has the largest error
/// that `delta` allows: C(z) = delta z.
fn replicas(strategy: &Strategy, w: &[Vec<f64>], delta: f64, curvatures: &[f64]) -> f64 {
    let (rate, lr) = replica_rates(strategy);
    growth(2 * PEERS, |_, state| {
        let (all, known) = state.split_at_mut(PEERS);
        for ((x, h), k) in all.iter_mut().zip(&mut *known).zip(curvatures) {
            *x -= lr * k * *x;
            *h += delta * (*x - *h);
        }
        moved(all, rate, &pulls(w, known));
    })
}

#[test]
fn differences_to_replicas_converge() {
    let strategy = Strategy::preset("choco").unwrap();
    let w = ring();
    for delta in [0.05, 0.1, 0.3, 0.6, 1.0] {
        let what = format!("choco with delta {delta}");
        converges(&what, |k| replicas(&strategy, &w, delta, k));
    }
}

/// State: x of each peer, what has flowed to it of trackers, the replicas of its parameters and of its tracker. The
/// sum of what has flowed is zero, and stays it.
fn tracking(strategy: &Strategy, w: &[Vec<f64>], delta: f64, curvatures: &[f64]) -> f64 {
    let (rate, lr) = replica_rates(strategy);
    growth(4 * PEERS, |_, state| {
        let (all, rest) = state.split_at_mut(PEERS);
        let (flowed, known) = rest.split_at_mut(PEERS);
        let (h, k) = known.split_at_mut(PEERS);
        let mean = flowed.iter().sum::<f64>() / PEERS as f64;
        flowed.iter_mut().for_each(|s| *s -= mean);
        for i in 0..PEERS {
            let y = curvatures[i] * all[i] + flowed[i];
            all[i] -= lr * y;
            h[i] += delta * (all[i] - h[i]);
            k[i] += delta * (y - k[i]);
        }
        moved(all, rate, &pulls(w, h));
        moved(flowed, rate, &pulls(w, k));
    })
}

#[test]
fn trackers_converge() {
    let w = ring();
    let presets = [
        ("gradient-tracking", vec![1.0]),
        // Top-k keeps more than its density of what is left out again and again.
        ("beer", vec![0.1, 0.3, 0.6, 1.0]),
    ];
    for (name, deltas) in presets {
        let strategy = Strategy::preset(name).unwrap();
        for delta in deltas {
            let what = format!("{name} with delta {delta}");
            converges(&what, |k| tracking(&strategy, &w, delta, k));
        }
    }
}

/// As [`tracking`], of averaged gradients: one more run of values in the state.
fn tracking_of_averages(
    strategy: &Strategy,
    w: &[Vec<f64>],
    delta: f64,
    curvatures: &[f64],
) -> f64 {
    let (rate, lr) = replica_rates(strategy);
    assert_eq!(strategy.correction_kind().name(), "motef");
    let beta = strategy.correction_kind().number("beta");
    growth(5 * PEERS, |_, state| {
        let [x, s, u, h, k] = [0, 1, 2, 3, 4].map(|run| run * PEERS);
        let mean = state[s..u].iter().sum::<f64>() / PEERS as f64;
        state[s..u].iter_mut().for_each(|s| *s -= mean);
        for (i, curvature) in curvatures.iter().enumerate() {
            state[u + i] = beta * state[u + i] + (1.0 - beta) * curvature * state[x + i];
            let y = state[u + i] + state[s + i];
            state[x + i] -= lr * y;
            state[h + i] += delta * (state[x + i] - state[h + i]);
            state[k + i] += delta * (y - state[k + i]);
        }
        for (into, known) in [(x, h), (s, k)] {
            let pulls = pulls(w, &state[known..known + PEERS]);
            moved(&mut state[into..into + PEERS], rate, &pulls);
        }
    })
}

#[test]
fn trackers_of_averages_converge() {
    let w = ring();
    let strategy = Strategy::preset("motef").unwrap();
    for delta in [0.1, 0.3, 0.6, 1.0] {
        let what = format!("motef with delta {delta}");
        converges(&what, |k| tracking_of_averages(&strategy, &w, delta, k));
    }
}

/// State: the copy of each peer, and its parameters before. The codec makes every value larger or
/// smaller by the same factor; of estimates only the difference, whose factor counts t times.
fn differences(strategy: &Strategy, w: &[Vec<f64>], factor: f64, curvatures: &[f64]) -> f64 {
    let lr = rates(strategy.inner_kind())[0];
    let ExchangeKind::Differences(plan) = strategy.exchange() else {
        panic!("a preset of differences");
    };
    growth(2 * PEERS, |round, state| {
        let (copies, before) = state.split_at_mut(PEERS);
        let mixed = mixed(w, copies);
        for i in 0..PEERS {
            let x = mixed[i] - lr * curvatures[i] * mixed[i];
            match plan {
                CopyPlan::Parameters => copies[i] += factor * (x - copies[i]),
                CopyPlan::Estimates => {
                    // The growth is that of a time far into the run, and of its beginning.
                    let t = [2.0, 50.0][usize::from(round >= 2000)];
                    let z = before[i] + 0.5 * t * (x - before[i]);
                    copies[i] = (1.0 - 2.0 / t) * copies[i] + (2.0 / t) * factor * z;
                }
            }
            before[i] = x;
        }
    })
}

#[test]
fn differences_to_one_copy_converge() {
    let w = ring();
    for (name, factors) in [
        // int8 is exact to 1/127 of the largest value.
        ("dcd-psgd", vec![0.9, 0.99, 1.0, 1.01, 1.1]),
        ("ecd-psgd", vec![1.0]),
    ] {
        let strategy = Strategy::preset(name).unwrap();
        for factor in factors {
            let what = format!("{name} with factor {factor}");
            converges(&what, |k| differences(&strategy, &w, factor, k));
        }
    }
}

/// State: each peer's anchor, then its momentum; inner steps from the anchor, then the mixes of both.
fn momentum_of_pairs(strategy: &Strategy, rate: f64, curvatures: &[f64]) -> f64 {
    assert_eq!(strategy.outer_kind().name(), "no-lo-co");
    let [lr, momentum, pull] = numbers(strategy.outer_kind(), ["lr", "momentum", "pull"]);
    let matrices = matrices(strategy.topology_kind().expect("gossip has one"));
    let (inner, steps) = (Inner::of(strategy.inner_kind()), inner_steps(strategy));
    growth(2 * PEERS, |round, state| {
        let (anchors, velocities) = state.split_at_mut(PEERS);
        let trained: Vec<f64> = anchors
            .iter()
            .zip(curvatures)
            .map(|(a, k)| {
                let (mut x, mut v) = (*a, 0.0);
                (0..steps).for_each(|_| inner.step(rate, *k, &mut x, &mut v));
                x
            })
            .collect();
        let w = &matrices[round as usize % matrices.len()];
        let means = mixed(w, &trained).into_iter().zip(mixed(w, anchors));
        let own = anchors.iter_mut().zip(velocities);
        for ((a, m), (x, mean)) in own.zip(means) {
            *m = momentum * *m + lr * (x - mean) + pull * (mean - *a);
            *a += *m;
        }
    })
}

#[test]
fn momentum_of_random_pairs_converges() {
    let strategy = Strategy::preset("noloco").unwrap();
    converges_at_all_rates(&strategy, |rate, k| momentum_of_pairs(&strategy, rate, k));
}

/// State: the anchor, the common variate, then each peer's own.
#[test]
fn control_variates_converge() {
    let strategy = Strategy::preset("scaffold").unwrap();
    let (lr, steps) = (rates(strategy.inner_kind())[0], inner_steps(&strategy));
    for curvatures in curvatures() {
        let radius = growth(2 + PEERS, |_, state| {
            let (shared, own) = state.split_at_mut(2);
            let [anchor, common] = [shared[0], shared[1]];
            let (mut delta, mut variates) = (0.0, 0.0);
            for (own, k) in own.iter_mut().zip(&curvatures) {
                let (mut x, correction) = (anchor, common - *own);
                (0..steps).for_each(|_| x -= lr * (k * x + correction));
                *own = (anchor - x) / (f64::from(steps) * lr) - correction;
                delta += (x - anchor) / PEERS as f64;
                variates += *own / PEERS as f64;
            }
            shared[0] += delta;
            shared[1] = variates;
        });
        assert!(radius < 1.0, "{radius}");
    }
}

/// State: x of each peer, then what the codec C(z) = delta z left out.
fn squeezed(strategy: &Strategy, w: &[Vec<f64>], delta: f64, curvatures: &[f64]) -> f64 {
    let (rate, lr) = replica_rates(strategy);
    growth(2 * PEERS, |_, state| {
        let (all, left) = state.split_at_mut(PEERS);
        let mut sent = vec![0.0; PEERS];
        let here = all.iter_mut().zip(left).zip(curvatures);
        for (sent, ((x, e), k)) in sent.iter_mut().zip(here) {
            *x -= lr * k * *x;
            let v = *x + *e;
            (*sent, *e) = (delta * v, (1.0 - delta) * v);
        }
        moved(all, rate, &pulls(w, &sent));
    })
}

#[test]
fn error_feedback_between_neighbours_converges() {
    let strategy = Strategy::preset("deepsqueeze").unwrap();
    let w = ring();
    for delta in [0.05, 0.1, 0.3, 0.6, 1.0] {
        let what = format!("deepsqueeze with delta {delta}");
        converges(&what, |k| squeezed(&strategy, &w, delta, k));
    }
}

/// State: x of each peer, then what has moved away from it, whose sum is zero.
fn exact_diffusion(strategy: &Strategy, w: &[Vec<f64>], curvatures: &[f64]) -> f64 {
    let (rate, lr) = replica_rates(strategy);
    growth(2 * PEERS, |_, state| {
        let (all, gone) = state.split_at_mut(PEERS);
        let mean = gone.iter().sum::<f64>() / PEERS as f64;
        gone.iter_mut().for_each(|d| *d -= mean);
        for ((y, d), k) in all.iter_mut().zip(&*gone).zip(curvatures) {
            *y -= lr * k * *y + d;
        }
        let flows = pulls(w, all);
        moved(all, rate, &flows);
        moved(gone, -rate, &flows);
    })
}

#[test]
fn exact_diffusion_converges() {
    let strategy = Strategy::preset("d2").unwrap();
    let w = ring();
    converges("d2", |k| exact_diffusion(&strategy, &w, k));
}

#[test]
fn averaging_in_random_pairs_converges() {
    // As if every exchange ended within its round: what is late is not in the model.
    let strategy = Strategy::preset("ad-psgd").unwrap();
    let matrices = matrices(topology("random-matching", &[]));
    converges("ad-psgd", |k| {
        gossip_of_parameters(&matrices, 1, strategy.inner_kind(), k)
    });
}

#[test]
fn gossip_of_parameters_converges_on_every_topology() {
    let strategy = Strategy::preset("d-psgd").unwrap();
    assert_eq!(strategy.topology_kind(), Some(topology("ring", &[])));
    for kind in TopologyKind::all() {
        let matrices = matrices(kind);
        for steps in [inner_steps(&strategy), 20] {
            let what = format!("{kind:?} with {steps} inner steps");
            converges(&what, |k| {
                gossip_of_parameters(&matrices, steps, strategy.inner_kind(), k)
            });
        }
    }
}

#[test]
fn training_alone_converges_to_its_own_optimum() {
    let strategy = Strategy::preset("none").unwrap();
    let inner = Inner::of(strategy.inner_kind());
    for rate in rates(strategy.inner_kind()) {
        for k in curvatures().concat() {
            let radius = growth(2, |_, state| {
                let (x, v) = state.split_at_mut(1);
                inner.step(rate, k, &mut x[0], &mut v[0]);
            });
            assert!(radius < 1.0, "none at rate {rate}: {radius}");
        }
    }
}

/// Gossip of deltas, each peer with a private anchor:
/// `a_i <- a_i + sum_j W[i][j] delta_j` with `delta_j = (c - 1) a_j`, `c = (1 - rate k)^steps`.
fn gossip_of_deltas(w: &[Vec<f64>], contraction: f64) -> f64 {
    growth(w.len(), |_, anchors| {
        let deltas: Vec<f64> = anchors.iter().map(|a| (contraction - 1.0) * a).collect();
        for (a, row) in anchors.iter_mut().zip(w) {
            *a += row.iter().zip(&deltas).map(|(w, d)| w * d).sum::<f64>();
        }
    })
}

#[test]
fn gossip_of_deltas_without_an_agreed_anchor_diverges() {
    // Eigenvalues 1 - (1 - c) lambda: the ring of 8 has lambda = -1/3, where neighbours alternate.
    // Five inner steps that each contract by a tenth leave c = 0.9^5.
    let c = 0.9f64.powi(5);
    let radius = gossip_of_deltas(&mixing_matrix(&Ring, Round(0), 8), c);
    assert!((radius - (1.0 + (1.0 - c) / 3.0)).abs() < 1e-9, "{radius}");
    assert!((radius - 1.1365).abs() < 1e-4, "{radius}");
    // The mean of the peers, which is what a loss curve of the averaged model shows, looks healthy.
    let mean = gossip_of_deltas(&[vec![1.0]], c);
    assert!((mean - c).abs() < 1e-9, "{mean}");
    // More training in a round makes it worse, less does not cure it.
    for steps in [1, 50] {
        let c = 0.9f64.powi(steps);
        assert!(gossip_of_deltas(&mixing_matrix(&Ring, Round(0), 8), c) > 1.0);
    }
}

#[test]
fn gossip_of_deltas_never_brings_scattered_anchors_together() {
    // Even with a topology whose W has no negative eigenvalue the distance between anchors does not
    // shrink where W is singular: one-peer exponential on two peers has the eigenvalue zero.
    let w = mixing_matrix(&OnePeerExponential, Round(0), 2);
    let radius = gossip_of_deltas(&w, 0.5);
    assert!((radius - 1.0).abs() < 1e-9, "{radius}");
}

/// Rounds of `local-sgd` with the real trainers and outer optimizer, from anchors all `start`.
fn local_sgd(start: f32, rounds: usize) -> Vec<f32> {
    let strategy = Strategy::preset("local-sgd").expect("a shipped preset");
    let task = ToyTask::Quadratic {
        dim: 12,
        heterogeneity: 1.0,
        noise: 0.0,
        inner: *strategy.inner_kind(),
    };
    let mut peers: Vec<_> = (0..PEERS).map(|i| task.build(i, PEERS, 1)).collect();
    let (mut outer, mut anchor) = (strategy.outer(12), vec![start; 12]);
    for _ in 0..rounds {
        let mut delta = vec![0.0f32; 12];
        for peer in &mut peers {
            peer.visit(0..12, &mut |_, x| x.copy_from_slice(&anchor));
            peer.steps(&mut Count(inner_steps(&strategy).into()))
                .expect("a finite loss");
            peer.visit(0..12, &mut |at, x| {
                for (i, x) in x.iter().enumerate() {
                    delta[at + i] += (x - anchor[at + i]) / PEERS as f32;
                }
            });
        }
        outer.apply(0..12, &mut anchor, &mut delta);
    }
    anchor
}

#[test]
fn the_code_follows_its_linear_model() {
    // The difference of two runs is free of the optimum and follows the linear map alone.
    let strategy = Strategy::preset("local-sgd").unwrap();
    assert!(strategy.inner_kind().is_plain_sgd());
    let lr = strategy.inner_kind().lr();
    for rounds in [1, 4] {
        let (from_zero, from_one) = (local_sgd(0.0, rounds), local_sgd(1.0, rounds));
        for (d, k) in curvatures().into_iter().enumerate() {
            let once = k
                .iter()
                .map(|k| (1.0 - lr * k).powi(inner_steps(&strategy) as i32));
            let expected = (once.sum::<f64>() / PEERS as f64).powi(rounds as i32);
            let found = f64::from(from_one[d] - from_zero[d]);
            // f32 rounding of 64 inner steps on values below ten.
            assert!((found - expected).abs() < 1e-4, "{found} is not {expected}");
        }
    }
}
