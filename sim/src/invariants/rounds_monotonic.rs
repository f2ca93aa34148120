//! No peer's round decreases, except when the peer restarts from a checkpoint. Before its first round
//! after that it may still take over an older state: where members sign, one that too few others know
//! does not count.

use murmurate_protocol::Round;

/// The last known round of each machine, and whether it had yet to begin its first one.
#[derive(Debug)]
pub(super) struct RoundsMonotonic {
    known: Vec<(Round, bool)>,
}

/// A machine that has just started.
const STARTED: (Round, bool) = (Round(0), true);

impl RoundsMonotonic {
    pub(super) fn new(peers: usize) -> Self {
        Self {
            known: vec![STARTED; peers],
        }
    }

    pub(super) fn reset(&mut self, index: usize) {
        self.known[index] = STARTED;
    }

    /// Notes the round of a machine, which may `join` or take part in rounds. A state that it takes over before
    /// its first round may begin that round at once.
    pub(super) fn check(&mut self, index: usize, round: Round, joins: bool) -> Result<(), String> {
        let (last, joined) = std::mem::replace(&mut self.known[index], (round, joins));
        if round >= last || joined {
            Ok(())
        } else {
            Err(format!("went back from round {last} to round {round}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn going_back_is_found_and_a_restart_is_not() {
        let mut rounds = RoundsMonotonic::new(2);
        assert!(rounds.check(0, Round(3), false).is_ok());
        assert!(rounds.check(1, Round(1), false).is_ok());
        assert!(rounds.check(0, Round(2), false).is_err());
        rounds.reset(0);
        assert!(rounds.check(0, Round(2), true).is_ok());
        assert!(rounds.check(0, Round(1), false).is_ok());
        assert!(rounds.check(0, Round(0), false).is_err());
    }
}
