//! What holds for any roll after any changes, and for any bytes.

use super::tests::record;
use super::*;
use crate::limits::GROUP_MEMBERS_MAX;
use crate::wire::RecordFields;
use proptest::collection::vec;
use proptest::prelude::*;

/// Leavers and newcomers by id; leavers may be absent, newcomers present, and all may be there twice.
type Ids = (Vec<u16>, Vec<u16>);

fn change((leave, join): &Ids, sites: u16) -> RollChange {
    RollChange {
        leave: leave.iter().map(|id| record(*id).peer).collect(),
        join: join.iter().map(|id| at_site(*id, sites)).collect(),
    }
}

/// A peer at one of some sites by its id; at its own where there are none.
fn at_site(id: u16, sites: u16) -> PeerRecord {
    let mut record = record(id);
    record.locality.site = (sites > 0).then(|| Site::measured(&(id % sites).to_be_bytes()));
    record
}

/// How many rows hold peers of several sites.
fn mixed_rows(roll: &Roll) -> usize {
    let grid = roll.grid();
    let sites = |row: usize| {
        let places = grid.row(row).filter_map(|place| roll.place(place));
        places.map(Place::site).collect::<SortedSet<_>>()
    };
    (0..grid.rows()).filter(|row| sites(*row).len() > 1).count()
}

fn any_ids(most: u16) -> impl Strategy<Value = Ids> {
    let some = usize::from(most);
    (vec(0..most, 0..some / 4), vec(0..most, 0..some))
}

/// Places are dense, each peer has one, and the grid covers all of them.
fn check(roll: &Roll) -> Result<(), TestCaseError> {
    let peers: SortedSet<PeerId> = roll.peers().collect();
    prop_assert_eq!(peers.len(), roll.len(), "a peer in two places");
    for (place, peer) in roll.peers().enumerate() {
        prop_assert_eq!(roll.place_of(peer), Some(place));
        prop_assert_eq!(roll.peer(place), Some(peer));
    }
    prop_assert!(roll.place(roll.len()).is_none());
    if roll.is_empty() {
        return Ok(());
    }
    let grid = roll.grid();
    prop_assert!(grid.rows() <= GROUP_MEMBERS_MAX, "{:?}", grid);
    prop_assert!(grid.columns() <= roll.len());
    let columns = (0..grid.columns()).flat_map(|column| grid.column(column));
    let mut covered: Vec<usize> = columns.collect();
    covered.sort_unstable();
    prop_assert!(covered.into_iter().eq(0..roll.len()));
    let back = Roll::from_bytes(&roll.to_bytes());
    prop_assert_eq!(back.map(|back| back.content), Ok(roll.content.clone()));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_changes_leave_a_roll_whole(
        first in vec(0..300u16, 1..200),
        row in prop_oneof![Just(0), 1..20u16],
        changes in vec(any_ids(300), 0..8),
        sites in 0..6u16,
    ) {
        let first = first.into_iter().map(|id| at_site(id, sites));
        let mut roll = Roll::arranged(first, row, Round(0));
        check(&roll)?;
        for (round, ids) in (1..).map(Round).zip(&changes) {
            let change = change(ids, sites);
            let next = roll.after(&change, round);
            check(&next)?;
            prop_assert!(next.len() <= 2 * roll.len(), "more than doubled");
            let leaves: SortedSet<PeerId> = change.leave.iter().copied().collect();
            let joins: SortedSet<PeerId> = change.join.iter().map(|r| r.peer).collect();
            // Who stays, and since when, is no accident.
            let stays = roll.peers().filter(|peer| !leaves.contains(peer));
            for peer in stays {
                let old = roll.place_of(peer).and_then(|place| roll.place(place));
                let new = next.place_of(peer).and_then(|place| next.place(place));
                prop_assert_eq!(old, new);
            }
            for peer in next.peers().filter(|peer| roll.place_of(*peer).is_none()) {
                prop_assert!(joins.contains(&peer));
                let place = next.place_of(peer).and_then(|place| next.place(place));
                prop_assert_eq!(place.map(|place| place.since), Some(round));
            }
            for peer in roll.peers().filter(|peer| leaves.contains(peer)) {
                prop_assert_eq!(next.place_of(peer), None);
            }
            // Only the last peers move, into the places of those that leave.
            let least = roll.len().min(next.len());
            let moved = (0..least).filter(|place| roll.peer(*place) != next.peer(*place));
            let holes: Vec<usize> = leaves.iter().filter_map(|p| roll.place_of(*p)).collect();
            for place in moved {
                prop_assert!(holes.contains(&place));
            }
            prop_assert_eq!(roll.after(&change, round).digest(), next.digest());
            roll = next;
            if roll.is_empty() {
                break;
            }
        }
    }

    #[test]
    fn few_rows_of_a_first_roll_hold_several_sites(
        first in vec(0..300u16, 1..200),
        row in prop_oneof![Just(0), 1..20u16],
        sites in 1..9u16,
    ) {
        let records: Vec<PeerRecord> = first.iter().map(|id| at_site(*id, sites)).collect();
        let roll = Roll::arranged(records.clone(), row, Round(0));
        check(&roll)?;
        let order = Roll::found(records, row, Round(0));
        let peers = |roll: &Roll| roll.peers().collect::<SortedSet<PeerId>>();
        prop_assert_eq!(peers(&roll), peers(&order));
        // What is left of each site is less than a row.
        prop_assert!(mixed_rows(&roll) <= usize::from(sites), "{:?}", roll.grid());
        prop_assert!(mixed_rows(&roll) <= mixed_rows(&order));
    }

    #[test]
    fn a_peer_is_not_placed_elsewhere_while_a_row_of_its_site_has_room(
        sites in 1..5u16,
        row in 2..6u16,
        (leave, join) in any_ids(60),
    ) {
        let roll = Roll::arranged((0..36).map(|id| at_site(id, sites)), row, Round(0));
        let next = roll.after(&change(&(leave, join), sites), Round(1));
        let grid = next.grid();
        let stays = |place: usize| next.peer(place) == roll.peer(place);
        let site = |place: usize| next.place(place).and_then(Place::site);
        // A peer that came into a row without one of its site left none of its places to a stranger.
        let fresh: Vec<usize> = (0..next.len()).filter(|place| !stays(*place)).collect();
        let at_home = |place: usize| {
            let mut row = grid.row(grid.row_of(place));
            row.any(|other| stays(other) && site(other) == site(place))
        };
        for away in fresh.iter().filter(|place| !at_home(**place)) {
            for other in fresh.iter().filter(|place| !at_home(**place)) {
                let mut row = grid.row(grid.row_of(*other));
                let home = row.any(|place| stays(place) && site(place) == site(*away));
                prop_assert!(!home, "{away} could have been at {other}");
            }
        }
    }

    #[test]
    fn a_change_comes_back_from_its_bytes(ids in any_ids(300)) {
        let mut change = change(&ids, 3);
        prop_assert_eq!(RollChange::from_bytes(&change.to_bytes()), Ok(change.clone()));
        change.cut();
        prop_assert_eq!(RollChange::from_bytes(&change.to_bytes()), Ok(change));
    }

    #[test]
    fn damaged_bytes_make_a_whole_roll_or_none(
        count in 1..80u16,
        row in 0..9u16,
        damage in vec((any::<u16>(), any::<u8>()), 0..4),
        cut in 0..40usize,
    ) {
        let roll = Roll::found((0..count).map(record), row, Round(0));
        let change = change(&((0..count).collect(), (count..2 * count).collect()), 2);
        for mut bytes in [roll.to_bytes(), change.to_bytes()] {
            for (at, by) in &damage {
                let at = usize::from(*at) % bytes.len();
                bytes[at] ^= by;
            }
            bytes.truncate(bytes.len().saturating_sub(cut));
            if let Ok(roll) = Roll::from_bytes(&bytes) {
                check(&roll)?;
                check(&roll.after(&change, Round(3)))?;
            }
            let _ = RollChange::from_bytes(&bytes);
        }
    }

    #[test]
    fn arbitrary_bytes_make_a_whole_roll_or_none(bytes in vec(any::<u8>(), 0..300)) {
        if let Ok(roll) = Roll::from_bytes(&bytes) {
            check(&roll)?;
        }
        let _ = RollChange::from_bytes(&bytes);
    }
}

#[test]
fn no_roll_grows_beyond_its_limit() {
    let most = ROLL_PEERS_MAX as u16;
    // Records of the usual length: a signature and a few addresses.
    let signed = |id| {
        PeerRecord::from(RecordFields {
            addresses: vec![vec![7; 24]; 3],
            signature: vec![8; 64],
            ..(*record(id)).clone()
        })
    };
    let roll = Roll::found((0..most - 2).map(signed), 0, Round(0));
    let join = (most..most + 9).map(signed).collect();
    let leave = vec![record(4).peer];
    let next = roll.after(&RollChange { leave, join }, Round(1));
    assert_eq!(next.len(), ROLL_PEERS_MAX);
    assert!(next.grid().rows() <= GROUP_MEMBERS_MAX);
    let bytes = next.to_bytes();
    println!("{} bytes", bytes.len());
    assert_eq!(Roll::from_bytes(&bytes), Ok(next));
}
