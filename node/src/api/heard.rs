//! What the observer hears of other daemons from themselves.

use super::Observer;
use super::status::VitalsStatus;
use crate::net::SeenVitals;
use murmurate_protocol::Time;

impl Observer {
    /// Stores what other daemons say of themselves, and the bytes sent and received for that. Returns the
    /// daemons that have given themselves a name since the last call, by id in hexadecimal.
    pub fn set_claims(
        &mut self,
        now: Time,
        seen: &[SeenVitals],
        (sent, received): (u64, u64),
    ) -> Vec<(String, String)> {
        let named = self.claims.set(now.as_secs_f64(), seen);
        self.status.vitals = VitalsStatus {
            peers: seen.len() as u64,
            bytes_sent: sent,
            bytes_received: received,
        };
        named
    }
}
