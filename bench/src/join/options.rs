//! The settings of `murmurate bench join`, and the configuration of its peers.

use crate::{BenchError, wrong};
use murmurate_net::tcp::BulkChoice;
use std::path::Path;
use std::time::Duration;

/// The settings of a measurement, from the flags of `murmurate bench join`.
#[derive(Clone, Debug)]
pub struct JoinOptions {
    /// Number of peers that are in rounds.
    pub donors: usize,
    /// Number of parameters of the model.
    pub params: u64,
    /// The preset whose state is taken over.
    pub preset: String,
    /// Duration of an inner step, of which a round has one.
    pub train: Duration,
    /// How bulk streams travel.
    pub bulk: BulkChoice,
    /// Kills the newcomer once this share of the state is there, and starts it again.
    pub kill_at: Option<f64>,
}

impl JoinOptions {
    pub(super) fn check(&self) -> Result<(), BenchError> {
        if !(1..murmurate_protocol::limits::GROUP_MEMBERS_MAX).contains(&self.donors) {
            return wrong("--donors", "give 1 to 63 peers");
        }
        if !(1..=1 << 32).contains(&self.params) {
            return wrong("--params", "give 1 to 4294967296 parameters");
        }
        if self.kill_at.is_some_and(|at| !(0.0..1.0).contains(&at)) {
            return wrong("--kill-at", "give a share of the state from 0 to below 1");
        }
        Ok(())
    }

    pub(super) fn config(&self, dir: &Path, join: Option<&str>) -> String {
        let join = join.map_or_else(String::new, |address| format!("{address:?}"));
        format!(
            "[run]\nname = \"bench\"\nopen = true\nrounds = 0\nstart_with = {donors}\n\
             [strategy]\npreset = {preset:?}\n\
             [strategy.synchronization]\ninner_steps = 1\n\
             [network]\nbulk = \"{bulk}\"\nlisten = [\"/ip4/127.0.0.1/udp/0/quic-v1\"]\n\
             join = [{join}]\nmdns = false\n\
             [daemon]\ndir = {dir:?}\nhttp = \"127.0.0.1:0\"\nevaluate_every = 0\nsave_every_s = 86400\n",
            donors = self.donors,
            preset = self.preset,
            bulk = self.bulk,
            dir = dir.display().to_string(),
        )
    }
}
