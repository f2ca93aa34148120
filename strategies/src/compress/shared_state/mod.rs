//! Codecs for the exchange `gathered`: every member receives all contributions as they were
//! encoded, and all members keep the same state.

pub(in crate::compress) mod acp_gathering;
pub(in crate::compress) mod acp_sgd;
pub(in crate::compress) mod clt_k;
pub(in crate::compress) mod fetch_sgd;
pub(in crate::compress) mod gradiveq;
mod gradiveq_gathering;
mod gradiveq_standing;
mod lazy;
pub(in crate::compress) mod merged;
pub(in crate::compress) mod ok_top_k;
mod principal;
pub(in crate::compress) mod shifted;

use super::CodecSpec;

/// The codecs of this folder.
pub(super) const CODECS: &[&CodecSpec] = &[
    &shifted::EF21_SPEC,
    &shifted::DIANA_SPEC,
    &shifted::LAG_SPEC,
    &merged::G_TOP_K_SPEC,
    &merged::OK_TOP_K_SPEC,
    &clt_k::SPEC,
    &acp_sgd::SPEC,
    &fetch_sgd::SPEC,
];

/// Those that were added after codecs of other folders.
pub(super) const LATER: &[&CodecSpec] = &[&gradiveq::SPEC];
