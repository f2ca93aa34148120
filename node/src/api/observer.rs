//! Keeps the status current from the peer's events. It only listens; no decision depends on it.

use super::forecast::Links;
use super::insight::{Counters, Insight};
use super::rounds::{Mark, RoundWindow};
use super::status::{
    Contributor, EvaluationStatus, GroupStatus, PeerStatus, PlaceStatus, Status, TransferStatus,
    WaitStatus,
};
use super::{About, Claims, Figures, LinkStatus, Memory, RoundStatus, Traffic};
use crate::store::Progress;
use murmurate_attach::Trouble;
use murmurate_protocol::{Event, PeerId, Phase, Round, Time, TrainSummary, Wait, Waiting};
use std::collections::VecDeque;
use std::time::Duration;

/// Number of ends of training that the current rate of inner steps is averaged over.
const RATE_WINDOW: usize = 16;

/// Listens to events and keeps the [`Status`].
#[derive(Debug)]
pub struct Observer {
    pub(super) status: Status,
    pub(super) about: About,
    base: Progress,
    /// Inner steps and samples of this life's finished trainings.
    done: (u64, u64),
    pub(super) started: Option<Time>,
    ended: Option<Time>,
    /// When the last round ended. Only the final evaluation and checkpoint follow.
    settled: Option<Time>,
    pub(super) window: VecDeque<(Time, u64)>,
    pub(super) rounds: RoundWindow,
    /// The links, as last measured while at least one was up.
    links: Option<Links>,
    /// What explains the daemon's rounds.
    pub(super) insight: Insight,
    /// What other daemons say of themselves.
    pub(super) claims: Claims,
    /// Whether this daemon's training loop is away, if it keeps one running.
    pub(crate) trouble: Option<Trouble>,
}

impl Observer {
    /// Starts from `base`, the progress of earlier lives; zero for a fresh daemon.
    pub fn new(about: About, base: Progress) -> Self {
        let status = Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            peer: about.peer.clone(),
            name: about.name.clone(),
            run: about.run.clone(),
            plan: about.plan.clone(),
            preset: about.preset.clone(),
            rounds: about.rounds,
            ranks: about.ranks,
            phase: Phase::New.to_string(),
            inner_steps: base.inner_steps,
            samples: base.samples,
            train_s: base.train_s,
            wall_s: base.wall_s,
            ..Status::default()
        };
        Self {
            insight: Insight::new(&about.peer),
            status,
            about,
            base,
            done: (0, 0),
            started: None,
            ended: None,
            settled: None,
            window: VecDeque::new(),
            rounds: RoundWindow::default(),
            links: None,
            claims: Claims::default(),
            trouble: None,
        }
    }

    /// Takes what the peer waits for.
    pub fn set_waiting(&mut self, now: Time, waits: &[Waiting]) {
        self.insight.set_waiting(now, waits);
        self.status.waiting.clone_from(&self.insight.waiting);
    }

    /// Updates the status from one event.
    pub fn observe(&mut self, now: Time, event: &Event) {
        self.note(now, event);
        let counters = Counters {
            loss: self.status.loss,
            sent: self.status.bytes_sent.wire,
            received: self.status.bytes_received.wire,
        };
        self.insight.observe(now, event, counters);
    }

    fn note(&mut self, now: Time, event: &Event) {
        let status = &mut self.status;
        match event {
            Event::PeerUp(peer) => self.linked(*peer),
            Event::PeerDown(peer) => self.unlinked(now, *peer),
            Event::PeerLeft(peer) => self.left(*peer),
            Event::Suspected { peer, .. } => self.peer(*peer).suspected = true,
            Event::Phase { round, phase } => self.phase(now, round.0, *phase),
            Event::Trained { summary, .. } => self.trained(now, summary),
            Event::Group { round, members } => self.grouped(round.0, members),
            Event::Seated {
                round,
                peers,
                columns,
                place,
                ..
            } => {
                let place = PlaceStatus::new(*place, *columns);
                status.group = Some(GroupStatus::of_grid(round.0, *peers as usize, place));
            }
            Event::Decided {
                round,
                contributors,
                ..
            } => self.decided(round.0, contributors),
            Event::Voided { .. } => status.voids += 1,
            Event::Alone { .. } => status.alone += 1,
            Event::MassUncertain { .. } => status.mass_uncertain += 1,
            Event::RoundEnded { round, digest, .. } => {
                status.rounds_ended = round.0 + 1;
                let first = status.first_round_unix_s;
                status.first_round_unix_s = first.or(Some(now.as_secs_f64()));
                status.digest = Some(digest.to_hex());
                status.digest_round = Some(round.0);
                self.mark(now);
            }
            Event::Evaluated { round, evaluation } => {
                let text = self.about.unit.of_text(evaluation.loss);
                status.evaluation = Some(EvaluationStatus {
                    round: round.0,
                    loss: evaluation.loss,
                    accuracy: evaluation.accuracy,
                    top_5: evaluation.top_5,
                    perplexity: text.map(|(perplexity, _)| perplexity),
                    bits_per_byte: text.map(|(_, bits)| bits),
                });
            }
            Event::Saved { round } => status.saved_round = Some(round.0),
            Event::Merged { round, sides, .. } => self.merged(*round, sides),
            Event::CatchUp { .. } | Event::Replayed { .. } => status.catch_ups += 1,
            Event::Waited {
                wait,
                waited,
                allowed,
                expired,
            } => {
                status.expired_waits += u64::from(*expired);
                self.waited(*wait, *waited, *allowed);
            }
            Event::Misbehaved { .. } | Event::Lied { .. } | Event::Malformed { .. } => {
                status.misbehaved += 1;
            }
            Event::Refused { .. } | Event::RefusedBy { .. } => status.refused += 1,
            Event::WorkFailed { .. } | Event::TrainerFailed { .. } => status.work_failed += 1,
            Event::Finished { rounds, digest } => {
                status.digest = Some(digest.to_hex());
                status.digest_round = rounds.0.checked_sub(1);
                self.ended = self.ended.or(self.settled).or(Some(now));
            }
            _ => {}
        }
    }

    /// Stores a measured round-trip time.
    pub fn measured(&mut self, peer: PeerId, rtt: Duration) {
        self.peer(peer).rtt_s = Some(rtt.as_secs_f64());
    }

    /// Replaces the daemon's addresses.
    pub fn set_addresses(&mut self, addresses: Vec<String>) {
        self.status.addresses = addresses;
    }

    /// This peer's id, hexadecimal.
    pub fn peer_hex(&self) -> String {
        self.status.peer.clone()
    }

    /// Sets the inner steps and samples of this life, including those of the current round.
    pub fn set_live_steps(&mut self, now: Time, steps: u64, samples: u64) {
        let status = &mut self.status;
        status.round_steps = steps.saturating_sub(self.done.0);
        status.inner_steps = status.inner_steps.max(self.base.inner_steps + steps);
        status.samples = status.samples.max(self.base.samples + samples);
        // A training may take hours: until the first has ended, it is measured as it goes.
        if self.window.len() == 1 {
            self.measure_rate(now);
        }
    }

    /// Sets how many records of the data are left out.
    pub fn set_skipped(&mut self, records: u64) {
        self.status.skipped_records = records;
    }

    /// Stores the rounds that the linked peers reported, and how far the fetch of a state is.
    pub fn set_rounds(&mut self, rounds: &[(PeerId, Round)], transfer: Option<TransferStatus>) {
        self.status.transfer = transfer;
        for (peer, round) in rounds {
            self.peer(*peer).round = Some(round.0);
        }
    }

    /// Replaces all shown links by these, which are up.
    pub fn set_links(&mut self, links: impl IntoIterator<Item = (PeerId, LinkStatus)>) {
        for peer in self.status.peers.values_mut() {
            peer.link = None;
        }
        for (peer, link) in links {
            self.peer(peer).link = Some(link);
        }
        let up = self.status.peers.values().filter_map(|p| p.link.as_ref());
        self.links = Links::of(up).or(self.links);
    }

    /// Stores the totals of bytes that the network and the driver counted.
    pub fn set_traffic(&mut self, sent: Traffic, received: Traffic) {
        (self.status.bytes_sent, self.status.bytes_received) = (sent, received);
    }

    /// The counters now.
    pub fn figures(&self) -> Figures {
        Figures::from(&self.status)
    }

    /// The status now, with the memory measured at this moment.
    pub fn status(&mut self, now: Time) -> Status {
        self.status.wall_s = self.wall_s(now);
        self.status.memory = Memory::measure(self.about.parameters, &self.about.multiples);
        let totals = self.insight.ledger.totals().get(&self.about.peer);
        self.status.contributions = totals.copied().unwrap_or_default();
        (self.status.wait_s, self.status.exchange_s) = self.insight.spent;
        for (id, peer) in &mut self.status.peers {
            peer.name = self.claims.name(id).map(str::to_owned);
        }
        self.compare();
        self.status.trainer = self.trouble.as_ref().and_then(Trouble::text);
        self.judge(now);
        self.status.clone()
    }

    /// Computes the predicted and the measured round.
    fn compare(&mut self) {
        let status = &mut self.status;
        let Some(mean) = self.rounds.mean() else {
            return;
        };
        status.measured = Some(RoundStatus::measured(&mean, status.memory.rss_bytes));
        let (Some(forecaster), Some(links)) = (&self.about.forecaster, self.links) else {
            return;
        };
        let group = status.group.as_ref().map(|group| group.peers.max(1));
        let linked = status.peers.values().filter(|p| p.linked).count();
        let peers = match forecaster.has_groups() {
            true => group.unwrap_or(1),
            false => linked + 1,
        };
        status.predicted = forecaster.predict(&mean, links, peers);
    }

    /// The progress that a checkpoint keeps.
    pub fn progress(&self, now: Time) -> Progress {
        Progress {
            inner_steps: self.status.inner_steps,
            samples: self.status.samples,
            train_s: self.status.train_s,
            wall_s: self.wall_s(now),
        }
    }

    fn wall_s(&self, now: Time) -> f64 {
        let until = self.ended.unwrap_or(now);
        let since = self
            .started
            .map_or(0.0, |start| until.since(start).as_secs_f64());
        self.base.wall_s + since
    }

    pub(super) fn peer(&mut self, peer: PeerId) -> &mut PeerStatus {
        self.status.peers.entry(peer.to_hex()).or_default()
    }

    fn phase(&mut self, now: Time, round: u64, phase: Phase) {
        self.status.round = round;
        // Rounds of earlier lives and rounds that were caught up with count as ended.
        self.status.rounds_ended = self.status.rounds_ended.max(round);
        self.status.phase = phase.to_string();
        match phase {
            Phase::Train => {
                self.begin_windows(now);
                // A newcomer may make a finished swarm continue, so training can follow the last
                // round.
                (self.ended, self.settled) = (None, None);
            }
            Phase::Paused => self.end_windows(),
            Phase::Settle => self.settled = Some(now),
            Phase::Leaving => self.ended = self.ended.or(Some(now)),
            _ => {}
        }
    }

    /// Records the counters when the first round begins and when a round ends.
    pub(super) fn mark(&mut self, at: Time) {
        let status = &self.status;
        self.rounds.push(Mark {
            at,
            train_s: status.train_s,
            inner_steps: status.inner_steps,
            sent: status.bytes_sent.encoded,
            received: status.bytes_received.encoded,
        });
    }

    fn grouped(&mut self, round: u64, members: &[PeerId]) {
        let members: Vec<String> = members.iter().map(PeerId::to_hex).collect();
        for member in members.iter().filter(|m| **m != self.about.peer) {
            let peer = self.status.peers.entry(member.clone()).or_default();
            (peer.suspected, peer.round) = (false, Some(round));
        }
        self.status.group = Some(GroupStatus::of_members(round, members));
    }

    fn decided(&mut self, round: u64, shards: &[Vec<(PeerId, f64)>]) {
        let group = self.status.group.get_or_insert_default();
        if group.round != round {
            *group = GroupStatus {
                round,
                ..GroupStatus::default()
            };
        }
        let one = |(peer, weight): &(PeerId, f64)| Contributor {
            peer: peer.to_hex(),
            weight: *weight,
        };
        group
            .contributors
            .extend(shards.iter().map(|shard| shard.iter().map(one).collect()));
    }

    fn trained(&mut self, now: Time, summary: &TrainSummary) {
        let status = &mut self.status;
        self.done.0 += summary.steps;
        self.done.1 += summary.samples;
        status.round_steps = 0;
        // `set_live_steps` may already have counted these.
        status.inner_steps = status.inner_steps.max(self.base.inner_steps + self.done.0);
        status.samples = status.samples.max(self.base.samples + self.done.1);
        status.train_s += summary.seconds;
        if summary.steps > 0 {
            status.loss = Some(summary.loss);
        }
        self.window.push_back((now, status.inner_steps));
        if self.window.len() > RATE_WINDOW {
            self.window.pop_front();
        }
        self.measure_rate(now);
    }

    /// Inner steps per second since the window began.
    fn measure_rate(&mut self, now: Time) {
        if let Some((start, steps)) = self.window.front() {
            let seconds = now.since(*start).as_secs_f64();
            if seconds > 0.0 {
                let status = &mut self.status;
                status.inner_steps_per_s = (status.inner_steps - steps) as f64 / seconds;
            }
        }
    }

    fn waited(&mut self, wait: Wait, waited: Duration, allowed: Duration) {
        // The wait of a fresh run for its first peers is no property of the run.
        if wait == Wait::Peers {
            return;
        }
        let longest = self
            .status
            .longest_wait
            .as_ref()
            .map_or(0.0, |w| w.waited_s);
        if waited.as_secs_f64() > longest {
            self.status.longest_wait = Some(WaitStatus {
                what: wait.word().to_owned(),
                waited_s: waited.as_secs_f64(),
                deadline_s: allowed.as_secs_f64(),
            });
        }
    }
}

#[cfg(test)]
mod tests;
