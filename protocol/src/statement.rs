//! What members sign: the bytes under a signature. Every statement names the run and what it is
//! about, so that a signature counts in one place only.

use crate::wire::canonical;
use crate::{Digest, FragmentId, GroupTag, Round, RunId};
use serde::{Deserialize, Serialize};

/// The first bytes under every signature of this kind.
const PREFIX: &str = "murmurate statement 1";

/// A statement of one peer.
#[derive(Debug, Serialize)]
pub(crate) enum Statement {
    /// It has trained a round.
    Ready {
        round: Round,
        weight: f64,
        anchor: Digest,
        life: u64,
        forgets: bool,
    },
    /// It votes for a value.
    Vote(Place, u8, Digest),
    /// It has seen a certificate for a value and signs nothing below its ballot any more.
    Lock(Place, u8, Digest),
    /// It signs nothing below this ballot any more. Its vote of ballot zero, and ballot and value of
    /// its highest certificate.
    Promise(Place, u8, Option<Digest>, Option<(u8, Digest)>),
}

/// What a statement of a member is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) round: Round,
    pub(crate) fragment: FragmentId,
    pub(crate) group: GroupTag,
}

impl Statement {
    /// The bytes that are signed.
    pub(crate) fn bytes(&self, run: &RunId) -> Vec<u8> {
        canonical(&(PREFIX, run, self))
    }
}
