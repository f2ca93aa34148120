//! What a record begins with: all that a peer is made from.

use crate::limits::RECORD_TOPOLOGY_BYTES_MAX;
use crate::record::RecordError;
use crate::{PeerConfig, Plan};
use serde::{Deserialize, Serialize};

/// All that a peer is made from. What it starts from, the snapshot, is in its first input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordHeader {
    /// The plan.
    pub plan: Plan,
    /// The peer's own settings, its seed included.
    pub config: PeerConfig,
    /// The topology as the driver writes it, opaque here; only gossip has one. Its seed is the
    /// peer's.
    pub topology: Option<Vec<u8>>,
}

impl RecordHeader {
    /// Whether a peer can be made from it.
    pub(super) fn check(&self) -> Result<(), RecordError> {
        self.plan.validate()?;
        let topology = self.topology.as_ref();
        let lacking = self.plan.exchange.has_neighbours() && topology.is_none();
        match lacking || topology.is_some_and(|bytes| bytes.len() > RECORD_TOPOLOGY_BYTES_MAX) {
            true => Err(RecordError::Topology),
            false => Ok(()),
        }
    }
}
