//! `murmurate doctor`: checks a daemon and its machine.

use crate::cli::DoctorArgs;
use crate::commands::{environment, invite};
use crate::doctor::{Question, examine};
use crate::exit::{Ended, Exit};
use crate::out;

pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<()> {
    let report = examine(&Question {
        dir: args.dir.clone(),
        file: args.config.clone(),
        join: args.join.clone(),
        invite: invite(args.invite.clone()),
        environment: environment(),
        open: args.open,
        bundle: args.bundle.clone(),
    })?;
    let printed = match args.json {
        true => out::line(serde_json::to_string(&report)?),
        false => out::folded(&report.to_string()),
    };
    if let Some(file) = &args.bundle {
        out::tell(format_args!(
            "wrote {}: keys, tokens and invites are left out; look through it before you send it",
            file.display()
        ));
    }
    match report.failures() {
        Some(codes) => Err(Ended::new(Exit::Failed, format!("checks failed: {codes}")).into()),
        None => printed,
    }
}
