//! What the observer hears of other daemons from themselves.

use super::status::VitalsStatus;
use super::{Altered, Observer};
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

    /// Looks whether others say that they train what this daemon trains. Returns those of which that is news, by
    /// id in hexadecimal, each with two rounds that show it.
    pub fn look_for_equals(&mut self, seen: &[SeenVitals]) -> Vec<(String, [u64; 2])> {
        self.insight.equals.look(seen)
    }

    /// Stores whether another daemon with this identity is heard.
    pub fn elsewhere(&mut self, now: Time, heard: bool) {
        let since = &mut self.insight.outages.elsewhere;
        *since = heard.then(|| since.unwrap_or(now.as_secs_f64()));
    }

    /// Files of the daemon's directory were lost or changed.
    pub fn altered(&mut self, altered: Altered) {
        self.insight.outages.altered.push(altered);
    }

    /// What was lost or changed, each in one line with what to do.
    pub fn altered_lines(&self) -> Vec<String> {
        let all = self.insight.outages.altered.iter();
        all.map(|altered| format!("{}. {}", altered.text, altered.action))
            .collect()
    }
}
