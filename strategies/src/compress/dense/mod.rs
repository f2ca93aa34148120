//! Codecs that send every value in fewer bits.

pub(in crate::compress) mod bf16;
pub(in crate::compress) mod eden;
pub(in crate::compress) mod f32;
pub(in crate::compress) mod format;
pub(in crate::compress) mod fp4;
pub(in crate::compress) mod hadamard;
pub(in crate::compress) mod int;
pub(in crate::compress) mod means;
pub(in crate::compress) mod min_max;
pub(in crate::compress) mod mini_float;
pub(in crate::compress) mod natural;
pub(in crate::compress) mod nuqsgd;
pub(in crate::compress) mod planar;
pub(in crate::compress) mod qsgd;
pub(in crate::compress) mod rotated;
pub(in crate::compress) mod sign;
pub(in crate::compress) mod tern_grad;

use super::CodecSpec;

/// Codecs of 16, 8 and 4 bits that round to the nearest: what a run usually chooses from.
pub(super) const HALVES: [&CodecSpec; 3] = [&bf16::SPEC, &int::INT8_SPEC, &int::INT4_SPEC];

/// The codecs of this folder. The first sends the values as they are.
pub(super) const CODECS: &[&CodecSpec] = &[
    &f32::SPEC,
    &bf16::SPEC,
    &mini_float::FP16_SPEC,
    &mini_float::E4M3_SPEC,
    &mini_float::E5M2_SPEC,
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
];
