//! The planner's answer as a table and as JSON.

use super::advice::{PresetPlan, Verdict, seconds};
use super::choice::Choice;
use super::privacy::PrivacyCosts;
use crate::equal::Penalty;
use murmurate_strategies::grid::DEFAULT_PRESET;
use murmurate_strategies::plan::{Cluster, Cost, Groups, exact_or_cells};
use serde::Serialize;
use std::fmt;

/// All presets on one cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanReport {
    /// The cluster.
    pub cluster: Cluster,
    /// Ratio of the time of an inner step to the time of exchanging all parameters once.
    pub intensity: f64,
    /// The presets to try first, the best of them first.
    pub best: Vec<Choice>,
    /// The presets, in the order of the registry.
    pub presets: Vec<PresetPlan>,
    /// What a promise of privacy costs, if that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privacy: Option<PrivacyCosts>,
}

impl PlanReport {
    pub(super) fn new(cluster: &Cluster, presets: Vec<PresetPlan>, best: Vec<Choice>) -> Self {
        Self {
            cluster: *cluster,
            intensity: cluster.intensity(),
            best,
            presets,
            privacy: None,
        }
    }

    /// The question, in the units of people.
    fn write_cluster(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cluster {
            parameters,
            step,
            link,
            peers,
            target,
        } = self.cluster;
        let mbit = |rate: f64| rate * 8e-6;
        writeln!(
            f,
            "{peers} peers, {parameters} parameters, {step:?} an inner step, {} / {} Mbit/s up / down, \
             {:?} away",
            mbit(link.up),
            mbit(link.down),
            link.latency
        )?;
        writeln!(
            f,
            "One exchange in f32 takes {}, as long as {:.1} inner steps. Presets should train {:.0} % of the \
             time.",
            seconds(self.cluster.exchange_seconds_f32()),
            1.0 / self.intensity,
            100.0 * target
        )
    }

    fn write_best(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.best.is_empty() {
            let best =
                "no preset trains that much here, with any codec and up to 500 inner steps a round";
            return writeln!(f, "\n{best}");
        }
        writeln!(
            f,
            "\nTry these first. They exchange as often as the links allow; paste one into the configuration of \
             every daemon."
        )?;
        for (number, choice) in self.best.iter().enumerate() {
            let model = if choice.agrees {
                "all peers hold one model"
            } else {
                "each peer has a model of its own, near the others'"
            };
            writeln!(f, "\n{}. {}: {}", number + 1, choice.preset, choice.summary)?;
            writeln!(f, "   {}; {model}", figures(&choice.cost))?;
            if !choice.measured.is_empty() {
                writeln!(f, "   {}", lost(&choice.measured))?;
            }
            for line in choice.toml.lines() {
                writeln!(f, "{}", format!("      {line}").trim_end())?;
            }
        }
        Ok(())
    }

    /// All presets that reach the target, with what has to be changed, and the baseline.
    fn write_advised(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{:<23} {:>6} {:>9} {:>9} {:>9}  with",
            "All that are advised", "trains", "round", "GB/h", "memory"
        )?;
        for plan in &self.presets {
            let (cost, with) = match plan.advice.verdict {
                Verdict::Yardstick => (&plan.cost, "the baseline: no exchange".to_owned()),
                Verdict::Advised => (&plan.cost, "no change".to_owned()),
                Verdict::AdvisedWith => match (&plan.advice.changed, &plan.advice.changes) {
                    (Some(cost), Some(changes)) => (cost, words_of(changes)),
                    _ => continue,
                },
                Verdict::FewerPeers | Verdict::NotAdvised => continue,
            };
            writeln!(
                f,
                "{:<23} {:>4.0} % {:>9} {:>9.1} {:>6.2} GB  {with}",
                plan.preset,
                100.0 * cost.utilization,
                seconds(cost.round_s),
                cost.bytes_per_hour * 1e-9,
                cost.memory_bytes * 1e-9,
            )?;
        }
        Ok(())
    }

    /// The other presets, by the reason against them.
    fn write_refused(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refused = |plan: &&PresetPlan| {
            matches!(
                plan.advice.verdict,
                Verdict::FewerPeers | Verdict::NotAdvised
            )
        };
        let refused = self.presets.iter().filter(refused);
        let reasons = by_reason(refused.map(|plan| (plan.advice.reason.clone(), plan.preset)));
        if !reasons.is_empty() {
            writeln!(f, "\nNot advised on this cluster:")?;
        }
        for (reason, presets) in reasons {
            writeln!(f, "- {reason}\n    {}", presets.join(", "))?;
        }
        Ok(())
    }

    /// How presets cut a swarm that is larger than one group, each way once.
    fn write_groups(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = self.presets.iter().filter_map(|plan| {
            let groups = plan.cost.groups;
            let groups = groups.filter(|groups| !matches!(groups, Groups::One { .. }))?;
            Some((groups.to_string(), plan.preset))
        });
        for (way, presets) in by_reason(cut) {
            writeln!(f, "\n{way}\n    {}", presets.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for PlanReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_cluster(f)?;
        self.write_best(f)?;
        self.write_advised(f)?;
        self.write_refused(f)?;
        self.write_groups(f)?;
        let usual = self.presets.iter().find(|p| p.preset == DEFAULT_PRESET);
        let advice = usual.and_then(|p| exact_or_cells(self.cluster.peers, p.cost.round_s));
        if let Some(advice) = advice {
            writeln!(f, "{advice}")?;
        }
        self.privacy
            .iter()
            .try_for_each(|costs| write!(f, "{costs}"))
    }
}

/// Presets with the same reason, in the order in which reasons come first.
fn by_reason(
    presets: impl Iterator<Item = (String, &'static str)>,
) -> Vec<(String, Vec<&'static str>)> {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for (reason, preset) in presets {
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, presets)) => presets.push(preset),
            None => reasons.push((reason, vec![preset])),
        }
    }
    reasons
}

/// What a choice costs, in one line.
fn figures(cost: &Cost) -> String {
    format!(
        "trains {:.0} % of the time; a round takes {}; {:.1} GB an hour, {:.2} GB of memory",
        100.0 * cost.utilization,
        seconds(cost.round_s),
        cost.bytes_per_hour * 1e-9,
        cost.memory_bytes * 1e-9
    )
}

/// What a choice costs in loss, in one line.
fn lost(measured: &[Penalty]) -> String {
    let each = measured.iter().map(|row| {
        format!(
            "{:+.1} % {} ({} peers, {:.0} inner steps)",
            100.0 * row.penalty,
            row.data,
            row.peers,
            row.period
        )
    });
    let each: Vec<String> = each.collect();
    format!(
        "loss over bsp's with equal tokens, measured on a small model: {}",
        each.join(", ")
    )
}

/// The values of changed keys, such as `inner_steps = 77, codec = "bf16"`.
fn words_of(changes: &str) -> String {
    let lines = changes.lines().filter(|line| line.contains('='));
    lines.collect::<Vec<_>>().join(", ")
}
