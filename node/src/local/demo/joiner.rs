//! The story of a daemon that comes late: until its training counts.

use super::seen::{Seen, daemons};
use crate::events::Kind;

/// A daemon that came late.
#[derive(Debug)]
pub(super) struct Joiner {
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
