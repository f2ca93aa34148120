//! Codec `exact-first`: the values as they are in the first rounds, then another codec.

use super::{
    Codec, CodecError, CodecKind, CodecProperties, CodecSpec, EncodeContext, F32, Parameter, Range,
    Reduction,
};
use crate::compress::raw::{Header, Inner, take};
use murmurate_protocol::BytesBound;

pub(super) const SPEC: CodecSpec = CodecSpec {
    name: "exact-first",
    tag: 59,
    summary: "the values as they are in the first rounds, then another codec, in both directions",
    equation: "C_t(x) = x for t < warm_up, then C(x)",
    source: "Tang et al., ICML 2021",
    parameters: &[OF, WARM_UP],
    build: |kind| Box::new(ExactFirst::new(*kind)),
};

const OF: Parameter = Parameter {
    name: "of",
    range: Range::Choice(&["ef-sign", "one-bit", "int8", "int4"]),
    default: Some(0.0),
    about: "the codec after the first rounds, such as \"ef-sign\"",
};

const WARM_UP: Parameter = Parameter {
    name: "warm_up",
    range: Range::Whole(0, 1_000_000_000),
    default: Some(100.0),
    about: "rounds in which values are sent as they are, such as 100",
};

/// The warm-up of 1-bit Adam: Adam's second moment is learned from exact values, and only then values are sent
/// in few bits.
///
/// ```text
/// C_t(x) = x for t < warm_up, then C(x)        t: the round, from zero
/// ```
///
/// While the values are sent as they are, error feedback keeps nothing. Reductions return as f32 in these rounds,
/// then as those of C. Layout: the codec's byte, C (u8), whether C follows or f32 (u8), its encoding.
///
/// Parameters: `of`, C; `warm_up`, the number of rounds.
///
/// Source: Tang et al., "1-bit Adam" (ICML 2021), algorithm 1, whose warm-up is T_w inner steps of Adam.
struct ExactFirst {
    kind: CodecKind,
    header: Header,
    warm_up: u64,
    after: Inner,
}

impl ExactFirst {
    fn new(kind: CodecKind) -> Self {
        let after = kind.sibling(kind.choice("of")).build();
        Self::of(kind, after)
    }

    fn of(kind: CodecKind, after: Box<dyn Codec>) -> Self {
        Self {
            header: Header::new(SPEC.tag).with([kind.count("of") as u8]),
            warm_up: kind.count("warm_up") as u64,
            after: Inner::new(after),
            kind,
        }
    }
}

impl Codec for ExactFirst {
    fn properties(&self) -> CodecProperties {
        CodecProperties {
            reduction: Reduction::AfterDecoding,
            dense: false,
            ..self.after.properties()
        }
    }

    fn bytes_bound(&self) -> BytesBound {
        let (exact, after) = (F32.bytes_bound(), self.after.bytes_bound());
        BytesBound {
            fixed: exact.fixed.max(after.fixed) + 3,
            per_1024: exact.per_1024.max(after.per_1024),
        }
    }

    fn encode(&mut self, values: &[f32], context: &mut EncodeContext<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(self.header.bytes());
        let exact = context.round < self.warm_up;
        out.push(u8::from(!exact));
        if exact {
            F32.encode(values, context, out);
        } else {
            self.after.encode(values, context, out);
        }
    }

    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError> {
        let ([which], body) = take::<1>(self.header.expect(bytes)?, "which")?;
        match which {
            0 => F32.decode_add(body, weight, acc),
            1 => self.after.decode_add(body, weight, acc),
            _ => Err(CodecError::OutOfRange { field: "which" }),
        }
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        Box::new(Self::of(self.kind, self.after.aggregate()))
    }
}
