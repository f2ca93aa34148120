//! Combinations of methods that cannot work, each with the reason and the nearest that does.

use super::{Strategy, StrategyError, companions, overlap, relay, schedule, synchronization};
use crate::aggregate::AggregationKind;
use crate::compress::{CodecProperties, Reduction};
use crate::correct::CorrectionKind;
use crate::inner::InnerKind;
use crate::outer::OuterKind;
use crate::topology::TopologyKind;
use murmurate_protocol::{Contribution, ExchangeKind, StepBudget};

pub(super) const fn refused(
    key: &'static str,
    reason: &'static str,
    remedy: &'static str,
) -> Result<(), StrategyError> {
    Err(StrategyError::Refused {
        key,
        reason,
        remedy,
    })
}

/// Refuses what cannot work.
pub(super) fn check(strategy: &Strategy) -> Result<(), StrategyError> {
    synchronization::check(strategy)?;
    correction(strategy)?;
    companions::anchors(strategy)?;
    overlap::check(strategy)?;
    match strategy.exchange() {
        ExchangeKind::None => return Ok(()),
        ExchangeKind::Gossip | ExchangeKind::Push | ExchangeKind::Pull => {
            parameters_as_they_are(strategy)?;
        }
        ExchangeKind::Pairs => {
            symmetric(strategy)?;
            parameters_as_they_are(strategy)?;
        }
        ExchangeKind::Replicas => replicas(strategy)?,
        ExchangeKind::Relay => relay::check(strategy)?,
        ExchangeKind::AllReduce | ExchangeKind::Gathered | ExchangeKind::Server(_) => {
            all_reduce(strategy)?;
        }
        ExchangeKind::Center(_) => center(strategy)?,
    }
    in_common(strategy)?;
    codec(
        &strategy.codec().properties(),
        strategy.exchange(),
        strategy.contribution(),
        strategy.error_feedback(),
    )
}

/// What a correction of gradients needs of the rest.
fn correction(strategy: &Strategy) -> Result<(), StrategyError> {
    const KEY: &str = "inner.correction";
    const PLAIN: &str =
        "leave the key out, or use contribution = \"delta\" with exchange = \"all-reduce\"";
    let plain_sgd = matches!(
        strategy.inner_kind(),
        InnerKind::Sgd { momentum, .. } if *momentum == 0.0
    );
    match strategy.correction_kind() {
        CorrectionKind::None => Ok(()),
        CorrectionKind::ExactDiffusion => exact_diffusion(strategy),
        CorrectionKind::Scaffold
        | CorrectionKind::GradientTracking
        | CorrectionKind::MomentumTracking { .. } => companions::check(strategy, plain_sgd),
        CorrectionKind::FedProx { .. } if strategy.contribution() != Contribution::Delta => {
            refused(
                KEY,
                "a spring to the anchor needs one that peers agree on, and more than one inner step away from it",
                PLAIN,
            )
        }
        CorrectionKind::FedProx { .. } if strategy.exchange() == ExchangeKind::None => refused(
            KEY,
            "without an exchange nobody agrees on an anchor to be pulled to",
            PLAIN,
        ),
        CorrectionKind::QuasiGlobal { .. } if strategy.exchange() != ExchangeKind::Gossip => {
            refused(
                KEY,
                "it makes its momentum of how mixing moves a peer's own parameters, which gossip does",
                "use exchange = \"gossip\", or outer optimizer \"slow-mo\"",
            )
        }
        CorrectionKind::QuasiGlobal { .. } if !plain_sgd => refused(
            KEY,
            "it is the momentum itself, of moves by the learning rate times the gradient",
            "use inner optimizer \"sgd\" with momentum = 0",
        ),
        _ => Ok(()),
    }
}

/// Refuses codecs that this exchange cannot carry.
fn codec(
    properties: &CodecProperties,
    exchange: ExchangeKind,
    contribution: Contribution,
    error_feedback: bool,
) -> Result<(), StrategyError> {
    if exchange != ExchangeKind::Gathered && properties.reduction == Reduction::Gathered {
        return refused(
            "compression.codec",
            "all members must see every peer's contribution apart, as it was encoded, and only one exchange shows them that",
            "use exchange = \"gathered\", or another codec, such as \"top-k\"",
        );
    }
    if properties.reduction == Reduction::Squeezed && !matches!(exchange, ExchangeKind::Server(_)) {
        return refused(
            "compression.codec",
            "what a reduction leaves out waits at its owner, who must be the same from round to round",
            "use exchange = \"parameter-server\" with mode = \"bsp\", or codec \"top-k\" with error feedback",
        );
    }
    if !properties.scaled && contribution != Contribution::Gradient {
        return refused(
            "compression.codec",
            "signs without a scale say where to go and not how far: only an inner optimizer knows that",
            "use contribution = \"gradient\", or codec \"ef-sign\"",
        );
    }
    if properties.needs_feedback && !error_feedback && exchange != ExchangeKind::Replicas {
        return refused(
            "compression.error_feedback",
            "a biased codec such as top-k never sends what it leaves out, and stalls",
            "set it to true, or use codec \"int8\"",
        );
    }
    if error_feedback && properties.error > 1.0 {
        return refused(
            "compression.error_feedback",
            "this codec may leave out more than there was, and the residual would grow without bound",
            "set it to false, or use a contractive codec such as \"int8\" or \"top-k\"",
        );
    }
    Ok(())
}

/// What a codec that all members keep something of in common needs of the rest.
fn in_common(strategy: &Strategy) -> Result<(), StrategyError> {
    let mut codec = strategy.codec();
    let properties = codec.properties();
    let Some(common) = codec.gathering() else {
        return Ok(());
    };
    if !strategy.companion().is_none() {
        let reason = "what all members keep in common of this codec is of parameters alone";
        return refused("inner.correction", reason, "leave the key out");
    }
    if strategy.aggregation() != AggregationKind::WeightedMean {
        return refused(
            "aggregation.rule",
            "this codec itself says what becomes of all contributions together",
            "use \"weighted-mean\", or another codec, such as \"top-k\"",
        );
    }
    if strategy.error_feedback() && (common.holds() || !properties.needs_feedback) {
        return refused(
            "compression.error_feedback",
            "what this codec leaves out all members keep in common, and a residual would bring it twice",
            "set it to false",
        );
    }
    Ok(())
}

/// What a center that takes arrivals one by one needs of the rest.
fn center(strategy: &Strategy) -> Result<(), StrategyError> {
    let elastic = matches!(strategy.outer_kind(), OuterKind::Easgd { .. });
    let parameters = strategy.contribution() == Contribution::Parameters;
    if elastic != parameters {
        return refused(
            "architecture.contribution",
            "elastic averaging, and it alone, draws the parameters themselves to a center",
            "use \"parameters\" with outer \"easgd\", or \"delta\" with another",
        );
    }
    if strategy.aggregation() != AggregationKind::WeightedMean {
        return refused(
            "aggregation.rule",
            "a robust rule compares contributions side by side, and here they arrive one by one",
            "use \"weighted-mean\", or mode = \"bsp\"",
        );
    }
    if strategy.center().compensation > 0.0 && strategy.contribution() != Contribution::Gradient {
        return refused(
            "synchronization.compensation",
            "it corrects a gradient by its own square, and a delta is a sum of many times a rate",
            "set it to 0, or use contribution = \"gradient\" with inner_steps = 1",
        );
    }
    if elastic {
        let codec = strategy.codec().properties();
        if !codec.dense || strategy.error_feedback() {
            return refused(
                "compression.codec",
                "a coarse codec or top-k of the parameters themselves is refused: only of a difference",
                "use \"int8\" without error feedback, or contribution = \"delta\"",
            );
        }
        return Ok(());
    }
    let counted = !matches!(
        strategy.inner_kind(),
        InnerKind::Sgd { .. } | InnerKind::Signum { .. }
    );
    if strategy.contribution() == Contribution::Gradient && counted {
        return refused(
            "inner.optimizer",
            "it counts the model's inner steps, and shards of a center move one by one",
            "use \"sgd\", or contribution = \"delta\"",
        );
    }
    all_reduce(strategy)
}

/// What no mixing of parameters with neighbours can have.
fn neighbours(strategy: &Strategy) -> Result<(), StrategyError> {
    if strategy.contribution() != Contribution::Parameters {
        return refused(
            "architecture.contribution",
            "gossip of deltas or gradients without an agreed anchor diverges",
            "use \"parameters\", or exchange = \"all-reduce\"",
        );
    }
    if strategy.aggregation() != AggregationKind::WeightedMean {
        return refused(
            "aggregation.rule",
            "gossip keeps the sum of what is pushed, which a robust rule does not",
            "use \"weighted-mean\", or exchange = \"all-reduce\"",
        );
    }
    if !matches!(
        strategy.outer_kind(),
        OuterKind::Average | OuterKind::NoLoCo { .. }
    ) {
        return refused(
            "outer.optimizer",
            "gossip mixes parameters and has no agreed delta for an outer optimizer",
            "use \"average\" or \"no-lo-co\", or exchange = \"all-reduce\"",
        );
    }
    Ok(())
}

/// What needs both ends of a link to move.
fn symmetric(strategy: &Strategy) -> Result<(), StrategyError> {
    let kind = strategy.topology_kind();
    match kind.is_some_and(|kind| !kind.symmetric()) {
        true => refused(
            "architecture.topology",
            "two ends exchange with each other, and in this topology whom one pushes to does not push back",
            "use \"ring\", \"torus\" or \"hypercube\", or exchange = \"gossip\"",
        ),
        false => Ok(()),
    }
}

/// Differences to replicas of neighbours.
fn replicas(strategy: &Strategy) -> Result<(), StrategyError> {
    neighbours(strategy)?;
    symmetric(strategy)?;
    if strategy.topology_kind() == Some(TopologyKind::RandomMatching) {
        return refused(
            "architecture.topology",
            "everybody meets everybody in time, and each would keep replicas of all",
            "use \"ring\", \"torus\" or \"matcha\"",
        );
    }
    if strategy.error_feedback() && *strategy.correction_kind() == CorrectionKind::ExactDiffusion {
        return refused(
            "compression.error_feedback",
            "what a residual brings later would be counted with what has moved",
            "set it to false",
        );
    }
    let properties = strategy.codec().properties();
    if properties.error >= 1.0 || properties.planes > 0 || properties.decay < 1.0 {
        return refused(
            "compression.codec",
            "a replica comes nearer only with a codec that leaves out less than there is and keeps no momentum",
            "use \"top-k\", \"ef-sign\" or \"int8\"",
        );
    }
    Ok(())
}

/// What exact diffusion needs of the rest.
fn exact_diffusion(strategy: &Strategy) -> Result<(), StrategyError> {
    if strategy.exchange() != ExchangeKind::Replicas {
        return refused(
            "inner.correction",
            "it takes off what has moved along each link, which other exchanges do not tell apart",
            "use exchange = \"replicas\"",
        );
    }
    if strategy.budget() != StepBudget::Steps(1) {
        return refused(
            "synchronization.inner_steps",
            "what has moved along the links makes up for one inner step",
            "set inner_steps = 1, or leave `inner.correction` out",
        );
    }
    if !strategy.codec().properties().unbiased {
        return refused(
            "compression.codec",
            "what a biased codec leaves out on one side adds up in what has moved, and diverges",
            "use \"int8\" or \"int4\", or leave `inner.correction` out",
        );
    }
    Ok(())
}

pub(super) fn parameters_as_they_are(strategy: &Strategy) -> Result<(), StrategyError> {
    neighbours(strategy)?;
    if !strategy.codec().properties().dense {
        return refused(
            "compression.codec",
            "a coarse codec or top-k of the parameters themselves is refused: only of a difference to a replica",
            "use \"int8\", or exchange = \"replicas\" or \"all-reduce\"",
        );
    }
    if strategy.error_feedback() {
        return refused(
            "compression.error_feedback",
            "what a codec leaves out of parameters is no part of the next round's parameters",
            "set it to false, or use exchange = \"all-reduce\"",
        );
    }
    Ok(())
}

fn all_reduce(strategy: &Strategy) -> Result<(), StrategyError> {
    if strategy.exchange().agrees() && strategy.outer_kind().is_for_arrivals() {
        return refused(
            "outer.optimizer",
            "it needs a center at which peers arrive one by one",
            "use \"average\", or exchange = \"parameter-server\" with mode = \"asp\"",
        );
    }
    if strategy.contribution() == Contribution::Parameters {
        return refused(
            "architecture.contribution",
            "all-reduce agrees on deltas or gradients relative to the anchor",
            "use \"delta\" (with outer \"average\" that is the mean of the parameters)",
        );
    }
    schedule::check(strategy)?;
    rule(strategy)?;
    if strategy.contribution() == Contribution::Gradient {
        if strategy.inner_kind().needs_shapes() {
            return refused(
                "inner.optimizer",
                "it needs whole tensors, and a mean gradient comes by fragments without shapes",
                "use \"adam-w\", or contribution = \"delta\"",
            );
        }
        if strategy.budget() != StepBudget::Steps(1) {
            return refused(
                "synchronization.inner_steps",
                "a gradient is exchanged after every inner step",
                "set inner_steps = 1, or use contribution = \"delta\"",
            );
        }
        if *strategy.outer_kind() != OuterKind::Average {
            return refused(
                "outer.optimizer",
                "a mean gradient goes to the inner optimizer: there is no delta for an outer one",
                "use \"average\", or contribution = \"delta\"",
            );
        }
    }
    Ok(())
}

/// What the aggregation rule needs of the rest.
fn rule(strategy: &Strategy) -> Result<(), StrategyError> {
    let rule = strategy.aggregation();
    if rule == AggregationKind::SignMajority && strategy.contribution() != Contribution::Gradient {
        return refused(
            "aggregation.rule",
            "a majority of signs has no length, and nothing scales the step of the anchor",
            "use \"median\", or contribution = \"gradient\"",
        );
    }
    if rule.is_coordinate_wise() && !strategy.codec().properties().dense {
        return refused(
            "aggregation.rule",
            "coordinate by coordinate most of a sparse contribution is zero, and so is the middle",
            "use \"centered-clip\", or a dense codec such as \"int8\"",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_are_refused_by_what_they_are() {
        let reduce = ExchangeKind::AllReduce;
        let lossless = CodecProperties::LOSSLESS;
        let gathered = CodecProperties {
            reduction: Reduction::Gathered,
            ..lossless
        };
        let signs = CodecProperties {
            needs_feedback: false,
            scaled: false,
            ..CodecProperties::biased(f64::INFINITY)
        };
        let (gossip, delta) = (ExchangeKind::Gossip, Contribution::Delta);
        let gradient = Contribution::Gradient;
        assert!(codec(&lossless, reduce, delta, true).is_ok());
        assert!(codec(&gathered, reduce, delta, false).is_err());
        assert!(codec(&gathered, gossip, Contribution::Parameters, false).is_err());
        assert!(codec(&gathered, ExchangeKind::Gathered, delta, false).is_ok());
        assert!(codec(&CodecProperties::biased(0.9), reduce, delta, false).is_err());
        assert!(codec(&CodecProperties::biased(0.9), reduce, delta, true).is_ok());
        assert!(codec(&CodecProperties::biased(1.0), reduce, delta, true).is_ok());
        assert!(codec(&CodecProperties::random(2.0), reduce, delta, false).is_ok());
        assert!(codec(&CodecProperties::random(2.0), reduce, delta, true).is_err());
        assert!(codec(&signs, reduce, gradient, false).is_ok());
        assert!(codec(&signs, reduce, gradient, true).is_err());
        assert!(codec(&signs, reduce, delta, false).is_err());
    }
}
