//! Scores of contributions as slices.

use super::codecs::bad_slice;
use super::host::Host;
use murmurate_protocol::limits::SCORES_BYTES_MAX;
use murmurate_protocol::{Digest, Done, SliceId, WorkError};

/// Keeps bytes under a slice's name.
pub(super) fn keep(slice: SliceId, bytes: &[u8], host: &dyn Host) -> Result<Done, WorkError> {
    let digest = Some(Digest::of(bytes));
    let mut room = host.room(bytes.len());
    room.extend_from_slice(bytes);
    host.put(slice, host.keep(room));
    let bytes = bytes.len() as u64;
    Ok(Done::Encoded { bytes, digest })
}

/// Reads a small slice back.
pub(super) fn read(slice: SliceId, host: &dyn Host) -> Result<Done, WorkError> {
    let bytes = host.get(&slice).ok_or(WorkError::Gone { slice })?;
    match bytes.len() as u64 <= SCORES_BYTES_MAX {
        true => Ok(Done::Read {
            bytes: bytes.to_vec(),
        }),
        false => Err(bad_slice(slice, "too long to be read back".to_owned())),
    }
}
