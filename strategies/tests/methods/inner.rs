//! Inner optimizers against their papers: a reference in f64 for each, and the optimum they reach.

use crate::Count;
use murmurate_strategies::Layout;
use murmurate_strategies::inner::{INNERS, InnerKind, InnerOptimizer, Sends, orthogonal};
use murmurate_strategies::toy::ToyTask;

/// A vector of zeros, a matrix, a vector, a tall tensor of four dimensions.
fn layout() -> Layout {
    Layout::new([
        ("zero", vec![3]),
        ("wide", vec![4, 6]),
        ("bias", vec![5]),
        ("kernel", vec![7, 2, 1, 2]),
    ])
}

fn start() -> Vec<f32> {
    let len = layout().len();
    (0..len)
        .map(|i| {
            if i < 3 {
                0.0
            } else {
                ((i * 37) % 19) as f32 / 6.0 - 1.5
            }
        })
        .collect()
}

fn gradient(step: usize, len: usize) -> Vec<f32> {
    (0..len)
        .map(|i| match i {
            7 => 0.0,
            8 if step == 3 => 1e4,
            9 => 1e-30,
            _ => ((step * 31 + i * 17) % 23) as f32 / 7.0 - 1.5,
        })
        .collect()
}

const BETAS: [f64; 2] = [0.9, 0.99];

const EPS: f64 = 1e-6;
const STEPS: usize = 30;

/// An optimizer with two moments.
fn adaptive(name: &str, lr: f64, eps: f64, more: &[(&str, f64)]) -> InnerKind {
    let betas = BETAS.map(|beta| ("betas", beta));
    let given = [&[("lr", lr), ("eps", eps)], &betas[..], more].concat();
    InnerKind::new(name, &given).unwrap()
}

/// One with a momentum of 0.9.
fn with_momentum(name: &str, lr: f64, weight_decay: f64) -> InnerKind {
    let given = [
        ("lr", lr),
        ("momentum", 0.9),
        ("weight_decay", weight_decay),
    ];
    InnerKind::new(name, &given).unwrap()
}

/// Takes inner steps; the pieces are whole tensors, in another order than the layout's.
fn run(kind: InnerKind) -> Vec<f32> {
    let layout = layout();
    let mut optimizer = kind.build_for(&layout);
    assert_eq!(
        optimizer.state().len(),
        kind.state_multiple() * layout.len()
    );
    let mut x = start();
    let ranges: Vec<_> = layout
        .tensors()
        .iter()
        .map(|tensor| tensor.range())
        .collect();
    for step in 0..STEPS {
        let g = gradient(step, x.len());
        optimizer.begin_step();
        for piece in [2, 0, 3, 1].map(|at| ranges[at].clone()) {
            optimizer.apply(piece.clone(), &mut x[piece.clone()], &g[piece]);
        }
    }
    x
}

/// The same by the paper's equation for one tensor, in f64: `step(t, x, g, m, v)`.
fn reference(
    mut step: impl FnMut(usize, usize, &mut [f64], &[f64], &mut [f64], &mut [f64]),
) -> Vec<f64> {
    let layout = layout();
    let mut x: Vec<f64> = start().into_iter().map(f64::from).collect();
    let (mut m, mut v) = (vec![0.0; x.len()], vec![0.0; x.len()]);
    for t in 0..STEPS {
        let g: Vec<f64> = gradient(t, x.len()).into_iter().map(f64::from).collect();
        for (at, tensor) in layout.tensors().iter().enumerate() {
            let r = tensor.range();
            step(
                t + 1,
                at,
                &mut x[r.clone()],
                &g[r.clone()],
                &mut m[r.clone()],
                &mut v[r],
            );
        }
    }
    x
}

fn assert_close(kind: InnerKind, expected: &[f64]) {
    for (i, (found, e)) in run(kind).iter().zip(expected).enumerate() {
        // f32 rounding of thirty inner steps.
        let tolerance = 2e-4 * (1.0 + e.abs());
        assert!(
            (f64::from(*found) - e).abs() < tolerance,
            "{kind:?} at {i}: {found} is not {e}"
        );
    }
}

#[test]
fn every_optimizer_survives_its_own_text() {
    for spec in INNERS {
        let kind = InnerKind::of(spec, &[]).unwrap().with("lr", 0.25);
        let text = toml::to_string(&kind).unwrap();
        assert_eq!(toml::from_str::<InnerKind>(&text).unwrap(), kind, "{text}");
    }
    assert!(toml::from_str::<InnerKind>("optimizer = \"sgd\"").is_err());
    assert!(toml::from_str::<InnerKind>("optimizer = \"sgd\"\nlr = 1\nmu = 1").is_err());
}

#[test]
fn sgd_follows_its_equation() {
    for (momentum, decay) in [(0.0, 0.0), (0.0, 0.1), (0.9, 0.0), (0.9, 0.01)] {
        let kind = InnerKind::sgd(0.05).with("momentum", momentum);
        let expected = reference(|_, _, x, g, v, _| {
            for i in 0..x.len() {
                v[i] = momentum * v[i] + g[i] + decay * x[i];
                x[i] -= 0.05 * v[i];
            }
        });
        assert_close(kind.with("weight_decay", decay), &expected);
    }
}

#[test]
fn signum_follows_its_equation() {
    let kind = with_momentum("signum", 0.01, 0.1);
    let sign = |x: f64| if x == 0.0 { 0.0 } else { x.signum() };
    let expected = reference(|_, _, x, g, m, _| {
        for i in 0..x.len() {
            m[i] = 0.9 * m[i] + 0.1 * g[i];
            x[i] -= 0.01 * (sign(m[i]) + 0.1 * x[i]);
        }
    });
    assert_close(kind, &expected);
}

fn adam(t: usize, renewals: i32, g: f64, m: &mut f64, v: &mut f64, renew: bool) -> f64 {
    *m = BETAS[0] * *m + (1.0 - BETAS[0]) * g;
    if renew {
        *v = BETAS[1] * *v + (1.0 - BETAS[1]) * g * g;
    }
    let m_hat = *m / (1.0 - BETAS[0].powi(t as i32));
    m_hat / ((*v / (1.0 - BETAS[1].powi(renewals))).sqrt() + EPS)
}

#[test]
fn adam_w_follows_its_equation() {
    for decay in [0.0, 0.1] {
        let kind = adaptive("adam-w", 0.05, EPS, &[("weight_decay", decay)]);
        let expected = reference(|t, _, x, g, m, v| {
            for i in 0..x.len() {
                let step = adam(t, t as i32, g[i], &mut m[i], &mut v[i], true);
                x[i] -= 0.05 * (decay * x[i] + step);
            }
        });
        assert_close(kind, &expected);
    }
}

#[test]
fn the_first_step_of_adam_moves_by_the_learning_rate() {
    let kind = InnerKind::adam_w(0.1).with("weight_decay", 0.0);
    let (mut optimizer, mut x) = (kind.build(2), [1.0, 1.0]);
    optimizer.begin_step();
    optimizer.apply(0..2, &mut x, &[1e-3, -40.0]);
    let off = [x[0] - 0.9, x[1] - 1.1];
    assert!(off.iter().all(|off: &f32| off.abs() < 1e-5), "{x:?}");
}

#[test]
fn frozen_adams_follow_their_equations() {
    let kind = adaptive(
        "one-bit-adam",
        0.01,
        EPS,
        &[("freeze", 12.0), ("sends", 0.0)],
    );
    let expected = reference(|t, _, x, g, m, v| {
        for i in 0..x.len() {
            x[i] -= 0.01 * adam(t, t.min(12) as i32, g[i], &mut m[i], &mut v[i], t <= 12);
        }
    });
    assert_close(kind, &expected);
    let kind = adaptive(
        "zero-one-adam",
        0.01,
        EPS,
        &[("freeze", 2.0), ("sends", 0.0)],
    );
    let renewals = [1, 2, 3, 5, 7, 11, 15, 23];
    let expected = reference(|t, _, x, g, m, v| {
        let count = renewals.iter().filter(|at| **at <= t).count() as i32;
        for i in 0..x.len() {
            x[i] -= 0.01 * adam(t, count, g[i], &mut m[i], &mut v[i], renewals.contains(&t));
        }
    });
    assert_close(kind, &expected);
}

/// `m_i = beta_1 m + (1 - beta_1) g_i` is what peers send; the mean of these is the momentum of the mean
/// gradient.
#[test]
fn momenta_that_lose_nothing_give_what_gradients_give() {
    for (name, freeze) in [("one-bit-adam", 12.0), ("zero-one-adam", 2.0)] {
        let kind = |sends: Sends| {
            let more = [("freeze", freeze), ("sends", f64::from(sends as u8))];
            adaptive(name, 0.01, EPS, &more)
        };
        let len = 40;
        let (mut plain, mut momenta) = (
            kind(Sends::Gradients).build(len),
            kind(Sends::Momenta).build(len),
        );
        let (mut x, mut y) = (vec![0.5f32; len], vec![0.5f32; len]);
        for step in 0..30 {
            let gradients: [Vec<f32>; 2] = std::array::from_fn(|peer| {
                (0..len)
                    .map(|i| ((i * 7 + step * 3 + peer * 11) % 17) as f32 / 8.0 - 1.0)
                    .collect()
            });
            let mean = |of: &[Vec<f32>; 2]| -> Vec<f32> {
                of[0]
                    .iter()
                    .zip(&of[1])
                    .map(|(a, b)| 0.5 * (a + b))
                    .collect()
            };
            plain.begin_step();
            plain.apply(0..len, &mut x, &mean(&gradients));
            // Out of order, as fragments come.
            momenta.begin_step();
            for range in [20..len, 0..20] {
                let mut sent = gradients.clone().map(|g| g[range.clone()].to_vec());
                sent.iter_mut()
                    .for_each(|g| momenta.outgoing(range.clone(), g));
                momenta.apply(range.clone(), &mut y[range], &mean(&sent));
            }
        }
        for (x, y) in x.iter().zip(&y) {
            assert!((x - y).abs() < 1e-4, "{name}: {x} is not {y}");
        }
        assert!(x.iter().any(|x| (x - 0.5).abs() > 0.01), "they moved");
    }
}

#[test]
fn an_adam_that_never_freezes_is_adam() {
    let kind = adaptive(
        "one-bit-adam",
        0.01,
        EPS,
        &[("freeze", 1000.0), ("sends", 0.0)],
    );
    let adam = adaptive("adam-w", 0.01, EPS, &[("weight_decay", 0.0)]);
    assert_eq!(run(kind), run(adam));
}

fn length(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[test]
fn lamb_follows_its_equation() {
    let kind = adaptive("lamb", 0.01, EPS, &[("weight_decay", 0.1)]);
    let expected = reference(|t, _, x, g, m, v| {
        let u: Vec<f64> = (0..x.len())
            .map(|i| adam(t, t as i32, g[i], &mut m[i], &mut v[i], true) + 0.1 * x[i])
            .collect();
        let (a, b) = (length(x), length(&u));
        let trust = if a > 0.0 && b > 0.0 { a / b } else { 1.0 };
        x.iter_mut()
            .zip(&u)
            .for_each(|(x, u)| *x -= 0.01 * trust * u);
    });
    assert_close(kind, &expected);
}

/// Five Newton-Schulz iterations on a row-major matrix, in f64 and without a transpose.
fn newton_schulz(u: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    let norm = length(u);
    let mut x: Vec<f64> = u.iter().map(|u| u / norm).collect();
    let at = |i: usize, j: usize| i * columns + j;
    for _ in 0..5 {
        // X X^T X and (X X^T)^2 X.
        let cube = |x: &[f64], y: &[f64]| -> Vec<f64> {
            let mut gram = vec![0.0; rows * rows];
            for (i, j) in (0..rows).flat_map(|i| (0..rows).map(move |j| (i, j))) {
                gram[i * rows + j] = (0..columns).map(|k| x[at(i, k)] * x[at(j, k)]).sum();
            }
            let entry =
                |i: usize, j: usize| (0..rows).map(|k| gram[i * rows + k] * y[at(k, j)]).sum();
            (0..rows * columns)
                .map(|d| entry(d / columns, d % columns))
                .collect()
        };
        let third = cube(&x, &x);
        let fifth = cube(&x, &third);
        for ((x, t), f) in x.iter_mut().zip(&third).zip(&fifth) {
            *x = 3.4445 * *x - 4.7750 * t + 2.0315 * f;
        }
    }
    x
}

#[test]
fn muon_follows_its_equation() {
    let kind = with_momentum("muon", 0.01, 0.1);
    let shapes = [(1, 3), (4, 6), (1, 5), (7, 4)];
    let expected = reference(|t, at, x, g, m, v| {
        let (rows, columns) = shapes[at];
        if rows == 1 {
            for i in 0..x.len() {
                m[i] = 0.9 * m[i] + 0.1 * g[i];
                v[i] = 0.95 * v[i] + 0.05 * g[i] * g[i];
                let m_hat = m[i] / (1.0 - 0.9f64.powi(t as i32));
                let v_hat = v[i] / (1.0 - 0.95f64.powi(t as i32));
                x[i] -= 0.01 * (m_hat / (v_hat.sqrt() + 1e-8) + 0.1 * x[i]);
            }
            return;
        }
        for (m, g) in m.iter_mut().zip(g) {
            *m = 0.9 * *m + g;
        }
        let u: Vec<f64> = m.iter().zip(g).map(|(m, g)| g + 0.9 * m).collect();
        let scale = 0.2 * (rows.max(columns) as f64).sqrt();
        for (x, o) in x.iter_mut().zip(newton_schulz(&u, rows, columns)) {
            *x -= 0.01 * (scale * o + 0.1 * *x);
        }
    });
    let found = run(kind);
    for (i, (f, e)) in found.iter().zip(&expected).enumerate() {
        // Newton-Schulz enlarges small singular values a thousandfold, and their rounding with them.
        assert!(
            (f64::from(*f) - e).abs() < 3e-3 * (1.0 + e.abs()),
            "at {i}: {f} is not {e}"
        );
    }
}

#[test]
fn orthogonal_factors_have_singular_values_near_one() {
    for (rows, columns) in [(1, 5), (5, 1), (3, 8), (8, 3), (16, 16), (33, 64)] {
        let u: Vec<f32> = (0..rows * columns)
            .map(|i| ((i * i * 37 + i * 11) % 101) as f32 / 50.0 - 1.0)
            .collect();
        let o = orthogonal(&u, rows, columns);
        let small = rows.min(columns);
        // The sum of all squared singular values.
        let squares: f64 = o.iter().map(|o| f64::from(*o).powi(2)).sum();
        assert!(
            squares > 0.45 * small as f64 && squares < 1.5 * small as f64,
            "{rows} x {columns}: {squares}"
        );
        let (along, norm): (f64, f64) = u.iter().zip(&o).fold((0.0, 0.0), |(a, n), (u, o)| {
            (a + f64::from(u * o), n + f64::from(u * u))
        });
        assert!(along > 0.0 && norm > 0.0, "it keeps the direction");
    }
    assert_eq!(orthogonal(&[0.0; 6], 2, 3), [0.0; 6]);
}

#[test]
#[should_panic(expected = "whole tensors")]
fn a_piece_of_a_tensor_is_not_taken_for_a_tensor() {
    let kind = with_momentum("muon", 0.01, 0.0);
    let mut optimizer = kind.build_for(&layout());
    optimizer.begin_step();
    optimizer.apply(0..10, &mut [0.0; 10], &[1.0; 10]);
}

/// How far the worst parameter of a quadratic is from its optimum after 3000 inner steps.
fn off(inner: InnerKind) -> f32 {
    let task = ToyTask::Quadratic {
        dim: 12,
        heterogeneity: 0.0,
        noise: 0.0,
        inner,
    };
    let optimum = task.optimum(1, 3);
    let mut trainer = task.build(0, 1, 3);
    trainer.steps(&mut Count(3000)).expect("a finite loss");
    let mut worst = 0.0f32;
    trainer.visit(0..12, &mut |at, x| {
        for (i, x) in x.iter().enumerate() {
            worst = worst.max((x - optimum[at + i]).abs());
        }
    });
    worst
}

#[test]
fn every_optimizer_comes_near_the_optimum_of_a_quadratic() {
    let adam = |name, freeze| adaptive(name, 0.02, 1e-8, &[("freeze", freeze), ("sends", 0.0)]);
    // A constant rate leaves those of constant length within a few of it.
    for (near, kind) in [
        (0.05, with_momentum("signum", 0.005, 0.0)),
        (0.05, adam("one-bit-adam", 50.0)),
        (0.05, adam("zero-one-adam", 16.0)),
        (0.1, adaptive("lamb", 0.01, 1e-8, &[("weight_decay", 0.0)])),
        (0.1, with_momentum("muon", 0.02, 0.0)),
    ] {
        let worst = off(kind);
        assert!(worst < near, "{}: {worst} off", kind.name());
    }
}

#[test]
fn state_survives_saving_and_loading() {
    use murmurate_strategies::state::MemoryState;
    for kind in [
        InnerKind::sgd(0.1),
        InnerKind::sgd(0.1).with("momentum", 0.9),
        InnerKind::adam_w(0.01),
        with_momentum("signum", 0.1, 0.0),
        adaptive("one-bit-adam", 0.1, EPS, &[("freeze", 5.0), ("sends", 0.0)]),
        adaptive(
            "zero-one-adam",
            0.1,
            EPS,
            &[("freeze", 3.0), ("sends", 0.0)],
        ),
        adaptive("lamb", 0.1, EPS, &[("weight_decay", 0.1)]),
        with_momentum("muon", 0.1, 0.1),
    ] {
        let layout = layout();
        let (mut whole, mut x) = (kind.build_for(&layout), start());
        let step = |optimizer: &mut InnerOptimizer, x: &mut [f32], at: usize| {
            optimizer.begin_step();
            optimizer.apply(0..x.len(), x, &gradient(at, x.len()));
        };
        (0..7).for_each(|at| step(&mut whole, &mut x, at));
        let mut state = MemoryState::default();
        whole.save("inner", &mut state).unwrap();
        let (mut again, mut y) = (kind.build_for(&layout), x.clone());
        again.load("inner", &state).unwrap();
        assert_eq!(again.step_count(), 7);
        let fits = kind.build(x.len() + 1).load("inner", &state).is_ok();
        assert_eq!(fits, kind.state_multiple() == 0, "{}", kind.name());
        for at in 7..12 {
            step(&mut whole, &mut x, at);
            step(&mut again, &mut y, at);
        }
        assert_eq!(x, y, "{}", kind.name());
        assert_eq!(whole.state(), again.state(), "{}", kind.name());
    }
}
