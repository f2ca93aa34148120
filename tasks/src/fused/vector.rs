//! Loops compiled for each level of vector instructions, and an exponential that such a loop can contain.

/// Declares functions whose bodies are compiled for every level of vector instructions, of which a call
/// takes the widest. What they call in their loops is `#[inline(always)]`.
macro_rules! kernel {
    ($(
        $(#[$docs:meta])*
        fn $name:ident<$life:lifetime>($($value:ident: $type:ty),* $(,)?) $body:block
    )*) => {$(
        $(#[$docs])*
        fn $name<$life>($($value: $type),*) {
            struct Work<$life> { $($value: $type),* }
            impl<$life> pulp::WithSimd for Work<$life> {
                type Output = ();

                #[inline(always)]
                fn with_simd<S: pulp::Simd>(self, _: S) {
                    let Self { $($value),* } = self;
                    $body
                }
            }
            pulp::Arch::new().dispatch(Work { $($value),* })
        }
    )*};
}
pub(super) use kernel;

/// e^x within 2 ulp for -87 < x < 88, and the value at the nearer end outside. NaN stays NaN.
///
/// `e^x = 2^n e^r` with `n = round(x / ln 2)` and a polynomial for `e^r`. ln 2 has two parts, so that r is
/// exact; adding 1.5 * 2^23 rounds to an integer, which then lies in the low bits.
///
/// **Source:** Moshier, Cephes mathematical library, 1992, `expf.c`.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    let x = if x < -87.0 { -87.0 } else { x };
    let x = if x > 88.0 { 88.0 } else { x };
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = (x - n * 0.693_359_4) + n * 2.121_944_4e-4;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_199_9e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let scale = f32::from_bits((rounded.to_bits() << 23).wrapping_add(0x3f80_0000));
    ((p * r) * r + r + 1.0) * scale
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// Joins values with an operation, sixteen at a time in a fixed order.
#[inline(always)]
pub(super) fn join(start: f32, values: &[f32], f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [start; 16];
    let mut chunks = values.chunks_exact(16);
    for chunk in chunks.by_ref() {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = f(*lane, *x);
        }
    }
    let all = lanes.iter().chain(chunks.remainder());
    all.fold(start, |a, b| f(a, *b))
}

/// The inner product of a and `b - less`, sixteen at a time in a fixed order.
#[inline(always)]
pub(super) fn dot(a: &[f32], b: &[f32], less: f32) -> f32 {
    let mut lanes = [0.0; 16];
    let (mut left, mut right) = (a.chunks_exact(16), b.chunks_exact(16));
    for (a, b) in left.by_ref().zip(right.by_ref()) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += a * (b - less);
        }
    }
    let rest = left.remainder().iter().zip(right.remainder());
    lanes.iter().sum::<f32>() + rest.map(|(a, b)| a * (b - less)).sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_within_two_ulp() {
        let mut worst = 0.0_f64;
        for step in -870_000..880_000 {
            let x = step as f32 / 10_000.0;
            let exact = f64::from(x).exp();
            let ulp = f64::from((exact as f32).next_up()) - f64::from(exact as f32);
            worst = worst.max((f64::from(exp(x)) - exact).abs() / ulp);
        }
        assert!(worst < 2.0, "{worst}");
        assert!(exp(f32::NAN).is_nan());
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(f32::NEG_INFINITY) < 2e-38);
    }
}
