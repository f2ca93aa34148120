//! The roll: who takes part in a swarm that is larger than one group, and where in its grid.
//!
//! Every peer holds the same roll in the same round. A round's exchange decides the next roll
//! beside the parameters, so no peer asks all others who is there. A peer that leaves is replaced by
//! a newcomer or by the last peer of the roll; all others keep their places, and with them their
//! links.
//!
//! **Source:** for membership as replicated state that changes in batches, Suresh et al. 2018,
//! "Stable and consistent membership at scale with Rapid".

mod change;
mod dealing;
mod founding;
mod founding_message;
mod islands;
mod shared;

pub(crate) use change::RoundNote;
pub use change::{RollChange, RollSeat};
pub use dealing::{Axes, Dealing};
pub(crate) use founding::Founding;
pub use founding_message::{FoundingBallot, FoundingMessage, RollName};
pub use shared::SharedRolls;

use crate::limits::{GROUP_MEMBERS_MAX, ROLL_BYTES_MAX, ROLL_PEERS_MAX};
use crate::sorted::{SortedMap, SortedSet};
use crate::wire::{PeerRecord, WireError, canonical, check, decode_limited};
use crate::{Digest, Locality, PeerId, RateClass, Round, Site};
use core::ops::Range;
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
    pub fn row_and_column(&self, place: usize) -> SortedSet<PeerId> {
        let grid = self.grid();
        let row = grid.row(grid.row_of(place));
        let above = (0..grid.columns()).map(|column| grid.owner(grid.row_of(place), column));
        let places = row.chain(above).chain(grid.column(grid.column_of(place)));
        let places = places.chain(grid.served(place)).filter(|p| *p != place);
        places.filter_map(|place| self.peer(place)).collect()
    }

    /// Who a place needs links with: its row and column, or those that rounds may deal into its cell.
    pub(crate) fn linked(&self, place: usize, dealing: Option<Dealing>) -> SortedSet<PeerId> {
        let Some(dealing) = dealing else {
            return self.row_and_column(place);
        };
        let others = dealing.met_by(place);
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

/// Room for newcomers when the number of columns is chosen: one in four.
const ROOM: usize = 4;

/// How many times its share of a shard an owner may carry before more members own parts.
const OWNER_LOAD: usize = 8;

const PART_OWNERS_MIN: usize = 4;

/// Rows and columns over the places of a roll: who sums what for whom.
///
/// Place p is in row p / g and column p mod g of a grid with g columns. A fragment is cut into g
/// shards. Each row sums shard s at its member in column s; the members of column s agree on the sum
/// over all rows; and every member hands its column's result to its row. So a peer talks to its row
/// and its column only, and an agreement never has more than [`GROUP_MEMBERS_MAX`] members.
///
/// The last row may be short. Its shards of the columns that it lacks are summed by the row above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    peers: usize,
    columns: usize,
}

impl Grid {
    /// A grid of at least one peer; more columns than peers are cut.
    pub fn new(peers: usize, columns: usize) -> Self {
        let peers = peers.max(1);
        Self {
            peers,
            columns: columns.clamp(1, peers),
        }
    }

    /// The number of columns for a number of peers. `row` is what the plan asks for; zero leaves it
    /// open. `now` is the number so far, which stays while it fits, because another one gives
    /// every peer other neighbours.
    pub fn columns_for(peers: usize, row: u16, now: usize) -> usize {
        let least = peers.div_ceil(GROUP_MEMBERS_MAX);
        if row > 0 {
            return usize::from(row).max(least);
        }
        match now {
            now if now > 0 && (least..=2 * least.max(2)).contains(&now) => now,
            _ if now == 0 || peers <= GROUP_MEMBERS_MAX => least,
            _ => (peers + peers / ROOM).div_ceil(GROUP_MEMBERS_MAX),
        }
    }

    /// Number of peers.
    pub const fn peers(&self) -> usize {
        self.peers
    }

    /// Number of columns, g: peers in a full row, and shards of a fragment.
    pub const fn columns(&self) -> usize {
        self.columns
    }

    /// Number of rows, c.
    pub const fn rows(&self) -> usize {
        self.peers.div_ceil(self.columns)
    }

    /// The row of a place.
    pub const fn row_of(&self, place: usize) -> usize {
        place / self.columns
    }

    /// The column of a place.
    pub const fn column_of(&self, place: usize) -> usize {
        place % self.columns
    }

    /// The places of a row.
    pub fn row(&self, row: usize) -> Range<usize> {
        let first = row * self.columns;
        first..(first + self.columns).min(self.peers)
    }

    /// The places of a column, row by row.
    pub fn column(&self, column: usize) -> impl Iterator<Item = usize> + use<> {
        (column..self.peers).step_by(self.columns)
    }

    /// The place that sums a row's contributions to a column's shard.
    pub const fn owner(&self, row: usize, column: usize) -> usize {
        let place = row * self.columns + column;
        if place < self.peers || row == 0 {
            place
        } else {
            place - self.columns
        }
    }

    /// The places whose contributions a place sums: its row, and the short row below that has no
    /// member in its column.
    pub fn served(&self, place: usize) -> impl Iterator<Item = usize> + use<> {
        let (row, column) = (self.row_of(place), self.column_of(place));
        let below = row + 1;
        let short = below < self.rows() && self.owner(below, column) == place;
        let extra = if short { self.row(below) } else { 0..0 };
        self.row(row).chain(extra)
    }

    /// Into how many parts a column cuts its shard, each with an owner: all members while that
    /// spreads the load, and few where a shard is small beside the model.
    ///
    /// An owner of one of o parts sends and receives c / (g o) models beyond what every member does.
    pub fn part_owners(&self, column: usize) -> usize {
        let members = self.column(column).count();
        let enough = (OWNER_LOAD * members).div_ceil(self.columns);
        enough.clamp(PART_OWNERS_MIN.min(members), members)
    }
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;

#[cfg(test)]
mod grid_tests {
    use super::*;

    #[test]
    fn every_contribution_is_summed_once_in_every_column() {
        for peers in 1..=300 {
            for columns in [1, 2, 3, 4, 9, 16, 33] {
                let grid = Grid::new(peers, columns);
                for column in 0..grid.columns() {
                    let mut seen = vec![0; peers];
                    for place in grid.column(column) {
                        grid.served(place).for_each(|from| seen[from] += 1);
                        for from in grid.served(place) {
                            assert_eq!(grid.owner(grid.row_of(from), column), place);
                        }
                    }
                    assert!(seen.iter().all(|n| *n == 1), "{grid:?} column {column}");
                }
            }
        }
    }

    #[test]
    fn no_column_is_larger_than_a_group() {
        let mut columns = 0;
        for peers in (1..=12_000).step_by(7) {
            columns = Grid::columns_for(peers, 0, columns);
            let grid = Grid::new(peers, columns);
            assert!(grid.rows() <= GROUP_MEMBERS_MAX, "{grid:?}");
            for column in [0, grid.columns() - 1] {
                let owners = grid.part_owners(column);
                assert!((1..=grid.column(column).count()).contains(&owners));
            }
        }
    }

    #[test]
    fn columns_stay_while_they_fit() {
        assert_eq!(Grid::columns_for(64, 0, 0), 1);
        assert_eq!(Grid::columns_for(1000, 0, 0), 16);
        assert_eq!(Grid::columns_for(1000, 0, 20), 20);
        assert_eq!(Grid::columns_for(1300, 0, 20), 26);
        assert_eq!(Grid::columns_for(9, 3, 0), 3);
        assert_eq!(Grid::columns_for(1000, 3, 3), 16, "a column holds no more");
    }
}
