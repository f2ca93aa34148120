//! Rates of links in bits per second, as people write them.

use super::error::SpecError;
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

/// The fastest link that can be emulated, 100 Gbit/s. Faster ones are `unlimited`.
const BITS_MAX: u64 = 100_000_000_000;

const UNITS: [(&str, u64); 4] = [
    ("gbit", 1_000_000_000),
    ("mbit", 1_000_000),
    ("kbit", 1_000),
    ("bit", 1),
];

/// The rate of a link in bits per second, or no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate(Option<NonZeroU64>);

impl Rate {
    /// No limit.
    pub const UNLIMITED: Self = Self(None);

    /// A rate in bits per second; zero means no limit.
    pub fn from_bits(bits: u64) -> Self {
        Self(NonZeroU64::new(bits))
    }

    /// Bits per second; `None` means no limit.
    pub fn bits(self) -> Option<u64> {
        self.0.map(NonZeroU64::get)
    }

    /// The time that the link needs to send `bytes`: `8 bytes / rate`, rounded up to nanoseconds;
    /// zero without a limit.
    pub fn time_of(self, bytes: usize) -> Duration {
        let Some(bits) = self.0 else {
            return Duration::ZERO;
        };
        let nanos = (bytes as u128 * 8_000_000_000).div_ceil(u128::from(bits.get()));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(bits) = self.bits() else {
            return f.write_str("unlimited");
        };
        let exact = UNITS.iter().find(|(_, unit)| bits % unit == 0);
        let (name, unit) = exact.unwrap_or(&("bit", 1));
        write!(f, "{}{name}", bits / unit)
    }
}

impl FromStr for Rate {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        const EXPECTED: &str =
            "is not a rate; write 1kbit to 100gbit, such as 50mbit, or unlimited";
        let wrong = || SpecError::new("RATE", text, EXPECTED);
        if text == "unlimited" {
            return Ok(Self::UNLIMITED);
        }
        let unit = UNITS.iter().find_map(|(name, unit)| {
            let number = text.strip_suffix(name)?;
            Some((number.parse::<f64>().ok()?, *unit))
        });
        let (number, unit) = unit.ok_or_else(wrong)?;
        let bits = (number * unit as f64).round();
        if !(1_000.0..=BITS_MAX as f64).contains(&bits) {
            return Err(wrong());
        }
        Ok(Self::from_bits(bits as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_written_in_the_largest_unit_that_fits() {
        for (text, bits, shown) in [
            ("50mbit", 50_000_000, "50mbit"),
            ("1.5gbit", 1_500_000_000, "1500mbit"),
            ("9.6kbit", 9_600, "9600bit"),
            ("1000kbit", 1_000_000, "1mbit"),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!(
                (rate.bits(), rate.to_string().as_str()),
                (Some(bits), shown)
            );
        }
        assert_eq!("unlimited".parse::<Rate>().unwrap(), Rate::UNLIMITED);
        for text in [
            "", "50", "mbit", "-1mbit", "0mbit", "1bit", "200gbit", "nanmbit", "50Mbit",
        ] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_datagram_takes_its_bits_over_the_rate() {
        assert_eq!(
            Rate::from_bits(50_000_000).time_of(1250),
            Duration::from_micros(200)
        );
        assert_eq!(
            Rate::from_bits(3).time_of(1),
            Duration::from_nanos(2_666_666_667)
        );
        assert_eq!(Rate::UNLIMITED.time_of(usize::MAX), Duration::ZERO);
    }
}
