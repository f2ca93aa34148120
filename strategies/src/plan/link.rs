//! A machine's link as people write it: `100mbit/40ms`, `20mbit/100mbit/60ms`.

use core::str::FromStr;
use core::time::Duration;
use serde::Serialize;

/// The link between a machine and all others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Link {
    /// Bytes per second that it sends.
    pub up: f64,
    /// Bytes per second that it receives.
    pub down: f64,
    /// Latency in one direction.
    pub latency: Duration,
}

/// Units of rates, in bits per second.
const RATES: [(&str, f64); 4] = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)];

/// Units of time, in seconds. Longer names come first, because `ms` ends like `s`.
const TIMES: [(&str, f64); 3] = [("ms", 1e-3), ("us", 1e-6), ("s", 1.0)];

fn quantity(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim();
    let (unit, scale) = units.iter().find(|(unit, _)| text.ends_with(unit))?;
    let number: f64 = text[..text.len() - unit.len()].trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number * scale)
}

impl FromStr for Link {
    type Err = String;

    /// `RATE/LATENCY` or `UP/DOWN/LATENCY`.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let (up, down, latency) = match parts[..] {
            [rate, latency] => (rate, rate, latency),
            [up, down, latency] => (up, down, latency),
            _ => {
                return Err(format!(
                    "`{text}`: give RATE/LATENCY or UP/DOWN/LATENCY, as 100mbit/40ms"
                ));
            }
        };
        let rate = |text: &str| {
            let rate = quantity(text, &RATES).filter(|rate| *rate > 0.0);
            rate.ok_or_else(|| format!("`{text}`: give a rate above 0, as 100mbit or 10gbit"))
        };
        let (up, down) = (rate(up)? / 8.0, rate(down)? / 8.0);
        let seconds = quantity(latency, &TIMES).filter(|seconds| *seconds <= 60.0);
        let seconds = seconds
            .ok_or_else(|| format!("`{latency}`: give a time up to a minute, as 40ms or 100us"))?;
        Ok(Self {
            up,
            down,
            latency: Duration::from_secs_f64(seconds),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_read_as_people_write_them() {
        let link: Link = "100mbit/40ms".parse().unwrap();
        assert_eq!((link.up, link.down), (12.5e6, 12.5e6));
        assert_eq!(link.latency, Duration::from_millis(40));
        let link: Link = "20mbit/100mbit/60ms".parse().unwrap();
        assert_eq!((link.up, link.down), (2.5e6, 12.5e6));
        assert_eq!("10gbit/100us".parse::<Link>().unwrap().up, 1.25e9);
    }

    #[test]
    fn what_cannot_be_is_refused_by_what_was_written() {
        for text in [
            "",
            "100mbit",
            "100/40ms",
            "-1mbit/40ms",
            "0mbit/1ms",
            "nanmbit/1ms",
            "1mbit/40",
            "1mbit/1h",
            "1mbit/90s",
            "1mbit/1mbit/1mbit/1ms",
        ] {
            let error = text.parse::<Link>().unwrap_err();
            assert!(error.starts_with('`') && error.contains("give"), "{error}");
        }
    }
}
