//! What the status says from the start.

use super::Forecaster;
use crate::goal::Target;
use crate::metrics::RateFact;
use crate::unit::Unit;
use murmurate_protocol::AgreementPlan;
use std::collections::BTreeMap;

/// Facts about a daemon from before its first event.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The run's name.
    pub run: String,
    /// This peer's id, hexadecimal.
    pub peer: String,
    /// The plan's hash, hexadecimal.
    pub plan: String,
    /// The daemon's name, if it has one.
    pub name: Option<String>,
    /// When the daemon leaves by itself.
    pub goal: Target,
    /// Name of the preset.
    pub preset: String,
    /// Number of rounds; zero means until told to stop.
    pub rounds: u64,
    /// Number of this peer's trainers.
    pub ranks: u32,
    /// The task in words: its kind, its model and its data.
    pub task: String,
    /// Parameters of the model.
    pub parameters: u64,
    /// Stores of the method, each in multiples of 4 bytes x parameters.
    pub multiples: BTreeMap<String, f64>,
    /// The schedule of the learning rate, if it is known.
    pub rate: Option<RateFact>,
    /// The codec of the configuration.
    pub codec: String,
    /// The codecs that the owner of the run may choose, that one first; none where it cannot be changed.
    pub codecs: Vec<String>,
    /// All daemons have the same parameters after a round.
    pub agrees: bool,
    /// Terms of the agreement among the members of a group.
    pub agreement: AgreementPlan,
    /// Others are to be found: this daemon was invited, has addresses to join, or met others before.
    pub expects_others: bool,
    /// Predicts the rounds, if a prediction is possible.
    pub forecaster: Option<Forecaster>,
    /// The unit of the task's loss.
    pub unit: Unit,
}
