//! Arguments of `--partition` and `--heal`, which split a swarm and bring it together again.

use super::LocalError;
use crate::faults::FaultError;
use crate::splits::Split;
use crate::store::Store;
use std::path::Path;
use std::str::FromStr;

/// `--partition 0,1|2,3@round:R`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionAt {
    /// The daemons of each side, by index from zero.
    pub sides: Vec<Vec<usize>>,
    /// The round in which the sides lose each other.
    pub round: u64,
}

/// `--heal @round:S`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealAt {
    /// From this round on the sides can reach each other again.
    pub round: u64,
}

impl FromStr for PartitionAt {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let bad = || FaultError::new(text, "the sides and a round: 0,1|2,3@round:R");
        let (sides, round) = text.split_once("@round:").ok_or_else(bad)?;
        let side = |side: &str| {
            side.split(',')
                .map(|node| node.trim().parse().ok())
                .collect()
        };
        let sides: Option<Vec<Vec<usize>>> = sides.split('|').map(side).collect();
        let round = round.parse().map_err(|_| bad())?;
        match sides {
            Some(sides) if sides.len() > 1 => Ok(Self { sides, round }),
            _ => Err(bad()),
        }
    }
}

impl FromStr for HealAt {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let round = text.strip_prefix("@round:");
        let round = round.and_then(|round| round.parse().ok());
        let round = round.ok_or_else(|| FaultError::new(text, "@round:S"))?;
        Ok(Self { round })
    }
}

impl PartitionAt {
    /// Why this number of daemons cannot be split so, if that is so.
    pub(super) fn wrong(&self, nodes: usize) -> Option<String> {
        let mut named: Vec<usize> = self.sides.concat();
        named.sort_unstable();
        match named == (0..nodes).collect::<Vec<_>>() {
            true => None,
            false => Some(format!(
                "name each daemon from 0 to {} on one side",
                nodes.saturating_sub(1)
            )),
        }
    }

    /// The sides, for people.
    pub(super) fn words(&self) -> String {
        let side = |side: &Vec<usize>| {
            let nodes: Vec<String> = side.iter().map(usize::to_string).collect();
            nodes.join(",")
        };
        let sides: Vec<String> = self.sides.iter().map(side).collect();
        sides.join(" | ")
    }

    /// The split as one daemon of the swarm in `dir` has it.
    pub(super) fn of(
        &self,
        node: usize,
        heal: Option<HealAt>,
        dir: &Path,
    ) -> Result<Split, LocalError> {
        let others = self.sides.iter().filter(|side| !side.contains(&node));
        let mut peers = std::collections::BTreeSet::new();
        for other in others.flatten() {
            let home = dir.join(format!("node-{other}"));
            let identity = Store::identity_of(&home).map_err(|e| LocalError::Directory {
                path: home.clone(),
                reason: e.to_string(),
            })?;
            peers.insert(identity.peer());
        }
        Ok(Split {
            from: self.round,
            until: heal.map_or(u64::MAX, |heal| heal.round),
            peers,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read() {
        let partition: PartitionAt = "0,1|2,3@round:5".parse().unwrap();
        let sides = vec![vec![0, 1], vec![2, 3]];
        assert_eq!(partition, PartitionAt { sides, round: 5 });
        assert_eq!(partition.words(), "0,1 | 2,3");
        assert_eq!("@round:9".parse(), Ok(HealAt { round: 9 }));
        for text in [
            "",
            "0,1@round:5",
            "0|1",
            "0,|1@round:5",
            "0|1@5",
            "0|1@round:x",
        ] {
            let line = text.parse::<PartitionAt>().unwrap_err().to_string();
            assert!(line.ends_with("0,1|2,3@round:R"), "{line}");
        }
        for text in ["", "9", "round:9", "@round:", "@9"] {
            assert!(text.parse::<HealAt>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_daemon_is_on_one_side() {
        let wrong = |text: &str, nodes| text.parse::<PartitionAt>().unwrap().wrong(nodes);
        assert_eq!(wrong("2,0|1,3@round:1", 4), None);
        let line = Some("name each daemon from 0 to 3 on one side".to_owned());
        for text in ["0,1|2@round:1", "0,1|2,3,4@round:1", "0,1|1,2,3@round:1"] {
            assert_eq!(wrong(text, 4), line, "{text}");
        }
    }
}
