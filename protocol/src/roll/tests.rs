//! Places after changes, and rolls as bytes.

use super::*;
use crate::wire::RecordFields;
use crate::{RateClass, RunId, Time};

pub(super) fn record(id: u16) -> PeerRecord {
    let mut bytes = [0; 32];
    bytes[..2].copy_from_slice(&id.to_be_bytes());
    PeerRecord::from(RecordFields {
        peer: PeerId::from_bytes(bytes),
        run: RunId::from_bytes([1; 32]),
        sequence: 1,
        expires: Time::NEVER,
        addresses: Vec::new(),
        locality: crate::Locality::default(),
        signature: Vec::new(),
    })
}

fn ids(roll: &Roll) -> Vec<u16> {
    let first = |peer: PeerId| u16::from_be_bytes([peer.as_bytes()[0], peer.as_bytes()[1]]);
    roll.peers().map(first).collect()
}

fn change(leave: &[u16], join: &[u16]) -> RollChange {
    RollChange {
        leave: leave.iter().map(|id| record(*id).peer).collect(),
        join: join.iter().map(|id| record(*id)).collect(),
    }
}

#[test]
fn newcomers_fill_holes_and_the_last_fill_what_is_left() {
    let roll = Roll::found((0..9).map(record), 3, Round(0));
    let next = roll.after(&change(&[2, 4, 7], &[20]), Round(5));
    assert_eq!(ids(&next), [0, 1, 20, 3, 8, 5, 6]);
    assert_eq!(next.place(2).map(|p| p.since), Some(Round(5)));
    let same = roll.after(&RollChange::default(), Round(1));
    assert_eq!(same.digest(), roll.digest(), "nothing changed");
    let gone = roll.after(&change(&[6, 7, 8], &[]), Round(1));
    assert_eq!(ids(&gone), [0, 1, 2, 3, 4, 5]);
    let two = roll.after(&change(&[0, 8, 7], &[]), Round(1));
    assert_eq!(ids(&two), [6, 1, 2, 3, 4, 5]);
}

/// Peers by their ids, each at a site.
fn at(sites: &[(&str, &[u16])]) -> Vec<PeerRecord> {
    let mut records = Vec::new();
    for (label, ids) in sites {
        for id in *ids {
            let mut one = record(*id);
            one.locality.site = (!label.is_empty()).then(|| Site::new(label).unwrap());
            records.push(one);
        }
    }
    records
}

#[test]
fn rows_are_within_sites_and_a_roll_names_them() {
    let mut records = at(&[("x", &[0, 2, 4, 6]), ("y", &[1, 3, 5, 7])]);
    records.sort_by_key(|record| record.peer);
    let roll = Roll::arranged(records.clone(), 4, Round(0));
    assert_eq!(ids(&roll), [0, 2, 4, 6, 1, 3, 5, 7]);
    // The same peers in the same places, at other sites, or with other rates.
    let mut alone = records.clone();
    alone.iter_mut().for_each(|r| r.locality.site = None);
    let alone = Roll::arranged(alone, 4, Round(0));
    assert_eq!(ids(&alone), [0, 1, 2, 3, 4, 5, 6, 7]);
    let placed: Vec<PeerRecord> = roll.records().cloned().collect();
    assert_eq!(
        Roll::found(placed.clone(), 4, Round(0)).digest(),
        roll.digest()
    );
    let mut faster = placed;
    faster[3].locality.rate = Some(RateClass::of(1 << 20));
    assert_ne!(Roll::found(faster, 4, Round(0)).digest(), roll.digest());
}

#[test]
fn holes_are_filled_by_newcomers_of_the_site_and_then_by_its_last_peers() {
    let all = at(&[
        ("x", &[0, 1, 2]),
        ("y", &[3, 4, 5]),
        ("x", &[6]),
        ("y", &[7]),
    ]);
    let roll = Roll::arranged(all, 3, Round(0));
    assert_eq!(ids(&roll), [0, 1, 2, 3, 4, 5, 6, 7]);
    let mut change = change(&[1, 4], &[]);
    change.join = at(&[("", &[20]), ("y", &[21]), ("x", &[22])]);
    let next = roll.after(&change, Round(1));
    assert_eq!(ids(&next), [0, 22, 2, 3, 21, 5, 6, 7, 20]);
    // Without newcomers the last ones move: each to its site, though the very last is at the first hole.
    change.join.clear();
    let next = roll.after(&change, Round(1));
    assert_eq!(ids(&next), [0, 6, 2, 3, 7, 5]);
    // One newcomer at a site of its own takes what the others leave.
    change.join = at(&[("z", &[20])]);
    let next = roll.after(&change, Round(1));
    assert_eq!(ids(&next), [0, 20, 2, 3, 7, 5, 6]);
}

#[test]
fn a_newcomer_with_two_records_has_the_place_of_the_first() {
    let roll = Roll::arranged(at(&[("x", &[0, 1]), ("y", &[2, 3])]), 2, Round(0));
    let mut change = change(&[0, 2], &[]);
    change.join = at(&[("y", &[9]), ("x", &[9, 8])]);
    let next = roll.after(&change, Round(1));
    assert_eq!(ids(&next), [8, 1, 9, 3]);
    let site = next.place(2).and_then(Place::site).map(Site::as_str);
    assert_eq!(site, Some("y"));
}

#[test]
fn a_roll_at_most_doubles_and_holds_no_peer_twice() {
    let roll = Roll::found([1, 2, 2, 1].map(record), 0, Round(0));
    assert_eq!(ids(&roll), [1, 2]);
    let next = roll.after(&change(&[], &[3, 3, 1, 4, 5, 6]), Round(1));
    assert_eq!(ids(&next), [1, 2, 3, 4]);
}

#[test]
fn its_bytes_come_back_and_bad_ones_do_not() {
    let roll = Roll::found((0..200).map(record), 0, Round(3));
    let bytes = roll.to_bytes();
    let back = Roll::from_bytes(&bytes).expect("its own bytes");
    assert_eq!(back.digest(), roll.digest());
    assert_eq!(back.place_of(record(77).peer), Some(77));
    assert!(Roll::from_bytes(&bytes[..bytes.len() - 1]).is_err());
    assert!(Roll::from_bytes(&[]).is_err());
    let twice = Content {
        row: 0,
        columns: 1,
        places: vec![roll.content.places[0].clone(); 2],
    };
    let bytes = crate::wire::encode_value(&twice);
    assert!(Roll::from_bytes(&bytes).is_err(), "a peer in two places");
    let tall = Content {
        columns: 1,
        ..roll.content
    };
    assert!(Roll::from_bytes(&crate::wire::encode_value(&tall)).is_err());
}
