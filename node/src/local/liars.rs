//! The argument of `--liar`: `N@MODE` or `N@MODE:ROUND`.

use crate::lies::{Lie, LieError, parse};
use std::str::FromStr;

/// `--liar N@MODE[:ROUND]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiarAt {
    /// Index of the daemon, from zero.
    pub node: usize,
    /// What it does, and from which round on.
    pub lie: Lie,
}

impl FromStr for LiarAt {
    type Err = LieError;

    fn from_str(text: &str) -> Result<Self, LieError> {
        let bad = || LieError::new(text, "N@MODE or N@MODE:ROUND");
        let (node, lie) = text.split_once('@').ok_or_else(bad)?;
        let node = node.parse().map_err(|_| bad())?;
        let lie = parse(lie).ok_or_else(bad)?;
        Ok(Self { node, lie })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lies::LieMode;

    #[test]
    fn flags_are_read() {
        let liar: LiarAt = "3@owner-lie:5".parse().unwrap();
        let lie = Lie {
            mode: LieMode::OwnerLie,
            from: 5,
        };
        assert_eq!(liar, LiarAt { node: 3, lie });
        for text in ["", "3", "weight", "x@weight", "3@", "3@wait", "3@weight:"] {
            let line = text.parse::<LiarAt>().unwrap_err().to_string();
            assert!(line.contains("write N@MODE or N@MODE:ROUND"), "{line}");
        }
    }
}
