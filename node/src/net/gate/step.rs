//! How far a connection is at the gate.

use super::error::GateError;
use libp2p::swarm::ConnectionId;
use murmurate_protocol::wire::WireVersion;
use murmurate_trust::Chain;
use tokio::sync::oneshot;

/// What a handshake tells the network's task.
#[derive(Debug)]
pub(in crate::net) struct Passed {
    /// The connection.
    pub(in crate::net) connection: ConnectionId,
    /// How far it is.
    pub(in crate::net) step: Step,
}

/// How far a connection is.
#[derive(Debug)]
pub(in crate::net) enum Step {
    /// The other end's certificates are good.
    Admitted {
        /// The certificates.
        chain: Chain,
        /// The version of the wire that both ends use.
        wire: WireVersion,
        /// Whether they were not known.
        fresh: bool,
        /// Whether the other end's register is another.
        differs: bool,
        /// Told when the connection's handlers accept streams.
        heard: [oneshot::Sender<()>; 2],
    },
    /// The other end accepts streams.
    Ready,
    /// It ends here.
    Failed(GateError),
}
