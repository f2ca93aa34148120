//! Initial parameters. Each tensor has its own ChaCha8 stream. burn's generator is not used,
//! because a process shares it. All peers of a run start from the same bits.

use crate::rng;
use murmurate_strategies::TensorSpec;
use rand_chacha::ChaCha8Rng;

/// The generator of one tensor's initial values, from the run's seed and the tensor's position.
pub(crate) fn generator(seed: u64, place: usize) -> ChaCha8Rng {
    rng::stream(seed, rng::PARAMETERS, place as u64)
}

/// Uniform in `(-b, b)` with `b = gain sqrt(3 / fan_in)`, so that the standard deviation is
/// `gain / sqrt(fan_in)`. `fan_in` is the first dimension of a matrix `[in, out]` and the product
/// of all but the first of a kernel `[out, in, height, width]`.
///
/// **Source:** He et al., Delving deep into rectifiers, 2015, eq. 10, where gain = sqrt 2.
pub fn fan_in(spec: &TensorSpec, gain: f32, values: &mut [f32], rng: &mut ChaCha8Rng) {
    let fan_in = match spec.shape.as_slice() {
        [input, _] => *input,
        shape => shape.iter().skip(1).product(),
    };
    let bound = gain * (3.0 / fan_in.max(1) as f32).sqrt();
    values.fill_with(|| (2.0 * rng::unit(rng) - 1.0) * bound);
}

/// Ones, for the scale of a norm.
pub fn ones(values: &mut [f32]) {
    values.fill(1.0);
}

/// Zeros, for a bias.
pub fn zeros(values: &mut [f32]) {
    values.fill(0.0);
}
