//! Codec `acp-sgd`: the two factors of a matrix, one in each round. Biased: needs error feedback.

use crate::compress::codec::{Agreed, Gathering};
use crate::compress::low_rank::factors::{
    NAMED, RANK, RIGHT_MAX, VALUE_MAX, add_between, add_product, named, push_between, push_named,
    times_columns, transposed_times_columns,
};
use crate::compress::low_rank::power_sgd::orthonormalize;
use crate::compress::random::draw;
use crate::compress::raw::{
    Header, add_f32s, expect_finite, expect_len, expect_within, f32s, front, hash_f32s, push_f32s,
    take,
};
use crate::compress::{
    Codec, CodecError, CodecProperties, CodecSpec, EncodeContext, F32, Matrix, Reduction,
};
use core::cell::RefCell;
use murmurate_protocol::BytesBound;

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "acp-sgd",
    tag: 53,
    summary: "matrices as products of two thin ones, of which each round sends one",
    equation: "P_i = M_i Q in odd rounds, Q_i = M_i' P in even ones, C(M_i) = P_i Q' or P Q_i', each orthogonalized after its mean",
    source: "Zhang et al., ICDCS 2023",
    parameters: &[RANK],
    build: |kind| {
        Box::new(AcpSgd {
            rank: kind.count("rank"),
            matrices: Vec::new(),
            factor: Vec::new(),
            mean: Vec::new(),
            scratch: RefCell::default(),
        })
    },
};

/// Alternating projections: each round sends one factor; the other is the mean of the previous
/// round.
///
/// ```text
/// odd rounds:   P_i = M_i Q,     C(M_i) = P_i Q^T,    P' = orth(sum_i w_i P_i / sum_i w_i)
/// even rounds:  Q_i = M_i^T P,   C(M_i) = P Q_i^T,    Q' = orth(sum_i w_i Q_i / sum_i w_i)
/// ```
///
/// The mean of the products is the product of the mean, so the change of the model has rank r for
/// any number of members. C(M) is the projection of M onto the span of the common factor: `||C(M) -
/// M||^2 <= ||M||^2`. Members keep one factor in common. Contributions are sent relative to the
/// anchor.
///
/// Size: half of `power-sgd`'s, `32 r a` or `32 r b` bits for `a x b` values. Matrices that would
/// not get shorter, or have magnitudes beyond 1e30, are sent exactly. So is everything if members
/// do not name the same matrices as the common factor. Orthogonalization as in `power-sgd`; columns
/// that vanish are drawn again from the common seed.
///
/// Layout: the codec's byte, the rank (u8), the side of the common factor (u8: 0 draws it from a
/// seed, 1 is right, 2 is left), the seed or the hash of the factor (u64), the number of matrices
/// (u32), for each its start, rows and columns (u32), for each its new factor (f32, one column
/// after another), the other values (f32).
///
/// Source: Zhang et al., "Evaluation and optimization of gradient compression for distributed deep
/// learning" (ICDCS 2023), algorithm 2 (number not verified).
struct AcpSgd {
    rank: usize,
    matrices: Vec<Matrix>,
    factor: Vec<f32>,
    mean: Vec<f32>,
    scratch: RefCell<Scratch>,
}

#[derive(Default)]
struct Scratch {
    matrices: Vec<Matrix>,
    factor: Vec<f32>,
    new: Vec<f32>,
}

/// Which factor a round starts from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Right,
    Left,
}

impl Side {
    /// The side of the factor that is sent.
    const fn other(self) -> Self {
        match self {
            Self::Right => Self::Left,
            Self::Left => Self::Right,
        }
    }

    /// The length of a column of a matrix' factor on this side.
    const fn long(self, matrix: Matrix) -> usize {
        match self {
            Self::Right => matrix.columns,
            Self::Left => matrix.rows,
        }
    }
}

impl AcpSgd {
    fn header(&self) -> Header {
        Header::new(SPEC.tag).with([self.rank as u8])
    }

    /// Set for a matrix that is longer than either factor.
    fn factored(&self, matrix: Matrix) -> bool {
        let longer = matrix.rows.max(matrix.columns);
        let all = matrix.rows.checked_mul(matrix.columns);
        let factor = longer.checked_mul(self.rank);
        matches!((all, factor), (Some(all), Some(factor)) if factor + NAMED / 4 < all)
    }

    /// How many values a matrix' factor on this side has.
    fn size(&self, matrix: Matrix, side: Side) -> usize {
        self.rank * side.long(matrix)
    }

    fn sizes(&self, matrices: &[Matrix], side: Side) -> usize {
        matrices.iter().map(|m| self.size(*m, side)).sum()
    }

    /// The common factor for these matrices, drawn from the seed if there is none.
    fn common(&self, shared: &[f32], seed: u64, matrices: &[Matrix], into: &mut Vec<f32>) -> Side {
        into.clear();
        if let Some((side, kept)) = shared.split_first() {
            into.extend_from_slice(kept);
            return if *side == 1.0 {
                Side::Right
            } else {
                Side::Left
            };
        }
        into.resize(self.sizes(matrices, Side::Right), 0.0);
        let mut from = 0;
        for (at, matrix) in (0..).zip(matrices) {
            let own = &mut into[from..][..self.rank * matrix.columns];
            from += own.len();
            draw(seed.wrapping_add(at), 0, own);
            orthonormalize(own, matrix.columns);
        }
        Side::Right
    }

    /// Reads all but the values; leaves matrices and factor in common in the scratch. Gives the
    /// side and the values.
    fn read<'a>(
        &self,
        bytes: &'a [u8],
        len: usize,
        shared: &[f32],
        scratch: &mut Scratch,
    ) -> Result<(Side, &'a [u8]), CodecError> {
        let ([found], rest) = take::<1>(self.header().expect(bytes)?, "factor")?;
        let (name, rest) = take::<8>(rest, "factor")?;
        let (count, mut rest) = take::<4>(rest, "matrices")?;
        let (mut next, mut needed) = (0, len);
        scratch.matrices.clear();
        for _ in 0..u32::from_le_bytes(count) {
            let (matrix, end, after) = named(rest, next, len)?;
            if !self.factored(matrix) {
                return Err(CodecError::OutOfRange { field: "matrices" });
            }
            (next, rest) = (end, after);
            needed -= matrix.rows * matrix.columns;
            scratch.matrices.push(matrix);
        }
        let name = u64::from_le_bytes(name);
        let none: &[f32] = &[];
        let held = if found == 0 { none } else { shared };
        let side = self.common(held, name, &scratch.matrices, &mut scratch.factor);
        let code = if side == Side::Right { 1 } else { 2 };
        let fits = scratch.factor.len() == self.sizes(&scratch.matrices, side);
        if found > 2 {
            return Err(CodecError::OutOfRange { field: "factor" });
        }
        if !fits || found != 0 && (held.is_empty() || found != code || hash_f32s(held) != name) {
            return Err(CodecError::NotHeld { field: "factor" });
        }
        let factors = self.sizes(&scratch.matrices, side.other());
        expect_len(rest, 4 * (needed + factors), "values")?;
        expect_finite(rest, "values")?;
        expect_within(&rest[..4 * factors], RIGHT_MAX, "factors")?;
        Ok((side, rest))
    }

    /// Leaves the matrices to factor in `self.matrices`, and the factor in common in `self.factor`.
    /// Gives its side, and what names it.
    fn choose(&mut self, values: &[f32], context: &EncodeContext<'_>) -> (Side, u8, u64) {
        let small = |m: &Matrix| values[m.range()].iter().all(|v| v.abs() <= VALUE_MAX);
        let mut chosen = core::mem::take(&mut self.matrices);
        chosen.clear();
        let all = context.matrices.iter().copied();
        chosen.extend(all.filter(|m| self.factored(*m) && small(m)));
        let (shared, seed) = (context.shared, context.shared_seed);
        let mut factor = core::mem::take(&mut self.factor);
        let mut side = self.common(shared, seed, &chosen, &mut factor);
        let (mut code, mut name) = match (shared.is_empty(), side) {
            (true, _) => (0, seed),
            (false, Side::Right) => (1, hash_f32s(shared)),
            (false, Side::Left) => (2, hash_f32s(shared)),
        };
        if factor.len() != self.sizes(&chosen, side) {
            // The factor in common is of other matrices: everything goes exactly, once.
            chosen.clear();
            side = self.common(&[], seed, &chosen, &mut factor);
            (code, name) = (0, seed);
        }
        (self.matrices, self.factor) = (chosen, factor);
        (side, code, name)
    }
}

impl Codec for AcpSgd {
    fn properties(&self) -> CodecProperties {
        CodecProperties {
            stochastic: true,
            shared_seed: true,
            matrices: true,
            reduction: Reduction::Gathered,
            ..CodecProperties::biased(1.0)
        }
    }

    fn bytes_bound(&self) -> BytesBound {
        // A matrix is shorter as a factor with its name than it was.
        self.header().bound(13, 4096)
    }

    fn encode(&mut self, values: &[f32], context: &mut EncodeContext<'_>, out: &mut Vec<u8>) {
        let (side, code, name) = self.choose(values, context);
        out.extend_from_slice(self.header().bytes());
        out.push(code);
        out.extend_from_slice(&name.to_le_bytes());
        push_named(&self.matrices, out);
        let mut kept = self.factor.as_slice();
        let new = &mut self.scratch.get_mut().new;
        for matrix in &self.matrices {
            let held = front(&mut kept, self.rank * side.long(*matrix));
            let (columns, own) = (matrix.columns, &values[matrix.range()]);
            new.clear();
            new.resize(self.rank * side.other().long(*matrix), 0.0);
            match side {
                Side::Right => times_columns(own, columns, held, new),
                Side::Left => transposed_times_columns(own, columns, held, new),
            }
            push_f32s(new, out);
        }
        push_between(&self.matrices, values, out);
    }

    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError> {
        self.decode_own(bytes, &[], weight, acc)
    }

    fn decode_own(
        &self,
        bytes: &[u8],
        shared: &[f32],
        weight: f32,
        acc: &mut [f32],
    ) -> Result<(), CodecError> {
        let scratch = &mut *self.scratch.borrow_mut();
        let (side, mut rest) = self.read(bytes, acc.len(), shared, scratch)?;
        let mut kept = scratch.factor.as_slice();
        for matrix in &scratch.matrices {
            let held = front(&mut kept, self.size(*matrix, side));
            let own = front(&mut rest, 4 * self.size(*matrix, side.other()));
            scratch.new.clear();
            scratch.new.extend(f32s(own));
            let product = match side {
                Side::Right => (scratch.new.as_slice(), held),
                Side::Left => (held, scratch.new.as_slice()),
            };
            add_product(product, *matrix, weight, acc);
        }
        add_between(&scratch.matrices, rest, weight, acc);
        Ok(())
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        Box::new(F32)
    }

    fn gathering(&mut self) -> Option<&mut dyn Gathering> {
        Some(self)
    }
}

impl Gathering for AcpSgd {
    fn shared_most(&self, len: usize) -> usize {
        // A factor is shorter than its matrix.
        1 + len
    }

    fn settle(&mut self, agreed: &Agreed<'_>, moved: &[f32], shared: &mut Vec<f32>) {
        let scratch = self.scratch.get_mut();
        let mut scratch = core::mem::take(scratch);
        self.mean.clear();
        self.matrices.clear();
        let mut sides = None;
        for one in agreed.contributions {
            let read = self.read(one.bytes, moved.len(), agreed.shared, &mut scratch);
            let Ok((side, values)) = read else {
                continue;
            };
            let new = side.other();
            if self.mean.is_empty() {
                self.matrices.clone_from(&scratch.matrices);
                self.mean.resize(self.sizes(&scratch.matrices, new), 0.0);
                sides = Some(new);
            }
            // Who named other matrices than the first that named any has no part in the factor.
            if scratch.matrices == self.matrices && sides == Some(new) {
                add_f32s(values, one.share, &mut self.mean);
            }
        }
        self.scratch.replace(scratch);
        let Some(side) = sides.filter(|_| !self.mean.is_empty()) else {
            return;
        };
        shared.push(if side == Side::Right { 1.0 } else { 0.0 });
        let mut from = 0;
        for matrix in &self.matrices {
            let long = side.long(*matrix);
            let own = &mut self.mean[from..][..self.rank * long];
            from += own.len();
            orthonormalize(own, long);
            for (at, column) in (0..).zip(own.chunks_mut(long)) {
                if column.iter().all(|v| *v == 0.0) {
                    draw(agreed.shared_seed.wrapping_add(at), 0, column);
                }
            }
            // What was drawn is not orthogonal yet.
            orthonormalize(own, long);
        }
        shared.extend_from_slice(&self.mean);
    }
}
