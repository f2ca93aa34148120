//! `murmurate local`: a swarm on one machine. It starts N daemons as child processes, watches their
//! JSON lines, ends them and builds a report. It takes no part in training.

mod args;
mod child;
mod demo;
mod display;
mod error;
mod member;
mod network;
mod options;
mod page;
mod plan;
mod report;
mod split_story;
mod stranger;
mod swarm;

pub use args::{
    Cut, FaultAt, HealAt, IslandsArg, KillEvery, LateAt, LiarAt, PartitionAt, shards_of,
};
pub use child::end_with_parent;
pub use demo::{DEMO_ROUNDS_MIN, demo};
pub use display::{LivingDaemon, LocalView, ViewNews};
pub use error::LocalError;
pub use network::{LocalNetwork, Place};
pub use options::{Emulated, Goal, LocalOptions};
pub(crate) use report::LocalReport;
pub use report::{Total, notes, table};

use crate::goal::Target;
use crate::progress::tell;
use demo::Narrator;
use display::Display;
use page::SwarmPage;
use plan::{ChildPlan, LocalPlan};
use std::path::{Path, PathBuf};
use swarm::{End, Swarm};

/// Runs the swarm to its end. Needs a current-thread runtime on the main thread, because the system
/// ends the children together with the thread that started them.
///
/// # Errors
/// If the swarm cannot start or breaks. A missed target is no error; the report contains it.
pub async fn run(
    options: LocalOptions,
    view: Option<LocalView>,
) -> Result<LocalReport, LocalError> {
    let (dir, temporary) = directory(options.dir.as_deref())?;
    let outcome = run_in(&options, &dir, view).await;
    match (&outcome, temporary) {
        (Ok(report), true) if report.reached != Some(false) => {
            // Only our own temporary directory is removed. A failure does not change the result.
            let _ = std::fs::remove_dir_all(&dir);
        }
        // The run was refused before any daemon wrote a file, so remove the empty directory.
        (Err(_), true) if std::fs::remove_dir(&dir).is_ok() => {}
        (_, true) if !options.quiet => {
            tell(format_args!(
                "the daemons' directories are kept in {}",
                dir.display()
            ));
        }
        _ => {}
    }
    outcome
}

async fn run_in(
    options: &LocalOptions,
    dir: &Path,
    view: Option<LocalView>,
) -> Result<LocalReport, LocalError> {
    let network = LocalNetwork::start(options)?;
    let places = network.as_ref().map_or(&[][..], LocalNetwork::places);
    if let Some(path) = &options.record {
        std::fs::create_dir_all(path).map_err(|e| LocalError::Records {
            path: path.clone(),
            reason: e.to_string(),
        })?;
    }
    let plan = LocalPlan::new(options, dir, places)?;
    let display = match (view, options.quiet) {
        (Some(view), _) => Display::view(view, plan.children.len(), plan.target),
        (None, true) => Display::quiet(),
        (None, false) if options.demo => Display::sentences(plan.children.len(), plan.target),
        (None, false) => Display::new(plan.children.len(), plan.target),
    };
    if let Some(note) = plan.note {
        display.say(note);
    }
    let mut swarm = Swarm::new(&plan, display)?;
    swarm.open_browser = options.open_browser;
    match SwarmPage::start(plan.target).await {
        Ok(page) => swarm.page = Some(page),
        // The daemons have pages of their own.
        Err(error) => swarm.display.say(&format!("no page of the swarm: {error}")),
    }
    if options.demo {
        let dirs = plan.children.iter().map(|child| child.dir.as_path());
        let sides = options.partition.as_ref().map(|split| &split.sides[..]);
        swarm.narrator = Some(Narrator::new(dirs, sides.unwrap_or_default()));
    }
    let end = swarm.run(plan.target, None).await?;
    swarm.end_story();
    let mut report = LocalReport::new(&plan, options, &swarm, end);
    report.stranger = swarm.end_stranger();
    report.story = swarm.story();
    if let Some(network) = &network {
        report.account(network);
    }
    let baseline_s = options.baseline_s();
    if end != End::Interrupted && baseline_s > 0.0 && plan.preset != "none" {
        let baseline = LocalPlan::baseline(options, dir, &report.finished_nodes())?;
        let mut swarm = Swarm::new(&baseline, Display::quiet())?;
        if swarm.run(Target::default(), Some(baseline_s)).await? != End::Interrupted {
            report.compare(&swarm);
        }
    }
    Ok(report)
}

/// The swarm's directory, and whether it is a temporary one to remove at the end.
fn directory(given: Option<&Path>) -> Result<(PathBuf, bool), LocalError> {
    if let Some(path) = given {
        std::fs::create_dir_all(path).map_err(LocalError::of_directory(path))?;
        return Ok((path.to_owned(), false));
    }
    let base = std::env::temp_dir();
    for attempt in 0..1000 {
        let path = base.join(format!("murmurate-local-{}-{attempt}", std::process::id()));
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok((path, true)),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(LocalError::of_directory(&path)(e)),
        }
    }
    let full: std::io::Error = std::io::ErrorKind::AlreadyExists.into();
    Err(LocalError::of_directory(&base)(full))
}
