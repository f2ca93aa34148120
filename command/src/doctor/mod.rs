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
use murmurate_node::config::Overrides;
use murmurate_node::membership::{MembershipError, invite_from};
use std::path::Path;
use subject::Subject;

/// The directory of a daemon whose configuration cannot be used.
const USUAL_DIR: &str = "murmurate-state";

/// Examines the daemon of a configuration, or of a directory, and writes the report for others to `bundle`.
pub(crate) fn examine(
    file: Option<&Path>,
    overrides: &Overrides,
    invite: Option<&str>,
    bundle: Option<&Path>,
) -> anyhow::Result<Report> {
    let (name, read) = settings::read(file, overrides);
    let mut found = vec![settings::configuration(&name, &read)];
    let invite = match invite.map(invite_from).transpose() {
        Ok(invite) => invite,
        Err(MembershipError::Invite(error)) => {
            found.push(member::refused(&error));
            None
        }
        Err(error) => return Err(anyhow!(error)),
    };
    let config = read.ok();
    let configured = config.as_ref().map(|config| config.daemon.dir.clone());
    let dir = configured.or_else(|| overrides.dir.clone());
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
    let proxy = subject
        .config
        .as_ref()
        .and_then(|it| it.network.proxy.as_ref());
    found.extend(reach::reach(&subject.joins(), proxy)?);
    let report = Report::new(subject.dir.display().to_string(), found);
    if let Some(file) = bundle {
        bundle::write(&subject, &report, file)?;
    }
    Ok(report)
}
