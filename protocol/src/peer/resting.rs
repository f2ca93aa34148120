//! What is known of the peers that wait for their first round.

use crate::{Base, Digest, PeerId, Round, Time};
use std::collections::{BTreeMap, BTreeSet};

/// What others say of the states with which peers wait for their first round.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// By the round of such a state.
    pub(super) rounds: BTreeMap<Round, Said>,
}

/// What others say of one round.
#[derive(Debug)]
pub(super) struct Said {
    /// Until when their answers are waited for.
    pub(super) until: Time,
    pub(super) asked: BTreeSet<PeerId>,
    /// How often those that are silent are asked again.
    pub(super) again: u8,
    /// With which parameters each of them began it, if it did.
    pub(super) began: BTreeMap<PeerId, Option<Digest>>,
}

impl Said {
    /// Whether answers may still come.
    pub(super) fn is_open(&self, now: Time) -> bool {
        now < self.until || self.again > 0
    }
}

/// Where this peer's state stands among those of the peers that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is the newest, or none is to be waited for.
    Newest,
    /// This one is to be taken over first.
    Behind(Base),
    /// Too few have said yet what they know.
    Unclear,
}
