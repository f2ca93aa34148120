//! What the running daemon says is wrong, and how a daemon that does not run has ended.

use super::code::Code;
use super::finding::Finding;
use super::subject::Subject;
use murmurate_node::api::Trouble;
use murmurate_node::events::{LogEnd, read_dir};

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
    let of = match trouble.kind.is_grave() {
        true => Finding::failed,
        false => Finding::warning,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::State;
    use murmurate_node::api::TroubleKind;

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
}
