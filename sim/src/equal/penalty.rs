//! What rarer and smaller exchanges cost in loss, measured, in the form that the planner keeps.

use super::report::EqualReport;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Measured penalties.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Penalties {
    /// The command that measured them.
    pub command: String,
    /// Parameters of the model.
    pub parameters: u64,
    /// The rows.
    pub row: Vec<Penalty>,
}

/// One preset with one number of peers and one distribution of the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Penalty {
    /// Name of the entrant.
    pub entrant: String,
    /// Its preset.
    pub preset: String,
    /// Number of peers.
    pub peers: usize,
    /// Distribution of the data.
    pub data: String,
    /// Inner steps between two exchanges of a value.
    pub period: f64,
    /// Inner steps of each peer in the whole run.
    pub inner_steps: u64,
    /// Number of seeds.
    pub seeds: usize,
    /// Mean loss over the seeds, in nats.
    pub loss: f64,
    /// Mean over the seeds of loss over the baseline's, less one.
    pub penalty: f64,
}

impl EqualReport {
    /// The penalties as TOML, with the command that measured them. Entrants that diverged have none.
    pub fn penalties(&self, command: &str) -> String {
        let parameters = self.outcomes.first().map_or(0, |run| run.parameters);
        let mut text = format!(
            "# Loss on held-out data over `{}` with equal samples. Written by the command below.\n\
             command = {}\nparameters = {parameters}\n",
            self.trial.baseline,
            toml::Value::from(command)
        );
        for row in &self.rows {
            let (Some(loss), Some(penalty)) = (row.loss, row.penalty) else {
                continue;
            };
            let _ = write!(
                text,
                "\n[[row]]\nentrant = \"{}\"\npreset = \"{}\"\npeers = {}\ndata = \"{}\"\nperiod = {:.1}\n\
                 inner_steps = {}\nseeds = {}\nloss = {:.4}\npenalty = {:.4}\n",
                row.entrant,
                row.preset,
                row.peers,
                row.data,
                row.period,
                row.inner_steps,
                row.seeds.len(),
                loss.mean,
                penalty.mean
            );
        }
        text
    }
}
