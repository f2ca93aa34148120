//! What a peer remembers across restarts, as bytes inside its checkpoint.

use crate::core::view::SEATS_MAX;
use crate::limits::SNAPSHOT_BYTES_MAX;
use crate::wire::{WireError, check, decode_limited, encode_value};
use crate::{KeptSplit, PeerId, PlanHash, Round, TrainSummary};
use serde::{Deserialize, Serialize};

/// The version of the snapshot's layout.
pub const SNAPSHOT_VERSION: u8 = 7;

/// The version before, which says nothing of seats.
const WITHOUT_SEATS: u8 = 6;

/// The peer's own part of a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// [`SNAPSHOT_VERSION`].
    pub version: u8,
    /// The plan it belongs to.
    pub plan: PlanHash,
    /// The round that the saved parameters open.
    pub round: Round,
    /// Push-sum weight of the saved parameters, fragment by fragment; one after all-reduce.
    pub weights: Vec<f64>,
    /// Training of that round that the saved parameters already hold, where results are applied
    /// late.
    pub ahead: Option<TrainSummary>,
    /// Who takes part, where the swarm has a roll; otherwise empty.
    #[serde(with = "crate::wire::raw")]
    pub roll: Vec<u8>,
    /// The ledger of the data, where the swarm has one; otherwise empty. Where the pace follows losses, or
    /// the codec waits, the ledger and these, as in a state.
    #[serde(with = "crate::wire::raw")]
    pub ledger: Vec<u8>,
    /// The branch that the peer was in, and who was missing from it, after a split of the swarm.
    pub split: Option<Box<KeptSplit>>,
    /// Who counts where members sign: the contributors of the last results. One that comes back while the others
    /// are out of reach decides nothing alone.
    pub seats: Vec<PeerId>,
}

impl Snapshot {
    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode_value(self)
    }

    /// From bytes.
    ///
    /// # Errors
    /// If they have another version, are too long, do not decode, or hold a value that is out of its range.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        let mut bytes = std::borrow::Cow::Borrowed(bytes);
        match bytes.first().copied() {
            Some(SNAPSHOT_VERSION) | None => {}
            // Then no seats are at the end.
            Some(WITHOUT_SEATS) => bytes.to_mut().extend(0u64.to_le_bytes()),
            Some(theirs) => return Err(WireError::Version { theirs }),
        }
        let mut snapshot: Self = decode_limited::<_, SNAPSHOT_BYTES_MAX>(&bytes)?;
        snapshot.version = SNAPSHOT_VERSION;
        snapshot.split.as_deref().map_or(Ok(()), KeptSplit::check)?;
        check::ok(snapshot.seats.len() <= SEATS_MAX, "snapshot.seats")?;
        let mut weights = snapshot.weights.iter();
        check::ok(
            weights.all(|w| w.is_finite() && *w > 0.0),
            "snapshot.weights",
        )?;
        let ahead = snapshot.ahead.is_none_or(|done| done.loss.is_finite());
        check::ok(ahead, "snapshot.ahead")?;
        Ok(snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{
        BRANCH_BASES, DATA_LEDGER_BYTES_MAX, FRAGMENTS_MAX, ROLL_BYTES_MAX, VIEW_PEERS_MAX,
    };
    use crate::{Base, Branch, Digest};

    fn snapshot() -> Snapshot {
        let base = Base {
            round: Round(2),
            anchor: Digest::of(b"together"),
        };
        Snapshot {
            version: SNAPSHOT_VERSION,
            plan: PlanHash::from_bytes([3; 32]),
            round: Round(3),
            weights: vec![1.0; FRAGMENTS_MAX],
            ahead: None,
            roll: vec![7; ROLL_BYTES_MAX],
            ledger: vec![7; DATA_LEDGER_BYTES_MAX],
            split: Some(Box::new(KeptSplit {
                branch: Branch {
                    bases: [Some(base); BRANCH_BASES],
                    members: 3,
                    weight: 24.0,
                },
                missing: vec![PeerId::from_bytes([9; 32]); VIEW_PEERS_MAX],
                heaviest: 8.0,
            })),
            seats: vec![PeerId::from_bytes([5; 32]); SEATS_MAX],
        }
    }

    #[test]
    fn the_largest_roll_ledger_split_and_seats_fit_into_a_checkpoint() {
        let snapshot = snapshot();
        let bytes = snapshot.to_bytes();
        assert_eq!(Snapshot::from_bytes(&bytes), Ok(snapshot));
    }

    #[test]
    fn a_checkpoint_of_the_version_before_is_one_without_seats() {
        let now = Snapshot {
            seats: Vec::new(),
            ..snapshot()
        };
        let mut before = now.to_bytes();
        let count = before.split_off(before.len() - 8);
        assert_eq!(count, [0; 8], "no seats are their count at the end");
        before[0] = WITHOUT_SEATS;
        assert_eq!(Snapshot::from_bytes(&before), Ok(now));
        before[0] = WITHOUT_SEATS - 1;
        let theirs = WITHOUT_SEATS - 1;
        assert_eq!(
            Snapshot::from_bytes(&before),
            Err(WireError::Version { theirs })
        );
    }

    #[test]
    fn a_split_with_numbers_that_cannot_be_is_refused() {
        let mut bad = snapshot();
        if let Some(split) = &mut bad.split {
            split.heaviest = f64::NAN;
        }
        assert!(Snapshot::from_bytes(&bad.to_bytes()).is_err());
    }
}
