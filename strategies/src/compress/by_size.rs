//! Codec `by-size`: one codec for large matrices and another for everything else.

use super::{
    Codec, CodecError, CodecKind, CodecProperties, CodecSpec, EncodeContext, Parameter, Range,
    Sparse,
};
use crate::compress::raw::{Header, Inner, between, push_u32s, take, take_u32s};
use crate::compress::sparse::pick::INNER_DENSITY;
use crate::compress::sparse::values::VALUES;
use core::cell::RefCell;
use murmurate_protocol::BytesBound;
use std::ops::Range as Places;

pub(super) const SPEC: CodecSpec = CodecSpec {
    name: "by-size",
    tag: 45,
    summary: "large matrices in one codec; small ones, biases and other vectors in another",
    equation: "C(x) = (L(x_large), S(x_rest)), x_large the matrices of at least `below` values",
    source: "Vogels et al., NeurIPS 2019, section 3; Lin et al., ICLR 2018",
    parameters: &[LARGE, INNER_DENSITY, VALUES, BELOW, SMALL],
    build: |kind| Box::new(BySize::new(kind)),
};

const LARGES: [&str; 8] = [
    "top-k",
    "top-k-sampled",
    "chunk-top-k",
    "random-k",
    "ef-sign",
    "int8",
    "int4",
    "qsgd",
];

const LARGE: Parameter = Parameter {
    name: "large",
    range: Range::Choice(&LARGES),
    default: Some(0.0),
    about: "the codec of large matrices, such as \"top-k\"",
};

const BELOW: Parameter = Parameter {
    name: "below",
    range: Range::Whole(1, 1 << 30),
    default: Some(4096.0),
    about: "matrices of fewer values count as small, such as 4096",
};

const SMALLS: [&str; 4] = ["f32", "bf16", "fp16", "int8"];

const SMALL: Parameter = Parameter {
    name: "small",
    range: Range::Choice(&SMALLS),
    default: Some(0.0),
    about: "the codec of everything else, such as \"bf16\"",
};

/// Bytes that describe a run of large values.
const NAMED: usize = 8;

/// One codec for tensors of two dimensions with at least `below` values, another for the rest.
///
/// ```text
/// C(x) = (L(x_large), S(x_small)),   ||C(x) - x||^2 <= max(c_L, c_S) ||x||^2
/// ```
///
/// x_large has the values of such matrices, one matrix after another; x_small has the rest. Biases,
/// norms and small matrices are few values, and training is most sensitive to their errors. C is
/// biased, stochastic and so on if L or S is; its error is the larger of the two. Contributions are
/// sent relative to the anchor. The tensors of a reduction are not known, so reductions return
/// exactly.
///
/// Size: those of L and S, and 8 bytes for each run of large values. Layout: the codec's byte, the
/// two codecs (u8 each), their density (f64) and values (u8), `below` (u32); the number of large
/// runs (u32), the start and the length of each (u32); the bytes of L (u32), L's encoding, S's. A
/// slice without a whole row of a matrix is one run, which is large if it has at least `below`
/// values. Without large runs L encodes nothing.
///
/// Parameters: `large`, L, with its `density` and `values`; `below`, the number of values from
/// which a matrix is large; `small`, S.
///
/// Source: Vogels, Karimireddy and Jaggi, "PowerSGD" (NeurIPS 2019), section 3 (vectors are sent
/// exactly; number not verified); Lin et al., "Deep gradient compression" (ICLR 2018).
struct BySize {
    below: usize,
    header: Header,
    large: Inner,
    small: Inner,
    scratch: RefCell<Scratch>,
}

#[derive(Default)]
struct Scratch {
    runs: Vec<Places<usize>>,
    large: Vec<f32>,
    small: Vec<f32>,
    bytes: Vec<u8>,
}

impl BySize {
    fn new(kind: &CodecKind) -> Self {
        let number = |name| kind.count(name) as u8;
        Self {
            below: kind.count("below"),
            header: Header::new(SPEC.tag)
                .with([number("large"), number("small")])
                .with(kind.number("density").to_le_bytes())
                .with([number("values")])
                .with((kind.count("below") as u32).to_le_bytes()),
            large: Inner::named(kind, "large"),
            small: Inner::named(kind, "small"),
            scratch: RefCell::default(),
        }
    }

    /// Leaves the large runs of `len` values in the scratch.
    fn part(&mut self, len: usize, context: &EncodeContext<'_>) {
        let runs = &mut self.scratch.get_mut().runs;
        runs.clear();
        let all = context.matrices.iter().map(super::Matrix::range);
        runs.extend(all.filter(|run| run.len() >= self.below));
        if context.matrices.is_empty() && len >= self.below {
            runs.push(0..len);
        }
    }

    /// Reads the runs; gives the two encodings.
    fn read<'a>(
        &self,
        bytes: &'a [u8],
        len: usize,
        runs: &mut Vec<Places<usize>>,
    ) -> Result<(&'a [u8], &'a [u8]), CodecError> {
        let (count, mut rest) = take::<4>(self.header.expect(bytes)?, "runs")?;
        let mut next = 0;
        runs.clear();
        for _ in 0..u32::from_le_bytes(count) {
            let ([start, long], after) = take_u32s::<2, NAMED>(rest, "runs")?;
            rest = after;
            let end = start.checked_add(long).filter(|end| *end <= len);
            let Some(end) = end.filter(|_| start >= next && long >= self.below) else {
                return Err(CodecError::OutOfRange { field: "runs" });
            };
            runs.push(start..end);
            next = end;
        }
        let (long, rest) = take::<4>(rest, "large")?;
        let needed = u32::from_le_bytes(long) as usize;
        let found = rest.len();
        rest.split_at_checked(needed).ok_or(CodecError::Length {
            field: "large",
            needed,
            found,
        })
    }
}

impl Codec for BySize {
    fn properties(&self) -> CodecProperties {
        let (l, s) = (self.large.properties(), self.small.properties());
        CodecProperties {
            lossless: l.lossless && s.lossless,
            unbiased: l.unbiased && s.unbiased,
            needs_feedback: l.needs_feedback || s.needs_feedback,
            stochastic: l.stochastic || s.stochastic,
            dense: l.dense && s.dense,
            error: l.error.max(s.error),
            shared_seed: l.shared_seed || s.shared_seed,
            matrices: true,
            ..CodecProperties::LOSSLESS
        }
    }

    fn bytes_bound(&self) -> BytesBound {
        let (l, s) = (self.large.bytes_bound(), self.small.bytes_bound());
        // Each part rounds its share up; no more runs are large than fit.
        let most = l.per_1024.max(s.per_1024);
        let named = (NAMED * 1024).div_ceil(self.below) as u64;
        BytesBound {
            fixed: (self.header.bytes().len() + 8 + NAMED) as u64 + l.fixed + s.fixed + most,
            per_1024: most + named,
        }
    }

    fn encode(&mut self, values: &[f32], context: &mut EncodeContext<'_>, out: &mut Vec<u8>) {
        self.part(values.len(), context);
        out.extend_from_slice(self.header.bytes());
        let Scratch {
            runs,
            large,
            small,
            bytes,
        } = self.scratch.get_mut();
        push_u32s([runs.len()], out);
        large.clear();
        for run in &*runs {
            push_u32s([run.start, run.len()], out);
            large.extend_from_slice(&values[run.clone()]);
        }
        small.clear();
        between(runs.iter().cloned(), values.len())
            .for_each(|run| small.extend_from_slice(&values[run]));
        bytes.clear();
        self.large.encode(large, context, bytes);
        push_u32s([bytes.len()], out);
        out.extend_from_slice(bytes);
        self.small.encode(small, context, out);
    }

    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError> {
        let scratch = &mut *self.scratch.borrow_mut();
        let (first, second) = self.read(bytes, acc.len(), &mut scratch.runs)?;
        let count = scratch.runs.iter().map(Places::len).sum();
        let parts = [
            (&self.large, first, count, &mut scratch.large),
            (&self.small, second, acc.len() - count, &mut scratch.small),
        ];
        for (codec, bytes, count, values) in parts {
            values.clear();
            values.resize(count, 0.0);
            codec.decode_add(bytes, 1.0, values)?;
        }
        let add = |acc: &mut [f32], values: &[f32]| {
            acc.iter_mut()
                .zip(values)
                .for_each(|(a, v)| *a += weight * v);
        };
        let mut at = 0;
        for run in &scratch.runs {
            let end = at + run.len();
            add(&mut acc[run.clone()], &scratch.large[at..end]);
            at = end;
        }
        at = 0;
        for run in between(scratch.runs.iter().cloned(), acc.len()) {
            let end = at + run.len();
            add(&mut acc[run], &scratch.small[at..end]);
            at = end;
        }
        Ok(())
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        Box::new(Sparse::default())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Matrix;
    use super::*;

    #[test]
    fn large_matrices_are_thinned_out_and_the_rest_goes_whole() {
        let kind = CodecKind::new("by-size", &[("density", 0.1), ("below", 40.0)]).unwrap();
        let mut codec = kind.build();
        let values: Vec<f32> = (0..100).map(|i| 1.0 + (i * 37 % 101) as f32).collect();
        let matrix = |offset, rows, columns| Matrix {
            offset,
            rows,
            columns,
        };
        // Ten values of a vector, 50 of a large matrix, 30 of a small one, ten of a vector.
        let matrices = [matrix(10, 5, 10), matrix(60, 3, 10)];
        let (mut bytes, mut memory) = (Vec::new(), Vec::new());
        let mut context = EncodeContext::seeded(1, &mut memory);
        context.matrices = &matrices;
        codec.encode(&values, &mut context, &mut bytes);
        let mut decoded = vec![0.0; 100];
        codec.decode_add(&bytes, 1.0, &mut decoded).unwrap();
        assert_eq!(decoded[..10], values[..10]);
        assert_eq!(decoded[60..], values[60..]);
        let mut sorted = values[10..60].to_vec();
        sorted.sort_by(|a, b| b.total_cmp(a));
        for (d, v) in decoded[10..60].iter().zip(&values[10..60]) {
            assert_eq!(*d, if *v >= sorted[4] { *v } else { 0.0 });
        }
        // A run that is too short, or lies in another, is nothing that was written.
        let at = codec.bytes_bound().fixed; // beyond the header in any case
        assert!(at > 21);
        for (place, byte) in [(21, 200), (25, 39), (25, 91)] {
            let mut bad = bytes.clone();
            bad[place] = byte;
            let refused = codec.decode_add(&bad, 1.0, &mut decoded);
            assert_eq!(refused, Err(CodecError::OutOfRange { field: "runs" }));
        }
    }

    #[test]
    fn a_slice_without_a_whole_row_is_one_run() {
        let kind = CodecKind::new("by-size", &[("density", 0.1), ("below", 40.0)]).unwrap();
        let mut codec = kind.build();
        for (len, kept) in [(39, 39), (40, 4)] {
            let values = vec![1.0; len];
            let (mut bytes, mut memory) = (Vec::new(), Vec::new());
            codec.encode(
                &values,
                &mut EncodeContext::seeded(1, &mut memory),
                &mut bytes,
            );
            let mut decoded = vec![0.0f32; len];
            codec.decode_add(&bytes, 1.0, &mut decoded).unwrap();
            assert_eq!(decoded.iter().sum::<f32>(), kept as f32);
        }
    }
}
