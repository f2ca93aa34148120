//! Commands from the handle to the network's task.

use crate::bulk::PushJob;
use murmurate_protocol::wire::PeerRecord;
use murmurate_protocol::{FetchId, Locality, PeerId, SliceId};
use murmurate_trust::News;
use std::collections::BTreeSet;
use std::time::Instant;
use tokio::sync::oneshot;

/// A command from the handle to the network's task.
#[derive(Debug)]
pub(super) enum Command {
    Dial(PeerRecord),
    Disconnect(PeerId),
    Push {
        to: PeerId,
        job: PushJob,
    },
    Fetch {
        what: FetchId,
        from: Vec<PeerId>,
        deadline: Instant,
    },
    Cancel(SliceId),
    /// No connection to these peers from now on, and to all others again.
    Block(BTreeSet<PeerId>),
    /// What this peer's record says of its place in the network.
    Locate(Locality),
    /// News from the operator.
    Learn(News),
    Shutdown {
        deadline: Instant,
        done: oneshot::Sender<()>,
    },
}
