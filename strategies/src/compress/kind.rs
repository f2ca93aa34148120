//! Codecs as data: what the `[compression]` table says, and the list of all there are.

use super::{Codec, by_size, double_squeeze};
use crate::compress::dense::bf16;
use crate::compress::dense::eden;
use crate::compress::dense::f32;
use crate::compress::dense::fp4;
use crate::compress::dense::fp8;
use crate::compress::dense::fp16;
use crate::compress::dense::int;
use crate::compress::dense::means;
use crate::compress::dense::min_max;
use crate::compress::dense::natural;
use crate::compress::dense::nuqsgd;
use crate::compress::dense::qsgd;
use crate::compress::dense::rotated;
use crate::compress::dense::sign;
use crate::compress::dense::tern_grad;
use crate::compress::low_rank::atomo;
use crate::compress::low_rank::power_sgd;
use crate::compress::low_rank::sufficient_factors;
use crate::compress::shared_state::acp_sgd;
use crate::compress::shared_state::clt_k;
use crate::compress::shared_state::fetch_sgd;
use crate::compress::shared_state::merged;
use crate::compress::shared_state::shifted;
use crate::compress::sparse::ada_comp;
use crate::compress::sparse::chunk_top_k;
use crate::compress::sparse::count_sketch;
use crate::compress::sparse::de_mo;
use crate::compress::sparse::dgc;
use crate::compress::sparse::gaussian_k;
use crate::compress::sparse::random_k;
use crate::compress::sparse::sbc;
use crate::compress::sparse::sidco;
use crate::compress::sparse::threshold;
use crate::compress::sparse::top_k;
use crate::compress::sparse::top_k_sampled;
use crate::compress::sparse::wangni;
use crate::compress::spec::{CodecSpec, Parameter, ParameterError, Range};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// All codecs that contributions may be encoded with. One line each.
pub const CODECS: &[&CodecSpec] = &[
    &f32::SPEC,
    &bf16::SPEC,
    &fp16::SPEC,
    &fp8::E4M3_SPEC,
    &fp8::E5M2_SPEC,
    &fp4::SPEC,
    &int::INT8_SPEC,
    &int::INT4_SPEC,
    &min_max::INT8_SPEC,
    &min_max::INT4_SPEC,
    &qsgd::SPEC,
    &nuqsgd::SPEC,
    &tern_grad::SPEC,
    &natural::SPEC,
    &means::ONE_BIT_SPEC,
    &means::TWO_BIT_SPEC,
    &sign::SIGN_SGD_SPEC,
    &sign::EF_SIGN_SPEC,
    &rotated::SPEC,
    &eden::DRIVE_SPEC,
    &eden::EDEN_SPEC,
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
    &power_sgd::SPEC,
    &atomo::SPEC,
    &sufficient_factors::SPEC,
    &count_sketch::SPEC,
    &by_size::SPEC,
    &shifted::EF21_SPEC,
    &shifted::DIANA_SPEC,
    &shifted::LAG_SPEC,
    &merged::G_TOP_K_SPEC,
    &merged::OK_TOP_K_SPEC,
    &clt_k::SPEC,
    &acp_sgd::SPEC,
    &fetch_sgd::SPEC,
    &double_squeeze::SPEC,
];

pub use crate::parameter::PARAMETERS_MAX;
use crate::parameter::Values;

/// A codec with its parameters, all within their ranges.
#[derive(Clone, Copy)]
pub struct CodecKind {
    spec: &'static CodecSpec,
    values: Values,
}

impl CodecKind {
    /// A codec of the list with these parameters; the others get their defaults.
    ///
    /// # Errors
    /// When there is no such codec, or a parameter is missing, unknown or out of its range.
    ///
    /// ```
    /// use murmurate_strategies::compress::CodecKind;
    /// assert!(CodecKind::new("top-k", &[("density", 0.01)]).is_ok());
    /// assert!(CodecKind::new("top-k", &[("density", 0.0)]).is_err());
    /// ```
    pub fn new(name: &str, given: &[(&str, f64)]) -> Result<Self, ParameterError> {
        let found = || name.to_owned();
        let spec = CODECS.iter().find(|spec| spec.name == name);
        let spec = spec.ok_or_else(|| ParameterError::UnknownMethod {
            key: "compression.codec",
            found: found(),
        })?;
        let values = spec.parameters().values(given)?;
        Ok(Self { spec, values })
    }

    /// A codec of what the `[compression]` table says of it.
    ///
    /// # Errors
    /// As [`CodecKind::new`], and when a parameter is not a number.
    pub fn from_table(name: &str, table: &toml::Table) -> Result<Self, ParameterError> {
        let spec = CODECS.iter().find(|spec| spec.name == name);
        let found = || name.to_owned();
        let spec = spec.ok_or_else(|| ParameterError::UnknownMethod {
            key: "compression.codec",
            found: found(),
        })?;
        let values = spec.parameters().read(table)?;
        Ok(Self { spec, values })
    }

    /// Its parameters as TOML.
    pub fn to_table(&self) -> toml::Table {
        self.spec.parameters().write(&self.values)
    }

    /// Its name in the configuration.
    pub const fn name(&self) -> &'static str {
        self.spec.name
    }

    /// Its entry in the list.
    pub const fn spec(&self) -> &'static CodecSpec {
        self.spec
    }

    /// The value of a parameter that its entry lists.
    ///
    /// # Panics
    /// If the entry lists no such parameter.
    pub fn number(&self, parameter: &str) -> f64 {
        self.spec.parameters().number(&self.values, parameter)
    }

    /// As [`CodecKind::number`], of a parameter that is a whole number.
    ///
    /// # Panics
    /// If the entry lists no such parameter.
    pub fn count(&self, parameter: &str) -> usize {
        self.number(parameter) as usize
    }

    /// As [`CodecKind::number`], of a parameter that is a name.
    ///
    /// # Panics
    /// If the entry lists no such parameter, or it is a number.
    pub fn choice(&self, parameter: &str) -> &'static str {
        let found = self.spec.parameters.iter().find(|p| p.name == parameter);
        match found.map(|parameter| parameter.range) {
            Some(Range::Choice(names)) => names[self.count(parameter)],
            _ => panic!("`{parameter}` of `{}` is no name", self.name()),
        }
    }

    /// Another codec of the list, with those of this one's parameters that it has too.
    ///
    /// # Panics
    /// If there is none of that name, or it needs what this one does not have.
    pub(super) fn inner(&self, name: &str) -> Box<dyn Codec> {
        let spec = CODECS.iter().find(|spec| spec.name == name);
        let has =
            |p: &&Parameter| spec.is_some_and(|s| s.parameters.iter().any(|q| q.name == p.name));
        let own = self.spec.parameters.iter().filter(has);
        let given: Vec<_> = own.map(|p| (p.name, self.number(p.name))).collect();
        let kind = Self::new(name, &given);
        kind.expect("a codec lists others that its parameters fit")
            .build()
    }

    /// The codec itself.
    pub fn build(&self) -> Box<dyn Codec> {
        (self.spec.build)(self)
    }
}

/// The names of all parameters of all codecs, sorted.
pub fn parameter_names() -> Vec<&'static str> {
    crate::parameter::names(CODECS.iter().map(|spec| spec.parameters))
}

impl PartialEq for CodecKind {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.values == other.values
    }
}

impl core::fmt::Debug for CodecKind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut entry = f.debug_struct(self.name());
        for (parameter, value) in self.spec.parameters.iter().zip(&self.values) {
            entry.field(parameter.name, value);
        }
        entry.finish()
    }
}

impl Serialize for CodecKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut table = self.to_table();
        table.insert("codec".to_owned(), self.name().into());
        table.serialize(serializer)
    }
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
    use super::super::EncodeContext;
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
