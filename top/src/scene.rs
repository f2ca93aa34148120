//! A picture made of the entries of an event log, one after the other. What a log does not hold, such as round
//! trips and rates, stays unknown.

use crate::picture::Picture;
use murmurate_node::api::words::{listed, time};
use murmurate_node::api::{Answer, EvaluationStatus, PeerView, Point, Swarm, WaitNow};
use murmurate_node::events::{Entry, Kind};
use std::collections::BTreeMap;

const STRIP_ROUNDS: usize = 32;

/// The waits that are for other peers to be as far, in the log's words.
const FOR_OTHERS: [&str; 5] = ["group", "partners", "center", "lead", "results"];

#[derive(Clone, Debug, Default)]
struct OpenRound {
    trained: bool,
    train_s: f64,
    wait_s: f64,
    exchange_s: f64,
    exchanging_since: Option<f64>,
    members: Vec<String>,
    /// For each contributor the number of fragments that it is in.
    counted: BTreeMap<String, u64>,
    decided: u64,
    void: u64,
    mixed: bool,
}

/// State of the replay of one daemon's log.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    me: String,
    picture: Picture,
    swarm: Swarm,
    open: OpenRound,
}

impl Scene {
    /// Before the first entry.
    pub(crate) fn new(me: &str, names: &BTreeMap<String, String>) -> Self {
        let mut swarm = Swarm::default();
        swarm.daemon.peer = me.to_owned();
        Self {
            me: me.to_owned(),
            picture: Picture {
                names: names.clone(),
                recorded: true,
                ..Picture::default()
            },
            swarm,
            open: OpenRound::default(),
        }
    }

    pub(crate) fn take(&mut self, entry: &Entry) {
        if entry.daemon == self.me {
            self.own(entry)
        } else {
            self.peer(&entry.daemon).round = Some(entry.round)
        }
        self.picture.happened([entry.clone()]);
    }

    pub(crate) fn picture(&self, now: f64) -> Picture {
        let mut swarm = self.swarm.clone();
        let me = swarm.daemon.round;
        for peer in &mut swarm.peers {
            peer.lag = peer.round.map(|round| me as i64 - round as i64);
            peer.awaited = swarm
                .waiting
                .iter()
                .any(|wait| wait.peers.contains(&peer.peer));
        }
        swarm.unix_s = now;
        swarm.verdict = self.verdict(now);
        Picture {
            swarm: Some(swarm),
            answered_unix_s: Some(now),
            ..self.picture.clone()
        }
    }

    fn peer(&mut self, id: &str) -> &mut PeerView {
        let peers = &mut self.swarm.peers;
        let place = match peers.iter().position(|peer| peer.peer == id) {
            Some(place) => place,
            None => {
                // It was not there in the rounds before.
                let rounds = self.swarm.daemon.strip.chars().count();
                peers.push(PeerView {
                    peer: id.to_owned(),
                    strip: "a".repeat(rounds),
                    ..PeerView::default()
                });
                peers.sort_by(|a, b| a.peer.cmp(&b.peer));
                peers.iter().position(|peer| peer.peer == id).unwrap_or(0)
            }
        };
        &mut peers[place]
    }

    fn own(&mut self, entry: &Entry) {
        match &entry.kind {
            Kind::Started { version, run, name } => {
                self.open = OpenRound::default();
                self.swarm.waiting.clear();
                self.swarm
                    .peers
                    .iter_mut()
                    .for_each(|peer| peer.linked = false);
                let daemon = &mut self.swarm.daemon;
                (daemon.version, daemon.run) = (version.clone(), run.clone());
                daemon.name.clone_from(name);
                daemon.phase = "new".to_owned();
            }
            Kind::PeerUp { peer } => {
                let peer = self.peer(peer);
                (peer.linked, peer.suspected, peer.left) = (true, false, false);
            }
            Kind::PeerDown { peer } => self.peer(peer).linked = false,
            Kind::PeerLeft { peer } => {
                let peer = self.peer(peer);
                (peer.linked, peer.left) = (false, true);
            }
            Kind::Named { peer, name } => {
                let claimed = &mut self.picture.claimed;
                claimed.insert(peer.clone(), name.clone());
            }
            Kind::Suspected { peer } => self.peer(peer).suspected = true,
            Kind::Waiting {
                what,
                peers,
                waited_s,
                deadline_s,
            } => {
                self.swarm.waiting = vec![WaitNow {
                    what: what.clone(),
                    peers: peers.clone(),
                    since_unix_s: entry.time - waited_s,
                    deadline_unix_s: entry.time + deadline_s,
                    ..WaitNow::default()
                }];
            }
            Kind::Waited { what, waited_s, .. } => self.waited(what, *waited_s),
            Kind::Finished => self.swarm.daemon.phase = "finished".to_owned(),
            _ => self.of_round(entry),
        }
    }

    fn of_round(&mut self, entry: &Entry) {
        let daemon = &mut self.swarm.daemon;
        match &entry.kind {
            Kind::Phase { phase } => {
                (daemon.round, daemon.phase) = (entry.round, phase.clone());
                self.swarm.waiting.clear();
                self.end_exchange(entry.time);
                if phase == "exchange" {
                    self.open.exchanging_since = Some(entry.time);
                }
            }
            Kind::Trained { loss, train_s, .. } => {
                daemon.loss = Some(*loss);
                self.open.trained = true;
                self.open.train_s += train_s;
            }
            Kind::Group { members } => {
                self.open.members = members.clone();
                self.heard(members);
            }
            Kind::Decided { contributors, .. } => {
                self.open.decided += 1;
                for id in contributors {
                    *self.open.counted.entry(id.clone()).or_default() += 1;
                }
                self.heard(contributors);
            }
            Kind::Voided { .. } => self.open.void += 1,
            Kind::Mixed { .. } => self.open.mixed = true,
            Kind::RoundEnded { seconds, .. } => self.round_ended(entry, *seconds),
            Kind::Replayed { kept } => {
                let mine = match (self.open.trained, kept) {
                    (true, true) => 'k',
                    (true, false) => 'l',
                    (false, _) => 'a',
                };
                self.letters(|id, me| if id == me { mine } else { '?' });
                self.open = OpenRound::default();
            }
            Kind::Evaluated { loss, accuracy } => {
                daemon.evaluation = Some(EvaluationStatus {
                    round: entry.round,
                    loss: *loss,
                    accuracy: *accuracy,
                    ..EvaluationStatus::default()
                });
                let last = self.picture.history.points.last_mut();
                if let Some(point) = last.filter(|point| point.round + 1 == entry.round) {
                    (point.eval_loss, point.accuracy) = (Some(*loss), *accuracy);
                }
            }
            Kind::Saved => daemon.saved_round = Some(entry.round),
            _ => {}
        }
    }

    /// These peers took part, so they are no longer silent.
    fn heard(&mut self, ids: &[String]) {
        for id in ids {
            if *id != self.me {
                self.peer(id).suspected = false;
            }
        }
    }

    fn waited(&mut self, what: &str, waited_s: f64) {
        if FOR_OTHERS.contains(&what) {
            self.open.wait_s += waited_s;
        }
        for wait in std::mem::take(&mut self.swarm.waiting) {
            let each = waited_s / wait.peers.len().max(1) as f64;
            for id in &wait.peers {
                self.peer(id).waited_s += each;
            }
        }
    }

    fn end_exchange(&mut self, now: f64) {
        if let Some(since) = self.open.exchanging_since.take() {
            self.open.exchange_s += (now - since).max(0.0);
        }
    }

    fn round_ended(&mut self, entry: &Entry, seconds: f64) {
        self.end_exchange(entry.time);
        self.swarm.waiting.clear();
        let open = std::mem::take(&mut self.open);
        self.picture.round_ended(Point {
            round: entry.round,
            unix_s: entry.time,
            seconds,
            train_s: open.train_s,
            wait_s: open.wait_s,
            exchange_s: (open.exchange_s - open.wait_s).max(0.0),
            loss: self.swarm.daemon.loss.filter(|_| open.trained),
            ..Point::default()
        });
        self.letters(|id, _| letter(&open, id));
    }

    /// Adds the sign of a round to the strip of every peer.
    fn letters(&mut self, letter: impl Fn(&str, &str) -> char) {
        let me = self.me.clone();
        let own = (&me, &mut self.swarm.daemon.strip);
        let peers = self
            .swarm
            .peers
            .iter_mut()
            .map(|peer| (&peer.peer, &mut peer.strip));
        for (id, strip) in std::iter::once(own).chain(peers) {
            strip.push(letter(id, &me));
            let long = strip.chars().count();
            *strip = strip
                .chars()
                .skip(long.saturating_sub(STRIP_ROUNDS))
                .collect();
        }
    }

    /// The verdict on the round, in the words of the log.
    fn verdict(&self, now: f64) -> Answer {
        let daemon = &self.swarm.daemon;
        let mut answer = Answer {
            round: daemon.round,
            ..Answer::default()
        };
        let Some(wait) = self.swarm.waiting.first() else {
            let sentence = match daemon.phase.as_str() {
                "finished" => "All rounds are done.".to_owned(),
                "" | "new" => "The daemon has started.".to_owned(),
                "left" => "The daemon has left.".to_owned(),
                phase => format!("Round {}: {phase}.", daemon.round),
            };
            answer.sentences.push(sentence);
            return answer;
        };
        let names: Vec<String> = wait.peers.iter().map(|id| self.picture.name(id)).collect();
        let whom = if names.is_empty() {
            format!("for {}", wait.what)
        } else {
            format!("for {} ({})", listed(&names), wait.what)
        };
        let waited = time((now - wait.since_unix_s).max(0.0));
        answer
            .sentences
            .push(format!("Round {} waits {whom}.", daemon.round));
        answer.sentences.push(format!("It has waited {waited}."));
        answer.peers.clone_from(&wait.peers);
        answer
    }
}

/// The sign of a peer for a round, as the daemon's own strip has it.
fn letter(open: &OpenRound, id: &str) -> char {
    match open.counted.get(id) {
        Some(count) if *count == open.decided && open.void == 0 => 'c',
        Some(_) => 'p',
        None if open.decided > 0 && open.counted.is_empty() => '?',
        None if open.decided > 0 && open.members.iter().any(|member| member == id) => 'l',
        None if open.decided > 0 => 'a',
        None if open.mixed => 'm',
        None => 'n',
    }
}
