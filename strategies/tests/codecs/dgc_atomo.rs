//! `dgc` and `atomo` against references in f64 from their papers: the one keeps a velocity between
//! rounds, the other draws whole singular vectors.

use crate::numbers::largest;
use crate::slice::Slice;
use murmurate_strategies::compress::{CodecKind, EncodeContext, Matrix};

/// Values in [-1, 1), of all sizes.
fn draw(at: usize, round: usize) -> f64 {
    let number = (1000 * round + at) as u64;
    let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 13;
    let mixed = hash.wrapping_mul(0x94d0_49bb_1331_11eb) >> 40;
    let uniform = mixed as f64 / f64::from(1 << 23) - 1.0;
    // As the f32 that the codec is given.
    f64::from((uniform * uniform * uniform) as f32)
}

/// u = m u + min(1, clip / ||d||) d, v = v + u, sent: the ceil(density len) largest of v, where both
/// become zero; the share that is sent falls by quarters of the warm-up from 1/4 to the density.
#[test]
fn dgc_sends_the_largest_of_summed_velocities_and_forgets_them() {
    let len = 701;
    for (clip, warm_up) in [(0.0, 0u32), (3.0, 0), (0.0, 2)] {
        let (density, momentum) = (0.02, 0.9);
        let given = [
            ("density", density),
            ("momentum", momentum),
            ("clip", clip),
            ("warm_up", f64::from(warm_up)),
        ];
        let kind = CodecKind::new("dgc", &given).unwrap();
        let mut codec = kind.build();
        let mut slice = Slice::new(&*codec, len);
        let mut residual = vec![0.0f32; len];
        let (mut u, mut v) = (vec![0.0f64; len], vec![0.0f64; len]);
        for round in 0..8 {
            let delta: Vec<f64> = (0..len).map(|at| draw(at, round)).collect();
            let norm = delta.iter().map(|d| d * d).sum::<f64>().sqrt();
            let share = if clip > 0.0 {
                (clip / norm).min(1.0)
            } else {
                1.0
            };
            for ((u, v), d) in u.iter_mut().zip(&mut v).zip(&delta) {
                *u = f64::from(momentum as f32) * *u + share * d;
                *v += *u;
            }
            let share = match warm_up {
                0 => density,
                _ => density.max(0.25f64.powi(1 + round as i32 / warm_up as i32)),
            };
            let kept = (share * len as f64).ceil() as usize;
            let mut sent = vec![0.0f64; len];
            for at in largest(&v, kept) {
                sent[at] = v[at];
                (u[at], v[at]) = (0.0, 0.0);
            }

            slice.round = round as u64;
            let (mut bytes, mut decoded) = (Vec::new(), vec![0.0f32; len]);
            let delta: Vec<f32> = delta.iter().map(|d| *d as f32).collect();
            let mut context = slice.context(round as u64);
            codec.encode_residual(&delta, &mut residual, &mut context, &mut bytes);
            codec.decode_add(&bytes, 1.0, &mut decoded).unwrap();
            for at in 0..len {
                let (found, left) = (f64::from(decoded[at]), f64::from(residual[at]));
                // f32 rounding of a few sums of values below ten.
                let near = (found - sent[at]).abs() < 1e-5 && (left - v[at]).abs() < 1e-5;
                assert!(near, "{given:?}, round {round}, {at}: {found} {}", sent[at]);
            }
        }
    }
}

/// Of a diagonal matrix the atoms are its entries: each comes as sigma / p with probability p, or not
/// at all, with p = min(1, lambda sigma) and `rank` of them expected.
#[test]
fn atomo_draws_singular_vectors_by_their_length() {
    const SIDE: usize = 64;
    const SEEDS: u64 = 400;
    let sigma: Vec<f64> = (0..SIDE)
        .map(|i| match i {
            0 => 50.0,
            _ => f64::from((1.0 / (1.0 + i as f64)) as f32),
        })
        .collect();
    let rank = 6.0;
    let sum = |lambda: f64| sigma.iter().map(|s| (lambda * s).min(1.0)).sum::<f64>();
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if sum(middle) < rank {
            low = middle
        } else {
            high = middle
        }
    }
    let p: Vec<f64> = sigma.iter().map(|s| (low * s).min(1.0)).collect();
    assert!(p[0] == 1.0 && p[SIDE - 1] < 0.1);

    let mut values = vec![0.0f32; SIDE * SIDE];
    for (i, s) in sigma.iter().enumerate() {
        values[i * SIDE + i] = *s as f32;
    }
    let matrix = [Matrix {
        offset: 0,
        rows: SIDE,
        columns: SIDE,
    }];
    let mut codec = CodecKind::new("atomo", &[("rank", rank)]).unwrap().build();
    let mut times = [0u64; SIDE];
    for seed in 0..SEEDS {
        let (mut memory, mut bytes) = (Vec::new(), Vec::new());
        let mut context = EncodeContext {
            matrices: &matrix,
            ..EncodeContext::seeded(seed, &mut memory)
        };
        codec.encode(&values, &mut context, &mut bytes);
        let mut decoded = vec![0.0f32; values.len()];
        codec.decode_add(&bytes, 1.0, &mut decoded).unwrap();
        let mut drawn = 0;
        for (at, value) in decoded.iter().enumerate() {
            let (i, j, value) = (at / SIDE, at % SIDE, f64::from(*value));
            if i != j || value == 0.0 {
                assert!(value.abs() < 1e-5, "seed {seed}: {value} at {i}, {j}");
                continue;
            }
            let whole = sigma[i] / p[i];
            assert!(
                (value / whole - 1.0).abs() < 1e-4,
                "{i}: {value} is not {whole}"
            );
            (times[i], drawn) = (times[i] + 1, drawn + 1);
        }
        assert!(drawn <= rank as usize, "{drawn} atoms");
    }
    for (i, (times, p)) in times.iter().zip(&p).enumerate() {
        let (mean, error) = (
            *times as f64 / SEEDS as f64,
            (p * (1.0 - p) / SEEDS as f64).sqrt(),
        );
        assert!((mean - p).abs() <= 4.5 * error + 1e-9, "{i}: {mean} of {p}");
    }
}
