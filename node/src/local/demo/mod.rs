//! `murmurate local --demo`: a run of about a minute in which things go wrong, with a sentence for each. It is
//! a set of options and a [`Narrator`], which reads the daemons' event logs. Each thing that goes wrong is a story
//! of its own: [`Opening`], [`Death`], [`Joiner`] and [`Rift`] take the entries and return the sentences.

use super::options::LocalOptions;
use super::{FaultAt, HealAt, LateAt, PartitionAt};
use crate::events::{Entry, Kind, Tail};
use crate::faults::FaultPhase;
use crate::report::NodeReport;
use murmurate_protocol::{SortedMap, SortedSet};
use murmurate_tasks::data::ShardKind;
use serde::Serialize;
use std::path::Path;

const NODES: usize = 4;

/// Rounds of the demo, unless another number is given. What happens keeps its place among them.
const ROUNDS: u64 = 110;

/// Fewer rounds leave too few between one thing that happens and the next.
pub const DEMO_ROUNDS_MIN: u64 = 50;

/// Seconds of training in a round: enough for people to follow, on a machine of any speed.
const ROUND_TIME_S: f64 = 0.35;

/// The same run, with the faults of the demo.
#[must_use]
pub fn demo(options: LocalOptions) -> LocalOptions {
    let sides = vec![vec![0, 1], vec![2, 3]];
    let rounds = options.rounds.unwrap_or(ROUNDS);
    let at = |usual: u64| rounds.saturating_mul(usual) / ROUNDS;
    LocalOptions {
        nodes: NODES,
        rounds: Some(rounds),
        // Without a daemon the others must still see all classes.
        shards: Some(ShardKind::Iid),
        lates: vec![LateAt {
            node: 3,
            round: at(15),
        }],
        partition: Some(PartitionAt {
            sides,
            round: at(40),
        }),
        heal: Some(HealAt { round: at(55) }),
        kills: vec![FaultAt {
            node: 2,
            round: at(90),
            phase: FaultPhase::Exchange,
        }],
        round_time_s: Some(ROUND_TIME_S),
        baseline: Some(0.0),
        demo: true,
        ..options
    }
}

/// A sentence of the story.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Told {
    /// Seconds from the start of the first daemon.
    pub at_s: f64,
    /// What happened.
    pub sentence: String,
}

#[derive(Debug)]
pub(in crate::local) struct Narrator {
    /// Unix time at which the first daemon was started.
    started: f64,
    logs: Vec<Tail>,
    numbers: SortedMap<String, usize>,
    sides: Vec<Vec<usize>>,
    opening: Option<Opening>,
    deaths: Vec<Death>,
    joiners: Vec<Joiner>,
    rifts: Vec<Rift>,
    story: Vec<Told>,
    passed_on: usize,
}

impl Narrator {
    /// A narrator of daemons with these directories, which a split would divide into these sides.
    pub(in crate::local) fn new<'a>(
        dirs: impl Iterator<Item = &'a Path>,
        sides: &[Vec<usize>],
    ) -> Self {
        Self {
            started: 0.0,
            logs: dirs.map(Tail::new).collect(),
            numbers: SortedMap::new(),
            sides: sides.to_vec(),
            opening: None,
            deaths: Vec::new(),
            joiners: Vec::new(),
            rifts: Vec::new(),
            story: Vec::new(),
            passed_on: 0,
        }
    }

    pub(in crate::local) fn story(&self) -> &[Told] {
        &self.story
    }

    /// The sentences since the last call.
    pub(in crate::local) fn news(&mut self) -> Vec<String> {
        let news = self.story[self.passed_on..].iter();
        let news = news.map(|told| format!("{:>5.1} s  {}", told.at_s, told.sentence));
        let news = news.collect();
        self.passed_on = self.story.len();
        news
    }

    fn tell(&mut self, now: f64, sentence: String) {
        let at_s = (now - self.started).max(0.0);
        self.story.push(Told { at_s, sentence });
    }

    /// These daemons start at a Unix time.
    pub(in crate::local) fn begins(&mut self, now: f64, indexes: &[usize]) {
        self.started = now;
        self.tell(
            now,
            format!("{} start, each as a process of its own.", daemons(indexes)),
        );
        self.opening = Some(Opening::new(indexes));
    }

    /// A daemon has said its id.
    pub(in crate::local) fn is_called(&mut self, index: usize, peer: &str) {
        self.numbers.insert(peer.to_owned(), index);
    }

    /// A daemon is killed; `others` live.
    pub(in crate::local) fn killed(
        &mut self,
        now: f64,
        (victim, round, phase): (usize, u64, &str),
        others: SortedSet<usize>,
    ) {
        let who = daemons([&victim]);
        self.tell(
            now,
            format!("{who} was killed during the {phase} of round {round}."),
        );
        self.deaths.push(Death::new(victim, round, now, others));
    }

    pub(in crate::local) fn comes_late(&mut self, now: f64, index: usize, round: u64) {
        let who = daemons([&index]);
        self.tell(
            now,
            format!("{who} starts now, when the others are in round {round}."),
        );
        self.joiners.push(Joiner::new(index, now));
    }

    /// The sides lose each other.
    pub(in crate::local) fn split(&mut self, now: f64, round: u64) {
        let sides: Vec<String> = self.sides.iter().map(daemons).collect();
        let sides = sides.join(" cannot reach ").to_lowercase();
        self.tell(
            now,
            format!("The network is cut in round {round}: {sides}."),
        );
        self.rifts.push(Rift::new(&self.sides, round, now));
    }

    /// The sides can reach each other again.
    pub(in crate::local) fn healed(&mut self, now: f64, round: u64) {
        self.rifts.clear();
        let text = format!("The network is whole again; the first daemon is in round {round}.");
        self.tell(now, text);
    }

    pub(in crate::local) fn merged(&mut self, now: f64, round: u64, sides: usize) {
        let sides = if sides == 2 {
            "both sides".to_owned()
        } else {
            format!("all {sides} sides")
        };
        let text = format!(
            "Round {round} merged what {sides} had learned: all hold the same model again."
        );
        self.tell(now, text);
    }

    /// Reads the logs of the daemons, and takes the new entries in the order of their times: all of them
    /// have the clock of this machine. Unreadable entries are not told.
    pub(in crate::local) fn look(&mut self) {
        let mut fresh: Vec<(usize, Entry)> = Vec::new();
        for (index, log) in self.logs.iter_mut().enumerate() {
            let entries = log.more().unwrap_or_default();
            fresh.extend(entries.into_iter().map(|entry| (index, entry)));
        }
        fresh.sort_by(|(_, a), (_, b)| a.time.total_cmp(&b.time));
        let numbers = std::mem::take(&mut self.numbers);
        for (index, entry) in &fresh {
            self.take(&Seen {
                index: *index,
                entry,
                numbers: &numbers,
            });
        }
        self.numbers = numbers;
    }

    fn take(&mut self, seen: &Seen<'_>) {
        let mut sentences: Vec<String> = Vec::new();
        sentences.extend(self.opening.as_mut().and_then(|opening| opening.take(seen)));
        sentences.extend(self.deaths.iter_mut().filter_map(|death| death.take(seen)));
        sentences.extend(
            self.joiners
                .iter_mut()
                .filter_map(|joiner| joiner.take(seen)),
        );
        sentences.extend(self.rifts.iter_mut().filter_map(|rift| rift.take(seen)));
        for sentence in sentences {
            self.tell(seen.entry.time, sentence);
        }
    }

    /// The run is over; these are the reports of those that finished, by number.
    pub(in crate::local) fn ends(&mut self, now: f64, finished: &[(usize, &NodeReport)]) {
        let Some((_, first)) = finished.first() else {
            return self.tell(now, "No daemon finished.".to_owned());
        };
        let same = finished
            .iter()
            .all(|(_, report)| report.digest == first.digest);
        let rounds = finished.iter().map(|(_, report)| report.rounds).max();
        let indexes: Vec<usize> = finished.iter().map(|(index, _)| *index).collect();
        let bits = if same {
            "the same model, bit by bit"
        } else {
            "models that differ"
        };
        let accuracy = first.test_accuracy;
        let accuracy = accuracy.map_or(String::new(), |share| {
            format!(" It recognises {:.1} % of the test images.", 100.0 * share)
        });
        let waits = finished.iter().map(|(_, report)| report.longest_wait_s);
        let longest = waits.reduce(f64::max).unwrap_or(0.0);
        let text = format!(
            "{} finished {} rounds with {bits}.{accuracy} The longest wait for another daemon was {longest:.1} s.",
            daemons(&indexes),
            rounds.unwrap_or(0)
        );
        self.tell(now, text);
    }
}

/// The daemons that start together.
#[derive(Debug)]
struct Opening {
    /// For each one the digest of its parameters after the first round, once it has ended that.
    digests: SortedMap<usize, Option<String>>,
    round: Option<u64>,
    told: bool,
}

impl Opening {
    pub(super) fn new(indexes: &[usize]) -> Self {
        Self {
            digests: indexes.iter().map(|index| (*index, None)).collect(),
            round: None,
            told: false,
        }
    }

    /// Takes an entry. Returns a sentence when the last daemon has ended the first round.
    pub(super) fn take(&mut self, seen: &Seen<'_>) -> Option<String> {
        let Kind::RoundEnded { digest, .. } = &seen.entry.kind else {
            return None;
        };
        let round = *self.round.get_or_insert(seen.entry.round);
        if self.told || seen.entry.round != round {
            return None;
        }
        *self.digests.get_mut(&seen.index)? = Some(digest.clone());
        let digests: Option<Vec<&String>> = self.digests.values().map(Option::as_ref).collect();
        let digests = digests?;
        self.told = true;
        let same = digests.iter().all(|other| *other == digests[0]);
        let what = if same {
            "the same model"
        } else {
            "models that differ"
        };
        Some(format!(
            "{} have trained for one round, averaged what they learned, and hold {what}.",
            daemons(self.digests.keys())
        ))
    }
}

#[derive(Debug)]
struct Death {
    victim: usize,
    round: u64,
    at: f64,
    /// Unix time at which the last of the others ended the round.
    ended: f64,
    /// The others that have not ended the round yet.
    left: SortedSet<usize>,
    /// The result of the round, once there is one: `true` if it contains the victim's training.
    decided: Option<bool>,
    /// Set once the others have ended the round with its training, until a later result lacks that.
    lives_on: bool,
}

impl Death {
    /// A daemon was killed at a Unix time, in a round that `others` still have to end.
    pub(super) const fn new(victim: usize, round: u64, at: f64, others: SortedSet<usize>) -> Self {
        Self {
            victim,
            round,
            at,
            ended: at,
            left: others,
            decided: None,
            lives_on: false,
        }
    }

    /// Takes an entry. Returns a sentence when the last of the others has ended the round, and when they first
    /// decide one without the victim.
    pub(super) fn take(&mut self, seen: &Seen<'_>) -> Option<String> {
        let without = seen
            .contributors()
            .is_some_and(|all| !all.contains(&self.victim));
        if without && self.lives_on && seen.entry.round > self.round {
            self.lives_on = false;
            let after = after(seen.entry.time - self.at);
            let round = seen.entry.round;
            return Some(format!(
                "The others waited for it in round {round}, and decided that without it {after}."
            ));
        }
        if seen.entry.round != self.round {
            return None;
        }
        self.of_its_round(seen)
    }

    /// Takes an entry of the round in which the victim died.
    fn of_its_round(&mut self, seen: &Seen<'_>) -> Option<String> {
        if let Some(contributors) = seen.contributors() {
            self.decided = Some(contributors.contains(&self.victim));
        }
        let ended = matches!(seen.entry.kind, Kind::RoundEnded { .. });
        if !ended || !self.left.remove(&seen.index) {
            return None;
        }
        self.ended = self.ended.max(seen.entry.time);
        if !self.left.is_empty() {
            return None;
        }
        self.lives_on = self.decided == Some(true);
        let (round, after) = (self.round, after(self.ended - self.at));
        Some(match self.decided {
            Some(false) => format!("The others decided round {round} without it {after}."),
            Some(true) => format!(
                "It had sent its training before, so the others decided round {round} with it."
            ),
            None => format!("The others went on without a result of round {round} {after}."),
        })
    }
}

/// A daemon that came late.
#[derive(Debug)]
struct Joiner {
    index: usize,
    /// Unix time of its start.
    at: f64,
    fetched: bool,
    counts: bool,
}

impl Joiner {
    /// A daemon started at a Unix time.
    pub(super) const fn new(index: usize, at: f64) -> Self {
        Self {
            index,
            at,
            fetched: false,
            counts: false,
        }
    }

    /// Takes an entry. Returns a sentence for each step of the newcomer.
    pub(super) fn take(&mut self, seen: &Seen<'_>) -> Option<String> {
        let who = daemons([&self.index]);
        if let Kind::CatchUp { to, donors } = seen.entry.kind
            && seen.index == self.index
            && !std::mem::replace(&mut self.fetched, true)
        {
            let from = match donors {
                1 => "one daemon".to_owned(),
                donors => format!("{donors} daemons at the same time"),
            };
            return Some(format!(
                "{who} fetches the state of round {to} from {from}."
            ));
        }
        let counted = seen
            .contributors()
            .is_some_and(|all| all.contains(&self.index));
        if !counted || std::mem::replace(&mut self.counts, true) {
            return None;
        }
        let (round, after) = (seen.entry.round, (seen.entry.time - self.at).max(0.0));
        Some(format!(
            "The training of {} counts from round {round} on, {after:.1} s after its start.",
            who.to_lowercase()
        ))
    }
}

#[derive(Debug)]
struct Rift {
    /// Unix time at which the first daemon noticed.
    at: f64,
    /// The sides that have not gone on yet.
    left: Vec<SortedSet<usize>>,
    round: u64,
}

impl Rift {
    /// The sides lost each other at a Unix time, in this round.
    pub(super) fn new(sides: &[Vec<usize>], round: u64, at: f64) -> Self {
        let left = sides.iter().map(|side| side.iter().copied().collect());
        Self {
            at,
            left: left.collect(),
            round,
        }
    }

    /// Takes an entry. Returns a sentence when a side decides its first round alone.
    pub(super) fn take(&mut self, seen: &Seen<'_>) -> Option<String> {
        let contributors = seen.contributors().filter(|all| !all.is_empty())?;
        if seen.entry.round < self.round || seen.entry.time < self.at {
            return None;
        }
        let alone = |side: &SortedSet<usize>| contributors.is_subset(side);
        let place = self.left.iter().position(alone)?;
        let side = self.left.remove(place);
        let (round, after) = (seen.entry.round, after(seen.entry.time - self.at));
        Some(format!(
            "{} go on among themselves {after}, from round {round} on.",
            daemons(&side)
        ))
    }
}

/// An entry of the log of daemon `index`.
#[derive(Clone, Copy, Debug)]
struct Seen<'a> {
    pub(super) index: usize,
    pub(super) entry: &'a Entry,
    pub(super) numbers: &'a SortedMap<String, usize>,
}

impl Seen<'_> {
    /// The daemons whose training is in the result, if it is a decision.
    pub(super) fn contributors(&self) -> Option<SortedSet<usize>> {
        let Kind::Decided { contributors, .. } = &self.entry.kind else {
            return None;
        };
        let numbers = contributors.iter().filter_map(|id| self.numbers.get(id));
        Some(numbers.copied().collect())
    }
}

/// Daemons in a sentence: `Daemon 2`, `Daemons 0, 1 and 3`.
pub(super) fn daemons<'a>(indexes: impl IntoIterator<Item = &'a usize>) -> String {
    let all: Vec<String> = indexes.into_iter().map(usize::to_string).collect();
    let word = if all.len() == 1 { "Daemon" } else { "Daemons" };
    format!("{word} {}", crate::api::words::listed(&all))
}

/// How long after something else.
pub(super) fn after(seconds: f64) -> String {
    if seconds < 0.05 {
        return "at once".to_owned();
    }
    format!("after {seconds:.1} s")
}

#[cfg(test)]
mod tests;
