//! Rolls that a peer has, those that come page by page, and records in lists that fit into messages.

use super::{Roll, RollName};
use crate::limits::{FOUNDING_RECORDS_MAX, ROLL_PAGE_BYTES};
use crate::wire::PeerRecord;
use crate::{Digest, Round};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The rolls of a founding, by name.
#[derive(Debug, Default)]
pub(super) struct Rolls {
    here: BTreeMap<Digest, Arc<Roll>>,
    /// A roll that comes page by page.
    incoming: Option<(RollName, BTreeMap<u16, Vec<PeerRecord>>)>,
}

impl Rolls {
    pub(super) fn get(&self, digest: &Digest) -> Option<&Arc<Roll>> {
        self.here.get(digest)
    }

    pub(super) fn has(&self, digest: &Digest) -> bool {
        self.here.contains_key(digest)
    }

    pub(super) fn insert(&mut self, roll: Arc<Roll>) {
        self.here.insert(roll.digest(), roll);
    }

    /// The first page that is missing of a roll; `None` where the roll is here.
    pub(super) fn missing(&mut self, name: RollName) -> Option<u16> {
        if self.has(&name.digest) {
            return None;
        }
        let fits = |(known, _): &(RollName, _)| *known == name;
        if !self.incoming.as_ref().is_some_and(fits) {
            self.incoming = Some((name, BTreeMap::new()));
        }
        let (_, pages) = self.incoming.as_ref()?;
        (0..name.pages).find(|page| !pages.contains_key(page))
    }

    /// A page came: the name of its roll, if it was asked for. Once the last page is here, so is the
    /// roll, unless its name is another one. Then all pages are missing again, and nothing is returned:
    /// asking at once could go on without end.
    pub(super) fn came(
        &mut self,
        (roll, page): (Digest, u16),
        records: &[PeerRecord],
        row: u16,
    ) -> Option<RollName> {
        let (name, pages) = self.incoming.as_mut()?;
        if name.digest != roll || page >= name.pages {
            return None;
        }
        pages.insert(page, records.to_vec());
        let name = *name;
        if pages.len() == usize::from(name.pages) {
            let pages = std::mem::take(pages);
            self.incoming = None;
            let roll = Roll::found(pages.into_values().flatten(), row, Round(0));
            if roll.digest() != name.digest {
                return None;
            }
            self.insert(Arc::new(roll));
        }
        Some(name)
    }
}

impl Roll {
    /// Its name.
    pub(crate) fn name(&self) -> RollName {
        let records = self.content.places.iter().map(|place| &place.record);
        let pages = ranges(records).count() as u16;
        let digest = self.digest();
        RollName { digest, pages }
    }

    /// The records of one page.
    pub(super) fn page(&self, page: u16) -> Option<Vec<PeerRecord>> {
        let records = self.content.places.iter().map(|place| &place.record);
        let places = ranges(records).nth(usize::from(page))?;
        let places = self.content.places.get(places)?.iter();
        Some(places.map(|place| place.record.clone()).collect())
    }
}

/// Records in lists that fit into messages, in their order.
pub(super) fn in_messages(records: &[PeerRecord]) -> impl Iterator<Item = Vec<PeerRecord>> {
    ranges(records.iter()).map(|range| records[range].to_vec())
}

/// Cuts records so that each part has at most [`FOUNDING_RECORDS_MAX`] of them and about
/// [`ROLL_PAGE_BYTES`]: more only where a single record is longer.
fn ranges<'a>(records: impl Iterator<Item = &'a PeerRecord>) -> impl Iterator<Item = Range<usize>> {
    let mut records = records.map(PeerRecord::wire_bytes).peekable();
    let mut next = 0;
    std::iter::from_fn(move || {
        let (first, mut bytes) = (next, 0);
        while next - first < FOUNDING_RECORDS_MAX {
            let more = records.next_if(|more| next == first || bytes + more <= ROLL_PAGE_BYTES);
            let Some(more) = more else {
                break;
            };
            bytes += more;
            next += 1;
        }
        (next > first).then_some(first..next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{ADDRESS_BYTES_MAX, FRAME_BYTES_MAX, RECORD_ADDRESSES_MAX};
    use crate::wire::encode;
    use crate::{FoundingMessage, PeerId, RunId, Time};

    fn record(id: u8, addresses: usize) -> PeerRecord {
        PeerRecord {
            peer: PeerId::from_bytes([id; 32]),
            run: RunId::from_bytes([1; 32]),
            sequence: 1,
            expires: Time::NEVER,
            addresses: vec![vec![7; ADDRESS_BYTES_MAX]; addresses],
            signature: vec![7; 64],
        }
    }

    #[test]
    fn lists_of_long_records_fit_into_frames() {
        for addresses in [0, 1, RECORD_ADDRESSES_MAX] {
            let all: Vec<PeerRecord> = (0..=255).map(|id| record(id, addresses)).collect();
            let lists: Vec<Vec<PeerRecord>> = in_messages(&all).collect();
            assert_eq!(lists.concat(), all);
            for list in lists {
                let frame = encode(&FoundingMessage::Here(list).into());
                assert!(frame.len() <= FRAME_BYTES_MAX, "{} bytes", frame.len());
            }
        }
        assert_eq!(in_messages(&[]).count(), 0);
    }

    #[test]
    fn a_roll_comes_page_by_page_in_any_order() {
        let all = (0..=255).map(|id| record(id, 4));
        let roll = Roll::found(all, 3, Round(0));
        let name = roll.name();
        assert!(name.pages > 2, "{name:?}");
        let page = |page| roll.page(page).expect("a page");
        let mut rolls = Rolls::default();
        assert_eq!(rolls.came((name.digest, 0), &page(0), 3), None, "unasked");
        assert_eq!(rolls.missing(name), Some(0));
        for at in (0..name.pages).rev() {
            assert!(!rolls.has(&name.digest));
            assert_eq!(rolls.came((name.digest, at), &page(at), 3), Some(name));
        }
        assert!(rolls.get(&name.digest).is_some_and(|found| **found == roll));
        assert_eq!(rolls.missing(name), None);
        assert_eq!(roll.page(name.pages), None);
    }

    #[test]
    fn a_roll_of_another_name_is_asked_for_again() {
        let roll = Roll::found((0..3).map(|id| record(id, 0)), 3, Round(0));
        let name = roll.name();
        let mut rolls = Rolls::default();
        assert_eq!(rolls.missing(name), Some(0));
        let other = [record(9, 0)];
        assert_eq!(rolls.came((name.digest, 0), &other, 3), None);
        assert_eq!(rolls.missing(name), Some(0));
    }
}
