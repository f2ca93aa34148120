//! Joins the logs of several daemons, whose clocks may differ, into one order.
//!
//! An effect never stands before its cause: each daemon's entries keep their order, and a decision
//! stands after the training of every contributor whose log is here. Among entries without such a
//! relation the clock decides, after it is corrected: a round's decision reaches all daemons within
//! about one round trip, so the median difference of the times at which two daemons saw the same
//! decisions is the difference of their clocks.

use super::entry::{Entry, Kind};
use murmurate_protocol::{SortedMap, SortedSet};
use std::collections::VecDeque;

/// Joins logs. Each is in the order of its daemon; entries keep their own times.
pub fn merge(logs: Vec<Vec<Entry>>) -> Vec<Entry> {
    let offsets = offsets(&logs);
    let mut causes = Causes::of(&logs);
    let mut logs: Vec<VecDeque<Entry>> = logs.into_iter().map(VecDeque::from).collect();
    let mut joined = Vec::with_capacity(logs.iter().map(VecDeque::len).sum());
    loop {
        let heads = logs.iter().zip(&offsets).enumerate();
        let heads = heads.filter_map(|(log, (entries, offset))| {
            let head = entries.front()?;
            Some((causes.misses_some(head), head.time - offset, log))
        });
        // A cause that comes later in a torn log must not stop the others: then time decides.
        let next = heads.min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        let Some(entry) = next.and_then(|(_, _, log)| logs.get_mut(log)?.pop_front()) else {
            return joined;
        };
        causes.seen(&entry);
        joined.push(entry);
    }
}

/// Trainings that have not been passed yet, by daemon and round.
struct Causes {
    ahead: SortedSet<(String, u64)>,
}

impl Causes {
    fn of(logs: &[Vec<Entry>]) -> Self {
        let entries = logs.iter().flatten();
        let trained = entries.filter(|entry| matches!(entry.kind, Kind::Trained { .. }));
        let ahead = trained.map(|entry| (entry.daemon.clone(), entry.round));
        Self {
            ahead: ahead.collect(),
        }
    }

    fn misses_some(&self, entry: &Entry) -> bool {
        let Kind::Decided { contributors, .. } = &entry.kind else {
            return false;
        };
        let others = contributors.iter().filter(|peer| **peer != entry.daemon);
        let mut keys = others.map(|peer| (peer.clone(), entry.round));
        keys.any(|key| self.ahead.contains(&key))
    }

    fn seen(&mut self, entry: &Entry) {
        if matches!(entry.kind, Kind::Trained { .. }) {
            // A daemon that started again trains some rounds twice; the first training may count.
            self.ahead.remove(&(entry.daemon.clone(), entry.round));
        }
    }
}

/// By how many seconds each log's clock is ahead of the first one's.
fn offsets(logs: &[Vec<Entry>]) -> Vec<f64> {
    let seen = |log: &Vec<Entry>| -> SortedMap<(u64, u16), f64> {
        let decided = log.iter().filter_map(|entry| match &entry.kind {
            Kind::Decided { fragment, .. } => Some(((entry.round, *fragment), entry.time)),
            _ => None,
        });
        decided.collect()
    };
    let times: Vec<_> = logs.iter().map(seen).collect();
    let mut offsets: Vec<Option<f64>> = vec![None; logs.len()];
    let mut left: SortedSet<usize> = (0..logs.len()).collect();
    // Each log is compared with one whose offset is known; one without any in common has none.
    while let Some(start) = left.pop_first() {
        offsets[start] = Some(0.0);
        let mut known = vec![start];
        while let Some(base) = known.pop() {
            for log in left.clone() {
                if let Some(ahead) = median_difference(&times[log], &times[base]) {
                    offsets[log] = offsets[base].map(|offset| offset + ahead);
                    left.remove(&log);
                    known.push(log);
                }
            }
        }
    }
    offsets.into_iter().map(Option::unwrap_or_default).collect()
}

fn median_difference(
    times: &SortedMap<(u64, u16), f64>,
    base: &SortedMap<(u64, u16), f64>,
) -> Option<f64> {
    let both = times
        .iter()
        .filter_map(|(key, at)| Some(at - base.get(key)?));
    let mut differences: Vec<f64> = both.collect();
    differences.sort_by(f64::total_cmp);
    differences.get(differences.len() / 2).copied()
}
