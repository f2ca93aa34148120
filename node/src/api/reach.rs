//! What the status says of paths to peers and of the daemon's reachability.

use super::observer::Observer;
use super::status::{NatStatus, PathStatus, ServingStatus};
use crate::net::{NatReport, Path};
use murmurate_protocol::PeerId;

impl Observer {
    /// Stores the path of a link and the reason for it.
    pub fn set_path(&mut self, peer: PeerId, path: Path, reason: String) {
        let relay = match path {
            Path::Relayed(relay) => relay.map(|relay| relay.to_hex()),
            _ => None,
        };
        self.peer(peer).path = Some(PathStatus {
            kind: path.name().to_owned(),
            relay,
            reason,
        });
    }

    /// Stores what is known about reachability.
    pub fn set_nat(&mut self, report: &NatReport) {
        let reach = &report.reach;
        self.status.nat = NatStatus {
            reachability: reach.state.to_string(),
            reason: reach.reason.clone(),
            address: reach.address.as_ref().map(ToString::to_string),
            relays: report.relays.iter().map(PeerId::to_hex).collect(),
            serving: report.serving.map(|serving| ServingStatus {
                reservations: serving.reservations,
                circuits: serving.circuits,
                refused: serving.refused,
            }),
            punched: report.punched,
            punches_failed: report.punches_failed,
        };
    }
}
