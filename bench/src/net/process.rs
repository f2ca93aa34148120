//! The processes of the ends: how a session starts one, and what the process does.

use crate::net::near::GRACE;
use crate::net::{BenchError, Far, Figures, Hello, NearTask, Task, send};
use serde::de::DeserializeOwned;
use std::io::{Read, Write};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long a far end may take until it listens.
const START: Duration = Duration::from_secs(30);

/// Performs the task of this process, until it is done or the parent has gone. Then this process's
/// standard input, a pipe from the parent, ends.
///
/// # Errors
/// If a far end cannot listen. A near end prints its error instead.
pub async fn perform(task: Task) -> Result<(), BenchError> {
    let parent = parent();
    match task {
        Task::Near(task) => {
            tokio::select! {
                figures = send(&task) => say(&figures.map_err(|error| error.to_string())),
                _ = parent => {}
            }
        }
        Task::Far(task) => {
            let far = Far::start(&task).await?;
            say(far.hello());
            tokio::select! {
                () = far.serve() => {}
                _ = parent => {}
            }
        }
    }
    Ok(())
}

/// Completes when standard input ends. Reads on its own thread, for which the process does not wait.
fn parent() -> oneshot::Receiver<()> {
    let (gone, heard) = oneshot::channel();
    std::thread::spawn(move || {
        let mut byte = [0];
        while matches!(std::io::stdin().read(&mut byte), Ok(1)) {}
        drop(gone);
    });
    heard
}

fn say<T: serde::Serialize>(words: &T) {
    let line = serde_json::to_string(words).unwrap_or_default();
    // The other process is gone and this one ends soon, so no one reads the line.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// A child process. Dropping it kills the process.
pub(super) struct Process {
    end: &'static str,
    child: Child,
    /// Closing this pipe ends the process.
    _stdin: Option<ChildStdin>,
}

impl Process {
    fn start(
        end: &'static str,
        task: &Task,
        program: &dyn Fn(&str) -> Command,
    ) -> Result<Self, BenchError> {
        let failed = |what: String| BenchError::Process { end, what };
        let task = serde_json::to_string(task).map_err(|e| failed(e.to_string()))?;
        let mut child = program(&task)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| failed(format!("cannot be started: {e}")))?;
        let stdin = child.stdin.take();
        Ok(Self {
            end,
            child,
            _stdin: stdin,
        })
    }

    /// Reads the single line that the process prints.
    async fn words<T: DeserializeOwned>(&mut self, wait: Duration) -> Result<T, BenchError> {
        let end = self.end;
        let mut line = String::new();
        if let Some(out) = self.child.stdout.as_mut() {
            let mut out = BufReader::new(out);
            let read = timeout(wait, out.read_line(&mut line)).await;
            read.map_err(|_| BenchError::Process {
                end,
                what: format!("said nothing for {} s", wait.as_secs()),
            })?
            .map_err(BenchError::failed("reading what an end says"))?;
        }
        if line.is_empty() {
            let what = match self.child.wait().await {
                Ok(status) => format!("ended early ({status})"),
                Err(error) => format!("ended early ({error})"),
            };
            return Err(BenchError::Process { end, what });
        }
        let reason = |e: serde_json::Error| BenchError::Words {
            end,
            reason: e.to_string(),
        };
        serde_json::from_str(&line).map_err(reason)
    }

    /// Starts a far end and waits until it listens.
    pub(super) async fn far(
        task: &Task,
        program: &dyn Fn(&str) -> Command,
    ) -> Result<(Self, Hello), BenchError> {
        let mut process = Self::start("far", task, program)?;
        let hello = process.words(START).await?;
        Ok((process, hello))
    }

    /// Starts a near end for one transfer. The inner error is that of the way.
    pub(super) async fn near(
        task: NearTask,
        program: &dyn Fn(&str) -> Command,
    ) -> Result<Result<Figures, String>, BenchError> {
        let wait = Duration::from_secs(task.limit_s) + GRACE * 2;
        let mut process = Self::start("near", &Task::Near(task), program)?;
        process.words(wait).await
    }
}
