//! cargo-deny, which is installed into the target directory if there is none.

use crate::command::{run, run_with, succeeds};
use crate::failure::Failure;
use crate::paths::target;
use std::path::PathBuf;

/// The version that is installed.
const VERSION: &str = "0.20.2";

pub(crate) fn check() -> Result<(), Failure> {
    let deny = installed()?;
    // Two versions of a crate are a warning. The paths to each of them would fill the log.
    let check = ["check", "--hide-inclusion-graph"];
    run(
        &deny,
        &[&check[..], &["licenses", "bans", "sources"]].concat(),
    )?;
    // The database of advisories is a git repository on another host, which may not be reachable.
    if succeeds(&deny, &["fetch", "db"]) {
        run(&deny, &["check", "--disable-fetch", "advisories"])
    } else {
        println!("advisories: not checked, the database cannot be reached");
        Ok(())
    }
}

/// The path of cargo-deny in [`VERSION`].
fn installed() -> Result<PathBuf, Failure> {
    let root = target().join("tools");
    let deny = root.join("bin").join("cargo-deny");
    if !deny.exists() {
        let build = root.join("build");
        let (root, build) = (root.to_string_lossy(), build.to_string_lossy());
        let version = format!("={VERSION}");
        let what = ["install", "cargo-deny", "--locked", "--version", &version];
        // Its release profile is optimized for run time and takes three times as long to build; the
        // check takes seconds in either profile.
        let how = ["--debug", "--root", &root];
        run_with(
            "cargo",
            &[&what[..], &how[..]].concat(),
            &[
                ("CARGO_TARGET_DIR", &build),
                ("CARGO_PROFILE_DEV_DEBUG", "0"),
                ("CARGO_PROFILE_DEV_OPT_LEVEL", "1"),
            ],
        )?;
    }
    Ok(deny)
}
