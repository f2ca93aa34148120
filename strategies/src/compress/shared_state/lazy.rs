//! When `lag` sends nothing: the workers' rule and the server's.

use super::acp_sgd::hash;
use crate::compress::spec::{Parameter, Range};
use crate::compress::{Codec, CodecKind, EncodeContext};

pub(super) const RULE: Parameter = Parameter {
    name: "rule",
    range: Range::Choice(&["worker", "server"]),
    default: Some(0.0),
    about: "what decides: \"worker\", the change of the contribution, or \"server\", how far the parameters moved",
};

pub(super) const SMOOTHNESS: Parameter = Parameter {
    name: "smoothness",
    range: Range::AtLeast(0.0),
    default: Some(0.0),
    about: "for the rule \"server\", the most that a contribution changes per unit of the parameters, such as 1.0; 0 estimates it",
};

pub(super) const XI: Parameter = Parameter {
    name: "xi",
    range: Range::Closed(0.0, 1.0),
    default: Some(0.1),
    about: "a change is left out if its square is at most this times the squares of the last ten moves, such as 0.1",
};

/// Moves that both rules compare with: the paper's D.
pub(super) const MOVES: usize = 10;

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
pub(super) struct Lazy {
    xi: f64,
    server: bool,
    smoothness: f64,
    next: Vec<f32>,
}

/// What a member keeps of what it sent last.
#[derive(Clone, Copy)]
struct Last {
    /// Whether theta_i belongs to h_i.
    stands: bool,
    /// The estimate of L_i; zero where there is none.
    estimate: f64,
}

/// `||x||^2`.
pub(super) fn square(values: &[f32]) -> f64 {
    values.iter().map(|v| f64::from(*v).powi(2)).sum()
}

/// A hash as digits that f32 represents exactly.
fn digits(held: &[f32]) -> [f32; DIGITS] {
    let name = hash(held);
    [0, 16, 32, 48].map(|shift| f32::from((name >> shift) as u16))
}

impl Lazy {
    pub(super) fn new(kind: &CodecKind) -> Self {
        Self {
            xi: kind.number("xi"),
            server: kind.count("rule") == 1,
            smoothness: kind.number("smoothness"),
            next: Vec::new(),
        }
    }

    /// Runs of f32 for each parameter that it keeps: theta_i.
    pub(super) fn planes(&self) -> usize {
        usize::from(self.server)
    }

    /// Whether a member sends nothing of this difference to h_i.
    pub(super) fn says_nothing(&self, difference: &[f32], context: &EncodeContext<'_>) -> bool {
        if context.shared.is_empty() {
            return false;
        }
        let moves = context.shared.iter().map(|v| f64::from(*v)).sum::<f64>();
        let changed = match self.server {
            true => self.bound(context),
            false => Some(square(difference)),
        };
        changed.is_some_and(|changed| changed <= self.xi * moves)
    }

    /// `L_i^2 ||theta - theta_i||^2`; `None` where it is not known.
    fn bound(&self, context: &EncodeContext<'_>) -> Option<f64> {
        let last = last(context);
        let smoothness = match self.smoothness > 0.0 {
            true => self.smoothness,
            false => last.estimate,
        };
        let known = last.stands && smoothness > 0.0;
        known.then(|| smoothness.powi(2) * moved_since(context))
    }

    /// A member sends this encoding of the difference by C.
    pub(super) fn sends(
        &mut self,
        difference: &[f32],
        codec: &dyn Codec,
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
