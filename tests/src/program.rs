//! Finds the command and the example in the profile of the running tests. Builds them if they are
//! missing or older than the source.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// Path of the `murmurate` command.
pub fn program() -> PathBuf {
    built().join(format!("murmurate{}", std::env::consts::EXE_SUFFIX))
}

/// Path of the example with this name.
pub fn example(name: &str) -> PathBuf {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    built().join("examples").join(file)
}

/// The profile's directory, with all programs that tests run. `cargo test --workspace` builds them
/// before the tests start, `cargo test -p murmurate-tests` does not.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let profile = profile_directory();
        let suffix = std::env::consts::EXE_SUFFIX;
        let programs = [
            profile.join(format!("murmurate{suffix}")),
            profile.join("examples").join(format!("own_task{suffix}")),
        ];
        let source = newest_source();
        let fresh = |path: &PathBuf| modified(path).is_some_and(|built| built >= source);
        if !programs.iter().all(fresh) {
            build(&profile);
        }
        profile
    })
}

/// For `target/debug/deps/e2e-0123` this is `target/debug`.
fn profile_directory() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent);
    profile.expect("a test lies in a profile's deps").to_owned()
}

fn build(profile: &Path) {
    let name = match profile.file_name().and_then(|n| n.to_str()) {
        None | Some("debug") => "dev",
        Some(name) => name,
    };
    let target = profile
        .parent()
        .expect("a profile lies in a target directory");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        // The whole workspace, because its dependencies are already built with the features of the
        // whole workspace.
        .args(["build", "--quiet", "--workspace"])
        .args([
            "--bin",
            "murmurate",
            "--example",
            "own_task",
            "--profile",
            name,
        ])
        .arg("--target-dir")
        .arg(target)
        .current_dir(workspace())
        .status()
        .unwrap();
    assert!(status.success(), "the command could not be built");
}

/// The root of the workspace.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// When a source file of the command changed last.
fn newest_source() -> SystemTime {
    let root = workspace();
    let mut newest = modified(&root.join("Cargo.lock")).unwrap();
    let crates = [
        "protocol",
        "strategies",
        "tasks",
        "attach",
        "sim",
        "survey",
        "net",
        "node",
        "top",
        "bench",
        "command",
    ];
    let mut waiting: Vec<PathBuf> = crates
        .iter()
        .flat_map(|name| ["src", "examples"].map(|part| root.join(name).join(part)))
        .collect();
    while let Some(dir) = waiting.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                newest = newest.max(modified(&path).unwrap());
            }
        }
    }
    newest
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|m| m.modified()).ok()
}
