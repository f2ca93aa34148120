//! What a program can mend by itself: formatting, clippy's safe suggestions, generated files.

use crate::command::{run, run_with};
use crate::failure::Failure;

pub(crate) fn fix() -> Result<(), Failure> {
    let clippy = ["clippy", "--fix", "--allow-dirty", "--allow-staged"];
    run(
        "cargo",
        &[&clippy[..], &["--workspace", "--all-targets"]].concat(),
    )?;
    run("cargo", &["fmt", "--all"])?;
    // Tests hold the generated pages of docs/ against the code, and write them when asked to.
    // `facts` leaves measured speeds as they are: those are of one machine.
    run_with(
        "cargo",
        &[
            "test",
            "-p",
            "murmurate-protocol",
            "-p",
            "murmurate-strategies",
            "--tests",
        ],
        &[("UPDATE_DOCS", "facts")],
    )
}
