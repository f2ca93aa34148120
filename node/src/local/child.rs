//! One daemon of a local swarm as a child process. Its lines are read, signals are sent to it, and
//! it never outlives this process.

use super::{ChildPlan, LocalError};
use crate::progress::Line;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

/// Events of all children that may wait in the queue.
pub(super) const EVENTS_CAPACITY: usize = 1024;

#[derive(Debug)]
pub(super) enum ChildEvent {
    /// A line of JSON that it printed.
    Line(Box<Line>),
    /// Other text that it printed.
    Words(String),
    /// It ended, and all of its output has been reported.
    Ended(ExitStatus),
}

/// Receives the children's events, each with the child's index in the swarm.
pub(super) type Events = mpsc::Sender<(usize, ChildEvent)>;

/// A running child. Dropping the handle kills it.
#[derive(Debug)]
pub(super) struct ChildHandle {
    signals: mpsc::UnboundedSender<Signal>,
    process: Option<u32>,
}

impl ChildHandle {
    /// Starts a daemon that joins `join`. `place` is its index in its events.
    pub(super) fn spawn(
        program: &Path,
        plan: &ChildPlan,
        place: usize,
        join: &[String],
        events: &Events,
    ) -> Result<Self, LocalError> {
        let failed = |e: std::io::Error| LocalError::Spawn {
            index: plan.index,
            reason: e.to_string(),
        };
        // This program runs on where its file was deleted or built again in the meantime.
        let own = Path::new("/proc/self/exe");
        let mut command = Command::new(if program.exists() { program } else { own });
        command
            .arg("run")
            .arg("--config")
            .arg(&plan.config)
            .args(["--log", "json"]);
        command.arg("--parent").arg(std::process::id().to_string());
        for address in join {
            command.arg("--join").arg(address);
        }
        if let Some(record) = &plan.record {
            command.arg("--record").arg(record);
        }
        for fault in &plan.faults {
            command.arg("--fault").arg(fault.to_string());
        }
        for lie in &plan.lies {
            command.arg("--lie").arg(lie.to_string());
        }
        if let Some(split) = &plan.split {
            command.arg("--split").arg(split.to_string());
        }
        if !plan.command.is_empty() {
            command.arg("--").args(&plan.command);
        }
        command
            .env("RAYON_NUM_THREADS", plan.threads.to_string())
            // NumPy, PyTorch and JAX take it too: in a process for each rank.
            .env(
                "OMP_NUM_THREADS",
                (plan.threads / plan.ranks).max(1).to_string(),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // A process group of its own, so that Ctrl+C reaches only this process, which then tells
        // the children.
        #[cfg(unix)]
        command.process_group(0);
        let log = log_file(&plan.dir).map_err(failed)?;
        let child = command.spawn().map_err(failed)?;
        let process = child.id();
        let (signals, orders) = mpsc::unbounded_channel();
        tokio::spawn(watch(child, place, log, orders, events.clone()));
        Ok(Self { signals, process })
    }

    /// The process id, while it runs.
    pub(super) fn process(&self) -> Option<u32> {
        self.process
    }

    /// Sends a signal. Does nothing if the child has ended.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = self.signals.send(signal);
    }
}

/// Owns the child until it ends, so that a signal never reaches another process with the same id.
async fn watch(
    mut child: Child,
    place: usize,
    log: Option<File>,
    mut orders: mpsc::UnboundedReceiver<Signal>,
    events: Events,
) {
    let out = child
        .stdout
        .take()
        .map(|out| tokio::spawn(read(out, place, events.clone(), None)));
    let err = child
        .stderr
        .take()
        .map(|err| tokio::spawn(read(err, place, events.clone(), log)));
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            order = orders.recv() => match order {
                Some(signal) => send(&child, signal),
                // The swarm no longer watches this daemon.
                None => return,
            },
        }
    };
    for reader in [out, err].into_iter().flatten() {
        let _ = reader.await;
    }
    if let Ok(status) = status {
        let _ = events.send((place, ChildEvent::Ended(status))).await;
    }
}

fn send(child: &Child, signal: Signal) {
    let pid = child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(Pid::from_raw);
    if let Some(pid) = pid
        && let Err(error) = kill_process(pid, signal)
    {
        tracing::debug!(%error, "a child could not be signalled");
    }
}

/// Opens the file for the daemon's log, if a log was requested. A restarted daemon appends to it.
fn log_file(dir: &Path) -> io::Result<Option<File>> {
    if std::env::var_os("MURMURATE_LOG").is_none() {
        return Ok(None);
    }
    let path = dir.join("log.txt");
    let file = File::options().create(true).append(true).open(path)?;
    Ok(Some(file))
}

async fn read(stream: impl AsyncRead + Unpin, place: usize, events: Events, mut log: Option<File>) {
    let mut lines = BufReader::new(stream).lines();
    while let Ok(Some(text)) = lines.next_line().await {
        if let Some(file) = &mut log
            && writeln!(file, "{text}").is_err()
        {
            // If the disk is full, the log ends and the swarm continues.
            log = None;
        }
        let event = match serde_json::from_str::<Line>(&text) {
            Ok(line) => ChildEvent::Line(Box::new(line)),
            Err(_) => ChildEvent::Words(text),
        };
        if events.send((place, event)).await.is_err() {
            return;
        }
    }
}

/// Asks the system to end this process with its parent, process `parent`. A daemon of `murmurate
/// local` calls this, so that it ends even if the parent is killed.
///
/// # Errors
/// If the parent has already ended.
pub fn end_with_parent(parent: u32) -> Result<(), LocalError> {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
        tracing::warn!(%error, "this daemon may outlive the one that started it");
    }
    let now = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    if now != i32::try_from(parent).ok() {
        return Err(LocalError::Flag {
            flag: "--parent",
            message: format!("process {parent} did not start this one, or has ended"),
        });
    }
    Ok(())
}
