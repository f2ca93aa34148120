//! What the steps behind the tests need, built while the tests run: these often wait for daemons, and cores are
//! idle then. It has the lowest priority, so that the tests take no longer.

use crate::command::run;
use crate::failure::Failure;
use crate::paths::target;
use crate::{book, deny, fuzz};
use std::fs;
use std::process::{Child, Command, Stdio};

/// The builds. Each step repeats its own one, which is quick then, and reports what fails in it.
pub(crate) fn all() -> Result<(), Failure> {
    run("cargo", &["build", "--release"])?;
    fuzz::build()?;
    deny::DENY.installed()?;
    book::MDBOOK.installed().map(drop)
}

/// Starts the builds in a process of their own. `None` where there is no `nice`; the steps build then.
pub(crate) fn begin() -> Result<Option<Prepared>, Failure> {
    let directory = target().join("xtask");
    fs::create_dir_all(&directory)?;
    let log = fs::File::create(directory.join("prepare.log"))?;
    let child = Command::new("nice")
        .args(["-n", "19"])
        .arg(std::env::current_exe()?)
        .arg("prepare")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn();
    Ok(child.ok().map(Prepared))
}

/// Builds under way.
pub(crate) struct Prepared(Child);

impl Prepared {
    /// Waits until they have ended, well or not.
    pub(crate) fn end(mut self) -> Result<(), Failure> {
        self.0.wait()?;
        Ok(())
    }
}
