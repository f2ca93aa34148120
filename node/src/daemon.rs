//! One daemon from start to end: opens the directory, builds model and plan, resumes, and hands over
//! to the driver. Nothing here decides what a peer does.

use crate::api::{About, ApiError, Observer};
use crate::config::Config;
use crate::faults::Fault;
use crate::progress::LogMode;
use crate::report::NodeReport;
use crate::store::{Checkpoint, Expected, Progress, Store, StoreError};
use murmurate_protocol::Plan;
use murmurate_strategies::grid::StrategyError;
use murmurate_strategies::{Layout, Trainer};
use murmurate_tasks::TaskError;
use std::sync::Arc;

/// What `murmurate run` is told beside its configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// How it tells what it does.
    pub log: LogMode,
    /// Faults to trigger in itself.
    pub faults: Vec<Fault>,
}

/// How a daemon ended, when nothing went wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// What it did.
    pub report: NodeReport,
}

/// Why a daemon cannot start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// Its directory.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Task, data, shard or device.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The strategy does not go with the model.
    #[error(transparent)]
    Strategy(#[from] StrategyError),
    /// The HTTP interface.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// Something else in words: which flag or file, and what to do.
    #[error("{0}")]
    Other(String),
}

/// All that a driver needs, built and checked but not started.
pub struct Prepared {
    /// The model with its data.
    pub trainer: Box<dyn Trainer>,
    /// The model's tensors.
    pub layout: Arc<Layout>,
    /// What the peers of the run agree on.
    pub plan: Plan,
    /// What checkpoints of this daemon must be of.
    pub expected: Expected,
    /// Where it goes on from, verified.
    pub checkpoint: Option<Checkpoint>,
    /// The open directory; the last field, so that the lock goes last.
    pub store: Store,
}

impl Prepared {
    /// Opens the directory, builds the trainer and the plan and verifies the checkpoint.
    ///
    /// # Errors
    /// The first thing that does not work; nothing was written then but a fresh identity.
    pub fn new(config: &Config) -> Result<Self, DaemonError> {
        let store = Store::open(&config.daemon.dir)?;
        let trainer = murmurate_tasks::build(
            &config.task,
            config.strategy.inner_kind(),
            &config.daemon.device,
            config.run.seed,
            &config.shards,
        )?;
        let layout = Arc::new(trainer.layout().clone());
        let plan = config
            .strategy
            .plan(config.run.id, &layout, config.run.rounds)?;
        let expected = Expected {
            run: config.run.id,
            plan: plan.hash(),
            layout: layout.hash(),
        };
        let checkpoint = store.resume(&expected)?;
        Ok(Self {
            store,
            trainer,
            layout,
            plan,
            expected,
            checkpoint,
        })
    }

    /// The observer of a daemon that goes on from here. `multiples` says what the method keeps,
    /// store by store, in multiples of 4 bytes x parameters.
    pub fn observer(
        &self,
        config: &Config,
        multiples: impl IntoIterator<Item = (String, f64)>,
    ) -> Observer {
        let base = self
            .checkpoint
            .as_ref()
            .map_or_else(Progress::default, |c| c.manifest().progress);
        let about = About {
            run: config.run.name.clone(),
            peer: self.store.identity().peer().to_hex(),
            plan: self.expected.plan.to_hex(),
            preset: config.strategy.name().to_owned(),
            rounds: config.run.rounds,
            parameters: self.layout.len() as u64,
            multiples: multiples.into_iter().collect(),
        };
        Observer::new(about, base)
    }
}

/// Runs one daemon until its last round, Ctrl+C or an error.
///
/// # Errors
/// When it cannot start, or cannot go on.
pub async fn run(config: Config, options: RunOptions) -> Result<Outcome, DaemonError> {
    let _ = options;
    let _prepared = Prepared::new(&config)?;
    Err(DaemonError::Other(
        "this build has no driver: the daemon cannot train".to_owned(),
    ))
}
