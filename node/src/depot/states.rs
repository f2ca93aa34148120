//! The pinned state that newcomers fetch from this daemon, and the state that it fetches itself.

use crate::bulk::Refusal;
use bytes::Bytes;
use murmurate_protocol::limits::STATE_CHUNK_BYTES;
use murmurate_protocol::{Round, StateId};

#[derive(Debug)]
struct Pinned {
    state: StateId,
    manifest: Bytes,
    bytes: Bytes,
}

/// A state that is being fetched. It survives an interrupted fetch.
#[derive(Debug)]
struct Incoming {
    state: StateId,
    manifest: Bytes,
    bytes: Vec<u8>,
    here: Vec<bool>,
}

/// At most one pinned and one incoming state.
#[derive(Debug, Default)]
pub(super) struct States {
    pinned: Option<Pinned>,
    incoming: Option<Incoming>,
}

impl States {
    pub(super) fn pin(&mut self, state: StateId, manifest: Bytes, bytes: Bytes) {
        self.pinned = Some(Pinned {
            state,
            manifest,
            bytes,
        });
    }

    pub(super) fn unpin(&mut self, round: Round) {
        self.pinned.take_if(|pinned| pinned.state.round == round);
    }

    pub(super) fn manifest(&self, state: &StateId) -> Option<Bytes> {
        let pinned = self.pinned.as_ref().filter(|p| p.state == *state)?;
        Some(pinned.manifest.clone())
    }

    pub(super) fn chunk(&self, state: &StateId, index: u32) -> Option<Bytes> {
        let pinned = self.pinned.as_ref().filter(|p| p.state == *state)?;
        let start = (index as usize).checked_mul(STATE_CHUNK_BYTES)?;
        let end = start
            .saturating_add(STATE_CHUNK_BYTES)
            .min(pinned.bytes.len());
        (start < end).then(|| pinned.bytes.slice(start..end))
    }

    /// Prepares for a state. A second fetch of the same state keeps the chunks that have arrived.
    pub(super) fn begin(&mut self, state: &StateId, manifest: Bytes) {
        if self.incoming.as_ref().is_some_and(|i| i.state == *state) {
            return;
        }
        let bytes = state.bytes as usize;
        let chunks = bytes.div_ceil(STATE_CHUNK_BYTES);
        self.incoming = Some(Incoming {
            state: *state,
            manifest,
            bytes: vec![0; bytes],
            here: vec![false; chunks],
        });
    }

    pub(super) fn has_chunk(&self, state: &StateId, index: u32) -> bool {
        let incoming = self.incoming.as_ref().filter(|i| i.state == *state);
        incoming
            .and_then(|i| i.here.get(index as usize))
            .copied()
            .unwrap_or(false)
    }

    pub(super) fn put_chunk(
        &mut self,
        state: &StateId,
        index: u32,
        chunk: &[u8],
    ) -> Result<(), Refusal> {
        let incoming = self.incoming.as_mut().filter(|i| i.state == *state);
        let incoming = incoming.ok_or(Refusal::Unwanted)?;
        let start = (index as usize).saturating_mul(STATE_CHUNK_BYTES);
        let end = start.saturating_add(chunk.len());
        let place = incoming.bytes.get_mut(start..end).ok_or(Refusal::TooLong)?;
        place.copy_from_slice(chunk);
        if let Some(here) = incoming.here.get_mut(index as usize) {
            *here = true;
        }
        Ok(())
    }

    /// Removes and returns the state, once all chunks are here.
    pub(super) fn take(&mut self, state: &StateId) -> Option<Bytes> {
        let complete = |i: &mut Incoming| i.state == *state && i.here.iter().all(|here| *here);
        let incoming = self.incoming.take_if(complete)?;
        debug_assert!(!incoming.manifest.is_empty() || incoming.bytes.is_empty());
        Some(Bytes::from(incoming.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::Digest;

    #[test]
    fn a_state_is_taken_only_when_every_chunk_is_here() {
        let bytes = STATE_CHUNK_BYTES as u64 + 3;
        let state = StateId {
            round: Round(4),
            root: Digest::of(b"x"),
            bytes,
        };
        let mut states = States::default();
        states.begin(&state, Bytes::from_static(b"manifest"));
        states
            .put_chunk(&state, 0, &vec![1; STATE_CHUNK_BYTES])
            .unwrap();
        assert!(states.take(&state).is_none());
        states.begin(&state, Bytes::from_static(b"manifest"));
        assert!(states.has_chunk(&state, 0), "an interrupted fetch goes on");
        assert_eq!(states.put_chunk(&state, 1, &[2; 4]), Err(Refusal::TooLong));
        states.put_chunk(&state, 1, &[2; 3]).unwrap();
        let whole = states.take(&state).unwrap();
        assert_eq!((whole.len() as u64, whole[STATE_CHUNK_BYTES]), (bytes, 2));
        states.pin(state, Bytes::new(), whole);
        assert_eq!(states.chunk(&state, 1).unwrap().len(), 3);
        assert!(states.chunk(&state, 2).is_none());
        states.unpin(Round(3));
        assert!(states.manifest(&state).is_some());
        states.unpin(Round(4));
        assert!(states.manifest(&state).is_none());
    }
}
