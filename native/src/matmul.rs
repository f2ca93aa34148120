//! Products of matrices of f32 in slices, with a result that is written once. burn has a product too; it fills the
//! result with zeros and copies it before it is computed, which takes a seventh of an inner step of a language model.

use rayon::prelude::*;
use std::mem::MaybeUninit;

/// Multiplications of one product from which on threads share it. Waking them takes as long as fewer.
const SHARED: usize = 192 * 192 * 192;

/// Multiplications of all products of a batch from which on threads share the batch.
const SHARED_BATCH: usize = 128 * 128 * 128;

/// Matrices of one shape in a slice. Element (i, j) is `start + i * strides[0] + j * strides[1]`, behind the start of
/// its matrix.
#[derive(Clone, Copy, Debug)]
pub struct Matrices<'a> {
    values: &'a [f32],
    shape: [usize; 2],
    strides: [usize; 2],
}

impl<'a> Matrices<'a> {
    /// # Panics
    /// Never here: [`products`] checks each matrix.
    pub const fn new(values: &'a [f32], shape: [usize; 2], strides: [usize; 2]) -> Self {
        Self {
            values,
            shape,
            strides,
        }
    }

    /// The values from a matrix's start on, if all of it lies in the slice.
    fn at(&self, start: usize) -> Option<&'a [f32]> {
        let [down, along] = [0, 1].map(|axis| {
            let last = self.shape[axis].checked_sub(1)?;
            last.checked_mul(self.strides[axis])
        });
        let last = down?.checked_add(along?)?;
        self.values.get(start..).filter(|rest| last < rest.len())
    }
}

/// The products `a b` of pairs of matrices, which begin at `starts`: row-major, one behind the other. Threads of the
/// caller's pool of rayon share large ones; the bits do not depend on how many there are.
///
/// a: `[rows, inner]`; b: `[inner, columns]`; result: `[starts.len(), rows, columns]`.
///
/// # Panics
/// If the shapes do not fit, or a matrix does not lie in its slice.
pub fn products(a: &Matrices<'_>, b: &Matrices<'_>, starts: &[[usize; 2]]) -> Vec<f32> {
    let ([m, k], [inner, n]) = (a.shape, b.shape);
    assert_eq!(k, inner, "the shapes of a product do not fit");
    let size = m.checked_mul(n).expect("a product that fits into memory");
    let all = size.checked_mul(starts.len());
    let all = all.expect("products that fit into memory");
    if size == 0 || k == 0 {
        return vec![0.0; all];
    }
    let mut results = Vec::with_capacity(all);
    let each = |result: &mut [MaybeUninit<f32>], [from, to]: [usize; 2], shared: bool| {
        let (of_a, of_b) = (a.at(from), b.at(to));
        let of_a = of_a.expect("the first matrix lies in its slice");
        let of_b = of_b.expect("the second matrix lies in its slice");
        multiply(
            result,
            (of_a, a.strides),
            (of_b, b.strides),
            [m, k, n],
            shared,
        );
    };
    let (room, work) = (
        &mut results.spare_capacity_mut()[..all],
        size.saturating_mul(k),
    );
    let shared = work >= SHARED && starts.len() < 4;
    if !shared && starts.len() > 1 && work.saturating_mul(starts.len()) >= SHARED_BATCH {
        let pairs = room.par_chunks_mut(size).zip(starts);
        pairs.for_each(|(result, starts)| each(result, *starts, false));
    } else {
        let pairs = room.chunks_mut(size).zip(starts);
        pairs.for_each(|(result, starts)| each(result, *starts, shared));
    }
    // SAFETY: the capacity is at least `all`, and the chunks are all of its first `all` values, each of which
    // `multiply` has written.
    #[expect(unsafe_code, reason = "values that were written are initialized")]
    unsafe {
        results.set_len(all);
    }
    results
}

/// Writes every value of a row-major result.
fn multiply(
    result: &mut [MaybeUninit<f32>],
    (a, [a_row, a_column]): (&[f32], [usize; 2]),
    (b, [b_row, b_column]): (&[f32], [usize; 2]),
    [m, k, n]: [usize; 3],
    shared: bool,
) {
    assert_eq!(result.len(), m * n, "room for the result");
    let parallelism = match shared {
        true => gemm::Parallelism::Rayon(0),
        false => gemm::Parallelism::None,
    };
    let [a_row, a_column, b_row, b_column, row] =
        [a_row, a_column, b_row, b_column, n].map(|stride| stride.cast_signed());
    // SAFETY: `Matrices::at` has checked that the last element of `a` and of `b` by these strides, which are not
    // negative, lies in its slice, and so do all others. The result has m * n values, of which (i, j) is
    // `i * n + j`; it is not read, because `read_dst` is false, and it overlaps no input, because it is borrowed
    // mutably. `gemm` writes each of its values where none of m, k and n is zero.
    #[expect(unsafe_code, reason = "`gemm` takes pointers")]
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            result.as_mut_ptr().cast::<f32>(),
            1,
            row,
            false,
            a.as_ptr(),
            a_column,
            a_row,
            b.as_ptr(),
            b_column,
            b_row,
            0.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: usize) -> Vec<f32> {
        let each = (0..count).map(|at| ((at * 31 + seed * 17) % 23) as f32 / 9.0 - 1.2);
        each.collect()
    }

    /// The sum over the inner axis, in f64.
    fn expected(a: &Matrices<'_>, b: &Matrices<'_>, [from, to]: [usize; 2]) -> Vec<f64> {
        let ([m, k], [_, n]) = (a.shape, b.shape);
        let of = |x: &Matrices<'_>, start: usize, at: [usize; 2]| {
            f64::from(x.values[start + at[0] * x.strides[0] + at[1] * x.strides[1]])
        };
        let sum = |i, j| {
            (0..k)
                .map(|l| of(a, from, [i, l]) * of(b, to, [l, j]))
                .sum()
        };
        (0..m * n).map(|at| sum(at / n, at % n)).collect()
    }

    fn check(a: &Matrices<'_>, b: &Matrices<'_>, starts: &[[usize; 2]]) {
        let found = products(a, b, starts);
        let all: Vec<f64> = starts
            .iter()
            .flat_map(|pair| expected(a, b, *pair))
            .collect();
        assert_eq!(found.len(), all.len());
        for (found, expected) in found.iter().zip(&all) {
            assert!(
                (f64::from(*found) - expected).abs() < 1e-3,
                "{found} {expected}"
            );
        }
    }

    #[test]
    fn every_order_of_strides_gives_the_sums() {
        for [m, k, n] in [[1, 1, 1], [3, 5, 2], [17, 9, 33], [1, 40, 7]] {
            let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
            for by_a in [[k, 1], [1, m]] {
                for by_b in [[n, 1], [1, k]] {
                    let (a, b) = (
                        Matrices::new(&a, [m, k], by_a),
                        Matrices::new(&b, [k, n], by_b),
                    );
                    check(&a, &b, &[[0, 0]]);
                }
            }
        }
    }

    #[test]
    fn matrices_of_a_batch_lie_anywhere_in_their_slices() {
        let (a, b) = (numbers(200, 1), numbers(90, 2));
        // Every other row of one, and one matrix for all of the other.
        let (a, b) = (
            Matrices::new(&a, [4, 6], [12, 1]),
            Matrices::new(&b, [6, 5], [5, 1]),
        );
        check(&a, &b, &[[0, 0], [6, 0], [150, 60], [3, 30]]);
        check(&a, &b, &[]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "minutes")]
    fn threads_that_share_a_product_do_not_change_its_bits() {
        let [m, k, n] = [200, 300, 210];
        let (a, b) = (numbers(m * k, 1), numbers(6 * k * n, 2));
        let (a, b) = (
            Matrices::new(&a, [m, k], [1, m]),
            Matrices::new(&b, [k, n], [n, 1]),
        );
        let batch: Vec<[usize; 2]> = (0..6).map(|at| [0, at * k * n]).collect();
        for starts in [&batch[..1], &batch] {
            let with = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                pool.expect("threads").install(|| products(&a, &b, starts))
            };
            let one = with(1);
            assert_eq!(one, with(2));
            assert_eq!(one, with(5));
            check(&a, &b, starts);
        }
    }

    #[test]
    fn nothing_to_add_up_gives_zeros() {
        let none = Matrices::new(&[], [2, 0], [0, 1]);
        let other = Matrices::new(&[], [0, 3], [3, 1]);
        assert_eq!(products(&none, &other, &[[0, 0]]), [0.0; 6]);
        assert_eq!(
            products(&other, &Matrices::new(&[1.0; 3], [3, 1], [1, 1]), &[[0, 0]]),
            []
        );
    }

    #[test]
    fn a_matrix_that_does_not_lie_in_its_slice_is_refused() {
        let values = numbers(12, 1);
        let square = Matrices::new(&values, [3, 3], [3, 1]);
        for (shape, strides, start) in [
            ([3, 4], [4, 1], 1),
            ([3, 4], [5, 1], 0),
            ([3, 5], [4, 1], 0),
            ([3, 2], [usize::MAX, 1], 0),
            ([3, 2], [1, usize::MAX], 0),
            ([3, 1], [1, 1], usize::MAX),
        ] {
            let wrong = Matrices::new(&values, shape, strides);
            let refused = std::panic::catch_unwind(|| products(&square, &wrong, &[[0, start]]));
            assert!(refused.is_err(), "{shape:?} {strides:?} {start}");
        }
        let fits = Matrices::new(&values, [2, 2], [2, 1]);
        assert!(std::panic::catch_unwind(|| products(&square, &fits, &[[0, 0]])).is_err());
    }
}
