//! What is learned: toy tasks from `strategies`, anything else from whoever runs the simulation.

use murmurate_strategies::Trainer;
use murmurate_strategies::inner::InnerKind;

/// One machine's share of a task.
#[derive(Clone, Debug)]
pub struct TrainerRequest<'a> {
    /// The task's kind as the scenario names it.
    pub kind: &'a str,
    /// The rest of its `[task]` table.
    pub options: &'a toml::Table,
    /// Which machine.
    pub peer: usize,
    /// Of how many.
    pub peers: usize,
    /// The inner optimizer that the scenario's strategy asks for.
    pub inner: &'a InnerKind,
    /// The scenario's seed: parameters must start alike on all machines, data may differ.
    pub seed: u64,
}

/// Makes trainers for tasks that `sim` does not know: it never imports `tasks`.
///
/// Called again whenever a machine restarts; equal requests must give equal trainers.
pub trait TrainerFactory {
    /// One machine's trainer.
    ///
    /// # Errors
    /// In one line, what is wrong with the request.
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

/// Knows no task beside the toy ones.
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
