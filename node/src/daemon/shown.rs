//! Values that the driver shows periodically, to the operator and to the other daemons: counters, links, progress.
//! No decision depends on them.

use super::DaemonError;
use super::alarms::Told;
use super::driver::Driver;
use super::ending::Verdict;
use super::mark::Mark;
use super::recording::Recording;
use crate::api::{
    Clock, ControlStatus, ELSEWHERE, Facts, LinkStatus, ONE_IDENTITY, SAME_DATA_ACTION, Traffic,
    TransferStatus, trains_the_same,
};
use crate::config::Config;
use crate::events::Kind;
use crate::metrics::Metrics;
use crate::net::Path;
use crate::telemetry::Telemetry;
use murmurate_protocol::limits::VITALS_WAITING_MAX;
use murmurate_protocol::vitals::{DaemonName, RoundSeconds, Vitals, WaitingFor};
use murmurate_protocol::{PeerId, Phase, Round, Waiting};
use murmurate_strategies::DataReport;
use std::time::{Duration, Instant};

const PEERS_NAMED_MAX: usize = 8;

/// Time between two reads of the links. A read locks their connections.
const LINKS_EVERY: Duration = Duration::from_secs(1);

impl Driver {
    /// Says the notes of the start, and logs lost or changed files.
    pub(super) fn say_at_the_start(&mut self, notes: &[Option<String>]) {
        let altered = self.console.status.with(|o| o.altered_lines());
        for line in notes.iter().flatten().chain(&altered) {
            self.note(line);
        }
        for what in altered {
            self.log(Kind::Altered { what });
        }
    }

    /// Says what a promise of privacy costs in this run, and which way connections go, where the configuration asks
    /// for something.
    pub(super) fn say_what_to_expect(&self, config: &Config) {
        if let Some(proxy) = &config.network.proxy {
            self.note(&format!(
                "TCP connections to other machines go through the proxy {proxy}; where UDP gets out, QUIC goes \
                 without it"
            ));
        }
        let (plan, peers) = (self.peer.plan(), config.run.start_with.max(1));
        if let Some(hidden) = self.console.status.status().privacy {
            self.note(&hidden.sentence());
        }
        if let Some(masked) = self.judge.mark.as_ref().and_then(Mark::reached) {
            self.note(&format!(
                "This daemon masked contributions up to round {masked} before: it brings nothing to rounds up to that."
            ));
        }
        let least = usize::from(plan.agreement.contributions);
        if least > peers {
            self.note(&format!(
                "No round has a result before {least} daemons take part (`strategy.aggregation.members` or `liars`); \
                 the run begins with {peers}."
            ));
        }
        let drawn = peers as f64 * f64::from(plan.synchronization.sampling.per_million) / 1e6;
        if drawn < least.min(peers) as f64 {
            self.note(&format!(
                "`strategy.synchronization.fraction` draws {drawn:.1} of {peers} daemons on average, and a result needs \
                 {least}: rounds with fewer have none. Raise it, or start more daemons."
            ));
        }
        if let Some(account) = self.judge.account.as_ref().filter(|_| least <= peers) {
            let parameters = plan.fragments.iter().map(|it| it.len).sum();
            if let Some(note) = account.note(peers, parameters, plan.rounds) {
                self.note(&note);
            }
        }
    }

    pub(super) fn read_links(&mut self) {
        self.console.links_read = Instant::now();
        let links = self.net.links();
        self.payload.keep(|peer| links.contains_key(peer));
        let links = links.iter().map(|(peer, view)| {
            let (sent, received) = self.payload.of(peer);
            (*peer, LinkStatus::new(view, sent, received))
        });
        let now = self.clock.now();
        let vitals = self.net.vitals();
        let (seen, (sent, received)) = (vitals.seen(), vitals.traffic());
        let named = self.console.status.with(|observer| {
            observer.set_links(links);
            observer.set_claims(now, &seen, sent, received)
        });
        for (peer, name) in named {
            self.log(Kind::Named { peer, name });
        }
        let alike = self.console.status.with(|o| o.look_for_equals(&seen));
        for (peer, rounds) in alike {
            let same = format!("{}. {SAME_DATA_ACTION}", trains_the_same(&peer, rounds));
            self.note(&same);
            let rounds = rounds.to_vec();
            self.log(Kind::SameData { peer, rounds });
        }
        self.look_elsewhere();
    }

    /// Updates the counters and prints progress.
    pub(super) fn tick(&mut self) {
        let troubles = [
            self.recording.as_mut().and_then(Recording::trouble),
            self.metrics.as_mut().and_then(Metrics::trouble),
            self.console.telemetry.as_ref().and_then(Telemetry::news),
        ];
        for line in troubles.iter().flatten() {
            self.note(line);
        }
        self.release_refusals(None);
        self.forget_dismissed();
        self.sound_alarms();
        let addresses = self.console.addresses();
        self.contacts.look(&self.net, self.peer.view(), addresses);
        self.read_traffic();
        let _round = self.trace.enter(self.peer.round());
        let status = &self.console.status;
        let branch = self.peer.branch();
        let met = self.peer.meets_another_branch();
        let control = ControlStatus::of(&self.peer);
        let rounds = self.peer.plan().rounds;
        status.with(|observer| {
            observer.set_branch(branch, met);
            observer.set_control(control, rounds);
        });
        self.trace.story.tell(|| status.status());
        let waits = self.peer.waiting();
        let now = self.clock.now();
        self.console
            .status
            .with(|observer| observer.set_waiting(now, &waits));
        let round = self.peer.round().0;
        self.console.log.waits(now, round, &waits);
        self.show();
        self.say_vitals(&waits);
    }

    /// Prints the troubles of the swarm, and when they are over.
    fn sound_alarms(&mut self) {
        let now = Instant::now();
        if !self.console.alarms.are_due(now) {
            return;
        }
        let troubles = self.console.status.status().troubles;
        for line in self.console.alarms.lines(now, &troubles) {
            self.note(&line);
        }
    }

    /// Updates the totals of bytes in the status.
    pub(super) fn read_traffic(&mut self) {
        let counters = self.net.counters();
        let (payload_sent, payload_received) = self.payload.total();
        let sent = Traffic {
            payload: payload_sent,
            encoded: counters.total.bulk_out,
            wire: counters.wire_out,
        };
        let received = Traffic {
            payload: payload_received,
            encoded: counters.total.bulk_in,
            wire: counters.wire_in,
        };
        self.console
            .status
            .with(|it| (it.status.bytes_sent, it.status.bytes_received) = (sent, received));
    }

    fn show(&mut self) {
        let signals = self.lanes.signals();
        let (steps, samples) = (signals.steps(), signals.samples());
        for text in signals.data().flat_map(DataReport::take_untold) {
            self.note(&text);
        }
        let others = self.peer.with_other_data();
        if others
            .iter()
            .any(|peer| !self.console.other_data.contains(peer))
        {
            self.note(&other_data_note(self.contacts.roll.me(), others.clone()));
            self.console.other_data = others;
        }
        let skipped = signals.data().map(DataReport::skipped).sum();
        let view: Vec<(PeerId, Round)> = self
            .peer
            .view()
            .greeted()
            .map(|(id, remote)| (id, remote.round))
            .collect();
        let transfer = self.depot.transfer().map(|transfer| TransferStatus {
            round: transfer.round.0,
            bytes: transfer.bytes,
            of_bytes: transfer.of,
        });
        let now = self.clock.now();
        self.console.status.with(|observer| {
            observer.set_live_steps(now, steps, samples);
            observer.status.skipped_records = skipped;
            observer.set_rounds(&view, transfer);
        });
        if self.console.links_read.elapsed() >= LINKS_EVERY {
            self.read_links();
        }
        if self.console.printer.wants_progress() || self.peer.phase() == Phase::Finished {
            let status = self.console.status.status();
            self.console.printer.progress(&status);
        }
    }

    /// A link has another path: shows it, and says if it is one through another daemon.
    pub(super) fn on_path(&mut self, peer: PeerId, path: Path, reason: String, in_vain: bool) {
        self.console.status.with(|o| o.set_path(peer, path, reason));
        let told = self.console.detours.path(peer, path, in_vain);
        let called = |peer: PeerId| self.called(peer);
        let Some(told) = told else {
            return;
        };
        let who = called(peer);
        let text = match told {
            Told::Direct => format!("there is a direct way to {who} again"),
            Told::Through(relay) => {
                let relay = relay.map_or_else(|| "another daemon".to_owned(), called);
                format!("no direct way to {who}: through {relay}, whose uplink carries it")
            }
        };
        self.note(&text);
        let view = self.peer.view();
        self.console.detours.keep(|peer| view.get(*peer).is_some());
    }

    /// A daemon by its own name, if it said one and no other daemon has the same, or by its id.
    fn called(&self, peer: PeerId) -> String {
        let id = peer.to_hex();
        self.console.status.look(|facts| {
            let mut names = facts.claims.unique_names();
            let name = names.find(|(of, _)| *of == id);
            name.map_or_else(|| format!("daemon {peer}"), |(_, name)| name.to_owned())
        })
    }

    fn look_elsewhere(&mut self) {
        let seen = self.net.vitals().elsewhere();
        let (round, at) = (self.peer.round(), Instant::now());
        let verdict = self.ending.elsewhere.judge(seen.as_ref(), round, at);
        let (there, now) = (self.ending.elsewhere.is_there(), self.clock.now());
        self.console.status.with(|o| o.elsewhere(now, there));
        let ends = DaemonError::Elsewhere;
        match verdict {
            Verdict::Nothing => {}
            Verdict::Says => self.tell_elsewhere(&format!("{ELSEWHERE} {ONE_IDENTITY}")),
            Verdict::Leaves => self.tell_elsewhere(&format!("{ends}; it ends in a moment")),
            Verdict::Stops => self.ending.fail(ends),
        }
    }

    /// Tells the operator, the log and the other one.
    fn tell_elsewhere(&mut self, line: &str) {
        self.note(line);
        self.log(Kind::Elsewhere);
        let vitals = self.own_vitals(&[]);
        self.net.vitals().say_to_the_other(vitals);
    }

    /// Says how this daemon is, every few seconds.
    fn say_vitals(&mut self, waits: &[Waiting]) {
        if !self.console.voice.is_due(Instant::now()) {
            return;
        }
        let vitals = self.own_vitals(waits);
        self.net.vitals().say(vitals);
    }

    /// How this daemon is.
    fn own_vitals(&self, waits: &[Waiting]) -> Vitals {
        let phase = self.ending.elsewhere.said(self.peer.phase());
        let (round, name) = (self.peer.round(), self.console.voice.name.clone());
        let look = |facts: &Facts<'_>| vitals(facts, name, round, phase, waits);
        self.console.status.look(look)
    }
}

fn vitals(
    facts: &Facts<'_>,
    name: Option<DaemonName>,
    round: Round,
    phase: Phase,
    waits: &[Waiting],
) -> Vitals {
    let status = facts.status;
    let last = facts.insight.history.last(1).next();
    let seconds = |value: f64| Vitals::amount(value).unwrap_or_default();
    // A rate of zero means that none was measured yet.
    let steps = Some(status.inner_steps_per_s).filter(|rate| *rate > 0.0);
    let accuracy = status.evaluation.as_ref().and_then(|found| found.accuracy);
    // Figures of the data have no noise, so where its privacy is promised they stay here.
    let shares = status.privacy.is_none_or(|it| it.promise.is_none());
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
        loss: status.loss.filter(|_| shares).and_then(Vitals::loss),
        accuracy: accuracy
            .filter(|_| shares)
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

/// What to say of the daemons that turn out to train other data.
fn other_data_note(me: PeerId, mut peers: Vec<PeerId>) -> String {
    peers.retain(|peer| *peer != me);
    if peers.is_empty() {
        return "the data are not those of the checkpoint: put files and `shards` back, or go on with these".to_owned();
    }
    let names: Vec<String> = peers
        .iter()
        .take(PEERS_NAMED_MAX)
        .map(PeerId::to_string)
        .collect();
    let more = match peers.len().saturating_sub(names.len()) {
        0 => String::new(),
        more => format!(" and {more} others"),
    };
    format!(
        "this daemon shares no data with {}{more}: their files differ, or `shards.seed`, or how the data is \
         cut (make them the same, or set shards.kind = \"own\")",
        names.join(", ")
    )
}
