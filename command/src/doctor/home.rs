//! The daemon's directory: whether it can be written, who can read its secrets, and what its files say
//! about the clock and the version.

use super::finding::{Code, Finding};
use super::subject::Subject;
use murmurate_node::store::Checkpoint;
use rustix::fs::{Access, access};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Files that only the daemon's user may read.
pub(super) const SECRETS: [&str; 4] = ["identity.key", "membership.toml", "run.key", "http-token"];

/// Files that a daemon writes while it runs.
const WRITTEN: [&str; 3] = ["checkpoint.json", "events.jsonl", "peers.json"];

/// Seconds by which a file's time may be ahead of the clock.
const AHEAD_MAX_S: u64 = 120;

pub(super) fn directory(subject: &Subject) -> Finding {
    let shown = subject.dir.display();
    if subject.runs {
        return Finding::ok("directory", format!("a daemon runs in {shown}"));
    }
    let failed = |path: &Path, why: &str| {
        let user = "the user that runs the daemon";
        Finding::failed(
            "directory",
            Code::Directory,
            format!("{shown} cannot be used"),
        )
        .because(format!("{} {why}", path.display()))
        .fix(format!(
            "make it writable for {user}, or set `daemon.dir` (--dir)"
        ))
    };
    let mut there = subject.dir.as_path();
    while !there.exists() {
        there = match there.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
    }
    if !there.is_dir() {
        return failed(there, "is a file");
    }
    if access(there, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        return failed(there, "cannot be written");
    }
    let text = if there == subject.dir {
        format!("{shown} can be written")
    } else {
        format!("{shown} does not exist yet and can be made")
    };
    Finding::ok("directory", text)
}

pub(super) fn secrets(subject: &Subject) -> Option<Finding> {
    use std::os::unix::fs::PermissionsExt;
    let open = |path: &PathBuf| {
        let metadata = path.metadata();
        metadata.is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
    };
    let files = SECRETS.iter().map(|name| subject.dir.join(name));
    let readable: Vec<String> = files
        .filter(open)
        .map(|path| path.display().to_string())
        .collect();
    if readable.is_empty() {
        return None;
    }
    let all = readable.join(" ");
    let text = format!("other users of this machine can read {all}");
    let finding = Finding::failed("secrets", Code::Permissions, text);
    Some(finding.fix(format!("chmod 600 {all}")))
}

/// Checks that the daemon that runs is of this version.
pub(super) fn version(subject: &Subject) -> Finding {
    let ours = env!("CARGO_PKG_VERSION");
    let status = subject.status();
    let theirs = status["version"].as_str();
    match theirs.filter(|theirs| *theirs != ours) {
        None => Finding::ok("version", format!("murmurate {ours}")),
        Some(theirs) => {
            let text = format!("the running daemon is murmurate {theirs}, this is {ours}");
            Finding::warning("version", Code::Version, text)
                .because("the program was replaced while the daemon ran")
                .fix("restart the daemon; all daemons of a run need the same version")
        }
    }
}

/// Checks that a start can go on from the checkpoint, which is read as the start reads it; nothing while a daemon runs.
pub(super) fn checkpoint(subject: &Subject) -> Option<Finding> {
    let round = |found: Checkpoint| found.verify().map(|()| Some(found.manifest().round));
    let whole = || Checkpoint::open(&subject.dir)?.map_or(Ok(None), round);
    (!subject.runs).then(|| match whole() {
        Ok(Some(round)) => Finding::ok("checkpoint", format!("that of round {round} is whole")),
        Ok(None) => Finding::ok(
            "checkpoint",
            "none yet: it begins with the others' model, or afresh",
        ),
        Err(error) => Finding::failed("checkpoint", Code::Checkpoint, error.to_string())
            .fix("restore its files, or start in a new directory: it takes over the others' model"),
    })
}

/// Checks that no file of the daemon is from the future.
pub(super) fn clock(subject: &Subject) -> Finding {
    let now = SystemTime::now();
    let ahead = |name: &str| {
        let modified = subject.dir.join(name).metadata().ok()?.modified().ok()?;
        Some(modified.duration_since(now).ok()?.as_secs())
    };
    let most = WRITTEN.iter().filter_map(|name| ahead(name)).max();
    match most.filter(|ahead| *ahead > AHEAD_MAX_S) {
        None => Finding::ok("clock", "no file of the daemon is from the future"),
        Some(ahead) => Finding::warning(
            "clock",
            Code::Clock,
            format!("a file of the daemon is {ahead} s in the future"),
        )
        .because("the clock of this machine is behind, or was ahead when the file was written")
        .fix("set the clock by NTP: timedatectl set-ntp true"),
    }
}
