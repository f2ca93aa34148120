//! Checks of numbers that several tasks have.

use super::error::ConfigError;
use std::ops::RangeInclusive;

/// The largest number of hidden units, and the largest width of a model.
pub(super) const WIDTH_MAX: u32 = 16_384;

/// Checks a count against its bounds.
pub(super) fn count(
    key: &'static str,
    found: u32,
    bounds: RangeInclusive<u32>,
) -> Result<(), ConfigError> {
    let (least, most) = bounds.clone().into_inner();
    match bounds.contains(&found) {
        true => Ok(()),
        false => Err(ConfigError::Count {
            key,
            found,
            least,
            most,
        }),
    }
}

/// Checks the share of data that is held out.
pub(super) fn share(held_out: f64) -> Result<(), ConfigError> {
    match (0.001..=0.5).contains(&held_out) {
        true => Ok(()),
        false => Err(ConfigError::HeldOut(held_out)),
    }
}
