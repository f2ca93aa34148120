//! The settings of `murmurate bench join`, and the configuration of its peers.

use crate::exchange::check_preset;
use crate::{BenchError, wrong};
use clap::Args;
use murmurate_net::tcp::BulkChoice;
use std::path::Path;

/// The settings of a measurement, from the flags of `murmurate bench join`.
#[derive(Clone, Debug, Args)]
pub struct JoinOptions {
    /// Number of peers that are in rounds, each in its own process
    #[arg(long, default_value_t = 3)]
    pub donors: usize,
    /// Number of parameters of the model
    #[arg(long, default_value_t = 10_000_000)]
    pub params: u64,
    /// Preset whose state is taken over; `murmurate strategies` lists all
    #[arg(long, default_value = "local-sgd")]
    pub preset: String,
    /// Milliseconds that the peers of a round train
    #[arg(long, default_value_t = 1000)]
    pub train_ms: u64,
    /// How bulk streams travel: auto, quic, tls
    #[arg(long, default_value_t)]
    pub bulk: BulkChoice,
    /// Kill the newcomer once this share of the state is there (0 to 1), and start it again
    #[arg(long, value_name = "SHARE")]
    pub kill_at: Option<f64>,
}

impl JoinOptions {
    /// # Errors
    /// If a flag has a value that cannot be measured.
    pub fn check(&self) -> Result<(), BenchError> {
        if !(1..murmurate_protocol::limits::GROUP_MEMBERS_MAX).contains(&self.donors) {
            return wrong("--donors", "give 1 to 63 peers");
        }
        if !(1..=1 << 32).contains(&self.params) {
            return wrong("--params", "give 1 to 4294967296 parameters");
        }
        if self.kill_at.is_some_and(|at| !(0.0..1.0).contains(&at)) {
            return wrong("--kill-at", "give a share of the state from 0 to below 1");
        }
        check_preset(&self.preset).map(drop)
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
