//! Places after changes, and rolls as bytes.

use super::*;
use crate::wire::RecordFields;
use crate::{RunId, Time};

pub(super) fn record(id: u16) -> PeerRecord {
    let mut bytes = [0; 32];
    bytes[..2].copy_from_slice(&id.to_be_bytes());
    PeerRecord::from(RecordFields {
        peer: PeerId::from_bytes(bytes),
        run: RunId::from_bytes([1; 32]),
        sequence: 1,
        expires: Time::NEVER,
        addresses: Vec::new(),
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
