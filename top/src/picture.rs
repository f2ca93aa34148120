//! All that is known about a swarm at one moment: the model that is drawn and that `--json` prints. It
//! knows neither the network nor the terminal.

use murmurate_node::api::words::short;
use murmurate_node::api::{Answer, ContributionsPage, HistoryPage, Point, Swarm};
use murmurate_node::events::{Entry, Kind, Names};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::mem::discriminant;

/// Rounds that are kept; a daemon keeps as many.
pub(crate) const POINTS_MAX: usize = 4096;

/// Rounds whose contributions are kept; a daemon keeps as many.
const CONTRIBUTIONS_MAX: usize = 256;

/// Events of each kind that are kept: what happens in every round must not take the place of what happens
/// seldom.
const OF_KIND_MAX: usize = 250;

/// Sentences of the swarm that are kept.
const SAID_MAX: usize = 50;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answers {
    pub(crate) swarm: Swarm,
    pub(crate) history: HistoryPage,
    pub(crate) contributions: ContributionsPage,
    pub(crate) mine: Answer,
    pub(crate) slow: Answer,
}

/// The picture of a swarm.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Picture {
    /// The swarm as the daemon knows it; none before the first answer.
    pub swarm: Option<Swarm>,
    /// The cost of each round.
    pub history: HistoryPage,
    /// Whose training counted.
    pub contributions: ContributionsPage,
    /// Fate of the daemon's own training, in sentences.
    pub mine: Answer,
    /// The time of a round, in sentences.
    pub slow: Answer,
    /// The last events, oldest first.
    pub events: VecDeque<Entry>,
    /// Names of peers by id. A peer without a name is called by the beginning of its id.
    pub names: BTreeMap<String, String>,
    /// The names that daemons gave themselves, by id. Two may claim the same one: then the beginning of the
    /// id follows it.
    #[serde(skip)]
    pub(crate) claimed: BTreeMap<String, String>,
    /// The daemon's round and phase as an event told them after its last answer.
    #[serde(skip)]
    pub(crate) last_words: Option<(u64, String)>,
    /// Sentences about the swarm as a whole, oldest first.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub said: VecDeque<String>,
    /// Unix time of the last answer, seconds.
    pub answered_unix_s: Option<f64>,
    /// It comes from a log, which holds less than a daemon tells.
    #[serde(skip)]
    pub(crate) recorded: bool,
    /// Why the last question has no answer, if it has none.
    pub trouble: Option<String>,
}

impl Picture {
    /// The name of a peer: the one that it has here, the one that it claims, or the beginning of its id.
    pub(crate) fn name(&self, id: &str) -> String {
        let name = self.names.get(id).or_else(|| self.claimed.get(id));
        name.cloned().unwrap_or_else(|| short(id))
    }

    /// The last round whose cost is known.
    fn newest_round(&self) -> Option<u64> {
        self.history.points.last().map(|point| point.round)
    }

    pub(crate) fn answered(&mut self, answers: Answers, now: f64) {
        if self.is_another_life(&answers.swarm) {
            self.history = HistoryPage::default();
            self.contributions = ContributionsPage::default();
        }
        // The newest round may have been evaluated since it was read.
        if let Some(first) = answers.history.points.first() {
            let first = first.round;
            self.history.points.retain(|point| point.round < first);
        }
        self.history.points.extend(answers.history.points);
        keep_newest(&mut self.history.points, POINTS_MAX);
        let known = self.contributions.rounds.last().map(|entry| entry.round);
        let of_before = std::mem::take(&mut self.contributions.rounds);
        self.contributions = answers.contributions;
        let fresh = std::mem::take(&mut self.contributions.rounds).into_iter();
        let fresh = fresh.filter(|entry| known.is_none_or(|known| entry.round > known));
        self.contributions.rounds = of_before.into_iter().chain(fresh).collect();
        keep_newest(&mut self.contributions.rounds, CONTRIBUTIONS_MAX);
        (self.mine, self.slow) = (answers.mine, answers.slow);
        self.claimed = claimed(&answers.swarm);
        self.swarm = Some(answers.swarm);
        self.last_words = None;
        self.answered_unix_s = Some(now);
        self.trouble = None;
    }

    pub(crate) fn round_ended(&mut self, point: Point) {
        self.history.points.push(point);
        keep_newest(&mut self.history.points, POINTS_MAX);
    }

    /// Takes events of the daemon. Those that are known already are left out.
    pub(crate) fn happened(&mut self, entries: impl IntoIterator<Item = Entry>) {
        for entry in entries {
            let last = self.events.back();
            let known = last.is_some_and(|last| {
                last.daemon == entry.daemon && last.seq >= entry.seq && last.time >= entry.time
            });
            if known {
                continue;
            }
            self.hears(&entry);
            let kind = discriminant(&entry.kind);
            self.events.push_back(entry);
            let alike = |other: &Entry| discriminant(&other.kind) == kind;
            if self.events.iter().filter(|other| alike(other)).count() > OF_KIND_MAX {
                let oldest = self.events.iter().position(alike);
                oldest.and_then(|place| self.events.remove(place));
            }
        }
    }

    fn hears(&mut self, entry: &Entry) {
        if let (Some(swarm), Kind::Phase { phase }) = (&self.swarm, &entry.kind)
            && swarm.daemon.peer == entry.daemon
            && entry.time >= swarm.unix_s
        {
            self.last_words = Some((entry.round, phase.clone()));
        }
    }

    /// The daemon's orderly end in a sentence, if there was one.
    pub(crate) fn farewell(&self) -> Option<String> {
        let daemon = &self.swarm.as_ref()?.daemon;
        let rounds = daemon.rounds;
        let heard = self.last_words.as_ref();
        let heard = heard.map(|(round, phase)| (*round, phase.as_str()));
        let (round, phase) = heard.unwrap_or((daemon.round, daemon.phase.as_str()));
        match phase {
            "finished" | "leaving" | "left" if rounds > 0 && round >= rounds => {
                Some(format!("all {rounds} rounds are complete"))
            }
            "finished" | "leaving" | "left" => {
                Some(format!("the daemon left in order in round {round}"))
            }
            _ => None,
        }
    }

    /// Takes a sentence about the swarm.
    pub(crate) fn say(&mut self, sentence: String) {
        self.said.push_back(sentence);
        if self.said.len() > SAID_MAX {
            self.said.pop_front();
        }
    }

    /// Begins with another daemon of the same swarm.
    pub(crate) fn begin_again(&mut self) {
        *self = Self {
            names: std::mem::take(&mut self.names),
            said: std::mem::take(&mut self.said),
            ..Self::default()
        };
    }

    /// These are answers of another daemon, or of one that started again: it counts its rounds from
    /// a memory that is empty.
    fn is_another_life(&self, swarm: &Swarm) -> bool {
        let newest = self.newest_round();
        self.swarm.as_ref().is_some_and(|before| {
            before.daemon.peer != swarm.daemon.peer
                || newest.is_some_and(|newest| swarm.daemon.round < newest)
        })
    }
}

/// The names that daemons gave themselves, each for one of them only.
fn claimed(swarm: &Swarm) -> BTreeMap<String, String> {
    let owned = |(id, name): (&str, &str)| (id.to_owned(), name.to_owned());
    let names: Names = swarm.names().map(owned).collect();
    let all = swarm.names();
    all.map(|(id, _)| (id.to_owned(), names.call(id))).collect()
}

/// Drops the oldest of a list that has become too long.
fn keep_newest<T>(list: &mut Vec<T>, most: usize) {
    list.drain(..list.len().saturating_sub(most));
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_node::api::{ClaimView, PeerView};
    use murmurate_node::events::VERSION;

    fn answers(peer: &str, round: u64, rounds: impl IntoIterator<Item = u64>) -> Answers {
        let mut answers = Answers::default();
        answers.swarm.daemon.peer = peer.to_owned();
        answers.swarm.daemon.round = round;
        let point = |round| Point {
            round,
            ..Point::default()
        };
        answers.history.points = rounds.into_iter().map(point).collect();
        answers
    }

    fn rounds(picture: &Picture) -> Vec<u64> {
        let points = picture.history.points.iter();
        points.map(|point| point.round).collect()
    }

    #[test]
    fn reads_add_up_until_the_daemon_starts_again() {
        let mut picture = Picture::default();
        picture.answered(answers("a", 3, [1, 2]), 10.0);
        picture.answered(answers("a", 4, [2, 3]), 11.0);
        assert_eq!(rounds(&picture), [1, 2, 3], "no round is there twice");
        picture.trouble = Some("gone".to_owned());
        picture.answered(answers("a", 1, [0]), 12.0);
        assert_eq!(
            rounds(&picture),
            [0],
            "another life counts from its own rounds"
        );
        assert_eq!(
            (picture.trouble.as_ref(), picture.answered_unix_s),
            (None, Some(12.0))
        );
        picture.answered(answers("b", 9, [8]), 13.0);
        assert_eq!(rounds(&picture), [8], "another daemon");
    }

    #[test]
    fn an_evaluation_that_comes_later_is_taken() {
        let mut picture = Picture::default();
        picture.answered(answers("a", 3, [1, 2]), 10.0);
        let mut later = answers("a", 3, [2]);
        later.history.points[0].eval_loss = Some(0.5);
        picture.answered(later, 11.0);
        assert_eq!(rounds(&picture), [1, 2]);
        assert_eq!(picture.history.points[1].eval_loss, Some(0.5));
    }

    #[test]
    fn an_end_in_order_is_told_from_a_daemon_that_does_not_answer() {
        let mut picture = Picture::default();
        let mut last = answers("a", 228, [227]);
        (last.swarm.daemon.rounds, last.swarm.unix_s) = (600, 10.0);
        picture.answered(last, 10.0);
        assert_eq!(picture.farewell(), None);
        let phase = |seq, time, round, phase: &str| Entry {
            v: VERSION,
            seq,
            time,
            daemon: "a".to_owned(),
            round,
            kind: Kind::Phase {
                phase: phase.to_owned(),
            },
        };
        picture.happened([phase(1, 9.0, 200, "left"), phase(2, 10.5, 229, "leaving")]);
        let left = Some("the daemon left in order in round 229".to_owned());
        assert_eq!(picture.farewell(), left);
        picture.happened([phase(3, 11.0, 600, "finished")]);
        let complete = Some("all 600 rounds are complete".to_owned());
        assert_eq!(picture.farewell(), complete);
    }

    #[test]
    fn a_daemon_is_called_as_it_calls_itself_unless_another_one_does_too() {
        let mut all = answers("aaaaaaaabbbb", 3, [1]);
        all.swarm.daemon.name = Some("gpu".to_owned());
        let claim = |name: &str| ClaimView {
            claim: serde_json::from_value(serde_json::json!({
                "name": name, "version": "0.1.0", "round": 3, "phase": "train", "unix_s": 9.0,
            }))
            .unwrap(),
            age_s: 1.0,
            stale: false,
        };
        let peer = |id: &str, name: Option<&str>| PeerView {
            peer: id.to_owned(),
            says: name.map(claim),
            ..PeerView::default()
        };
        all.swarm.peers = vec![
            peer("ccccccccdddd", Some("gpu")),
            peer("eeeeeeeeffff", Some("cpu")),
            peer("1111111122222", None),
            peer("3333333344444", Some("mine")),
        ];
        let mut picture = Picture::default();
        picture
            .names
            .insert("3333333344444".to_owned(), "node-3".to_owned());
        picture.answered(all, 10.0);
        let called = [
            "aaaaaaaabbbb",
            "ccccccccdddd",
            "eeeeeeeeffff",
            "1111111122222",
            "3333333344444",
        ]
        .map(|id| picture.name(id));
        assert_eq!(
            called,
            ["gpu aaaaaaaa", "gpu cccccccc", "cpu", "11111111", "node-3"]
        );
    }

    #[test]
    fn nothing_grows_without_end() {
        let mut picture = Picture::default();
        picture.answered(answers("a", 9000, 0..9000), 10.0);
        assert_eq!(
            (rounds(&picture).len(), rounds(&picture)[0]),
            (POINTS_MAX, 4904)
        );
        let entry = |seq| Entry {
            v: VERSION,
            seq,
            time: seq as f64,
            daemon: "a".to_owned(),
            round: 0,
            kind: Kind::Saved,
        };
        let seldom = Entry {
            kind: Kind::Finished,
            ..entry(0)
        };
        picture.happened([seldom.clone()]);
        picture.happened((1..900).map(entry));
        let void = |seq| Entry {
            kind: Kind::Voided { fragment: 0 },
            ..entry(seq)
        };
        picture.happened((900..1800).map(void));
        picture.happened([entry(1800), entry(5), entry(1801)]);
        assert_eq!(picture.events.len(), 2 * OF_KIND_MAX + 1);
        assert_eq!(picture.events[0], seldom, "no other kind takes its place");
        let last: Vec<u64> = picture.events.iter().rev().map(|e| e.seq).take(2).collect();
        assert_eq!(last, [1801, 1800], "known ones are left out");
        (0..99).for_each(|n| picture.say(n.to_string()));
        assert_eq!(picture.said.len(), SAID_MAX);
    }
}
