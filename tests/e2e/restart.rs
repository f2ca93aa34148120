//! A swarm whose daemons all die at once and start again.

use murmurate_tests::{Daemon, Settings, Turn, status, turn, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a wait may take on a busy machine.
const WAIT: Duration = Duration::from_secs(60);

/// The preset of `Settings`.
const PLAIN: &str = "diloco";

/// Seconds between checkpoints, daemon by daemon: their checkpoints have different ages.
const SAVE_EVERY_S: [f64; 4] = [6.0, 0.4, 3.0, 1.5];

fn settings(preset: &str, index: usize, start_with: u32) -> Settings {
    Settings {
        preset: preset.to_owned(),
        inner_steps: Some(24),
        save_every_s: SAVE_EVERY_S[index],
        start_with,
        index: index as u32,
        ..Settings::default()
    }
}

fn home(dir: &Path, index: usize) -> PathBuf {
    dir.join(format!("node-{index}"))
}

fn saved_round(dir: &Path, index: usize) -> u64 {
    let text = std::fs::read_to_string(home(dir, index).join("checkpoint.json"));
    let manifest: Value = serde_json::from_str(&text.unwrap_or_default()).unwrap_or_default();
    manifest["round"].as_u64().unwrap_or(0)
}

/// Trains four daemons until each knows the others and has a checkpoint, and kills all at once.
/// Returns the rounds of their checkpoints.
fn train_and_kill(turn: &Turn, preset: &str, dir: &Path) -> Vec<u64> {
    let mut daemons = Vec::new();
    let mut join = None;
    let mut peers = Vec::new();
    for index in 0..4 {
        let known: Vec<&str> = join.as_deref().into_iter().collect();
        let mut daemon =
            Daemon::start(turn, &settings(preset, index, 4), &home(dir, index), &known);
        let (peer, address, _) = daemon.listening();
        join.get_or_insert(address);
        peers.push(peer);
        daemons.push(daemon);
    }
    wait_until("checkpoints and addresses of all", WAIT, || {
        let knows = |index: usize| {
            let text = std::fs::read_to_string(home(dir, index).join("peers.json"));
            let text = text.unwrap_or_default();
            peers.iter().filter(|peer| text.contains(*peer)).count() == 3
        };
        let ready = |index: usize| saved_round(dir, index) >= 1 && knows(index);
        (0..4).all(ready).then_some(())
    });
    // The checkpoint of the second daemon is newer than the others'.
    let oldest = saved_round(dir, 0);
    wait_until("a newer checkpoint", WAIT, || {
        (saved_round(dir, 1) > oldest + 4).then_some(())
    });
    daemons
        .iter()
        .for_each(|daemon| daemon.signal(Signal::KILL));
    drop(daemons);
    (0..4).map(|index| saved_round(dir, index)).collect()
}

/// Starts daemons again without an address, and waits until they train together. Prints how long
/// that took from the last start on.
fn again(
    turn: &Turn,
    dir: &Path,
    (preset, start_with): (&str, u32),
    indices: &[usize],
    newest: u64,
) -> Vec<Daemon> {
    let start = |index: &usize| {
        let settings = settings(preset, *index, start_with);
        Daemon::start(turn, &settings, &home(dir, *index), &[])
    };
    let mut daemons: Vec<Daemon> = indices.iter().map(start).collect();
    let started = Instant::now();
    let https: Vec<String> = daemons
        .iter_mut()
        .map(|daemon| daemon.listening().2)
        .collect();
    let seen = || -> Vec<Value> { https.iter().map(|http| status(http)).collect() };
    let first = wait_until("a new round", WAIT, || {
        let new = |s: &Value| s["digest_round"].as_u64() > Some(newest);
        seen().iter().any(new).then(|| started.elapsed())
    });
    let all = wait_until("one group", WAIT, || {
        let together = |s: &Value| s["group"]["members"].as_array().map_or(0, Vec::len);
        let seen = seen();
        let same = seen.iter().all(|s| s["digest"] == seen[0]["digest"]);
        let whole = seen.iter().all(|s| together(s) == indices.len());
        (same && whole && seen[0]["digest"].is_string()).then(|| started.elapsed())
    });
    println!(
        "{} daemons after the last start: first new round {:.1} s, all in one group {:.1} s",
        indices.len(),
        first.as_secs_f64(),
        all.as_secs_f64()
    );
    daemons
}

/// All four come back, on ports that the system chose, without an address and without discovery. The
/// newest checkpoint counts, although the others started earlier.
#[test]
fn a_swarm_that_was_killed_finds_itself_and_its_newest_state() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let saved = train_and_kill(&turn, PLAIN, dir.path());
    let newest = *saved.iter().max().unwrap();
    assert!(saved.iter().any(|round| *round < newest), "{saved:?}");
    let daemons = again(&turn, dir.path(), (PLAIN, 4), &[0, 2, 3, 1], newest);
    for daemon in daemons {
        let ended = daemon.interrupt();
        let report = ended.polite();
        assert!(report.rounds > newest, "{report:?} after {saved:?}");
    }
}

/// One of four may lie, so a checkpoint counts only if others remember its round.
#[test]
fn a_killed_swarm_that_survives_a_liar_goes_on_from_what_its_members_confirm() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let saved = train_and_kill(&turn, "guarded", dir.path());
    // The newest one may be of a round that no other had begun.
    let known = *saved.iter().max().unwrap() - 1;
    two_of_four_say_whom_they_lack(&turn, dir.path());
    let daemons = again(&turn, dir.path(), ("guarded", 4), &[0, 2, 3, 1], known);
    for daemon in daemons {
        let ended = daemon.interrupt();
        let report = ended.polite();
        assert!(report.rounds > known, "{report:?} after {saved:?}");
    }
    let remembered = std::fs::read_to_string(home(dir.path(), 0).join("openings"));
    let rounds = remembered.unwrap().lines().count() as u64;
    assert!(rounds > known, "{rounds} rounds of {known} and more");
}

/// Two that may begin, but are too few for a result as long as the other two count.
fn two_of_four_say_whom_they_lack(turn: &Turn, dir: &Path) {
    let start = |index: usize| {
        // How long they wait for all four.
        let start_wait_s = 3.0;
        let settings = Settings {
            start_wait_s,
            ..settings("guarded", index, 2)
        };
        Daemon::start(turn, &settings, &home(dir, index), &[])
    };
    let mut daemons = [0, 2].map(start);
    let https = daemons.each_mut().map(|daemon| daemon.listening().2);
    for http in &https {
        wait_until("a daemon that says whom it lacks", WAIT, || {
            let troubles = status(http)["troubles"].to_string();
            let said = troubles.contains("2 of 4 are here, and a result needs 3")
                && troubles.contains("Start daemon ");
            said.then_some(())
        });
    }
    for daemon in daemons {
        daemon.interrupt();
    }
}

/// One machine is lost. The others wait a moment for it, and most of a run may go on.
#[test]
fn most_of_a_killed_swarm_goes_on_without_the_rest() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let saved = train_and_kill(&turn, PLAIN, dir.path());
    let newest = saved[1..].iter().copied().max().unwrap();
    for daemon in again(&turn, dir.path(), (PLAIN, 1), &[2, 3, 1], newest) {
        daemon.interrupt().polite();
    }
}
