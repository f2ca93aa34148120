//! The snapshots in checkpoints. Machines that save after the same round hold one copy.

use murmurate_protocol::Snapshot;
use std::sync::Arc;

/// The last snapshot that a machine saved.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    last: Option<(Box<[u8]>, Arc<Snapshot>)>,
}

impl Snapshots {
    /// Reads a snapshot. One with the same bytes as the last is the same.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<Arc<Snapshot>, String> {
        if let Some((last, snapshot)) = &self.last
            && **last == *bytes
        {
            return Ok(snapshot.clone());
        }
        let snapshot = Snapshot::from_bytes(bytes).map_err(|error| error.to_string())?;
        let snapshot = Arc::new(snapshot);
        self.last = Some((bytes.into(), snapshot.clone()));
        Ok(snapshot)
    }
}
