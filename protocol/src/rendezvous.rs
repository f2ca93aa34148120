//! Rendezvous hashing: all peers rank candidates in the same way, and few ranks change when a
//! candidate comes or goes.

use crate::{Digest, PeerId, Round, RunId};

/// The rank of a peer in a round of a run; the highest one wins. Different slots give
/// independent ranks in the same round.
pub(crate) fn rendezvous(run: &RunId, round: Round, slot: u8, peer: PeerId) -> u64 {
    let mut bytes = [0u8; 73];
    bytes[..32].copy_from_slice(run.as_bytes());
    bytes[32..64].copy_from_slice(peer.as_bytes());
    bytes[64..72].copy_from_slice(&round.0.to_le_bytes());
    bytes[72] = slot;
    Digest::of(&bytes).first_bits()
}
