//! Codecs: values to bytes and back. Each is one file and a line in [`CODECS`]. Its `SPEC`
//! says name, opening byte, equation, source and keys; its type says layout, bound of error and
//! special cases.
//!
//! - `dense`: every value, in fewer bits
//! - `sparse`: few of the values, or a sketch of the largest
//! - `low_rank`: matrices as products of thin factors
//! - `shared_state`: contributions that every member receives as they were encoded
//! - `two_passes`: members contribute twice to a round
//! - `by_size`, `double_squeeze`, `event_triggered`, `exact_first`: made of other codecs
//!
//! The other files are what several of them share.

mod by_size;
mod codec;
mod dense;
mod double_squeeze;
mod event_triggered;
mod exact_first;
mod low_rank;
mod random;
mod raw;
mod shared_state;
pub(crate) mod simd;
mod sparse;
mod switched;
mod two_passes;

pub(crate) use codec::fold_in;
pub use codec::{
    Agreed, Bad, Codec, CodecError, CodecKind, CodecProperties, CodecSpec, Contributed,
    EncodeContext, Gathering, Joined, Matrix, Named, PLANES_MAX, Pass, Reduction, Tiles, TwoPasses,
    Weighed,
};
pub(crate) use dense::bf16::{SPEC as BF16_SPEC, bf16_to_f32, f32_to_bf16};
pub use dense::f32::F32;
pub(crate) use dense::f32::SPEC as F32_SPEC;
pub(crate) use random::Random;
pub use simd::without_vectors;
pub use sparse::exact::Sparse;
pub(crate) use switched::Switched;
pub use switched::{SwitchError, by_tag, may_replace};

use crate::kind::Spec;
use crate::parameter::{self, Parameters};
pub use crate::parameter::{PARAMETERS_MAX, Parameter, ParameterError, Range};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// All codecs that contributions may be encoded with. Random scenarios are drawn from this list: a new
/// codec goes to its end, and no codec moves.
pub static CODECS: &[&CodecSpec] = &[
    &dense::f32::SPEC,
    &dense::bf16::SPEC,
    &dense::mini_float::FP16_SPEC,
    &dense::mini_float::E4M3_SPEC,
    &dense::mini_float::E5M2_SPEC,
    &dense::fp4::SPEC,
    &dense::int::INT8_SPEC,
    &dense::int::INT4_SPEC,
    &dense::min_max::INT8_SPEC,
    &dense::min_max::INT4_SPEC,
    &dense::qsgd::SPEC,
    &dense::nuqsgd::SPEC,
    &dense::tern_grad::SPEC,
    &dense::natural::SPEC,
    &dense::means::ONE_BIT_SPEC,
    &dense::means::TWO_BIT_SPEC,
    &dense::sign::SIGN_SGD_SPEC,
    &dense::sign::EF_SIGN_SPEC,
    &dense::rotated::SPEC,
    &dense::eden::DRIVE_SPEC,
    &dense::eden::EDEN_SPEC,
    &sparse::top_k::SPEC,
    &sparse::top_k_sampled::SPEC,
    &sparse::gaussian_k::SPEC,
    &sparse::sidco::SPEC,
    &sparse::chunk_top_k::SPEC,
    &sparse::random_k::SPEC,
    &sparse::random_k::UNBIASED_SPEC,
    &sparse::wangni::SPEC,
    &sparse::threshold::SPEC,
    &sparse::threshold::STROM_SPEC,
    &sparse::ada_comp::SPEC,
    &sparse::sbc::SPEC,
    &sparse::top_k::STC_SPEC,
    &sparse::dgc::SPEC,
    &sparse::de_mo::SPEC,
    &low_rank::power_sgd::SPEC,
    &low_rank::atomo::SPEC,
    &low_rank::sufficient_factors::SPEC,
    &sparse::count_sketch::SPEC,
    &by_size::SPEC,
    &shared_state::shifted::EF21_SPEC,
    &shared_state::shifted::DIANA_SPEC,
    &shared_state::shifted::LAG_SPEC,
    &shared_state::merged::G_TOP_K_SPEC,
    &shared_state::merged::OK_TOP_K_SPEC,
    &shared_state::clt_k::SPEC,
    &shared_state::acp_sgd::SPEC,
    &shared_state::fetch_sgd::SPEC,
    &double_squeeze::SPEC,
    &two_passes::power_sgd_mean::SPEC,
    &two_passes::sketched_sgd::SPEC,
    &exact_first::SPEC,
    &shared_state::gradiveq::SPEC,
    &event_triggered::SPEC,
];

/// Codecs of 16, 8 and 4 bits that round to the nearest: what a run usually chooses from.
pub static HALVES: [&CodecSpec; 3] = [
    &dense::bf16::SPEC,
    &dense::int::INT8_SPEC,
    &dense::int::INT4_SPEC,
];

/// The codec of a configuration that names none: the values as they are.
pub static DEFAULT: &CodecSpec = &dense::f32::SPEC;

impl Spec for CodecSpec {
    const KEY: &'static str = "compression.codec";

    fn list() -> &'static [&'static Self] {
        CODECS
    }

    fn keys(&self) -> Parameters {
        Parameters::new("compression", self.name, self.parameters)
    }
}

/// The names of all parameters of all codecs, sorted.
pub fn parameter_names() -> Vec<&'static str> {
    parameter::names(CODECS.iter().map(|spec| spec.parameters))
}

impl<'de> Deserialize<'de> for CodecKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = toml::Table::deserialize(deserializer)?;
        let name = table.remove("codec");
        let name = name.as_ref().and_then(toml::Value::as_str);
        let name = name.ok_or_else(|| D::Error::missing_field("codec"))?;
        Self::from_table(name, &table).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_codec_has_a_byte_of_its_own() {
        // Layouts of older versions, and encodings that no configuration names.
        let mut taken = BTreeSet::from([0, 3, 4, 5, 43, 44, 46]);
        for spec in CODECS {
            assert!(taken.insert(spec.tag), "{}: {}", spec.name, spec.tag);
        }
    }

    #[test]
    fn the_byte_of_a_codec_opens_its_encodings() {
        for spec in CODECS {
            let needed = |p: &&Parameter| p.default.is_none();
            let given = spec.parameters.iter().filter(needed);
            let given: Vec<_> = given.map(|p| (p.name, p.range.example())).collect();
            let mut codec = CodecKind::new(spec.name, &given).unwrap().build();
            let planes = codec.properties().planes;
            let (mut memory, mut out) = (Vec::new(), Vec::new());
            let mut state = vec![vec![0.0; 16]; planes];
            let mut context = EncodeContext::seeded(1, &mut memory);
            for (plane, state) in context.planes.iter_mut().zip(&mut state) {
                *plane = state;
            }
            codec.encode(&[1.0; 16], &mut context, &mut out);
            assert_eq!(out[0], spec.tag, "{}", spec.name);
        }
    }
}
