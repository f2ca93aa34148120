//! Where the workspace is and which files git tracks in it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize()
        .expect("the package is in the workspace")
}

/// The Rust files under these directories, as `files_ending_in`.
pub(crate) fn rust_files(directories: &[&str]) -> Vec<String> {
    files_ending_in(directories, &[".rs"])
}

/// The files with one of these endings that git tracks under the directories or would add,
/// relative to the root, sorted.
///
/// A file that is not added yet counts, so that a rule fails before the commit.
pub(crate) fn files_ending_in(directories: &[&str], endings: &[&str]) -> Vec<String> {
    let output = Command::new("git")
        .current_dir(root())
        .args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "--",
        ])
        .args(directories)
        .output()
        .expect("git runs: these tests need it");
    assert!(
        output.status.success(),
        "git ls-files failed, run the tests in a git checkout: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let listed = String::from_utf8(output.stdout).expect("paths here are UTF-8");
    let mut files: Vec<String> = listed
        .lines()
        .filter(|path| endings.iter().any(|ending| path.ends_with(ending)))
        .filter(|path| root().join(path).is_file())
        .map(str::to_owned)
        .collect();
    files.sort();
    files.dedup();
    files
}

/// The text of a file of the workspace.
pub(crate) fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path))
        .unwrap_or_else(|error| panic!("{path} cannot be read: {error}"))
}
