//! Reductions in sixteen lanes, then across the lanes: one order of additions on every machine,
//! which vector instructions follow. All functions are inlined into kernels.

const LANES: usize = 16;

/// `combine(..combine(combine(first, f(x_0)), f(x_1)).., f(x_n))` in lanes.
#[inline(always)]
pub(super) fn fold<T: Copy>(
    values: &[f32],
    first: T,
    step: impl Fn(T, f32) -> T,
    join: impl Fn(T, T) -> T,
) -> T {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [first; LANES];
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = step(*lane, *value);
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        *lane = step(*lane, *value);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for at in 0..width {
            lanes[at] = join(lanes[at], lanes[at + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// `sum f(x)` and `sum g(x)`, each in the lanes of [`fold`]. With one array for each sum, and one
/// loop for each array, the compiler makes vectors of them, which it does not of pairs.
#[inline(always)]
pub(super) fn two_sums(
    values: &[f32],
    f: impl Fn(f32) -> f64,
    g: impl Fn(f32) -> f64,
) -> (f64, f64) {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let (mut ones, mut others) = ([0.0f64; LANES], [0.0f64; LANES]);
    for chunk in chunks {
        for (sum, value) in ones.iter_mut().zip(chunk) {
            *sum += f(*value);
        }
        for (sum, value) in others.iter_mut().zip(chunk) {
            *sum += g(*value);
        }
    }
    for ((one, other), value) in ones.iter_mut().zip(&mut others).zip(rest) {
        (*one, *other) = (*one + f(*value), *other + g(*value));
    }
    let mut width = LANES / 2;
    while width > 0 {
        for at in 0..width {
            ones[at] += ones[at + width];
            others[at] += others[at + width];
        }
        width /= 2;
    }
    (ones[0], others[0])
}

#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}

#[inline(always)]
fn smaller(a: f32, b: f32) -> f32 {
    if b < a { b } else { a }
}

/// The largest magnitude; zero without values.
#[inline(always)]
pub(super) fn largest(values: &[f32]) -> f32 {
    fold(values, 0.0, |most, v| larger(most, v.abs()), larger)
}

/// The least and the largest value; infinity and minus infinity without values.
#[inline(always)]
pub(super) fn bounds(values: &[f32]) -> (f32, f32) {
    (
        fold(values, f32::INFINITY, smaller, smaller),
        fold(values, f32::NEG_INFINITY, larger, larger),
    )
}

/// `sum |x|`, in f64.
#[inline(always)]
pub(super) fn sum_of_magnitudes(values: &[f32]) -> f64 {
    fold(values, 0.0, |sum, v| sum + f64::from(v.abs()), |a, b| a + b)
}

/// `sum x^2`, in f64: of f32 it does not overflow.
#[inline(always)]
pub(super) fn sum_of_squares(values: &[f32]) -> f64 {
    let square = |v: f32| f64::from(v) * f64::from(v);
    fold(values, 0.0, |sum, v| sum + square(v), |a, b| a + b)
}

/// A sum or a mean in f64 as the nearest finite f32.
#[inline(always)]
pub(super) fn to_finite(value: f64) -> f32 {
    let limit = f64::from(f32::MAX);
    value.clamp(-limit, limit) as f32
}
