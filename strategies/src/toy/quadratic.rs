//! Toy task `quadratic`: every peer has its own optimum; the common optimum is known.

use super::trainer::{Objective, STREAM_TASK, draws_of, normal, uniform};
use crate::Layout;
use murmurate_protocol::Evaluation;
use rand_chacha::ChaCha8Rng;
use std::f64::consts::{SQRT_2, TAU};

/// A diagonal quadratic, one for each peer.
///
/// ```text
/// f_i(x) = 1/2 sum_d D_id (x_d - c_id)^2          gradient: D_id (x_d - c_id) + noise * N(0, 1)
/// D_id   = k_d (1 + a cos(t_id + psi_d)),   k_d in [0.25, 1],   a = min(heterogeneity, 1) / 2
/// c_id   = p_d + heterogeneity sqrt(2) cos(t_id + phi_d),   t_id = 2 pi w_d i / n
/// ```
///
/// Over i = 0..n the waves (w_d in 1..n, a whole number) sum to zero. So the mean of all D is k,
/// and f = mean f_i has an optimum in closed form, which a peer can compute without the others:
///
/// ```text
/// x*_d = p_d + heterogeneity sqrt(2) a (cos(phi_d - psi_d) + [n divides 2 w_d] cos(phi_d + psi_d)) / 2
/// f(x) - f(x*) = 1/2 sum_d k_d (x_d - x*_d)^2
/// ```
///
/// Curvatures differ between peers as well as optima, so local training with many inner steps
/// drifts. Special cases: heterogeneity 0 or n = 1: all peers have the same f_i, with optimum p.
#[derive(Clone, Debug)]
pub struct Quadratic {
    curvature: Vec<f32>,
    center: Vec<f32>,
    mean_curvature: Vec<f32>,
    optimum: Vec<f32>,
    noise: f32,
}

impl Quadratic {
    /// The share of peer `index` out of `peers` in the task of this seed.
    pub fn new(
        dim: usize,
        heterogeneity: f64,
        noise: f64,
        [index, peers]: [usize; 2],
        seed: u64,
    ) -> Self {
        let mut rng = draws_of(seed, STREAM_TASK);
        let mut all = Self {
            curvature: Vec::with_capacity(dim),
            center: Vec::with_capacity(dim),
            mean_curvature: Vec::with_capacity(dim),
            optimum: Vec::with_capacity(dim),
            noise: noise as f32,
        };
        let heterogeneity = if peers < 2 { 0.0 } else { heterogeneity };
        let swing = heterogeneity.min(1.0) / 2.0;
        let spread = heterogeneity * SQRT_2;
        for _ in 0..dim {
            let mean_curvature = 0.25 + 0.75 * uniform(&mut rng);
            let point = f64::from(normal(&mut rng));
            let waves = 1 + (uniform(&mut rng) * peers.saturating_sub(1) as f64) as usize;
            let (phi, psi) = (TAU * uniform(&mut rng), TAU * uniform(&mut rng));
            let angle = TAU * ((waves * index) % peers.max(1)) as f64 / peers.max(1) as f64;
            let folded = if (2 * waves).is_multiple_of(peers) {
                (phi + psi).cos()
            } else {
                0.0
            };
            let drift = swing * ((phi - psi).cos() + folded) / 2.0;
            all.curvature
                .push((mean_curvature * (1.0 + swing * (angle + psi).cos())) as f32);
            all.center
                .push((point + spread * (angle + phi).cos()) as f32);
            all.mean_curvature.push(mean_curvature as f32);
            all.optimum.push((point + spread * drift) as f32);
        }
        all
    }

    /// Where the mean of all peers' functions is smallest.
    pub fn optimum(&self) -> &[f32] {
        &self.optimum
    }

    /// This peer's own curvatures and optimum.
    pub fn own(&self) -> (&[f32], &[f32]) {
        (&self.curvature, &self.center)
    }

    /// The mean of all peers' functions at `x`, above its smallest value.
    pub fn global_loss(&self, x: &[f32]) -> f64 {
        let terms = self.mean_curvature.iter().zip(x.iter().zip(&self.optimum));
        terms
            .map(|(k, (x, o))| f64::from(*k) * f64::from(x - o).powi(2))
            .sum::<f64>()
            / 2.0
    }
}

impl Objective for Quadratic {
    fn layout(&self) -> Layout {
        Layout::new([("x", vec![self.center.len() as u64])])
    }

    fn batch(&self) -> u64 {
        1
    }

    fn sample(&self, rng: &mut ChaCha8Rng, x: &[f32], gradient: &mut [f32]) -> f64 {
        let mut loss = 0.0;
        for ((g, x), (k, c)) in gradient
            .iter_mut()
            .zip(x)
            .zip(self.curvature.iter().zip(&self.center))
        {
            let slope = k * (x - c);
            loss += f64::from(slope * (x - c));
            *g = slope;
        }
        if self.noise != 0.0 {
            gradient
                .iter_mut()
                .for_each(|g| *g += self.noise * normal(rng));
        }
        loss / 2.0
    }

    fn evaluate(&self, x: &[f32]) -> Evaluation {
        Evaluation {
            loss: self.global_loss(x),
            accuracy: None,
            top_5: None,
            samples: 1,
        }
    }
}
