//! Codecs that send a matrix as a product of thin factors.

pub(in crate::compress) mod atomo;
pub(in crate::compress) mod factors;
mod jacobi;
pub(in crate::compress) mod power_sgd;
mod products;
pub(in crate::compress) mod sufficient_factors;
