//! The rows of a trial: what each entrant reached with equal samples, equal bytes and equal seconds.

use super::outcome::EqualOutcome;
use super::spec::EqualTrial;
use serde::Serialize;

/// A mean over seeds with its spread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of a sample; `None` for one seed.
    pub deviation: Option<f64>,
}

impl Spread {
    /// Of these values; `None` if there are none, or one is missing.
    pub fn of(values: impl Iterator<Item = Option<f64>>) -> Option<Self> {
        let values: Vec<f64> = values.collect::<Option<_>>()?;
        let count = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt());
        Some(Self { mean, deviation })
    }
}

/// What an entrant reached with one size and one distribution of the data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EqualRow {
    /// Name of the entrant.
    pub entrant: String,
    /// Name of its preset.
    pub preset: String,
    /// Number of peers.
    pub peers: usize,
    /// Name of the distribution of the data.
    pub data: String,
    /// Seeds that have run.
    pub seeds: Vec<u64>,
    /// Inner steps of each peer.
    pub inner_steps: u64,
    /// Inner steps between two exchanges of a value.
    pub period: f64,
    /// The loss on held-out data at the end, in nats; `None` if a run diverged.
    pub loss: Option<Spread>,
    /// The loss over the baseline's, of the same seeds.
    pub penalty: Option<Spread>,
    /// Bytes that a peer sent.
    pub bytes: f64,
    /// The loss when it has sent the budget's bytes.
    pub at_bytes: Option<Spread>,
    /// By network: the seconds of all inner steps, and the loss when the budget's seconds are over.
    pub networks: Vec<OnNetwork>,
}

/// A row's figures on one network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OnNetwork {
    /// Name of the network.
    pub network: String,
    /// Seconds of all inner steps.
    pub seconds: f64,
    /// The loss at the budget's seconds.
    pub at_seconds: Option<Spread>,
    /// Set if all inner steps were done before the budget was used up.
    pub done: bool,
}

/// The results of a trial, complete or not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EqualReport {
    /// The trial.
    pub trial: EqualTrial,
    /// All runs so far.
    pub outcomes: Vec<EqualOutcome>,
    /// The rows, by size, data and entrant.
    pub rows: Vec<EqualRow>,
}

impl EqualReport {
    /// The report of these runs.
    pub fn new(trial: &EqualTrial, outcomes: Vec<EqualOutcome>) -> Self {
        let mut rows = Vec::new();
        for size in &trial.size {
            for data in &trial.data {
                let these: Vec<&EqualOutcome> = outcomes
                    .iter()
                    .filter(|run| (run.peers, &run.data) == (size.peers, &data.name))
                    .collect();
                let entrants = trial.entrant.iter();
                rows.extend(entrants.filter_map(|entrant| row(trial, &entrant.name, &these)));
            }
        }
        Self {
            trial: trial.clone(),
            outcomes,
            rows,
        }
    }

    pub(super) fn rows_of(&self, peers: usize, data: &str) -> Vec<&EqualRow> {
        let rows = self.rows.iter();
        rows.filter(|row| (row.peers, row.data.as_str()) == (peers, data))
            .collect()
    }
}

fn row(trial: &EqualTrial, entrant: &str, these: &[&EqualOutcome]) -> Option<EqualRow> {
    let of = |name: &str| -> Vec<&EqualOutcome> {
        let all = these.iter().copied();
        all.filter(|run| run.entrant == name).collect()
    };
    let (runs, budget, baseline) = (of(entrant), of(&trial.budget), of(&trial.baseline));
    let first = *runs.first()?;
    // The budget's bytes and seconds differ little between seeds.
    let mean = |values: &[f64]| {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let bytes: Vec<f64> = budget.iter().map(|run| run.bytes).collect();
    let bytes = mean(&bytes);
    let at = |steps: &dyn Fn(&EqualOutcome) -> Option<f64>| {
        Spread::of(runs.iter().map(|run| run.at(steps(run)?)))
    };
    let networks = trial.network.iter().map(|network| {
        let total = |run: &EqualOutcome| Some(run.step_s(&network.name)? * run.inner_steps as f64);
        let seconds: Vec<f64> = budget.iter().filter_map(|run| total(run)).collect();
        let seconds = mean(&seconds);
        let own = total(first).unwrap_or(f64::NAN);
        OnNetwork {
            network: network.name.clone(),
            seconds: own,
            at_seconds: at(&|run| Some(seconds? / run.step_s(&network.name)?)),
            // The budget's own entrant is done when it ends, but for rounding.
            done: seconds.is_some_and(|all| own < all * (1.0 - 1e-9)),
        }
    });
    let penalty = |run: &&EqualOutcome| {
        let base = baseline.iter().find(|base| base.seed == run.seed)?.last()?;
        Some(run.last()? / base - 1.0)
    };
    Some(EqualRow {
        entrant: entrant.to_owned(),
        preset: first.preset.clone(),
        peers: first.peers,
        data: first.data.clone(),
        seeds: runs.iter().map(|run| run.seed).collect(),
        inner_steps: first.inner_steps,
        period: first.period,
        loss: Spread::of(runs.iter().map(|run| run.last())),
        penalty: Spread::of(runs.iter().map(penalty)),
        bytes: runs.iter().map(|run| run.bytes).sum::<f64>() / runs.len() as f64,
        at_bytes: at(&|run| Some(run.steps_of_bytes(bytes?))),
        networks: networks.collect(),
    })
}
