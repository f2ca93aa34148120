//! The presets to try first on a cluster, as configurations to paste.

use super::advice::ceiling_ms;
use super::{Cluster, Cost, PresetPlan, Verdict};
use murmurate_protocol::{Contribution, StepBudget};
use murmurate_strategies::grid::{DEFAULT_PRESET, Strategy, StrategyError};
use serde::Serialize;
use std::fmt::Write;

/// How many presets are chosen.
const CHOICES: usize = 3;

/// A preset to try first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// Its name.
    pub preset: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// Its codec.
    pub codec: String,
    /// Whether peers that apply the same round hold the same bits.
    pub agrees: bool,
    #[serde(skip)]
    lossless: bool,
    /// Cost of one round, with the changes.
    #[serde(flatten)]
    pub cost: Cost,
    /// The `[strategy]` of a daemon's configuration: the preset with its inner steps and codec.
    pub toml: String,
}

impl Choice {
    fn new(plan: &PresetPlan, cluster: &Cluster) -> Result<Option<Self>, StrategyError> {
        if !matches!(plan.advice.verdict, Verdict::Advised | Verdict::AdvisedWith) {
            return Ok(None);
        }
        let changes = plan.advice.changes.as_deref().unwrap_or_default();
        let strategy = Strategy::parse(changes, Some(plan.preset))?;
        let cost = Cost::of(&strategy, cluster)?;
        Ok(Some(Self {
            preset: plan.preset,
            summary: plan.summary,
            codec: strategy.codec_kind().name().to_owned(),
            agrees: strategy.exchange().agrees(),
            lossless: strategy.codec().properties().lossless,
            toml: toml(&strategy, &cost),
            cost,
        }))
    }

    /// Chosen first: peers that agree, then the fewest inner steps between exchanges, because peers drift
    /// apart meanwhile. Among equals a codec that loses nothing, the default, and the least memory.
    fn rank(&self) -> (bool, u64, bool, bool, u64) {
        (
            !self.agrees,
            self.cost.inner_steps as u64,
            !self.lossless,
            self.preset != DEFAULT_PRESET,
            self.cost.memory_bytes as u64,
        )
    }

    /// Two of one shape differ only in their optimizers: one of them is enough to choose from.
    fn shape(&self) -> (bool, u64, &str) {
        (self.agrees, self.cost.inner_steps as u64, &self.codec)
    }
}

/// The presets to try first: at most [`CHOICES`], the best first.
///
/// # Errors
/// If a preset that is advised cannot be planned.
pub(super) fn choose(
    plans: &[PresetPlan],
    cluster: &Cluster,
) -> Result<Vec<Choice>, StrategyError> {
    let all = plans.iter().map(|plan| Choice::new(plan, cluster));
    let all: Vec<Option<Choice>> = all.collect::<Result<_, _>>()?;
    let mut all: Vec<Choice> = all.into_iter().flatten().collect();
    all.sort_by_key(Choice::rank);
    let mut chosen: Vec<Choice> = Vec::new();
    for choice in all {
        if chosen.len() < CHOICES && chosen.iter().all(|other| other.shape() != choice.shape()) {
            chosen.push(choice);
        }
    }
    Ok(chosen)
}

/// The `[strategy]` of a daemon's configuration.
fn toml(strategy: &Strategy, cost: &Cost) -> String {
    let mut text = format!("[strategy]\npreset = \"{}\"\n", strategy.name());
    let mut table = |name: &str, line: String| {
        let _ = write!(text, "\n[strategy.{name}]\n{line}\n");
    };
    // The round of a gradient is one inner step.
    if let StepBudget::Steps(steps) = strategy.budget()
        && strategy.contribution() != Contribution::Gradient
    {
        table("synchronization", format!("inner_steps = {steps}"));
    }
    let codec = strategy.codec_kind().name();
    table("compression", format!("codec = \"{codec}\""));
    if let Some(ms) = ceiling_ms(strategy, cost) {
        table("deadlines", format!("ceiling_ms = {ms}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::plan;

    fn chosen(parameters: f64, link: &str, peers: usize) -> Vec<Choice> {
        let cluster = Cluster::new(parameters, 250.0, link, peers, 0.8).unwrap();
        plan(&cluster).unwrap().best
    }

    #[test]
    fn what_is_chosen_can_be_pasted_and_reaches_the_target() {
        for (parameters, link, peers) in [
            (1e8, "100mbit/40ms", 8),
            (1e6, "10gbit/100us", 4),
            (1e8, "1gbit/30ms", 1000),
            (1e9, "20mbit/100mbit/60ms", 16),
        ] {
            let cluster = Cluster::new(parameters, 250.0, link, peers, 0.8).unwrap();
            for choice in chosen(parameters, link, peers) {
                let file: toml::Table = choice.toml.parse().unwrap();
                let strategy = file["strategy"].as_table().unwrap();
                let strategy: Strategy = toml::to_string(strategy).unwrap().parse().unwrap();
                let cost = Cost::of(&strategy, &cluster).unwrap();
                assert_eq!(cost, choice.cost, "{}", choice.toml);
                assert!(cost.utilization >= 0.8, "{}", choice.toml);
                let ceiling = strategy.deadlines().ceiling.as_secs_f64();
                assert!(cost.exchange_s <= ceiling, "{}", choice.toml);
            }
        }
    }

    #[test]
    fn on_a_fast_network_every_step_is_exchanged_as_it_is() {
        let chosen = chosen(1e6, "10gbit/100us", 4);
        assert_eq!((chosen[0].preset, &*chosen[0].codec), ("bsp", "f32"));
        assert!(
            !chosen[0].toml.contains("inner_steps"),
            "{}",
            chosen[0].toml
        );
    }

    #[test]
    fn three_differ_in_more_than_their_optimizers() {
        let chosen = chosen(1e8, "100mbit/40ms", 8);
        assert_eq!(chosen.len(), CHOICES);
        for (at, choice) in chosen.iter().enumerate() {
            let before = &chosen[..at];
            assert!(before.iter().all(|other| other.shape() != choice.shape()));
            assert!(before.iter().all(|other| other.rank() <= choice.rank()));
        }
    }
}
