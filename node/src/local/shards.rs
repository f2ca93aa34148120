//! `--shards`: how a local swarm divides its data.

use std::str::FromStr;

/// How the data is divided: the argument of `--shards`.
#[derive(Clone, Debug, PartialEq)]
pub enum ShardsArg {
    /// The daemons divide the data among themselves.
    Dealt,
    /// Every daemon draws from all classes.
    Iid,
    /// Each daemon has only a few classes.
    ByLabel,
    /// Shares of each class are drawn from a Dirichlet distribution with this concentration.
    Dirichlet(f64),
}

impl FromStr for ShardsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "dealt" => return Ok(Self::Dealt),
            None if text == "iid" => return Ok(Self::Iid),
            None if text == "by-label" => return Ok(Self::ByLabel),
            Some(("dirichlet", alpha)) => {
                if let Ok(alpha) = alpha.parse() {
                    return Ok(Self::Dirichlet(alpha));
                }
            }
            _ => {}
        }
        Err(format!(
            "`{text}` is not a split; write dealt, iid, by-label or dirichlet:ALPHA"
        ))
    }
}
