//! Sparsifiers. A rule says which values are kept. `Picked` makes a codec of the rule: it packs
//! places and values, applies error feedback in as few passes as possible, and uses any codec for
//! the values.

use super::select::Source;
use super::{places, values};
use crate::compress::raw::{Header, Inner};
use crate::compress::{
    Codec, CodecError, CodecKind, CodecProperties, CodecSpec, EncodeContext, Parameter, Range,
    Sparse,
};
use core::cell::RefCell;
use murmurate_protocol::BytesBound;

/// The share of the values that a sparsifier keeps, in (0, 1].
pub(in crate::compress) const DENSITY: Parameter = Parameter {
    name: "density",
    range: Range::OpenClosed(0.0, 1.0),
    default: None,
    about: "the share of values that are kept, such as 0.01",
};

/// As [`DENSITY`], for codecs that contain another codec; one percent by default.
pub(in crate::compress) const INNER_DENSITY: Parameter = Parameter {
    default: Some(0.01),
    ..DENSITY
};

/// The factor on the residual in each round: `v_t = delta_t + decay e_t`.
pub(in crate::compress) const DECAY: Parameter = Parameter {
    name: "decay",
    range: Range::OpenClosed(0.0, 1.0),
    default: Some(1.0),
    about: "the factor on the residual in each round, such as 0.95",
};

/// `ceil(density * len)`.
pub(in crate::compress) fn kept(density: f64, len: usize) -> usize {
    ((density * len as f64).ceil() as usize).min(len)
}

/// Which values are kept.
pub(in crate::compress) trait Pick: Send + 'static {
    /// Its properties with exact values and without decay.
    fn properties(&self) -> CodecProperties;

    /// The largest share of the values that it keeps; the count is the share of `len`, rounded up.
    fn density_max(&self) -> f64;

    /// Appends the parameters that decoders must have in common to the opening byte.
    fn parameters(&self, opening: Header) -> Header {
        opening.with(self.density_max().to_le_bytes())
    }

    /// How many values it may keep beyond that share.
    fn beyond(&self) -> usize {
        1
    }

    /// How many of `len` values it keeps at most.
    fn most(&self, len: usize) -> usize {
        kept(self.density_max(), len)
    }

    /// Leaves the places of the kept values in `chosen`, ascending, and all of `source` folded.
    fn choose(
        &mut self,
        source: &mut Source<'_>,
        context: &mut EncodeContext<'_>,
        chosen: &mut Vec<u32>,
    );

    /// Replaces the kept values by those that are sent.
    fn rescale(&self, _places: &[u32], _values: &mut [f32]) {}

    fn write_places(&self, chosen: &[u32], len: usize, _: &EncodeContext<'_>, out: &mut Vec<u8>) {
        places::write(chosen, len, out);
    }

    /// Reads what `write_places` wrote; gives what follows.
    ///
    /// # Errors
    /// Which field is wrong.
    fn read_places<'a>(
        &self,
        bytes: &'a [u8],
        len: usize,
        chosen: &mut Vec<u32>,
    ) -> Result<&'a [u8], CodecError> {
        places::read(bytes, len, self.most(len), chosen)
    }
}

#[derive(Default)]
struct Scratch {
    chosen: Vec<u32>,
    values: Vec<f32>,
}

impl Scratch {
    /// `acc += weight * values` at their places.
    fn add(&self, weight: f32, acc: &mut [f32]) {
        for (place, value) in self.chosen.iter().zip(&self.values) {
            acc[*place as usize] += weight * value;
        }
    }
}

/// The codec of a rule.
pub(in crate::compress) struct Picked<P> {
    spec: &'static CodecSpec,
    pick: P,
    values: Inner,
    decay: f32,
    scratch: RefCell<Scratch>,
}

impl<P: Pick> Picked<P> {
    /// With the codec for the values that [`values::VALUES`] names.
    pub(in crate::compress) fn of(kind: &CodecKind, pick: P) -> Box<dyn Codec> {
        Self::with(kind, pick, values::build(kind))
    }

    /// With this codec for the values. The residual decays if [`DECAY`] is one of the parameters.
    pub(in crate::compress) fn with(
        kind: &CodecKind,
        pick: P,
        values: Box<dyn Codec>,
    ) -> Box<dyn Codec> {
        let spec = kind.spec();
        let decays = spec.parameters.iter().any(|p| p.name == DECAY.name);
        let decay = if decays { kind.number(DECAY.name) } else { 1.0 };
        Box::new(Self {
            spec,
            pick,
            values: Inner::new(values),
            decay: decay as f32,
            scratch: RefCell::default(),
        })
    }

    fn header(&self) -> Header {
        self.pick.parameters(Header::new(self.spec.tag))
    }

    /// Encodes; leaves the chosen places in the scratch, and gives where the values begin in `out`.
    fn write(
        &mut self,
        source: &mut Source<'_>,
        context: &mut EncodeContext<'_>,
        out: &mut Vec<u8>,
    ) -> usize {
        let header = self.header();
        let scratch = self.scratch.get_mut();
        self.pick.choose(source, context, &mut scratch.chosen);
        let all = source.values();
        let kept = scratch.chosen.iter().map(|place| all[*place as usize]);
        scratch.values.clear();
        scratch.values.extend(kept);
        self.pick.rescale(&scratch.chosen, &mut scratch.values);
        out.extend_from_slice(header.bytes());
        self.pick
            .write_places(&scratch.chosen, all.len(), context, out);
        let start = out.len();
        self.values.encode(&scratch.values, context, out);
        start
    }

    /// Reads all of an encoding; the places and values that it leaves in the scratch are checked.
    fn read(&self, bytes: &[u8], len: usize, scratch: &mut Scratch) -> Result<(), CodecError> {
        let body = self.header().expect(bytes)?;
        let rest = self.pick.read_places(body, len, &mut scratch.chosen)?;
        scratch.values.clear();
        scratch.values.resize(scratch.chosen.len(), 0.0);
        self.values.decode_add(rest, 1.0, &mut scratch.values)
    }
}

impl<P: Pick> Codec for Picked<P> {
    fn properties(&self) -> CodecProperties {
        CodecProperties {
            decay: self.decay,
            ..self.pick.properties().followed_by(self.values.properties())
        }
    }

    fn bytes_bound(&self) -> BytesBound {
        let density = self.pick.density_max();
        let (fixed, per_1024) = places::bound_with(density, self.values.bytes_bound());
        // A value more takes no more than eight bytes with its place.
        let more = 8 * (1 + self.pick.beyond() as u64);
        self.header().bound(fixed + more, per_1024)
    }

    fn encode(&mut self, values: &[f32], context: &mut EncodeContext<'_>, out: &mut Vec<u8>) {
        let _ = self.write(&mut Source::Values(values), context, out);
    }

    fn encode_residual(
        &mut self,
        delta: &[f32],
        residual: &mut [f32],
        context: &mut EncodeContext<'_>,
        out: &mut Vec<u8>,
    ) {
        assert_eq!(delta.len(), residual.len());
        let mut source = Source::Feedback {
            delta,
            residual,
            decay: self.decay,
            folded: 0,
        };
        let start = self.write(&mut source, context, out);
        // The places are those that have just been written: only the values must be read.
        let scratch = self.scratch.get_mut();
        scratch.values.fill(0.0);
        let values = &mut scratch.values;
        let left = self.values.decode_add(&out[start..], 1.0, values);
        debug_assert!(left.is_ok(), "a codec decodes what it encoded: {left:?}");
        scratch.add(-1.0, residual);
    }

    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError> {
        let scratch = &mut *self.scratch.borrow_mut();
        self.read(bytes, acc.len(), scratch)?;
        scratch.add(weight, acc);
        Ok(())
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        Box::new(Sparse::default())
    }
}
