//! Codecs: values to bytes and back. Each is one file and a line in its folder's list. Its `SPEC`
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

pub mod feedback;

mod by_size;
mod codec;
mod context;
mod dense;
mod double_squeeze;
mod event_triggered;
mod exact_first;
mod header;
mod inner;
mod lanes;
mod low_rank;
mod properties;
mod random;
mod raw;
mod shared_state;
pub(crate) mod simd;
mod sparse;
mod spec;
mod switched;
mod two_passes;

pub use codec::{
    Agreed, Bad, Codec, CodecError, Contributed, Gathering, Joined, Named, Tiles, TwoPasses,
    Weighed,
};
pub use context::{EncodeContext, Matrix, PLANES_MAX};
pub(crate) use dense::bf16::{SPEC as BF16_SPEC, bf16_to_f32, f32_to_bf16};
pub use dense::f32::F32;
pub(crate) use dense::f32::SPEC as F32_SPEC;
pub use properties::{CodecProperties, Reduction};
pub use simd::without_vectors;
pub use sparse::exact::Sparse;
pub use spec::{CodecKind, CodecSpec, PARAMETERS_MAX, Parameter, ParameterError, Range};
pub(crate) use switched::Switched;
pub use switched::{SwitchError, by_tag, may_replace};

use crate::kind::Spec;
use crate::parameter::{self, Parameters};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// The lists of all codecs. Random scenarios are drawn from them in this order: a new codec goes to
/// the end of a list, and no codec moves.
const LISTS: [&[&CodecSpec]; 11] = [
    dense::CODECS,
    sparse::CODECS,
    low_rank::CODECS,
    sparse::SKETCHES,
    &[&by_size::SPEC],
    shared_state::CODECS,
    &[&double_squeeze::SPEC],
    two_passes::CODECS,
    &[&exact_first::SPEC],
    shared_state::LATER,
    &[&event_triggered::SPEC],
];

/// Codecs of 16, 8 and 4 bits that round to the nearest: what a run usually chooses from.
pub static HALVES: [&CodecSpec; 3] = dense::HALVES;

/// How many codecs there are.
const COUNT: usize = {
    let (mut count, mut list) = (0, 0);
    while list < LISTS.len() {
        count += LISTS[list].len();
        list += 1;
    }
    count
};

/// All codecs that contributions may be encoded with.
pub static CODECS: &[&CodecSpec] = &{
    let mut all = [DEFAULT; COUNT];
    let (mut at, mut list) = (0, 0);
    while list < LISTS.len() {
        let mut next = 0;
        while next < LISTS[list].len() {
            all[at] = LISTS[list][next];
            at += 1;
            next += 1;
        }
        list += 1;
    }
    all
};

/// The codec of a configuration that names none: the values as they are.
pub static DEFAULT: &CodecSpec = dense::CODECS[0];

impl Spec for CodecSpec {
    const KEY: &'static str = "compression.codec";

    fn list() -> &'static [&'static Self] {
        CODECS
    }

    fn keys(&self) -> Parameters {
        self.parameters()
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
