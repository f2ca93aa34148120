//! Codec `fetch-sgd`: momentum and error feedback inside a sum of sketches. No member keeps a residual.

use crate::compress::codec::{Agreed, Bad, Gathering};
use crate::compress::raw::{
    Header, add_f32s, expect_finite, expect_len, expect_within, f32s, push_f32s,
};
use crate::compress::sparse::count_sketch::{CountSketch, ROWS, SUM_MAX, Scratch, WIDTH};
use crate::compress::sparse::pick::DENSITY;
use crate::compress::{
    Codec, CodecError, CodecProperties, CodecSpec, EncodeContext, Parameter, Range, Reduction,
    Sparse,
};
use core::cell::RefCell;
use murmurate_protocol::BytesBound;

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "fetch-sgd",
    tag: 54,
    summary: "sums of sketches; every member keeps the momentum and the error of the sum",
    equation: "S_u = rho S_u + mean S(x_i), S_e = S_e + S_u, moved = top-k of U(S_e), S_e = S_e - S(moved)",
    source: "Rothchild et al., ICML 2020",
    parameters: &[DENSITY, MORE_ROWS, WIDER, MOMENTUM],
    build: |kind| {
        Box::new(FetchSgd {
            sketch: CountSketch::new(kind),
            momentum: kind.number("momentum") as f32,
            table: Vec::new(),
            next: Vec::new(),
            scratch: RefCell::default(),
        })
    },
};

const MORE_ROWS: Parameter = Parameter {
    default: Some(5.0),
    about: "the number of tables, such as 5",
    ..ROWS
};

const WIDER: Parameter = Parameter {
    default: Some(0.1),
    about: "the sums of a table, as a share of the values: ten times the density or more, such as 0.1",
    ..WIDTH
};

const MOMENTUM: Parameter = Parameter {
    name: "momentum",
    range: Range::Closed(0.0, 0.999),
    default: Some(0.9),
    about: "the factor on the momentum in each round, such as 0.9",
};

/// The seed of the classes: the same in every round, because tables of all rounds are summed.
const SEED: u64 = 0x6665_7463_6873_6764;

/// The largest sum that is kept.
const KEPT_MAX: f32 = 1e36;

/// Sketches of gradients, summed over members and rounds.
///
/// ```text
/// s_i    = S(x_i)                                        what member i sends
/// S_u'   = rho S_u + sum_i w_i s_i / sum_i w_i           momentum
/// S_e'   = S_e + S_u',   moved = top_k(U(S_e')),   S_e'' = S_e' - S(moved)
/// ```
///
/// S is a count sketch, and U the median of the estimates of its rows. Sketches are linear, so
/// momentum and error of the sum are the sums of those that each member would have. No member keeps
/// its own, so members may come and go; all keep two tables in common, `2 rows width` of the
/// parameters. The paper's learning rate is that of the optimizer. U(S(x)) is no contraction of x,
/// and no error is published for one sketch. Contributions are sent relative to the anchor.
///
/// If too many of the largest values share a class (for example with three rows and twice as many
/// classes as values), the error of U exceeds the values, and the error in the sketch grows without
/// bound. Five rows with ten classes for each value are enough.
///
/// Size: `32 rows width` bits for each value, 16 by default. Magnitudes beyond 1e28 are encoded as
/// 1e28. Classes are the same in every round, so anyone can compute them.
///
/// Layout: the codec's byte, density and width (f64), rows (u8), momentum (f32), the tables (f32).
///
/// Parameters: `density`, the share of the parameters that change in a round; `rows`, the number of
/// tables; `width`, the sums of a table as a share of the values; `momentum`, rho.
///
/// Source: Rothchild et al., "FetchSGD" (ICML 2020), algorithm 1 (number not verified).
struct FetchSgd {
    sketch: CountSketch,
    momentum: f32,
    table: Vec<f32>,
    /// Momentum and error after the move that was gathered last.
    next: Vec<f32>,
    scratch: RefCell<(Vec<f32>, Scratch)>,
}

impl FetchSgd {
    fn header(&self) -> Header {
        Header::new(SPEC.tag)
            .with(self.sketch.density.to_le_bytes())
            .with(self.sketch.width.to_le_bytes())
            .with([self.sketch.rows as u8])
            .with(self.momentum.to_le_bytes())
    }

    /// The sums of `len` values.
    fn read<'a>(&self, bytes: &'a [u8], len: usize) -> Result<&'a [u8], CodecError> {
        let sums = self.header().expect(bytes)?;
        let needed = 4 * self.sketch.rows * self.sketch.width(len);
        expect_len(sums, needed, "values")?;
        expect_finite(sums, "values")?;
        expect_within(sums, SUM_MAX, "values")?;
        Ok(sums)
    }
}

impl Codec for FetchSgd {
    fn properties(&self) -> CodecProperties {
        CodecProperties {
            needs_feedback: false,
            reduction: Reduction::Gathered,
            ..CodecProperties::biased(f64::INFINITY)
        }
    }

    fn bytes_bound(&self) -> BytesBound {
        let (fixed, per_1024) = self.sketch.bound();
        self.header().bound(fixed, per_1024)
    }

    fn encode(&mut self, values: &[f32], _: &mut EncodeContext<'_>, out: &mut Vec<u8>) {
        self.sketch.fill(values, SEED, &mut self.table);
        out.extend_from_slice(self.header().bytes());
        push_f32s(&self.table, out);
    }

    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError> {
        let sums = self.read(bytes, acc.len())?;
        let (table, scratch) = &mut *self.scratch.borrow_mut();
        table.clear();
        table.extend(f32s(sums));
        self.sketch.recover(table, SEED, acc.len(), scratch);
        for place in &scratch.chosen {
            let at = *place as usize;
            acc[at] += weight * scratch.estimates[at];
        }
        Ok(())
    }

    fn gathering(&mut self) -> Option<&mut dyn Gathering> {
        Some(self)
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        Box::new(Sparse::default())
    }
}

impl Gathering for FetchSgd {
    fn shared_most(&self, len: usize) -> usize {
        2 * self.sketch.rows * self.sketch.width(len)
    }

    fn gather(&mut self, agreed: &Agreed<'_>, moved: &mut [f32]) -> Result<(), Bad> {
        let width = self.sketch.width(moved.len());
        let size = self.sketch.rows * width;
        let mut next = core::mem::take(&mut self.next);
        next.clear();
        next.extend_from_slice(agreed.shared);
        next.resize(2 * size, 0.0);
        let (momentum, error) = next.split_at_mut(size);
        momentum.iter_mut().for_each(|u| *u *= self.momentum);
        Bad::of_first(agreed.contributions, |one| {
            add_f32s(self.read(one.bytes, moved.len())?, one.share, momentum);
            if momentum.iter().any(|u| u.abs() > KEPT_MAX) {
                return Err(CodecError::OutOfRange { field: "values" });
            }
            Ok(())
        })?;
        let pairs = error.iter_mut().zip(&*momentum);
        pairs.for_each(|(e, u)| *e = (*e + u).clamp(-KEPT_MAX, KEPT_MAX));
        let (_, scratch) = self.scratch.get_mut();
        self.sketch.recover(error, SEED, moved.len(), scratch);
        for place in &scratch.chosen {
            let value = scratch.estimates[*place as usize];
            moved[*place as usize] = value;
            self.sketch.add((*place, -value), SEED, width, error);
        }
        self.next = next;
        Ok(())
    }

    fn settle(&mut self, _: &Agreed<'_>, _: &[f32], shared: &mut Vec<f32>) {
        shared.extend_from_slice(&self.next);
    }

    fn give_back(&self, _: &[u8], _: &[f32], _: &mut [f32]) -> Result<(), CodecError> {
        // What is not part of the sum is lost, as in the paper: there is no residual.
        Ok(())
    }
}
