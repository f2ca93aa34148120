//! The checks of counts and ranges that messages share.

use crate::FragmentId;
use crate::limits::{BALLOTS_MAX, FRAGMENTS_MAX, PARTS_MAX};
use crate::wire::WireError;

/// The same answer for every check: which field is out of range.
pub(crate) fn ok(condition: bool, field: &str) -> Result<(), WireError> {
    match condition {
        true => Ok(()),
        false => Err(WireError::OutOfRange {
            field: field.to_owned(),
        }),
    }
}

pub(crate) fn weight(weight: f64) -> Result<(), WireError> {
    ok(weight_ok(weight), "weight")
}

/// Whether a weight is one that sums of weights can take.
pub(crate) fn weight_ok(weight: f64) -> bool {
    weight.is_finite() && (0.0..=1e18).contains(&weight)
}

pub(crate) fn fragment(fragment: FragmentId) -> Result<(), WireError> {
    ok(usize::from(fragment.0) < FRAGMENTS_MAX, "fragment")
}

pub(crate) fn ballot(number: u8) -> Result<(), WireError> {
    ok(number < BALLOTS_MAX, "ballot")
}

pub(crate) fn shards(count: usize) -> Result<(), WireError> {
    ok(count <= PARTS_MAX, "shards")
}
