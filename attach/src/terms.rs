//! The terms of a session: what the daemon tells a trainer, and how it treats it.

use murmurate_strategies::Rank;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The kind of a trainer's contribution to a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// It steps with its own optimizer, and the change of its parameters is exchanged.
    Deltas,
    /// It computes the gradient of one batch, and the daemon moves the parameters.
    Gradients,
}

/// A shard of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Its number, from zero.
    pub index: u32,
    /// Number of shards.
    pub of: u32,
}

/// Shows a line to the operator. Called from several threads.
pub type Notes = Arc<dyn Fn(&str) + Send + Sync>;

/// The terms of a session: what the daemon tells a trainer, and how it treats it.
#[derive(Clone)]
pub struct Terms {
    /// The directory of the socket. It is made if it is missing, readable by its owner only.
    pub dir: PathBuf,
    /// The run's name.
    pub run: String,
    /// The run's seed.
    pub seed: u64,
    /// Which shard of the data is this daemon's, from zero.
    pub shard: u32,
    /// Number of shards.
    pub shards: u32,
    /// The live peers divide the data: shard and shards change with them.
    pub dealt: bool,
    /// Which of its daemon's trainers it is: the ranks of an island divide the daemon's part of the data.
    pub rank: Rank,
    /// The kind of contribution.
    pub mode: Mode,
    /// The least time without an inner step after which a trainer counts as hung.
    pub patience: Duration,
    /// Shows a line to the operator.
    pub notes: Notes,
}

impl Terms {
    /// This trainer's part of the data.
    pub(crate) const fn part(&self) -> Shard {
        let (index, of) = self.rank.of_shard(self.shard, self.shards);
        Shard { index, of }
    }

    /// Its name in notes.
    pub(crate) fn name(&self) -> String {
        if self.rank.is_alone() {
            "the trainer".to_owned()
        } else {
            format!("rank {} of the trainer", self.rank.index)
        }
    }
}

impl std::fmt::Debug for Terms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terms")
            .field("dir", &self.dir)
            .field("run", &self.run)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}
