//! Toy task `logistic`: two classes that a plane nearly separates; peers see different parts of the space.

use super::trainer::{Objective, STREAM_HELD, STREAM_TASK, draws_of, normal, uniform};
use crate::Layout;
use murmurate_protocol::Evaluation;
use rand_chacha::ChaCha8Rng;
use std::f64::consts::TAU;

/// Length of the true weights: samples of all peers together are about 93 % separable.
const SHARPNESS: f64 = 8.0;

/// Samples that an evaluation draws; the same ones on every peer and at every call.
const HELD: u64 = 256;

/// Logistic regression on an endless stream of samples.
///
/// ```text
/// z = N(0, 1)^dim + heterogeneity cos(2 pi i / n + phi) u,   P(y = 1 | z) = sigma(8 u z)
/// loss(w, b) = -log sigma(s (w z + b)),   s = 2 y - 1
/// ```
///
/// with u a unit vector of the seed. The shift is along u: with a heterogeneity of 2 a peer at one
/// end sees one class nearly always. Labels follow the same law everywhere, so the optimum of each
/// peer and of all together is known: `w = 8 u, b = 0`. Held samples have no shift. Parameters:
/// `weight: [dim]`, `bias: [1]`.
#[derive(Clone, Debug)]
pub struct Logistic {
    direction: Vec<f32>,
    shift: f32,
    batch: u64,
    seed: u64,
}

impl Logistic {
    /// The share of peer `index` out of `peers` in the task of this seed.
    pub fn new(
        dim: usize,
        heterogeneity: f64,
        batch: u64,
        [index, peers]: [usize; 2],
        seed: u64,
    ) -> Self {
        let mut rng = draws_of(seed, STREAM_TASK);
        let phi = TAU * uniform(&mut rng);
        let mut direction: Vec<f32> = (0..dim).map(|_| normal(&mut rng)).collect();
        let length = direction
            .iter()
            .map(|d| d * d)
            .sum::<f32>()
            .sqrt()
            .max(f32::MIN_POSITIVE);
        direction.iter_mut().for_each(|d| *d /= length);
        let angle = TAU * index as f64 / peers.max(1) as f64;
        let heterogeneity = if peers < 2 { 0.0 } else { heterogeneity };
        let shift = (heterogeneity * (angle + phi).cos()) as f32;
        Self {
            direction,
            shift,
            batch,
            seed,
        }
    }

    /// Where the loss is smallest: weights, then the bias.
    pub fn optimum(&self) -> Vec<f32> {
        let weights = self.direction.iter().map(|d| SHARPNESS as f32 * d);
        weights.chain([0.0]).collect()
    }

    /// Draws one sample: features into `z`; returns the label as a sign.
    fn draw(&self, rng: &mut ChaCha8Rng, shift: f32, z: &mut [f32]) -> f64 {
        let mut along = 0.0;
        for (z, u) in z.iter_mut().zip(&self.direction) {
            *z = normal(rng) + shift * u;
            along += f64::from(*z * u);
        }
        if uniform(rng) < sigmoid(SHARPNESS * along) {
            1.0
        } else {
            -1.0
        }
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `w z + b`.
fn score(x: &[f32], z: &[f32]) -> f64 {
    let bias = x.last().copied().unwrap_or(0.0);
    f64::from(x.iter().zip(z).map(|(w, z)| w * z).sum::<f32>() + bias)
}

/// `-log sigma(margin)`, without overflow.
fn loss_of(margin: f64) -> f64 {
    (-margin.abs()).exp().ln_1p() + (-margin).max(0.0)
}

impl Objective for Logistic {
    fn layout(&self) -> Layout {
        Layout::new([
            ("weight", vec![self.direction.len() as u64]),
            ("bias", vec![1]),
        ])
    }

    fn batch(&self) -> u64 {
        self.batch
    }

    fn sample(&self, rng: &mut ChaCha8Rng, x: &[f32], gradient: &mut [f32]) -> f64 {
        let mut z = vec![1.0; self.direction.len() + 1];
        let dim = self.direction.len();
        let (mut loss, each) = (0.0, 1.0 / self.batch as f64);
        gradient.fill(0.0);
        for _ in 0..self.batch {
            let sign = self.draw(rng, self.shift, &mut z[..dim]);
            let margin = sign * score(x, &z[..dim]);
            loss += each * loss_of(margin);
            let slope = (-sign * sigmoid(-margin) * each) as f32;
            // The last feature is one: the bias's.
            for (g, z) in gradient.iter_mut().zip(&z) {
                *g += slope * z;
            }
        }
        loss
    }

    fn evaluate(&self, x: &[f32]) -> Evaluation {
        let mut rng = draws_of(self.seed, STREAM_HELD);
        let mut z = vec![0.0; self.direction.len()];
        let (mut loss, mut right) = (0.0, 0u32);
        for _ in 0..HELD {
            let sign = self.draw(&mut rng, 0.0, &mut z);
            let margin = sign * score(x, &z);
            loss += loss_of(margin);
            right += u32::from(margin > 0.0);
        }
        let held = HELD as f64;
        Evaluation {
            loss: loss / held,
            accuracy: Some(f64::from(right) / held),
            top_5: None,
            samples: HELD,
        }
    }
}
