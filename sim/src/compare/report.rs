//! All runs of a comparison: a table for people, JSON for programs.

use super::outcome::Outcome;
use super::spec::{Comparison, TaskChoice};
use serde::Serialize;
use std::fmt;

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparisonReport {
    /// The comparison's name.
    pub comparison: Comparison,
    /// Every run.
    pub outcomes: Vec<Outcome>,
}

/// Runs that differ only in their seeds.
#[derive(Clone, Debug)]
pub(super) struct Row<'a> {
    pub(super) preset: &'a str,
    pub(super) runs: Vec<&'a Outcome>,
}

/// Means over seeds. Those about the target exist only if all seeds reached it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    pub(super) round: f64,
    pub(super) at_s: f64,
    pub(super) bytes: f64,
}

impl Row<'_> {
    /// What the runs needed to reach the target; `None` unless all seeds reached it.
    pub(super) fn needs(&self) -> Option<Needs> {
        let all = self.runs.iter().map(|run| run.reached);
        let all = all.collect::<Option<Vec<_>>>()?;
        let mean =
            |of: fn(&super::Reached) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        (!all.is_empty()).then(|| Needs {
            round: mean(|r| r.round),
            at_s: mean(|r| r.at_s),
            bytes: mean(|r| r.bytes),
        })
    }

    /// Mean over seeds of the last value of the curve.
    pub(super) fn last(&self, task: &TaskChoice) -> Option<f64> {
        let all = self.runs.iter().map(|run| run.last(task.target));
        let all = all.collect::<Option<Vec<_>>>()?;
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    }

    /// Why a run failed.
    pub(super) fn error(&self) -> Option<&str> {
        self.runs.iter().find_map(|run| run.error.as_deref())
    }
}

impl ComparisonReport {
    pub(super) fn new(comparison: &Comparison, outcomes: Vec<Outcome>) -> Self {
        Self {
            comparison: comparison.clone(),
            outcomes,
        }
    }

    /// The runs of one task, data distribution, size and network, by preset.
    pub(super) fn rows(
        &self,
        (task, data, peers, network): (&str, &str, usize, &str),
    ) -> Vec<Row<'_>> {
        let mut rows: Vec<Row<'_>> = Vec::new();
        let these = self.outcomes.iter().filter(|run| {
            (
                run.task.as_str(),
                run.data.as_str(),
                run.peers,
                run.network.as_str(),
            ) == (task, data, peers, network)
        });
        for run in these {
            match rows.iter_mut().find(|row| row.preset == run.preset) {
                Some(row) => row.runs.push(run),
                None => rows.push(Row {
                    preset: &run.preset,
                    runs: vec![run],
                }),
            }
        }
        rows
    }
}

/// Bytes with a suitable unit.
pub(crate) fn bytes(value: f64) -> String {
    let (scale, unit) = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")]
        .into_iter()
        .find(|(scale, _)| value >= *scale)
        .unwrap_or((1.0, "B"));
    format!("{:.3} {unit}", value / scale)
}

impl fmt::Display for ComparisonReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let comparison = &self.comparison;
        for task in &comparison.task {
            for data in &task.data {
                for &peers in &comparison.peers {
                    for network in &comparison.network {
                        let (task_name, data, network) = (&task.name, &data.name, &network.name);
                        writeln!(f, "\n{task_name}, {data}, {peers} peers, {network}")?;
                        let rows = self.rows((task_name, data, peers, network));
                        write_rows(f, task, &rows)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn write_rows(f: &mut fmt::Formatter<'_>, task: &TaskChoice, rows: &[Row<'_>]) -> fmt::Result {
    writeln!(
        f,
        "{:<20} {:>10} {:>10} {:>14} {:>12}",
        "preset", "at the end", "rounds", "bytes a peer", "seconds"
    )?;
    for row in rows {
        if let Some(reason) = row.error() {
            writeln!(f, "{:<20} {reason}", row.preset)?;
            continue;
        }
        let last = row
            .last(task)
            .map_or_else(|| "-".to_owned(), |v| format!("{v:.4}"));
        let (rounds, sent, seconds) = match row.needs() {
            None => ("-".to_owned(), "-".to_owned(), "-".to_owned()),
            Some(needs) => (
                format!("{:.1}", needs.round),
                bytes(needs.bytes),
                format!("{:.2}", needs.at_s),
            ),
        };
        let preset = row.preset;
        writeln!(
            f,
            "{preset:<20} {last:>10} {rounds:>10} {sent:>14} {seconds:>12}"
        )?;
    }
    Ok(())
}
