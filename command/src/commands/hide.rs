//! Keeps an invite out of the list of processes.
//!
//! The system shows the command line of a process to every user of the machine for as long as it runs, and its
//! environment to its own user only. A process cannot take back what it was started with, so it starts itself
//! once more, as the same process.

use crate::out;
use murmurate_trust::Invite;
use std::ffi::OsString;
use std::io;

/// The variable that holds an invite.
pub(crate) const VARIABLE: &str = "MURMURATE_INVITE";

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
