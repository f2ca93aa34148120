//! What a round decides about the roll, and, in the note of the column that decides it, about the data.

use crate::data::Tally;
use crate::limits::{ROLL_CHANGE_BYTES_MAX, ROLL_PEERS_MAX, ROUND_NOTE_BYTES_MAX};
use crate::roll::{Place, Roll};
use crate::wire::{PeerRecord, WireError, decode_limited, decode_value, encode_value};
use crate::{PeerId, Round, Taken};
use serde::{Deserialize, Serialize};

/// Peers that leave the roll and peers that enter it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollChange {
    /// Peers that did not contribute, or said that they leave.
    pub leave: Vec<PeerId>,
    /// Newcomers, with where they can be reached.
    pub join: Vec<PeerRecord>,
}

impl RollChange {
    /// Returns `true` if it changes nothing.
    pub const fn is_empty(&self) -> bool {
        self.leave.is_empty() && self.join.is_empty()
    }

    /// As bytes; none where it changes nothing.
    pub fn to_bytes(&self) -> Vec<u8> {
        if self.is_empty() {
            Vec::new()
        } else {
            encode_value(self)
        }
    }

    /// From bytes.
    ///
    /// # Errors
    /// If there are more than [`ROLL_CHANGE_BYTES_MAX`], they do not decode, or a record is invalid.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        if bytes.len() > ROLL_CHANGE_BYTES_MAX {
            return Err(WireError::TooLong {
                bytes: bytes.len() as u64,
                max: ROLL_CHANGE_BYTES_MAX as u64,
            });
        }
        let change: Self = decode_value(bytes)?;
        change.join.iter().try_for_each(PeerRecord::check)?;
        Ok(change)
    }

    /// Drops newcomers, and then leavers, until it fits into a round.
    pub fn cut(&mut self) {
        let room = |list: usize| list <= ROLL_CHANGE_BYTES_MAX - 16;
        let mut bytes = 0;
        self.leave.retain(|_| {
            bytes += 32;
            room(bytes)
        });
        self.join.retain(|record| {
            bytes += record.wire_bytes();
            room(bytes)
        });
    }
}

/// A round's note.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RoundNote {
    /// Who leaves the roll, and who enters.
    pub(crate) change: RollChange,
    /// Whose contributions are in the column's sum, with the data behind them.
    pub(crate) tally: Tally,
}

/// Both parts as bytes, each empty where it says nothing.
#[derive(Serialize, Deserialize)]
struct Parts {
    change: Vec<u8>,
    tally: Vec<u8>,
}

impl RoundNote {
    /// Puts a note together from the bytes of its parts; empty if both are.
    pub(crate) fn join(change: Vec<u8>, tally: Vec<u8>) -> Vec<u8> {
        if change.is_empty() && tally.is_empty() {
            Vec::new()
        } else {
            encode_value(&Parts { change, tally })
        }
    }

    /// From bytes.
    ///
    /// # Errors
    /// If there are too many, they do not decode, or the change or the tally in them is invalid.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let parts: Parts = decode_limited::<_, ROUND_NOTE_BYTES_MAX>(bytes)?;
        Ok(Self {
            change: RollChange::from_bytes(&parts.change)?,
            tally: Tally::from_bytes(&parts.tally)?,
        })
    }

    pub(crate) fn counted(&self, roll: &Roll) -> Vec<(PeerId, Taken)> {
        let known = self.tally.entries();
        known
            .filter_map(|entry| Some((roll.peer(usize::from(entry.place))?, entry.taken)))
            .collect()
    }
}

/// Another holder of a place.
///
/// Peers that know the same changes hold the same roll, in whatever order they learned of them: of
/// two holders of a place the later one has it, and a peer has the latest of its places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollSeat {
    /// The place.
    pub place: u32,
    /// Its new holder, in its own words.
    pub record: PeerRecord,
    /// The round from which it holds the place.
    pub since: Round,
}

impl RollSeat {
    /// What decides between two holders of a place: the higher one has it.
    pub(crate) fn rank(&self) -> (Round, PeerId) {
        (self.since, self.record.peer)
    }
}

impl Roll {
    /// The roll after these changes, in the order of their rounds; `None` if none of them changes it. A
    /// place behind the last one adds one. The peer that held the place takes the one that its new holder
    /// had, if there is one: all others keep theirs.
    pub(crate) fn seated(&self, mut changes: Vec<RollSeat>) -> Option<Self> {
        changes.sort_by_key(|change| (change.since, change.place, change.record.peer));
        let mut places = self.content.places.clone();
        let mut index = self.index.clone();
        let mut changed = false;
        for change in changes {
            let (at, rank, peer) = (change.place as usize, change.rank(), change.record.peer);
            let had = index.get(&peer).map(|place| *place as usize);
            let holds = had.and_then(|had| places.get(had));
            let older = places
                .get(at)
                .is_none_or(|held| (held.since, held.record.peer) < rank);
            if !older || holds.is_some_and(|held| held.since >= change.since) {
                continue;
            }
            let place = Place {
                record: change.record,
                since: change.since,
            };
            match had {
                _ if at > places.len() || at >= ROLL_PEERS_MAX => continue,
                // Its old place would stay empty.
                Some(_) if at == places.len() => continue,
                None if at == places.len() => places.push(place),
                had => {
                    let before = std::mem::replace(&mut places[at], place);
                    index.remove(&before.record.peer);
                    if let Some(had) = had {
                        index.insert(before.record.peer, had as u32);
                        places[had] = before;
                    }
                }
            }
            index.insert(peer, at as u32);
            changed = true;
        }
        changed.then(|| Self::with_places(places, self.content.row, self.content.columns))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;
    use crate::{Round, TallyEntry};

    #[test]
    fn a_note_says_both_or_nothing() {
        let (pool, blocks, from) = (4, 5, None);
        let taken = Taken { pool, blocks, from };
        let tally = Tally::of(&[2, 1, 9].map(|place| TallyEntry { place, taken }));
        let change = RollChange {
            leave: vec![record(3).peer],
            join: Vec::new(),
        };
        let bytes = RoundNote::join(change.to_bytes(), tally.to_bytes());
        let note = RoundNote::from_bytes(&bytes).unwrap();
        assert_eq!(note, RoundNote { change, tally });
        let roll = Roll::found((0..4).map(record), 2, Round(0));
        // The roll has no ninth place.
        let counted = [1, 2].map(|place| (roll.peer(place).unwrap(), taken));
        assert_eq!(note.counted(&roll), counted);
        assert!(RoundNote::join(Vec::new(), Vec::new()).is_empty());
        assert_eq!(RoundNote::from_bytes(&[]), Ok(RoundNote::default()));
        assert!(RoundNote::from_bytes(&bytes[..bytes.len() - 1]).is_err());
    }
}

#[cfg(test)]
mod seat_tests {
    use super::*;
    use crate::roll::tests::record;

    fn roll() -> Roll {
        Roll::found((0..6).map(record), 4, Round(0))
    }

    fn seat(place: u32, peer: u16, since: u64) -> RollSeat {
        RollSeat {
            place,
            record: record(peer),
            since: Round(since),
        }
    }

    #[test]
    fn a_newcomer_takes_a_place_or_adds_one_and_no_other_peer_moves() {
        let after = roll().seated(vec![seat(2, 50, 7), seat(6, 51, 7)]).unwrap();
        assert_eq!(after.place_of(record(50).peer), Some(2));
        assert_eq!(after.place_of(record(51).peer), Some(6));
        assert_eq!(after.place_of(record(2).peer), None);
        for other in [0, 1, 3, 4, 5] {
            let peer = record(other).peer;
            assert_eq!(after.place_of(peer), roll().place_of(peer));
        }
        assert!(roll().seated(vec![seat(9, 50, 7)]).is_none(), "a gap");
    }

    #[test]
    fn peers_hold_the_same_roll_in_whatever_order_they_learn_of_changes() {
        let changes = [
            seat(2, 50, 7),
            seat(2, 51, 9),
            seat(6, 52, 8),
            seat(3, 50, 9),
        ];
        let at_once = roll().seated(changes.to_vec()).unwrap();
        for first in 0..changes.len() {
            let mut later = changes.to_vec();
            let one = later.remove(first);
            let after = roll().seated(later).map(|roll| {
                let again = roll.seated(vec![one]);
                again.unwrap_or(roll)
            });
            let after = after.unwrap();
            // Places of peers that have left may differ: no other peer has them.
            for peer in [51, 52, 50] {
                let peer = record(peer).peer;
                assert_eq!(after.place_of(peer), at_once.place_of(peer), "{first}");
            }
        }
        assert!(at_once.seated(changes.to_vec()).is_none(), "nothing is new");
    }

    #[test]
    fn no_peer_has_two_places() {
        let twice = roll().seated(vec![seat(2, 50, 7), seat(4, 50, 8)]).unwrap();
        assert_eq!(twice.place_of(record(50).peer), Some(4));
        assert_eq!(twice.len(), 6);
        let peers: crate::sorted::SortedSet<PeerId> = twice.peers().collect();
        assert_eq!(peers.len(), 6);
        assert!(Roll::from_bytes(&twice.to_bytes()).is_ok());
    }
}
