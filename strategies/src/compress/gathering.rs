//! Contributions that every member holds as they were encoded (exchange "gathered"): what a codec makes
//! of them together, and what all members keep of it in common. No IO, no agreement: the Executor says
//! what was agreed on.
//!
//! What is kept in common is a function of what was agreed on, round after round, and of nothing else: it
//! is the same bits at every member that holds the same anchor, it travels with the state that newcomers
//! fetch, and a round that came to nothing leaves it alone.

use super::CodecError;

/// One contribution of a round.
#[derive(Clone, Copy, Debug)]
pub struct Contributed<'a> {
    /// As it was encoded.
    pub bytes: &'a [u8],
    /// Its share of the weights, which sum to one.
    pub share: f32,
    /// What every member holds of its sender; empty stands for zeros.
    pub held: &'a [f32],
}

/// What was agreed on of one slice in one round.
#[derive(Clone, Copy, Debug)]
pub struct Agreed<'a> {
    /// The contributions, in the order that all members have.
    pub contributions: &'a [Contributed<'a>],
    /// Which of them is this peer's; `None` where it is left out.
    pub own: Option<usize>,
    /// The round.
    pub round: u64,
    /// The seed that all members have for the slice in this round.
    pub shared_seed: u64,
    /// What is kept in common.
    pub shared: &'a [f32],
}

/// A contribution that is not what the codec writes: every member refuses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// Which of the contributions.
    pub at: usize,
    /// What is wrong.
    pub error: CodecError,
}

/// What a codec makes of all contributions. Every member computes the same.
pub trait Gathering {
    /// Whether every member holds a run of values of every other: as many times the parameters as there
    /// are members.
    fn holds(&self) -> bool {
        false
    }

    /// f32 that are kept in common for a slice of `len` values, at most.
    fn shared_most(&self, len: usize) -> usize;

    /// Adds the move that the contributions make to `moved`, which is given as zeros. What is kept stays
    /// as it is.
    ///
    /// # Errors
    /// Which contribution is bad.
    fn gather(&mut self, agreed: &Agreed<'_>, moved: &mut [f32]) -> Result<(), Bad>;

    /// The move of the [`gather`](Self::gather) just before is in force: appends what is kept in common
    /// from now on to `shared`, which is given empty, and puts back into the residual what of the own
    /// contribution did not become part of the move.
    fn settle(
        &mut self,
        agreed: &Agreed<'_>,
        moved: &[f32],
        residual: Option<&mut [f32]>,
        shared: &mut Vec<f32>,
    );

    /// What every member holds of a sender, given its contribution that was agreed on. Only where it
    /// [holds](Self::holds) anything.
    ///
    /// # Errors
    /// As `gather`; nothing has changed then.
    fn hold(&self, _bytes: &[u8], _held: &mut [f32]) -> Result<(), CodecError> {
        Ok(())
    }

    /// Puts an own contribution back that did not count, before what it was encoded with has changed.
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
