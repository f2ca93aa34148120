//! Faults on request: a daemon that kills or stops itself at an exact point of a round, so that
//! tests and `murmurate local` can reach every phase. The process ends as by `kill -9`: it flushes
//! nothing and tells no peer.

use murmurate_protocol::{Phase, Round};
use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

words! {
    /// The effect of a fault.
    pub enum FaultAction {
        /// SIGKILL.
        Kill = "kill",
        /// SIGSTOP.
        Stop = "stop",
    }
}

words! {
    /// The phase in which a fault occurs.
    pub enum FaultPhase {
        /// While inner steps run.
        Train = "train",
        /// While contributions are in transit.
        Exchange = "exchange",
        /// While the agreed result is applied.
        Apply = "apply",
    }
}

impl FaultPhase {
    /// True where the peer's `phase` is this one.
    pub fn is(self, phase: Phase) -> bool {
        matches!(
            (self, phase),
            (Self::Train, Phase::Train)
                | (Self::Exchange, Phase::Exchange)
                | (Self::Apply, Phase::Apply)
        )
    }
}

/// One fault of a daemon, such as `kill@5:exchange` or `stop@5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The effect.
    pub action: FaultAction,
    /// The round, or the first one after it that reaches the phase.
    pub round: u64,
    /// The phase.
    pub phase: FaultPhase,
}

/// A text that cannot be parsed as a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a fault; write {form}")]
pub struct FaultError {
    text: String,
    form: &'static str,
}

impl FaultError {
    pub(crate) fn new(text: &str, form: &'static str) -> Self {
        Self {
            text: text.to_owned(),
            form,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}:{}", self.action, self.round, self.phase)
    }
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let bad = || FaultError::new(text, "kill@ROUND[:train|exchange|apply] or stop@ROUND");
        let (action, rest) = text.split_once('@').ok_or_else(bad)?;
        let action = FaultAction::of_word(action).ok_or_else(bad)?;
        let (round, phase) = round_and_phase(rest).ok_or_else(bad)?;
        Ok(Self {
            action,
            round,
            phase,
        })
    }
}

/// Parses `R` or `R:PHASE`. The phase is `train` if none is named.
pub(crate) fn round_and_phase(text: &str) -> Option<(u64, FaultPhase)> {
    let (round, phase) = match text.split_once(':') {
        None => (text, FaultPhase::Train),
        Some((round, phase)) => (round, FaultPhase::of_word(phase)?),
    };
    Some((round.parse().ok()?, phase))
}

/// The faults that a daemon was started with and that have not occurred yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    waiting: Vec<Fault>,
    /// Occurs at the next push that a peer accepts.
    armed: Option<Fault>,
}

impl Faults {
    /// Starts with these faults.
    pub fn new(faults: Vec<Fault>) -> Self {
        Self {
            waiting: faults,
            armed: None,
        }
    }

    /// Removes and returns the fault that occurs at the start of `phase` in `round`. A fault during
    /// an exchange is armed instead: it occurs after another peer has received some of this one's
    /// data, which is the harder case for the others.
    pub fn due(&mut self, round: Round, phase: Phase) -> Option<Fault> {
        let is_due = |fault: &Fault| fault.round <= round.0 && fault.phase.is(phase);
        let index = self.waiting.iter().position(is_due)?;
        let fault = self.waiting.remove(index);
        if fault.phase == FaultPhase::Exchange {
            self.armed = Some(fault);
            return None;
        }
        Some(fault)
    }

    /// Removes and returns the armed fault, which occurs now.
    pub fn take_armed(&mut self) -> Option<Fault> {
        self.armed.take()
    }
}

/// Applies the fault to this process. Returns only after a stop that SIGCONT has ended.
pub fn trigger(fault: Fault) {
    let signal = match fault.action {
        FaultAction::Kill => Signal::KILL,
        FaultAction::Stop => Signal::STOP,
    };
    if let Err(error) = kill_process(getpid(), signal) {
        tracing::error!(%fault, %error, "the fault could not be triggered");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::assert_begins;

    #[test]
    fn faults_are_read_and_shown() {
        for (text, shown) in [
            ("kill@5:exchange", "kill@5:exchange"),
            ("kill@5", "kill@5:train"),
            ("stop@0:apply", "stop@0:apply"),
        ] {
            assert_eq!(text.parse::<Fault>().unwrap().to_string(), shown);
        }
        for text in [
            "",
            "kill",
            "kill@",
            "kill@x",
            "kill@3:settle",
            "hang@3",
            "kill@-1",
        ] {
            let line = text.parse::<Fault>().unwrap_err().to_string();
            assert_begins(&line, &format!("`{text}` is not a fault; write kill@"));
        }
    }

    #[test]
    fn a_fault_is_due_once_at_its_phase_or_in_the_first_round_after() {
        let mut faults = Faults::new(vec!["kill@5:apply".parse().unwrap()]);
        assert_eq!(faults.due(Round(4), Phase::Apply), None);
        assert_eq!(faults.due(Round(5), Phase::Train), None);
        assert!(faults.clone().due(Round(5), Phase::Apply).is_some());
        assert!(faults.due(Round(7), Phase::Apply).is_some());
        assert_eq!(faults.due(Round(8), Phase::Apply), None);
    }

    #[test]
    fn a_fault_in_an_exchange_is_armed_when_its_phase_begins() {
        let mut faults = Faults::new(vec!["kill@5:exchange".parse().unwrap()]);
        assert_eq!(faults.due(Round(4), Phase::Exchange), None);
        assert_eq!(faults.take_armed(), None);
        assert_eq!(faults.due(Round(5), Phase::Exchange), None);
        assert!(faults.take_armed().is_some());
        assert_eq!(faults.take_armed(), None);
    }
}
