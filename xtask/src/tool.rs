//! Tools from crates.io, which are installed into the target directory if they are not there, and the step of one
//! of them.

use crate::command::{Failure, run, run_with, succeeds, target};
use std::path::PathBuf;

/// A program that a crate has, in a fixed version.
pub(crate) struct Tool {
    /// The crate, and the program in it.
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// More arguments of `cargo install`.
    pub(crate) features: &'static [&'static str],
}

impl Tool {
    pub(crate) fn installed(&self) -> Result<PathBuf, Failure> {
        let root = target().join("tools");
        let program = root.join("bin").join(self.name);
        if !program.exists() {
            let build = root.join("build");
            let (root, build) = (root.to_string_lossy(), build.to_string_lossy());
            let version = format!("={}", self.version);
            let what = ["install", self.name, "--locked", "--version", &version];
            // Release profiles are optimized for run time and take three times as long to build; the
            // checks take seconds in either profile.
            let how = ["--debug", "--root", &root];
            run_with(
                "cargo",
                &[&what[..], self.features, &how].concat(),
                &[
                    ("CARGO_TARGET_DIR", &build),
                    ("CARGO_PROFILE_DEV_DEBUG", "0"),
                    ("CARGO_PROFILE_DEV_OPT_LEVEL", "0"),
                ],
            )?;
        }
        Ok(program)
    }
}

const DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    features: &[],
};

/// Checks licences, bans, sources and advisories of dependencies.
pub(crate) fn deny() -> Result<(), Failure> {
    let deny = DENY.installed()?;
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
