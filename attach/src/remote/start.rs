//! Trainers from their beginning.

use super::{Attached, RemoteTrainer, Session, Shared};
use crate::door::{Arrival, Door};
use crate::error::AttachError;
use crate::gathering::Gathering;
use crate::group::Group;
use crate::memory::Memory;
use crate::state::State;
use crate::terms::Terms;
use murmurate_strategies::Layout;
use std::sync::Arc;

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
        })
    }
}

impl RemoteTrainer {
    /// Attaches the first trainer: its tensors are the layout, its values the run's first parameters.
    pub(crate) fn attach(
        terms: &Terms,
        arrival: Arrival,
        layout: Layout,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Attached, AttachError> {
        let shared = Shared::new(layout, Arc::default())?;
        let write = Some(shared.memory.current());
        let session = match shared.welcome(terms, arrival, write, cancelled) {
            Ok(session) => session,
            Err(lost) => return Ok(Err(lost)),
        };
        let process = session.link.process();
        let (tensors, values) = (shared.layout.tensors().len(), shared.layout.len());
        let who = if terms.rank.is_alone() {
            "a trainer".to_owned()
        } else {
            terms.name()
        };
        let text = format!("{who} is attached ({process}): {tensors} tensors, {values} values");
        (terms.notes)(&text);
        Ok(Ok((shared, session)))
    }

    pub(crate) fn new(
        terms: Terms,
        door: Door,
        (shared, session): (Shared, Session),
        group: Option<Arc<Group>>,
    ) -> Self {
        group.iter().for_each(|group| group.attach());
        Self::with(terms, door, (shared, Some(session)), group)
    }

    /// A rank of the island of `first` that has not attached yet.
    pub(crate) fn beside(
        first: &Self,
        terms: Terms,
        door: Door,
        group: Option<Arc<Group>>,
    ) -> Result<Self, AttachError> {
        let gathering = Arc::clone(&first.shared.gathering);
        let shared = Shared::new(first.shared.layout.clone(), gathering)?;
        Ok(Self::with(terms, door, (shared, None), group))
    }

    fn with(
        terms: Terms,
        door: Door,
        (shared, session): (Shared, Option<Session>),
        group: Option<Arc<Group>>,
    ) -> Self {
        Self {
            terms,
            door,
            shared,
            session,
            group,
            leaving: Arc::default(),
            samples: 0,
            refused: false,
        }
    }
}
