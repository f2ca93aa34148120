//! Fixes that a program can make: formatting, clippy's safe suggestions, generated files.

use crate::command::{run, run_with};
use crate::failure::Failure;

pub(crate) fn fix() -> Result<(), Failure> {
    let clippy = ["clippy", "--fix", "--allow-dirty", "--allow-staged"];
    run(
        "cargo",
        &[&clippy[..], &["--workspace", "--all-targets"]].concat(),
    )?;
    run("cargo", &["fmt", "--all"])?;
    // Tests compare the generated pages of docs/ with the code, and write the pages on request.
    // `facts` does not change measured speeds, which belong to one machine.
    run_with(
        "cargo",
        &[
            "test",
            "-p",
            "murmurate-protocol",
            "-p",
            "murmurate-strategies",
            "-p",
            "murmurate-node",
            "-p",
            "murmurate",
            "--tests",
        ],
        &[("UPDATE_DOCS", "facts")],
    )
}
