//! What a member keeps while contributions are scored.

use crate::{PeerId, Score, Scores, Time};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

/// This peer's evaluation of the others' contributions, and what all say.
#[derive(Debug, Default)]
pub(super) struct ScoringState {
    /// Members whose contributions are still to be evaluated, the next one last.
    pub(super) queue: Vec<usize>,
    /// The loss at the anchor.
    pub(super) before: Option<f64>,
    /// What this peer says.
    pub(super) own: BTreeMap<usize, Score>,
    pub(super) began: Time,
    pub(super) took: Duration,
    /// Decided scores that are being read; `None` until that begins.
    pub(super) unread: Option<BTreeSet<u16>>,
    /// What the members say.
    pub(super) said: BTreeMap<PeerId, Scores>,
}
