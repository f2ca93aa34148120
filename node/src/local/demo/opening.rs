//! The story of the first round: until all daemons hold the same model.

use super::seen::{Seen, daemons};
use crate::events::Kind;
use std::collections::BTreeMap;

/// The daemons that start together.
#[derive(Debug)]
pub(super) struct Opening {
    /// For each one the digest of its parameters after the first round, once it has ended that.
    digests: BTreeMap<usize, Option<String>>,
    round: Option<u64>,
    told: bool,
}

impl Opening {
    pub(super) fn new(indexes: &[usize]) -> Self {
        Self {
            digests: indexes.iter().map(|index| (*index, None)).collect(),
            round: None,
            told: false,
        }
    }

    /// Takes an entry. Returns a sentence when the last daemon has ended the first round.
    pub(super) fn take(&mut self, seen: &Seen<'_>) -> Option<String> {
        let Kind::RoundEnded { digest, .. } = &seen.entry.kind else {
            return None;
        };
        let round = *self.round.get_or_insert(seen.entry.round);
        if self.told || seen.entry.round != round {
            return None;
        }
        *self.digests.get_mut(&seen.index)? = Some(digest.clone());
        let digests: Option<Vec<&String>> = self.digests.values().map(Option::as_ref).collect();
        let digests = digests?;
        self.told = true;
        let same = digests.iter().all(|other| *other == digests[0]);
        let what = if same {
            "the same model"
        } else {
            "models that differ"
        };
        Some(format!(
            "{} have trained for one round, averaged what they learned, and hold {what}.",
            daemons(self.digests.keys())
        ))
    }
}
