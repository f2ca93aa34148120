//! What `murmurate doctor` checks. Nothing is changed: no directory is made, no port is kept, and the
//! daemons to join learn nothing but that a stranger knocked.

mod alive;
mod bundle;
mod finding;
mod home;
mod machine;
mod member;
mod model;
mod reach;
mod settings;
mod subject;

pub(crate) use finding::{PAGE, Report, names};

use anyhow::anyhow;
use murmurate_node::config::{Overrides, Variable};
use murmurate_node::membership::{MembershipError, invite_from};
use std::path::{Path, PathBuf};
use subject::Subject;

/// The directory of a daemon whose configuration cannot be used.
const USUAL_DIR: &str = "murmurate-state";

/// What to examine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Question {
    /// The daemon's directory, if it is not that of the configuration.
    pub(crate) dir: Option<PathBuf>,
    /// The configuration.
    pub(crate) file: Option<PathBuf>,
    /// Addresses to join.
    pub(crate) join: Vec<String>,
    /// The invite to enter with.
    pub(crate) invite: Option<String>,
    /// Keys that variables of the environment set.
    pub(crate) environment: Vec<Variable>,
    /// Whether the run is open.
    pub(crate) open: bool,
    /// Where to write the report for others.
    pub(crate) bundle: Option<PathBuf>,
}

/// Examines a daemon.
pub(crate) fn examine(question: &Question) -> anyhow::Result<Report> {
    let overrides = Overrides {
        dir: question.dir.clone(),
        join: question.join.clone(),
        open: question.open,
        environment: question.environment.clone(),
        ..Overrides::default()
    };
    let (name, read) = settings::read(
        (question.file.as_deref(), question.dir.as_deref()),
        &overrides,
    );
    let mut found = vec![settings::configuration(&name, &read)];
    let invite = match question.invite.as_deref().map(invite_from).transpose() {
        Ok(invite) => invite,
        Err(MembershipError::Invite(error)) => {
            found.push(member::refused(&error));
            None
        }
        Err(error) => return Err(anyhow!(error)),
    };
    let config = read.ok();
    let configured = config.as_ref().map(|config| config.daemon.dir.clone());
    let dir = configured.or_else(|| question.dir.clone());
    let dir = dir.unwrap_or_else(|| Path::new(USUAL_DIR).to_owned());
    let subject = Subject::new(dir, config, invite);
    found.push(home::version(&subject));
    found.extend(machine::machine());
    found.push(home::directory(&subject));
    found.extend(home::secrets(&subject));
    found.extend(home::checkpoint(&subject));
    found.push(home::clock(&subject));
    found.push(member::membership(&subject));
    found.extend(alive::settings(&subject.dir));
    found.extend(alive::troubles(&subject));
    if let Some(config) = &subject.config {
        let sizes = model::sizes(&subject, config);
        if model::fits(&sizes) {
            found.push(model::data(config));
        }
        found.extend(sizes);
        if !subject.runs {
            found.extend(reach::ports(config));
        }
        found.push(settings::pages(config));
    }
    found.extend(reach::reach(&subject.joins())?);
    let report = Report::new(subject.dir.display().to_string(), found);
    if let Some(file) = &question.bundle {
        bundle::write(&subject, &report, file)?;
    }
    Ok(report)
}
