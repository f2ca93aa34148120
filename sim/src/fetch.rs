//! Fetches: a request to a donor, its answer, and the next donor if it has no answer.
//!
//! A fetch has a number while it lasts. Its flow and its events on the calendar refer to it by the
//! number and a serial, because numbers are reused.

use crate::due::Due;
use crate::error::SimError;
use crate::fetches::Fetching;
use crate::net::{Fate, Owner};
use crate::swarm::Swarm;
use bytes::Bytes;
use core::time::Duration;
use murmurate_protocol::{FetchId, Input, PeerId, SliceMeta, Time};

impl Swarm<'_> {
    /// Performs a peer's request: fetches a slice or a state from the first donor that has it.
    pub(crate) fn fetch(&mut self, index: usize, what: FetchId, from: &[PeerId], deadline: Time) {
        let donors = from.iter().filter_map(|peer| self.recipe.index_of(peer));
        let mut next: Vec<usize> = donors.filter(|d| self.net.is_up(index, *d)).collect();
        next.reverse();
        let life = self.slots[index].life;
        // A second request for the same replaces the first, as in a daemon.
        if let Some(flow) = self.fetches.replace(index, life, &what) {
            self.net.end_flow(self.now, flow);
            self.make_appointments();
        }
        self.try_donor(Fetching {
            host: index,
            life,
            what,
            deadline,
            donor: None,
            next,
            flow: None,
            extra: Duration::ZERO,
            serial: 0,
        });
    }

    /// Sends the request to the next donor.
    fn try_donor(&mut self, mut fetching: Fetching) {
        let (host, deadline) = (fetching.host, fetching.deadline.max(self.now));
        let donor = fetching.next.pop();
        fetching.donor = donor.map(|donor| (donor, self.slots[donor].life));
        let at = donor.map_or(self.now, |d| self.now + self.net.latency(host, d));
        let (fetch, serial) = self.fetches.keep(fetching);
        self.queue.push(deadline, Due::FetchLate { fetch, serial });
        if at <= deadline {
            self.queue.push(at, Due::FetchAsked { fetch, serial });
        }
    }

    /// The request arrived at the donor.
    pub(crate) fn fetch_asked(&mut self, fetch: u32, serial: u32) -> Result<(), SimError> {
        let Some(fetching) = self.fetches.get(fetch, serial) else {
            return Ok(());
        };
        let (host, what) = (fetching.host, fetching.what);
        let donor = fetching.donor.map(|(donor, _)| donor);
        let found = donor.and_then(|donor| Some((donor, self.donated(donor, &what)?)));
        let Some((donor, (meta, bytes))) = found else {
            return self.fetch_ends(fetch, serial);
        };
        let size = match &what {
            FetchId::State(state) => state.bytes,
            FetchId::Slice(_) => meta.map_or(bytes.len() as u64, |meta| meta.bytes),
        };
        let owner = Owner::Fetch(fetch);
        let (flow, extra) = self
            .net
            .start_flow(self.now, owner, (donor, host), (size, 0));
        if let Some(fetching) = self.fetches.get(fetch, serial) {
            (fetching.flow, fetching.extra) = (Some(flow), extra);
        }
        self.make_appointments();
        Ok(())
    }

    /// The last byte has left the slowest link.
    pub(crate) fn fetch_flowed(&mut self, fetch: u32) {
        let open = self.fetches.open.get_mut(fetch as usize);
        let Some(fetching) = open.and_then(Option::as_mut) else {
            return;
        };
        fetching.flow = None;
        let (host, serial, extra) = (fetching.host, fetching.serial, fetching.extra);
        let donor = fetching.donor.map_or(host, |(donor, _)| donor);
        let mut at = self.now + extra + self.net.latency(donor, host);
        while self.net.fate() == Fate::Lost {
            at = at + self.retry();
        }
        self.queue.push(at, Due::FetchEnds { fetch, serial });
    }

    /// The deadline has passed. No other donor is tried.
    pub(crate) fn fetch_late(&mut self, fetch: u32, serial: u32) -> Result<(), SimError> {
        let Some(fetching) = self.fetches.get(fetch, serial) else {
            return Ok(());
        };
        fetching.donor = None;
        fetching.next.clear();
        if let Some(flow) = fetching.flow.take() {
            self.net.end_flow(self.now, flow);
            self.make_appointments();
        }
        self.fetch_ends(fetch, serial)
    }

    fn donated(&self, donor: usize, what: &FetchId) -> Option<(Option<SliceMeta>, Bytes)> {
        self.slots[donor].host.as_deref()?.donate(what)
    }

    /// A donor's answer is complete, or will never arrive.
    pub(crate) fn fetch_ends(&mut self, fetch: u32, serial: u32) -> Result<(), SimError> {
        let Some(fetching) = self.fetches.take(fetch, serial) else {
            return Ok(());
        };
        let Fetching {
            host, life, what, ..
        } = fetching;
        if self.slots[host].life != life || self.slots[host].host.is_none() {
            return Ok(());
        }
        let found = fetching.donor.and_then(|(donor, donor_life)| {
            let there = self.slots[donor].life == donor_life && self.net.reachable(host, donor);
            there.then(|| self.donated(donor, &what)).flatten()
        });
        let Some((meta, bytes)) = found else {
            if fetching.next.is_empty() {
                return self.feed(host, Input::FetchFailed { what });
            }
            self.try_donor(fetching);
            return Ok(());
        };
        let digest = match &what {
            FetchId::Slice(slice) => Some(self.recipe.digest_of(slice, &bytes)),
            FetchId::State(_) => None,
        };
        let count = match &what {
            FetchId::State(state) => state.bytes,
            FetchId::Slice(_) => meta.map_or(bytes.len() as u64, |meta| meta.bytes),
        };
        self.counters.bytes_fetched += count;
        if let Some((donor, _)) = fetching.donor {
            self.note_wan(donor, host, count);
        }
        if let Some(host) = self.slots[host].host.as_mut() {
            host.fetched(&what, meta, bytes);
        }
        self.feed(host, Input::Fetched { what, meta, digest })
    }
}
