//! Local corrections on peers whose data differ: each reaches the common optimum, or comes nearer, where
//! the method that it corrects does not. They are driven as the train lane drives them.

use crate::numbers::spectrum::mixing_matrix;
use crate::numbers::{gradient_f32 as gradient, quadratics};
use murmurate_protocol::Round;
use murmurate_strategies::correct::{Correction, CorrectionKind, Work};
use murmurate_strategies::topology::Ring;
use murmurate_strategies::toy::Quadratic;

const PEERS: usize = 8;
const DIM: usize = 12;

type Vectors = Vec<Vec<f32>>;

fn peers() -> Vec<Quadratic> {
    quadratics(DIM, 1.0, PEERS, 1)
}

fn zeros() -> Vectors {
    vec![vec![0.0; DIM]; PEERS]
}

/// `sum_j W[i][j] x_j` on the ring.
fn mix(x: &Vectors) -> Vectors {
    let w = mixing_matrix(&Ring, Round(0), PEERS);
    (0..PEERS)
        .map(|i| {
            let sum = |d: usize| {
                (0..PEERS)
                    .map(|j| w[i][j] * f64::from(x[j][d]))
                    .sum::<f64>()
            };
            (0..DIM).map(|d| sum(d) as f32).collect()
        })
        .collect()
}

/// How far the worst peer is from the common optimum.
fn off(x: &[Vec<f32>]) -> f32 {
    let optimum = peers()[0].optimum().to_vec();
    let each = x
        .iter()
        .flat_map(|x| x.iter().zip(&optimum).map(|(x, o)| (x - o).abs()));
    each.fold(0.0, f32::max)
}

/// The yardstick of all of them: gossip of parameters with one inner step.
fn d_psgd(lr: f32, rounds: usize) -> f32 {
    let (peers, mut x) = (peers(), zeros());
    for _ in 0..rounds {
        for (x, peer) in x.iter_mut().zip(&peers) {
            let g = gradient(peer, x);
            x.iter_mut().zip(g).for_each(|(x, g)| *x -= lr * g);
        }
        x = mix(&x);
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

/// The rounds that exact methods get; linear convergence needs a few hundred.
const ROUNDS: usize = 1500;

/// A correction for each peer, with inner steps at rate `lr`.
fn corrections(kind: CorrectionKind, lr: f32) -> Vec<Box<dyn Correction>> {
    let build = |_| kind.build(DIM, f64::from(lr));
    (0..PEERS).filter_map(build).collect()
}

/// One inner step at rate `lr` with the corrected gradient.
fn step(correction: &mut dyn Correction, peer: &Quadratic, x: &mut [f32], lr: f32) {
    let mut g = gradient(peer, x);
    correction.correct(0, x, &mut g);
    x.iter_mut().zip(g).for_each(|(x, g)| *x -= lr * g);
}

const ONE_STEP: Work = Work {
    steps: 1,
    since_agreed: 1,
};

/// Gossip in which trackers flow along the links as the parameters are mixed.
fn tracking(kind: CorrectionKind, lr: f32) -> f32 {
    let (peers, mut x) = (peers(), zeros());
    let mut all = corrections(kind, lr);
    let mut flowed = zeros();
    for _ in 0..ROUNDS {
        let mut trackers = zeros();
        for i in 0..PEERS {
            step(&mut *all[i], &peers[i], &mut x[i], lr);
            all[i].cut(&x[i], ONE_STEP, &mut trackers[i]);
        }
        x = mix(&x);
        let mixed = mix(&trackers);
        for i in 0..PEERS {
            for (d, s) in flowed[i].iter_mut().enumerate() {
                *s += mixed[i][d] - trackers[i][d];
            }
            all[i].companion_taken(0, &flowed[i]);
        }
        // The law: flows sum to zero, so the trackers' mean is that of the gradients or momenta.
        for d in 0..DIM {
            let sum: f32 = flowed.iter().map(|s| s[d]).sum();
            assert!(sum.abs() < 1e-3, "{sum}");
        }
    }
    off(&x)
}

#[test]
fn trackers_reach_the_optimum_for_any_beta() {
    for (name, beta, lr) in [
        ("gradient-tracking", None, 0.1),
        ("momentum-tracking", Some(0.0), 0.1),
        ("momentum-tracking", Some(0.5), 0.05),
        ("momentum-tracking", Some(0.9), 0.01),
        ("motef", Some(0.0), 0.1),
        ("motef", Some(0.5), 0.1),
        ("motef", Some(0.9), 0.1),
    ] {
        let given: Vec<_> = beta.map(|beta| ("beta", beta)).into_iter().collect();
        let off = tracking(CorrectionKind::new(name, &given).unwrap(), lr);
        assert!(off < 1e-3, "{name} with beta {beta:?}: {off}");
    }
}

#[test]
fn quasi_global_momentum_is_faster_than_gossip_and_no_worse_at_the_end() {
    let run = |lr: f32, rounds: usize| {
        let (peers, mut x) = (peers(), zeros());
        let mut all = corrections(
            CorrectionKind::new("quasi-global", &[("beta", 0.9)]).unwrap(),
            lr,
        );
        for i in 0..PEERS {
            all[i].taken_over(0, &x[i], &x[i], true, 0);
        }
        for _ in 0..rounds {
            for i in 0..PEERS {
                step(&mut *all[i], &peers[i], &mut x[i], lr);
            }
            let trained = x;
            x = mix(&trained);
            for i in 0..PEERS {
                all[i].taken_over(0, &trained[i], &x[i], true, 1);
            }
        }
        off(&x)
    };
    let (early, plain) = (run(0.005, 250), d_psgd(0.005, 250));
    assert!(early < 0.5 * plain, "{early} {plain}");
    let (late, plain) = (run(0.005, 6000), d_psgd(0.005, 6000));
    assert!(late < 1.5 * plain, "{late} {plain}");
}

/// Rounds of ten inner steps from a common anchor, which then moves by the mean of the deltas.
fn local(kind: CorrectionKind, rounds: usize) -> f32 {
    const STEPS: u64 = 10;
    let lr = 0.1;
    let (peers, mut anchor) = (peers(), vec![0.0f32; DIM]);
    let mut all = corrections(kind, lr);
    let work = Work {
        steps: STEPS,
        since_agreed: STEPS,
    };
    for _ in 0..rounds {
        let mut trained: Vectors = Vec::new();
        for (i, peer) in peers.iter().enumerate() {
            let mut x = anchor.clone();
            if let Some(correction) = all.get_mut(i) {
                correction.taken_over(0, &x, &anchor, true, STEPS);
            }
            for _ in 0..STEPS {
                match all.get_mut(i) {
                    Some(correction) => step(&mut **correction, peer, &mut x, lr),
                    None => {
                        let g = gradient(peer, &x);
                        x.iter_mut().zip(g).for_each(|(x, g)| *x -= lr * g);
                    }
                }
            }
            trained.push(x);
        }
        let mut companions = zeros();
        for ((correction, x), companion) in all.iter_mut().zip(&trained).zip(&mut companions) {
            correction.cut(x, work, companion);
        }
        let mean = |all: &Vectors, d: usize| all.iter().map(|x| x[d]).sum::<f32>() / PEERS as f32;
        let common: Vec<f32> = (0..DIM).map(|d| mean(&companions, d)).collect();
        for correction in &mut all {
            correction.companion_taken(0, &common);
        }
        anchor = (0..DIM).map(|d| mean(&trained, d)).collect();
    }
    off(&[anchor])
}

#[test]
fn many_inner_steps_drift_and_scaffold_does_not() {
    let drift = local(CorrectionKind::none(), 500);
    assert!(drift > 0.03, "{drift}");
    let corrected = local(CorrectionKind::new("scaffold", &[]).unwrap(), 500);
    assert!(corrected < 1e-3, "{corrected} where plain drift is {drift}");
}

#[test]
fn fed_prox_drifts_less_and_not_at_all_without_a_spring() {
    let run = |mu: f64| {
        local(
            CorrectionKind::new("fed-prox", &[("mu", mu)]).unwrap(),
            1500,
        )
    };
    let plain = local(CorrectionKind::none(), 1500);
    // Too weak for f32.
    assert_eq!(run(1e-30), plain);
    assert!(run(3.0) < 0.6 * plain, "{} {plain}", run(3.0));
    assert!(run(3.0) > 1e-3, "bounded, not removed");
}
