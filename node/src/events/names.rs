//! What daemons are called, as their logs tell: in their own words, or by the beginning of their ids.

use super::entry::{Entry, Kind};
use std::collections::BTreeMap;

/// The names of daemons by id.
#[derive(Clone, Debug, Default)]
pub struct Names {
    by_id: BTreeMap<String, String>,
    /// How many daemons have each name.
    count: BTreeMap<String, usize>,
}

impl Names {
    /// The names that are in these entries.
    pub fn of(entries: &[Entry]) -> Self {
        let mut by_id = BTreeMap::new();
        for entry in entries {
            match &entry.kind {
                Kind::Started {
                    name: Some(name), ..
                } => by_id.insert(entry.daemon.clone(), name.clone()),
                Kind::Named { peer, name } => by_id.insert(peer.clone(), name.clone()),
                _ => None,
            };
        }
        let mut count = BTreeMap::new();
        for name in by_id.values() {
            *count.entry(name.clone()).or_default() += 1;
        }
        Self { by_id, count }
    }

    /// What a daemon is called. The beginning of the id follows a name that several daemons have.
    pub fn call(&self, id: &str) -> String {
        match self.by_id.get(id) {
            None => begin(id),
            Some(name) if self.count.get(name) == Some(&1) => name.clone(),
            Some(name) => format!("{name} {}", begin(id)),
        }
    }
}

/// The first digits of an id.
fn begin(id: &str) -> String {
    id.chars().take(8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::VERSION;

    #[test]
    fn a_daemon_is_called_as_it_calls_itself() {
        let (a, b, c, d) = (
            "a".repeat(64),
            "b".repeat(64),
            "c".repeat(64),
            "d".repeat(64),
        );
        let entry = |kind| Entry {
            v: VERSION,
            seq: 1,
            time: 1.0,
            daemon: a.clone(),
            round: 0,
            kind,
        };
        let named = |peer: &String, name: &str| {
            entry(Kind::Named {
                peer: peer.clone(),
                name: name.to_owned(),
            })
        };
        let started = entry(Kind::Started {
            version: "1".to_owned(),
            run: "r".to_owned(),
            name: Some("gpu-1".to_owned()),
        });
        let names = Names::of(&[started, named(&b, "old"), named(&b, "x"), named(&c, "x")]);
        let called = [&a, &b, &c, &d].map(|id| names.call(id));
        assert_eq!(called, ["gpu-1", "x bbbbbbbb", "x cccccccc", "dddddddd"]);
    }
}
