//! A daemon's memory, by which it explains itself: its waits, the fates of contributions, and the cost of each round.
//! Everything has a bound, comes from this daemon's own events and clock, and decides nothing.

mod equals;
mod history;
mod incidents;
mod ledger;
mod outages;
mod waits;

pub(crate) use equals::Equals;
pub(crate) use history::History;
#[cfg(test)]
use history::POINTS_MAX;
pub use history::{Figures, Point};
#[cfg(test)]
use incidents::INCIDENTS_MAX;
pub(crate) use incidents::{Incident, IncidentKind, Incidents};
#[cfg(test)]
use ledger::ROUNDS_MAX;
pub(crate) use ledger::{
    Ledger, PeerTotals, RoundEntry, RoundResult, Share, Standing, WithoutResult,
};
pub(crate) use outages::{Altered, Outages};
pub use waits::WaitNow;

use history::Open;
use murmurate_protocol::{Event, PeerId, Phase, SortedMap, Time, Wait, Waiting};
use waits::WaitedFor;

/// Memory of a daemon's rounds.
#[derive(Clone, Debug)]
pub struct Insight {
    /// Whose contributions counted.
    pub ledger: Ledger,
    /// Cost of each round.
    pub history: History,
    /// Incidents of the last rounds.
    pub incidents: Incidents,
    /// Troubles that last.
    pub outages: Outages,
    /// Daemons that train the same as this one.
    pub equals: Equals,
    /// The waits that are under way, as last read.
    pub waiting: Vec<WaitNow>,
    /// Seconds that rounds have waited for others, and exchanged, since the start.
    pub(super) spent: (f64, f64),
    waited_for: WaitedFor,
    open: Open,
}

impl Insight {
    /// Nothing is known yet. `me` is this daemon's peer, hexadecimal.
    pub fn new(me: &str) -> Self {
        Self {
            ledger: Ledger::new(me),
            history: History::default(),
            incidents: Incidents::default(),
            outages: Outages::default(),
            equals: Equals::default(),
            waiting: Vec::new(),
            spent: (0.0, 0.0),
            waited_for: WaitedFor::default(),
            open: Open::default(),
        }
    }

    /// A peer's configuration differs from this daemon's in these keys.
    pub fn differs(&mut self, peer: &PeerId, keys: &[String]) {
        self.incidents.differs(peer, keys);
    }

    /// Takes an event of the peer; `figures` are the daemon's after it.
    pub fn observe(&mut self, now: Time, event: &Event, figures: &Figures) {
        self.ledger.observe(now, event);
        self.incidents.observe(event);
        self.outages.observe(event);
        self.equals.observe(event);
        match event {
            Event::Phase { phase, .. } => {
                self.open.phase(now, *phase);
                if *phase == Phase::Train {
                    self.waiting.clear();
                }
            }
            Event::Trained { summary, .. } => self.open.train_s += summary.seconds,
            Event::Waited { wait, waited, .. } if is_for_others(*wait) => {
                self.open.wait_s += waited.as_secs_f64();
            }
            Event::RoundEnded { round, seconds, .. } => {
                let slow = self.waited_for.take();
                let point = self.open.end(now, round.0, *seconds, figures);
                self.spent.0 += point.wait_s;
                self.spent.1 += point.exchange_s;
                let result = self.ledger.result_of(round.0);
                self.history.push(Point {
                    result,
                    waited_for: slow,
                    ..point
                });
            }
            Event::Evaluated { round, evaluation } => {
                let history = &mut self.history;
                history.evaluated(round.0, evaluation.loss, evaluation.accuracy);
            }
            _ => {}
        }
    }

    /// Takes what the peer waits for, read at `now`.
    pub fn set_waiting(&mut self, now: Time, waits: &[Waiting]) {
        self.waited_for.sample(now, waits);
        self.waiting = waits.iter().map(WaitNow::from).collect();
    }

    /// Seconds that rounds waited for each peer, over the last rounds.
    pub fn slow_peers(&self, rounds: usize) -> SortedMap<String, f64> {
        let mut all = SortedMap::new();
        for point in self.history.last(rounds) {
            for (peer, seconds) in &point.waited_for {
                *all.entry(peer.clone()).or_default() += seconds;
            }
        }
        all
    }
}

/// A wait is for other peers to be as far as this one, and not for bytes on their way.
const fn is_for_others(wait: Wait) -> bool {
    matches!(
        wait,
        Wait::Group | Wait::Partners | Wait::Center | Wait::Lead | Wait::Results
    )
}

#[cfg(test)]
mod tests;
