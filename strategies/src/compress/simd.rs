//! Vector instructions chosen at run time: AVX-512, AVX2, NEON, or those that every CPU of the
//! target has. The same Rust code is compiled for each, so all give the same bits: no fused
//! multiply-add, and sums in a fixed number of lanes.

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
