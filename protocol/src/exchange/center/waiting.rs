//! The wait at the end of a round for peers that are too far behind.

use super::bound::Paces;
use crate::Time;
use core::time::Duration;

/// The wait for peers that are too far behind.
#[derive(Debug, Default)]
pub(super) struct Lead {
    pub(super) since: Option<Time>,
    /// Whether the round's end was told.
    pub(super) over: bool,
    pub(super) until: Option<Time>,
    /// Whether a wait under a smaller lead has missed its deadline in this round.
    pub(super) widest: bool,
    /// When this peer began its round.
    pub(super) began: Option<Time>,
    /// How long the round took it, without this wait.
    pub(super) took: Option<Duration>,
    pub(super) paces: Paces,
}
