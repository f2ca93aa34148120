//! The presets to try first on a cluster, as configurations to paste. What presets for language
//! models cost in loss was measured on a small one by `murmurate sim language`.

use super::advice::{Learns, PresetPlan, Verdict, ceiling_ms};
use crate::equal::{Penalties, Penalty};
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
    /// Its measured penalties in loss on a text: the rows nearest to this number of peers and of inner steps,
    /// one for each distribution of the data. Empty where none was measured.
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

    /// Chosen first: presets that suit the task, then peers that agree, then those that lost least where that
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

    /// The measured penalty on iid data, in whole percent: seeds differ by more. Zero if there is none.
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

/// The file that `--penalties` wrote.
const MEASURED: &str = include_str!("measured.toml");

/// All that was measured.
///
/// # Panics
/// Never: a test reads the file.
pub fn measured_penalties() -> Penalties {
    toml::from_str(MEASURED).expect("measured.toml is what `--penalties` wrote")
}

/// The rows of a preset with the number of peers, then the inner steps between two exchanges of a value,
/// that are nearest to these as ratios; one for each distribution of the data.
pub fn measured(preset: &str, peers: usize, steps: f64) -> Vec<Penalty> {
    let away = |row: &Penalty| {
        let ratio = |a: f64, b: f64| (a / b).ln().abs();
        (
            ratio(row.peers as f64, peers as f64),
            ratio(row.period, steps),
        )
    };
    let mut nearest: Vec<Penalty> = Vec::new();
    let rows = measured_penalties().row.into_iter();
    for row in rows.filter(|row| row.preset == preset) {
        match nearest.iter_mut().find(|other| other.data == row.data) {
            Some(other) if away(&row) < away(other) => *other = row,
            Some(_) => {}
            None => nearest.push(row),
        }
    }
    nearest
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_strategies::grid::Strategy;

    #[test]
    fn what_was_measured_can_be_read_and_names_presets() {
        let all = measured_penalties();
        assert!(all.command.starts_with("murmurate sim language"), "{all:?}");
        for row in &all.row {
            assert!(Strategy::preset(&row.preset).is_ok(), "{row:?}");
            assert!(row.loss > 0.0 && row.penalty > -0.5, "{row:?}");
        }
    }

    #[test]
    fn the_nearest_row_answers_for_each_distribution() {
        for preset in [
            "local-adam-lm",
            "diloco-lm",
            "streaming-diloco-lm",
            "sparseloco-lm",
        ] {
            let found = measured(preset, 3, 40.0);
            let data: Vec<&str> = found.iter().map(|row| row.data.as_str()).collect();
            assert!(data.contains(&"iid"), "{preset}: {found:?}");
            assert!(found.iter().all(|row| (row.peers, row.period) == (4, 32.0)));
        }
        assert!(measured("diloco", 4, 32.0).is_empty());
    }
}
