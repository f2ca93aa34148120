//! Differences to replicas that are the parameters themselves: DCD-PSGD and ECD-PSGD. Arithmetic alone:
//! a slice that one neighbour lacks forks the replicas for good, so no exchange over lossy links carries
//! them; CHOCO's replicas (`exchange = "replicas"`) are those that do.

use super::{Codec, CodecError, EncodeContext};

/// Difference compression: the parameters move by what their neighbours can follow, and by no more.
///
/// ```text
/// y   = sum_j w_ij x_j - lr g          with the replicas of x_j that everybody holds
/// q   = C(y - x),   x' = x + q         at its owner and at every neighbour alike
/// ```
///
/// Shapes: `[len]`, f32. Sent relative to the last parameters: q, as many bytes as C takes, once a round
/// to each neighbour. State: one replica of each neighbour, 1 times the parameters each. Replicas never
/// differ from what they stand for. Source: Tang et al., "Communication compression for decentralized
/// training" (NeurIPS 2018), algorithm 1. Special cases: a lossless C is D-PSGD; C must be unbiased, and
/// its error no larger than the spectral gap allows (theorem 1): the paper's `alpha` in `E||C(z) -
/// z||^2 <= alpha^2 ||z||^2` with `(1 - rho)^2 - 4 mu^2 alpha^2 > 0`.
#[derive(Clone, Debug)]
pub struct Dcd {
    kept: Vec<f32>,
}

impl Dcd {
    /// The parameters of a peer, at itself or at a neighbour.
    pub fn new(parameters: &[f32]) -> Self {
        let kept = parameters.to_vec();
        Self { kept }
    }

    /// The parameters, which are also the replica.
    pub fn parameters(&self) -> &[f32] {
        &self.kept
    }

    /// The owner's part: appends the encoding of `y - x`, and moves there. `y` becomes the difference.
    ///
    /// # Errors
    /// When the codec does not read what it wrote.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn encode(
        &mut self,
        codec: &mut dyn Codec,
        y: &mut [f32],
        context: &mut EncodeContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        assert_eq!(y.len(), self.kept.len());
        y.iter_mut().zip(&self.kept).for_each(|(y, x)| *y -= x);
        let start = out.len();
        codec.encode(y, context, out);
        self.receive(codec, &out[start..])
    }

    /// A neighbour's part: follows. Nothing has changed when it fails.
    ///
    /// # Errors
    /// When the bytes are not what the codec wrote.
    pub fn receive(&mut self, codec: &dyn Codec, bytes: &[u8]) -> Result<(), CodecError> {
        codec.decode_add(bytes, 1.0, &mut self.kept)
    }
}

/// Extrapolation compression: estimates of parameters whose error falls with the rounds.
///
/// ```text
/// z_t   = (1 - t / 2) x_t + (t / 2) x_{t+1}              the owner sends C(z_t), t = 1, 2, ...
/// h_t+1 = (1 - 2 / t) h_t + (2 / t) C(z_t)               every neighbour's estimate of x_{t+1}
/// ```
///
/// so that `E h = x` and `E||h - x||^2 <= sigma^2 / t` where `E||C(z) - z||^2 <= sigma^2 / 2`: the
/// extrapolation grows with t and is divided by it. Shapes: `[len]`, f32. As many bytes as C takes, once
/// a round to each neighbour. State: one estimate of each neighbour. Source: Tang et al., "Communication
/// compression for decentralized training" (NeurIPS 2018), algorithm 2. Special cases: a lossless C
/// gives the parameters themselves; `t = 0` counts as 1; C must be unbiased, and its error bounded
/// whatever z is, which grows with t x (x' - x) unless the parameters come to rest.
#[derive(Clone, Debug)]
pub struct Ecd {
    kept: Vec<f32>,
}

impl Ecd {
    /// The estimate of parameters that everybody knows.
    pub fn new(parameters: &[f32]) -> Self {
        let kept = parameters.to_vec();
        Self { kept }
    }

    /// The estimate.
    pub fn estimate(&self) -> &[f32] {
        &self.kept
    }

    /// What the owner encodes in round t, from one, having moved from `x` to `next`.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn extrapolate(x: &[f32], next: &[f32], t: u64) -> Vec<f32> {
        assert_eq!(x.len(), next.len());
        let half = 0.5 * t.max(1) as f32;
        let pairs = x.iter().zip(next);
        pairs.map(|(x, n)| (1.0 - half) * x + half * n).collect()
    }

    /// Takes a round's encoding in. Nothing has changed when it fails.
    ///
    /// # Errors
    /// When the bytes are not what the codec wrote.
    pub fn receive(&mut self, codec: &dyn Codec, bytes: &[u8], t: u64) -> Result<(), CodecError> {
        let share = 2.0 / t.max(1) as f32;
        let mut sent = vec![0.0; self.kept.len()];
        codec.decode_add(bytes, share, &mut sent)?;
        for (kept, sent) in self.kept.iter_mut().zip(sent) {
            *kept = (1.0 - share) * *kept + sent;
        }
        Ok(())
    }
}
