//! Codec `gradiveq`: slices of neighbouring values by their principal components. Biased: needs error feedback.

use super::principal::{add_second_moments, push_components};
use crate::compress::codec::{Agreed, Bad, Gathering};
use crate::compress::low_rank::factors::{
    RIGHT_MAX, VALUE_MAX, add_product, between, push_between, times_columns,
};
use crate::compress::raw::{
    Header, add_f32s, expect_finite, expect_len, expect_within, front, hash_f32s, of_digits,
    push_f32s, push_u32s, take, take_u32s, to_digits,
};
use crate::compress::{
    Codec, CodecError, CodecProperties, CodecSpec, EncodeContext, F32, Matrix, Parameter, Range,
    Reduction,
};
use core::cell::RefCell;
use murmurate_protocol::BytesBound;

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "gradiveq",
    tag: 60,
    summary: "slices of neighbouring values by principal components that all members compute alike",
    equation: "c_i = U' g_i for each slice g_i, moved = U mean c_i; U: principal components of the slices of exact rounds' moves",
    source: "Yu et al., NeurIPS 2018",
    parameters: &[SLICE, KEPT, SAMPLED, COMPRESSED],
    build: |kind| {
        Box::new(GradiVeQ {
            slices: Slices {
                size: kind.count("slice"),
                kept: kind.count("kept"),
            },
            sampled: kind.count("sampled") as u32,
            compressed: kind.count("compressed") as u32,
            coefficients: Vec::new(),
            scratch: RefCell::default(),
        })
    },
};

const SLICE: Parameter = Parameter {
    name: "slice",
    range: Range::Whole(2, 512),
    default: Some(64.0),
    about: "neighbouring values that are compressed together, such as 64",
};

const KEPT: Parameter = Parameter {
    name: "kept",
    range: Range::Whole(1, 64),
    default: Some(8.0),
    about: "numbers that are sent for a slice, such as 8",
};

const SAMPLED: Parameter = Parameter {
    name: "sampled",
    range: Range::Whole(1, 1_000_000),
    default: Some(1.0),
    about: "rounds of exact values that the components are computed from, such as 1",
};

const COMPRESSED: Parameter = Parameter {
    name: "compressed",
    range: Range::Whole(1, 1_000_000),
    default: Some(99.0),
    about: "rounds that use the components before the next exact ones, such as 99",
};

/// Projections of slices onto a few directions, which all members have in common.
///
/// ```text
/// exact rounds, `sampled` in a row:   S = S + sum_s m_s m_s^T     m_s: the slices of the move
/// after the last of these:            U = the `kept` eigenvectors of the largest eigenvalues of S
/// the next `compressed` rounds:       c_is = U^T g_is             what member i sends of slice s
///                                     moved_s = U sum_i w_i c_is / sum_i w_i
/// then exact rounds again, with S = 0
/// ```
///
/// A slice is `slice` values that follow each other in a matrix, or in the values between two
/// matrices. Each of these runs has an S and a U of its own, if it has at least `slice` slices;
/// shorter runs, and the values of a run beyond its last slice, are sent exactly.
///
/// Compression is linear, so encoded contributions can be summed and are decoded once, and the mean
/// of reconstructions is the reconstruction of the mean. `||C(x) - x||^2 <= ||x||^2`, because C is
/// an orthogonal projection; no better constant is published. S and U follow from moves, which all
/// members compute alike, so no member sends them. Exact rounds also send what error feedback holds.
/// Contributions are sent relative to the anchor.
///
/// The paper subtracts the mean of the slices before it compresses. Here S is the second moment
/// about zero: a mean that matters is a direction of its own, zeros stay zeros, and a basis of old
/// rounds never makes an error larger than the values. The paper orders the values of a convolution
/// by its channels; here they have the order of the layout.
///
/// Members that see other runs than the members that S and U come from send exactly, and so does a
/// member with magnitudes beyond 1e30.
///
/// State in common: at most one f32 for each parameter. Size: `32 kept / slice` bits for each value of
/// a compressed round, 32 in an exact one. Layout: the codec's byte, slice and kept (u16), then in an
/// exact round 0 (u8), the number of runs (u32), of each its start and its slices (u32), the values
/// (f32); in a compressed one 1 (u8), the hash of the state in common (u64), for each run its
/// coefficients (f32, for one component after another), the other values (f32).
///
/// Parameters: `slice`, the paper's K; `kept`, its d; `sampled` and `compressed`, its L_t and L_c,
/// counted in exchanges of the fragment. With `kept >= slice` all rounds are exact.
///
/// Source: Yu et al., "GradiVeQ" (NeurIPS 2018), section 3 and algorithm 1 (numbers not verified).
struct GradiVeQ {
    slices: Slices,
    sampled: u32,
    compressed: u32,
    coefficients: Vec<f32>,
    scratch: RefCell<Vec<f32>>,
}

/// How values are cut into slices.
#[derive(Clone, Copy)]
struct Slices {
    /// Values of a slice.
    size: usize,
    /// Components that are kept.
    kept: usize,
}

/// What stands in common between the members, and which values it is about.
///
/// f32: 1 where components were found and 0 where moments are summed, exchanges since then, the
/// number of runs, for each its start and its slices (two digits each), then for each its components
/// (one column after another) or its second moments.
struct Standing<'a> {
    /// Its hash.
    name: u64,
    /// Set once components were found; second moments are summed before.
    found: bool,
    /// Exchanges since components were found, or in which moments were summed.
    rounds: u32,
    /// The runs, each as a matrix with a slice in every row.
    runs: Vec<Matrix>,
    /// For every run its components or moments.
    values: &'a [f32],
}

/// The numbers before the runs, and those of a run.
const HEAD: usize = 3;
const NAMED: usize = 4;

impl Slices {
    /// The part of these values that is compressed, if there are enough of them.
    fn run(&self, values: core::ops::Range<usize>) -> Option<Matrix> {
        let rows = values.len() / self.size;
        (rows >= self.size && self.kept < self.size).then_some(Matrix {
            offset: values.start,
            rows,
            columns: self.size,
        })
    }

    /// The runs of `len` values with these matrices.
    fn runs<'a>(&'a self, matrices: &'a [Matrix], len: usize) -> impl Iterator<Item = Matrix> {
        let inside = matrices.iter().map(|matrix| Some(matrix.range()));
        let parts = between(matrices, len).zip(inside.chain([None]));
        let parts = parts.flat_map(|(before, matrix)| [Some(before), matrix]);
        parts.flatten().filter_map(|part| self.run(part))
    }

    /// The run of `rows` slices from `offset` on, if it may stand after `next`.
    fn named(&self, offset: usize, rows: usize, next: usize, len: usize) -> Option<Matrix> {
        let end = rows.checked_mul(self.size)?.checked_add(offset)?;
        let run = (offset >= next && end <= len).then(|| self.run(offset..end));
        run.flatten()
    }

    /// f32 that stand in common for a run.
    const fn in_common(&self, found: bool) -> usize {
        self.size * if found { self.kept } else { self.size }
    }

    /// What stands in common of `len` values; `None` where it is nothing, or not of this codec.
    fn standing<'a>(&self, shared: &'a [f32], len: usize) -> Option<Standing<'a>> {
        let ([found, rounds, count], mut rest) = shared.split_first_chunk::<HEAD>()?;
        let (mut runs, mut next) = (Vec::new(), 0);
        for _ in 0..*count as usize {
            let ([a, b, c, d], after) = rest.split_first_chunk::<NAMED>()?;
            let run = self.named(of_digits([*a, *b]), of_digits([*c, *d]), next, len)?;
            (rest, next) = (after, run.range().end);
            runs.push(run);
        }
        let found = *found == 1.0;
        (rest.len() == runs.len() * self.in_common(found)).then(|| Standing {
            name: hash_f32s(shared),
            found,
            rounds: *rounds as u32,
            runs,
            values: rest,
        })
    }
}

/// What a contribution has after its checks.
enum Sent<'a> {
    /// The values.
    Exact(&'a [u8]),
    /// Coefficients and the values outside of runs, for these components.
    Compressed(&'a [u8], &'a Standing<'a>),
}

impl GradiVeQ {
    fn header(&self) -> Header {
        Header::new(SPEC.tag)
            .with((self.slices.size as u16).to_le_bytes())
            .with((self.slices.kept as u16).to_le_bytes())
    }

    /// Checks a contribution to `len` values.
    fn read<'a>(
        &self,
        bytes: &'a [u8],
        len: usize,
        standing: Option<&'a Standing<'a>>,
    ) -> Result<Sent<'a>, CodecError> {
        let ([mode], rest) = take::<1>(self.header().expect(bytes)?, "mode")?;
        let compressed = match mode {
            0 => return self.exact(rest, len, |_| ()).map(Sent::Exact),
            1 => rest,
            _ => return Err(CodecError::OutOfRange { field: "mode" }),
        };
        let (name, rest) = take::<8>(compressed, "components")?;
        let name = u64::from_le_bytes(name);
        let held = standing.filter(|standing| standing.found && standing.name == name);
        let held = held.ok_or(CodecError::NotHeld {
            field: "components",
        })?;
        let slices: usize = held.runs.iter().map(|run| run.rows).sum();
        let needed = len - slices * (self.slices.size - self.slices.kept);
        expect_len(rest, 4 * needed, "values")?;
        expect_finite(rest, "values")?;
        let coefficients = &rest[..4 * slices * self.slices.kept];
        expect_within(coefficients, RIGHT_MAX, "coefficients")?;
        Ok(Sent::Compressed(rest, held))
    }

    /// Checks what an exact contribution to `len` values has after its mode, and gives its values.
    fn exact<'a>(
        &self,
        bytes: &'a [u8],
        len: usize,
        mut named: impl FnMut(Matrix),
    ) -> Result<&'a [u8], CodecError> {
        let (count, mut rest) = take::<4>(bytes, "runs")?;
        let mut next = 0;
        for _ in 0..u32::from_le_bytes(count) {
            let ([offset], after) = take_u32s::<1, 4>(rest, "runs")?;
            let ([rows], after) = take_u32s::<1, 4>(after, "runs")?;
            let run = self.slices.named(offset, rows, next, len);
            let run = run.ok_or(CodecError::OutOfRange { field: "runs" })?;
            (rest, next) = (after, run.range().end);
            named(run);
        }
        expect_len(rest, 4 * len, "values")?;
        expect_finite(rest, "values")?;
        Ok(rest)
    }

    /// The runs that the first exact contribution names.
    fn first_named(&self, agreed: &Agreed<'_>, len: usize) -> Vec<Matrix> {
        for one in agreed.contributions {
            let mut runs = Vec::new();
            let body = self.header().expect(one.bytes);
            let body = body.ok().and_then(|body| body.strip_prefix(&[0]));
            let read = body.map(|body| self.exact(body, len, |run| runs.push(run)));
            if matches!(read, Some(Ok(_))) {
                return runs;
            }
        }
        Vec::new()
    }

    /// `acc += weight C`, for coefficients and other values, which may be a sum.
    fn add_compressed(
        &self,
        standing: &Standing<'_>,
        mut rest: &[f32],
        weight: f32,
        acc: &mut [f32],
    ) {
        let components = standing.values.chunks(self.slices.in_common(true));
        for (run, right) in standing.runs.iter().zip(components) {
            let left = front(&mut rest, run.rows * self.slices.kept);
            add_product((left, right), *run, weight, acc);
        }
        for between in between(&standing.runs, acc.len()) {
            let own = front(&mut rest, between.len());
            let pairs = acc[between].iter_mut().zip(own);
            pairs.for_each(|(acc, value)| *acc += weight * value);
        }
    }
}

impl Codec for GradiVeQ {
    fn properties(&self) -> CodecProperties {
        CodecProperties {
            matrices: true,
            reduction: Reduction::Gathered,
            ..CodecProperties::biased(1.0)
        }
    }

    fn bytes_bound(&self) -> BytesBound {
        // The name of a run is eight bytes for at least `slice * slice` values.
        let names = (8 * 1024_u64).div_ceil((self.slices.size * self.slices.size) as u64);
        self.header().bound(9, 4096 + names)
    }

    fn encode(&mut self, values: &[f32], context: &mut EncodeContext<'_>, out: &mut Vec<u8>) {
        let standing = self.slices.standing(context.shared, values.len());
        let small = |run: &Matrix| values[run.range()].iter().all(|v| v.abs() <= VALUE_MAX);
        let held = standing.filter(|standing| {
            let same = self.slices.runs(context.matrices, values.len());
            standing.found
                && same.eq(standing.runs.iter().copied())
                && standing.runs.iter().all(small)
        });
        out.extend_from_slice(self.header().bytes());
        out.push(u8::from(held.is_some()));
        let Some(standing) = held else {
            let count = self.slices.runs(context.matrices, values.len()).count();
            push_u32s([count], out);
            for run in self.slices.runs(context.matrices, values.len()) {
                push_u32s([run.offset, run.rows], out);
            }
            return push_f32s(values, out);
        };
        out.extend_from_slice(&standing.name.to_le_bytes());
        let components = standing.values.chunks(self.slices.in_common(true));
        for (run, right) in standing.runs.iter().zip(components) {
            self.coefficients.clear();
            self.coefficients.resize(run.rows * self.slices.kept, 0.0);
            times_columns(
                &values[run.range()],
                run.columns,
                right,
                &mut self.coefficients,
            );
            push_f32s(&self.coefficients, out);
        }
        push_between(&standing.runs, values, out);
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
        let standing = self.slices.standing(shared, acc.len());
        match self.read(bytes, acc.len(), standing.as_ref())? {
            Sent::Exact(values) => add_f32s(values, weight, acc),
            Sent::Compressed(values, standing) => {
                let sent = &mut *self.scratch.borrow_mut();
                sent.clear();
                sent.resize(values.len() / 4, 0.0);
                add_f32s(values, 1.0, sent);
                self.add_compressed(standing, sent, weight, acc);
            }
        }
        Ok(())
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        Box::new(F32)
    }

    fn gathering(&mut self) -> Option<&mut dyn Gathering> {
        Some(self)
    }
}

impl Gathering for GradiVeQ {
    fn shared_most(&self, len: usize) -> usize {
        // A run has at least `slice` slices, and moments take more than components.
        let runs = len / (self.slices.size * self.slices.size);
        HEAD + runs * (NAMED + self.slices.in_common(false))
    }

    fn gather(&mut self, agreed: &Agreed<'_>, moved: &mut [f32]) -> Result<(), Bad> {
        let standing = self.slices.standing(agreed.shared, moved.len());
        let mut sum = core::mem::take(self.scratch.get_mut());
        sum.clear();
        Bad::of_first(agreed.contributions, |one| {
            match self.read(one.bytes, moved.len(), standing.as_ref())? {
                Sent::Exact(values) => add_f32s(values, one.share, moved),
                Sent::Compressed(values, _) => {
                    sum.resize(values.len() / 4, 0.0);
                    add_f32s(values, one.share, &mut sum);
                }
            }
            Ok(())
        })?;
        if let Some(standing) = standing.filter(|_| !sum.is_empty()) {
            self.add_compressed(&standing, &sum, 1.0, moved);
        }
        self.scratch.replace(sum);
        Ok(())
    }

    fn settle(&mut self, agreed: &Agreed<'_>, moved: &[f32], shared: &mut Vec<f32>) {
        let standing = self.slices.standing(agreed.shared, moved.len());
        let rounds = standing.as_ref().map_or(0, |standing| standing.rounds) + 1;
        let (runs, sums) = match standing {
            Some(standing) if standing.found => {
                if rounds < self.compressed {
                    shared.extend_from_slice(agreed.shared);
                    shared[1] = rounds as f32;
                }
                return;
            }
            Some(standing) => (standing.runs, standing.values),
            None => (self.first_named(agreed, moved.len()), &[][..]),
        };
        if runs.is_empty() {
            return;
        }
        let found = rounds >= self.sampled;
        let (state, age) = if found { (1.0, 0) } else { (0.0, rounds) };
        shared.extend([state, age as f32, runs.len() as f32]);
        for number in runs.iter().flat_map(|run| [run.offset, run.rows]) {
            shared.extend(to_digits(number));
        }
        let mut sums = sums.chunks(self.slices.in_common(false));
        for run in &runs {
            let mut moments = vec![0.0; self.slices.in_common(false)];
            let before = sums.next().unwrap_or_default();
            let pairs = moments.iter_mut().zip(before);
            pairs.for_each(|(moment, before)| *moment = f64::from(*before));
            add_second_moments(&moved[run.range()], self.slices.size, &mut moments);
            if found {
                push_components(&moments, self.slices.size, self.slices.kept, shared);
            } else {
                let most = f64::from(f32::MAX);
                shared.extend(moments.iter().map(|m| m.clamp(-most, most) as f32));
            }
        }
    }
}
