//! The argument of `--cut`: two daemons that cannot reach each other.

use crate::faults::FaultError;
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

/// `--cut A-B`, or `--cut A-B@START+LENGTH` in seconds from the start of the swarm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The two daemons, by index from zero.
    pub between: [usize; 2],
    /// From when and until when nothing arrives between them.
    pub during: Range<Duration>,
}

const FORM: &str = "two daemons, and a time if it is not the whole run: 2-3, or 2-3@5s+10s";

impl FromStr for Cut {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let bad = || FaultError::new(text, FORM);
        let (pair, time) = match text.split_once('@') {
            Some((pair, time)) => (pair, Some(time)),
            None => (text, None),
        };
        let (a, b) = pair.split_once('-').ok_or_else(bad)?;
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| bad());
        let between = [number(a)?, number(b)?];
        let during = match time {
            Some(time) => range(time).ok_or_else(bad)?,
            None => Duration::ZERO..Duration::MAX,
        };
        match between[0] != between[1] && !during.is_empty() {
            true => Ok(Self { between, during }),
            false => Err(bad()),
        }
    }
}

/// Parses `5s+10s`.
fn range(text: &str) -> Option<Range<Duration>> {
    let seconds = |text: &str| {
        let number = text.trim().strip_suffix('s')?.parse().ok()?;
        Duration::try_from_secs_f64(number).ok()
    };
    let (start, length) = text.split_once('+')?;
    let start = seconds(start)?;
    Some(start..start.saturating_add(seconds(length)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_read() {
        let cut: Cut = "2-3".parse().unwrap();
        assert_eq!(cut.between, [2, 3]);
        assert_eq!(cut.during, Duration::ZERO..Duration::MAX);
        let cut: Cut = "1-0@5s+2.5s".parse().unwrap();
        assert_eq!(cut.between, [1, 0]);
        let during = Duration::from_secs(5)..Duration::from_millis(7_500);
        assert_eq!(cut.during, during);
        for text in [
            "",
            "2",
            "2-",
            "2-2",
            "2-x",
            "2-3@",
            "2-3@5s",
            "2-3@5+10",
            "2-3@5s+0s",
            "2-3@-1s+2s",
        ] {
            let line = text.parse::<Cut>().unwrap_err().to_string();
            assert!(line.ends_with(FORM), "{line}");
        }
    }
}
