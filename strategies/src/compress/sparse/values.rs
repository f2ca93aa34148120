//! The codecs in which the values that a sparsifier keeps are written: any dense codec, applied to
//! the kept values in order. These are the products of Qsparse (Basu et al., NeurIPS 2019).

use super::one_scale::{self, OneScale};
use crate::compress::{Codec, CodecKind, Parameter, Range};

/// The codecs to choose from, with their defaults.
const NAMES: [&str; 19] = [
    "f32",
    "bf16",
    "fp16",
    "fp8-e4m3",
    "fp8-e5m2",
    "fp4-e3m0",
    "int8",
    "int4",
    "int8-min-max",
    "int4-min-max",
    "qsgd",
    "nuqsgd",
    "tern-grad",
    "natural",
    "one-bit",
    "two-bit",
    "ef-sign",
    "eden",
    one_scale::SIGNED,
];

/// The codec in which the kept values are written.
pub(in crate::compress) const VALUES: Parameter = Parameter {
    name: "values",
    range: Range::Choice(&NAMES),
    default: Some(0.0),
    about: "the codec of the kept values, such as \"two-bit\"",
};

/// As [`VALUES`], with signs and one scale by default.
pub(in crate::compress) const SIGNED_VALUES: Parameter = Parameter {
    default: Some((NAMES.len() - 1) as f64),
    ..VALUES
};

/// The codec that a codec's parameter [`VALUES`] names, with the defaults of its parameters.
pub(in crate::compress) fn build(kind: &CodecKind) -> Box<dyn Codec> {
    let name = kind.choice(VALUES.name);
    if name == one_scale::SIGNED {
        return Box::new(OneScale::<true>);
    }
    let values = CodecKind::new(name, &[]);
    values
        .expect("the names are those of codecs whose parameters have defaults")
        .build()
}
