//! A full disk, and damaged or foreign checkpoints: the daemon overwrites and loses nothing.

use murmurate_tests::assert_has;
use murmurate_tests::{Daemon, Settings, Turn, program, turn};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every file of a checkpoint below `dir` with its bytes.
fn checkpoint(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let other = ["lock", "http.addr", "http-token", "peers.json"].contains(&name.as_str());
        // Nothing reads the copy of the manifest beside the files, as long as there is a manifest.
        let copy = name == "checkpoint.json" && dir.join("mix.safetensors").exists();
        // The event log skips what is damaged in it, and every start adds to it.
        let log = name.starts_with("events");
        if path.is_dir() {
            files.extend(checkpoint(&path));
        } else if !other && !copy && !log {
            files.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    files
}

/// A daemon's directory with the checkpoint of a few rounds.
fn saved(turn: &Turn, dir: &Path) -> PathBuf {
    let home = dir.join("a");
    let settings = Settings {
        rounds: 3,
        ..Settings::default()
    };
    Daemon::start(turn, &settings, &home, &[]).end().polite();
    assert!(
        checkpoint(&home).len() >= 4,
        "identity, manifest, one file a lane"
    );
    home
}

#[test]
fn a_corrupt_checkpoint_is_named_and_left_alone() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let home = saved(&turn, dir.path());
    let settings = Settings {
        rounds: 3,
        ..Settings::default()
    };
    let files = checkpoint(&home);
    for (path, bytes) in files
        .iter()
        .filter(|(path, _)| !path.ends_with("identity.key"))
    {
        let mut flipped = bytes.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 1;
        std::fs::write(path, &flipped).unwrap();
        let before = checkpoint(&home);
        let ended = Daemon::start(&turn, &settings, &home, &[]).end();
        let line = ended.failed();
        assert!(line.contains(" is damaged ("), "{path:?}: {line}");
        assert!(line.contains("away to start afresh"), "{line}");
        assert_eq!(checkpoint(&home), before, "{path:?}");
        std::fs::write(path, bytes).unwrap();
    }
    // With its original bytes it is accepted again.
    Daemon::start(&turn, &settings, &home, &[]).end().polite();
}

#[test]
fn a_foreign_checkpoint_is_named_and_left_alone() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let home = saved(&turn, dir.path());
    let before = checkpoint(&home);
    let usual = Settings {
        rounds: 3,
        ..Settings::default()
    };
    let cases = [
        (
            "run",
            Settings {
                name: "another".to_owned(),
                ..usual.clone()
            },
        ),
        (
            "model",
            Settings {
                task: "hidden = 64".to_owned(),
                ..usual.clone()
            },
        ),
        (
            "plan",
            Settings {
                preset: "local-sgd".to_owned(),
                ..usual
            },
        ),
    ];
    for (what, settings) in cases {
        let ended = Daemon::start(&turn, &settings, &home, &[]).end();
        let line = ended.failed();
        assert_has(line, &format!("belongs to another {what} ("));
        assert!(line.contains("give another --dir"), "{line}");
        assert_eq!(checkpoint(&home), before, "{what}");
    }
}

/// A limit on the size of files stands for a full disk, which a test cannot create without root.
#[test]
fn a_disk_that_takes_no_more_leaves_the_last_checkpoint_intact() {
    let turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("a");
    let settings = Settings {
        save_every_s: 0.2,
        ..Settings::default()
    };
    let mut first = Daemon::start(&turn, &settings, &home, &[]);
    first.reaches(3);
    first.interrupt().polite();
    let before = checkpoint(&home);

    let mut command = Command::new("sh");
    // The limit's signal would end the process. Ignored, the write fails instead. 16 blocks are 8 or 16 KiB.
    command
        .args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$@\"", "sh"])
        .arg(program())
        .arg("run")
        .arg("--config")
        .arg(settings.write(&home));
    let mut daemon = Daemon::spawn(&turn, command);
    let note = daemon.notes("the checkpoint was not written");
    assert!(note.contains("mix.safetensors"), "{note}");
    // Training continues without a checkpoint.
    let round = daemon.reaches(0).round;
    daemon.reaches(round + 5);
    let ended = daemon.interrupt();
    let line = ended.failed();
    assert!(
        line.contains("the training since the last checkpoint is lost"),
        "{line}"
    );
    assert_eq!(checkpoint(&home), before);
    // Without the limit the daemon resumes from the intact checkpoint.
    let mut again = Daemon::start(&turn, &settings, &home, &[]);
    again.notes("resuming from the checkpoint of round");
    again.reaches(4);
    again.interrupt().polite();
}
