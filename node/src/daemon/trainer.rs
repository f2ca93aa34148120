//! Where the daemon's trainer comes from: a built-in task, the caller, or another process.

use super::DaemonError;
use crate::config::Config;
use crate::progress::{LogMode, Printer};
use murmurate_attach::{AttachError, Mode, Notes, Supervisor, Terms, Waiting};
use murmurate_protocol::Contribution;
use murmurate_strategies::Trainer;
use murmurate_tasks::data::ShardKind;
use murmurate_tasks::{TaskConfig, TaskError};
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Directory of the trainer's socket below the daemon's.
const ATTACH_DIR: &str = "attach";

/// A trainer, and who keeps it running.
pub(super) struct Made {
    pub(super) trainer: Box<dyn Trainer>,
    pub(super) supervisor: Option<Supervisor>,
    /// Whether it can evaluate.
    pub(super) evaluates: bool,
}

impl Made {
    /// A trainer in this process.
    pub(super) fn here(trainer: Box<dyn Trainer>) -> Self {
        Self {
            trainer,
            supervisor: None,
            evaluates: true,
        }
    }
}

/// Builds the trainer of a task in this process, which starts from `run.init` if that is set.
pub(super) fn built_in(config: &Config) -> Result<Box<dyn Trainer>, TaskError> {
    let mut trainer = murmurate_tasks::build(
        &config.task,
        config.strategy.inner_kind(),
        &config.daemon.device,
        config.run.seed,
        &config.shards,
    )?;
    if let Some(model) = &config.run.init {
        murmurate_tasks::load_model(trainer.as_mut(), model)?;
    }
    Ok(trainer)
}

/// Waits for a trainer to attach, and starts `command` for that if there is one. `interrupted` ends
/// the wait.
pub(super) fn attached(
    config: &Config,
    patience_s: f64,
    command: &[OsString],
    log: LogMode,
    interrupted: &AtomicBool,
) -> Result<Made, DaemonError> {
    let printer = Printer::new(log);
    let notes: Notes = Arc::new(move |text| printer.note(text));
    let mode = match config.strategy.contribution() {
        Contribution::Gradient => Mode::Gradients,
        Contribution::Delta | Contribution::Parameters => Mode::Deltas,
    };
    let dir = config.daemon.dir.join(ATTACH_DIR);
    let waiting = Waiting::open(Terms {
        // The trainer may be started in another directory.
        dir: std::path::absolute(&dir).unwrap_or(dir),
        run: config.run.name.clone(),
        seed: config.run.seed,
        shard: config.shards.index,
        shards: config.shards.of,
        dealt: config.shards.kind == ShardKind::Dealt,
        mode,
        patience: Duration::from_secs_f64(patience_s),
        notes: Arc::clone(&notes),
    })?;
    let supervisor = if command.is_empty() {
        let socket = waiting.socket().display();
        notes(&format!(
            "waiting for a trainer; start it with MURMURATE_SOCKET={socket} python train.py"
        ));
        None
    } else {
        let (socket, notes) = (waiting.socket(), Arc::clone(&notes));
        Some(Supervisor::start(command, socket, notes)?)
    };
    let cancelled = || interrupted.load(Ordering::Relaxed);
    let trainer = waiting.wait(supervisor.as_ref(), &cancelled)?;
    Ok(Made {
        evaluates: trainer.evaluates(),
        trainer: Box::new(trainer),
        supervisor,
    })
}

/// The patience of a task whose trainer is another process.
pub(super) const fn patience_of(task: &TaskConfig) -> Option<f64> {
    match task {
        TaskConfig::Attached(attached) => Some(attached.patience_s),
        _ => None,
    }
}

impl From<AttachError> for DaemonError {
    fn from(error: AttachError) -> Self {
        Self::Attach(error)
    }
}
