//! Codecs for the exchange `gathered`: every member receives all contributions as they were
//! encoded, and all members keep the same state.

pub(in crate::compress) mod acp_sgd;
pub(in crate::compress) mod clt_k;
pub(in crate::compress) mod fetch_sgd;
pub(in crate::compress) mod gradiveq;
pub(in crate::compress) mod merged;
mod principal;
pub(in crate::compress) mod shifted;
