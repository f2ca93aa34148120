//! A daemon's directory from which files are lost, and one that was copied: the daemon says so, and neither
//! overwrites what is left nor trains on in silence.

use murmurate_node::progress::Line;
use murmurate_tests::{Daemon, Settings, quiet_turn, status, turn, wait_until};
use serde_json::Value;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a wait may take on a busy machine.
const WAIT: Duration = Duration::from_secs(60);

fn settings(rounds: u64) -> Settings {
    Settings {
        rounds,
        inner_steps: Some(4),
        ..Settings::default()
    }
}

/// The directory with the files of the checkpoint.
fn files(home: &Path) -> PathBuf {
    let entries = std::fs::read_dir(home).unwrap();
    let names = entries.map(|entry| entry.unwrap().path());
    let mut found = names.filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("checkpoint-")
    });
    found.next().expect("a checkpoint")
}

fn kinds(status: &Value) -> Vec<&str> {
    let troubles = status["troubles"].as_array().unwrap();
    troubles
        .iter()
        .filter_map(|it| it["kind"].as_str())
        .collect()
}

#[test]
fn files_of_a_checkpoint_without_their_manifest_are_refused_and_kept() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("a");
    Daemon::start(&turn, &settings(3), &home, &[])
        .end()
        .polite();
    let manifest = home.join("checkpoint.json");
    std::fs::remove_file(&manifest).unwrap();
    let ended = Daemon::start(&turn, &settings(6), &home, &[]).end();
    let line = ended.failed();
    assert!(line.contains("but no checkpoint.json"), "{line}");
    let copy = files(&home).join("checkpoint.json");
    assert!(files(&home).join("mix.safetensors").exists());
    // As the line says.
    std::fs::copy(copy, &manifest).unwrap();
    let ended = Daemon::start(&turn, &settings(6), &home, &[]).end();
    let resumes = |note: &String| note.contains("resuming from the checkpoint of round 3");
    assert!(ended.notes.iter().any(resumes), "{ended:?}");
    assert_eq!(ended.polite().rounds, 6);
}

#[test]
fn a_daemon_whose_key_is_gone_says_that_it_is_another_one() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("a");
    let mut first = Daemon::start(&turn, &settings(3), &home, &[]);
    let (before, ..) = first.listening();
    first.end().polite();
    std::fs::remove_file(home.join("identity.key")).unwrap();
    let endless = Settings {
        save_every_s: 600.0,
        ..settings(3)
    };
    let endless = Settings {
        stay: true,
        ..endless
    };
    let mut second = Daemon::start(&turn, &endless, &home, &[]);
    let note = second.notes("no identity.key");
    let (now, _, http) = second.listening();
    assert_ne!(now, before);
    assert!(note.contains("put the old identity.key back"), "{note}");
    let shown = status(&http);
    assert!(kinds(&shown).contains(&"altered"), "{}", shown["troubles"]);
    second.interrupt().polite();
}

/// Copies a daemon's directory while the daemon runs, as a backup or an image of a machine does.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        // The daemon may replace a file meanwhile.
        if path.is_file() {
            let _ = std::fs::copy(&path, to.join(path.file_name().unwrap()));
        }
    }
    // Its files of checkpoints are no part of this copy, so it begins afresh.
    let _ = std::fs::remove_file(to.join("checkpoint.json"));
}

/// The others take the two for one, so either is cut off by the other, again and again.
#[test]
fn of_two_daemons_with_one_identity_both_say_so_and_one_stops() {
    let turn = quiet_turn();
    let dir = tempfile::tempdir().unwrap();
    let home = |name: &str| dir.path().join(name);
    let run = Settings {
        start_with: 2,
        ..settings(0)
    };
    let mut old = Daemon::start(&turn, &run, &home("old"), &[]);
    let (peer, address, http) = old.listening();
    let other = Daemon::start(&turn, &run.shard(1), &home("other"), &[&address]);
    // A peer that dials again soon is taken for one that dialled at the same time as the other end.
    let met_s = old.reaches(3).wall_s;
    let mut old_round = old.wait_for("some seconds with the other", |line| match line {
        Line::Progress(progress) if progress.wall_s > met_s + 3.0 => Some(progress.round),
        _ => None,
    });
    wait_until("the others in its file", WAIT, || {
        let known = std::fs::read_to_string(home("old").join("peers.json"));
        known.is_ok_and(|text| text.contains("/udp/")).then_some(())
    });
    copy(&home("old"), &home("copy"));
    let mut twin = Daemon::start(&turn, &run, &home("copy"), &[]);
    let (twin_peer, _, twin_http) = twin.listening();
    assert_eq!(twin_peer, peer);
    for (daemon, http) in [(&mut old, &http), (&mut twin, &twin_http)] {
        daemon.notes("This identity runs elsewhere");
        let shown = status(http);
        assert_eq!(shown["state"], "elsewhere", "{}", shown["troubles"]);
    }
    // The one that is younger by its own patience, which is drawn.
    let stopped = wait_until("one of them stops", WAIT, || {
        let all = [&http, &twin_http];
        all.into_iter()
            .position(|at| TcpStream::connect(at).is_err())
    });
    let (stops, stays, http) = match stopped {
        0 => (old, twin, twin_http),
        _ => (twin, old, http),
    };
    let ended = stops.end();
    let line = ended.failed_with(6);
    assert!(line.starts_with("this identity runs elsewhere"), "{line}");
    // The one that stays is in rounds with the other one.
    old_round += 3;
    wait_until("rounds of two", WAIT, || {
        let shown = status(&http);
        let two = shown["group"]["members"].as_array().map(Vec::len) == Some(2);
        (two && shown["round"].as_u64() > Some(old_round)).then_some(())
    });
    drop((stays, other));
}
