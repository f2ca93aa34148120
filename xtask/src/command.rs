//! Runs other programs, and says where they are and why one failed. Their output goes to the terminal unchanged,
//! unless a step needs it.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The reason for which a step or a command failed.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// The same failure with the step or the program in front of it.
    pub(crate) fn within(self, place: &str) -> Self {
        Self(format!("{place}: {}", self.0))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

pub(crate) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().unwrap_or(root)
}

/// The directory of build results, which also holds what the steps write.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(given) => root().join(given),
        None => root().join("target"),
    }
}

/// The `murmurate` command in a profile's folder: `debug`, which tests build and start, or `release`.
pub(crate) fn murmurate(folder: &str) -> PathBuf {
    target().join(folder).join("murmurate")
}

/// Runs a program and fails if it fails.
pub(crate) fn run(program: impl AsRef<OsStr>, arguments: &[&str]) -> Result<(), Failure> {
    run_with(program, arguments, &[])
}

/// Runs a program with these environment variables added.
pub(crate) fn run_with(
    program: impl AsRef<OsStr>,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Result<(), Failure> {
    let mut command = command(program.as_ref(), arguments);
    command.envs(environment.iter().copied());
    let status = command.status();
    let shown = shown(program.as_ref(), arguments);
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::new(format!("`{shown}` ended with {status}"))),
        Err(error) => Err(Failure::new(format!("`{shown}` did not start: {error}"))),
    }
}

/// Runs a program and returns its standard output. Its messages still show.
pub(crate) fn output(program: impl AsRef<OsStr>, arguments: &[&str]) -> Result<String, Failure> {
    let mut command = command(program.as_ref(), arguments);
    let output = command.stderr(Stdio::inherit()).output();
    let shown = shown(program.as_ref(), arguments);
    let output =
        output.map_err(|error| Failure::new(format!("`{shown}` did not start: {error}")))?;
    text_of(&shown, output)
}

/// What a program printed before it ended well.
fn text_of(shown: &str, output: Output) -> Result<String, Failure> {
    if !output.status.success() {
        let status = output.status;
        return Err(Failure::new(format!("`{shown}` ended with {status}")));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| Failure::new(format!("`{shown}` printed something else than UTF-8")))
}

/// An empty folder, whatever was there.
pub(crate) fn fresh(folder: &Path) -> Result<(), Failure> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(fs::create_dir_all(folder)?)
}

/// Builds the command `murmurate` as `cargo test --workspace` does. `cargo build` would compile most of it once
/// more, because tests ask for more features of its dependencies.
pub(crate) fn built_by_tests() -> Result<(), Failure> {
    let tests = ["test", "--workspace", "--test", "all", "--no-run"];
    run("cargo", &tests)
}

/// Runs a program that reads `input`, and returns its standard output.
pub(crate) fn feed(program: &str, arguments: &[&str], input: &str) -> Result<String, Failure> {
    let shown = shown(program.as_ref(), arguments);
    let mut command = command(program.as_ref(), arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let failed = |why: String| Failure::new(format!("`{shown}` {why}"));
    let mut child = command
        .spawn()
        .map_err(|error| failed(format!("did not start: {error}")))?;
    let mut stdin = child
        .stdin
        .take()
        .ok_or_else(|| failed("reads nothing".to_owned()))?;
    // Written beside the reading: a program that answers line by line would wait for its reader.
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input.as_bytes()));
        child.wait_with_output()
    })?;
    text_of(&shown, output)
}

/// True if a program starts and succeeds. Its output is discarded.
pub(crate) fn succeeds(program: impl AsRef<OsStr>, arguments: &[&str]) -> bool {
    let mut command = command(program.as_ref(), arguments);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// The machine that rustc builds for.
pub(crate) fn host() -> Result<String, Failure> {
    let text = output("rustc", &["-vV"])?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| Failure::new("`rustc -vV` names no host"))
}

/// A command without standard input, because a step must not wait for a keyboard. It is not told of this
/// package: build scripts that watch these variables, such as ring's, would run again whenever `cargo xtask`
/// and cargo alternate.
fn command(program: &OsStr, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if of_a_package(&name.to_string_lossy()) {
            command.env_remove(name);
        }
    }
    command
}

/// A variable by which `cargo run` says which package runs.
fn of_a_package(name: &str) -> bool {
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

fn shown(program: &OsStr, arguments: &[&str]) -> String {
    let mut text = program.to_string_lossy().into_owned();
    for argument in arguments {
        text.push(' ');
        text.push_str(argument);
    }
    text
}

/// A program that an item needs, or the package to install.
pub(crate) fn needs(program: &str, package: &str) -> Result<(), Failure> {
    match Command::new(program).arg("--version").output() {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::new(format!(
            "{program} is not here: install {package}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_not_told_of_this_package() {
        // Cargo tells the tests of it too.
        assert!(std::env::vars().any(|(name, _)| of_a_package(&name)));
        let seen = output("env", &[]).unwrap();
        let told = seen.lines().find(|line| of_a_package(line));
        assert_eq!(told, None);
    }
}
