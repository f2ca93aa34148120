//! A roll that travels in pages: each begins at a place and holds as many records as fit.

use super::{Roll, RollName, SharedRolls};
use crate::RunId;
use crate::limits::{FOUNDING_RECORDS_MAX, ROLL_PAGE_BYTES};
use crate::wire::PeerRecord;
use std::sync::Arc;

pub(super) fn in_messages(records: &[PeerRecord]) -> Vec<Vec<PeerRecord>> {
    let mut lists: Vec<Vec<PeerRecord>> = Vec::new();
    let mut bytes = 0;
    for record in records {
        let size = record.wire_bytes();
        match lists.last_mut() {
            Some(list) if list.len() < FOUNDING_RECORDS_MAX && bytes + size <= ROLL_PAGE_BYTES => {
                list.push(record.clone());
                bytes += size;
            }
            _ => {
                lists.push(vec![record.clone()]);
                bytes = size;
            }
        }
    }
    lists
}

/// A roll that comes page by page.
#[derive(Debug)]
pub(super) struct Incoming {
    name: RollName,
    /// The peers of the first places.
    records: Vec<PeerRecord>,
    /// How many times it was asked for because nothing came.
    pub(super) tries: usize,
    /// Set once a page came since the last tick.
    pub(super) moves: bool,
}

impl Incoming {
    pub(super) const fn new(name: RollName) -> Self {
        Self {
            name,
            records: Vec::new(),
            tries: 0,
            moves: false,
        }
    }

    pub(super) const fn name(&self) -> RollName {
        self.name
    }

    /// The first place that is missing.
    pub(super) fn next(&self) -> u16 {
        self.records.len() as u16
    }

    /// Takes the page that is next; false for any other, and for one that cannot be part of the roll.
    pub(super) fn takes(&mut self, first: u16, records: &[PeerRecord], run: RunId) -> bool {
        let room = usize::from(self.name.peers) - self.records.len();
        let fits = first == self.next() && (1..=room).contains(&records.len());
        if !fits || records.iter().any(|record| record.run != run) {
            return false;
        }
        self.records.extend_from_slice(records);
        self.moves = true;
        true
    }

    pub(super) fn is_whole(&self) -> bool {
        self.records.len() >= usize::from(self.name.peers)
    }

    /// The roll, if the pages make the one that was named; otherwise it begins again.
    pub(super) fn roll(&mut self, row: u16, shared: &SharedRolls) -> Option<Arc<Roll>> {
        self.moves = false;
        shared.named(self.name, std::mem::take(&mut self.records), row)
    }
}

impl Roll {
    pub(crate) fn name(&self) -> RollName {
        RollName {
            digest: self.digest(),
            peers: self.len() as u16,
        }
    }

    /// The records from a place on that fit into some bytes, at least one if there is any.
    pub(super) fn page(&self, first: u16, most: usize) -> Vec<PeerRecord> {
        let mut bytes = 0;
        let mut records: Vec<PeerRecord> = Vec::new();
        for place in usize::from(first)..self.len() {
            let Some(place) = self.place(place) else {
                break;
            };
            bytes += place.record.wire_bytes();
            let full = bytes > most || records.len() >= FOUNDING_RECORDS_MAX;
            if full && !records.is_empty() {
                break;
            }
            records.push(place.record.clone());
        }
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::FRAME_BYTES_MAX;
    use crate::wire::RecordFields;
    use crate::{FoundingMessage, PeerId, Time};

    #[test]
    fn lists_of_long_records_fit_into_frames() {
        let record = |id: u8| {
            PeerRecord::from(RecordFields {
                peer: PeerId::from_bytes([id; 32]),
                run: RunId::from_bytes([1; 32]),
                sequence: 1,
                expires: Time::ZERO,
                addresses: vec![vec![0; 256]; 16],
                locality: crate::Locality::default(),
                signature: vec![0; 64],
            })
        };
        let records: Vec<PeerRecord> = (0..63).map(record).collect();
        let lists = in_messages(&records);
        assert_eq!(lists.concat(), records, "none is lost");
        for list in lists {
            let bytes = crate::wire::encode(&FoundingMessage::Here(list).into()).len();
            assert!(bytes <= FRAME_BYTES_MAX, "{bytes}");
        }
        assert!(in_messages(&[]).is_empty());
    }
}
