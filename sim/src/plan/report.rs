//! The planner's answer as a table and as JSON.

use super::{Advice, Cluster, Cost, Groups, Verdict};
use murmurate_strategies::grid::DEFAULT_PRESET;
use murmurate_strategies::plan::exact_or_cells;
use serde::Serialize;
use std::fmt;

/// One preset.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PresetPlan {
    /// Its name.
    pub preset: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// Cost of one round.
    #[serde(flatten)]
    pub cost: Cost,
    /// The advice.
    #[serde(flatten)]
    pub advice: Advice,
}

/// All presets on one cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanReport {
    /// The cluster.
    pub cluster: Cluster,
    /// Ratio of the time of an inner step to the time of exchanging all parameters once.
    pub intensity: f64,
    /// The presets, in the order of the registry.
    pub presets: Vec<PresetPlan>,
}

impl PlanReport {
    pub(super) fn new(cluster: &Cluster, presets: Vec<PresetPlan>) -> Self {
        Self {
            cluster: *cluster,
            intensity: cluster.intensity(),
            presets,
        }
    }

    /// How presets cut a swarm that is larger than one group, each way once.
    fn write_groups(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ways: Vec<(String, Vec<&str>)> = Vec::new();
        for plan in &self.presets {
            let groups = plan.cost.groups;
            let Some(groups) = groups.filter(|groups| !matches!(groups, Groups::One { .. })) else {
                continue;
            };
            let way = groups.to_string();
            match ways.iter_mut().find(|(known, _)| *known == way) {
                Some((_, presets)) => presets.push(plan.preset),
                None => ways.push((way, vec![plan.preset])),
            }
        }
        for (way, presets) in ways {
            writeln!(f, "{way}\n    {}", presets.join(", "))?;
        }
        Ok(())
    }

    /// As one JSON object.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a report has string keys and plain values only")
    }
}

impl fmt::Display for PlanReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
            "{parameters} parameters, {step:?} an inner step, {} / {} Mbit/s up / down, {:?} away, \
             {peers} peers",
            mbit(link.up),
            mbit(link.down),
            link.latency
        )?;
        writeln!(
            f,
            "model intensity {:.3e}: an inner step computes {:.3} s, one exchange in f32 takes \
             {:.3} s; target {:.0} % utilization",
            self.intensity,
            step.as_secs_f64(),
            self.cluster.exchange_seconds_f32(),
            100.0 * target
        )?;
        writeln!(
            f,
            "{:<24} {:>6} {:>12} {:>11} {:>10}  advice",
            "preset", "util", "round", "GB/h/peer", "memory"
        )?;
        for plan in &self.presets {
            let Cost {
                utilization,
                round_s,
                bytes_per_hour,
                memory_bytes,
                ..
            } = plan.cost;
            writeln!(
                f,
                "{:<24} {:>5.1}% {:>10.2} s {:>11.3} {:>7.2} GB  {}: {}",
                plan.preset,
                100.0 * utilization,
                round_s,
                bytes_per_hour * 1e-9,
                memory_bytes * 1e-9,
                words(plan.advice.verdict),
                plan.advice.reason
            )?;
        }
        self.write_groups(f)?;
        let usual = self.presets.iter().find(|p| p.preset == DEFAULT_PRESET);
        let advice = usual.and_then(|p| exact_or_cells(peers, p.cost.round_s));
        advice.map_or(Ok(()), |advice| writeln!(f, "{advice}"))
    }
}

const fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Yardstick => "yardstick",
        Verdict::Advised => "advised",
        Verdict::AdvisedWith => "advised with changes",
        Verdict::FewerPeers => "fewer peers",
        Verdict::NotAdvised => "not advised",
    }
}
