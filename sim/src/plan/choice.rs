//! The presets to try first on a cluster, as configurations to paste.

use super::advice::{Learns, PresetPlan, Verdict, ceiling_ms};
use super::measured::measured;
use crate::equal::Penalty;
use murmurate_protocol::{Contribution, StepBudget};
use murmurate_strategies::grid::{DEFAULT_PRESET, Strategy, StrategyError};
use murmurate_strategies::plan::{Cluster, Cost};
use serde::Serialize;
use std::fmt::Write;

/// How many presets are chosen.
const CHOICES: usize = 3;

/// How the names of presets for language models end.
const LANGUAGE: &str = "-lm";

/// A preset to try first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// Its name.
    pub preset: &'static str,
    /// Summary.
    pub summary: &'static str,
    /// Its codec.
    pub codec: String,
    /// Set if peers that apply the same round hold the same bits.
    pub agrees: bool,
    #[serde(skip)]
    lossless: bool,
    /// What it cost in loss on a text, where that was measured: the rows nearest to this number of peers
    /// and of inner steps, one for each distribution of the data.
    pub measured: Vec<Penalty>,
    #[serde(skip)]
    suits: bool,
    /// Cost of one round, with the changes.
    #[serde(flatten)]
    pub cost: Cost,
    /// The `[strategy]` of a daemon's configuration: the preset with its inner steps and codec.
    pub toml: String,
}

impl Choice {
    fn new(
        plan: &PresetPlan,
        cluster: &Cluster,
        learns: Learns,
    ) -> Result<Option<Self>, StrategyError> {
        if !matches!(plan.advice.verdict, Verdict::Advised | Verdict::AdvisedWith) {
            return Ok(None);
        }
        let changes = plan.advice.changes.as_deref().unwrap_or_default();
        let strategy = Strategy::parse(changes, Some(plan.preset))?;
        let cost = Cost::of(&strategy, cluster)?;
        let steps = cost.inner_steps * f64::from(strategy.overlap_plan().stagger);
        Ok(Some(Self {
            preset: plan.preset,
            summary: plan.summary,
            codec: strategy.codec_kind().name().to_owned(),
            agrees: strategy.exchange().agrees(),
            lossless: strategy.codec().properties().lossless,
            toml: toml(&strategy, &cost),
            measured: match learns {
                Learns::Anything => Vec::new(),
                Learns::Language => measured(plan.preset, cluster.peers, steps),
            },
            suits: plan.preset.ends_with(LANGUAGE) == (learns == Learns::Language),
            cost,
        }))
    }

    /// Chosen first: presets for what is trained, then peers that agree, then those that lost least where that
    /// was measured, then the fewest inner steps between exchanges, because peers drift apart meanwhile. Among
    /// equals a codec that loses nothing, the default, and the least memory.
    fn rank(&self) -> (bool, bool, i64, u64, bool, bool, u64) {
        (
            !self.suits,
            !self.agrees,
            self.lost_percent(),
            self.cost.inner_steps as u64,
            !self.lossless,
            self.preset != DEFAULT_PRESET,
            self.cost.memory_bytes as u64,
        )
    }

    /// What was measured on iid data, in whole percent: seeds differ by more. Zero if nothing was.
    fn lost_percent(&self) -> i64 {
        let iid = self.measured.iter().find(|row| row.data == "iid");
        iid.map_or(0, |row| (100.0 * row.penalty).round() as i64)
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
    learns: Learns,
) -> Result<Vec<Choice>, StrategyError> {
    let all = plans.iter().map(|plan| Choice::new(plan, cluster, learns));
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
