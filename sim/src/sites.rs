//! How machines know their sites, and the bytes that leave them.

use crate::error::SimError;
use crate::scenario::Labels;
use crate::swarm::Swarm;
use murmurate_protocol::Input;

/// Records that a machine makes in one life.
const RECORDS_OF_A_LIFE: u64 = 1 << 20;

impl Swarm<'_> {
    /// Makes a machine's record, and tells its peer.
    pub(crate) fn tell_record(&mut self, index: usize) -> Result<(), SimError> {
        let now = self.clock(index);
        let slot = &mut self.slots[index];
        slot.records += 1;
        let sequence = (u64::from(slot.life) + 1) * RECORDS_OF_A_LIFE + slot.records;
        let finder = slot.host.as_ref().and_then(|host| host.finder.as_ref());
        let locality = finder.map(|finder| finder.locality()).unwrap_or_default();
        let record = self.recipe.record(index, now, sequence, locality);
        self.feed(index, Input::Record(record))
    }

    /// A machine measures the round trip to another, if it still looks for its site.
    pub(crate) fn measure_site(&mut self, index: usize, other: usize) -> Result<(), SimError> {
        if self.scenario.network.labels != Labels::Measured {
            return Ok(());
        }
        let (peer, round_trip) = (self.slots[other].id, self.net.round_trip(index, other));
        let Some(host) = self.slots[index].host.as_mut() else {
            return Ok(());
        };
        let Some(finder) = host.finder.as_mut().filter(|_| !host.peer.has_place()) else {
            return Ok(());
        };
        finder.measured(peer, round_trip);
        let view = host.peer.view();
        match finder.look(|peer| view.get(peer)?.record()?.locality.site.clone()) {
            true => self.tell_record(index),
            false => Ok(()),
        }
    }

    /// A machine lost its link to another.
    pub(crate) fn forget_site(&mut self, index: usize, other: usize) {
        let peer = self.slots[other].id;
        let host = self.slots[index].host.as_mut();
        if let Some(finder) = host.and_then(|host| host.finder.as_mut()) {
            finder.lost(peer);
        }
    }

    /// Counts bytes from one machine to another, if they leave a site.
    pub(crate) fn note_wan(&mut self, from: usize, to: usize, bytes: u64) {
        if self.net.is_far(from, to) {
            self.counters.bytes_wan += bytes;
        }
    }
}
