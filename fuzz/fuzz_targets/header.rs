//! Headers of slices, states and snapshots.
#![no_main]

use libfuzzer_sys::fuzz_target;
use murmurate_protocol::wire::{PeerRecord, decode_value};
use murmurate_protocol::{SliceId, SliceMeta, Snapshot, StateId};

fuzz_target!(|bytes: &[u8]| {
    let _ = decode_value::<(SliceId, SliceMeta)>(bytes);
    let _ = decode_value::<StateId>(bytes);
    let _ = decode_value::<PeerRecord>(bytes);
    let _ = Snapshot::from_bytes(bytes);
});
