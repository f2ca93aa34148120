//! Tasks: toy tasks come from `strategies`, all others from the caller of the simulation.

use murmurate_strategies::Trainer;
use murmurate_strategies::inner::InnerKind;

/// A request for one machine's trainer.
#[derive(Clone, Debug)]
pub struct TrainerRequest<'a> {
    /// The task's kind in the scenario.
    pub kind: &'a str,
    /// The rest of its `[task]` table.
    pub options: &'a toml::Table,
    /// The machine.
    pub peer: usize,
    /// Number of machines.
    pub peers: usize,
    /// The inner optimizer of the scenario's strategy.
    pub inner: &'a InnerKind,
    /// The scenario's seed. First parameters must be equal on all machines; data may differ.
    pub seed: u64,
}

/// Builds trainers for tasks that `sim` does not know, because it never imports `tasks`.
///
/// It is called again when a machine restarts. Equal requests must give equal trainers.
pub trait TrainerFactory {
    /// One machine's trainer.
    ///
    /// # Errors
    /// Why the request has no trainer, in one line.
    fn trainer(&self, request: &TrainerRequest<'_>) -> Result<Box<dyn Trainer>, String>;
}

impl<F> TrainerFactory for F
where
    F: Fn(&TrainerRequest<'_>) -> Result<Box<dyn Trainer>, String>,
{
    fn trainer(&self, request: &TrainerRequest<'_>) -> Result<Box<dyn Trainer>, String> {
        self(request)
    }
}

/// Knows no task other than the toy tasks.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToyTasksOnly;

impl TrainerFactory for ToyTasksOnly {
    fn trainer(&self, request: &TrainerRequest<'_>) -> Result<Box<dyn Trainer>, String> {
        Err(format!(
            "unknown kind `{}`: give `quadratic` or `logistic`",
            request.kind
        ))
    }
}
