//! A codec that the owner of a run can change from a round on, without a new run, and that the members of a
//! round can choose.

use super::{
    CODECS, Codec, CodecError, CodecKind, CodecProperties, CodecSpec, EncodeContext, Named,
};
use super::{Reduction, Tiles};
use crate::parameter::Parameter;
use murmurate_protocol::{BytesBound, TrainingRules};
use std::collections::BTreeMap;

/// Rounds whose directed codec is kept. Rounds that are under way at once are fewer.
const ROUNDS_MAX: usize = 16;

/// Why a run's codec cannot be changed to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwitchError {
    /// The run's codec cannot be replaced.
    #[error(
        "the codec of this run keeps a state, or its contributions are not summed: it cannot be changed"
    )]
    Fixed,
    /// The other codec does not suit.
    #[error(
        "it keeps a state, leaves values out, or needs error feedback: only codecs that round every value can take the place of another"
    )]
    Other,
    /// It would send more.
    #[error(
        "it sends more bytes than the codec of the configuration, for which the run reserves room"
    )]
    Larger,
}

impl Named {
    /// What the rules of a round say; `None` stands for the codec of the configuration.
    pub fn by(rules: &TrainingRules) -> Option<Self> {
        match (rules.codec, rules.rung) {
            (Some(tag), _) => Some(Self::Tag(tag)),
            (None, 0) => None,
            (None, rung) => Some(Self::Rung(rung)),
        }
    }
}

/// The codec by whose byte encodings begin ([`CodecSpec::tag`]).
pub fn by_tag(tag: u8) -> Option<&'static CodecSpec> {
    CODECS.iter().find(|spec| spec.tag == tag).copied()
}

/// Accepts contributions by `other` in a run whose codec is `own`, with its default
/// parameters, from a round on.
///
/// # Errors
/// Why not.
pub fn may_replace(own: &CodecKind, other: &CodecSpec) -> Result<(), SwitchError> {
    let codec = own.build();
    if !can_be_replaced(&codec.properties()) {
        return Err(SwitchError::Fixed);
    }
    if own.spec().tag == other.tag {
        return Ok(());
    }
    let replacement = with_defaults(other).ok_or(SwitchError::Other)?;
    let pairs = [
        (codec.bytes_bound(), replacement.bytes_bound()),
        (
            codec.aggregate().bytes_bound(),
            replacement.aggregate().bytes_bound(),
        ),
    ];
    let larger = |(own, other): &(BytesBound, BytesBound)| other.per_1024 > own.per_1024;
    if pairs.iter().any(larger) {
        Err(SwitchError::Larger)
    } else {
        Ok(())
    }
}

fn can_be_replaced(own: &CodecProperties) -> bool {
    let sums = matches!(
        own.reduction,
        Reduction::WhileEncoded | Reduction::AfterDecoding
    );
    sums && own.planes == 0 && !own.shared_seed && own.decay == 1.0
}

/// A codec that rounds every value and keeps nothing, with its default parameters.
fn with_defaults(spec: &CodecSpec) -> Option<Box<dyn Codec>> {
    let given = |parameter: &Parameter| parameter.default.is_some();
    let kind = spec
        .parameters
        .iter()
        .all(given)
        .then(|| CodecKind::new(spec.name, &[]).ok());
    let codec = kind??.build();
    let found = codec.properties();
    let rounds = found.scaled && found.error < 1.0 && !found.needs_feedback && !found.masks;
    (rounds && !found.matrices && can_be_replaced(&found)).then_some(codec)
}

/// The codec of the configuration and those that have taken its place.
///
/// Encodings begin with their codec's byte, so a decoder needs to know nothing else: slices of a round
/// before the change are read while those of the round after it come in. Codecs that were not chosen are not
/// built: a daemon would hold their code and tables in memory.
pub(crate) struct Switched {
    kind: CodecKind,
    own: Box<dyn Codec>,
    /// Set for the codec in which reductions return.
    replies: bool,
    /// Codecs that the members may choose, from the second one of the ladder on.
    ladder: Vec<CodecKind>,
    /// Those that took its place in some round.
    others: Vec<(Named, Box<dyn Codec>)>,
    /// The codecs of rounds, ascending: a place in `others`, or the run's own.
    directed: BTreeMap<u64, Option<usize>>,
}

impl Switched {
    /// The codec of a configuration; as it is where nothing can take its place. The members may choose others
    /// of a ladder.
    pub(crate) fn of(kind: &CodecKind, ladder: &[CodecKind]) -> Box<dyn Codec> {
        let own = kind.build();
        if can_be_replaced(&own.properties()) {
            Box::new(Self {
                kind: *kind,
                own,
                replies: false,
                ladder: ladder.to_vec(),
                others: Vec::new(),
                directed: BTreeMap::new(),
            })
        } else {
            own
        }
    }

    /// The codec of this name, if it may take the place of the run's own.
    fn replacement(&self, named: Named) -> Option<Box<dyn Codec>> {
        match named {
            Named::Rung(rung) => {
                let place = usize::from(rung).checked_sub(1)?;
                Some(self.ladder.get(place)?.build())
            }
            Named::Tag(tag) => {
                let spec = by_tag(tag).filter(|spec| spec.tag != self.kind.spec().tag)?;
                may_replace(&self.kind, spec).ok()?;
                with_defaults(spec)
            }
        }
    }

    /// The place of a codec in `others`, which it gets when it is first named.
    fn place(&mut self, named: Named) -> Option<usize> {
        let known = self.others.iter().position(|(of, _)| *of == named);
        known.or_else(|| {
            let codec = self.replacement(named)?;
            let codec = if self.replies {
                codec.aggregate()
            } else {
                codec
            };
            self.others.push((named, codec));
            Some(self.others.len() - 1)
        })
    }

    /// A codec that none of this peer's rounds had yet, and that these bytes are of.
    fn unused(&self, bytes: &[u8]) -> Option<Box<dyn Codec>> {
        let tag = bytes.first().copied().map(Named::Tag);
        let named = tag.and_then(|named| self.replacement(named));
        let rungs = self.ladder.iter().map(|kind| {
            if self.replies {
                kind.build().aggregate()
            } else {
                kind.build()
            }
        });
        let mut found = named.into_iter().chain(rungs);
        found.find(|codec| reads(codec.as_ref(), bytes))
    }

    /// The codec of `len` values in a round. A slice that may need more bytes than the run's own codec needs is left to
    /// that one, for which the run reserves room: one that is shorter than a block.
    fn of_round(&mut self, round: u64, len: usize) -> &mut dyn Codec {
        let directed = self.directed.range(..=round).next_back();
        let bytes = |codec: &dyn Codec| codec.bytes_bound().of(len as u64);
        let room = bytes(self.own.as_ref());
        let other = directed.and_then(|(_, other)| *other);
        match other.filter(|at| bytes(self.others[*at].1.as_ref()) <= room) {
            Some(at) => self.others[at].1.as_mut(),
            None => self.own.as_mut(),
        }
    }

    /// Reads bytes by the codec that they say they are of; by the run's own where none does. A peer that did
    /// not train a round may hear of its codec from these bytes first.
    fn read<T>(&self, bytes: &[u8], read: impl FnOnce(&dyn Codec) -> T) -> T {
        let others = self.others.iter().map(|(_, codec)| codec.as_ref());
        let mut all = std::iter::once(self.own.as_ref()).chain(others);
        if let Some(codec) = all.find(|codec| reads(*codec, bytes)) {
            return read(codec);
        }
        match self.unused(bytes) {
            Some(codec) => read(codec.as_ref()),
            None => read(self.own.as_ref()),
        }
    }
}

/// Set if these bytes open as those of this codec.
fn reads(codec: &dyn Codec, bytes: &[u8]) -> bool {
    let found = codec.decode_add(bytes, 0.0, &mut []);
    let parameters = CodecError::OutOfRange {
        field: "parameters",
    };
    !matches!(found, Err(CodecError::Codec { .. })) && found != Err(parameters)
}

impl Codec for Switched {
    fn properties(&self) -> CodecProperties {
        self.own.properties()
    }

    fn bytes_bound(&self) -> BytesBound {
        self.own.bytes_bound()
    }

    fn encode(&mut self, values: &[f32], context: &mut EncodeContext<'_>, out: &mut Vec<u8>) {
        let codec = self.of_round(context.round, values.len());
        codec.encode(values, context, out);
    }

    fn encode_residual(
        &mut self,
        delta: &[f32],
        residual: &mut [f32],
        context: &mut EncodeContext<'_>,
        out: &mut Vec<u8>,
    ) {
        let codec = self.of_round(context.round, delta.len());
        codec.encode_residual(delta, residual, context, out);
    }

    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError> {
        self.read(bytes, |codec| codec.decode_add(bytes, weight, acc))
    }

    fn decode_sum(
        &self,
        inputs: &[(&[u8], f32)],
        len: usize,
        tiles: &mut dyn Tiles,
    ) -> Result<(), CodecError> {
        let first = inputs.first().map_or(&[][..], |(bytes, _)| bytes);
        self.read(first, |codec| codec.decode_sum(inputs, len, tiles))
    }

    fn has_tiles(&self, bytes: &[u8]) -> bool {
        self.read(bytes, |codec| codec.has_tiles(bytes))
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        let others = self.others.iter();
        Box::new(Self {
            kind: self.kind,
            replies: true,
            ladder: self.ladder.clone(),
            own: self.own.aggregate(),
            others: others
                .map(|(named, codec)| (*named, codec.aggregate()))
                .collect(),
            directed: self.directed.clone(),
        })
    }

    fn direct(&mut self, round: u64, codec: Option<Named>) {
        // A codec that cannot take the place of the run's own is left out by all peers alike.
        let place = codec.and_then(|named| self.place(named));
        self.directed.insert(round, place);
        while self.directed.len() > ROUNDS_MAX {
            self.directed.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str) -> CodecKind {
        CodecKind::new(name, &[]).expect("it has defaults")
    }

    fn encoded(codec: &mut dyn Codec, round: u64, values: &[f32]) -> Vec<u8> {
        let (mut memory, mut out) = (Vec::new(), Vec::new());
        let mut context = EncodeContext {
            round,
            ..EncodeContext::seeded(7, &mut memory)
        };
        codec.encode(values, &mut context, &mut out);
        out
    }

    #[test]
    fn rounds_are_encoded_as_directed_and_all_of_them_are_read() {
        let values: Vec<f32> = (0..5000).map(|i| (i as f32 - 500.0) / 8.0).collect();
        let tag = |name: &str| kind(name).spec().tag;
        let mut codec = Switched::of(&kind("f32"), &[]);
        codec.direct(3, Some(Named::Tag(tag("int8"))));
        codec.direct(6, Some(Named::Tag(tag("bf16"))));
        codec.direct(8, None);
        let expected = ["f32", "int8", "int8", "bf16", "f32"];
        for (round, name) in [0, 3, 5, 6, 9].into_iter().zip(expected) {
            let bytes = encoded(codec.as_mut(), round, &values);
            assert_eq!(
                bytes,
                encoded(kind(name).build().as_mut(), 0, &values),
                "{round}"
            );
            let (mut sum, mut alone) = (vec![1.0; 5000], vec![1.0; 5000]);
            codec.decode_add(&bytes, 0.5, &mut sum).expect("ours");
            kind(name)
                .build()
                .decode_add(&bytes, 0.5, &mut alone)
                .expect("its own");
            assert_eq!(sum, alone, "{round}");
            // Who was told nothing reads it too.
            let mut untold = vec![1.0; 5000];
            let reader = Switched::of(&kind("f32"), &[]);
            reader
                .decode_add(&bytes, 0.5, &mut untold)
                .expect("it is said");
            assert_eq!(untold, alone, "{round}");
            // A reduction of the round returns by the same codec.
            let mut reply = codec.aggregate();
            let reply = encoded(reply.as_mut(), round, &values);
            let plain = encoded(kind(name).build().aggregate().as_mut(), 0, &values);
            assert_eq!(reply, plain, "{round}");
        }
    }

    #[test]
    fn rounds_are_encoded_as_members_choose_and_residuals_stay() {
        let values: Vec<f32> = (0..3000)
            .map(|i| ((i * 7919) % 3001) as f32 - 1500.0)
            .collect();
        let own = CodecKind::new("top-k", &[("density", 0.1)]).expect("in its range");
        let ladder = [own.with("density", 0.01), own.with("density", 0.001)];
        let mut codec = Switched::of(&own, &ladder);
        for (round, rung) in [
            (2, Named::Rung(2)),
            (4, Named::Rung(1)),
            (6, Named::Rung(9)),
        ] {
            codec.direct(round, Some(rung));
        }
        let (mut residual, mut sum) = (vec![0.0; 3000], vec![0.0f32; 3000]);
        // A place beyond the ladder is that of the configuration.
        for (round, density) in [(0, 0.1), (1, 0.1), (3, 0.001), (5, 0.01), (7, 0.1)] {
            let (mut memory, mut bytes) = (Vec::new(), Vec::new());
            let mut context = EncodeContext {
                round,
                ..EncodeContext::seeded(7, &mut memory)
            };
            codec.encode_residual(&values, &mut residual, &mut context, &mut bytes);
            let bound = own.with("density", density).build().bytes_bound();
            assert!(bytes.len() as u64 <= bound.of(3000), "{round}");
            // Who was told nothing reads it too.
            let reader = Switched::of(&own, &ladder);
            reader
                .decode_add(&bytes, 1.0, &mut sum)
                .expect("it is said");
        }
        // What was sent and what is left are what came in, whatever the densities were.
        for ((sent, left), value) in sum.iter().zip(&residual).zip(&values) {
            assert!(
                (sent + left - 5.0 * value).abs() <= 1e-2,
                "{sent} {left} {value}"
            );
        }
    }

    #[test]
    fn bytes_of_no_codec_are_refused_and_change_nothing() {
        let codec = Switched::of(&kind("f32"), &[]);
        for bytes in [&[][..], &[255, 1, 2], &[0; 40]] {
            let mut acc = [3.0; 10];
            assert!(codec.decode_add(bytes, 1.0, &mut acc).is_err());
            assert_eq!(acc, [3.0; 10]);
        }
    }

    #[test]
    fn only_what_rounds_every_value_and_sends_no_more_takes_the_place_of_another() {
        let spec = |name: &str| {
            *CODECS
                .iter()
                .find(|spec| spec.name == name)
                .expect("it exists")
        };
        let of = |own: &str, other: &str| may_replace(&kind(own), spec(other));
        for (own, other) in [
            ("f32", "int8"),
            ("f32", "bf16"),
            ("bf16", "int4"),
            ("int8", "int8"),
        ] {
            assert_eq!(of(own, other), Ok(()), "{own} {other}");
        }
        assert_eq!(of("int8", "f32"), Err(SwitchError::Larger));
        assert_eq!(of("f32", "top-k"), Err(SwitchError::Other));
        assert_eq!(of("f32", "sign-sgd"), Err(SwitchError::Other));
        assert_eq!(of("diana", "int8"), Err(SwitchError::Fixed));
    }

    /// A codec that may take another's place never writes more than the run has room for.
    #[test]
    fn replacements_stay_within_the_bounds_of_the_run() {
        for own in CODECS
            .iter()
            .filter_map(|spec| CodecKind::new(spec.name, &[]).ok())
        {
            let mut codec = Switched::of(&own, &[]);
            for spec in CODECS.iter().filter(|spec| may_replace(&own, spec).is_ok()) {
                codec.direct(0, Some(Named::Tag(spec.tag)));
                for len in [0usize, 1, 5, 1000, 5000] {
                    let values = vec![0.3; len];
                    let mut reply = codec.aggregate();
                    for codec in [&mut codec, &mut reply] {
                        let encoded_bytes = encoded(codec.as_mut(), 0, &values);
                        let bytes = encoded_bytes.len() as u64;
                        let bound = codec.bytes_bound().of(len as u64);
                        let mut read = vec![0.0; len];
                        codec
                            .decode_add(&encoded_bytes, 1.0, &mut read)
                            .expect("ours");
                        assert!(
                            bytes <= bound,
                            "{} as {}: {bytes} {bound}",
                            own.name(),
                            spec.name
                        );
                    }
                }
            }
        }
    }
}
