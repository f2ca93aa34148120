//! The Python package: NumPy in an environment of its own below the target directory, and the package's
//! tests. The end-to-end tests of `tests/e2e/attach.rs` use the same environment.

use crate::command::{run, run_with, succeeds};
use crate::failure::Failure;
use crate::paths::{root, target};
use std::path::PathBuf;

pub(crate) fn check() -> Result<(), Failure> {
    let Some(python) = installed() else {
        println!("skipped: python3 with venv and NumPy is not here and cannot be installed");
        return Ok(());
    };
    let tests = root().join("python").join("tests");
    let tests = tests.to_string_lossy();
    let cache = target().join("tools").join("pycache");
    run_with(
        &python,
        &["-m", "unittest", "discover", &tests],
        &[("PYTHONPYCACHEPREFIX", &cache.to_string_lossy())],
    )
}

/// A Python that can import NumPy; installs it if need be.
fn installed() -> Option<PathBuf> {
    let home = target().join("tools").join("python");
    let python = home.join("bin").join("python");
    let can = ["-c", "import numpy"];
    if succeeds(&python, &can) {
        return Some(python);
    }
    let made = run("python3", &["-m", "venv", &home.to_string_lossy()]).is_ok();
    let pip = ["-m", "pip", "install", "--quiet", "numpy>=1.22"];
    if made && run(&python, &pip).is_ok() && succeeds(&python, &can) {
        return Some(python);
    }
    succeeds("python3", &can).then(|| PathBuf::from("python3"))
}
