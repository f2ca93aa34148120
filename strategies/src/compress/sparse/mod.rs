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
