//! What the narrator sees: an entry of a daemon's log, with the daemons by their numbers.

use crate::events::{Entry, Kind};
use std::collections::{BTreeMap, BTreeSet};

/// An entry of the log of daemon `index`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub(super) index: usize,
    pub(super) entry: &'a Entry,
    /// The numbers of the daemons by id.
    pub(super) numbers: &'a BTreeMap<String, usize>,
}

impl Seen<'_> {
    /// The daemons whose training is in the result, if it is a decision.
    pub(super) fn contributors(&self) -> Option<BTreeSet<usize>> {
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
    match seconds < 0.05 {
        true => "at once".to_owned(),
        false => format!("after {seconds:.1} s"),
    }
}
