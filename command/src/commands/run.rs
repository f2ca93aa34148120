//! `murmurate run`: runs one daemon, whose invite stays out of the list of processes.
//!
//! The system shows the command line of a process to every user of the machine for as long as it runs, and its
//! environment to its own user only. A process cannot take back its command line, so it starts itself
//! once more, as the same process.

use super::{VARIABLE, environment, invite};
use crate::cli::RunArgs;
use crate::out;
use murmurate_node::config::{Config, TrainerArg};
use murmurate_node::daemon::{self, DaemonError, RunOptions};
use murmurate_node::local;
use murmurate_node::membership::invite_from;
use murmurate_node::progress::LogMode;
use murmurate_trust::Invite;
use std::ffi::OsString;
use std::io;

pub(crate) fn run(args: RunArgs) -> anyhow::Result<()> {
    hide(args.invite.as_deref());
    if let Some(parent) = args.parent {
        local::end_with_parent(parent)?;
    }
    let mut overrides = args.overrides;
    // The daemons of `murmurate local` have a configuration each.
    if args.parent.is_none() {
        overrides.environment = environment();
    }
    if !args.command.is_empty() {
        overrides.trainer = Some(TrainerArg::Attach);
    }
    let config = Config::load(args.config.as_deref(), &overrides)?;
    if args.show_config {
        return out::text(config.effective);
    }
    // It lets one daemon in, so it is not for the daemons of `murmurate local`.
    let invite = match args.parent {
        None => invite(args.invite),
        Some(_) => args.invite,
    };
    let invite = invite.as_deref().map(invite_from).transpose();
    let invite = invite.map_err(DaemonError::from)?;
    daemon::run(
        config,
        RunOptions {
            // A program that asked for JSON lines gets them.
            log: match args.log {
                LogMode::Json => LogMode::Json,
                _ if out::is_quiet() => LogMode::Quiet,
                log => log,
            },
            faults: args.fault,
            lies: args.lie,
            splits: args.split,
            ephemeral: false,
            command: args.command,
            record: args.record,
            invite,
        },
    )?;
    Ok(())
}

const FLAG: &str = "--invite";

/// Starts this program once more with the invite in its environment, if its line is on the command line.
/// Returns if it is not, or if the system does not allow that, which is told.
pub(crate) fn hide(invite: Option<&str>) {
    let Some(line) = invite.filter(|text| Invite::from_line(text).is_ok()) else {
        return;
    };
    let error = again(line);
    out::complain(format_args!(
        "the list of processes shows the invite ({error}): give it in a file, or in the variable {VARIABLE}"
    ));
}

#[cfg(unix)]
fn again(line: &str) -> io::Error {
    use std::os::unix::process::CommandExt;
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return error,
    };
    let mut arguments = std::env::args_os();
    let mut command = std::process::Command::new(program);
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command
        .args(without_invite(arguments))
        .env(VARIABLE, line)
        .exec()
}

#[cfg(not(unix))]
fn again(_: &str) -> io::Error {
    io::ErrorKind::Unsupported.into()
}

/// The arguments without the invite. Those after `--` are the trainer's.
fn without_invite(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments = arguments;
    let mut kept = Vec::new();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            kept.push(argument);
            kept.extend(arguments);
            break;
        }
        if argument == FLAG {
            arguments.next();
            continue;
        }
        let joined = argument.to_str().and_then(|text| text.strip_prefix(FLAG));
        if joined.is_none_or(|rest| !rest.starts_with('=')) {
            kept.push(argument);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_invite_is_left_out_and_nothing_else() {
        let kept = |text: &str| {
            let all = without_invite(text.split(' ').map(OsString::from));
            let all: Vec<_> = all.iter().filter_map(|a| a.to_str()).collect();
            all.join(" ")
        };
        assert_eq!(kept("run --invite LINE --dir d"), "run --dir d");
        assert_eq!(kept("run --invite=LINE --dir d"), "run --dir d");
        let trainer = "run --dir d -- train --invite me";
        assert_eq!(kept(trainer), trainer);
        assert_eq!(kept("run --invited x"), "run --invited x");
    }
}
