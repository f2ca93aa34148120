//! Codecs that send some of the values, or a sketch of them, and what they share: rules that choose
//! values, packed places, and codecs for the chosen values.

pub(in crate::compress) mod ada_comp;
pub(in crate::compress) mod chunk_top_k;
pub(in crate::compress) mod classes;
pub(in crate::compress) mod count_sketch;
pub(in crate::compress) mod dct;
pub(in crate::compress) mod de_mo;
pub(in crate::compress) mod dgc;
pub(in crate::compress) mod estimated;
pub(in crate::compress) mod exact;
pub(in crate::compress) mod gaussian_k;
pub(in crate::compress) mod largest;
pub(in crate::compress) mod one_scale;
pub(in crate::compress) mod pick;
pub(in crate::compress) mod places;
pub(in crate::compress) mod random_k;
pub(in crate::compress) mod sbc;
pub(in crate::compress) mod select;
pub(in crate::compress) mod sidco;
pub(in crate::compress) mod threshold;
pub(in crate::compress) mod top_k;
pub(in crate::compress) mod top_k_sampled;
pub(in crate::compress) mod values;
pub(in crate::compress) mod wangni;

use super::CodecSpec;

/// The codecs that send some of the values.
pub(super) const CODECS: &[&CodecSpec] = &[
    &top_k::SPEC,
    &top_k_sampled::SPEC,
    &gaussian_k::SPEC,
    &sidco::SPEC,
    &chunk_top_k::SPEC,
    &random_k::SPEC,
    &random_k::UNBIASED_SPEC,
    &wangni::SPEC,
    &threshold::SPEC,
    &threshold::STROM_SPEC,
    &ada_comp::SPEC,
    &sbc::SPEC,
    &top_k::STC_SPEC,
    &dgc::SPEC,
    &de_mo::SPEC,
];

/// The codecs that send a sketch of all values.
pub(super) const SKETCHES: &[&CodecSpec] = &[&count_sketch::SPEC];
