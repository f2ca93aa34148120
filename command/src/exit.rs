//! The exit codes of the command. docs/operations.md explains them to users.

use crate::out::ReaderGone;
use murmurate_node::config::{ConfigError, Place};
use murmurate_node::daemon::DaemonError;
use murmurate_node::local::LocalError;
use murmurate_node::membership::MembershipError;
use std::process::ExitCode;

/// The table at the end of `murmurate --help`.
pub(crate) const TABLE: &str = "Exit codes:
  0    done, or left in order
  1    an error; one line on stderr says what happened and what to do
  2    wrong usage of the command line
  3    the target of --until-accuracy or --until-loss was not reached
  4    refused: the peers to join do not accept this daemon
  5    no daemon to join could be reached
  6    the configuration, the invite or the key of a daemon cannot be used
  130  interrupted before the work was done";

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// The work is done.
    Done = 0,
    /// Something failed.
    Failed = 1,
    /// The command line cannot be understood.
    Usage = 2,
    /// All rounds are done, and the target is not reached.
    Missed = 3,
    /// Peers refuse this daemon, or it refuses them.
    Refused = 4,
    /// No peer to join could be reached.
    Unreachable = 5,
    /// What the daemon was started with cannot be used, so another start does not help.
    Unusable = 6,
    /// The user interrupted it before the work was done. As in shells: 128 and the number of SIGINT.
    Interrupted = 130,
}

impl Exit {
    /// The number for the system.
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }

    pub(crate) fn of(error: &anyhow::Error) -> Self {
        if error.is::<ReaderGone>() {
            return Self::Done;
        }
        if let Some(ended) = error.downcast_ref::<Ended>() {
            return ended.exit;
        }
        let config = error.downcast_ref::<ConfigError>();
        if let Some(config) = config.or_else(|| match error.downcast_ref::<LocalError>()? {
            LocalError::Config(config) => Some(config),
            _ => None,
        }) {
            return Self::of_config(config);
        }
        if let Some(LocalError::Flag { .. }) = error.downcast_ref() {
            return Self::Usage;
        }
        match error.downcast_ref::<DaemonError>() {
            Some(DaemonError::Missed { .. }) => Self::Missed,
            Some(
                DaemonError::Refused(_) | DaemonError::TurnedAway { .. } | DaemonError::NoMember(_),
            ) => Self::Refused,
            Some(DaemonError::Unreachable(_)) => Self::Unreachable,
            Some(DaemonError::Membership(MembershipError::Store(_))) => Self::Failed,
            Some(
                DaemonError::Membership(_)
                | DaemonError::Strategy(_)
                | DaemonError::Plan(_)
                | DaemonError::Elsewhere,
            ) => Self::Unusable,
            Some(error) if error.was_interrupted() => Self::Interrupted,
            _ => Self::Failed,
        }
    }

    /// A value of a flag is wrong usage; one of a file or a variable is for its writer.
    const fn of_config(error: &ConfigError) -> Self {
        match error {
            ConfigError::Invalid {
                place: Place::Flag(_),
                ..
            } => Self::Usage,
            ConfigError::Unreadable { .. } | ConfigError::Invalid { .. } => Self::Unusable,
            _ => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// An end with an exit code of its own.
#[derive(Debug, thiserror::Error)]
#[error("{line}")]
pub(crate) struct Ended {
    exit: Exit,
    line: String,
}

impl Ended {
    /// Wrong usage of the command line, found after clap has read it.
    pub(crate) fn usage(line: impl Into<String>) -> anyhow::Error {
        Self::new(Exit::Usage, line).into()
    }

    pub(crate) fn new(exit: Exit, line: impl Into<String>) -> Self {
        let line = line.into();
        Self { exit, line }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn each_end_has_a_code_of_its_own() {
        let path = std::path::PathBuf::from("node.toml");
        let there = ConfigError::Exists(path.clone());
        let reason = "it is a folder".to_owned();
        let unreadable = ConfigError::Unreadable { path, reason };
        let unreachable = DaemonError::Unreachable(None);
        let wrong = |place| ConfigError::Invalid {
            place,
            message: "it is none".to_owned(),
        };
        let cases = [
            (ReaderGone.into(), 0),
            (anyhow::anyhow!("the disk is full"), 1),
            (Ended::new(Exit::Usage, "give a file").into(), 2),
            (Ended::new(Exit::Missed, "ended at 0.5").into(), 3),
            (unreachable.into(), 5),
            (DaemonError::from(MembershipError::NoInvite).into(), 6),
            (unreadable.into(), 6),
            (wrong(Place::Flag("--join")).into(), 2),
            (
                wrong(Place::Variable("MURMURATE_NETWORK_JOIN".to_owned())).into(),
                6,
            ),
            (LocalError::from(wrong(Place::Flag("--preset"))).into(), 2),
            (there.into(), 1),
            (DaemonError::Interrupted.into(), 130),
            (DaemonError::NetworkEnded.into(), 1),
        ];
        for (error, code) in cases {
            assert_eq!(Exit::of(&error).code(), code, "{error}");
        }
        let wrapped = Err::<(), _>(DaemonError::Interrupted).context("node.toml");
        assert_eq!(Exit::of(&wrapped.unwrap_err()).code(), 130);
    }

    #[test]
    fn the_help_lists_every_code() {
        use Exit::*;
        for exit in [
            Done,
            Failed,
            Usage,
            Missed,
            Refused,
            Unreachable,
            Unusable,
            Interrupted,
        ] {
            let line = format!("\n  {:<5}", exit.code());
            assert!(TABLE.contains(&line), "{exit:?}");
        }
    }
}
