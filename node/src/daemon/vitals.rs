//! What this daemon says of itself to the others.

use crate::api::Facts;
use crate::daemon::driver::Driver;
use murmurate_protocol::limits::VITALS_WAITING_MAX;
use murmurate_protocol::vitals::{DaemonName, RoundSeconds, Vitals, WaitingFor};
use murmurate_protocol::{PeerId, Phase, Round, Waiting};
use std::time::Instant;

impl Driver {
    /// Says how this daemon is, every few seconds.
    pub(super) fn say_vitals(&mut self, waits: &[Waiting]) {
        if !self.console.voice.is_due(Instant::now()) {
            return;
        }
        let vitals = self.vitals_in(self.peer.phase(), waits);
        self.net.vitals().say(vitals);
    }

    /// How this daemon is, in this phase.
    pub(super) fn vitals_in(&self, phase: Phase, waits: &[Waiting]) -> Vitals {
        let own = (self.peer.round(), phase, waits);
        let name = self.console.voice.name.clone();
        self.console.status.look(|facts| vitals(facts, name, own))
    }
}

fn vitals(
    facts: &Facts<'_>,
    name: Option<DaemonName>,
    (round, phase, waits): (Round, Phase, &[Waiting]),
) -> Vitals {
    let status = facts.status;
    let last = facts.insight.history.last(1).next();
    let seconds = |value: f64| Vitals::amount(value).unwrap_or_default();
    // A rate of zero means that none was measured yet.
    let steps = Some(status.inner_steps_per_s).filter(|rate| *rate > 0.0);
    let accuracy = status.evaluation.and_then(|found| found.accuracy);
    Vitals {
        // The network sets these two.
        peer: PeerId::from_bytes([0; 32]),
        sequence: 0,
        unix_ms: (facts.now * 1e3) as u64,
        name,
        version: status.version.clone(),
        round,
        phase,
        waiting: waits
            .iter()
            .max_by_key(|wait| wait.peers.len())
            .map(|wait| WaitingFor {
                wait: wait.wait,
                peers: wait
                    .peers
                    .iter()
                    .copied()
                    .take(VITALS_WAITING_MAX)
                    .collect(),
            }),
        steps_per_s: steps.and_then(Vitals::amount),
        loss: status.loss.and_then(Vitals::loss),
        accuracy: accuracy
            .and_then(Vitals::amount)
            .filter(|share| *share <= 1.0),
        last_round: last.map(|point| RoundSeconds {
            train: seconds(point.train_s),
            exchange: seconds(point.exchange_s),
            wait: seconds(point.wait_s),
        }),
        memory: status.memory.rss_bytes,
        saved_round: status.saved_round.map(Round),
    }
}
