//! Who trains which data. Peers of one data set have one endless stream of blocks: block b is block
//! `b mod n` of the data set with n blocks, in epoch `b div n`. A [`Ledger`] says which blocks of each
//! stream are still to be trained, and who is dealt how many.
//!
//! The ledger is replicated state: it changes with the parameters, by what the round decided. The deal of
//! a round follows from it alone, so no message deals:
//!
//! 1. **Deal.** Each peer that was counted in the last round is dealt, in the order of ids, as many
//!    blocks as it took then, a quarter more, and one. The lowest blocks go first, so what came back is
//!    dealt again before anything new.
//! 2. **Train.** A peer trains its blocks in order and says with its contribution how many it finished
//!    ([`Taken`]). One that is not in the ledger, such as a newcomer, takes blocks far behind those that
//!    are dealt, and says which.
//! 3. **Settle.** Blocks that a counted contribution finished are done. The block that its peer was in the middle
//!    of stays with it, and the rest of its deal comes back. If a peer is not counted, all stays with
//!    it for one round, because a late contribution may come with the next one; then all of it comes back.
//!    In a round without a result training goes on, and all blocks stay.
//!
//! So every block of an epoch is trained at least once: it is done only with a contribution that counted.
//! Some of it is trained twice where a peer was in the middle of it and is gone, and where peers without an
//! entry see different participants.
//!
//! **Where rounds overlap** (`late_steps`), a peer trains round r + 1 before round r is decided. There the
//! blocks of round r + 1 are dealt from the ledger that opens round r, and what round r gives back is dealt
//! in round r + 2.
//!
//! **What a liar can do.** It can say that it finished blocks that were dealt to it: those are not
//! trained, at most [`crate::limits::DATA_QUOTA_MAX`] in a round. It can take blocks that were dealt to no
//! peer, at most 65,535 in a round. It cannot give blocks back twice, touch those of another peer, or end an
//! epoch: that needs every block of it to be done. In a group a proposal must repeat what each member said
//! of itself. In a grid the member that sums a row speaks for the peers of that row, as it does with their
//! sum, and for no others.

mod ledger;
mod mine;
mod runs;
mod stream;

pub(crate) use ledger::{Counted, Tally, tally_fits};
pub use ledger::{Ledger, TallyEntry};
pub(crate) use mine::{Me, Mine};
pub use runs::Run;
pub(crate) use stream::Turn;

use serde::{Deserialize, Serialize};

/// A data set that several peers may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// The fingerprint of the data set and of the way it is cut: peers with the same one share its
    /// blocks.
    pub name: u64,
    /// Into how many blocks it is cut; at least one.
    pub blocks: u32,
}

/// The blocks that a trainer trains in a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocks {
    /// In this order, and then those behind the last one.
    pub runs: Vec<Run>,
    /// How many of the first ones are trained already. The trainer goes on behind them, in the middle of a
    /// block if it was in the middle of that one. None if none of its training of them is kept: it
    /// begins with the first one.
    pub done: Option<u64>,
}

/// What a peer says with its contribution about the data behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// The pool.
    pub pool: u64,
    /// How many blocks it finished: of those that were dealt to it, the first ones.
    pub blocks: u16,
    /// Where its blocks begin, if none were dealt to it.
    pub from: Option<u64>,
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod simulated;
