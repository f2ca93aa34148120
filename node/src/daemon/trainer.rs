//! Where the daemon's trainer comes from: a built-in task, the caller, or another process.

use super::DaemonError;
use crate::config::Config;
use crate::progress::{LogMode, Printer};
use murmurate_attach::{AttachError, Mode, Notes, Supervisor, Terms, Waiting};
use murmurate_protocol::Contribution;
use murmurate_strategies::{Island, Rank, Trainer};
use murmurate_tasks::data::ShardKind;
use murmurate_tasks::{TaskConfig, TaskError};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Directory of the trainer's socket below the daemon's.
const ATTACH_DIR: &str = "attach";

pub(super) struct Made {
    pub(super) trainer: Box<dyn Trainer>,
    pub(super) supervisor: Option<Supervisor>,
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

/// Builds the trainers of a task in this process, as one, which starts from `run.init` if that is set.
///
/// # Errors
/// If the configuration, the data, the shard, the device or the model to start from cannot be used.
pub fn built_in(config: &Config) -> Result<Box<dyn Trainer>, TaskError> {
    let mut trainer = murmurate_tasks::build_island(
        &config.task,
        config.strategy.inner_kind(),
        &config.daemon.device,
        config.run.seed,
        (&config.shards, config.island.ranks),
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
    let terms = Terms {
        // The trainer may be started in another directory.
        dir: std::path::absolute(&dir).unwrap_or(dir),
        run: config.run.name.clone(),
        seed: config.run.seed,
        shard: config.shards.index,
        shards: config.shards.of,
        dealt: config.shards.kind == ShardKind::Dealt,
        rank: Rank::ALONE,
        mode,
        patience: Duration::from_secs_f64(patience_s),
        notes: Arc::clone(&notes),
    };
    let mut doors = Rank::all(config.island.ranks)
        .map(|rank| Waiting::open(terms_of(&terms, rank)))
        .collect::<Result<Vec<_>, _>>()?;
    let sockets: Vec<_> = doors.iter().map(Waiting::socket).collect();
    let supervisor = match command {
        [] => {
            notes(&how_to_start(&sockets));
            None
        }
        _ => {
            notes(&starts(command));
            Some(Supervisor::start(command, &sockets, Arc::clone(&notes))?)
        }
    };
    let cancelled = || interrupted.load(Ordering::Relaxed);
    let others = doors.split_off(1);
    let first = doors.remove(0).wait(supervisor.as_ref(), &cancelled)?;
    let evaluates = first.evaluates();
    if !evaluates {
        notes("the model is not evaluated: attach(evaluate=...) was not given");
    }
    let group = |rank| supervisor.as_ref().and_then(|s| s.group(rank));
    let others = (1..)
        .zip(others)
        .map(|(rank, door)| door.beside(&first, group(rank)))
        .collect::<Result<Vec<_>, _>>()?;
    let trainer: Box<dyn Trainer> = if others.is_empty() {
        Box::new(first)
    } else {
        let all = std::iter::once(first).chain(others);
        let all = all.map(|rank| Box::new(rank) as Box<dyn Trainer>).collect();
        Box::new(Island::new(all).map_err(TaskError::from)?)
    };
    Ok(Made {
        evaluates,
        trainer,
        supervisor,
    })
}

/// The terms of a rank, which has a socket of its own.
fn terms_of(terms: &Terms, rank: Rank) -> Terms {
    let mut terms = terms.clone();
    if rank.index > 0 {
        terms.dir.push(format!("rank-{}", rank.index));
    }
    Terms { rank, ..terms }
}

/// What to say before anything listens.
fn starts(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let words = words.join(" ");
    format!("starting {words}; others can join this daemon once the training loop has attached")
}

fn how_to_start(sockets: &[&Path]) -> String {
    let first = sockets[0].display();
    let socket = format!("MURMURATE_SOCKET={first}");
    match sockets {
        [_] => format!("waiting for a trainer; start it with {socket} python train.py"),
        [_, .., last] => format!(
            "waiting for {} trainers; start each with its socket: {socket} python train.py, and so on to \
             MURMURATE_SOCKET={}",
            sockets.len(),
            last.display()
        ),
        [] => String::new(),
    }
}

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
