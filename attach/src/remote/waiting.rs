//! The daemon before its trainer: the socket is open, the layout is not known.

use super::{RemoteTrainer, Session, Shared};
use crate::claim::check;
use crate::door::{Arrival, Door};
use crate::error::AttachError;
use crate::gathering::Gathering;
use crate::group::Group;
use crate::link::Lost;
use crate::memory::Memory;
use crate::state::State;
use crate::supervisor::Supervisor;
use crate::terms::Terms;
use murmurate_strategies::{Layout, NamedScores};
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
        let gathering = Arc::clone(&first.shared.gathering);
        let mut shared = Shared::new(first.shared.layout.clone(), gathering)?;
        shared.named = first.shared.named.clone();
        Ok(RemoteTrainer::new(self, shared, None, group))
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
        let terms = &self.terms;
        loop {
            if cancelled() {
                return Err(AttachError::Interrupted);
            }
            if let Some((times, words)) = supervisor.map(Supervisor::ended)
                && times >= ENDED_MAX
            {
                return Err(AttachError::Ended { times, words });
            }
            let Some(mut arrival) = self.door.next() else {
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
            let shared = Shared::new(layout, Arc::default())?;
            match shared.first(terms, arrival, cancelled) {
                Ok(session) => {
                    let group = supervisor.and_then(|s| s.group(terms.rank.index));
                    group.iter().for_each(|group| group.attach());
                    return Ok(RemoteTrainer::new(self, shared, Some(session), group));
                }
                Err(Lost::Gone) => (terms.notes)("the trainer went away while it attached"),
                Err(Lost::Broken(reason)) => {
                    (terms.notes)(&format!("the trainer was sent away: {reason}"));
                }
            }
        }
    }
}

impl Shared {
    fn new(layout: Layout, gathering: Arc<Gathering>) -> Result<Self, AttachError> {
        let (memory, state) = (Memory::new(layout.len())?, State::new(layout.len())?);
        Ok(Self {
            layout,
            memory,
            state,
            steps: 0,
            unchanged: 0,
            gathering,
            named: NamedScores::default(),
        })
    }

    /// Attaches the first trainer: its tensors are the layout, its values the run's first parameters.
    fn first(
        &self,
        terms: &Terms,
        arrival: Arrival,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Session, Lost> {
        let write = Some(self.memory.current());
        let session = self.welcome(terms, arrival, write, cancelled)?;
        let process = session.link.process();
        let (tensors, values) = (self.layout.tensors().len(), self.layout.len());
        let who = if terms.rank.is_alone() {
            "a trainer".to_owned()
        } else {
            terms.name()
        };
        let text = format!("{who} is attached ({process}): {tensors} tensors, {values} values");
        (terms.notes)(&text);
        Ok(session)
    }
}

impl RemoteTrainer {
    fn new(
        waiting: Waiting,
        shared: Shared,
        session: Option<Session>,
        group: Option<Arc<Group>>,
    ) -> Self {
        Self {
            terms: waiting.terms,
            door: waiting.door,
            shared,
            session,
            group,
            leaving: Arc::default(),
            samples: 0,
            refused: false,
        }
    }
}
