//! How far a connection is at the gate, or why it did not pass.

use libp2p::swarm::ConnectionId;
use murmurate_protocol::wire::{WireVersion, WireVersions};
use murmurate_trust::{Chain, Refusal};
use std::fmt;
use tokio::sync::oneshot;

/// Why a connection did not pass the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateError {
    /// The other end speaks no gate: it is no daemon of this version.
    NoGate,
    /// The other end did not answer: it is a daemon of another run.
    OtherRun,
    /// The other end could not show that it knows the run.
    Stranger,
    /// The other end refused this daemon's certificates.
    Refused(Refusal),
    /// This daemon refuses the other end's certificates.
    Refuses(Refusal),
    /// The two have no version of the wire in common.
    OtherVersion {
        /// What this daemon speaks.
        ours: WireVersions,
        /// What the other end speaks, in its own words.
        theirs: WireVersions,
    },
    /// The other end was too slow, or the connection broke.
    Broken,
}

impl fmt::Display for GateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGate => f.write_str(
                "it is no daemon of murmurate, or of another version: install the same one on both machines",
            ),
            Self::OtherRun => f.write_str(
                "it belongs to another run. To join it, run `murmurate invite DIR` on that machine, with its \
                 daemon's directory, and start with `murmurate run --invite FILE` here; or start both with --open",
            ),
            Self::Stranger => f.write_str("it does not know this run"),
            Self::Refused(refusal) => write!(f, "it refuses this daemon: {refusal}"),
            Self::Refuses(refusal) => write!(f, "its certificate is not accepted: {refusal}"),
            Self::OtherVersion { ours, theirs } => {
                let older = if theirs.is_before(ours) {
"the other machine"
} else {
"this machine"
};
                write!(
                    f,
                    "it speaks {theirs}, this daemon {ours}: upgrade murmurate on {older} to a release that \
                     shares a version with the other (see \"Upgrade a run\" in docs/operations.md)"
                )
            }
            Self::Broken => f.write_str("the connection broke before it had proven anything"),
        }
    }
}

/// What a handshake tells the network's task.
#[derive(Debug)]
pub(in crate::net) struct Passed {
    pub(in crate::net) connection: ConnectionId,
    pub(in crate::net) step: Step,
}

/// How far a connection is.
#[derive(Debug)]
pub(in crate::net) enum Step {
    /// The other end's certificates are good.
    Admitted {
        chain: Chain,
        /// The version of the wire that both ends use.
        wire: WireVersion,
        /// Set where they were not known.
        fresh: bool,
        /// Set where the other end's register is another.
        differs: bool,
        /// Told when the connection's handlers accept streams.
        heard: [oneshot::Sender<()>; 2],
    },
    /// The other end accepts streams.
    Ready,
    Failed(GateError),
}
