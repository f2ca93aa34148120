//! What the observer hears of other daemons from themselves.

use super::Observer;
use super::status::VitalsStatus;
use crate::net::SeenVitals;
use murmurate_protocol::Time;

impl Observer {
    /// Stores what other daemons say of themselves, and the bytes sent and received for that.
    pub fn set_claims(&mut self, now: Time, seen: &[SeenVitals], (sent, received): (u64, u64)) {
        self.claims.set(now.as_secs_f64(), seen);
        self.status.vitals = VitalsStatus {
            peers: seen.len() as u64,
            bytes_sent: sent,
            bytes_received: received,
        };
    }
}
