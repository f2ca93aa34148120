//! Codec `double-squeeze`: error feedback at the owners of shards, too. Biased: needs error feedback.

use super::{
    Codec, CodecError, CodecKind, CodecProperties, CodecSpec, EncodeContext, Parameter, Range,
    Reduction,
};
use crate::compress::raw::{Header, Inner};
use crate::compress::sparse::pick::INNER_DENSITY;
use crate::compress::sparse::values::VALUES;
use murmurate_protocol::BytesBound;

pub(super) const SPEC: CodecSpec = CodecSpec {
    name: "double-squeeze",
    tag: 55,
    summary: "the same codec in both directions, with error feedback at both ends",
    equation: "up: C(x_i + e_i), down: C(mean + e_0), each end keeps what it left out",
    source: "Tang et al., ICML 2019",
    parameters: &[OF, INNER_DENSITY, VALUES],
    build: |kind| Box::new(DoubleSqueeze::new(*kind)),
};

const OF: Parameter = Parameter {
    name: "of",
    range: Range::Choice(&["top-k", "top-k-sampled", "chunk-top-k", "ef-sign", "int4"]),
    default: Some(0.0),
    about: "the codec of both directions, such as \"top-k\"",
};

/// The same codec in both directions, and a residual at either end.
///
/// ```text
/// up:    q_i = C(x_i + e_i),    e_i' = x_i + e_i - q_i           at every member
/// down:  moved = C(r),  r = sum_i w_i q_i / sum_i w_i + e_0,     e_0' = r - moved       at the owner
/// ```
///
/// The owner of a shard keeps its new residual if the round is agreed on, and the old one if the
/// round is void. A later owner of the shard, or one that restarts, begins from zero, so the last
/// residual is lost once. Members keep the residual of error feedback; owners keep another one for
/// their shards. Contributions are sent relative to the anchor.
///
/// Size: that of C and 2 bytes, in both directions. Layout: the codec's byte, the inner codec (u8),
/// C's encoding. With a lossless C the result is the mean.
///
/// Parameters: `of`, C; its `density` and `values` if it has them.
///
/// Source: Tang et al., "DoubleSqueeze: parallel stochastic gradient descent with double-pass
/// error-compensated compression" (ICML 2019), algorithm 1 (number not verified).
struct DoubleSqueeze {
    kind: CodecKind,
    header: Header,
    codec: Inner,
}

impl DoubleSqueeze {
    fn new(kind: CodecKind) -> Self {
        Self {
            header: Header::new(SPEC.tag).with([kind.count("of") as u8]),
            codec: Inner::named(&kind, "of"),
            kind,
        }
    }
}

impl Codec for DoubleSqueeze {
    fn properties(&self) -> CodecProperties {
        CodecProperties {
            reduction: Reduction::Squeezed,
            dense: false,
            needs_feedback: true,
            ..self.codec.properties()
        }
    }

    fn bytes_bound(&self) -> BytesBound {
        self.codec.bound_behind(2)
    }

    fn encode(&mut self, values: &[f32], context: &mut EncodeContext<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(self.header.bytes());
        self.codec.encode(values, context, out);
    }

    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError> {
        let body = self.header.expect(bytes)?;
        self.codec.decode_add(body, weight, acc)
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        Box::new(Self::new(self.kind))
    }
}
