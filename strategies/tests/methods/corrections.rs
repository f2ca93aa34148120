//! Local corrections: each takes peers whose data differ to the common optimum, where what it corrects does
//! not; and each follows its equations.

use murmurate_protocol::{Round, Topology};
use murmurate_strategies::correct::{
    Beer, Cedas, Estimate, ExactDiffusion, FedProx, GradientTracking, MomentumTracking,
    QuasiGlobal, Scaffold, fed_nova,
};
use murmurate_strategies::topology::{Ring, mixing_matrix};
use murmurate_strategies::toy::Quadratic;

const PEERS: usize = 8;
const DIM: usize = 12;

type Vectors = Vec<Vec<f32>>;

fn peers() -> Vec<Quadratic> {
    (0..PEERS)
        .map(|i| Quadratic::new(DIM, 1.0, 0.0, [i, PEERS], 1))
        .collect()
}

fn gradient(peer: &Quadratic, x: &[f32]) -> Vec<f32> {
    let (curvature, center) = peer.own();
    (0..DIM)
        .map(|d| curvature[d] * (x[d] - center[d]))
        .collect()
}

fn zeros() -> Vectors {
    vec![vec![0.0; DIM]; PEERS]
}

/// `sum_j W[i][j] x_j` on the ring; `lazy` takes `(I + W) / 2`.
fn mix(x: &Vectors, lazy: bool) -> Vectors {
    let w = mixing_matrix(&Ring, Round(0), PEERS);
    (0..PEERS)
        .map(|i| {
            let sum = |d: usize| {
                (0..PEERS)
                    .map(|j| w[i][j] * f64::from(x[j][d]))
                    .sum::<f64>()
            };
            (0..DIM)
                .map(|d| if lazy { (sum(d) + f64::from(x[i][d])) / 2.0 } else { sum(d) } as f32)
                .collect()
        })
        .collect()
}

/// How far the worst peer is from the common optimum.
fn off(x: &[Vec<f32>]) -> f32 {
    let optimum = Quadratic::new(DIM, 1.0, 0.0, [0, PEERS], 1)
        .optimum()
        .to_vec();
    let each = x
        .iter()
        .flat_map(|x| x.iter().zip(&optimum).map(|(x, o)| (x - o).abs()));
    each.fold(0.0, f32::max)
}

/// What all of them are measured by: gossip of parameters with one inner step.
fn d_psgd(lr: f32, rounds: usize) -> f32 {
    let (peers, mut x) = (peers(), zeros());
    for _ in 0..rounds {
        for (x, peer) in x.iter_mut().zip(&peers) {
            let g = gradient(peer, x);
            x.iter_mut().zip(g).for_each(|(x, g)| *x -= lr * g);
        }
        x = mix(&x, false);
    }
    off(&x)
}

#[test]
fn gossip_alone_stops_short_of_the_optimum() {
    let (some, more) = (d_psgd(0.1, 1000), d_psgd(0.1, 3000));
    assert!(some > 0.05, "{some}");
    assert!(
        (some - more).abs() < 1e-4,
        "it is a fixed point: {some} {more}"
    );
    assert!(d_psgd(0.01, 8000) < 0.4 * some, "in proportion to the rate");
}

/// The rounds that exact methods get; linear convergence needs few hundred.
const ROUNDS: usize = 1500;

#[test]
fn gradient_tracking_reaches_the_optimum() {
    let (peers, mut x) = (peers(), zeros());
    let first = |(peer, x): (&Quadratic, &Vec<f32>)| GradientTracking::new(&gradient(peer, x));
    let mut trackers: Vec<_> = peers.iter().zip(&x).map(first).collect();
    for _ in 0..ROUNDS {
        x.iter_mut()
            .zip(&trackers)
            .for_each(|(x, t)| t.advance(x, 0.1));
        x = mix(&x, false);
        let mixed = mix(
            &trackers.iter().map(|t| t.tracker().to_vec()).collect(),
            false,
        );
        for (i, tracker) in trackers.iter_mut().enumerate() {
            tracker.mixed(&mixed[i], &gradient(&peers[i], &x[i]));
        }
        // The law: the trackers' mean is the gradients' mean.
        for d in 0..DIM {
            let tracked: f32 = trackers.iter().map(|t| t.tracker()[d]).sum();
            let truth: f32 = (0..PEERS).map(|i| gradient(&peers[i], &x[i])[d]).sum();
            assert!((tracked - truth).abs() < 1e-3, "{tracked} {truth}");
        }
    }
    assert!(off(&x) < 1e-3, "{}", off(&x));
}

fn momentum_tracking(beta: f32, lr: f32) -> f32 {
    let (peers, mut x) = (peers(), zeros());
    let mut trackers: Vec<_> = peers
        .iter()
        .map(|_| MomentumTracking::new(DIM, beta))
        .collect();
    for _ in 0..ROUNDS {
        let mut second = zeros();
        for i in 0..PEERS {
            let g = gradient(&peers[i], &x[i]);
            trackers[i].advance(&mut x[i], &g, lr, &mut second[i]);
        }
        x = mix(&x, false);
        let mixed = mix(&second, false);
        trackers
            .iter_mut()
            .zip(&mixed)
            .for_each(|(t, m)| t.mixed(m));
    }
    off(&x)
}

#[test]
fn momentum_tracking_reaches_the_optimum_for_any_beta() {
    for (beta, lr) in [(0.0, 0.1), (0.5, 0.05), (0.9, 0.01)] {
        let off = momentum_tracking(beta, lr);
        assert!(off < 1e-3, "beta {beta}: {off}");
    }
}

#[test]
fn quasi_global_momentum_is_faster_than_gossip_and_no_worse_at_the_end() {
    let run = |lr: f32, rounds: usize| {
        let (peers, mut x) = (peers(), zeros());
        let mut all: Vec<_> = peers
            .iter()
            .map(|_| QuasiGlobal::new(DIM, 0.9, 0.9))
            .collect();
        for _ in 0..rounds {
            for i in 0..PEERS {
                let g = gradient(&peers[i], &x[i]);
                all[i].advance(&mut x[i], &g, lr);
            }
            x = mix(&x, false);
            all.iter_mut().zip(&x).for_each(|(m, x)| m.mixed(x, lr));
        }
        off(&x)
    };
    let (early, plain) = (run(0.005, 250), d_psgd(0.005, 250));
    assert!(early < 0.5 * plain, "{early} {plain}");
    let (late, plain) = (run(0.005, 6000), d_psgd(0.005, 6000));
    assert!(late < 1.5 * plain, "{late} {plain}");
}

fn exact_diffusion(lazy: bool) -> Vectors {
    let (peers, mut x) = (peers(), zeros());
    let mut all: Vec<_> = peers.iter().map(|_| ExactDiffusion::default()).collect();
    for _ in 0..ROUNDS {
        for i in 0..PEERS {
            let g = gradient(&peers[i], &x[i]);
            all[i].advance(&mut x[i], &g, 0.1);
        }
        x = mix(&x, lazy);
    }
    x
}

#[test]
fn exact_diffusion_reaches_the_optimum() {
    assert!(
        off(&exact_diffusion(true)) < 1e-3,
        "{}",
        off(&exact_diffusion(true))
    );
}

#[test]
fn d2_follows_its_equation() {
    // X' = (2 X - X_old - lr (G - G_old)) W, and the first round is D-PSGD's.
    let (peers, mut x) = (peers(), zeros());
    let mut all: Vec<_> = peers.iter().map(|_| ExactDiffusion::default()).collect();
    let mut old: Option<(Vectors, Vectors)> = None;
    for _ in 0..20 {
        let g: Vectors = (0..PEERS).map(|i| gradient(&peers[i], &x[i])).collect();
        let expected: Vectors = (0..PEERS)
            .map(|i| {
                let at = |d: usize| match &old {
                    None => x[i][d] - 0.1 * g[i][d],
                    Some((xo, go)) => 2.0 * x[i][d] - xo[i][d] - 0.1 * (g[i][d] - go[i][d]),
                };
                (0..DIM).map(at).collect()
            })
            .collect();
        old = Some((x.clone(), g.clone()));
        for i in 0..PEERS {
            all[i].advance(&mut x[i], &g[i], 0.1);
            for (x, e) in x[i].iter().zip(&expected[i]) {
                assert!((x - e).abs() < 1e-4, "{x} is not {e}");
            }
        }
        x = mix(&x, true);
    }
}

/// Keeps the largest third: biased, contraction at least 1/3.
fn top_third(values: &[f32], out: &mut [f32]) {
    let mut sizes: Vec<f32> = values.iter().map(|v| v.abs()).collect();
    sizes.sort_by(f32::total_cmp);
    let least = sizes[values.len() - values.len() / 3];
    for (o, v) in out.iter_mut().zip(values) {
        *o = if v.abs() >= least { *v } else { 0.0 };
    }
}

fn identity(values: &[f32], out: &mut [f32]) {
    out.copy_from_slice(values);
}

fn beer(gamma: f32, lr: f32, rounds: usize, mut c: impl FnMut(&[f32], &mut [f32])) -> f32 {
    let (peers, mut x) = (peers(), zeros());
    let first = |(peer, x): (&Quadratic, &Vec<f32>)| Beer::new(&gradient(peer, x), gamma);
    let mut all: Vec<_> = peers.iter().zip(&x).map(first).collect();
    for _ in 0..rounds {
        let mut sent = zeros();
        for i in 0..PEERS {
            all[i].advance(&mut x[i], lr, &mut c, &mut sent[i]);
        }
        let mixed = mix(&sent, false);
        all.iter_mut().zip(&mixed).for_each(|(b, m)| b.mixed(m));
        for i in 0..PEERS {
            all[i].track(&gradient(&peers[i], &x[i]), &mut c, &mut sent[i]);
        }
        let mixed = mix(&sent, false);
        all.iter_mut()
            .zip(&mixed)
            .for_each(|(b, m)| b.mixed_tracker(m));
    }
    off(&x)
}

#[test]
fn beer_reaches_the_optimum_with_a_biased_compressor() {
    let exact = beer(1.0, 0.1, ROUNDS, identity);
    assert!(exact < 1e-3, "{exact}");
    let compressed = beer(0.2, 0.03, 4000, top_third);
    assert!(compressed < 1e-2, "{compressed}");
}

fn cedas(
    alpha: f32,
    gamma: f32,
    lr: f32,
    rounds: usize,
    mut c: impl FnMut(&[f32], &mut [f32]),
) -> Vectors {
    let (peers, mut x) = (peers(), zeros());
    let mut all: Vec<_> = peers
        .iter()
        .map(|_| Cedas::new(DIM, alpha, gamma))
        .collect();
    // The same at all neighbours.
    let mut known = vec![Estimate::new(DIM, alpha); PEERS];
    for _ in 0..rounds {
        let mut sent = zeros();
        for i in 0..PEERS {
            let g = gradient(&peers[i], &x[i]);
            all[i].advance(&mut x[i], &g, lr, &mut c, &mut sent[i]);
        }
        known.iter_mut().zip(&sent).for_each(|(k, q)| k.take(q));
        for (i, cedas) in all.iter_mut().enumerate() {
            let partners = Ring.partners(Round(0), i, PEERS).send.into_iter();
            let neighbours: Vec<_> = partners.map(|(j, w)| (w as f32, &known[j])).collect();
            cedas.mixed(&mut x[i], &neighbours);
        }
    }
    x
}

#[test]
fn cedas_reaches_the_optimum_with_rounding() {
    // Unbiased: dithered rounding to a grid that is coarse beside the differences' end.
    let mut state = 1u64;
    let dithered = move |values: &[f32], out: &mut [f32]| {
        let scale = values.iter().fold(0.0f32, |m, v| m.max(v.abs())) / 4.0;
        for (o, v) in out.iter_mut().zip(values) {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let dither = (state >> 40) as f32 / (1u64 << 24) as f32;
            *o = if scale > 0.0 {
                (v / scale + dither).floor() * scale
            } else {
                0.0
            };
        }
    };
    let x = cedas(0.5, 0.5, 0.1, 3000, dithered);
    assert!(off(&x) < 1e-2, "{}", off(&x));
}

#[test]
fn cedas_without_compression_is_exact_diffusion() {
    let (ours, theirs) = (
        cedas(1.0, 1.0, 0.1, ROUNDS, identity),
        exact_diffusion(true),
    );
    assert!(off(&ours) < 1e-3, "{}", off(&ours));
    for (a, b) in ours.iter().flatten().zip(theirs.iter().flatten()) {
        assert!((a - b).abs() < 1e-3, "{a} {b}");
    }
}

/// Rounds of local training with the mean of the deltas; `correct` sees (peer, gradient, x, anchor).
fn local(
    steps: usize,
    rounds: usize,
    lr: f32,
    mut correct: impl FnMut(usize, &mut [f32], &[f32], &[f32]),
    mut ended: impl FnMut(&[f32], &Vectors),
) -> f32 {
    let (peers, mut anchor) = (peers(), vec![0.0f32; DIM]);
    for _ in 0..rounds {
        let mut all = Vec::new();
        for (i, peer) in peers.iter().enumerate() {
            let mut x = anchor.clone();
            for _ in 0..steps {
                let mut g = gradient(peer, &x);
                correct(i, &mut g, &x, &anchor);
                x.iter_mut().zip(g).for_each(|(x, g)| *x -= lr * g);
            }
            all.push(x);
        }
        ended(&anchor, &all);
        for (d, a) in anchor.iter_mut().enumerate() {
            *a = all.iter().map(|x| x[d]).sum::<f32>() / PEERS as f32;
        }
    }
    off(&[anchor])
}

#[test]
fn many_inner_steps_drift_and_scaffold_does_not() {
    let (steps, lr) = (10, 0.1);
    let drift = local(steps, 500, lr, |_, _, _, _| {}, |_, _| {});
    assert!(drift > 0.03, "{drift}");
    let states = std::cell::RefCell::new(vec![Scaffold::new(DIM); PEERS]);
    let correct = |i: usize, g: &mut [f32], _: &[f32], _: &[f32]| states.borrow()[i].correct(g);
    let ended = |anchor: &[f32], all: &Vectors| {
        let mut states = states.borrow_mut();
        let mut mean = vec![0.0f32; DIM];
        for (state, y) in states.iter_mut().zip(all) {
            let mut change = vec![0.0; DIM];
            state.renew(anchor, y, steps as u64, lr, &mut change);
            mean.iter_mut()
                .zip(change)
                .for_each(|(m, c)| *m += c / PEERS as f32);
        }
        states.iter_mut().for_each(|state| state.agree(&mean));
    };
    let corrected = local(steps, 500, lr, correct, ended);
    assert!(corrected < 1e-3, "{corrected} where plain drift is {drift}");
}

#[test]
fn fed_prox_drifts_less_and_not_at_all_without_a_spring() {
    let run = |mu: f32| {
        let spring = FedProx { mu };
        local(
            10,
            1500,
            0.1,
            |_, g, x, a| spring.correct(g, x, a),
            |_, _| {},
        )
    };
    let plain = local(10, 1500, 0.1, |_, _, _, _| {}, |_, _| {});
    assert_eq!(run(0.0), plain);
    assert!(run(3.0) < 0.6 * plain, "{} {plain}", run(3.0));
    assert!(run(3.0) > 1e-3, "bounded, not removed");
}

#[test]
fn fed_nova_removes_the_bias_of_unequal_work() {
    // Peer i takes 1 to 8 inner steps. At a small rate the fixed point of plain averaging is that of the
    // work-weighted sum of the functions; with the factors it is the common optimum.
    let run = |nova: bool| {
        let (peers, lr) = (peers(), 0.01f32);
        let measures: Vec<f64> = (1..=PEERS as u64)
            .map(|tau| fed_nova::measure(tau, 0.0))
            .collect();
        let factors = fed_nova::factors(&[1.0; PEERS], &measures);
        let mut anchor = vec![0.0f32; DIM];
        for _ in 0..4000 {
            let mut sum = vec![0.0f32; DIM];
            for (i, peer) in peers.iter().enumerate() {
                let mut x = anchor.clone();
                for _ in 0..=i {
                    let g = gradient(peer, &x);
                    x.iter_mut().zip(g).for_each(|(x, g)| *x -= lr * g);
                }
                let factor = if nova {
                    factors[i] as f32
                } else {
                    1.0 / PEERS as f32
                };
                for ((s, x), a) in sum.iter_mut().zip(&x).zip(&anchor) {
                    *s += factor * (x - a);
                }
            }
            anchor.iter_mut().zip(&sum).for_each(|(a, s)| *a += s);
        }
        off(&[anchor])
    };
    let (plain, nova) = (run(false), run(true));
    assert!(plain > 0.2 && nova < 0.15 * plain, "{nova} {plain}");
}

#[test]
fn fed_nova_measures_follow_the_closed_form() {
    for (tau, rho) in [(1u64, 0.0), (7, 0.0), (1, 0.9), (12, 0.9), (50, 0.5)] {
        let closed =
            (tau as f64 - rho * (1.0 - f64::powi(rho, tau as i32)) / (1.0 - rho)) / (1.0 - rho);
        assert!((fed_nova::measure(tau, rho) - closed).abs() < 1e-9);
    }
    let factors = fed_nova::factors(&[3.0, 1.0], &[5.0, 5.0]);
    assert!((factors[0] - 0.75).abs() < 1e-12 && (factors[1] - 0.25).abs() < 1e-12);
}
