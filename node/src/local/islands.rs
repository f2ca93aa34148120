//! `--islands`: how many peers a local swarm has, and how many trainers each of them.

use murmurate_strategies::RANKS_MAX;
use std::str::FromStr;

/// The argument of `--islands`: `2x4` is two peers of four ranks each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IslandsArg {
    /// Number of peers.
    pub peers: usize,
    /// Number of ranks of each.
    pub ranks: u32,
}

impl FromStr for IslandsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('x');
        let numbers = numbers.and_then(|(peers, ranks)| {
            let (peers, ranks) = (peers.parse().ok()?, ranks.parse().ok()?);
            Some(Self { peers, ranks })
        });
        let Some(this) = numbers else {
            return Err(format!(
                "`{text}` is not PEERSxRANKS; write 2x4 for two peers of four ranks each"
            ));
        };
        let (Self { peers, ranks }, most) = (this, super::options::NODES_MAX);
        if !(1..=most).contains(&peers) {
            return Err(format!("`{text}` has {peers} peers; give 1 to {most}"));
        }
        if !(1..=RANKS_MAX).contains(&ranks) {
            return Err(format!(
                "`{text}` has {ranks} ranks in each peer; give 1 to {RANKS_MAX}"
            ));
        }
        Ok(this)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_and_ranks_are_read_and_nonsense_is_one_line() {
        let parsed = |text: &str| text.parse::<IslandsArg>();
        assert_eq!(parsed("2x4"), Ok(IslandsArg { peers: 2, ranks: 4 }));
        for text in [
            "", "4", "2x", "x4", "2X4", "2x4x2", "-1x2", "2x1e3", "2 x 4",
        ] {
            let line = parsed(text).unwrap_err();
            assert!(
                line.contains("PEERSxRANKS") && !line.contains('\n'),
                "{line}"
            );
        }
        assert_eq!(
            parsed("0x4").unwrap_err(),
            "`0x4` has 0 peers; give 1 to 256"
        );
        assert_eq!(
            parsed("2x0").unwrap_err(),
            "`2x0` has 0 ranks in each peer; give 1 to 64"
        );
        assert!(parsed("2x65").unwrap_err().ends_with("give 1 to 64"));
        assert!(parsed("257x1").unwrap_err().ends_with("give 1 to 256"));
    }
}
