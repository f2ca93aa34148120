//! Codecs for the exchange `gathered`, whose members all hold every contribution as it was encoded:
//! how a codec combines them, and the common state that all members keep. No IO and no agreement:
//! the Executor passes in the agreed contributions.
//!
//! The common state depends only on the agreed contributions of all rounds. So members with the
//! same anchor have the same bits of it. It is part of the state that newcomers fetch, and a void
//! round does not change it.

use super::CodecError;

/// One contribution of a round.
#[derive(Clone, Copy, Debug)]
pub struct Contributed<'a> {
    /// As it was encoded.
    pub bytes: &'a [u8],
    /// Its share of the weights, which sum to one.
    pub share: f32,
    /// The vector that every member holds of its sender; empty for zeros.
    pub held: &'a [f32],
}

/// The agreed contributions to one slice in one round.
#[derive(Clone, Copy, Debug)]
pub struct Agreed<'a> {
    /// The contributions, in the order that all members have.
    pub contributions: &'a [Contributed<'a>],
    /// The index of this peer's; `None` if it was left out.
    pub own: Option<usize>,
    /// The round.
    pub round: u64,
    /// The seed of the slice in this round, the same at all members.
    pub shared_seed: u64,
    /// The common state of the slice.
    pub shared: &'a [f32],
}

/// A contribution that the codec cannot have written. Every member refuses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// The index of the contribution.
    pub at: usize,
    /// What is wrong.
    pub error: CodecError,
}

/// How a codec combines all contributions. Every member computes the same.
pub trait Gathering {
    /// Whether every member holds a vector of every other member: one value for each parameter and
    /// member.
    fn holds(&self) -> bool {
        false
    }

    /// The most f32 of common state for a slice of `len` values.
    fn shared_most(&self, len: usize) -> usize;

    /// Adds the combined contributions to `moved`, which must be zeros. Does not change the common
    /// state.
    ///
    /// # Errors
    /// Which contribution is bad.
    fn gather(&mut self, agreed: &Agreed<'_>, moved: &mut [f32]) -> Result<(), Bad>;

    /// Called after the result of the last [`gather`](Self::gather) was applied. Appends the next
    /// common state to `shared`, which must be empty. Adds to the residual the part of this peer's
    /// contribution that did not become part of `moved`.
    fn settle(
        &mut self,
        agreed: &Agreed<'_>,
        moved: &[f32],
        residual: Option<&mut [f32]>,
        shared: &mut Vec<f32>,
    );

    /// Updates the vector that every member holds of a sender by its agreed contribution. Only
    /// called if [`Gathering::holds`] is true.
    ///
    /// # Errors
    /// As `gather`; nothing has changed then.
    fn hold(&self, _bytes: &[u8], _held: &mut [f32]) -> Result<(), CodecError> {
        Ok(())
    }

    /// Adds a contribution of this peer that was left out back to the residual. `shared` is the
    /// common state that it was encoded with.
    ///
    /// # Errors
    /// When the bytes are not the codec's.
    fn give_back(
        &self,
        bytes: &[u8],
        shared: &[f32],
        residual: &mut [f32],
    ) -> Result<(), CodecError>;
}
