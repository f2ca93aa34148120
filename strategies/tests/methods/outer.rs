//! Outer optimizers against their papers: a reference in f64 for each, their special cases, and the
//! optimum they reach on a quadratic whose peers pull apart.

use crate::Count;
use murmurate_strategies::inner::InnerKind;
use murmurate_strategies::outer::{
    OuterKind, OuterOptimizer, StalenessWeight, StatePrecision, StoredOuter, compensate_delay,
    elastic,
};
use murmurate_strategies::state::MemoryState;
use murmurate_strategies::toy::ToyTask;

const LEN: usize = 9;
const ROUNDS: usize = 30;

fn optimizer(name: &str, given: &[(&str, f64)]) -> OuterKind {
    OuterKind::new(name, given).unwrap()
}

/// One of the two momenta.
fn heavy(name: &str, lr: f64, momentum: f64) -> OuterKind {
    optimizer(name, &[("lr", lr), ("momentum", momentum)])
}

const BETAS: [f64; 2] = [0.9, 0.99];

/// FedAdam or FedYogi.
fn fed_opt(name: &str, lr: f64, eps: f64) -> OuterKind {
    let [first, second] = BETAS;
    optimizer(
        name,
        &[
            ("lr", lr),
            ("betas", first),
            ("betas", second),
            ("eps", eps),
        ],
    )
}

/// Slow momentum with a penalty for what is late, and a clip.
fn co2(lr: f64, momentum: f64, penalty: f64, clip: f64) -> OuterKind {
    let rates = [("lr", lr), ("momentum", momentum)];
    optimizer(
        "co2",
        &[&rates[..], &[("penalty", penalty), ("clip", clip)]].concat(),
    )
}

fn delta(round: usize) -> Vec<f32> {
    (0..LEN)
        .map(|i| match i {
            0 => 0.0,
            1 if round == 4 => 1e4,
            2 => 1e-30,
            _ => ((round * 13 + i * 7) % 19) as f32 / 9.0 - 1.0,
        })
        .collect()
}

fn assert_close(what: &str, found: &[f32], expected: &[f64]) {
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        // f32 rounding over thirty rounds, relative to what has been added up.
        let tolerance = 3e-5 * (1.0 + e.abs());
        assert!(
            (f64::from(*f) - e).abs() < tolerance,
            "{what} at {i}: {f} is not {e}"
        );
    }
}

/// Applies rounds in two fragments.
fn run(kind: OuterKind) -> Vec<f32> {
    let mut outer = kind.build(LEN);
    assert_eq!(outer.state().len(), kind.state_multiple() * LEN);
    let mut anchor = vec![0.5; LEN];
    for round in 0..ROUNDS {
        let mut delta = delta(round);
        for fragment in [4..LEN, 0..4] {
            let part = fragment.clone();
            outer.apply(fragment, &mut anchor[part.clone()], &mut delta[part]);
        }
    }
    anchor
}

/// The same by an equation for one value, in f64: `step(x, delta, state)`.
fn reference(first: [f64; 2], step: impl Fn(&mut f64, f64, &mut [f64; 2])) -> Vec<f64> {
    (0..LEN)
        .map(|i| {
            let (mut x, mut state) = (0.5, first);
            for round in 0..ROUNDS {
                step(&mut x, f64::from(delta(round)[i]), &mut state);
            }
            x
        })
        .collect()
}

#[test]
fn nesterov_follows_its_equation() {
    let expected = reference([0.0; 2], |x, d, s| {
        s[0] = 0.9 * s[0] - d;
        *x -= 0.7 * (0.9 * s[0] - d);
    });
    assert_close("nesterov", &run(heavy("nesterov", 0.7, 0.9)), &expected);
    let average = run(OuterKind::average());
    assert_eq!(run(heavy("nesterov", 1.0, 0.0)), average);
    assert_close("average", &average, &reference([0.0; 2], |x, d, _| *x += d));
}

#[test]
fn slow_mo_follows_its_equation() {
    let found = run(heavy("slow-mo", 0.8, 0.6));
    let expected = reference([0.0; 2], |x, d, s| {
        s[0] = 0.6 * s[0] - d;
        *x -= 0.8 * s[0];
    });
    assert_close("slow-mo", &found, &expected);
    // Block momentum: the same, written as the block's own change.
    let bmuf = reference([0.0; 2], |x, d, s| {
        s[0] = 0.6 * s[0] + 0.8 * d;
        *x += s[0];
    });
    assert_close("BMUF", &found, &bmuf);
    let plain = run(heavy("slow-mo", 1.0, 0.0));
    assert_eq!(plain, run(OuterKind::average()));
}

#[test]
fn co2_follows_its_equation_and_is_slow_momentum_without_penalty_and_clip() {
    let (lr, momentum) = (0.8, 0.6);
    let found = run(co2(lr, momentum, 1.5, 0.9));
    let (mut x, mut u) = ([0.5; LEN], [0.0f64; LEN]);
    let norm = |values: &[f64]| values.iter().map(|v| v * v).sum::<f64>().sqrt();
    let mut clipped = 0;
    for round in 0..ROUNDS {
        let delta: Vec<f64> = delta(round).into_iter().map(f64::from).collect();
        for range in [4..LEN, 0..4] {
            let gap = lr * norm(&u[range.clone()]) / norm(&delta[range.clone()]);
            for at in range {
                let next = momentum * u[at] - delta[at] / (1.0 + 1.5 * gap);
                clipped += usize::from(next.abs() > 0.9);
                u[at] = next.clamp(-0.9, 0.9);
                x[at] -= lr * u[at];
            }
        }
    }
    assert!(clipped > 0, "the clip is part of what is compared");
    assert_close("co2", &found, &x);
    let plain = co2(lr, momentum, 0.0, 1e30);
    assert_eq!(run(plain), run(heavy("slow-mo", lr, momentum)));
}

#[test]
fn fed_opt_follows_its_equations() {
    let (lr, eps) = (0.05, 1e-3);
    let adapt = |beta: f64, second: fn(f64, f64) -> f64| {
        reference([0.0, eps * eps], move |x, d, s| {
            s[0] = beta * s[0] + (1.0 - beta) * d;
            s[1] = second(s[1], d * d);
            *x += lr * s[0] / (s[1].sqrt() + eps);
        })
    };
    assert_close(
        "fed-adagrad",
        &run(optimizer(
            "fed-adagrad",
            &[("lr", lr), ("momentum", 0.3), ("eps", eps)],
        )),
        &adapt(0.3, |v, s| v + s),
    );
    assert_close(
        "fed-adam",
        &run(fed_opt("fed-adam", lr, eps)),
        &adapt(0.9, |v, s| 0.99 * v + 0.01 * s),
    );
    assert_close(
        "fed-yogi",
        &run(fed_opt("fed-yogi", lr, eps)),
        &adapt(0.9, |v, s| {
            v - 0.01 * s * if v == s { 0.0 } else { (v - s).signum() }
        }),
    );
}

#[test]
fn state_survives_saving_and_loading() {
    let (lr, eps) = (0.05, 1e-3);
    for kind in [
        OuterKind::average(),
        heavy("nesterov", lr, 0.9),
        heavy("slow-mo", lr, 0.5),
        co2(lr, 0.5, 1.0, 1.0),
        optimizer(
            "fed-adagrad",
            &[("lr", lr), ("momentum", 0.0), ("eps", eps)],
        ),
        fed_opt("fed-adam", lr, eps),
        fed_opt("fed-yogi", lr, eps),
    ] {
        let mut whole = kind.build(LEN);
        let mut anchor = vec![0.5; LEN];
        (0..5).for_each(|round| whole.apply(0..LEN, &mut anchor, &mut delta(round)));
        let mut state = MemoryState::default();
        whole.save(&mut state).unwrap();
        let stored = |len| StoredOuter::new(&kind, StatePrecision::F32, len);
        let (mut again, mut other) = (stored(LEN), anchor.clone());
        again.restore(again.read(&state).unwrap());
        for round in 5..9 {
            whole.apply(0..LEN, &mut anchor, &mut delta(round));
            again.apply(0..LEN, &mut other, &mut delta(round));
        }
        assert_eq!(anchor, other, "{kind:?}");
        let fits = stored(LEN + 1).read(&state).is_ok();
        assert_eq!(fits, kind.state_multiple() == 0, "{kind:?}");
    }
}

/// A center after arrivals of all its values.
fn arrivals(every: f64, spread: f64) -> Vec<f32> {
    let rates = [("lr", 0.7), ("momentum", 0.9)];
    let given = [&rates[..], &[("every", every), ("spread", spread)]].concat();
    let kind = OuterKind::new("delayed-nesterov", &given).unwrap();
    let (mut outer, mut center) = (kind.build(LEN), vec![0.5; LEN]);
    (0..ROUNDS).for_each(|round| outer.apply(0..LEN, &mut center, &mut delta(round)));
    center
}

#[test]
fn delayed_nesterov_follows_its_equation() {
    for (every, spread) in [(1u32, 0.0), (4, 0.0), (4, 0.25), (3, 0.1)] {
        let center = arrivals(f64::from(every), spread);
        let n = f64::from(every);
        let expected: Vec<f64> = (0..LEN)
            .map(|i| {
                let (mut x, mut m, mut buffer) = (0.5, 0.0, 0.0);
                for round in 0..ROUNDS {
                    let g = -f64::from(delta(round)[i]);
                    buffer += g;
                    if (round + 1) % every as usize == 0 {
                        m = 0.9 * m + buffer / n;
                        x -= 0.7 * ((1.0 - spread * n + spread) * 0.9 * m + g / n);
                        buffer = 0.0;
                    } else {
                        x -= 0.7 * (spread * 0.9 * m + g / n);
                    }
                }
                x
            })
            .collect();
        assert_close("delayed nesterov", &center, &expected);
    }
    let center = arrivals(1.0, 0.0);
    let nesterov = run(heavy("nesterov", 0.7, 0.9));
    let nesterov: Vec<f64> = nesterov.into_iter().map(f64::from).collect();
    assert_close("one arrival a round", &center, &nesterov);
}

#[test]
fn elastic_averaging_keeps_the_sum_and_meets_in_the_middle() {
    let (mut x, mut center) = ([1.0, -2.0, 1e4], [0.0, 4.0, 0.0]);
    elastic(&mut x, &mut center, 0.25);
    assert_eq!((x, center), ([0.75, -0.5, 7500.0], [0.25, 2.5, 2500.0]));
    elastic(&mut x, &mut center, 0.5);
    assert_eq!(x, center);
    let before = x;
    elastic(&mut x, &mut [9.0, 9.0, 9.0], 0.0);
    assert_eq!(x, before);
}

#[test]
fn weights_fall_with_staleness() {
    for (kind, expected) in [
        (StalenessWeight::Constant, [1.0, 1.0, 1.0, 1.0]),
        (StalenessWeight::Inverse, [1.0, 1.0, 1.0 / 3.0, 0.125]),
        (
            StalenessWeight::InverseRoot,
            [1.0, 0.5f64.sqrt(), 0.5, 1.0 / 3.0],
        ),
    ] {
        let found = [0, 1, 3, 8].map(|staleness| kind.of(staleness));
        for (f, e) in found.iter().zip(expected) {
            assert!((f - e).abs() < 1e-12, "{kind:?}: {found:?}");
        }
    }
}

#[test]
fn delay_compensation_is_nearer_to_the_present_gradient() {
    // f(x) = x^4 / 4 on a few coordinates: g = x^3. g^2 stands for the curvature 3 x^2 near |x| = 1.3.
    let old = [1.2f32, -1.3, 1.25];
    let now = [1.1f32, -1.2, 1.3];
    let cube = |x: f32| x * x * x;
    let late = old.map(cube);
    let mut g = late;
    compensate_delay(&mut g, &now, &old, 1.0);
    for i in 0..3 {
        let (truth, wrong) = (cube(now[i]), (late[i] - cube(now[i])).abs());
        assert!(
            (g[i] - truth).abs() < 0.6 * wrong,
            "{} {} {truth}",
            g[i],
            late[i]
        );
        let exact = f64::from(late[i]) + f64::from(late[i]).powi(2) * f64::from(now[i] - old[i]);
        assert!((f64::from(g[i]) - exact).abs() < 1e-6);
    }
    let mut same = late;
    compensate_delay(&mut same, &now, &now, 1.0);
    assert_eq!(same, late);
}

const PEERS: usize = 8;
const DIM: usize = 12;

/// Rounds of local training and one outer step of the mean delta, one inner step each so that the fixed
/// point is the common optimum; how far off the anchor ends.
fn rounds(kind: OuterKind, rounds: usize) -> f32 {
    let task = ToyTask::Quadratic {
        dim: DIM,
        heterogeneity: 1.0,
        noise: 0.0,
        inner: InnerKind::sgd(0.2),
    };
    let mut peers: Vec<_> = (0..PEERS).map(|i| task.build(i, PEERS, 1)).collect();
    let (mut outer, mut anchor) = (kind.build(DIM), vec![0.0f32; DIM]);
    for _ in 0..rounds {
        let mut mean = vec![0.0f32; DIM];
        for peer in &mut peers {
            peer.visit(0..DIM, &mut |_, x| x.copy_from_slice(&anchor));
            peer.steps(&mut Count(1)).expect("a finite loss");
            peer.visit(0..DIM, &mut |at, x| {
                for (i, x) in x.iter().enumerate() {
                    mean[at + i] += (x - anchor[at + i]) / PEERS as f32;
                }
            });
        }
        outer.apply(0..DIM, &mut anchor, &mut mean);
    }
    let off = anchor
        .iter()
        .zip(task.optimum(PEERS, 1))
        .map(|(a, o)| (a - o).abs());
    off.fold(0.0, f32::max)
}

#[test]
fn every_outer_optimizer_reaches_the_common_optimum() {
    for (kind, near) in [
        (OuterKind::average(), 1e-3),
        (heavy("slow-mo", 1.0, 0.5), 1e-4),
        (co2(1.0, 0.5, 1.0, 1.0), 1e-4),
        (heavy("nesterov", 0.7, 0.9), 1e-4),
        (
            optimizer(
                "fed-adagrad",
                &[("lr", 0.3), ("momentum", 0.0), ("eps", 1e-3)],
            ),
            1e-2,
        ),
        // A constant rate leaves the adaptive ones within it.
        (fed_opt("fed-adam", 0.01, 1e-3), 2e-2),
        (fed_opt("fed-yogi", 0.01, 1e-3), 2e-2),
    ] {
        let off = rounds(kind, 800);
        assert!(off < near, "{kind:?}: {off} off");
    }
    // Linear convergence: momentum makes it faster on the flat directions.
    let plain = rounds(OuterKind::average(), 60);
    let heavy = rounds(heavy("slow-mo", 1.0, 0.5), 60);
    assert!(heavy < 0.2 * plain, "{heavy} {plain}");
}

/// Moves the anchor of one of a pair, as the Executor does: `beta` times the mean delta, and `gamma` times
/// the difference to the mean anchor. A delta and an anchor of each.
fn mix(
    outer: &mut OuterOptimizer,
    [beta, gamma]: [f32; 2],
    anchor: &mut [f32],
    own: (&[f32], &[f32]),
    other: (&[f32], &[f32]),
) {
    let mean = |a: &[f32], b: &[f32], i: usize| 0.5 * (a[i] + b[i]);
    let mut delta: Vec<f32> = (0..anchor.len())
        .map(|i| beta * mean(own.0, other.0, i) + gamma * (mean(own.1, other.1, i) - anchor[i]))
        .collect();
    outer.apply(0..anchor.len(), anchor, &mut delta);
}

#[test]
fn no_lo_co_brings_pairs_together_at_the_optimum() {
    let task = ToyTask::Quadratic {
        dim: DIM,
        heterogeneity: 1.0,
        noise: 0.0,
        inner: InnerKind::sgd(0.02),
    };
    let mut peers: Vec<_> = (0..PEERS).map(|i| task.build(i, PEERS, 1)).collect();
    let rates = [("momentum", 0.5), ("lr", 0.7), ("pull", 0.7)];
    let kind = OuterKind::new("no-lo-co", &rates).unwrap();
    let mut outers: Vec<_> = (0..PEERS).map(|_| kind.build(DIM)).collect();
    let mut anchors: Vec<Vec<f32>> = (0..PEERS).map(|i| vec![i as f32 - 3.0; DIM]).collect();
    for round in 0..4000usize {
        let mut deltas = Vec::new();
        for (peer, anchor) in peers.iter_mut().zip(&anchors) {
            peer.visit(0..DIM, &mut |_, x| x.copy_from_slice(anchor));
            peer.steps(&mut Count(1)).unwrap();
            let mut delta = vec![0.0; DIM];
            peer.visit(0..DIM, &mut |at, x| {
                for (i, x) in x.iter().enumerate() {
                    delta[at + i] = x - anchor[at + i];
                }
            });
            deltas.push(delta);
        }
        // Pairs over the three dimensions of a cube in turn.
        let old = anchors.clone();
        for (i, (outer, anchor)) in outers.iter_mut().zip(&mut anchors).enumerate() {
            let j = i ^ (1 << (round % 3));
            let (own, other) = ((&deltas[i][..], &old[i][..]), (&deltas[j][..], &old[j][..]));
            mix(outer, [0.7, 0.7], anchor, own, other);
        }
    }
    let optimum = task.optimum(PEERS, 1);
    for anchor in &anchors {
        for (a, o) in anchor.iter().zip(&optimum) {
            // A constant rate leaves peers apart by about the rate times their pull.
            assert!((a - o).abs() < 0.15, "{a} is not {o}");
        }
    }
    // Special case: alpha 0, beta = gamma = 1 is the mean of the parameters.
    let rates = [("momentum", 0.0), ("lr", 1.0), ("pull", 1.0)];
    let mut plain = OuterKind::new("no-lo-co", &rates).unwrap().build(1);
    let mut anchor = [2.0];
    let (own, other) = ((&[0.5][..], &[2.0][..]), (&[-1.5][..], &[6.0][..]));
    mix(&mut plain, [1.0, 1.0], &mut anchor, own, other);
    assert_eq!(anchor, [3.5]);
}
