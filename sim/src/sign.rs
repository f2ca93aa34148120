//! Signatures of simulated machines: a hash over the signer and the statement. No machine makes one of
//! another, because only this file makes them.

use murmurate_protocol::wire::Message;
use murmurate_protocol::{Digest, PeerId, Proof, Round, RunId, SealMemory, Signature};

fn signature(by: PeerId, statement: &[u8]) -> Signature {
    let half = |part: &[u8]| Digest::of(&[part, by.as_bytes(), statement].concat());
    let (first, second) = (half(b"first"), half(b"second"));
    let mut bytes = [0; 64];
    bytes[..32].copy_from_slice(first.as_bytes());
    bytes[32..].copy_from_slice(second.as_bytes());
    Signature::from_bytes(bytes)
}

/// Fills in the blank signatures of a message's sender, which may have forgotten those up to a
/// round. Returns how many it made.
pub(crate) fn sign(
    run: &RunId,
    me: PeerId,
    forgotten: Option<Round>,
    message: &mut Message,
    memory: &mut SealMemory,
) -> u64 {
    let mut count = 0;
    if let Some(forgotten) = forgotten {
        message.confess(me, forgotten);
    }
    for signed in message.signed(run, me) {
        if signed.by == me && signed.signature.is_blank() {
            *signed.signature = signature(me, &signed.statement);
            if memory.made(&signed.statement).is_none() {
                memory.note_made(&signed.statement, *signed.signature);
                count += 1;
            }
        }
    }
    count
}

/// Set for a proof that shows that a machine lies.
pub(crate) fn holds(run: &RunId, proof: &Proof) -> bool {
    proof.holds(run, |by, statement, by_them| {
        *by_them == signature(*by, statement)
    })
}

/// Checks all signatures of a message: set if all are right, and the number of those that were checked.
pub(crate) fn verify(
    run: &RunId,
    from: PeerId,
    message: &mut Message,
    memory: &mut SealMemory,
) -> (bool, u64) {
    let mut count = 0;
    let right = message.signed(run, from).iter().all(|signed| {
        if !memory.is_right(signed.by, &signed.statement, signed.signature) {
            count += 1;
            if *signed.signature != signature(signed.by, &signed.statement) {
                return false;
            }
            memory.note_right(signed.by, &signed.statement, signed.signature);
        }
        true
    });
    (right, count)
}
