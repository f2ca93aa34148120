//! Tells the story of a local swarm in plain sentences, from what its daemons say and from their event logs.

use super::death::Death;
use super::joiner::Joiner;
use super::opening::Opening;
use super::rift::Rift;
use super::seen::{Seen, daemons};
use crate::events::{Entry, Tail};
use crate::report::NodeReport;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A sentence of the story.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Told {
    /// Seconds from the start of the first daemon.
    pub at_s: f64,
    /// What happened.
    pub sentence: String,
}

/// The narrator.
#[derive(Debug)]
pub(in crate::local) struct Narrator {
    /// Unix time at which the first daemon was started.
    started: f64,
    logs: Vec<Tail>,
    numbers: BTreeMap<String, usize>,
    sides: Vec<Vec<usize>>,
    opening: Option<Opening>,
    deaths: Vec<Death>,
    joiners: Vec<Joiner>,
    rifts: Vec<Rift>,
    /// The story so far.
    story: Vec<Told>,
    /// Sentences of the story that were passed on.
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
            numbers: BTreeMap::new(),
            sides: sides.to_vec(),
            opening: None,
            deaths: Vec::new(),
            joiners: Vec::new(),
            rifts: Vec::new(),
            story: Vec::new(),
            passed_on: 0,
        }
    }

    /// The story so far.
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
        others: BTreeSet<usize>,
    ) {
        let who = daemons([&victim]);
        self.tell(
            now,
            format!("{who} was killed during the {phase} of round {round}."),
        );
        self.deaths.push(Death::new(victim, round, now, others));
    }

    /// A daemon starts late.
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

    /// The sides are one again.
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

    /// Reads the logs of the daemons, and takes what is new in the order in which it happened: all of them
    /// have the clock of this machine. What cannot be read is not told.
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
