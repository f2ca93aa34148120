//! Codecs `ef21`, `diana` and `lag`: differences to a vector that every member holds of the sender.

use super::lazy::{Lazy, MOVES, RULE, SMOOTHNESS, XI, square};
use crate::compress::gathering::{Agreed, Bad, Gathering};
use crate::compress::header::Header;
use crate::compress::raw::take;
use crate::compress::sparse::pick::INNER_DENSITY;
use crate::compress::sparse::values::VALUES;
use crate::compress::spec::{CodecSpec, Parameter, Range};
use crate::compress::{
    Codec, CodecError, CodecKind, CodecProperties, EncodeContext, Reduction, Sparse,
};
use murmurate_protocol::BytesBound;

pub(in crate::compress) const EF21_SPEC: CodecSpec = CodecSpec {
    name: "ef21",
    tag: 47,
    summary: "differences to a copy that all members hold of the sender and then update",
    equation: "q_i = C(x_i - h_i), moved = mean (h_i + q_i), h_i' = h_i + q_i at every member",
    source: "Richtarik et al., NeurIPS 2021",
    parameters: &[EF21_OF, INNER_DENSITY, VALUES],
    build: |kind| Box::new(Shifted::new(kind, EF21_SPEC.tag, 1.0)),
};

pub(in crate::compress) const DIANA_SPEC: CodecSpec = CodecSpec {
    name: "diana",
    tag: 48,
    summary: "unbiased differences to a shift that all members hold and update",
    equation: "q_i = C(x_i - h_i), moved = mean (h_i + q_i), h_i' = h_i + q_i / (1 + omega) at every member",
    source: "Mishchenko et al., arXiv 1901.09269",
    parameters: &[DIANA_OF, INNER_DENSITY, VALUES],
    build: |kind| {
        let variance = kind.sibling(kind.choice("of")).build().properties().error;
        Box::new(Shifted::new(
            kind,
            DIANA_SPEC.tag,
            (1.0 / (1.0 + variance)) as f32,
        ))
    },
};

pub(in crate::compress) const LAG_SPEC: CodecSpec = CodecSpec {
    name: "lag",
    tag: 49,
    summary: "nothing if little has changed: the last contribution is used again",
    equation: "as ef21; nothing is sent where D <= xi sum_{d=1..10} ||moved_d||^2, with D = ||x_i - h_i||^2 or L_i^2 ||theta - theta_i||^2",
    source: "Chen et al., NeurIPS 2018; Sun et al., NeurIPS 2019 (LAQ)",
    parameters: &[LAG_OF, RULE, SMOOTHNESS, XI],
    build: |kind| {
        let mut lazy = Shifted::new(kind, LAG_SPEC.tag, 1.0);
        lazy.lazy = Some(Lazy::new(kind));
        Box::new(lazy)
    },
};

const EF21_OF: Parameter = Parameter {
    name: "of",
    range: Range::Choice(&[
        "top-k",
        "top-k-sampled",
        "chunk-top-k",
        "random-k",
        "ef-sign",
        "int8",
        "int4",
    ]),
    default: Some(0.0),
    about: "the codec of the differences, such as \"top-k\"",
};

const DIANA_OF: Parameter = Parameter {
    range: Range::Choice(&["random-k-unbiased", "natural", "qsgd", "nuqsgd"]),
    about: "the codec of the differences, such as \"random-k-unbiased\"",
    ..EF21_OF
};

const LAG_OF: Parameter = Parameter {
    range: Range::Choice(&["f32", "bf16", "int8", "int4"]),
    about: "the codec of the differences that are sent, such as \"int8\" (LAQ)",
    ..EF21_OF
};

/// Differences to h_i, which every member holds of the sender i.
///
/// ```text
/// q_i   = C(x_i - h_i)
/// moved = sum_i w_i (h_i + q_i) / sum_i w_i
/// h_i'  = h_i + alpha q_i                         ef21, lag: alpha = 1;  diana: alpha = 1 / (1 + omega)
/// lag:  nothing is sent where D <= xi sum_{d=1..10} ||moved_d||^2, and q_i = 0
///       rule = "worker":  D = ||x_i - h_i||^2
///       rule = "server":  D = L_i^2 ||theta - theta_i||^2      theta_i: the anchor when h_i was sent
/// ```
///
/// omega is the bound of C's variance. `ef21`, with a contractive C: the error goes to zero as x
/// converges, without a residual and without a bound of the gradients. `diana`, with an unbiased C:
/// the variance goes to zero. `lag` compares contributions, or bounds how much they can have changed
/// ([`Lazy`]).
///
/// Every member keeps h of every member, one value for each parameter; `lag` keeps ten numbers
/// more, and with the server's rule each member its own theta_i. A member that is left out of a
/// round keeps its h, and so do the others. A member that has not contributed for 64 rounds begins
/// again from zero. h begins as zero. `lag` always sends before the first move; with `xi = 0` it
/// sends all changes.
///
/// Size: that of C and 3 bytes; 3 bytes if nothing is sent. Layout: the codec's byte, the inner
/// codec (u8), whether a difference follows (u8), C's encoding.
///
/// Parameters: `of`, C; its `density` and `values` if it has them; of `lag` also `rule`,
/// `smoothness` and `xi`.
///
/// Source: Richtarik, Sokolov and Fatkhullin, "EF21" (NeurIPS 2021), algorithm 2; Mishchenko et
/// al., "Distributed learning with compressed gradient differences" (arXiv 1901.09269), algorithm
/// 1; Chen et al., "LAG" (NeurIPS 2018), equations 7a and 7b; with a quantizer: Sun et al., "LAQ"
/// (NeurIPS 2019). Numbers not verified.
struct Shifted {
    spec: &'static CodecSpec,
    header: Header,
    codec: Box<dyn Codec>,
    alpha: f32,
    lazy: Option<Lazy>,
    difference: Vec<f32>,
    memory: Vec<f32>,
}

impl Shifted {
    fn new(kind: &CodecKind, tag: u8, alpha: f32) -> Self {
        Self {
            spec: kind.spec(),
            header: Header::new(tag).with([kind.count("of") as u8]),
            codec: kind.sibling(kind.choice("of")).build(),
            alpha,
            lazy: None,
            difference: Vec::new(),
            memory: Vec::new(),
        }
    }

    /// C's encoding; `None` where nothing was sent.
    fn body<'a>(&self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, CodecError> {
        let ([sent], rest) = take::<1>(self.header.expect(bytes)?, "sent")?;
        match sent {
            1 => Ok(Some(rest)),
            0 if self.lazy.is_some() && rest.is_empty() => Ok(None),
            _ => Err(CodecError::OutOfRange { field: "sent" }),
        }
    }
}

impl Codec for Shifted {
    fn name(&self) -> &'static str {
        self.spec.name
    }

    fn properties(&self) -> CodecProperties {
        CodecProperties {
            // h holds what was left out.
            needs_feedback: false,
            dense: false,
            reduction: Reduction::Gathered,
            decay: 1.0,
            planes: self.lazy.as_ref().map_or(0, Lazy::planes),
            ..self.codec.properties()
        }
    }

    fn bytes_bound(&self) -> BytesBound {
        let bound = self.codec.bytes_bound();
        BytesBound {
            fixed: bound.fixed + 3,
            ..bound
        }
    }

    fn encode(&mut self, values: &[f32], context: &mut EncodeContext<'_>, out: &mut Vec<u8>) {
        self.difference.clear();
        self.difference.extend_from_slice(values);
        for (x, h) in self.difference.iter_mut().zip(context.held) {
            *x -= h;
        }
        out.extend_from_slice(self.header.bytes());
        let lazy = self.lazy.as_ref();
        if lazy.is_some_and(|lazy| lazy.says_nothing(&self.difference, context)) {
            return out.push(0);
        }
        out.push(1);
        let start = out.len();
        let mut inner = EncodeContext {
            shared_seed: context.shared_seed,
            round: context.round,
            ..EncodeContext::seeded(context.seed, &mut self.memory)
        };
        self.codec.encode(&self.difference, &mut inner, out);
        if let Some(lazy) = &mut self.lazy {
            lazy.sends(
                &self.difference,
                self.codec.as_ref(),
                &out[start..],
                context,
            );
        }
    }

    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError> {
        match self.body(bytes)? {
            Some(body) => self.codec.decode_add(body, weight, acc),
            None => Ok(()),
        }
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        Box::new(Sparse::default())
    }

    fn gathering(&mut self) -> Option<&mut dyn Gathering> {
        Some(self)
    }
}

impl Gathering for Shifted {
    fn holds(&self) -> bool {
        true
    }

    fn shared_most(&self, _: usize) -> usize {
        if self.lazy.is_some() { MOVES } else { 0 }
    }

    fn gather(&mut self, agreed: &Agreed<'_>, moved: &mut [f32]) -> Result<(), Bad> {
        for (at, one) in agreed.contributions.iter().enumerate() {
            let added = self.decode_add(one.bytes, one.share, moved);
            added.map_err(|error| Bad { at, error })?;
            for (moved, held) in moved.iter_mut().zip(one.held) {
                *moved += one.share * held;
            }
        }
        Ok(())
    }

    fn settle(
        &mut self,
        agreed: &Agreed<'_>,
        moved: &[f32],
        _: Option<&mut [f32]>,
        shared: &mut Vec<f32>,
    ) {
        if self.lazy.is_some() {
            shared.push(square(moved).min(f64::from(f32::MAX)) as f32);
            shared.extend(agreed.shared.iter().take(MOVES - 1));
        }
    }

    fn hold(&self, bytes: &[u8], held: &mut [f32]) -> Result<(), CodecError> {
        self.decode_add(bytes, self.alpha, held)
    }

    fn give_back(&self, _: &[u8], _: &[f32], _: &mut [f32]) -> Result<(), CodecError> {
        // h stays where it was: the next difference holds this one.
        Ok(())
    }
}
