//! Codecs for the exchange `gathered`: every member receives all contributions as they were
//! encoded, and all members keep the same state.

mod acp_sgd;
mod clt_k;
mod fetch_sgd;
mod gradiveq;
mod merged;
mod principal;
mod shifted;

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
