//! Trains and times one entrant.

use super::once::Once;
use super::outcome::{EqualOutcome, EqualPoint, Pace};
use super::spec::{EqualCell, EqualTrial};
use crate::error::SimError;
use crate::recipe::trainer;
use crate::run::{RunOptions, run_scenario};
use crate::task::{ToyTasksOnly, TrainerFactory};
use murmurate_strategies::grid::Strategy;

/// Rounds of the two runs whose difference is the time of a round: the start, and what grows at it,
/// are in both. A multiple of every stagger in use.
const TIMED_ROUNDS: (u64, u64) = (16, 48);

impl EqualTrial {
    /// Checks what only the task knows: that each size and distribution has data and a model.
    ///
    /// # Errors
    /// The task's reason, in one line.
    pub fn check(&self, factory: &dyn TrainerFactory) -> Result<(), SimError> {
        let cells = self.cells();
        for (at, cell) in cells.iter().enumerate() {
            let same = |other: &EqualCell<'_>| {
                (other.size.peers, &other.data.name) == (cell.size.peers, &cell.data.name)
            };
            if !cells[..at].iter().any(same) {
                let (scenario, _) = self.training(cell)?;
                let strategy = Strategy::from_table(scenario.strategy.clone(), None)?;
                trainer(&scenario, factory, &strategy, cell.size.peers - 1)?;
            }
        }
        Ok(())
    }

    /// Runs one entrant with one seed: trains it, and times it on every network.
    ///
    /// # Errors
    /// When the strategy does not fit the task, or a run fails.
    pub fn play(
        &self,
        cell: &EqualCell<'_>,
        factory: &dyn TrainerFactory,
    ) -> Result<EqualOutcome, SimError> {
        let once = Once::new(factory);
        let strategy = Strategy::from_table(cell.entrant.strategy.clone(), None)?;
        let (scenario, rounds) = self.training(cell)?;
        let composed = Strategy::from_table(scenario.strategy.clone(), None)?;
        let mut first = trainer(&scenario, &once, &composed, 0)?;
        let (parameters, batch) = (first.layout().len() as u64, first.batch());
        let start = first.evaluate();
        let start = start.map_err(|error| SimError::Task(error.to_string()))?;
        drop(first);
        let report = run_scenario(&scenario, &once, RunOptions::default())?;
        if let Some(failure) = report.counters.failures.first() {
            return Err(SimError::Task(format!("{cell}: {failure}")));
        }
        let steps = cell.size.inner_steps as f64 / rounds as f64;
        let finite = |loss: &f64| loss.is_finite();
        let mut points = vec![EqualPoint {
            inner_steps: 0.0,
            loss: Some(start.loss).filter(finite),
        }];
        points.extend(report.samples.iter().map(|sample| EqualPoint {
            inner_steps: steps * sample.round as f64,
            loss: sample.loss.filter(finite),
        }));
        let mut paces = Vec::new();
        for network in &self.network {
            let after = |rounds| {
                let scenario = self.timing(cell, network, parameters, rounds)?;
                let report = run_scenario(&scenario, &ToyTasksOnly, RunOptions::default())?;
                Ok::<_, SimError>(report.virtual_s)
            };
            let (few, many) = TIMED_ROUNDS;
            let round_s = (after(many)? - after(few)?) / (many - few) as f64;
            paces.push(Pace {
                network: network.name.clone(),
                step_s: round_s / steps,
            });
        }
        Ok(EqualOutcome {
            entrant: cell.entrant.name.clone(),
            preset: strategy.name().to_owned(),
            data: cell.data.name.clone(),
            peers: cell.size.peers,
            seed: cell.seed,
            parameters,
            batch,
            inner_steps: cell.size.inner_steps,
            rounds,
            period: steps * f64::from(strategy.overlap_plan().stagger),
            bytes: report.counters.bytes() as f64 / report.peers as f64,
            points,
            paces,
        })
    }
}
