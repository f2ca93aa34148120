//! Codecs whose contributions every member receives as they were encoded, and keeps a state in common of.

pub(in crate::compress) mod acp_gathering;
pub(in crate::compress) mod acp_sgd;
pub(in crate::compress) mod clt_k;
pub(in crate::compress) mod fetch_sgd;
pub(in crate::compress) mod merged;
pub(in crate::compress) mod ok_top_k;
pub(in crate::compress) mod shifted;
