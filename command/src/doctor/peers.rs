//! Whether the daemons of the run fit this one: what its event log says of those that it refused.

use super::code::Code;
use super::finding::Finding;
use murmurate_node::events::{Entry, Kind, read_dir};
use std::collections::BTreeMap;
use std::path::Path;

/// Daemons that are named.
const PEERS_MAX: usize = 4;

/// The daemons with other settings that were refused since the daemon started last.
pub(super) fn settings(dir: &Path) -> Vec<Finding> {
    // Without a log there was no daemon yet.
    let entries = read_dir(dir).map_or_else(|_| Vec::new(), |(entries, _)| entries);
    let differing = differing(&entries);
    let found = differing.iter().take(PEERS_MAX);
    found.map(|(peer, keys)| finding(peer, keys)).collect()
}

/// The keys in which each peer differs, if it was not linked afterwards.
fn differing(entries: &[Entry]) -> BTreeMap<&str, &[String]> {
    let mut found = BTreeMap::new();
    for entry in entries {
        match &entry.kind {
            Kind::Started { .. } => found.clear(),
            Kind::Differs { peer, keys } => {
                found.insert(peer.as_str(), keys.as_slice());
            }
            Kind::PeerUp { peer } => {
                found.remove(peer.as_str());
            }
            _ => {}
        }
    }
    found
}

fn finding(peer: &str, keys: &[String]) -> Finding {
    let short: String = peer.chars().take(8).collect();
    let named: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    let text = format!("daemon {short} has other settings: {}", named.join(", "));
    Finding::failed("peers", Code::OtherSettings, text)
        .because("the two configurations of one run differ, so the daemons refuse each other")
        .fix("write the same values into both configurations, and start the changed daemon again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_node::events::VERSION;

    fn entry(kind: Kind) -> Entry {
        Entry {
            v: VERSION,
            seq: 1,
            time: 5.0,
            daemon: "d".repeat(64),
            round: 0,
            kind,
        }
    }

    #[test]
    fn daemons_that_differ_since_the_start_are_named_with_the_keys() {
        let differs = |peer: &str| {
            let keys = vec!["run.seed".to_owned(), "strategy.outer.lr".to_owned()];
            let peer = peer.repeat(64);
            entry(Kind::Differs { peer, keys })
        };
        let started = entry(Kind::Started {
            version: "0.1.0".to_owned(),
            run: "birds".to_owned(),
            name: None,
        });
        let up = entry(Kind::PeerUp {
            peer: "b".repeat(64),
        });
        let entries = [differs("a"), started, differs("b"), differs("c"), up];
        let found = differing(&entries);
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), ["c".repeat(64)]);
        let (peer, keys) = found.iter().next().unwrap();
        let finding = finding(peer, keys);
        assert_eq!(finding.code.as_deref(), Some("M025"));
        assert_eq!(
            finding.text,
            "daemon cccccccc has other settings: `run.seed`, `strategy.outer.lr`"
        );
        assert!(settings(Path::new("/nowhere/at/all")).is_empty());
    }
}
