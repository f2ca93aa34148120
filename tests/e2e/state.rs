//! A daemon's directory from which files are lost: the daemon says so, and neither overwrites what is left nor
//! trains on in silence.

use murmurate_tests::{Daemon, Settings, status, turn};
use serde_json::Value;
use std::path::{Path, PathBuf};

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
