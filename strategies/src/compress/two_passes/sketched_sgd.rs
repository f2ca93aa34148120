//! Codec `sketched-sgd`: the sum of sketches says where the largest values of the mean may be, and members
//! send these exactly. Biased: needs error feedback.

use crate::compress::codec::{Bad, Joined, Pass, TwoPasses, Weighed, name_of};
use crate::compress::raw::{
    Header, add_f32s, expect_finite, expect_len, expect_within, push_f32s, take,
};
use crate::compress::sparse::count_sketch::{CountSketch, ROWS, SUM_MAX, Scratch, WIDTH};
use crate::compress::sparse::largest::Largest;
use crate::compress::sparse::pick::{DENSITY, kept};
use crate::compress::sparse::select::Source;
use crate::compress::sparse::{exact, places};
use crate::compress::{
    Codec, CodecError, CodecKind, CodecProperties, CodecSpec, EncodeContext, Parameter, Range,
    Reduction,
};
use murmurate_protocol::BytesBound;

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "sketched-sgd",
    tag: 58,
    summary: "sums of sketches name candidates, of which exact values are summed and the largest kept",
    equation: "I = top-Pk of U(sum_i w_i S(x_i)), moved = top-k of sum_i w_i x_i on I",
    source: "Ivkin et al., NeurIPS 2019; Shi et al., INFOCOM 2021 (gs-SGD)",
    parameters: &[DENSITY, ROWS, WIDTH, CANDIDATES],
    build: |kind| Box::new(SketchedSgd::new(kind)),
};

const CANDIDATES: Parameter = Parameter {
    name: "candidates",
    range: Range::Whole(1, 16),
    default: Some(4.0),
    about: "how many times as many exact values are sent as are kept, such as 4",
};

/// Which values of the mean are the largest by a sum of sketches, and these values exactly.
///
/// ```text
/// S_i = S(x_i),          I = places of the P k largest of U(sum_i w_i S_i / sum_i w_i)     first pass
/// y_i = x_i on I,        moved = the k largest of sum_i w_i y_i / sum_i w_i                 second pass
/// e_i' = x_i, without the places that moved
/// ```
///
/// S is a count sketch, and U the median of the estimates of its rows. x_i is a member's contribution plus
/// its residual e_i. Sketches with the same seed are linear, so U estimates the mean of all members. What
/// moves is exact, and at a place that does not move each member keeps all of its own value: `||x - C(x)||^2
/// <= ||x||^2`. Members keep nothing in common. Contributions are sent relative to the anchor.
///
/// Size: `32 rows width` bits for each value in the first pass, and the places of the candidates back; 32 bits
/// for each candidate in the second, and a sparse mean back. Magnitudes beyond 1e28 are sketched as 1e28.
///
/// Layout: the codec's byte, density and width (f64), rows and candidates (u8). Then, of a first contribution,
/// 1 (u8) and the sums (f32); of a basis, 2 (u8) and places; of a second contribution, 3 (u8), the hash of the
/// basis (u64) and the values (f32); of the aggregate, 4 (u8) and a sparse body.
///
/// Parameters: `density`, k as a share of the values; `rows`, the number of tables; `width`, the sums of a
/// table as a share of the values; `candidates`, P.
///
/// Source: Ivkin et al., "Communication-efficient distributed SGD with sketching" (NeurIPS 2019), algorithm
/// 2, whose server asks for exact values; gs-SGD sums the sketches by an all-reduce (names of the latter not
/// verified).
struct SketchedSgd {
    sketch: CountSketch,
    density: f64,
    candidates: usize,
    table: Vec<f32>,
    own: Vec<f32>,
    scratch: Scratch,
    largest: Largest,
    chosen: Vec<u32>,
    kind: CodecKind,
}

const FIRST: u8 = 1;
const BASIS: u8 = 2;
const SECOND: u8 = 3;
const JOINED: u8 = 4;

impl SketchedSgd {
    fn new(kind: &CodecKind) -> Self {
        let (density, candidates) = (kind.number("density"), kind.count("candidates"));
        let mut sketch = CountSketch::new(kind);
        sketch.density = (density * candidates as f64).min(1.0);
        Self {
            sketch,
            density,
            candidates,
            table: Vec::new(),
            own: Vec::new(),
            scratch: Scratch::default(),
            largest: Largest::default(),
            chosen: Vec::new(),
            kind: *kind,
        }
    }

    fn header(&self, stage: u8) -> Header {
        Header::new(SPEC.tag)
            .with(self.density.to_le_bytes())
            .with(self.sketch.width.to_le_bytes())
            .with([self.sketch.rows as u8, self.candidates as u8])
            .with([stage])
    }

    /// The places of a basis, into `self.chosen`.
    fn read_basis(&mut self, basis: &[u8], len: usize) -> Result<(), CodecError> {
        let body = self.header(BASIS).expect(basis)?;
        let most = kept(self.sketch.density, len);
        let rest = places::read(body, len, most, &mut self.chosen)?;
        expect_len(rest, 0, "places")
    }

    /// The values of a second contribution to these places.
    fn read_second<'a>(&self, basis: &[u8], second: &'a [u8]) -> Result<&'a [u8], CodecError> {
        let (name, body) = take::<8>(self.header(SECOND).expect(second)?, "basis")?;
        if name != name_of(basis) {
            return Err(CodecError::NotHeld { field: "basis" });
        }
        expect_len(body, 4 * self.chosen.len(), "values")?;
        expect_finite(body, "values")?;
        Ok(body)
    }

    /// Appends the places of the largest estimates of a table.
    fn write_basis(&mut self, len: usize, seed: u64, out: &mut Vec<u8>) {
        self.sketch
            .recover(&self.table, seed, len, &mut self.scratch);
        out.extend_from_slice(self.header(BASIS).bytes());
        places::write(&self.scratch.chosen, len, out);
    }

    /// Appends the largest of values that are zero but at candidates.
    fn write_joined(&mut self, mean: &[f32], seed: u64, out: &mut Vec<u8>) {
        let wanted = kept(self.density, mean.len());
        let mut source = Source::Values(mean);
        self.largest
            .choose(&mut source, wanted, seed, &mut self.chosen);
        out.extend_from_slice(self.header(JOINED).bytes());
        exact::write(mean, &self.chosen, out);
    }
}

impl Codec for SketchedSgd {
    fn properties(&self) -> CodecProperties {
        CodecProperties {
            stochastic: true,
            shared_seed: true,
            reduction: Reduction::TwoPasses,
            ..CodecProperties::biased(1.0)
        }
    }

    fn bytes_bound(&self) -> BytesBound {
        let (fixed, per_1024) = self.sketch.bound();
        let exact = exact::bound(self.sketch.density);
        let header = self.header(FIRST);
        header.bound(16 + fixed + exact.fixed, per_1024.max(exact.per_1024))
    }

    fn encode(&mut self, values: &[f32], context: &mut EncodeContext<'_>, out: &mut Vec<u8>) {
        let seed = context.shared_seed;
        let mut table = core::mem::take(&mut self.table);
        self.sketch.fill(values, seed, &mut table);
        self.table = table;
        self.sketch
            .recover(&self.table, seed, values.len(), &mut self.scratch);
        let mut own = core::mem::take(&mut self.own);
        own.clear();
        own.resize(values.len(), 0.0);
        for place in &self.scratch.chosen {
            own[*place as usize] = values[*place as usize];
        }
        self.write_joined(&own, seed, out);
        self.own = own;
    }

    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError> {
        let body = self.header(JOINED).expect(bytes)?;
        exact::add(body, acc.len(), weight, acc)
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        Box::new(Self::new(&self.kind))
    }

    fn two_passes(&mut self) -> Option<&mut dyn TwoPasses> {
        Some(self)
    }
}

impl TwoPasses for SketchedSgd {
    fn shared_most(&self, _: usize) -> usize {
        0
    }

    fn first(&mut self, values: &[f32], context: &EncodeContext<'_>, out: &mut Vec<u8>) {
        let mut table = core::mem::take(&mut self.table);
        self.sketch.fill(values, context.shared_seed, &mut table);
        out.extend_from_slice(self.header(FIRST).bytes());
        push_f32s(&table, out);
        self.table = table;
    }

    fn basis(&mut self, firsts: &[Weighed<'_>], of: Pass<'_>) -> Result<(), Bad> {
        let sums = self.sketch.rows * self.sketch.width(of.len);
        self.table.clear();
        self.table.resize(sums, 0.0);
        let header = self.header(FIRST);
        Bad::of_first(firsts, |(bytes, share)| {
            let body = header.expect(bytes)?;
            expect_len(body, 4 * sums, "values")?;
            expect_finite(body, "values")?;
            expect_within(body, SUM_MAX, "values")?;
            add_f32s(body, *share, &mut self.table);
            Ok(())
        })?;
        self.write_basis(of.len, of.context.shared_seed, of.out);
        Ok(())
    }

    fn second(&mut self, values: &[f32], basis: &[u8], of: Pass<'_>) -> Result<(), CodecError> {
        self.read_basis(basis, values.len())?;
        of.out.extend_from_slice(self.header(SECOND).bytes());
        of.out.extend_from_slice(&name_of(basis));
        for place in &self.chosen {
            of.out
                .extend_from_slice(&values[*place as usize].to_le_bytes());
        }
        Ok(())
    }

    fn join(&mut self, basis: &[u8], seconds: &[Weighed<'_>], of: Pass<'_>) -> Result<(), Bad> {
        let read = self.read_basis(basis, of.len);
        debug_assert!(read.is_ok(), "an owner reads its own basis: {read:?}");
        let mut sums = vec![0.0; self.chosen.len()];
        Bad::of_first(seconds, |(bytes, share)| {
            add_f32s(self.read_second(basis, bytes)?, *share, &mut sums);
            Ok(())
        })?;
        let mut mean = vec![0.0; of.len];
        for (place, sum) in self.chosen.iter().zip(&sums) {
            mean[*place as usize] = *sum;
        }
        self.write_joined(&mean, of.context.shared_seed, of.out);
        Ok(())
    }

    fn take_out(
        &mut self,
        own: Joined<'_>,
        _: &EncodeContext<'_>,
        residual: &mut [f32],
    ) -> Result<(), CodecError> {
        self.read_basis(own.basis, residual.len())?;
        let values = self.read_second(own.basis, own.second)?;
        let mut moved = vec![0.0; residual.len()];
        self.decode_add(own.aggregate, 1.0, &mut moved)?;
        for (place, value) in self.chosen.iter().zip(values.as_chunks::<4>().0) {
            let at = *place as usize;
            if moved[at] != 0.0 {
                residual[at] -= f32::from_le_bytes(*value);
            }
        }
        Ok(())
    }

    fn keep(&mut self, _: &[u8], _: usize, _: &EncodeContext<'_>, _: &mut Vec<f32>) {}
}
