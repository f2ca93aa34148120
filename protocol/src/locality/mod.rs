//! Where in the network a peer is: its site, and how fast it sends.
//!
//! Peers of one site reach each other over a local network. A roll places them in rows together, so
//! that only columns cross the links between sites. Both facts are in a peer's record, and the roll
//! names them as they were when the peer entered: all peers place alike, whatever is measured later.

use crate::Digest;
use crate::limits::{RATE_CLASS_MAX, SITE_BYTES_MAX};
use crate::wire::WireError;
use crate::wire::check::ok;
use core::fmt;
use serde::{Deserialize, Serialize};

mod finder;

pub use finder::SiteFinder;

/// The first character of a label that was measured and not configured. It is greater than all others,
/// so that of two labels a configured one is the smaller.
const MEASURED: char = '~';

/// The bytes per second of the lowest rate class.
const LOWEST_RATE: u64 = 1024;

/// The label of a site.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Site(String);

impl Site {
    /// A label of a configuration: letters, digits, `.`, `_` and `-`.
    ///
    /// # Errors
    /// [`WireError::OutOfRange`] for one that is empty, too long, or has other characters.
    pub fn new(label: &str) -> Result<Self, WireError> {
        let site = Self(label.to_owned());
        ok(!site.is_measured(), "record.site")?;
        site.check().map(|()| site)
    }

    /// The label of the peers that have something in common, such as a public address.
    pub fn measured(common: &[u8]) -> Self {
        let digest = Digest::of(&crate::wire::canonical(&("murmurate site", common)));
        let name = digest.as_bytes().iter().take(6);
        let name: String = name.map(|byte| format!("{byte:02x}")).collect();
        Self(format!("{MEASURED}{name}"))
    }

    /// Returns `true` if the label was measured.
    pub fn is_measured(&self) -> bool {
        self.0.starts_with(MEASURED)
    }

    /// The label.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn check(&self) -> Result<(), WireError> {
        let label = self.0.strip_prefix(MEASURED).unwrap_or(&self.0);
        let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let fits = !label.is_empty() && self.0.len() <= SITE_BYTES_MAX;
        ok(fits && label.chars().all(known), "record.site")
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How fast a peer sends, in octaves: each class is twice as fast as the one below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RateClass(u8);

impl RateClass {
    /// The class of a rate in bytes per second. The lowest begins at 1 KiB/s.
    pub fn of(bytes_per_second: u64) -> Self {
        let octave = (bytes_per_second / LOWEST_RATE).max(1).ilog2() as u8;
        Self(octave.min(RATE_CLASS_MAX))
    }

    /// The number of the class.
    pub const fn number(self) -> u8 {
        self.0
    }

    pub(crate) fn check(self) -> Result<(), WireError> {
        ok(self.0 <= RATE_CLASS_MAX, "record.rate")
    }
}

/// What a peer's record says of its place in the network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Locality {
    /// Its site; a peer without one is a site of its own.
    pub site: Option<Site>,
    /// How fast it sends, if that is known.
    pub rate: Option<RateClass>,
}

impl Locality {
    pub(crate) fn wire_bytes(&self) -> usize {
        const LENGTH: usize = 8;
        let site = self.site.as_ref().map(|site| LENGTH + site.0.len());
        2 + site.unwrap_or(0) + usize::from(self.rate.is_some())
    }

    pub(crate) fn check(&self) -> Result<(), WireError> {
        self.site.as_ref().map_or(Ok(()), Site::check)?;
        self.rate.map_or(Ok(()), RateClass::check)
    }
}

/// A member this many octaves below the fastest is slow.
const SLOW_OCTAVES: u8 = 2;

/// At least one member in this many owns parts: each of few owners sends results to all.
const OWNERS_AT_LEAST: usize = 4;

/// Which of some members own parts. An owner of one of o parts among c members sends c/o times what a
/// member does that owns none, so a member is left out only if it is slow beside others that are enough.
/// A member whose rate is not known is not slow.
pub(crate) fn fast_enough(rates: &[Option<RateClass>]) -> Vec<bool> {
    let best = rates.iter().flatten().max();
    let mut bar = best.map_or(0, |best| best.number().saturating_sub(SLOW_OCTAVES - 1));
    let least = rates.len().div_ceil(OWNERS_AT_LEAST);
    loop {
        let is_fast = |rate: &Option<RateClass>| rate.is_none_or(|rate| rate.number() >= bar);
        let fast: Vec<bool> = rates.iter().map(is_fast).collect();
        if bar == 0 || fast.iter().filter(|fast| **fast).count() >= least {
            return fast;
        }
        bar -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short_words() {
        assert_eq!(Site::new("berlin-2").unwrap().as_str(), "berlin-2");
        let longest = "x".repeat(SITE_BYTES_MAX);
        assert!(Site::new(&longest).is_ok());
        for label in ["", "~", "~ab", "a b", "a\n", "ü", &format!("{longest}x")] {
            let field = "record.site".to_owned();
            assert_eq!(
                Site::new(label),
                Err(WireError::OutOfRange { field }),
                "{label}"
            );
        }
        let measured = Site::measured(&[192, 0, 2, 1]);
        assert!(measured.is_measured() && measured.check().is_ok());
        assert_ne!(measured, Site::measured(&[192, 0, 2, 2]));
        assert!(Site::new("zürich").is_err() && Site::new("zz").unwrap() < measured);
    }

    #[test]
    fn a_class_is_twice_as_fast_as_the_one_below() {
        let class = |rate| RateClass::of(rate).number();
        assert_eq!([0, 1, 1024, 2047, 2048].map(class), [0, 0, 0, 0, 1]);
        assert_eq!(class(125_000_000), 16);
        assert_eq!(class(u64::MAX), RATE_CLASS_MAX);
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        let rate = |number| Locality {
            site: None,
            rate: Some(RateClass(number)),
        };
        assert!(rate(RATE_CLASS_MAX).check().is_ok());
        let field = "record.rate".to_owned();
        assert_eq!(
            rate(RATE_CLASS_MAX + 1).check(),
            Err(WireError::OutOfRange { field })
        );
    }

    #[test]
    fn it_knows_its_bytes() {
        let site = Some(Site::measured(b"x"));
        let rate = Some(RateClass::of(1_000_000));
        for locality in [Locality::default(), Locality { site, rate }] {
            let bytes = crate::wire::encode_value(&locality);
            assert_eq!(locality.wire_bytes(), bytes.len());
        }
    }
}

#[cfg(test)]
mod owners_tests {
    use super::*;

    fn fast(rates: &[Option<u32>]) -> Vec<bool> {
        let rates: Vec<Option<RateClass>> = rates
            .iter()
            .map(|rate| rate.map(|octave| RateClass::of(1024 << octave)))
            .collect();
        fast_enough(&rates)
    }

    #[test]
    fn the_slow_own_nothing_and_the_unknown_are_not_slow() {
        assert_eq!(
            fast(&[Some(9), Some(8), Some(7), None]),
            [true, true, false, true]
        );
        assert_eq!(fast(&[None, None]), [true, true]);
        assert_eq!(fast(&[Some(0), Some(1)]), [true, true]);
        assert!(fast(&[]).is_empty());
    }

    #[test]
    fn a_quarter_owns_parts_however_slow() {
        let one_fast = [
            Some(20),
            Some(3),
            Some(3),
            Some(5),
            Some(2),
            Some(2),
            Some(2),
        ];
        assert_eq!(
            fast(&one_fast),
            [true, false, false, true, false, false, false]
        );
        // Members of one class are alike.
        let one_fast = [Some(20), Some(3), Some(3), Some(3), Some(3)];
        assert_eq!(fast(&one_fast), [true; 5]);
        assert_eq!(
            fast(&[Some(20), Some(3), Some(3), Some(3)]),
            [true, false, false, false]
        );
    }
}
