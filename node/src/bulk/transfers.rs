//! All bulk transfers of one daemon: one lane of pushes per peer, fetches, and served streams.

use super::core::Remote;
use super::fetch::fetch_state;
use super::push::{LaneCommand, run_lane};
use super::serve::accept_streams;
use crate::bulk::fetch::fetch_slice;
use crate::bulk::serve::serve;
use crate::bulk::{BulkEvent, Core, Pipe, PushJob, Served};
use murmurate_protocol::{FetchId, PeerId, PushOutcome, SliceId, SortedMap};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

const LANE_COMMANDS_MAX: usize = 1024;

/// The running transfers. The network's task owns this and the tasks spawned here.
pub(crate) struct Bulk {
    core: Arc<Core>,
    lanes: SortedMap<PeerId, mpsc::Sender<LaneCommand>>,
    remotes: SortedMap<PeerId, Remote>,
    fetches: SortedMap<FetchId, AbortHandle>,
}

impl Bulk {
    pub(crate) fn new(core: Core) -> Self {
        Self {
            core: Arc::new(core),
            lanes: SortedMap::new(),
            remotes: SortedMap::new(),
            fetches: SortedMap::new(),
        }
    }

    /// Starts a lane of pushes for a peer whose link came up.
    pub(crate) fn link_up(&mut self, peer: PeerId, tasks: &mut JoinSet<()>) {
        let (commands, inbox) = mpsc::channel(LANE_COMMANDS_MAX);
        let remote = self.remote(peer);
        tasks.spawn(run_lane(Arc::clone(&self.core), remote, inbox).in_current_span());
        self.lanes.insert(peer, commands);
    }

    /// Ends the lane of a peer whose link went down, and with it every push to the peer.
    pub(crate) fn link_down(&mut self, peer: PeerId) {
        self.lanes.remove(&peer);
        self.remotes.remove(&peer);
    }

    /// Queues a push. Returns an event if the push is impossible.
    pub(crate) fn push(&mut self, to: PeerId, job: PushJob) -> Option<BulkEvent> {
        let lost = BulkEvent::Pushed {
            to,
            slice: job.slice,
            outcome: PushOutcome::Lost,
        };
        match self.lanes.get(&to) {
            Some(lane) => lane.try_send(LaneCommand::Push(job)).err().map(|_| lost),
            None => Some(lost),
        }
    }

    pub(crate) fn cancel(&mut self, slice: SliceId) {
        for lane in self.lanes.values() {
            // A lane with a thousand unread commands is stuck; its pushes end at their deadlines.
            let _ = lane.try_send(LaneCommand::Cancel(slice));
        }
    }

    /// Fetches a slice or a state. A second request for the same item replaces the first; chunks
    /// that the first one stored stay.
    pub(crate) fn fetch(
        &mut self,
        what: FetchId,
        from: Vec<PeerId>,
        deadline: Instant,
        tasks: &mut JoinSet<()>,
    ) {
        self.fetches.retain(|_, task| !task.is_finished());
        if let Some(earlier) = self.fetches.remove(&what) {
            earlier.abort();
        }
        let core = Arc::clone(&self.core);
        let task = async move {
            let fetched = async {
                match what {
                    FetchId::Slice(slice) => fetch_slice(&core, slice, &from).await,
                    FetchId::State(state) => fetch_state(&core, state, &from).await,
                }
            };
            let ended = timeout_at(deadline, fetched).await;
            core.tell(ended.unwrap_or(BulkEvent::FetchFailed { what }))
                .await;
        };
        let task = tasks.spawn(task.in_current_span());
        self.fetches.insert(what, task);
    }

    /// Serves a stream that a remote opened on the link itself.
    pub(crate) fn serve(&mut self, from: PeerId, pipe: Pipe, tasks: &mut JoinSet<()>) {
        let (core, remote) = (Arc::clone(&self.core), self.remote(from));
        let Ok(permit) = Arc::clone(&remote.streams).try_acquire_owned() else {
            tracing::debug!(peer = %from, "too many bulk streams at once, one was dropped");
            return;
        };
        let answer = async move {
            serve(&core, &remote, pipe).await;
            drop(permit);
        };
        tasks.spawn(answer.in_current_span());
    }

    /// Serves the streams that a remote opens on a bulk connection.
    pub(crate) fn serve_connection(
        &mut self,
        from: PeerId,
        connection: Served,
        tasks: &mut JoinSet<()>,
    ) {
        let remote = self.remote(from);
        let streams = accept_streams(Arc::clone(&self.core), remote, connection);
        tasks.spawn(streams.in_current_span());
    }

    fn remote(&mut self, peer: PeerId) -> Remote {
        let core = &self.core;
        let streams = core.limits.inbound_streams_per_peer;
        let fresh = || Remote::new(peer, streams, &core.rate, &core.counters);
        self.remotes.entry(peer).or_insert_with(fresh).clone()
    }
}
