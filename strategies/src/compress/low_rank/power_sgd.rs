//! Codec `power-sgd`: matrices as products of two thin ones. Biased: needs error feedback.

use super::factors::{Factor, LowRank, RANK, times_columns, transposed_times_columns};
use crate::compress::random::draw;
use crate::compress::{CodecProperties, CodecSpec, EncodeContext, Matrix};

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "power-sgd",
    tag: 40,
    summary: "matrices as products of two thin ones, by power iteration from round to round",
    equation: "P = orth(M Q), Q' = M' P, C(M) = P Q'', Q' warm-starts the next round",
    source: "Vogels et al., NeurIPS 2019",
    parameters: &[RANK],
    build: |kind| Box::new(LowRank::new(&SPEC, PowerSgd::new(kind.count("rank")))),
};

/// One subspace iteration in each round, starting from the result of the previous one.
///
/// ```text
/// P = orth(M Q),   Q = M^T P,   C(M) = P Q^T
/// ```
///
/// M (a x b) is a tensor as a matrix: its first dimension, and the product of the others. P is a x
/// r, Q is b x r. C(M) is the projection of M onto the span of P: `||C(M) - M||^2 = ||M||^2 -
/// ||Q||^2 <= ||M||^2`; no constant is published. Biased: needs error feedback, and keeps Q between
/// rounds. Contributions are sent relative to the anchor. Reductions return as `f32`.
///
/// Size: `32 r (a + b)` bits for a matrix, 0.0625 for each value for r = 4 and 4096 x 4096.
/// Matrices that would not get shorter, or have magnitudes beyond 1e30, are sent exactly.
/// Orthogonalization is Gram-Schmidt, twice, in f64. A column that vanishes is zero and drawn again
/// for the next round.
///
/// The paper averages P and then Q over all peers. Here each peer sends its own two, and the mean
/// is that of the products. That is the same projection if the matrices of the peers agree and more
/// exact if they do not, with a rank of r times the number of peers. `power-sgd-mean` averages both.
///
/// Source: Vogels, Karimireddy and Jaggi, "PowerSGD" (NeurIPS 2019), algorithm 1 (number not
/// verified).
#[derive(Clone, Debug)]
pub(in crate::compress) struct PowerSgd {
    rank: usize,
    /// Where each matrix' Q begins in the memory.
    starts: Vec<usize>,
}

impl PowerSgd {
    pub(in crate::compress) const fn new(rank: usize) -> Self {
        let starts = Vec::new();
        Self { rank, starts }
    }
}

/// `sum a b`, in f64.
fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| f64::from(*a) * f64::from(*b))
        .sum()
}

/// Makes columns of `rows` values orthonormal. A column that is a combination of those before it becomes zero.
pub(in crate::compress) fn orthonormalize(columns: &mut [f32], rows: usize) {
    for at in 0..columns.len() / rows {
        let (before, own) = columns.split_at_mut(at * rows);
        let own = &mut own[..rows];
        let length = dot(own, own).sqrt();
        let scale = |own: &mut [f32], by: f64| {
            own.iter_mut()
                .for_each(|v| *v = (f64::from(*v) * by) as f32);
        };
        if length > 0.0 {
            scale(own, 1.0 / length);
        }
        for _ in 0..2 {
            for other in before.chunks(rows) {
                let along = dot(own, other);
                for (value, other) in own.iter_mut().zip(other) {
                    *value = (f64::from(*value) - along * f64::from(*other)) as f32;
                }
            }
        }
        let left = dot(own, own).sqrt();
        // What rounding left of a column that the others span has no direction of its own.
        scale(own, if left > 1e-3 { 1.0 / left } else { 0.0 });
    }
}

impl Factor for PowerSgd {
    fn properties(&self) -> CodecProperties {
        CodecProperties {
            stochastic: true,
            ..CodecProperties::biased(1.0)
        }
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn prepare(&mut self, matrices: &[Matrix], context: &mut EncodeContext<'_>) {
        let mut len = 0;
        self.starts.clear();
        for matrix in matrices {
            self.starts.push(len);
            len += self.rank * matrix.columns;
        }
        if context.memory.len() != len {
            context.memory.clear();
            context.memory.resize(len, 0.0);
            draw(context.shared_seed, 0, context.memory);
        }
    }

    fn factor(
        &mut self,
        values: &[f32],
        (at, matrix): (usize, Matrix),
        left: &mut [f32],
        right: &mut [f32],
        context: &mut EncodeContext<'_>,
    ) {
        let columns = matrix.columns;
        let start = self.starts[at];
        let kept = &mut context.memory[start..start + self.rank * columns];
        times_columns(values, columns, kept, left);
        orthonormalize(left, matrix.rows);
        transposed_times_columns(values, columns, left, right);
        for (kept, new) in kept.chunks_mut(columns).zip(right.chunks(columns)) {
            let length = dot(new, new).sqrt();
            if length > 0.0 {
                for (kept, new) in kept.iter_mut().zip(new) {
                    *kept = (f64::from(*new) / length) as f32;
                }
            } else {
                draw(context.seed, start, kept);
            }
        }
    }
}
