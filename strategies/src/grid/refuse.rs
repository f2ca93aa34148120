//! Combinations of methods that cannot work, each with the reason and the nearest one that works.

use super::error::{refuse, refused};
use super::{
    Strategy, StrategyError, companions, compression, grouping, methods, overlap, rates,
    synchronization,
};
use crate::aggregate::MEMBERS_LEAST;
use crate::compress::{CodecProperties, Reduction};
use crate::correct::Needs;
use murmurate_protocol::{Contribution, ExchangeFacts, Layers, Pace, Schedule, StepBudget};

pub(super) fn check(strategy: &Strategy) -> Result<(), StrategyError> {
    synchronization::check(strategy)?;
    correction(strategy)?;
    rates::check(strategy)?;
    companions::anchors(strategy)?;
    overlap::check(strategy)?;
    (methods::of(strategy.exchange()).check)(strategy)?;
    grouping::check(strategy)?;
    compression::check(strategy)?;
    private(strategy)?;
    masked(strategy)?;
    let facts = strategy.exchange().facts();
    if !facts.exchanges {
        return Ok(());
    }
    in_common(strategy)?;
    two_passes(strategy)?;
    momenta(strategy)?;
    codec(
        &strategy.codec().properties(),
        facts,
        strategy.contribution(),
        strategy.error_feedback(),
    )
}

/// Refuses choices with which more would leave a peer than its clipped and noised deltas.
fn private(strategy: &Strategy) -> Result<(), StrategyError> {
    const RULE: &str = "aggregation.rule";
    let Some(privacy) = strategy.aggregation().privacy() else {
        return Ok(());
    };
    refuse(
        !strategy.exchange().agrees(),
        RULE,
        "peers would send parameters or take contributions one by one, and the bound is on deltas of one round",
        "use exchange = \"all-reduce\", \"gathered\", or \"parameter-server\" with mode = \"bsp\"",
    )?;
    let overlap = strategy.overlap_plan();
    refuse(
        strategy.contribution() != Contribution::Delta,
        RULE,
        "it clips the change of a whole round, and a gradient is that of one inner step",
        "use contribution = \"delta\", or rule = \"weighted-mean\"",
    )?;
    refuse(
        overlap.late_steps > 0 || overlap.stagger > 1 || overlap.layers != Layers::Together,
        RULE,
        "a delta is clipped and noised once, as a whole, and parts that leave at other times hold it several times",
        "leave out overlap.late_steps, overlap.stagger and overlap.layers, or use rule = \"weighted-mean\"",
    )?;
    refuse(
        !strategy.companion().is_none(),
        RULE,
        "a companion travels beside the parameters, and its norm has no bound",
        "leave inner.correction out, or use rule = \"weighted-mean\"",
    )?;
    refuse(
        (2..MEMBERS_LEAST).contains(&privacy.members),
        "aggregation.members",
        "the sum of two shows each of them the contribution of the other",
        "use members = 1, or at least 3",
    )?;
    refuse(
        strategy.synchronization().pace == Pace::Balanced,
        RULE,
        "peers find how fast the others are by the weights of contributions, which are all equal",
        "use another synchronization.pace, or rule = \"weighted-mean\"",
    )?;
    refuse(
        strategy.synchronization().pace.is_agreed() || strategy.compression.choice.is_some(),
        RULE,
        "members would tell each other their losses or waits, which depend on their data and have no noise",
        "use another synchronization.pace, and leave compression.choose out",
    )?;
    refuse(
        privacy.allowed(0.0) == Some(0),
        "aggregation.budget",
        "a single contribution with this noise costs more than the whole budget",
        "raise aggregation.noise, or aggregation.budget",
    )
}

/// Refuses choices with which more than the sum of masked contributions would be seen, or none could be made.
fn masked(strategy: &Strategy) -> Result<(), StrategyError> {
    const RULE: &str = "aggregation.rule";
    if !strategy.aggregation().is_masked() {
        return Ok(());
    }
    let facts = strategy.exchange().facts();
    refuse(
        !facts.agrees || facts.shows_contributions || strategy.schedule() != Schedule::Butterfly,
        RULE,
        "masks cancel in the sum of one agreed group, which the owner of a shard makes of all contributions",
        "use exchange = \"all-reduce\" along the butterfly, or \"parameter-server\" with mode = \"bsp\"",
    )?;
    refuse(
        strategy.signs(),
        methods::LIARS.name,
        "a member that lies is found by its contribution, and no one sees a masked one",
        "set it to 0, or use another rule, such as \"centered-clip\"",
    )?;
    let codec = strategy.codec().properties();
    refuse(
        !codec.dense || codec.reduction == Reduction::TwoPasses,
        "compression.codec",
        "every value of a contribution is masked, whatever it is: the codec encodes means alone",
        "use a dense codec, such as \"f32\" or \"int8\"",
    )?;
    refuse(
        strategy.error_feedback(),
        "compression.error_feedback",
        "masked contributions leave nothing out that could follow",
        "set it to false",
    )?;
    refuse(
        strategy.compression.choice.is_some(),
        "compression.choose",
        "contributions are masked and not encoded, so a codec changes half of what is sent",
        "leave it out",
    )
}

fn correction(strategy: &Strategy) -> Result<(), StrategyError> {
    const KEY: &str = "inner.correction";
    const PLAIN: &str =
        "leave the key out, or use contribution = \"delta\" with exchange = \"all-reduce\"";
    let plain_sgd = strategy.inner_kind().is_plain_sgd();
    let facts = strategy.exchange().facts();
    let mixes_in_rounds = facts.has_mass && facts.waits;
    match strategy.correction_kind().needs() {
        Needs::Nothing => Ok(()),
        Needs::Moves => exact_diffusion(strategy),
        Needs::Mean | Needs::Flows => companions::check(strategy, plain_sgd),
        Needs::Anchor if strategy.contribution() != Contribution::Delta => refused(
            KEY,
            "a pull to the anchor needs an anchor that peers agree on, and several inner steps between two exchanges",
            PLAIN,
        ),
        Needs::Anchor if !strategy.exchange().facts().exchanges => refused(
            KEY,
            "without an exchange there is no agreed anchor to pull to",
            PLAIN,
        ),
        Needs::Mixing if !mixes_in_rounds => refused(
            KEY,
            "its momentum is the change of a peer's parameters by mixing, which only gossip does",
            "use exchange = \"gossip\", or outer optimizer \"slow-mo\"",
        ),
        Needs::Mixing if !plain_sgd => refused(
            KEY,
            "it replaces the momentum, and assumes that a step is the learning rate times the gradient",
            "use inner optimizer \"sgd\" with momentum = 0",
        ),
        Needs::Anchor | Needs::Mixing => Ok(()),
    }
}

/// Refuses codecs that this exchange cannot carry.
fn codec(
    properties: &CodecProperties,
    exchange: ExchangeFacts,
    contribution: Contribution,
    error_feedback: bool,
) -> Result<(), StrategyError> {
    refuse(
        !exchange.shows_contributions && properties.reduction == Reduction::Gathered,
        "compression.codec",
        "all members must see every encoded contribution, and only exchange \"gathered\" shows them",
        "use exchange = \"gathered\", or another codec, such as \"top-k\"",
    )?;
    refuse(
        properties.reduction == Reduction::Squeezed && !exchange.keeps_owners,
        "compression.codec",
        "the owner of a shard keeps the residual of its reductions, so it must be the same in every round",
        "use exchange = \"parameter-server\" with mode = \"bsp\", or codec \"top-k\" with error feedback",
    )?;
    refuse(
        !properties.scaled && contribution != Contribution::Gradient,
        "compression.codec",
        "signs without a scale have a direction but no length, which only an inner optimizer sets",
        "use contribution = \"gradient\", or codec \"ef-sign\"",
    )?;
    let mixed_in_parts = properties.masks && exchange.mixes_parts;
    let sends_later = exchange.has_replicas || mixed_in_parts;
    refuse(
        properties.needs_feedback && !error_feedback && !sends_later,
        "compression.error_feedback",
        "a biased codec such as top-k never sends what it leaves out, and stalls",
        "set it to true, or use codec \"int8\"",
    )?;
    refuse(
        error_feedback && properties.error > 1.0,
        "compression.error_feedback",
        "the error of this codec may be longer than the values, and the residual would grow without bound",
        "set it to false, or use a contractive codec such as \"int8\" or \"top-k\"",
    )
}

/// Requirements of a codec with a common state of all members.
fn in_common(strategy: &Strategy) -> Result<(), StrategyError> {
    let mut codec = strategy.codec();
    let properties = codec.properties();
    let Some(common) = codec.gathering() else {
        return Ok(());
    };
    if !strategy.companion().is_none() {
        let reason = "the common state of this codec is one of parameters, not of a companion";
        return refused("inner.correction", reason, "leave the key out");
    }
    refuse(
        !strategy.aggregation().is_mean(),
        "aggregation.rule",
        "this codec itself combines all contributions",
        "use \"weighted-mean\", or another codec, such as \"top-k\"",
    )?;
    refuse(
        strategy.error_feedback() && (common.holds() || !properties.needs_feedback),
        "compression.error_feedback",
        "the common state of all members contains what this codec leaves out, and a residual would add it twice",
        "set it to false",
    )
}

/// Requirements of a codec whose members contribute twice to a round.
fn two_passes(strategy: &Strategy) -> Result<(), StrategyError> {
    let facts = strategy.exchange().facts();
    if strategy.codec().properties().reduction != Reduction::TwoPasses {
        return Ok(());
    }
    let owners = facts.agrees && !facts.shows_contributions;
    refuse(
        !owners || strategy.schedule() != Schedule::Butterfly,
        "compression.codec",
        "members contribute twice, for a basis that the owner of a shard makes: partial sums and neighbours have no such owner",
        "use exchange = \"all-reduce\" along the butterfly, or exchange = \"parameter-server\" with mode = \"bsp\"",
    )?;
    refuse(
        strategy.signs(),
        methods::LIARS.name,
        "no vote is about the basis that an owner makes of the first contributions, so it must be honest",
        "set it to 0, or use another codec, such as \"top-k\"",
    )?;
    if !strategy.companion().is_none() {
        let reason = "what members keep in common is of parameters, not of a companion";
        return refused("inner.correction", reason, "leave the key out");
    }
    refuse(
        !strategy.aggregation().is_mean(),
        "aggregation.rule",
        "contributions to a basis are summed, and no rule can compare them",
        "use \"weighted-mean\", or another codec, such as \"top-k\"",
    )
}

/// Requirements of peers that send momenta in place of gradients.
fn momenta(strategy: &Strategy) -> Result<(), StrategyError> {
    let agreed = strategy.exchange().agrees() && strategy.contribution() == Contribution::Gradient;
    refuse(
        strategy.inner_kind().sends_momenta() && !agreed,
        "inner.sends",
        "a momentum is sent in place of a gradient, and all members must hold the common one",
        "use \"gradients\", or contribution = \"gradient\" with an exchange that agrees",
    )
}

fn exact_diffusion(strategy: &Strategy) -> Result<(), StrategyError> {
    refuse(
        !strategy.exchange().facts().has_replicas,
        "inner.correction",
        "it subtracts what was exchanged along each link, which other exchanges do not record",
        "use exchange = \"replicas\"",
    )?;
    refuse(
        strategy.budget() != StepBudget::Steps(1),
        "synchronization.inner_steps",
        "the exchange along the links corrects exactly one inner step",
        "set inner_steps = 1, or leave `inner.correction` out",
    )?;
    refuse(
        !strategy.codec().properties().unbiased,
        "compression.codec",
        "the errors of a biased codec add up in what was exchanged along a link, and diverge",
        "use \"int8\" or \"int4\", or leave `inner.correction` out",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::ExchangeKind;

    #[test]
    fn codecs_are_refused_by_what_they_are() {
        let reduce = ExchangeKind::AllReduce.facts();
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
        let (gossip, delta) = (ExchangeKind::Gossip.facts(), Contribution::Delta);
        let gradient = Contribution::Gradient;
        assert!(codec(&lossless, reduce, delta, true).is_ok());
        assert!(codec(&gathered, reduce, delta, false).is_err());
        assert!(codec(&gathered, gossip, Contribution::Parameters, false).is_err());
        assert!(codec(&gathered, ExchangeKind::Gathered.facts(), delta, false).is_ok());
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
