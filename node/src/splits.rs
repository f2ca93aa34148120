//! Splits on request: a daemon that cannot reach some of the others for some rounds, so that tests
//! and `murmurate local --partition` can split a swarm and heal it.

use crate::faults::FaultError;
use murmurate_protocol::{PeerId, Phase, Round, SortedSet};
use std::fmt;
use std::str::FromStr;

/// A split as one daemon has it, such as `3..9:PEER,PEER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// It begins in this round of the daemon, or the first one after it, when its training ends.
    pub from: u64,
    /// It ends when the daemon is in this round or a later one.
    pub until: u64,
    /// The daemons that it cannot reach.
    pub peers: SortedSet<PeerId>,
}

const FORM: &str = "FROM..UNTIL:PEER,PEER with two rounds and the ids of daemons";

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let peers: Vec<String> = self.peers.iter().map(PeerId::to_hex).collect();
        write!(f, "{}..{}:{}", self.from, self.until, peers.join(","))
    }
}

impl FromStr for Split {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let bad = || FaultError::new(text, FORM);
        let (rounds, peers) = text.split_once(':').ok_or_else(bad)?;
        let (from, until) = rounds.split_once("..").ok_or_else(bad)?;
        let peers = peers.split(',').map(PeerId::from_hex);
        let split = Self {
            from: from.parse().map_err(|_| bad())?,
            until: until.parse().map_err(|_| bad())?,
            peers: peers.collect::<Option<_>>().ok_or_else(bad)?,
        };
        if split.from < split.until {
            Ok(split)
        } else {
            Err(bad())
        }
    }
}

/// The splits that a daemon was started with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Splits {
    waiting: Vec<Split>,
    now: Option<Split>,
}

/// Change of a daemon's reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SplitChange {
    /// It cannot reach these peers any more.
    Cut(SortedSet<PeerId>),
    /// It can reach these peers again.
    Healed(SortedSet<PeerId>),
}

impl Splits {
    /// Starts with these splits.
    pub fn new(splits: Vec<Split>) -> Self {
        Self {
            waiting: splits,
            now: None,
        }
    }

    /// The change at the start of `phase` in `round`.
    pub fn due(&mut self, round: Round, phase: Phase) -> Option<SplitChange> {
        if let Some(over) = self.now.take_if(|split| split.until <= round.0) {
            return Some(SplitChange::Healed(over.peers));
        }
        // After the training, when the decisions of the round before have long arrived everywhere.
        let begins = |split: &Split| (split.from..split.until).contains(&round.0);
        if phase != Phase::Exchange || self.now.is_some() {
            return None;
        }
        let index = self.waiting.iter().position(begins)?;
        let split = self.now.insert(self.waiting.remove(index));
        Some(SplitChange::Cut(split.peers.clone()))
    }

    /// A peer cannot be reached now.
    pub fn hides(&self, peer: &PeerId) -> bool {
        let split = self.now.as_ref();
        split.is_some_and(|split| split.peers.contains(peer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(id: u8) -> PeerId {
        PeerId::from_bytes([id; 32])
    }

    #[test]
    fn splits_are_read_and_shown() {
        let split = Split {
            from: 3,
            until: 9,
            peers: [peer(1), peer(2)].into(),
        };
        assert_eq!(split.to_string().parse(), Ok(split));
        let one = peer(1).to_hex();
        for text in [
            String::new(),
            format!("3:{one}"),
            format!("3..9:{one},x"),
            format!("9..3:{one}"),
            format!("3..3:{one}"),
            "3..9:".to_owned(),
        ] {
            let line = text.parse::<Split>().unwrap_err().to_string();
            assert!(line.contains("is not a fault; write FROM..UNTIL"), "{line}");
        }
    }

    #[test]
    fn a_split_begins_when_training_ends_and_ends_with_its_last_round() {
        let peers: SortedSet<PeerId> = [peer(1)].into();
        let mut splits = Splits::new(vec![Split {
            from: 3,
            until: 9,
            peers: peers.clone(),
        }]);
        assert_eq!(splits.due(Round(2), Phase::Exchange), None);
        assert_eq!(splits.due(Round(3), Phase::Train), None);
        let cut = Some(SplitChange::Cut(peers.clone()));
        assert_eq!(splits.due(Round(3), Phase::Exchange), cut);
        assert!(splits.hides(&peer(1)) && !splits.hides(&peer(2)));
        assert_eq!(splits.due(Round(8), Phase::Exchange), None);
        let healed = Some(SplitChange::Healed(peers));
        assert_eq!(splits.due(Round(9), Phase::Train), healed);
        assert!(!splits.hides(&peer(1)));
        assert_eq!(splits.due(Round(10), Phase::Exchange), None);
    }
}
