//! What a directive changes, and what training goes by then.

use crate::wire::WIRE_VERSION_OLDEST;
use core::fmt;
use serde::{Deserialize, Serialize};

/// What a directive changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Change {
    /// No round begins until the run is resumed.
    Pause,
    /// A pause ends, and one that was to come does not.
    Resume,
    /// The run ends after this number of rounds in all. Zero: when it is told to.
    Rounds(u64),
    /// The number of inner steps of a round.
    InnerSteps(u32),
    /// The learning rate, as a multiple of what the configuration says.
    LearningRate(RateFactor),
    /// The codec of contributions and aggregates, by the byte that opens its encodings; `None`: that of the
    /// configuration.
    Codec(Option<u8>),
}

impl Change {
    /// The first version of the wire whose peers can read it.
    pub const fn since(&self) -> u8 {
        match self {
            Self::Codec(_) => 8,
            _ => WIRE_VERSION_OLDEST,
        }
    }

    /// Returns `true` if two changes are of one kind, so that the later one counts.
    pub(super) const fn is_like(&self, other: &Self) -> bool {
        matches!(
            (self, other),
            (Self::Pause | Self::Resume, Self::Pause | Self::Resume)
                | (Self::Rounds(_), Self::Rounds(_))
                | (Self::InnerSteps(_), Self::InnerSteps(_))
                | (Self::LearningRate(_), Self::LearningRate(_))
                | (Self::Codec(_), Self::Codec(_))
        )
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pause => f.write_str("pause"),
            Self::Resume => f.write_str("resume"),
            Self::Rounds(0) => f.write_str("no last round"),
            Self::Rounds(rounds) => write!(f, "{rounds} rounds in all"),
            Self::InnerSteps(steps) => write!(f, "{steps} inner steps a round"),
            Self::LearningRate(factor) => write!(f, "learning rate {factor}"),
            Self::Codec(None) => f.write_str("the codec of the configuration"),
            Self::Codec(Some(byte)) => write!(f, "the codec with byte {byte}"),
        }
    }
}

/// A factor on the learning rate, in millionths: all machines read the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RateFactor(u32);

impl RateFactor {
    /// The learning rate of the configuration.
    pub const ONE: Self = Self(1_000_000);

    /// The largest factor. A mistyped one would end the run.
    pub const MAX: f64 = 1000.0;

    /// The nearest factor to `value`; `None` if it is not in `0.000001..=1000`.
    pub fn new(value: f64) -> Option<Self> {
        let millionths = (value * 1e6).round();
        (1.0..=Self::MAX * 1e6)
            .contains(&millionths)
            .then_some(Self(millionths as u32))
    }

    /// The factor.
    pub fn get(self) -> f64 {
        f64::from(self.0) / 1e6
    }

    /// Returns `true` if it is within the bounds of a factor. Others come from the network only.
    pub(super) fn is_valid(self) -> bool {
        (1..=(Self::MAX * 1e6) as u32).contains(&self.0)
    }
}

impl Default for RateFactor {
    fn default() -> Self {
        Self::ONE
    }
}

impl fmt::Display for RateFactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x", self.get())
    }
}

/// What the owner has changed of the training of a round, and the codec that its members have chosen. By default
/// nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainingRules {
    /// Inner steps of every round, if they were changed; in balanced rounds, the most.
    pub inner_steps: Option<u32>,
    /// The factor on the learning rate.
    pub rate: RateFactor,
    /// The codec, by the byte that opens its encodings; `None`: that of the configuration.
    pub codec: Option<u8>,
    /// The place of the codec in the plan's ladder, where members choose it; zero is that of the configuration.
    /// A codec of the owner goes before it.
    pub rung: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_is_kept_in_millionths_and_reads_as_it_was_written() {
        for (value, text) in [
            (0.5, "0.5x"),
            (1.0, "1x"),
            (2.25, "2.25x"),
            (1e-6, "0.000001x"),
        ] {
            let factor = RateFactor::new(value).unwrap();
            assert_eq!((factor.get(), factor.to_string().as_str()), (value, text));
        }
        for value in [0.0, -1.0, 1e-9, 1000.1, f64::NAN, f64::INFINITY] {
            assert_eq!(RateFactor::new(value), None, "{value}");
        }
    }
}
