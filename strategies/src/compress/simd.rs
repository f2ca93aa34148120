//! Vector instructions chosen at run time: AVX-512, AVX2, NEON, or those that every CPU of the
//! target has. The same Rust code is compiled for each, so all give the same bits: no fused
//! multiply-add, and sums in a fixed number of lanes.
//!
//! Reductions run in sixteen lanes, then across the lanes: one order of additions on every machine, which vector
//! instructions follow. These functions are inlined into kernels.

use core::cell::Cell;
use pulp::{Arch, Simd, WithSimd};

std::thread_local! {
    static SCALAR: Cell<bool> = const { Cell::new(false) };
}

/// Work that is compiled for every level of vector instructions. It is a trait and not a closure,
/// because a call through `FnOnce` may stay a call, to code for the plainest CPU.
pub(crate) trait Kernel {
    /// The result of the work.
    type Output;

    /// Does the work. Implementations are `#[inline(always)]`, and all that they call in their loops.
    fn run(self) -> Self::Output;
}

/// Runs a kernel with the widest instructions there are.
pub(crate) fn vectorized<K: Kernel>(kernel: K) -> K::Output {
    dispatched(Call(kernel))
}

/// As [`vectorized`], for work that names its vectors itself because the compiler finds none.
pub(super) fn dispatched<W: WithSimd>(work: W) -> W::Output {
    let arch = if SCALAR.get() {
        Arch::Scalar
    } else {
        Arch::new()
    };
    arch.dispatch(work)
}

/// Runs `f` with the kernels of this thread limited to the instructions that every CPU of the
/// target has. Tests compare the wider instructions with it.
pub fn without_vectors<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            SCALAR.set(self.0);
        }
    }
    let _restore = Restore(SCALAR.replace(true));
    f()
}

/// Declares functions whose bodies are [`Kernel`]s: compiled for every level of vector instructions, of which
/// a call takes the widest. What they call in their loops is `#[inline(always)]`.
macro_rules! kernel {
    (@output) => { () };
    (@output $output:ty) => { $output };
    ($(
        $(#[$docs:meta])*
        $visible:vis fn $name:ident<$life:lifetime $(, $generic:ident: $bound:path)?>(
            $($value:ident: $type:ty),* $(,)?
        ) $(-> $output:ty)? $body:block
    )*) => {$(
        $(#[$docs])*
        $visible fn $name<$life $(, $generic: $bound)?>($($value: $type),*) $(-> $output)? {
            struct Work<$life $(, $generic: $bound)?> {
                $($value: $type,)*
            }
            impl<$life $(, $generic: $bound)?> $crate::compress::simd::Kernel
                for Work<$life $(, $generic)?>
            {
                type Output = $crate::compress::simd::kernel!(@output $($output)?);

                #[inline(always)]
                fn run(self) -> Self::Output {
                    let Self { $($value),* } = self;
                    $body
                }
            }
            $crate::compress::simd::vectorized(Work { $($value),* })
        }
    )*};
}
pub(crate) use kernel;

struct Call<K>(K);

impl<K: Kernel> WithSimd for Call<K> {
    type Output = K::Output;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> K::Output {
        self.0.run()
    }
}

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
