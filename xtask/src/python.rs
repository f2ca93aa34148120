//! The Python package: NumPy in an environment of its own below the target directory, and the package's
//! tests, with MLflow and Weights & Biases where they can be installed. The end-to-end tests of
//! `tests/e2e/attach.rs` and `tracking.rs` use the same environment.

use crate::command::{run, run_with, succeeds};
use crate::failure::Failure;
use crate::paths::{root, target};
use std::path::{Path, PathBuf};

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

/// The clients that `murmurate.track` logs to. Their tests are skipped without them.
const TRACKERS: [&str; 2] = ["mlflow-skinny", "wandb"];

fn add_trackers(python: &Path) {
    if succeeds(python, &["-c", "import mlflow, wandb"]) {
        return;
    }
    let install = ["-m", "pip", "install", "--quiet"];
    if run(python, &[&install[..], &TRACKERS].concat()).is_err() {
        println!("{} cannot be installed", TRACKERS.join(" and "));
    }
}

/// A Python that can import NumPy; installs it if need be.
fn installed() -> Option<PathBuf> {
    let home = target().join("tools").join("python");
    let python = home.join("bin").join("python");
    let can = ["-c", "import numpy"];
    if succeeds(&python, &can) {
        add_trackers(&python);
        return Some(python);
    }
    let made = run("python3", &["-m", "venv", &home.to_string_lossy()]).is_ok();
    let pip = ["-m", "pip", "install", "--quiet", "numpy>=1.22"];
    if made && run(&python, &pip).is_ok() && succeeds(&python, &can) {
        add_trackers(&python);
        return Some(python);
    }
    succeeds("python3", &can).then(|| PathBuf::from("python3"))
}
