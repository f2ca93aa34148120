//! Runs a scenario and returns its report.

use crate::error::SimError;
use crate::recipe::Recipe;
use crate::report::Report;
use crate::scenario::{Scenario, line_of};
use crate::swarm::Swarm;
use crate::task::TrainerFactory;
use crate::trace::Trace;
use std::io::Write;
use std::path::Path;

/// Options of a run that are not part of the scenario.
#[derive(Default)]
pub struct RunOptions<'a> {
    /// Replaces the scenario's seed.
    pub seed: Option<u64>,
    /// Receives a JSON line for every input and output of every peer. Slow.
    pub trace: Option<Box<dyn Write + 'a>>,
}

impl core::fmt::Debug for RunOptions<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RunOptions")
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

/// Runs a scenario file.
///
/// # Errors
/// If the file cannot be run, an invariant breaks, or peers do not finish within the limits.
pub fn run_file(
    path: &Path,
    factory: &dyn TrainerFactory,
    options: RunOptions<'_>,
) -> Result<Report, SimError> {
    let scenario = Scenario::from_file(path)?;
    run_scenario(&scenario, factory, options).map_err(|error| {
        // Errors of a scenario that could be read name the line of the key.
        let text = std::fs::read_to_string(path).unwrap_or_default();
        in_file(&path.display().to_string(), &text, error)
    })
}

/// Adds the line of the key to an error of the strategy or the task.
fn in_file(file: &str, text: &str, error: SimError) -> SimError {
    let (table, reason) = match &error {
        SimError::Strategy(reason) => ("strategy", reason.to_string()),
        SimError::Task(reason) => ("task", reason.clone()),
        _ => return error,
    };
    let quoted = reason.split('`').nth(1).unwrap_or_default();
    let key = match quoted.strip_prefix(table).and_then(|q| q.strip_prefix('.')) {
        Some(key) => key,
        None => quoted,
    };
    let line = line_of(text, &format!("{table}.{key}"));
    SimError::InFile {
        file: file.to_owned(),
        line: line.max(line_of(text, &format!("{table}.kind"))),
        reason: Box::new(error),
    }
}

/// Runs a scenario.
///
/// # Errors
/// As [`run_file`].
pub fn run_scenario(
    scenario: &Scenario,
    factory: &dyn TrainerFactory,
    options: RunOptions<'_>,
) -> Result<Report, SimError> {
    let began = wall_clock();
    let mut scenario = scenario.clone();
    scenario.seed = options.seed.unwrap_or(scenario.seed);
    let recipe = Recipe::new(&scenario, factory)?;
    let trace = Trace::new(options.trace, !scenario.is_timing_only());
    let mut swarm = Swarm::new(&scenario, recipe, trace);
    let outcome = swarm.run();
    if let Some(error) = swarm.trace.failure() {
        return Err(SimError::Trace(error));
    }
    outcome?;
    swarm.counters.data = swarm.checks.data();
    let links = (0..scenario.peers).map(|peer| swarm.net.linked(peer).count() as u64);
    swarm.counters.links_most = links.max().unwrap_or(0);
    Ok(Report {
        faults_missed: swarm.faults_left(),
        name: scenario.name.clone(),
        seed: scenario.seed,
        peers: scenario.peers,
        live: swarm.live,
        rounds: scenario.rounds,
        virtual_s: swarm.now.as_secs_f64(),
        trace: swarm.trace.digest().to_hex(),
        consensus_distance: swarm.consensus_distance(),
        samples: swarm.samples.finish(),
        counters: swarm.counters,
        wall_s: began.elapsed().as_secs_f64(),
    })
}

/// The real clock. Only the report uses it, to say how long a run took.
#[allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the time a run took is reported and never fed to a machine"
)]
fn wall_clock() -> std::time::Instant {
    std::time::Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_strategies::grid::Strategy;

    #[test]
    fn what_strategy_and_task_refuse_has_a_file_and_a_line() {
        let text = "peers = 2\n[task]\nkind = \"x\"\n[task.shards]\nof = 3\n[strategy]\n\
                    preset = \"bsp\"\n[strategy.architecture]\nschedule = \"rign\"\n";
        let message = |error| in_file("s.toml", text, error).to_string();
        let task = SimError::Task("`task.shards.of` is 3".to_owned());
        assert_eq!(message(task), "s.toml:5: [task]: `task.shards.of` is 3");
        let task = SimError::Task("unknown kind `x`".to_owned());
        assert_eq!(message(task), "s.toml:3: [task]: unknown kind `x`");
        let strategy = Strategy::parse("[architecture]\nschedule = \"rign\"", Some("bsp"));
        let line = message(strategy.unwrap_err().into());
        assert!(
            line.starts_with("s.toml:9: [strategy]: `architecture.schedule`"),
            "{line}"
        );
    }
}
