//! What is under way in a peer's round, and when things were last done.

use super::muster::Patience;
use crate::{FragmentId, OrderId, Round, Time, TrainSummary};
use std::collections::BTreeMap;

/// Orders of the round that are under way, and when things were last done.
#[derive(Debug, Default)]
pub(super) struct Life {
    pub(super) train: Option<OrderId>,
    /// The beginning of the next round's training.
    pub(super) ahead: Option<OrderId>,
    /// What it did, once it is done.
    pub(super) taken_ahead: Option<TrainSummary>,
    /// Whether the next round waits for training that is still under way.
    pub(super) held: bool,
    pub(super) applies: BTreeMap<OrderId, FragmentId>,
    pub(super) evaluate: Option<OrderId>,
    pub(super) save: Option<OrderId>,
    /// Whether this peer left the run while fragments of the round were undecided.
    pub(super) broken_off: bool,
    /// Whether this peer has told the others that it has met enough of them.
    pub(super) met: bool,
    /// Whether it has begun its first round of this life.
    pub(super) begun: bool,
    /// Whether most others' clocks differ from this peer's.
    pub(super) clock_off: bool,
    /// How far the wait before that has come.
    pub(super) patience: Patience,
    /// Whether the round found no group and continues.
    pub(super) alone: bool,
    pub(super) started: Time,
    pub(super) saved_at: Time,
    pub(super) saved_round: Option<Round>,
    pub(super) evaluated_round: Option<Round>,
}
