//! Rates in the configuration: bytes per second, or a number with a unit.

use serde::{Deserialize, Serialize};

/// Units with their bytes per second; a bit is an eighth of a byte. The longest matching unit is
/// used.
const UNITS: [(&str, f64); 8] = [
    ("kbit", 125.0),
    ("mbit", 125e3),
    ("gbit", 125e6),
    ("kb", 1e3),
    ("mb", 1e6),
    ("gb", 1e9),
    ("bit", 0.125),
    ("b", 1.0),
];

/// The largest rate in bytes per second: far above any link, and exact as a float.
const RATE_MAX: f64 = 1e15;

/// A rate as written in the file: `10000000`, `"10 MB/s"`, `"80mbit"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum RawRate {
    /// Bytes per second.
    Bytes(u64),
    /// A number and a unit.
    Text(String),
}

impl RawRate {
    /// Bytes per second; `None` if the text is not a rate, or the rate is not above zero.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let bytes = match self {
            Self::Bytes(bytes) => *bytes as f64,
            Self::Text(text) => parse(text)?,
        };
        (1.0..=RATE_MAX).contains(&bytes).then_some(bytes as u64)
    }
}

fn parse(text: &str) -> Option<f64> {
    let text = text.trim().to_ascii_lowercase();
    let text = text.strip_suffix("/s").unwrap_or(&text).trim_end();
    let (number, unit) = match UNITS.iter().find(|(unit, _)| text.ends_with(unit)) {
        Some((unit, bytes)) => (text.strip_suffix(unit)?, *bytes),
        None => (text, 1.0),
    };
    let number: f64 = number.trim().parse().ok()?;
    Some(number * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_with_and_without_units() {
        let text = |text: &str| RawRate::Text(text.to_owned()).bytes();
        assert_eq!(RawRate::Bytes(7).bytes(), Some(7));
        assert_eq!(text("10 MB/s"), Some(10_000_000));
        assert_eq!(text("80mbit"), Some(10_000_000));
        assert_eq!(text("1.5 kB"), Some(1500));
        assert_eq!(text("2 Gbit/s"), Some(250_000_000));
        assert_eq!(text("12"), Some(12));
        assert_eq!(text("12 B/s"), Some(12));
    }

    #[test]
    fn what_is_no_rate_above_zero_is_refused() {
        for wrong in ["", "fast", "-1 MB", "0", "1e30", "NaN", "10 MB/h", "MB"] {
            assert_eq!(RawRate::Text(wrong.to_owned()).bytes(), None, "{wrong}");
        }
        assert_eq!(RawRate::Bytes(0).bytes(), None);
    }
}
