//! cargo-deny, which is installed into the target directory if there is none.

use crate::command::{run, succeeds};
use crate::failure::Failure;
use crate::tool::Tool;

pub(crate) const DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    features: &[],
};

pub(crate) fn check() -> Result<(), Failure> {
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
