//! Bans: proofs that members lie.

use crate::run::Run;
use crate::signature;
use murmurate_protocol::Proof;

/// Whether a proof is one: its signatures are the peer's, and no honest peer gives both.
pub(crate) fn holds(proof: &Proof, run: &Run) -> bool {
    proof.holds(&run.id, |by, bytes, by_them| {
        signature::of_bytes(by, bytes, &by_them.to_bytes())
    })
}
