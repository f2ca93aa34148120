//! Numbers that the references of several test programs share: objectives, distances, choices by magnitude.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "helpers of tests; every test program uses its own part of them"
)]

pub mod spectrum;

use murmurate_strategies::toy::Quadratic;

/// The same values in f64.
pub fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|value| f64::from(*value)).collect()
}

/// Checks that no value is as far as `most` from the expected one.
pub fn near(found: &[f32], expected: &[f64], most: f64, what: &str) {
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let off = (f64::from(*found) - expected).abs();
        assert!(off < most, "{what} at {at}: {found} is not {expected}");
    }
}

/// The distance from `goal`, in shares of its length.
pub fn relative(x: &[f32], goal: &[f32]) -> f64 {
    let far = x.iter().zip(goal).map(|(x, o)| f64::from(x - o).powi(2));
    let all = goal.iter().map(|o| f64::from(*o).powi(2));
    (far.sum::<f64>() / all.sum::<f64>()).sqrt()
}

/// The places of the largest magnitudes, of equal ones the first.
pub fn largest(values: &[f64], kept: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    let size = |at: &usize| values[*at].abs();
    order.sort_by(|a, b| size(b).total_cmp(&size(a)).then(a.cmp(b)));
    order.truncate(kept);
    order
}

/// These values at these places, zero elsewhere.
pub fn only(values: &[f64], places: &[usize]) -> Vec<f64> {
    let mut out = vec![0.0; values.len()];
    places.iter().for_each(|at| out[*at] = values[*at]);
    out
}

/// The objectives of all peers, without noise.
pub fn quadratics(dim: usize, apart: f64, peers: usize, seed: u64) -> Vec<Quadratic> {
    (0..peers)
        .map(|index| Quadratic::new(dim, apart, 0.0, [index, peers], seed))
        .collect()
}

/// The gradient of a peer's own objective at `x`.
pub fn gradient(of: &Quadratic, x: &[f64]) -> Vec<f64> {
    let (curvature, center) = of.own();
    let pairs = curvature.iter().zip(center).zip(x);
    pairs
        .map(|((k, c), x)| f64::from(*k) * (x - f64::from(*c)))
        .collect()
}

/// The same in f32.
pub fn gradient_f32(of: &Quadratic, x: &[f32]) -> Vec<f32> {
    let (curvature, center) = of.own();
    let pairs = curvature.iter().zip(center).zip(x);
    pairs.map(|((k, c), x)| k * (x - c)).collect()
}
