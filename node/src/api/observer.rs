//! Keeps the status current from the peer's events, and a shared handle to it: the driver writes through it,
//! the server reads. It only listens; no decision depends on it.

use super::forecast::{Links, Mark, RoundWindow};
use super::insight::{Altered, Figures, Insight};
use super::status::{
    BranchStatus, Contributor, EvaluationStatus, GroupStatus, MergedStatus, NatStatus, PathStatus,
    PeerStatus, PlaceStatus, Presence, PrivacyStatus, PromiseStatus, ServingStatus, Status,
    TransferStatus, VitalsStatus, WaitStatus,
};
use super::why::{Facts, state, troubles};
use super::{About, Claims, ControlStatus, LinkStatus, Memory, RoundStatus};
use crate::directive::CONFIGURED;
use crate::net::{NatReport, Path, SeenVitals};
use crate::store::Progress;
use murmurate_attach::Trouble;
use murmurate_protocol::{
    Branch, Digest, Evaluation, Event, PeerId, Phase, Round, Time, TrainSummary, Wait, Waiting,
};
use murmurate_strategies::NamedScores;
use murmurate_trust::Refusal;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Number of ends of training that the current rate of inner steps is averaged over.
const RATE_WINDOW: usize = 16;

/// Listens to events and keeps the [`Status`].
#[derive(Debug)]
pub struct Observer {
    /// What others measure is written here; events and the judgement of it are this type's own.
    pub(crate) status: Status,
    pub(super) about: About,
    base: Progress,
    /// Inner steps and samples of this life's finished trainings.
    done: (u64, u64),
    started: Option<Time>,
    ended: Option<Time>,
    /// When the last round ended. Only the final evaluation and checkpoint follow.
    settled: Option<Time>,
    window: VecDeque<(Time, u64)>,
    rounds: RoundWindow,
    /// The links, as last measured while at least one was up.
    links: Option<Links>,
    /// Memory that explains the daemon's rounds.
    pub(super) insight: Insight,
    pub(super) claims: Claims,
    /// State of this daemon's training loop, if it keeps one running.
    pub(crate) trouble: Option<Trouble>,
    /// What its training loop measures beside loss and accuracy.
    pub(crate) named: NamedScores,
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
            privacy: about.agreement.whole.then_some(PrivacyStatus {
                masked: Some(about.agreement.contributions),
                promise: None,
            }),
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
            named: NamedScores::default(),
        }
    }

    /// Takes the account of the data's privacy.
    pub(crate) fn privacy(&mut self, spent: PromiseStatus) {
        let privacy = self.status.privacy.get_or_insert_default();
        privacy.promise = Some(spent);
    }

    /// Takes what the peer waits for.
    pub fn set_waiting(&mut self, now: Time, waits: &[Waiting]) {
        self.insight.set_waiting(now, waits);
        self.status.waiting.clone_from(&self.insight.waiting);
    }

    /// Updates the status from one event.
    pub fn observe(&mut self, now: Time, event: &Event) {
        self.note(now, event);
        let figures = self.figures();
        self.insight.observe(now, event, &figures);
    }

    fn note(&mut self, now: Time, event: &Event) {
        let status = &mut self.status;
        match event {
            Event::PeerUp(peer) => {
                let peer = self.peer(*peer);
                (peer.presence, peer.suspected) = (Presence::Linked, false);
            }
            Event::PeerDown(peer) => self.took_part(now, *peer),
            Event::PeerLeft(peer) => self.peer(*peer).presence = Presence::Left,
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
                let columns = (*columns).max(1);
                self.seated(round.0, *peers, columns, *place);
            }
            Event::Decided {
                round,
                contributors,
                ..
            } => self.decided(round.0, contributors),
            Event::RoundEnded { round, digest, .. } => {
                status.rounds_ended = round.0 + 1;
                let first = status.first_round_unix_s;
                status.first_round_unix_s = first.or(Some(now.as_secs_f64()));
                status.digest = Some(digest.to_hex());
                status.digest_round = Some(round.0);
                self.mark(now);
            }
            Event::Evaluated { round, evaluation } => self.evaluated(round.0, evaluation),
            Event::Saved { round } => status.saved_round = Some(round.0),
            Event::Merged { round, sides, .. } => {
                status.merged = Some(MergedStatus {
                    round: round.0,
                    sides: sides.clone(),
                });
            }
            Event::Waited {
                wait,
                waited,
                allowed,
                expired,
            } => {
                status.unusual.expired_waits += u64::from(*expired);
                self.waited(*wait, *waited, *allowed);
            }
            Event::Finished { rounds, digest } => {
                status.digest = Some(digest.to_hex());
                status.digest_round = rounds.0.checked_sub(1);
                self.ended = self.ended.or(self.settled).or(Some(now));
            }
            _ => self.count(event),
        }
    }

    fn evaluated(&mut self, round: u64, found: &Evaluation) {
        let text = self.about.unit.of_text(found.loss);
        self.status.evaluation = Some(EvaluationStatus {
            round,
            loss: found.loss,
            accuracy: found.accuracy,
            top_5: found.top_5,
            perplexity: text.map(|(perplexity, _)| perplexity),
            bits_per_byte: text.map(|(_, bits)| bits),
            named: self.named.last(),
        });
    }

    /// Counts an event of which nothing else is shown.
    fn count(&mut self, event: &Event) {
        let counts = &mut self.status.unusual;
        let counter = match event {
            Event::Voided { .. } => &mut counts.voids,
            Event::Alone { .. } => &mut counts.alone,
            Event::MassUncertain { .. } => &mut counts.mass_uncertain,
            Event::CatchUp { .. } | Event::Replayed { .. } => &mut counts.catch_ups,
            Event::Misbehaved { .. } | Event::Lied { .. } | Event::Malformed { .. } => {
                &mut counts.misbehaved
            }
            Event::Refused { .. } | Event::RefusedBy { .. } => &mut counts.refused,
            Event::WorkFailed { .. } | Event::TrainerFailed { .. } => &mut counts.work_failed,
            _ => return,
        };
        *counter += 1;
    }

    /// Stores a measured round-trip time.
    pub fn measured(&mut self, peer: PeerId, rtt: Duration) {
        self.peer(peer).rtt_s = Some(rtt.as_secs_f64());
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

    /// Stores the report about reachability.
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

    /// Stores what other daemons say of themselves, and the bytes sent and received for that. Returns the
    /// daemons that have given themselves a name since the last call, by id in hexadecimal.
    pub fn set_claims(
        &mut self,
        now: Time,
        seen: &[SeenVitals],
        bytes_sent: u64,
        bytes_received: u64,
    ) -> Vec<(String, String)> {
        let named = self.claims.set(now.as_secs_f64(), seen);
        self.status.vitals = VitalsStatus {
            peers: seen.len() as u64,
            bytes_sent,
            bytes_received,
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

    /// Lost or changed files, each in one line with the remedy.
    pub fn altered_lines(&self) -> Vec<String> {
        let all = self.insight.outages.altered.iter();
        all.map(|altered| format!("{}. {}", altered.text, altered.action))
            .collect()
    }

    /// Stores the branch that the daemon is in, how many peers are missing from it, and whether peers of another
    /// one are linked.
    pub fn set_branch(&mut self, branch: Option<(Branch, usize)>, met: bool) {
        self.status.branch = branch.map(|(branch, missing)| BranchStatus {
            since_round: branch.began().0,
            weight: branch.weight,
            missing: missing as u64,
            met,
        });
    }

    /// Stores what the owner has directed, and the number of rounds that follows from it.
    pub fn set_control(&mut self, control: ControlStatus, rounds: u64) {
        let rate = self.about.rate.as_ref();
        let mut control = ControlStatus {
            rate_ends: rate.and_then(|rate| rate.factor.ends()),
            codecs: self.about.codecs.clone(),
            ..control
        };
        let known = |codec: &String| control.codecs.contains(codec) || codec == CONFIGURED;
        for directive in &mut control.directives {
            if directive.codec.as_ref().is_some_and(|codec| !known(codec)) {
                directive.state = "refused".to_owned();
            }
        }
        if !control.codecs.contains(&control.codec) {
            let chosen = control.agreed_codec.as_ref();
            let chosen = chosen.and_then(|words| words.split(' ').next());
            control.codec = chosen.unwrap_or(&self.about.codec).to_owned();
        }
        self.status.control = control;
        self.status.rounds = rounds;
    }

    /// A round is opened by these parameters, which may have been taken over from others: no round of this daemon
    /// has ended with them.
    pub fn opens(&mut self, round: Round, digest: Digest) {
        let status = &mut self.status;
        if let Some(before) = round.0.checked_sub(1)
            && status.digest_round.is_some_and(|known| known <= before)
        {
            (status.digest, status.digest_round) = (Some(digest.to_hex()), Some(before));
        }
    }

    /// A peer's configuration differs from this daemon's in these keys.
    pub fn differs(&mut self, peer: &PeerId, keys: &[String]) {
        self.insight.differs(peer, keys);
    }

    /// The peer took part, now or when this daemon last ended, and is missed until it is here.
    pub fn took_part(&mut self, now: Time, peer: PeerId) {
        let unix_s = now.as_secs_f64();
        self.peer(peer).presence = Presence::Lost { unix_s };
    }

    /// The peer whose link is gone is not missed: it takes no part, or is no member any more.
    pub fn not_missed(&mut self, peer: PeerId) {
        let presence = &mut self.peer(peer).presence;
        if let Presence::Lost { .. } = presence {
            *presence = Presence::Away;
        }
    }

    /// A peer is no member any more.
    pub fn dismissed(&mut self, peer: PeerId) {
        self.insight.outages.dismissed(&peer);
        if self.status.peers.contains_key(&peer.to_hex()) {
            self.not_missed(peer);
        }
    }

    /// The peers that are missed.
    pub fn missed(&self) -> Vec<PeerId> {
        let peers = self.status.peers.iter();
        let missed = peers.filter(|(_, known)| known.presence.lost_unix_s().is_some());
        missed.filter_map(|(id, _)| PeerId::from_hex(id)).collect()
    }

    /// A member refuses this daemon.
    pub fn refused_by(&mut self, now: Time, peer: PeerId, refusal: Refusal) {
        self.insight.outages.refused_by(now, &peer, refusal);
    }

    /// Counts a checkpoint that could not be written.
    pub fn save_failed(&mut self) {
        self.status.unusual.saves_failed += 1;
        self.insight.outages.unsaved = true;
    }

    /// All facts that answers are made of, with a status of this moment.
    pub(super) fn facts<'a>(&'a self, status: &'a Status, now: Time) -> Facts<'a> {
        Facts {
            status,
            insight: &self.insight,
            claims: &self.claims,
            about: &self.about,
            now: now.as_secs_f64(),
        }
    }

    /// Finds the troubles, and the state that follows from them.
    fn judge(&mut self, now: Time) {
        let facts = self.facts(&self.status, now);
        let troubles = troubles(&facts);
        let state = state(&facts, &troubles);
        (self.status.state, self.status.troubles) = (state.to_owned(), troubles);
    }

    /// Training begins, at the start or after a pause: rates and costs are measured from here.
    fn begin_windows(&mut self, now: Time) {
        self.started.get_or_insert(now);
        if self.window.is_empty() {
            self.mark(now);
            self.window.push_back((now, self.status.inner_steps));
        }
    }

    /// The run pauses: the time of the pause is no part of a round.
    fn end_windows(&mut self) {
        self.window.clear();
        self.rounds = RoundWindow::default();
        self.status.inner_steps_per_s = 0.0;
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
        self.status.unusual.without_result = self.insight.ledger.without_result();
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
        let peers = if forecaster.has_groups() {
            group.unwrap_or(1)
        } else {
            status.linked() + 1
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

    fn peer(&mut self, peer: PeerId) -> &mut PeerStatus {
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
                // A newcomer may make a finished swarm continue, so training can follow the last round.
                (self.ended, self.settled) = (None, None);
            }
            Phase::Paused => self.end_windows(),
            Phase::Settle => self.settled = Some(now),
            Phase::Leaving => self.ended = self.ended.or(Some(now)),
            _ => {}
        }
    }

    /// Records the counters when the first round begins and when a round ends.
    fn mark(&mut self, at: Time) {
        let status = &self.status;
        self.rounds.push(Mark {
            at,
            train_s: status.train_s,
            inner_steps: status.inner_steps,
            sent: status.bytes_sent.encoded,
            received: status.bytes_received.encoded,
        });
    }

    fn seated(&mut self, round: u64, peers: u32, columns: u32, place: u32) {
        self.status.group = Some(GroupStatus {
            round,
            peers: peers as usize,
            place: Some(PlaceStatus {
                row: place / columns,
                column: place % columns,
                columns,
            }),
            ..GroupStatus::default()
        });
    }

    fn grouped(&mut self, round: u64, members: &[PeerId]) {
        let members: Vec<String> = members.iter().map(PeerId::to_hex).collect();
        for member in members.iter().filter(|m| **m != self.about.peer) {
            let peer = self.status.peers.entry(member.clone()).or_default();
            (peer.suspected, peer.round) = (false, Some(round));
        }
        self.status.group = Some(GroupStatus {
            round,
            peers: members.len(),
            members,
            ..GroupStatus::default()
        });
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

/// The observer, shared between the driver that feeds it and the server that shows it.
#[derive(Clone, Debug)]
pub struct StatusHandle {
    observer: Arc<Mutex<Observer>>,
    clock: Arc<dyn Clock>,
}

/// The driver's clock. The status uses it too, so that both show the same time.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The time now.
    fn now(&self) -> Time;
}

impl StatusHandle {
    /// Wraps an observer and the clock that it is read with.
    pub fn new(observer: Observer, clock: Arc<dyn Clock>) -> Self {
        Self {
            observer: Arc::new(Mutex::new(observer)),
            clock,
        }
    }

    /// Runs `f` on the observer under its lock. Keep `f` short, because the HTTP server waits meanwhile.
    pub fn with<T>(&self, f: impl FnOnce(&mut Observer) -> T) -> T {
        f(&mut self.lock())
    }

    /// The status now.
    pub fn status(&self) -> Status {
        let now = self.clock.now();
        self.lock().status(now)
    }

    /// Runs `f` on the present facts, under the observer's lock.
    pub fn look<T>(&self, f: impl FnOnce(&Facts<'_>) -> T) -> T {
        let now = self.clock.now();
        let mut observer = self.lock();
        let status = observer.status(now);
        f(&observer.facts(&status, now))
    }

    fn lock(&self) -> MutexGuard<'_, Observer> {
        // After a panic elsewhere, at worst the display is half updated.
        self.observer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
