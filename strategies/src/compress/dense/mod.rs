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
mod planar;
pub(in crate::compress) mod qsgd;
pub(in crate::compress) mod rotated;
pub(in crate::compress) mod sign;
pub(in crate::compress) mod tern_grad;
