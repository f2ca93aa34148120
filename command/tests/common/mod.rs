//! Runs the command in a directory, for the tests beside this folder.

use std::path::Path;
use std::process::{Command, Output};

/// What the command wrote, and how it ended.
pub(crate) fn murmurate(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_murmurate"))
        .current_dir(dir)
        .args(args)
        .output()
        .unwrap()
}

/// The output of a command that succeeds.
pub(crate) fn success(dir: &Path, args: &[&str]) -> String {
    let output = murmurate(dir, args);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// The single line of a command that fails.
pub(crate) fn failure(dir: &Path, args: &[&str]) -> String {
    let output = murmurate(dir, args);
    assert!(!output.status.success(), "{args:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    let line = error.strip_prefix("error: ").unwrap().trim_end().to_owned();
    assert!(!line.contains('\n'), "{line}");
    line
}
