//! What another peer said when it had trained.

use super::signed_message::Seat;
use crate::{Digest, Loss, Round, Taken};

/// A peer that finished training a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    pub(super) round: Round,
    pub(super) weight: f64,
    /// Hash of its anchor, and of the owner's rules where there are any.
    pub(super) anchor: Digest,
    /// Whether it may propose a group.
    pub(super) proposes: bool,
    /// The data behind its contribution, where peers agree on the data.
    pub(super) taken: Option<Taken>,
    /// Its training loss, where the pace follows it.
    pub(super) loss: Option<Loss>,
    /// Its signed words, where members sign.
    pub(super) seat: Option<Seat>,
}
