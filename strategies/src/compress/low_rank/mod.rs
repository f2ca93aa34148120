//! Codecs that send a matrix as a product of thin factors.

pub(in crate::compress) mod atomo;
pub(in crate::compress) mod factors;
mod jacobi;
pub(in crate::compress) mod power_sgd;
mod products;
pub(in crate::compress) mod sufficient_factors;

use super::CodecSpec;

/// The codecs of this folder.
pub(super) const CODECS: &[&CodecSpec] =
    &[&power_sgd::SPEC, &atomo::SPEC, &sufficient_factors::SPEC];
