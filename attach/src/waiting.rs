//! The daemon before its trainer: the socket is open, the layout is not known.

use crate::claim::check;
use crate::door::Door;
use crate::error::AttachError;
use crate::group::Group;
use crate::link::Lost;
use crate::remote::RemoteTrainer;
use crate::supervisor::Supervisor;
use crate::terms::Terms;
use std::path::Path;
use std::sync::Arc;

/// A file that a trainer may read before it attaches, beside the socket: it needs the seed for its first
/// parameters.
const ABOUT: &str = "run.json";

/// Starts of a training loop that may end before any of them has attached.
const ENDED_MAX: u32 = 3;

/// An open socket without a trainer.
#[derive(Debug)]
pub struct Waiting {
    terms: Terms,
    door: Door,
}

impl Waiting {
    /// Opens the socket in the directory that the terms name.
    ///
    /// # Errors
    /// When the directory or the socket cannot be made.
    pub fn open(terms: Terms) -> Result<Self, AttachError> {
        let door = Door::open(&terms.dir)?;
        let about = serde_json::json!({
            "run": terms.run,
            "seed": terms.seed,
            "shard": terms.part().index,
            "shards": terms.part().of,
            "dealt": terms.dealt,
            "mode": terms.mode,
        });
        let path = terms.dir.join(ABOUT);
        let new = path.with_extension("new");
        let written = std::fs::write(&new, about.to_string());
        written
            .and_then(|()| std::fs::rename(&new, &path))
            .map_err(|e| AttachError::Socket {
                path,
                reason: e.to_string(),
            })?;
        Ok(Self { terms, door })
    }

    /// The socket's path.
    pub fn socket(&self) -> &Path {
        self.door.path()
    }

    /// Another rank of the island of `first`, which it comes to have the parameters of. It is not waited for
    /// before training asks for it.
    ///
    /// # Errors
    /// When memory lacks.
    pub fn beside(
        self,
        first: &RemoteTrainer,
        group: Option<Arc<Group>>,
    ) -> Result<RemoteTrainer, AttachError> {
        RemoteTrainer::beside(first, self.terms, self.door, group)
    }

    /// Waits for the first trainer, whose tensors are the run's layout and whose values its first
    /// parameters. `cancelled` is asked several times a second.
    ///
    /// # Errors
    /// When it was cancelled, the supervised training loop keeps ending, or memory lacks.
    pub fn wait(
        self,
        supervisor: Option<&Supervisor>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<RemoteTrainer, AttachError> {
        let Self { terms, door } = self;
        loop {
            if cancelled() {
                return Err(AttachError::Interrupted);
            }
            if let Some((times, words)) = supervisor.map(Supervisor::ended)
                && times >= ENDED_MAX
            {
                return Err(AttachError::Ended { times, words });
            }
            let Some(mut arrival) = door.next() else {
                continue;
            };
            let layout = match check(&arrival.hello, terms.mode) {
                Ok(layout) => layout,
                Err(error) => {
                    arrival.link.refuse(&error.to_string());
                    (terms.notes)(&format!("a trainer was refused: {error}"));
                    continue;
                }
            };
            match RemoteTrainer::attach(&terms, arrival, layout, cancelled)? {
                Ok(first) => {
                    let group = supervisor.and_then(|s| s.group(terms.rank.index));
                    return Ok(RemoteTrainer::new(terms, door, first, group));
                }
                Err(Lost::Gone) => (terms.notes)("the trainer went away while it attached"),
                Err(Lost::Broken(reason)) => {
                    (terms.notes)(&format!("the trainer was sent away: {reason}"));
                }
            }
        }
    }
}
