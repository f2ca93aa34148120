//! No peer's round decreases, except when the peer restarts from a checkpoint.

use murmurate_protocol::Round;

/// The last known round of each machine.
#[derive(Debug)]
pub(super) struct RoundsMonotonic {
    rounds: Vec<Round>,
}

impl RoundsMonotonic {
    pub(super) fn new(peers: usize) -> Self {
        Self {
            rounds: vec![Round::default(); peers],
        }
    }

    pub(super) fn reset(&mut self, index: usize) {
        self.rounds[index] = Round::default();
    }

    pub(super) fn check(&mut self, index: usize, round: Round) -> Result<(), String> {
        let last = std::mem::replace(&mut self.rounds[index], round);
        match round >= last {
            true => Ok(()),
            false => Err(format!("went back from round {last} to round {round}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn going_back_is_found_and_a_restart_is_not() {
        let mut rounds = RoundsMonotonic::new(2);
        assert!(rounds.check(0, Round(3)).is_ok());
        assert!(rounds.check(1, Round(1)).is_ok());
        assert!(rounds.check(0, Round(2)).is_err());
        rounds.reset(0);
        assert!(rounds.check(0, Round(1)).is_ok());
    }
}
