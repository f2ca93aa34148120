//! What the running daemon says is wrong, how a daemon that does not run has ended, and which daemons of the run
//! its event log says it refused.

use super::finding::{Code, Finding};
use super::subject::Subject;
use murmurate_node::api::Trouble;
use murmurate_node::events::{Entry, Kind, LogEnd, read_dir};
use std::collections::BTreeMap;
use std::path::Path;

/// The troubles of the daemon that runs, or the end of the last one.
pub(super) fn troubles(subject: &Subject) -> Vec<Finding> {
    if !subject.runs {
        return ended(subject).into_iter().collect();
    }
    let status = subject.status();
    if status.is_null() {
        return vec![silent()];
    }
    let found = serde_json::from_value::<Vec<Trouble>>(status["troubles"].clone());
    let found = found.unwrap_or_default();
    match (found.is_empty(), status["state"].as_str()) {
        (true, Some(state)) => vec![Finding::ok(
            "daemon",
            format!("it runs, and nothing is wrong: {state}"),
        )],
        // It is of a version that says nothing of it.
        (true, None) => Vec::new(),
        (false, _) => found.iter().map(finding).collect(),
    }
}

/// A daemon runs that does not answer.
fn silent() -> Finding {
    Finding::failed(
        "daemon",
        Code::Silent,
        "it runs and does not answer over HTTP",
    )
    .because(
        "its process is stopped, its machine is overloaded, `daemon.http` is off, or the file `http.addr` is gone",
    )
    .fix("let the process continue (kill -CONT; the file `lock` has its number), or restart it")
}

fn finding(trouble: &Trouble) -> Finding {
    let of = if trouble.kind.is_grave() {
        Finding::failed
    } else {
        Finding::warning
    };
    of("daemon", Code::Trouble, trouble.text.clone()).fix(trouble.action.clone())
}

/// How the log of the last daemon ends; nothing where there was none.
fn ended(subject: &Subject) -> Option<Finding> {
    let (entries, _) = read_dir(&subject.dir).ok()?;
    Some(match LogEnd::of(&entries)? {
        LogEnd::Left { round } => {
            Finding::ok("daemon", format!("it left in order in round {round}"))
        }
        LogEnd::Broken { round, kind } => {
            let text =
                format!("it ended without leaving: its log ends in round {round} with `{kind}`");
            Finding::warning("daemon", Code::Killed, text)
                .because("it was killed, or its machine failed")
                .fix("start it again in the same directory")
        }
    })
}

/// Daemons that are named.
const PEERS_MAX: usize = 4;

/// The daemons with other settings that were refused since the daemon started last.
pub(super) fn settings(dir: &Path) -> Vec<Finding> {
    // Without a log there was no daemon yet.
    let entries = read_dir(dir).map_or_else(|_| Vec::new(), |(entries, _)| entries);
    let differing = differing(&entries);
    let found = differing.iter().take(PEERS_MAX);
    found
        .map(|(peer, keys)| other_settings(peer, keys))
        .collect()
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

fn other_settings(peer: &str, keys: &[String]) -> Finding {
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
    use crate::doctor::finding::State;
    use murmurate_node::api::TroubleKind;
    use murmurate_node::events::VERSION;

    #[test]
    fn every_trouble_of_a_daemon_is_found_with_what_to_do() {
        for kind in TroubleKind::ALL {
            let found = finding(&Trouble {
                kind,
                since_unix_s: None,
                peers: Vec::new(),
                text: "It is so.".to_owned(),
                action: "Mend it.".to_owned(),
            });
            let failed = found.state == State::Failed;
            assert_eq!(failed, kind.is_grave(), "{found}");
            assert_eq!(
                (found.code.as_deref(), found.fix.as_deref()),
                (Some("M040"), Some("Mend it."))
            );
        }
    }

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
        let finding = other_settings(peer, keys);
        assert_eq!(finding.code.as_deref(), Some("M025"));
        assert_eq!(
            finding.text,
            "daemon cccccccc has other settings: `run.seed`, `strategy.outer.lr`"
        );
        assert!(settings(Path::new("/nowhere/at/all")).is_empty());
    }
}
