//! The Python package: NumPy in an environment of its own below the target directory, the package's tests, with
//! MLflow, Weights & Biases and what builds a wheel where they can be installed, and mypy on the package, its
//! examples and benchmarks. The end-to-end tests of `tests/e2e/attach.rs` and `tracking.rs` use the same environment.

use crate::command::{Failure, root, run, run_with, succeeds, target};
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
    )?;
    check_types(&python)
}

/// Pinned, because a newer one may find more. Frameworks need not be installed: what comes from them has any type.
const MYPY: &str = "mypy==2.4.1";

fn check_types(python: &Path) -> Result<(), Failure> {
    if !add(python, "mypy", &[MYPY]) {
        println!("skipped: types are not checked without mypy");
        return Ok(());
    }
    let home = root().join("python");
    let path = |name: &str| home.join(name).to_string_lossy().into_owned();
    let cache = target().join("tools").join("mypy");
    let settings = [
        format!("--config-file={}", path("pyproject.toml")),
        format!("--cache-dir={}", cache.display()),
    ];
    let checked = ["murmurate", "examples", "bench", "hatch_build.py"].map(path);
    let arguments = settings.iter().chain(&checked).map(String::as_str);
    let mypy: Vec<&str> = ["-m", "mypy"].into_iter().chain(arguments).collect();
    run(python, &mypy)
}

/// Installs packages that a part of the tests needs. Whether `modules` can be imported then.
fn add(python: &Path, modules: &str, packages: &[&str]) -> bool {
    let install = ["-m", "pip", "install", "--quiet", "--require-virtualenv"];
    let there = succeeds(python, &["-c", &format!("import {modules}")])
        || run(python, &[&install[..], packages].concat()).is_ok();
    if !there {
        println!("{} cannot be installed", packages.join(" and "));
    }
    there
}

/// Packages that `murmurate.track` logs to, and those that build a wheel. Their tests are skipped without them.
fn add_all(python: &Path) {
    add(python, "mlflow, wandb", &["mlflow-skinny", "wandb"]);
    let builders = ["hatchling>=1.27,<2", "pyelftools>=0.30"];
    add(python, "hatchling, elftools", &builders);
}

/// A Python that can import NumPy; installs it if need be.
fn installed() -> Option<PathBuf> {
    let home = target().join("tools").join("python");
    let python = home.join("bin").join("python");
    let can = ["-c", "import numpy"];
    if succeeds(&python, &can) {
        add_all(&python);
        return Some(python);
    }
    let made = run("python3", &["-m", "venv", &home.to_string_lossy()]).is_ok();
    let pip = ["-m", "pip", "install", "--quiet", "numpy>=1.22"];
    if made && run(&python, &pip).is_ok() && succeeds(&python, &can) {
        add_all(&python);
        return Some(python);
    }
    succeeds("python3", &can).then(|| PathBuf::from("python3"))
}
