//! Codec `event-triggered`: nothing where there is little to say, another codec elsewhere. Biased:
//! needs error feedback, or replicas.

use super::{
    Codec, CodecError, CodecProperties, CodecSpec, EncodeContext, Parameter, Range, Reduction,
};
use crate::compress::raw::{Header, Inner, sent};
use crate::compress::sparse::pick::INNER_DENSITY;
use crate::compress::sparse::values::VALUES;
use murmurate_protocol::BytesBound;

pub(super) const SPEC: CodecSpec = CodecSpec {
    name: "event-triggered",
    tag: 61,
    summary: "nothing where the values are small, another codec elsewhere",
    equation: "C_e(x) = C(x) where ||x||^2 > quiet^2 dim x, 0 elsewhere",
    source: "Singh et al., CDC 2020 (SPARQ-SGD)",
    parameters: &[OF, QUIET, INNER_DENSITY, VALUES],
    build: |kind| {
        Box::new(EventTriggered {
            header: Header::new(SPEC.tag).with([kind.count("of") as u8]),
            quiet: kind.number("quiet"),
            codec: Inner::named(kind, "of"),
        })
    },
};

const OF: Parameter = Parameter {
    name: "of",
    range: Range::Choice(&["ef-sign", "top-k", "chunk-top-k", "int8", "int4", "f32"]),
    default: Some(0.0),
    about: "the codec of what is sent, such as \"ef-sign\"",
};

const QUIET: Parameter = Parameter {
    name: "quiet",
    range: Range::AtLeast(0.0),
    default: Some(0.001),
    about: "the root mean square up to which nothing is sent, such as 0.001",
};

/// Sends only values whose root mean square is large enough.
///
/// ```text
/// C_e(x) = C(x)   where ||x||^2 > quiet^2 dim x
///          0      elsewhere
/// ```
///
/// With `exchange = "replicas"`, x is the difference between a peer's parameters and the copy of them
/// that a neighbour holds: that is SPARQ-SGD, with `quiet^2 dim x` for its `c_t eta_t^2`, which
/// falls with the learning rate there and is constant here. Each edge decides by itself, when its two
/// peers come to it. With error feedback, x is what a member has not said yet, and it joins the next
/// contribution.
///
/// `||C_e(x) - x||^2 <= max(c ||x||^2, quiet^2 dim x)` for `||C(x) - x||^2 <= c ||x||^2`: peers come
/// as near to each other as that. Reductions and whole parameters return as those of C.
///
/// Size: that of C and 3 bytes; 3 bytes if nothing is sent. Layout: the codec's byte, C (u8), whether an
/// encoding follows (u8), C's encoding.
///
/// Parameters: `of`, C; `quiet`, in units of the values; C's `density` and `values` if it has them.
///
/// Source: Singh, Data, George and Diggavi, "SPARQ-SGD: Event-triggered and compressed communication in
/// decentralized optimization" (CDC 2020), algorithm 1 (number not verified).
struct EventTriggered {
    header: Header,
    quiet: f64,
    codec: Inner,
}

impl EventTriggered {
    /// The trigger: set for values that are large enough to be sent.
    fn says(&self, values: &[f32]) -> bool {
        let square = values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>();
        square > self.quiet.powi(2) * values.len() as f64
    }
}

impl Codec for EventTriggered {
    fn properties(&self) -> CodecProperties {
        CodecProperties {
            lossless: false,
            unbiased: false,
            needs_feedback: true,
            dense: false,
            reduction: Reduction::AfterDecoding,
            quiet: self.quiet,
            ..self.codec.properties()
        }
    }

    fn bytes_bound(&self) -> BytesBound {
        self.codec.bound_behind(3)
    }

    fn encode(&mut self, values: &[f32], context: &mut EncodeContext<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(self.header.bytes());
        let says = self.says(values);
        out.push(u8::from(says));
        if !says {
            return;
        }
        self.codec.encode(values, context, out);
    }

    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError> {
        let body = sent(self.header.expect(bytes)?)?;
        body.map_or(Ok(()), |body| self.codec.decode_add(body, weight, acc))
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        self.codec.aggregate()
    }
}
