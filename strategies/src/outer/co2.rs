//! Outer optimizer `co2`: slow momentum for deltas that are a round late, with a penalty for
//! staleness and a clip.

use super::kind::{Fragment, Nature, OuterSpec, lr, momentum};
use crate::parameter::{Parameter, Range as Values};

/// Slow momentum in which a late delta counts less if the anchor has moved far since.
///
/// ```text
/// gap     = || anchor - anchor of the round before || / || delta || = lr ||u|| / ||delta||
/// penalty = 1 + strength * gap
/// u'      = clip(momentum * u - delta / penalty),   clip(v) = max(-bound, min(bound, v))
/// anchor' = anchor - lr * u'
/// ```
///
/// Shapes: anchor, delta, u: `[len]`, f32; u is the state, one value for each parameter. `strength`
/// has no unit, and `bound` has the unit of a delta. Norms are those of a fragment, summed in f64
/// in the order of its values. They are computed from agreed values, so the penalty has the same
/// bits on all peers. A delta that is a round late starts from the anchor before the last move; the
/// gap is the length of that move over the length of the delta.
///
/// Source: Sun et al., "CO2: efficient distributed training with full communication-computation
/// overlap" (ICLR 2024), section 3: `1 / Lambda_t` before the delta, with Lambda the staleness gap,
/// and a clip of the momentum, value by value as in the authors' code (the norms of Lambda are not
/// verified; their code has a constant). Special cases: strength 0 with a bound beyond all values
/// is `slow-mo`; a delta of zeros is not divided.
pub(super) const SPEC: OuterSpec = OuterSpec {
    name: "co2",
    summary: "heavy-ball momentum for late deltas, with a penalty of the staleness gap and a clip",
    equation: "u' = clip(mu u - D / (1 + penalty lr ||u|| / ||D||)), a' = a - lr u'",
    source: "Sun et al., ICLR 2024",
    parameters: &[lr(1.0), momentum(0.5), PENALTY, CLIP],
    nature: Nature::Agreed,
    unfit: |_| None,
    state_multiple: 1,
    build: |kind| {
        let [lr, momentum, bound] = ["lr", "momentum", "clip"].map(|key| kind.single(key));
        let strength = kind.number("penalty");
        Box::new(move |of: Fragment<'_>| {
            let velocity = &mut of.state[of.range];
            let length = norm(of.delta);
            let gap = if length > 0.0 {
                f64::from(lr) * norm(velocity) / length
            } else {
                0.0
            };
            let share = (1.0 / (1.0 + strength * gap)) as f32;
            for ((a, d), u) in of.anchor.iter_mut().zip(of.delta).zip(velocity) {
                *u = (momentum * *u - share * *d).clamp(-bound, bound);
                *a -= lr * *u;
            }
        })
    },
};

const PENALTY: Parameter = Parameter::new(
    "penalty",
    Values::NotNegative,
    1.0,
    "strength of the penalty on a late delta, by how far the anchor has moved since",
);

const CLIP: Parameter = Parameter::new(
    "clip",
    Values::Above,
    1.0,
    "the largest momentum of a value",
);

/// Its length.
fn norm(values: &[f32]) -> f64 {
    let squares = values.iter().map(|v| f64::from(*v) * f64::from(*v));
    squares.sum::<f64>().sqrt()
}
