//! Runs swarms of shell scripts that print the lines of a daemon.

use super::*;
use crate::local::options::Goal;
use crate::local::report::NodeEntry;
use crate::local::{LocalOptions, LocalReport};
use crate::progress::Progress;
use crate::report::NodeReport;
use crate::tests::assert_begins;
use std::os::unix::fs::PermissionsExt;

/// Prints a report and ends on SIGINT. Until then it waits without using the processor.
const POLITE: &str = r#"trap 'kill $!; echo "{\"event\":\"report\",\"peer\":\"p\",REPORT}"; exit 0' INT
"#;

const REPORT: &str = r#"\"test_accuracy\":0.96,\"test_loss\":0.1,\"rounds\":7,\"inner_steps\":70,\"samples\":700,\"wall_s\":2.0,\"train_s\":1.0,\"bytes_sent\":{\"payload\":4,\"encoded\":2,\"wire\":3},\"bytes_received\":{\"payload\":4,\"encoded\":2,\"wire\":3},\"longest_wait_s\":0.5,\"deadline_s\":1.0,\"longest_wait_for\":\"group\",\"peak_rss_bytes\":100,\"digest\":\"d\",\"digest_round\":6,\"catch_ups\":0,\"voids\":0"#;

const LISTENING: &str = r#"echo '{"event":"listening","peer":"p","addresses":["/ip4/127.0.0.1/udp/1/quic-v1"],"http":null}'
"#;

const WAIT: &str = "sleep 60 & wait\n";

fn progress(round: u64, accuracy: f64) -> String {
    let evaluation = Some(crate::api::EvaluationStatus {
        round,
        loss: 0.1,
        accuracy: Some(accuracy),
        ..Default::default()
    });
    let progress = Progress {
        round,
        inner_steps: 10 * round,
        evaluation,
        bytes_sent: 100 * round,
        ..Progress::default()
    };
    format!(
        "echo '{}'\n",
        serde_json::to_string(&Line::Progress(progress)).unwrap()
    )
}

/// A swarm of two whose daemons run `script`. Its argument `$3` is the path of the configuration.
fn swarm(dir: &tempfile::TempDir, script: &str, options: &LocalOptions) -> (LocalPlan, Swarm) {
    let mut plan = LocalPlan::new(options, dir.path(), &[]).unwrap();
    plan.program = dir.path().join("daemon.sh");
    let text = format!("#!/bin/sh\n{}{script}", POLITE.replace("REPORT", REPORT));
    std::fs::write(&plan.program, text).unwrap();
    std::fs::set_permissions(&plan.program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let swarm = Swarm::new(&plan, Display::quiet()).unwrap();
    (plan, swarm)
}

fn accuracy(share: f64) -> Target {
    Target {
        accuracy: Some(share),
        loss: None,
    }
}

fn two() -> LocalOptions {
    LocalOptions {
        nodes: 2,
        ..LocalOptions::default()
    }
}

#[tokio::test]
async fn a_swarm_that_reaches_its_target_is_told_to_leave_and_reports() {
    let dir = tempfile::tempdir().unwrap();
    let script = format!("{LISTENING}{}{WAIT}", progress(6, 0.96));
    let (plan, mut swarm) = swarm(&dir, &script, &two());
    let end = swarm.run(accuracy(0.95), None).await.unwrap();
    assert_eq!(end, End::Reached);
    let report = LocalReport::new(&plan, &two(), &swarm, end);
    assert_eq!(report.reached, Some(true));
    assert_eq!(report.total.inner_steps, 140);
    assert!(
        report.nodes.iter().all(|n| n.status == "finished"),
        "{report:?}"
    );
}

#[tokio::test]
async fn a_daemon_that_is_killed_again_and_again_counts_with_what_it_had_reached() {
    let dir = tempfile::tempdir().unwrap();
    let (_, mut swarm) = swarm(&dir, WAIT, &two());
    let states = [State::Running, State::Away(std::time::Instant::now())];
    for (member, state) in swarm.members.iter_mut().zip(states) {
        member.state = state;
        // The progress of its new life knows no evaluation.
        member.evaluation = Some(crate::api::EvaluationStatus {
            accuracy: Some(0.96),
            ..Default::default()
        });
    }
    assert_eq!(swarm.end(accuracy(0.95)), Some(End::Reached));
    assert_eq!(swarm.end(accuracy(0.97)), None);
    swarm.members[1].state = State::Waiting;
    assert_eq!(swarm.end(accuracy(0.95)), None);
}

#[tokio::test]
async fn a_daemon_that_dies_by_itself_is_shown_with_its_last_words() {
    let dir = tempfile::tempdir().unwrap();
    let script = "echo 'error: the disk is on fire' >&2; exit 3\n";
    let (_, mut swarm) = swarm(&dir, script, &two());
    let line = swarm
        .run(accuracy(0.95), None)
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(
        line,
        "daemon 0 ended unexpectedly (exit status: 3); \
         its last output: error: the disk is on fire"
    );
}

#[tokio::test]
async fn a_daemon_killed_on_request_does_not_hold_up_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let fault = Line::Fault {
        fault: "kill@2:exchange".parse().unwrap(),
        round: 2,
    };
    let fault = serde_json::to_string(&fault).unwrap();
    let script = format!(
        "{LISTENING}{}case \"$*\" in *--fault*) echo '{fault}'; kill -9 $$;; esac\n{}{WAIT}",
        progress(2, 0.5),
        progress(6, 0.96)
    );
    let kills = vec!["1@round:2:exchange".parse().unwrap()];
    let options = LocalOptions { kills, ..two() };
    let (plan, mut swarm) = swarm(&dir, &script, &options);
    let end = swarm.run(accuracy(0.95), None).await.unwrap();
    let report = LocalReport::new(&plan, &options, &swarm, end);
    assert_eq!(
        (
            report.nodes[0].status.as_str(),
            report.nodes[1].status.as_str()
        ),
        ("finished", "killed")
    );
    let killed = &report.nodes[1].report;
    assert_eq!(
        (killed.test_accuracy, killed.bytes_sent.wire),
        (Some(0.5), 200),
        "as it said last"
    );
    let fault = &report.faults[0];
    assert_eq!(
        (fault.node, fault.kind.as_str(), fault.round),
        (1, "kill", 2)
    );
    assert_eq!(fault.phase.as_deref(), Some("exchange"));
}

#[tokio::test]
async fn a_daemon_that_the_user_ends_has_not_finished() {
    let dir = tempfile::tempdir().unwrap();
    let (_, mut swarm) = swarm(&dir, WAIT, &two());
    let member = &mut swarm.members[0];
    member.progress.rounds = 600;
    for (rounds, interrupted, status) in [
        (228, true, "interrupted"),
        (600, true, "finished"),
        (228, false, "finished"),
    ] {
        member.report = Some(NodeReport {
            rounds,
            ..NodeReport::default()
        });
        member.state = member.left(interrupted);
        assert_eq!(NodeEntry::of(member).status, status, "{rounds}");
    }
}

#[tokio::test]
async fn a_message_names_daemons_by_their_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let (_, mut swarm) = swarm(&dir, WAIT, &two());
    swarm.members[1].peer = Some(format!("0fa50878{}", "b".repeat(56)));
    let said = |text: &str| swarm.with_numbers(text);
    assert_eq!(said("daemon 0fa50878 lies: x"), "daemon 1 lies: x");
    assert_eq!(said("0fa50878 and 12345678"), "daemon 1 and 12345678");
}

#[tokio::test]
async fn a_late_daemon_starts_when_the_others_are_there_and_counts() {
    let dir = tempfile::tempdir().unwrap();
    let script = format!("{LISTENING}{}{WAIT}", progress(6, 0.96));
    let lates = vec!["1@round:5".parse().unwrap()];
    let options = LocalOptions { lates, ..two() };
    let (plan, mut swarm) = swarm(&dir, &script, &options);
    let end = swarm.run(accuracy(0.95), None).await.unwrap();
    let report = LocalReport::new(&plan, &options, &swarm, end);
    assert_eq!(end, End::Reached);
    assert_eq!(report.nodes[1].status, "finished");
    assert_eq!(
        (report.faults[0].kind.as_str(), report.faults[0].round),
        ("late", 5)
    );
}

#[tokio::test]
async fn rounds_that_run_out_below_the_target_are_a_miss() {
    let dir = tempfile::tempdir().unwrap();
    let finished = progress(6, 0.5).replace("\"phase\":\"\"", "\"phase\":\"finished\"");
    let script = format!("{LISTENING}{finished}{WAIT}");
    let options = LocalOptions {
        goal: Goal {
            until_accuracy: Some(0.99),
            until_loss: None,
        },
        ..two()
    };
    let (plan, mut swarm) = swarm(&dir, &script, &options);
    let end = swarm.run(accuracy(0.99), None).await.unwrap();
    assert_eq!(end, End::RoundsDone);
    let line = LocalReport::new(&plan, &options, &swarm, end)
        .missed()
        .unwrap();
    assert_begins(
        &line,
        "--until-accuracy: daemon 0 ended at 0.9600 after 7 rounds",
    );
}

#[tokio::test]
async fn a_swarm_ends_at_a_loss_too_or_misses_it() {
    for (target, end_is, line) in [
        (0.1, End::Reached, None),
        (
            0.05,
            End::RoundsDone,
            Some("--until-loss: daemon 0 ended at 0.1000 after 7 rounds, above 0.05"),
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let finished = progress(6, 0.5).replace("\"phase\":\"\"", "\"phase\":\"finished\"");
        let script = format!("{LISTENING}{finished}{WAIT}");
        let options = LocalOptions {
            goal: Goal {
                until_accuracy: None,
                until_loss: Some(target),
            },
            ..two()
        };
        let (plan, mut swarm) = swarm(&dir, &script, &options);
        let end = swarm
            .run(
                crate::goal::Target {
                    accuracy: None,
                    loss: Some(target),
                },
                None,
            )
            .await
            .unwrap();
        assert_eq!(end, end_is);
        let report = LocalReport::new(&plan, &options, &swarm, end);
        assert_eq!(report.reached, Some(line.is_none()));
        let missed = report.missed();
        assert_eq!(missed.is_some(), line.is_some());
        assert!(
            missed
                .unwrap_or_default()
                .starts_with(line.unwrap_or_default())
        );
    }
}

#[tokio::test]
async fn daemons_killed_again_and_again_come_back_until_one_is_done() {
    let dir = tempfile::tempdir().unwrap();
    // A daemon completes all rounds only after its restart.
    let done = progress(9, 0.96).replace("\"phase\":\"\"", "\"phase\":\"finished\"");
    let script = format!(
        "{LISTENING}if mkdir \"$3.lived\" 2>/dev/null; then\n{}exec sleep 60\nfi\n{done}{WAIT}",
        progress(6, 0.5)
    );
    let options = LocalOptions {
        kill_every: Some("500ms".parse().unwrap()),
        rounds: Some(9),
        nodes: 1,
        ..LocalOptions::default()
    };
    let (plan, mut swarm) = swarm(&dir, &script, &options);
    let end = swarm.run(Target::default(), None).await.unwrap();
    assert_eq!(end, End::RoundsDone);
    let report = LocalReport::new(&plan, &options, &swarm, end);
    assert_eq!(report.nodes[0].status, "finished");
    let [kill] = &report.faults[..] else {
        panic!("one kill: {:?}", report.faults);
    };
    assert_eq!((kill.node, kill.kind.as_str(), kill.round), (0, "kill", 6));
    assert!(kill.at_s.is_some() && kill.peak_rss_bytes.is_some());
    assert_eq!(swarm.members[0].life, 1);
}

/// A liar that was cut off does not come back, and the kills do not wait for it.
#[tokio::test]
async fn kills_go_on_after_a_liar_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let done = progress(9, 0.96).replace("\"phase\":\"\"", "\"phase\":\"finished\"");
    let ends = "case \"$3\" in *node-1*) trap - INT; exit 1;; esac\n";
    let script = format!(
        "{LISTENING}{ends}if mkdir \"$3.lived\" 2>/dev/null; then\n{}exec sleep 60\nfi\n{done}{WAIT}",
        progress(6, 0.5)
    );
    let options = LocalOptions {
        kill_every: Some("500ms".parse().unwrap()),
        rounds: Some(9),
        liars: vec!["1@random".parse().unwrap()],
        ..two()
    };
    let (plan, mut swarm) = swarm(&dir, &script, &options);
    let end = swarm.run(Target::default(), None).await.unwrap();
    assert_eq!(end, End::RoundsDone);
    let report = LocalReport::new(&plan, &options, &swarm, end);
    assert_eq!(report.nodes[1].status, "gone");
    let kills: Vec<usize> = report.faults.iter().map(|fault| fault.node).collect();
    assert_eq!(kills, [0]);
}

/// The others cut a liar off, and it ends with an error.
#[tokio::test]
async fn a_liar_that_ends_does_not_end_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let options = LocalOptions {
        liars: vec!["1@random".parse().unwrap()],
        ..two()
    };
    // The other one goes on when the liar is about to end, and no signal makes the liar polite.
    let ends = "case \"$3\" in *node-1*) trap - INT; : > \"$3.gone\"; exit 1;; esac\n\
                until [ -e \"${3%node-0*}node-1/node.toml.gone\" ]; do sleep 0.01; done\n";
    let script = format!("{LISTENING}{ends}{}{WAIT}", progress(6, 0.96));
    let (plan, mut swarm) = swarm(&dir, &script, &options);
    let end = swarm.run(accuracy(0.95), None).await.unwrap();
    assert_eq!(end, End::Reached);
    let report = LocalReport::new(&plan, &options, &swarm, end);
    assert_eq!(report.nodes[1].status, "gone");
    assert_eq!(report.nodes[1].lies, ["random"]);
    assert_eq!(report.total.inner_steps, 70);
}
