//! Directives: what the owner of a run changes while it trains. The owner signs them with the run key; the
//! host checks the signature before a peer sees one.
//!
//! Each one says from which round on it counts, so all peers change at the same point of the run. What is
//! in force in a round follows from the set of directives alone ([`Directives::in_force`]). Sets of two peers
//! merge in any order to the same set, so peers need no agreement about them, only to have heard of the
//! same ones.

mod change;
mod in_force;
mod set;
mod training;

pub use change::{Change, RateFactor};
pub use in_force::InForce;
pub use set::Directives;
pub use training::TrainingRules;

use crate::Round;
use serde::{Deserialize, Serialize};

/// One change of a run by its owner.
///
/// Directives are ordered by number, then by time. The last one of a kind that is in force counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Directive {
    /// Its number: one more than the highest that the owner knew.
    pub number: u32,
    /// When it was signed, in seconds since 1970. It orders two of one number.
    pub at_s: u64,
    /// The first round in which it is in force. Zero: at once.
    pub from: Round,
    /// What changes.
    pub change: Change,
}

impl Directive {
    /// Whether this one makes an older one void in every round.
    fn replaces(&self, older: &Self) -> bool {
        self > older && self.from <= older.from && self.change.is_like(&older.change)
    }
}
