//! Codec `power-sgd-mean`: matrices as products of two thin ones, the mean of each over all members.
//! Biased: needs error feedback.

use crate::compress::codec::{Bad, Joined, Pass, TwoPasses, Weighed, name_of};
use crate::compress::low_rank::factors::{
    LEFT_MAX, LowRank, RANK, RIGHT_MAX, VALUE_MAX, add_between, add_product, push_between,
    times_columns, transposed_times_columns,
};
use crate::compress::low_rank::power_sgd::{PowerSgd, orthonormalize};
use crate::compress::random::draw;
use crate::compress::raw::{
    Header, add_f32s, expect_finite, expect_len, expect_within, f32s, front, push_f32s, take,
};
use crate::compress::{
    Codec, CodecError, CodecKind, CodecProperties, CodecSpec, EncodeContext, Matrix, Reduction,
};
use murmurate_protocol::BytesBound;

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "power-sgd-mean",
    tag: 57,
    summary: "matrices as products of two thin ones, of which each is the mean over all members",
    equation: "P = orth(mean_i M_i Q), Q' = mean_i M_i' P, C = P Q'', Q' warm-starts the next round",
    source: "Vogels et al., NeurIPS 2019",
    parameters: &[RANK],
    build: |kind| Box::new(PowerSgdMean::new(kind)),
};

/// One subspace iteration of the mean matrix in each round, starting from the result of the previous one.
///
/// ```text
/// P_i = M_i Q,    P = orth(sum_i w_i P_i / sum_i w_i)          first pass
/// Q_i = M_i^T P,  Q' = sum_i w_i Q_i / sum_i w_i                second pass
/// moved = P Q'^T,   e_i' = M_i - P Q_i^T
/// ```
///
/// M_i is a member's contribution plus its residual e_i. Both means are linear, so P and Q' are what one
/// peer would compute of the mean matrix M: moved is M projected onto the span of P, of rank r for any
/// number of members. `||M - moved||^2 = ||M||^2 - ||Q'||^2 <= ||M||^2`. All members keep Q' in common, with
/// columns of length one; a column that vanishes is drawn again from the common seed. A residual is what the
/// projection leaves of a member's own matrix, as in the paper's algorithm 2. Contributions are sent relative
/// to the anchor.
///
/// Size: `32 r a` bits for the first contribution to a matrix of a x b values and for the basis, `32 r b`
/// for the second one, `32 r (a + b)` for the aggregate. Which matrices are factored follows from their
/// shapes, so all members factor the same. Magnitudes beyond 1e30 are sent as 1e30, and the residual keeps
/// the rest. Values that are no matrix go exactly, in the second pass.
///
/// Layout: the codec's byte and the rank (u8). Then, of a first contribution, 1 (u8), the hash of the Q that
/// it starts from (u64), P_i of all matrices; of a basis, 2 (u8), P; of a second contribution, 3 (u8), the
/// hash of the basis (u64), Q_i, the other values (f32, one column after another). The aggregate has the
/// layout of `power-sgd`.
///
/// Source: Vogels, Karimireddy and Jaggi, "PowerSGD" (NeurIPS 2019), algorithms 1 and 2 (numbers not
/// verified).
struct PowerSgdMean {
    rank: usize,
    joined: LowRank<PowerSgd>,
    matrices: Vec<Matrix>,
    factor: Vec<f32>,
    clamped: Vec<f32>,
}

const FIRST: u8 = 1;
const BASIS: u8 = 2;
const SECOND: u8 = 3;

impl PowerSgdMean {
    fn new(kind: &CodecKind) -> Self {
        let rank = kind.count("rank");
        Self {
            rank,
            joined: LowRank::new(&SPEC, PowerSgd::new(rank)),
            matrices: Vec::new(),
            factor: Vec::new(),
            clamped: Vec::new(),
        }
    }

    fn header(&self, stage: u8) -> Header {
        Header::new(SPEC.tag).with([self.rank as u8]).with([stage])
    }

    /// Leaves the matrices that are factored in `self.matrices`.
    fn choose(&mut self, context: &EncodeContext<'_>) {
        self.matrices.clear();
        let all = context.matrices.iter().copied();
        let joined = &self.joined;
        self.matrices
            .extend(all.filter(|m| joined.factored(*m).is_some()));
    }

    fn lefts(&self) -> usize {
        self.rank * self.matrices.iter().map(|m| m.rows).sum::<usize>()
    }

    fn rights(&self) -> usize {
        self.rank * self.matrices.iter().map(|m| m.columns).sum::<usize>()
    }

    /// Values that are in no factored matrix.
    fn rest(&self, len: usize) -> usize {
        len - self.matrices.iter().map(|m| m.range().len()).sum::<usize>()
    }

    /// Leaves Q of all matrices in `self.factor`: the one kept in common, or a drawn one.
    fn common(&mut self, context: &EncodeContext<'_>) {
        let len = self.rights();
        self.factor.clear();
        if context.shared.len() == len {
            self.factor.extend_from_slice(context.shared);
            return;
        }
        self.factor.resize(len, 0.0);
        draw(context.shared_seed, 0, &mut self.factor);
    }

    /// What names the Q that a first contribution starts from.
    fn name_of_common(&self) -> [u8; 8] {
        name_of(bytemuck::cast_slice(&self.factor))
    }

    /// The values of a matrix, with their magnitudes limited.
    fn limited<'a>(values: &'a [f32], clamped: &'a mut Vec<f32>) -> &'a [f32] {
        if values.iter().all(|v| v.abs() <= VALUE_MAX) {
            return values;
        }
        clamped.clear();
        clamped.extend(values.iter().map(|v| v.clamp(-VALUE_MAX, VALUE_MAX)));
        clamped
    }

    /// The factors after a header, checked.
    fn floats(bytes: &[u8], count: usize, most: f32) -> Result<&[u8], CodecError> {
        expect_len(bytes, 4 * count, "values")?;
        expect_finite(bytes, "values")?;
        expect_within(bytes, most, "factors")?;
        Ok(bytes)
    }

    /// P of a basis, into `self.factor`.
    fn read_basis(&mut self, basis: &[u8]) -> Result<(), CodecError> {
        let body = self.header(BASIS).expect(basis)?;
        let body = Self::floats(body, self.lefts(), LEFT_MAX)?;
        self.factor.clear();
        self.factor.extend(f32s(body));
        Ok(())
    }

    /// The factors and the other values of a second contribution.
    fn read_second<'a>(
        &self,
        basis: &[u8],
        second: &'a [u8],
        len: usize,
    ) -> Result<(&'a [u8], &'a [u8]), CodecError> {
        let (name, body) = take::<8>(self.header(SECOND).expect(second)?, "basis")?;
        if name != name_of(basis) {
            return Err(CodecError::NotHeld { field: "basis" });
        }
        let (rights, rest) = (self.rights(), self.rest(len));
        expect_len(body, 4 * (rights + rest), "values")?;
        let (factors, others) = body.split_at(4 * rights);
        expect_finite(others, "values")?;
        Ok((Self::floats(factors, rights, RIGHT_MAX)?, others))
    }
}

impl Codec for PowerSgdMean {
    fn properties(&self) -> CodecProperties {
        CodecProperties {
            reduction: Reduction::TwoPasses,
            shared_seed: true,
            ..self.joined.properties()
        }
    }

    fn bytes_bound(&self) -> BytesBound {
        // Either contribution is shorter than both factors and the other values.
        let bound = self.joined.bytes_bound();
        BytesBound {
            fixed: bound.fixed + 16,
            ..bound
        }
    }

    fn encode(&mut self, values: &[f32], context: &mut EncodeContext<'_>, out: &mut Vec<u8>) {
        self.joined.encode(values, context, out);
    }

    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError> {
        self.joined.decode_add(bytes, weight, acc)
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        Box::new(LowRank::new(&SPEC, PowerSgd::new(self.rank)))
    }

    fn two_passes(&mut self) -> Option<&mut dyn TwoPasses> {
        Some(self)
    }
}

impl TwoPasses for PowerSgdMean {
    fn shared_most(&self, len: usize) -> usize {
        // A factor is shorter than its matrix.
        len
    }

    fn first(&mut self, values: &[f32], context: &EncodeContext<'_>, out: &mut Vec<u8>) {
        self.choose(context);
        self.common(context);
        out.extend_from_slice(self.header(FIRST).bytes());
        out.extend_from_slice(&self.name_of_common());
        let mut kept = self.factor.as_slice();
        let mut left = Vec::new();
        for matrix in &self.matrices {
            let right = front(&mut kept, self.rank * matrix.columns);
            left.clear();
            left.resize(self.rank * matrix.rows, 0.0);
            times_columns(
                Self::limited(&values[matrix.range()], &mut self.clamped),
                matrix.columns,
                right,
                &mut left,
            );
            push_f32s(&left, out);
        }
    }

    fn basis(&mut self, firsts: &[Weighed<'_>], of: Pass<'_>) -> Result<(), Bad> {
        let Pass { context, out, .. } = of;
        self.choose(context);
        self.common(context);
        let known = self.name_of_common();
        let lefts = self.lefts();
        let mut mean = vec![0.0; lefts];
        Bad::of_first(firsts, |(bytes, share)| {
            let (name, body) = take::<8>(self.header(FIRST).expect(bytes)?, "factor")?;
            if name != known {
                return Err(CodecError::NotHeld { field: "factor" });
            }
            add_f32s(Self::floats(body, lefts, RIGHT_MAX)?, *share, &mut mean);
            Ok(())
        })?;
        let mut from = 0;
        for matrix in &self.matrices {
            let own = &mut mean[from..][..self.rank * matrix.rows];
            from += own.len();
            orthonormalize(own, matrix.rows);
        }
        out.extend_from_slice(self.header(BASIS).bytes());
        push_f32s(&mean, out);
        Ok(())
    }

    fn second(&mut self, values: &[f32], basis: &[u8], of: Pass<'_>) -> Result<(), CodecError> {
        let Pass { context, out, .. } = of;
        self.choose(context);
        self.read_basis(basis)?;
        out.extend_from_slice(self.header(SECOND).bytes());
        out.extend_from_slice(&name_of(basis));
        let mut kept = self.factor.as_slice();
        let mut right = Vec::new();
        for matrix in &self.matrices {
            let left = front(&mut kept, self.rank * matrix.rows);
            right.clear();
            right.resize(self.rank * matrix.columns, 0.0);
            transposed_times_columns(
                Self::limited(&values[matrix.range()], &mut self.clamped),
                matrix.columns,
                left,
                &mut right,
            );
            push_f32s(&right, out);
        }
        push_between(&self.matrices, values, out);
        Ok(())
    }

    fn join(&mut self, basis: &[u8], seconds: &[Weighed<'_>], of: Pass<'_>) -> Result<(), Bad> {
        let Pass { len, context, out } = of;
        self.choose(context);
        let read = self.read_basis(basis);
        debug_assert!(read.is_ok(), "an owner reads its own basis: {read:?}");
        let (mut rights, mut others) = (vec![0.0; self.rights()], vec![0.0; self.rest(len)]);
        Bad::of_first(seconds, |(bytes, share)| {
            let (factors, rest) = self.read_second(basis, bytes, len)?;
            add_f32s(factors, *share, &mut rights);
            add_f32s(rest, *share, &mut others);
            Ok(())
        })?;
        let (matrices, lefts) = (&self.matrices, &self.factor);
        self.joined.write(matrices, lefts, &rights, &others, out);
        Ok(())
    }

    fn take_out(
        &mut self,
        own: Joined<'_>,
        context: &EncodeContext<'_>,
        residual: &mut [f32],
    ) -> Result<(), CodecError> {
        self.choose(context);
        self.read_basis(own.basis)?;
        let (factors, others) = self.read_second(own.basis, own.second, residual.len())?;
        let rights: Vec<f32> = f32s(factors).collect();
        let (mut lefts, mut rights) = (self.factor.as_slice(), rights.as_slice());
        for matrix in &self.matrices {
            let left = front(&mut lefts, self.rank * matrix.rows);
            let right = front(&mut rights, self.rank * matrix.columns);
            add_product((left, right), *matrix, -1.0, residual);
        }
        add_between(&self.matrices, others, -1.0, residual);
        Ok(())
    }

    fn keep(
        &mut self,
        joined: &[u8],
        len: usize,
        context: &EncodeContext<'_>,
        shared: &mut Vec<f32>,
    ) {
        let from = shared.len();
        let read = self.joined.rights_of(joined, len, shared);
        debug_assert!(read.is_ok(), "what was applied is read again: {read:?}");
        let mut at = from;
        self.choose(context);
        for matrix in &self.matrices {
            let end = (at + self.rank * matrix.columns).min(shared.len());
            let columns = shared[at..end].chunks_mut(matrix.columns);
            for (number, column) in columns.enumerate() {
                let length = column.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>();
                let length = length.sqrt();
                if length > 0.0 {
                    for value in column {
                        *value = (f64::from(*value) / length) as f32;
                    }
                } else {
                    let first = at - from + number * matrix.columns;
                    draw(context.shared_seed, first, column);
                }
            }
            at = end;
        }
    }
}
