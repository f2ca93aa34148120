//! Headers of slices, states and snapshots; rolls and their changes, which must come back from their
//! own bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use murmurate_protocol::wire::{PeerRecord, decode_value};
use murmurate_protocol::{Roll, RollChange, Round, SliceId, SliceMeta, Snapshot, StateId};

fuzz_target!(|bytes: &[u8]| {
    let _ = decode_value::<(SliceId, SliceMeta)>(bytes);
    let _ = decode_value::<StateId>(bytes);
    let _ = decode_value::<PeerRecord>(bytes);
    let _ = Snapshot::from_bytes(bytes);
    if let Ok(change) = RollChange::from_bytes(bytes) {
        let again = RollChange::from_bytes(&change.to_bytes());
        assert!(again.is_ok_and(|again| again == change));
    }
    if let Ok(roll) = Roll::from_bytes(bytes) {
        assert!(Roll::from_bytes(&roll.to_bytes()).is_ok_and(|again| again == roll));
        let next = roll.after(&RollChange { leave: roll.peers().take(1).collect(), join: Vec::new() }, Round(1));
        assert_eq!(next.len() + 1, roll.len());
    }
});
