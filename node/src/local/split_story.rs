//! What the daemons say of a split and of the merge that follows, once for all of them.

use crate::progress::merged;
use serde::Serialize;

#[derive(Debug)]
pub(super) struct SplitStory {
    sides: Option<String>,
    split: bool,
    healed: bool,
    /// Merges of its sides, in the words of the daemon that told first.
    pub(super) entries: Vec<MergeEntry>,
}

impl SplitStory {
    pub(super) const fn new(sides: Option<String>) -> Self {
        Self {
            sides,
            split: false,
            healed: false,
            entries: Vec::new(),
        }
    }

    /// A daemon is cut off from others in this round, or no longer. Returns what there is to say, the first time.
    pub(super) fn told(&mut self, round: u64, away: usize) -> Option<String> {
        let told = match away {
            0 => &mut self.healed,
            _ => &mut self.split,
        };
        if std::mem::replace(told, true) {
            return None;
        }
        let sides = self.sides.as_deref().unwrap_or_default();
        Some(match away {
            0 => format!("the split ends: the first daemon is in round {round}"),
            _ => format!("the swarm is split: {sides}, from round {round}"),
        })
    }

    /// A daemon says that sides were merged. Returns what there is to say, the first time.
    pub(super) fn merged(&mut self, round: u64, sides: Vec<(u16, f64)>) -> Option<String> {
        if self.entries.iter().any(|merge| merge.round == round) {
            return None;
        }
        let text = merged(round, &sides);
        self.entries.push(MergeEntry { round, sides });
        Some(text)
    }
}

/// A merge of the sides of a swarm that was split.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MergeEntry {
    /// The round that merged them.
    pub round: u64,
    /// The sides, each with its members in the merge and its weight.
    pub sides: Vec<(u16, f64)>,
}
