//! Codec `count-sketch`: sums over random classes of places, from which the largest values can be
//! estimated. Biased: needs error feedback.

use super::classes::{ROWS_MAX, class, fill_row, medians, signed};
use super::largest::Largest;
use super::pick::{DENSITY, kept};
use super::select::Source;
use crate::compress::random::Random;
use crate::compress::raw::{
    Header, expect_finite, expect_len, expect_within, f32s, push_f32s, take,
};
use crate::compress::{
    Codec, CodecError, CodecKind, CodecProperties, CodecSpec, EncodeContext, Parameter, Range,
    Sparse,
};
use core::cell::RefCell;
use murmurate_protocol::BytesBound;

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "count-sketch",
    tag: 42,
    summary: "sums over random classes of places, from which the largest values are estimated",
    equation: "S_{j, h_j(i)} += g_j(i) x_i, C(x)_i = median over j of g_j(i) S_{j, h_j(i)} at the k largest",
    source: "Rothchild et al., ICML 2020; Charikar et al., ICALP 2002",
    parameters: &[DENSITY, ROWS, WIDTH],
    build: |kind| Box::new(CountSketch::new(kind)),
};

pub(in crate::compress) const ROWS: Parameter = Parameter {
    name: "rows",
    range: Range::Whole(1, ROWS_MAX as u32),
    default: Some(3.0),
    about: "the number of tables, such as 3",
};

pub(in crate::compress) const WIDTH: Parameter = Parameter {
    name: "width",
    range: Range::OpenClosed(0.0, 1.0),
    default: Some(0.02),
    about: "the sums of a table, as a share of the values, such as 0.02",
};

/// The largest magnitude that is encoded.
const VALUE_MAX: f32 = 1e28;

/// The largest sum that is decoded.
pub(in crate::compress) const SUM_MAX: f32 = 1e37;

/// A count sketch and the largest values that are estimated from it.
///
/// ```text
/// S_r[h_r(i)] += s_r(i) x_i          for r in 1..=rows, h a random class of w, s a random sign
/// y_i   = median over r of s_r(i) S_r[h_r(i)] where that is among the k largest, else 0
/// C(x)  = alpha y,   alpha = <x, y> / ||y||^2 in [0, 1]
/// ```
///
/// alpha makes C(x) a projection, so that the error is never longer than x, however many values
/// share a class: `||C(x) - x||^2 <= ||x||^2`. `32 rows width` bits for each value, 1.92 by
/// default. Contributions are sent relative to the anchor.
///
/// Sketches with the same seed are linear, but each peer has its own alpha and its own largest
/// values. [`fetch-sgd`](crate::compress) sums sketches; it needs an exchange that shows all
/// members the encoded contributions.
///
/// Layout: the codec's byte, density and width (f64), rows (u8), the seed (u64), alpha (f32), the
/// tables (f32). Magnitudes beyond 1e28 are encoded as 1e28.
///
/// Time: for each value, encoding reads or writes `2 rows` sums at random places and decoding
/// `rows`. The hashes and medians between them are cheap; these accesses bound the speed.
///
/// Source: Charikar, Chen and Farach-Colton, "Finding frequent items in data streams" (ICALP 2002);
/// Rothchild et al., "FetchSGD" (ICML 2020).
pub(in crate::compress) struct CountSketch {
    pub(in crate::compress) density: f64,
    pub(in crate::compress) rows: usize,
    pub(in crate::compress) width: f64,
    table: Vec<f32>,
    scratch: RefCell<Scratch>,
}

/// Estimates from a table, and the largest of them.
#[derive(Default)]
pub(in crate::compress) struct Scratch {
    table: Vec<f32>,
    pub(in crate::compress) estimates: Vec<f32>,
    pub(in crate::compress) chosen: Vec<u32>,
    largest: Largest,
}

impl CountSketch {
    pub(in crate::compress) fn new(kind: &CodecKind) -> Self {
        Self {
            density: kind.number("density"),
            rows: kind.count("rows"),
            width: kind.number("width"),
            table: Vec::new(),
            scratch: RefCell::default(),
        }
    }

    fn header(&self) -> Header {
        Header::new(SPEC.tag)
            .with(self.density.to_le_bytes())
            .with(self.width.to_le_bytes())
            .with([self.rows as u8])
    }

    /// Bounds of a table: bytes beside its share, and bytes for each 1024 values.
    pub(in crate::compress) fn bound(&self) -> (u64, u64) {
        let row = (4.0 * 1024.0 * self.width).ceil() as u64;
        (8 * self.rows as u64, row * self.rows as u64)
    }

    pub(in crate::compress) fn width(&self, len: usize) -> usize {
        kept(self.width, len)
    }

    /// Adds the sketch of one value at one place.
    pub(in crate::compress) fn add(
        &self,
        (at, value): (u32, f32),
        seed: u64,
        width: usize,
        table: &mut [f32],
    ) {
        for row in 0..self.rows {
            let random = Random::new(seed.wrapping_add(row as u64));
            let (class, sign) = class(random, at, width);
            table[row * width + class as usize] += signed(value, sign);
        }
    }

    /// Leaves the sketch of all values in `table`.
    pub(in crate::compress) fn fill(&self, values: &[f32], seed: u64, table: &mut Vec<f32>) {
        let width = self.width(values.len());
        table.clear();
        table.resize(self.rows * width, 0.0);
        for row in 0..self.rows {
            let random = Random::new(seed.wrapping_add(row as u64));
            let sums = &mut table[row * width..(row + 1) * width];
            fill_row(values, VALUE_MAX, random, sums);
        }
    }

    /// Leaves the estimates of all values in the scratch, and the places of the largest.
    pub(in crate::compress) fn recover(
        &self,
        table: &[f32],
        seed: u64,
        len: usize,
        scratch: &mut Scratch,
    ) {
        let width = self.width(len);
        let randoms: [Random; ROWS_MAX] =
            core::array::from_fn(|row| Random::new(seed.wrapping_add(row as u64)));
        scratch.estimates.clear();
        medians(
            table,
            &randoms[..self.rows],
            width,
            len,
            &mut scratch.estimates,
        );
        let wanted = kept(self.density, len);
        let mut source = Source::Values(&scratch.estimates);
        let chosen = &mut scratch.chosen;
        scratch.largest.choose(&mut source, wanted, seed, chosen);
    }
}

impl Codec for CountSketch {
    fn properties(&self) -> CodecProperties {
        CodecProperties {
            stochastic: true,
            shared_seed: true,
            ..CodecProperties::biased(1.0)
        }
    }

    fn bytes_bound(&self) -> BytesBound {
        let (fixed, per_1024) = self.bound();
        self.header().bound(8 + 4 + fixed, per_1024)
    }

    fn encode(&mut self, values: &[f32], context: &mut EncodeContext<'_>, out: &mut Vec<u8>) {
        let seed = context.shared_seed;
        let mut table = core::mem::take(&mut self.table);
        self.fill(values, seed, &mut table);
        let mut scratch = self.scratch.take();
        self.recover(&table, seed, values.len(), &mut scratch);
        let (mut with, mut own) = (0.0, 0.0);
        for place in &scratch.chosen {
            let x = f64::from(values[*place as usize]);
            let y = f64::from(scratch.estimates[*place as usize]);
            (with, own) = (with + x * y, own + y * y);
        }
        let alpha = if own > 0.0 {
            (with / own).clamp(0.0, 1.0)
        } else {
            0.0
        };
        out.extend_from_slice(self.header().bytes());
        out.extend_from_slice(&seed.to_le_bytes());
        out.extend_from_slice(&(alpha as f32).to_le_bytes());
        push_f32s(&table, out);
        self.scratch.replace(scratch);
        self.table = table;
    }

    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError> {
        let (seed, rest) = take(self.header().expect(bytes)?, "seed")?;
        let (alpha, sums) = take(rest, "scale")?;
        let alpha = f32::from_le_bytes(alpha);
        if !(0.0..=1.0).contains(&alpha) {
            return Err(CodecError::OutOfRange { field: "scale" });
        }
        expect_len(sums, 4 * self.rows * self.width(acc.len()), "values")?;
        expect_finite(sums, "values")?;
        expect_within(sums, SUM_MAX, "values")?;
        let scratch = &mut *self.scratch.borrow_mut();
        let mut table = core::mem::take(&mut scratch.table);
        table.clear();
        table.extend(f32s(sums));
        self.recover(&table, u64::from_le_bytes(seed), acc.len(), scratch);
        for place in &scratch.chosen {
            let at = *place as usize;
            acc[at] += weight * (alpha * scratch.estimates[at]);
        }
        scratch.table = table;
        Ok(())
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        Box::new(Sparse::default())
    }
}
