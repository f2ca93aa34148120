//! The phases of a peer's life and the legal steps between them.

use core::fmt;
use serde::{Deserialize, Serialize};

/// Where a peer is in its round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Phase {
    /// Not started.
    New,
    /// Waits for enough peers, or for a state to start from.
    Join,
    /// Inner steps are under way.
    Train,
    /// Contributions are under way.
    Exchange,
    /// The result of the exchange is being applied.
    Apply,
    /// Between rounds: an evaluation or a checkpoint is under way.
    Settle,
    /// The owner has paused the run before this round.
    Paused,
    /// All rounds are done; still serves others.
    Finished,
    /// Writes its last checkpoint.
    Leaving,
    /// Done.
    Left,
}

impl Phase {
    /// Returns `true` if `next` may follow. Any phase before `Leaving` may turn to it.
    pub const fn may_become(self, next: Self) -> bool {
        use Phase::{Apply, Exchange, Finished, Join, Leaving, Left, New, Paused, Settle, Train};
        matches!(
            (self, next),
            (New, Join)
                | (Join, Train | Exchange | Settle | Finished)
                | (Train, Exchange | Join | Apply)
                | (Exchange, Apply | Join)
                | (Apply, Settle)
                | (Settle, Train | Exchange | Join | Paused | Finished)
                | (Paused, Train | Exchange | Join | Finished)
                | (Finished, Exchange | Join)
                | (Leaving, Left)
                | (
                    New | Join | Train | Exchange | Apply | Settle | Paused | Finished,
                    Leaving
                )
        )
    }

    /// All phases.
    pub const ALL: [Self; 10] = [
        Self::New,
        Self::Join,
        Self::Train,
        Self::Exchange,
        Self::Apply,
        Self::Settle,
        Self::Paused,
        Self::Finished,
        Self::Leaving,
        Self::Left,
    ];

    /// The phase in one word, as people and programs see it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Join => "join",
            Self::Train => "train",
            Self::Exchange => "exchange",
            Self::Apply => "apply",
            Self::Settle => "settle",
            Self::Paused => "paused",
            Self::Finished => "finished",
            Self::Leaving => "leaving",
            Self::Left => "left",
        }
    }

    /// The phase with this word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.word() == word)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
