//! How a codec is used twice in a round: the owner of a shard makes a basis of the members' first
//! contributions, each member encodes a second one for this basis, and the owner joins them.

use super::gathering::Bad;
use super::{CodecError, EncodeContext};
use murmurate_protocol::Digest;

/// An encoded contribution and its share of the weights, which sum to one.
pub type Weighed<'a> = (&'a [u8], f32);

/// How a codec is used twice in a round. The context is that of a member's first contribution: it has the
/// same `shared_seed`, `matrices` and `shared` at all members. What is kept in common depends only on joined
/// aggregates that were agreed on, so members with the same anchor keep the same bits.
pub trait TwoPasses {
    /// The most f32 that members keep in common for a slice of `len` values.
    fn shared_most(&self, len: usize) -> usize;

    /// Appends the first contribution of a member with these values.
    fn first(&mut self, values: &[f32], context: &EncodeContext<'_>, out: &mut Vec<u8>);

    /// Appends the basis of first contributions to a slice of `len` values.
    ///
    /// # Errors
    /// Which contribution is bad.
    fn basis(
        &mut self,
        firsts: &[Weighed<'_>],
        len: usize,
        context: &EncodeContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Bad>;

    /// Appends the second contribution of a member with these values.
    ///
    /// # Errors
    /// When the basis is not the codec's.
    fn second(
        &mut self,
        values: &[f32],
        basis: &[u8],
        context: &EncodeContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError>;

    /// Appends what a basis and the second contributions for it are together.
    ///
    /// # Errors
    /// Which contribution is bad.
    fn join(
        &mut self,
        basis: &[u8],
        seconds: &[Weighed<'_>],
        len: usize,
        context: &EncodeContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Bad>;

    /// Takes the part of a member's values that is in what was joined out of its residual.
    ///
    /// # Errors
    /// When the bytes do not belong together; the residual is unchanged then.
    fn take_out(
        &mut self,
        own: Joined<'_>,
        context: &EncodeContext<'_>,
        residual: &mut [f32],
    ) -> Result<(), CodecError>;

    /// Appends what members keep in common after this joined aggregate of `len` values.
    fn keep(
        &mut self,
        joined: &[u8],
        len: usize,
        context: &EncodeContext<'_>,
        shared: &mut Vec<f32>,
    );
}

/// A member's second contribution, with its basis and the aggregate that was agreed on.
#[derive(Clone, Copy, Debug)]
pub struct Joined<'a> {
    /// The basis.
    pub basis: &'a [u8],
    /// The member's contribution.
    pub second: &'a [u8],
    /// What was agreed on.
    pub aggregate: &'a [u8],
}

/// What names a basis in the contributions for it.
pub(super) fn name_of(basis: &[u8]) -> [u8; 8] {
    let mut eight = [0; 8];
    eight.copy_from_slice(&Digest::of(basis).as_bytes()[..8]);
    eight
}
