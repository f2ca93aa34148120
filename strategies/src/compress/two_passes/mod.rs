//! Codecs for exchanges of two passes: the owner of a shard makes a basis of the members' first
//! contributions, each member encodes a second one for this basis, and the owner joins them. No IO and no
//! agreement: the Executor passes in what has arrived.
//!
//! ```text
//! b = basis(first(x_1), ..., first(x_n)),   s_i = second(x_i; b),   joined = join(b, sum_i w_i s_i)
//! ```
//!
//! A codec's own encoding, [`Codec::encode`](super::Codec::encode), has the layout of a joined aggregate of
//! one member alone. So a joined aggregate is decoded without its basis.
//!
//! With error feedback, the residual holds all of `x_i` until the round is applied. Then the part of it that
//! is in the joined aggregate is taken out. A round that is void, or that left this member out, takes out
//! nothing.

pub(in crate::compress) mod power_sgd_mean;
pub(in crate::compress) mod sketched_sgd;
