//! Codecs `ef21`, `diana` and `lag`: differences to a vector that every member holds of the sender.

use crate::compress::codec::{Agreed, Bad, Gathering};
use crate::compress::raw::{Header, Inner, hash_f32s, sent};
use crate::compress::sparse::pick::INNER_DENSITY;
use crate::compress::sparse::values::VALUES;
use crate::compress::{
    Codec, CodecError, CodecKind, CodecProperties, CodecSpec, EncodeContext, Parameter, Range,
    Reduction, Sparse,
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

const RULE: Parameter = Parameter {
    name: "rule",
    range: Range::Choice(&["worker", "server"]),
    default: Some(0.0),
    about: "what decides: \"worker\", the change of the contribution, or \"server\", how far the parameters moved",
};

const SMOOTHNESS: Parameter = Parameter {
    name: "smoothness",
    range: Range::AtLeast(0.0),
    default: Some(0.0),
    about: "for the rule \"server\", the most that a contribution changes per unit of the parameters, such as 1.0; 0 estimates it",
};

const XI: Parameter = Parameter {
    name: "xi",
    range: Range::Closed(0.0, 1.0),
    default: Some(0.1),
    about: "a change is left out if its square is at most this times the squares of the last ten moves, such as 0.1",
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
    header: Header,
    codec: Inner,
    alpha: f32,
    lazy: Option<Lazy>,
    difference: Vec<f32>,
}

impl Shifted {
    fn new(kind: &CodecKind, tag: u8, alpha: f32) -> Self {
        Self {
            header: Header::new(tag).with([kind.count("of") as u8]),
            codec: Inner::named(kind, "of"),
            alpha,
            lazy: None,
            difference: Vec::new(),
        }
    }

    /// C's encoding; `None` where nothing was sent.
    fn body<'a>(&self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, CodecError> {
        match sent(self.header.expect(bytes)?)? {
            None if self.lazy.is_none() => Err(CodecError::OutOfRange { field: "sent" }),
            body => Ok(body),
        }
    }
}

impl Codec for Shifted {
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
        self.codec.bound_behind(3)
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
        self.codec.encode(&self.difference, context, out);
        if let Some(lazy) = &mut self.lazy {
            lazy.sends(&self.difference, &self.codec, &out[start..], context);
        }
    }

    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError> {
        let body = self.body(bytes)?;
        body.map_or(Ok(()), |body| self.codec.decode_add(body, weight, acc))
    }

    fn gathering(&mut self) -> Option<&mut dyn Gathering> {
        Some(self)
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        Box::new(Sparse::default())
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
        Bad::of_first(agreed.contributions, |one| {
            self.decode_add(one.bytes, one.share, moved)?;
            for (moved, held) in moved.iter_mut().zip(one.held) {
                *moved += one.share * held;
            }
            Ok(())
        })
    }

    fn settle(&mut self, agreed: &Agreed<'_>, moved: &[f32], shared: &mut Vec<f32>) {
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

/// Moves that both rules compare with: the paper's D.
const MOVES: usize = 10;

/// Moves of the parameters of this share of their length are not told from their rounding: they
/// say nothing of the smoothness.
const ROUNDING: f64 = 1e-6;

/// What the memory holds: the hash of h_i in digits, and the estimate of L_i.
const DIGITS: usize = 4;
const KEPT: usize = DIGITS + 1;

/// The rules of LAG, each for one member.
///
/// ```text
/// worker (LAG-WK):  nothing is sent where ||x_i - h_i||^2 <= xi sum_{d=1..10} ||moved_d||^2
/// server (LAG-PS):  nothing is sent where L_i^2 ||theta - theta_i||^2 <= the same
/// L_i = `smoothness`, or estimated: the largest ||x_i - h_i|| / ||theta - theta_i|| when it sent
/// ```
///
/// The paper has `1 / (alpha^2 M^2) sum_d xi ||theta_{k+1-d} - theta_{k-d}||^2` on the right, for
/// sums over M members and steps of length alpha. That is the same: a step is alpha M times the mean
/// that moved.
///
/// In the paper the server knows all theta_i and asks the members that it needs. Here every member
/// knows the anchor and decides by itself, so none is asked. It has trained when it decides: the
/// rule saves bytes, and no computation. As long as L_i bounds the change, a member sends wherever
/// the workers' rule sends, and at times where that does not. Members with a small L_i seldom send.
///
/// theta_i is the anchor of the contribution that made h_i. The member keeps it in a plane, with the
/// hash of that h_i. If its contribution was not agreed on, or all members have dropped h_i, the hash
/// is another one, and the member sends. It also sends if the caller has no anchor, and before L_i is
/// estimated. An estimate never becomes smaller. If contributions have noise it grows without bound,
/// and the member always sends: then give `smoothness`.
///
/// Special cases: where theta is theta_i the server's rule sends nothing.
struct Lazy {
    xi: f64,
    server: bool,
    smoothness: f64,
    next: Vec<f32>,
}

/// A member's record of its last contribution.
#[derive(Clone, Copy)]
struct Last {
    /// Set while theta_i belongs to h_i.
    stands: bool,
    /// The estimate of L_i; zero where there is none.
    estimate: f64,
}

fn square(values: &[f32]) -> f64 {
    values.iter().map(|v| f64::from(*v).powi(2)).sum()
}

/// A hash as digits that f32 represents exactly.
fn digits(held: &[f32]) -> [f32; DIGITS] {
    let name = hash_f32s(held);
    [0, 16, 32, 48].map(|shift| f32::from((name >> shift) as u16))
}

impl Lazy {
    fn new(kind: &CodecKind) -> Self {
        Self {
            xi: kind.number("xi"),
            server: kind.count("rule") == 1,
            smoothness: kind.number("smoothness"),
            next: Vec::new(),
        }
    }

    /// Runs of f32 for each parameter that it keeps: theta_i.
    fn planes(&self) -> usize {
        usize::from(self.server)
    }

    /// The rule: set if this difference to h_i is left out.
    fn says_nothing(&self, difference: &[f32], context: &EncodeContext<'_>) -> bool {
        if context.shared.is_empty() {
            return false;
        }
        let moves = context.shared.iter().map(|v| f64::from(*v)).sum::<f64>();
        let changed = if self.server {
            self.bound(context)
        } else {
            Some(square(difference))
        };
        changed.is_some_and(|changed| changed <= self.xi * moves)
    }

    /// `L_i^2 ||theta - theta_i||^2`; `None` where it is not known.
    fn bound(&self, context: &EncodeContext<'_>) -> Option<f64> {
        let last = last(context);
        let smoothness = if self.smoothness > 0.0 {
            self.smoothness
        } else {
            last.estimate
        };
        let known = last.stands && smoothness > 0.0;
        known.then(|| smoothness.powi(2) * moved_since(context))
    }

    /// A member sends this encoding of the difference by C.
    fn sends(
        &mut self,
        difference: &[f32],
        codec: &Inner,
        bytes: &[u8],
        context: &mut EncodeContext<'_>,
    ) {
        let lengths = [context.anchor.len(), context.planes[0].len()];
        if !self.server || lengths != [difference.len(); 2] {
            return;
        }
        let mut last = last(context);
        let moved = moved_since(context);
        if last.stands && moved > (ROUNDING * ROUNDING) * square(context.anchor) {
            last.estimate = last.estimate.max((square(difference) / moved).sqrt());
        }
        // What all members will hold if they agree on this contribution.
        self.next.clear();
        self.next.extend_from_slice(context.held);
        self.next.resize(difference.len(), 0.0);
        let added = codec.decode_add(bytes, 1.0, &mut self.next);
        debug_assert!(added.is_ok(), "a codec decodes what it encoded: {added:?}");
        context.planes[0].copy_from_slice(context.anchor);
        context.memory.clear();
        context.memory.extend(digits(&self.next));
        let estimate = last.estimate.min(f64::from(f32::MAX));
        context.memory.push(estimate as f32);
    }
}

/// What the member keeps of the contribution that it sent last.
fn last(context: &EncodeContext<'_>) -> Last {
    let kept = context.memory.first_chunk::<KEPT>();
    let lengths = [context.anchor.len(), context.planes[0].len()];
    let fits = lengths == [context.held.len(); 2] && !context.held.is_empty();
    Last {
        stands: fits && kept.is_some_and(|kept| kept[..DIGITS] == digits(context.held)),
        estimate: kept.map_or(0.0, |kept| f64::from(kept[DIGITS])),
    }
}

/// `||theta - theta_i||^2`.
fn moved_since(context: &EncodeContext<'_>) -> f64 {
    let pairs = context.anchor.iter().zip(context.planes[0].iter());
    pairs
        .map(|(now, then)| (f64::from(*now) - f64::from(*then)).powi(2))
        .sum()
}
