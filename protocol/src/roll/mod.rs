//! The roll: who takes part in a swarm that is larger than one group, and where in its grid.
//!
//! Every peer holds the same roll in the same round. A round's exchange decides the next roll
//! beside the parameters, so no peer asks all others who is there. A peer that leaves is replaced by
//! a newcomer or by the last peer of the roll; all others keep their places, and with them their
//! links.
//!
//! **Source:** for membership as replicated state that changes in batches, Suresh et al. 2018,
//! "Stable and consistent membership at scale with Rapid".

mod acceptor;
mod axes;
mod change;
mod dealing;
mod founding;
mod founding_message;
mod grid;
mod islands;
mod pages;
mod register;
mod seat;
mod shared;

pub use axes::Axes;
pub use change::RollChange;
pub(crate) use change::RoundNote;
pub use dealing::Dealing;
pub(crate) use founding::Founding;
pub use founding_message::{FoundingBallot, FoundingMessage, RollName};
pub use grid::Grid;
pub use seat::RollSeat;
pub use shared::SharedRolls;

use crate::limits::{GROUP_MEMBERS_MAX, ROLL_BYTES_MAX, ROLL_PEERS_MAX};
use crate::sorted::{SortedMap, SortedSet};
use crate::wire::{PeerRecord, WireError, canonical, check, decode_limited};
use crate::{Digest, Locality, PeerId, RateClass, Round, Site};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// One peer's place in the roll.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Where the peer can be reached, in its own words when it entered.
    pub record: PeerRecord,
    /// The round from which it is in the roll.
    pub since: Round,
}

impl Place {
    fn site(&self) -> Option<&Site> {
        self.record.locality.site.as_ref()
    }

    /// How fast the peer sends, if that is known.
    pub(crate) fn rate(&self) -> Option<RateClass> {
        self.record.locality.rate
    }
}

/// What a roll consists of; [`Roll`] adds what follows from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    /// Peers in a row, as the plan asks; zero where the size decides.
    row: u16,
    columns: u16,
    places: Vec<Place>,
}

/// Who takes part, place by place.
#[derive(Clone, Debug)]
pub struct Roll {
    content: Content,
    index: SortedMap<PeerId, u32>,
    digest: Digest,
    newest: Round,
    /// Set if it knows how fast some of its peers send.
    rated: bool,
    /// Its bytes, once a state or a checkpoint needed them. Most rolls last for many of these.
    bytes: OnceLock<Vec<u8>>,
}

impl PartialEq for Roll {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Roll {
    /// The first roll of a run. Peers take places in the order in which they are given; a peer that is
    /// given twice has the first of them. `row` peers make a row; zero leaves that to the size.
    pub fn found(records: impl IntoIterator<Item = PeerRecord>, row: u16, round: Round) -> Self {
        let mut known = BTreeSet::new();
        let mut places = Vec::new();
        for record in records.into_iter().take(ROLL_PEERS_MAX) {
            if known.insert(record.peer) {
                let since = round;
                places.push(Place { record, since });
            }
        }
        Self::with_places(places, row, 0)
    }

    /// The same, with rows within sites: peers of a site take places side by side. The order stays where that would
    /// mix the sites of more rows.
    pub fn arranged(records: impl IntoIterator<Item = PeerRecord>, row: u16, round: Round) -> Self {
        let found = Self::found(records, row, round);
        let Content { columns, .. } = found.content;
        let places = &found.content.places;
        let sites: Vec<Option<&Site>> = places.iter().map(Place::site).collect();
        let mut order: Vec<usize> = (0..places.len()).collect();
        let seats = islands::seats(&sites, &order, usize::from(columns), |_| Vec::new());
        order.sort_unstable_by_key(|peer| seats[*peer]);
        let places = order.into_iter().map(|peer| places[peer].clone()).collect();
        let arranged = Self::of(Content {
            row,
            columns,
            places,
        });
        if arranged.mixed_rows() > found.mixed_rows() {
            return found;
        }
        arranged
    }

    /// Number of rows with peers of several sites.
    fn mixed_rows(&self) -> usize {
        let grid = self.grid();
        let rows = (0..grid.rows()).map(|row| &self.content.places[grid.row(row)]);
        let mixed = |row: &&[Place]| row.iter().any(|place| place.site() != row[0].site());
        rows.filter(mixed).count()
    }

    /// With as many columns as these places need; `columns` so far, zero without a roll before it.
    fn with_places(places: Vec<Place>, row: u16, columns: u16) -> Self {
        let columns = Grid::columns_for(places.len(), row, usize::from(columns)) as u16;
        Self::of(Content {
            row,
            columns,
            places,
        })
    }

    fn of(content: Content) -> Self {
        let peers = content.places.iter().map(|place| place.record.peer);
        let index = peers.zip(0u32..).collect();
        // Addresses may change without a new roll, so they are no part of its name. What places and
        // duties follow from is.
        let names = content.places.iter();
        let names = names.map(|p| (p.record.peer, p.since, &p.record.locality));
        let names: Vec<(PeerId, Round, &Locality)> = names.collect();
        let digest = Digest::of(&canonical(&(content.row, content.columns, names)));
        let newest = content.places.iter().map(|place| place.since).max();
        let rated = content.places.iter().any(|place| place.rate().is_some());
        Self {
            content,
            index,
            digest,
            newest: newest.unwrap_or_default(),
            rated,
            bytes: OnceLock::new(),
        }
    }

    /// The round from which its newest peers are in it.
    pub const fn newest(&self) -> Round {
        self.newest
    }

    /// Set if it knows how fast some of its peers send.
    pub(crate) const fn is_rated(&self) -> bool {
        self.rated
    }

    fn records(&self) -> impl Iterator<Item = &PeerRecord> {
        self.content.places.iter().map(|place| &place.record)
    }

    /// Names the roll: who is in it, where, since when, at which site, and how fast it sends.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Number of peers.
    pub const fn len(&self) -> usize {
        self.content.places.len()
    }

    /// Returns `true` if no peer is in it.
    pub const fn is_empty(&self) -> bool {
        self.content.places.is_empty()
    }

    /// Its rows and columns.
    pub fn grid(&self) -> Grid {
        Grid::new(self.len(), usize::from(self.content.columns))
    }

    /// The place of a peer.
    pub fn place_of(&self, peer: PeerId) -> Option<usize> {
        self.index.get(&peer).map(|place| *place as usize)
    }

    /// The peer at a place.
    pub fn peer(&self, place: usize) -> Option<PeerId> {
        self.place(place).map(|place| place.record.peer)
    }

    /// A place.
    pub fn place(&self, place: usize) -> Option<&Place> {
        self.content.places.get(place)
    }

    /// The peers in the row and in the column of a place, and those that sum for a short row.
    pub fn mates(&self, place: usize) -> SortedSet<PeerId> {
        let grid = self.grid();
        let row = grid.row(grid.row_of(place));
        let above = (0..grid.columns()).map(|column| grid.owner(grid.row_of(place), column));
        let places = row.chain(above).chain(grid.column(grid.column_of(place)));
        let places = places.chain(grid.served(place)).filter(|p| *p != place);
        places.filter_map(|place| self.peer(place)).collect()
    }

    /// Who a place needs links with: its mates, or those that rounds may deal into its cell.
    pub(crate) fn linked(&self, place: usize, dealing: Option<Dealing>) -> SortedSet<PeerId> {
        let Some(dealing) = dealing else {
            return self.mates(place);
        };
        let others = dealing.mates(place);
        others.filter_map(|other| self.peer(other)).collect()
    }

    /// All peers, place by place.
    pub fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.content.places.iter().map(|place| place.record.peer)
    }

    /// The roll after a change that a round decided, in force from `round` on. Newcomers take the
    /// places of those that leave. The last peers take the places left over; more newcomers get places
    /// at the end. Of the free places a peer takes one in a row of its site if there is one. No roll
    /// grows to more than twice its size at once, or beyond [`ROLL_PEERS_MAX`].
    pub fn after(&self, change: &RollChange, round: Round) -> Self {
        let mut places: Vec<Option<Place>> =
            self.content.places.iter().cloned().map(Some).collect();
        let leaves = change.leave.iter().filter_map(|p| self.place_of(*p));
        let leaves: SortedSet<usize> = leaves.collect();
        leaves.iter().for_each(|hole| places[*hole] = None);
        let most = (2 * self.len()).min(ROLL_PEERS_MAX);
        let mut comes = self.newcomers(change, round);
        comes.truncate(leaves.len() + most.saturating_sub(self.len()));
        let len = self.len() - leaves.len() + comes.len();
        // Only the last peers move, the very last first.
        while places.len() > len {
            comes.extend(places.pop().flatten());
        }
        places.resize(len, None);
        self.fill(&mut places, comes);
        let places: Vec<Place> = places.into_iter().flatten().collect();
        Self::with_places(places, self.content.row, self.content.columns)
    }

    fn newcomers(&self, change: &RollChange, since: Round) -> Vec<Place> {
        let mut entered = BTreeSet::new();
        let fresh = change.join.iter().cloned();
        let fresh = fresh.filter(|r| self.place_of(r.peer).is_none() && entered.insert(r.peer));
        fresh.map(|record| Place { record, since }).collect()
    }

    fn fill(&self, places: &mut [Option<Place>], comes: Vec<Place>) {
        let free: Vec<usize> = (0..places.len()).filter(|p| places[*p].is_none()).collect();
        let columns = usize::from(self.content.columns).max(1);
        let seats = {
            let sites: Vec<Option<&Site>> = comes.iter().map(Place::site).collect();
            let taken = |row: usize| {
                let row = places.iter().skip(row * columns).take(columns);
                row.flatten().map(Place::site).collect()
            };
            islands::seats(&sites, &free, columns, taken)
        };
        for (place, comes) in seats.into_iter().zip(comes) {
            places[place] = Some(comes);
        }
    }

    /// As bytes, for states and checkpoints.
    pub fn to_bytes(&self) -> Vec<u8> {
        let encode = || crate::wire::encode_value(&self.content);
        self.bytes.get_or_init(encode).clone()
    }

    /// From bytes.
    ///
    /// # Errors
    /// If they do not decode, or hold a peer twice, an invalid record, no columns, no peer, or too many peers or rows.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        let content: Content = decode_limited::<_, ROLL_BYTES_MAX>(bytes)?;
        let (places, columns) = (content.places.len(), usize::from(content.columns));
        check::ok((1..=ROLL_PEERS_MAX).contains(&places), "roll.places")?;
        let rows = Grid::new(places, columns).rows();
        check::ok(columns > 0 && rows <= GROUP_MEMBERS_MAX, "roll.columns")?;
        content.places.iter().try_for_each(|p| p.record.check())?;
        let roll = Self::of(content);
        check::ok(roll.index.len() == places, "roll: a peer in two places")?;
        Ok(roll)
    }
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
