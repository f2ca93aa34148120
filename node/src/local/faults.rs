//! Arguments of the flags for faults: `N@round:R`, and for kills with a phase.

use crate::faults::{FaultError, FaultPhase, round_and_phase};
use std::str::FromStr;

/// `--kill N@round:R[:train|exchange|apply]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KillAt {
    /// Index of the daemon, from zero.
    pub node: usize,
    /// The round.
    pub round: u64,
    /// The phase.
    pub phase: FaultPhase,
}

/// `--stop N@round:R`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopAt {
    /// Index of the daemon, from zero.
    pub node: usize,
    /// The round.
    pub round: u64,
    /// The phase.
    pub phase: FaultPhase,
}

/// `--late N@round:R`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateAt {
    /// Index of the daemon, from zero.
    pub node: usize,
    /// The daemon starts when the others have reached this round.
    pub round: u64,
}

const KILL_FORM: &str = "N@round:R, or N@round:R:PHASE with train, exchange or apply";
const LATE_FORM: &str = "N@round:R";

impl FromStr for KillAt {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (node, round, phase) = parse(text).ok_or_else(|| FaultError::new(text, KILL_FORM))?;
        Ok(Self { node, round, phase })
    }
}

impl FromStr for StopAt {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (node, round, phase) = parse(text).ok_or_else(|| FaultError::new(text, KILL_FORM))?;
        Ok(Self { node, round, phase })
    }
}

impl FromStr for LateAt {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let bad = || FaultError::new(text, LATE_FORM);
        let (node, rest) = text.split_once("@round:").ok_or_else(bad)?;
        let node = node.parse().map_err(|_| bad())?;
        let round = rest.parse().map_err(|_| bad())?;
        Ok(Self { node, round })
    }
}

fn parse(text: &str) -> Option<(usize, u64, FaultPhase)> {
    let (node, rest) = text.split_once("@round:")?;
    let (round, phase) = round_and_phase(rest)?;
    Some((node.parse().ok()?, round, phase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read() {
        let kill: KillAt = "2@round:5:exchange".parse().unwrap();
        assert_eq!(
            kill,
            KillAt {
                node: 2,
                round: 5,
                phase: FaultPhase::Exchange
            }
        );
        let plain: KillAt = "0@round:0".parse().unwrap();
        assert_eq!(
            plain,
            KillAt {
                node: 0,
                round: 0,
                phase: FaultPhase::Train
            }
        );
        assert_eq!("3@round:9".parse(), Ok(LateAt { node: 3, round: 9 }));
        for text in [
            "",
            "2",
            "2@5",
            "x@round:1",
            "2@round:",
            "2@round:1:sleep",
            "2@round:1:apply:x",
        ] {
            assert!(text.parse::<KillAt>().is_err(), "{text}");
        }
        let line = "3@round:9:train".parse::<LateAt>().unwrap_err().to_string();
        assert_eq!(line, "`3@round:9:train` is not a fault; write N@round:R");
    }
}
