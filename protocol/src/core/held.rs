//! What a peer's context holds beside the clock and the view: of this life, of its roll, of its data.

use crate::data::Mine;
use crate::roll::{RoundNote, SharedRolls};
use crate::{Chosen, Ledger, Loss, Losses, PeerId, Ratings, Roll, Round, Score, Taken};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What tells this life of a peer from others.
#[derive(Debug, Default)]
pub(crate) struct ThisLife {
    /// Tells it from earlier ones. Statements of an earlier life count in no group of this one.
    pub(crate) session: u64,
    /// Whether this peer took rounds over from others and has not been in a group since: it may not
    /// know all peers yet.
    pub(crate) newcomer: bool,
    /// The last round that this peer's contribution could not be made for.
    pub(crate) failed_in: Option<Round>,
}

/// The roll of a swarm that has one.
#[derive(Debug, Default)]
pub(crate) struct Rolls {
    /// Who takes part in the round.
    pub(crate) roll: Option<Arc<Roll>>,
    /// What the round has decided about the next one.
    pub(crate) note: Vec<u8>,
    /// Those that other peers of this process hold.
    pub(crate) shared: SharedRolls,
    /// The peers of this one's row and column, or of its cells.
    pub(crate) mates: Arc<BTreeSet<PeerId>>,
}

impl Rolls {
    /// What the round's note says, if the round has one. All peers have the same bytes, so a note that cannot
    /// be read changes nothing at any of them.
    pub(crate) fn take_note(&mut self) -> Option<RoundNote> {
        let note = std::mem::take(&mut self.note);
        (!note.is_empty()).then(|| RoundNote::from_bytes(&note).unwrap_or_default())
    }
}

/// Who trains which data, and with which loss, where the peers agree on it.
#[derive(Debug, Default)]
pub(crate) struct Data {
    pub(crate) ledger: Ledger,
    /// What this peer trains.
    pub(crate) mine: Mine,
    /// What it says of that with its contribution to the round.
    pub(crate) taken: Option<Taken>,
    /// The loss that it says with its contribution, where the pace follows losses.
    pub(crate) loss: Option<Loss>,
    pub(crate) losses: Losses,
    /// The codec of the round, where members choose it by waits.
    pub(crate) chosen: Chosen,
    pub(crate) ratings: Ratings,
    /// The scores that the members of a round agreed on, until the round is over.
    pub(crate) judged: Option<(Round, Vec<(PeerId, Score)>)>,
}
