//! Matrices as products of two thin ones: shared by `power-sgd`, `atomo` and `sufficient-factors`.
//! A rule finds the factors; this file has the layout, the checks, and the encoding of values
//! that are in no matrix.

use crate::compress::raw::{
    self, Header, add_f32s, expect_finite, expect_len, f32s, front, push_f32s, push_u32s, take,
    take_u32s,
};
use crate::compress::{
    Codec, CodecError, CodecProperties, CodecSpec, EncodeContext, F32, Matrix, Parameter,
    Range as Values,
};
use core::cell::RefCell;
use murmurate_protocol::BytesBound;

pub(in crate::compress) use super::products::{times_columns, transposed_times_columns};

/// How many columns the two thin matrices have.
pub(in crate::compress) const RANK: Parameter = Parameter {
    name: "rank",
    range: Values::Whole(1, 64),
    default: Some(4.0),
    about: "the number of columns of the two factors, such as 4",
};

/// The largest magnitude of a matrix that is factored. Matrices with larger values are sent exactly.
pub(in crate::compress) const VALUE_MAX: f32 = 1e30;

/// Bounds of decoded factors: 64 products of them stay below the largest f32.
pub(in crate::compress) const LEFT_MAX: f32 = 2.0;
pub(in crate::compress) const RIGHT_MAX: f32 = 1e36;

/// Bytes that name a matrix.
pub(in crate::compress) const NAMED: usize = 12;

/// The next matrix that an encoding names, its end, and the bytes after it. It begins at `next` or
/// later and ends within `len` values.
pub(in crate::compress) fn named(
    bytes: &[u8],
    next: usize,
    len: usize,
) -> Result<(Matrix, usize, &[u8]), CodecError> {
    let ([offset, rows, columns], rest) = take_u32s::<3, NAMED>(bytes, "matrices")?;
    let matrix = Matrix {
        offset,
        rows,
        columns,
    };
    let values = matrix.rows.checked_mul(matrix.columns);
    let end = values.and_then(|values| values.checked_add(matrix.offset));
    match end {
        Some(end) if matrix.offset >= next && end <= len => Ok((matrix, end, rest)),
        _ => Err(CodecError::OutOfRange { field: "matrices" }),
    }
}

/// Appends the number of matrices and what names them.
pub(in crate::compress) fn push_named(matrices: &[Matrix], out: &mut Vec<u8>) {
    push_u32s([matrices.len()], out);
    for matrix in matrices {
        push_u32s([matrix.offset, matrix.rows, matrix.columns], out);
    }
}

pub(in crate::compress) trait Factor: Send + 'static {
    fn properties(&self) -> CodecProperties;

    fn rank(&self) -> usize;

    /// The most rows of a matrix that are factored at a time.
    fn rows_max(&self) -> usize {
        usize::MAX
    }

    /// Makes room for the state of these, in their order.
    fn prepare(&mut self, _: &[Matrix], _: &mut EncodeContext<'_>) {}

    /// `matrix ~ left right^T`, both given as zeros, one column after another. `at` is its number.
    fn factor(
        &mut self,
        values: &[f32],
        at: (usize, Matrix),
        left: &mut [f32],
        right: &mut [f32],
        context: &mut EncodeContext<'_>,
    );
}

/// The codec of such a rule.
///
/// A matrix is factored if that is shorter. All other values, such as biases and small tensors, are
/// sent exactly. Layout: the codec's byte, the rank (u8), the number of factored matrices (u32),
/// for each its start, rows and columns (u32), then for each its left and its right factor (f32,
/// one column after another), then the other values (f32).
pub(in crate::compress) struct LowRank<F> {
    spec: &'static CodecSpec,
    factor: F,
    matrices: Vec<Matrix>,
    scratch: RefCell<(Vec<Matrix>, Vec<f32>)>,
}

impl<F: Factor> LowRank<F> {
    pub(in crate::compress) fn new(spec: &'static CodecSpec, factor: F) -> Self {
        Self {
            spec,
            factor,
            matrices: Vec::new(),
            scratch: RefCell::default(),
        }
    }

    fn header(&self) -> Header {
        Header::new(self.spec.tag).with([self.factor.rank() as u8])
    }

    /// f32 of both factors, where they are shorter than the matrix.
    pub(in crate::compress) fn factored(&self, matrix: Matrix) -> Option<usize> {
        let all = matrix.rows.checked_mul(matrix.columns)?;
        let factors = matrix.rows.checked_add(matrix.columns)? * self.factor.rank();
        (factors + NAMED / 4 < all).then_some(factors)
    }

    /// Appends an encoding of these factors, of all matrices one after another, and the other values.
    pub(in crate::compress) fn write(
        &self,
        matrices: &[Matrix],
        mut lefts: &[f32],
        mut rights: &[f32],
        others: &[f32],
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(self.header().bytes());
        push_named(matrices, out);
        let rank = self.factor.rank();
        for matrix in matrices {
            push_f32s(front(&mut lefts, rank * matrix.rows), out);
            push_f32s(front(&mut rights, rank * matrix.columns), out);
        }
        push_f32s(others, out);
    }

    /// Appends the right factors of an encoding of `len` values.
    pub(in crate::compress) fn rights_of(
        &self,
        bytes: &[u8],
        len: usize,
        rights: &mut Vec<f32>,
    ) -> Result<(), CodecError> {
        let (matrices, factors) = &mut *self.scratch.borrow_mut();
        let mut rest = self.read(bytes, len, matrices)?;
        for matrix in &*matrices {
            rest = self.factors(*matrix, rest, factors)?;
            rights.extend_from_slice(&factors[self.factor.rank() * matrix.rows..]);
        }
        Ok(())
    }

    /// Leaves the matrices to factor in `self.matrices`.
    fn choose(&mut self, values: &[f32], context: &EncodeContext<'_>) {
        let mut chosen = core::mem::take(&mut self.matrices);
        chosen.clear();
        for whole in context.matrices {
            let most = self.factor.rows_max().min(whole.rows);
            for first in (0..whole.rows).step_by(most.max(1)) {
                let matrix = Matrix {
                    offset: whole.offset + first * whole.columns,
                    rows: most.min(whole.rows - first),
                    ..*whole
                };
                let small = |v: &f32| v.abs() <= VALUE_MAX;
                if self.factored(matrix).is_some() && values[matrix.range()].iter().all(small) {
                    chosen.push(matrix);
                }
            }
        }
        self.matrices = chosen;
    }

    /// The matrices that an encoding names; gives what follows.
    fn read<'a>(
        &self,
        bytes: &'a [u8],
        len: usize,
        matrices: &mut Vec<Matrix>,
    ) -> Result<&'a [u8], CodecError> {
        let (count, mut rest) = take(self.header().expect(bytes)?, "matrices")?;
        let (mut next, mut needed) = (0, 4 * len);
        matrices.clear();
        for _ in 0..u32::from_le_bytes(count) {
            let (matrix, end, after) = named(rest, next, len)?;
            rest = after;
            let Some(factors) = self.factored(matrix) else {
                return Err(CodecError::OutOfRange { field: "matrices" });
            };
            next = end;
            needed = needed - 4 * matrix.rows * matrix.columns + 4 * factors;
            matrices.push(matrix);
        }
        expect_len(rest, needed, "values")?;
        expect_finite(rest, "values")?;
        Ok(rest)
    }

    /// Reads the factors of a matrix; gives what follows.
    fn factors<'a>(
        &self,
        matrix: Matrix,
        bytes: &'a [u8],
        into: &mut Vec<f32>,
    ) -> Result<&'a [u8], CodecError> {
        let rank = self.factor.rank();
        let (own, rest) = bytes.split_at(4 * rank * (matrix.rows + matrix.columns));
        into.clear();
        into.extend(f32s(own));
        let (left, right) = into.split_at(rank * matrix.rows);
        let within = |values: &[f32], most: f32| values.iter().all(|v| v.abs() <= most);
        if within(left, LEFT_MAX) && within(right, RIGHT_MAX) {
            Ok(rest)
        } else {
            Err(CodecError::OutOfRange { field: "factors" })
        }
    }
}

/// The runs between matrices.
pub(in crate::compress) fn between(
    matrices: &[Matrix],
    len: usize,
) -> impl Iterator<Item = core::ops::Range<usize>> {
    raw::between(matrices.iter().map(Matrix::range), len)
}

/// Appends the values between matrices.
pub(in crate::compress) fn push_between(matrices: &[Matrix], values: &[f32], out: &mut Vec<u8>) {
    for run in between(matrices, values.len()) {
        push_f32s(&values[run], out);
    }
}

/// `acc += weight * values`, of the values between matrices.
pub(in crate::compress) fn add_between(
    matrices: &[Matrix],
    mut values: &[u8],
    weight: f32,
    acc: &mut [f32],
) {
    for run in between(matrices, acc.len()) {
        add_f32s(front(&mut values, 4 * run.len()), weight, &mut acc[run]);
    }
}

/// `acc += weight left right^T` at the place of the matrix.
pub(in crate::compress) fn add_product(
    (left, right): (&[f32], &[f32]),
    matrix: Matrix,
    weight: f32,
    acc: &mut [f32],
) {
    let Matrix { rows, columns, .. } = matrix;
    super::products::add_product(left, right, rows, columns, weight, &mut acc[matrix.range()]);
}

impl<F: Factor> Codec for LowRank<F> {
    fn properties(&self) -> CodecProperties {
        CodecProperties {
            matrices: true,
            ..self.factor.properties()
        }
    }

    fn bytes_bound(&self) -> BytesBound {
        // A factored matrix is shorter with its name than it was.
        self.header().bound(4, 4096)
    }

    fn encode(&mut self, values: &[f32], context: &mut EncodeContext<'_>, out: &mut Vec<u8>) {
        self.choose(values, context);
        out.extend_from_slice(self.header().bytes());
        push_named(&self.matrices, out);
        self.factor.prepare(&self.matrices, context);
        let rank = self.factor.rank();
        let (_, factors) = self.scratch.get_mut();
        for (at, matrix) in self.matrices.iter().enumerate() {
            factors.clear();
            factors.resize(rank * (matrix.rows + matrix.columns), 0.0);
            let (left, right) = factors.split_at_mut(rank * matrix.rows);
            let own = &values[matrix.range()];
            self.factor.factor(own, (at, *matrix), left, right, context);
            push_f32s(factors, out);
        }
        push_between(&self.matrices, values, out);
    }

    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError> {
        let (matrices, factors) = &mut *self.scratch.borrow_mut();
        let body = self.read(bytes, acc.len(), matrices)?;
        let mut rest = body;
        for matrix in &*matrices {
            rest = self.factors(*matrix, rest, factors)?;
        }
        let mut rest = body;
        for matrix in &*matrices {
            rest = self.factors(*matrix, rest, factors)?;
            let product = factors.split_at(self.factor.rank() * matrix.rows);
            add_product(product, *matrix, weight, acc);
        }
        add_between(matrices, rest, weight, acc);
        Ok(())
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        Box::new(F32)
    }
}
