//! The discrete cosine transform of tiles of 64 x 64. It is not a crate's, because its bits must be
//! the same on every machine, and a library that chooses its algorithm by the CPU does not promise
//! that.

use crate::compress::simd::dispatched;
use core::ops::Range;
use pulp::{Simd, WithSimd};

/// Values along one side of a tile.
pub(in crate::compress) const SIDE: usize = 64;

pub(in crate::compress) const TILE: usize = SIDE * SIDE;

/// Outputs that are summed at the same time, so that an addition need not wait for the previous one.
const TOGETHER: usize = 8;

/// The orthonormal DCT-II along both sides, and its inverse.
///
/// ```text
/// X_k = c_k sum_i x_i cos(pi (2 i + 1) k / 128),   c_0 = 1 / 8, the others sqrt(2) / 8
/// ```
///
/// The even half is split off three times (`s_i = x_i + x_{N-1-i}`, `d_i = x_i - x_{N-1-i}`), so
/// that 64 values take 1408 multiplications instead of 4096. The coefficient of frequency u across
/// rows and v across columns is at `64 u + v`.
///
/// Source: Ahmed, Natarajan and Rao, "Discrete cosine transform" (IEEE Trans. Computers 1974).
#[derive(Clone, Debug)]
pub(in crate::compress) struct Dct {
    forward: Halves,
    inverse: Halves,
}

/// Factors of the odd halves of 64, 32 and 16 and of the even half of 16, in blocks of outputs.
/// Each block has a row for every input. The matrices of the odd halves are symmetric.
#[derive(Clone, Debug)]
struct Halves {
    odd_32: Vec<[f32; TOGETHER]>,
    odd_16: Vec<[f32; TOGETHER]>,
    odd_8: Vec<[f32; TOGETHER]>,
    even_8: Vec<[f32; TOGETHER]>,
}

/// `cos(pi m / 128)` for m below 256: half angles by square roots, the others by recurrence, the
/// same on every machine.
fn cosines() -> [f64; 256] {
    // cos(pi / 2) halved six times is cos(pi / 128).
    let first = (0..6).fold(0.0f64, |cosine, _| ((1.0 + cosine) / 2.0).sqrt());
    let mut table = [1.0; 256];
    table[1] = first;
    for m in 2..=64 {
        table[m] = 2.0 * first * table[m - 1] - table[m - 2];
    }
    table[64] = 0.0;
    for m in 65..256 {
        table[m] = match m {
            65..=128 => -table[128 - m],
            _ => table[256 - m],
        };
    }
    table
}

impl Dct {
    pub(in crate::compress) fn new() -> Self {
        let table = cosines();
        // Of a transform of N: cos(pi (2 i + 1) k / 2 N), its odd half for odd k only.
        let angle = |n: usize, product: usize| table[product * (SIDE / n) % 256] as f32;
        let odd = |half: usize| {
            let factor = |k: usize, i: usize| angle(2 * half, (2 * i + 1) * (2 * k + 1));
            blocks(half, factor)
        };
        let halves = |even_8| Halves {
            odd_32: odd(32),
            odd_16: odd(16),
            odd_8: odd(8),
            even_8,
        };
        Self {
            forward: halves(blocks(8, |k, i| angle(8, (2 * i + 1) * k))),
            inverse: halves(blocks(8, |i, k| angle(8, (2 * i + 1) * k))),
        }
    }

    /// Coefficients of a tile, in its place.
    pub(in crate::compress) fn forward(&self, tile: &mut [f32; TILE]) {
        dispatched(Sides {
            halves: &self.forward,
            tile,
            forward: true,
        });
    }

    /// The tile of coefficients, in their place.
    pub(in crate::compress) fn inverse(&self, tile: &mut [f32; TILE]) {
        dispatched(Sides {
            halves: &self.inverse,
            tile,
            forward: false,
        });
    }
}

/// `factor(output, input)` of n outputs and inputs.
fn blocks(n: usize, factor: impl Fn(usize, usize) -> f32) -> Vec<[f32; TOGETHER]> {
    let factor = &factor;
    let outputs = (0..n).step_by(TOGETHER);
    let rows = outputs
        .flat_map(|first| (0..n).map(move |i| core::array::from_fn(|k| factor(first + k, i))));
    rows.collect()
}

struct Sides<'a> {
    halves: &'a Halves,
    tile: &'a mut [f32; TILE],
    forward: bool,
}

impl WithSimd for Sides<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Each pass transforms the columns, as many as a vector has lanes at once, and leaves them as rows.
        for _ in 0..2 {
            let mut turned = [0.0; TILE];
            let (vectors, _) = S::as_simd_f32s(self.tile);
            let width = SIDE / S::F32_LANES;
            for column in 0..width {
                let mut x = [simd.splat_f32s(0.0); SIDE];
                for (x, row) in x.iter_mut().zip(vectors.chunks_exact(width)) {
                    *x = row[column];
                }
                let x = if self.forward {
                    forward(simd, self.halves, x)
                } else {
                    inverse(simd, self.halves, x)
                };
                let lanes: &[f32] = bytemuck::cast_slice(&x);
                let first = column * S::F32_LANES;
                turn(lanes, S::F32_LANES, &mut turned[first * SIDE..]);
            }
            *self.tile = turned;
        }
    }
}

/// Leaves the columns of `rows`, which are `lanes` long, as rows of `turned`.
#[inline(always)]
fn turn(rows: &[f32], lanes: usize, turned: &mut [f32]) {
    if !lanes.is_multiple_of(BLOCK) {
        for (k, row) in rows.chunks_exact(lanes).enumerate() {
            for (lane, value) in row.iter().enumerate() {
                turned[lane * SIDE + k] = *value;
            }
        }
        return;
    }
    for (k, rows) in rows.chunks_exact(BLOCK * lanes).enumerate() {
        for first in (0..lanes).step_by(BLOCK) {
            let row = |at: usize| {
                let mut row = [0.0; BLOCK];
                row.copy_from_slice(&rows[at * lanes + first..][..BLOCK]);
                row
            };
            let block = [
                row(0),
                row(1),
                row(2),
                row(3),
                row(4),
                row(5),
                row(6),
                row(7),
            ];
            for (lane, values) in transpose(block).iter().enumerate() {
                let at = (first + lane) * SIDE + k * BLOCK;
                turned[at..at + BLOCK].copy_from_slice(values);
            }
        }
    }
}

/// Side of the blocks that are transposed in registers.
const BLOCK: usize = 8;

/// The transpose, in three steps that exchange halves, quarters and eighths of rows. The rows have
/// names, because the compiler keeps those in registers and makes shuffles of the exchanges.
#[inline(always)]
fn transpose([a, b, c, d, e, f, g, h]: [[f32; BLOCK]; BLOCK]) -> [[f32; BLOCK]; BLOCK] {
    let ((a, e), (b, f)) = (exchanged::<4>(a, e), exchanged::<4>(b, f));
    let ((c, g), (d, h)) = (exchanged::<4>(c, g), exchanged::<4>(d, h));
    let ((a, c), (b, d)) = (exchanged::<2>(a, c), exchanged::<2>(b, d));
    let ((e, g), (f, h)) = (exchanged::<2>(e, g), exchanged::<2>(f, h));
    let ((a, b), (c, d)) = (exchanged::<1>(a, b), exchanged::<1>(c, d));
    let ((e, f), (g, h)) = (exchanged::<1>(e, f), exchanged::<1>(g, h));
    [a, b, c, d, e, f, g, h]
}

/// Exchanges parts of two rows, which are as long as the rows are far from one another.
#[inline(always)]
fn exchanged<const PART: usize>(a: [f32; BLOCK], b: [f32; BLOCK]) -> ([f32; BLOCK], [f32; BLOCK]) {
    (
        core::array::from_fn(|i| if i & PART == 0 { a[i] } else { b[i ^ PART] }),
        core::array::from_fn(|i| if i & PART == 0 { a[i ^ PART] } else { b[i] }),
    )
}

/// `out_k = sum_i factor_ki x_i`, each sum in ascending order. With `zeros`, inputs that it marks are
/// left out, which changes no bit: a sum that begins with zero is never minus zero.
#[inline(always)]
fn product<S: Simd>(
    simd: S,
    factors: &[[f32; TOGETHER]],
    (x, zeros): (&[S::f32s], Option<&[bool]>),
    out: &mut [S::f32s],
) {
    let blocks = factors.chunks_exact(x.len());
    for (out, factors) in out.chunks_exact_mut(TOGETHER).zip(blocks) {
        let mut sums = [simd.splat_f32s(0.0); TOGETHER];
        for (at, (x, factors)) in x.iter().zip(factors).enumerate() {
            if zeros.is_some_and(|zeros| zeros[at]) {
                continue;
            }
            for (sum, factor) in sums.iter_mut().zip(factors) {
                let share = simd.mul_f32s(simd.splat_f32s(*factor), *x);
                *sum = simd.add_f32s(*sum, share);
            }
        }
        out.copy_from_slice(&sums);
    }
}

/// Sums of opposite values in the first half and their differences in the second, with the first of
/// them last. Applied twice it gives the values times two.
#[inline(always)]
fn fold<S: Simd>(simd: S, x: &mut [S::f32s]) {
    let (first, second) = x.split_at_mut(x.len() / 2);
    for (a, b) in first.iter_mut().zip(second.iter_mut().rev()) {
        (*a, *b) = (simd.add_f32s(*a, *b), simd.sub_f32s(*a, *b));
    }
}

/// All four products: of the folded halves, the even one first.
#[inline(always)]
fn products<S: Simd>(
    simd: S,
    halves: &Halves,
    x: &[S::f32s; SIDE],
    zeros: Option<&[bool; SIDE]>,
) -> [S::f32s; SIDE] {
    let mut out = [simd.splat_f32s(0.0); SIDE];
    let part = |range: Range<usize>| (&x[range.clone()], zeros.map(|zeros| &zeros[range]));
    product(simd, &halves.even_8, part(0..8), &mut out[..8]);
    product(simd, &halves.odd_8, part(8..16), &mut out[8..16]);
    product(simd, &halves.odd_16, part(16..32), &mut out[16..32]);
    product(simd, &halves.odd_32, part(32..SIDE), &mut out[32..]);
    out
}

/// The place of coefficient k among the halves. Its trailing zeros say which half.
#[inline(always)]
const fn place(k: usize) -> usize {
    match k % 8 {
        0 => k / 8,
        4 => 8 + k / 8,
        2 | 6 => 16 + k / 4,
        _ => 32 + k / 2,
    }
}

/// `c_k`.
#[inline(always)]
const fn norm(k: usize) -> f32 {
    if k == 0 {
        0.125
    } else {
        core::f32::consts::SQRT_2 / 8.0
    }
}

#[inline(always)]
fn forward<S: Simd>(simd: S, halves: &Halves, mut x: [S::f32s; SIDE]) -> [S::f32s; SIDE] {
    for half in [32, 16, 8] {
        fold(simd, &mut x[..2 * half]);
        x[half..2 * half].reverse();
    }
    let y = products(simd, halves, &x, None);
    for (k, x) in x.iter_mut().enumerate() {
        *x = simd.mul_f32s(simd.splat_f32s(norm(k)), y[place(k)]);
    }
    x
}

#[inline(always)]
fn inverse<S: Simd>(simd: S, halves: &Halves, x: [S::f32s; SIDE]) -> [S::f32s; SIDE] {
    let mut y = x;
    for (k, x) in x.iter().enumerate() {
        y[place(k)] = simd.mul_f32s(simd.splat_f32s(norm(k)), *x);
    }
    // Of a tile few coefficients are kept: most vectors of them are zeros.
    let mut zeros = [false; SIDE];
    for (zero, y) in zeros.iter_mut().zip(&y) {
        *zero = simd.reduce_max_f32s(simd.abs_f32s(*y)) == 0.0;
    }
    let mut x = products(simd, halves, &y, Some(&zeros));
    for half in [8, 16, 32] {
        x[half..2 * half].reverse();
        fold(simd, &mut x[..2 * half]);
    }
    x
}
