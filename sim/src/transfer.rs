//! Bytes between machines: pushed slices with their acknowledgements, and fetches.
//!
//! While its bytes flow, a push has the appointments of its flow on the calendar, and its deadline if it
//! may miss it. After that it has exactly one event at any time until it ends.
//!
//! A fetch is a request to a donor, its answer, and the next donor if it has no answer. It has a number while it
//! lasts. Its flow and its events on the calendar refer to it by the number and a serial, because numbers are
//! reused.

use crate::due::Due;
use crate::error::SimError;
use crate::flight::{Fetching, Transfer};
use crate::net::{Fate, Owner};
use crate::swarm::Swarm;
use bytes::Bytes;
use core::time::Duration;
use murmurate_protocol::{FetchId, Input, PeerId, PushOutcome, SliceId, SliceMeta, Time};

impl Swarm<'_> {
    /// Performs a peer's request: pushes a slice.
    pub(crate) fn push(
        &mut self,
        index: usize,
        to: PeerId,
        slice: SliceId,
        meta: SliceMeta,
        (deadline, priority): (Time, u8),
    ) {
        let other = self.recipe.index_of(&to);
        let slot = &mut self.slots[index];
        let bytes = slot.host.as_mut().and_then(|host| host.pushed(slice, meta));
        let link = other.and_then(|other| Some((other, self.net.connection(index, other)?)));
        let (Some((other, connection)), Some(bytes)) = (link, bytes) else {
            self.answer_now(Input::Pushed {
                to,
                slice,
                outcome: PushOutcome::Lost,
            });
            return;
        };
        if self.speaker(index).withholds() {
            self.counters.lies += 1;
            let outcome = PushOutcome::Delivered;
            self.answer_now(Input::Pushed { to, slice, outcome });
            return;
        }
        let bytes = self.speaker(index).slice(bytes);
        self.counters
            .pushed(meta.bytes, self.recipe.payload_bytes(slice, &meta));
        self.note_wan(index, other, meta.bytes);
        let flying = self.checks.mass_leaves(&meta);
        let fate = self.net.fate();
        let number = self.keep_transfer(Transfer {
            from: index,
            from_life: self.slots[index].life,
            to: other,
            connection,
            slice,
            meta,
            bytes,
            deadline,
            may_be_late: false,
            serial: 0,
            flow: None,
            extra: Duration::ZERO,
            fate,
            outcome: PushOutcome::Lost,
            open: true,
            flying,
        });
        if let Some(host) = self.slots[index].host.as_mut() {
            host.open_pushes.push(number);
        }
        let between = (index, other);
        // Elsewhere slices of a round share a link.
        let waits_for_single_layers = self.recipe.plan().overlap.layers.reach_forward();
        let priority = if waits_for_single_layers { priority } else { 0 };
        let (flow, extra) = self.net.start_flow(
            self.now,
            Owner::Push(number),
            between,
            (meta.bytes, priority),
        );
        let transfer = &mut self.transfers[number];
        (transfer.flow, transfer.extra) = (Some(flow), extra);
        self.make_appointments();
    }

    fn keep_transfer(&mut self, transfer: Transfer) -> usize {
        match self.free_transfers.pop() {
            Some(number) => {
                let kept = &mut self.transfers[number];
                let serial = kept.serial.wrapping_add(1);
                *kept = Transfer { serial, ..transfer };
                number
            }
            None => {
                self.transfers.push(transfer);
                self.transfers.len() - 1
            }
        }
    }

    /// Schedules the appointments of flows, and the deadlines of pushes that may miss them.
    pub(crate) fn make_appointments(&mut self) {
        for made in self.net.appointments() {
            if let Owner::Push(number) = made.owner {
                let transfer = &mut self.transfers[number];
                let deadline = transfer.deadline.max(self.now);
                if made.at >= deadline && !std::mem::replace(&mut transfer.may_be_late, true) {
                    let serial = transfer.serial;
                    let due = Due::PushLate {
                        transfer: number,
                        serial,
                    };
                    self.queue.push(deadline, due);
                }
            }
            let due = Due::Flow {
                flow: made.flow,
                serial: made.serial,
            };
            self.queue.push(made.at, due);
        }
    }

    pub(crate) fn flow_due(&mut self, flow: u32, serial: u32) -> Result<(), SimError> {
        let owner = self.net.keep_appointment(self.now, flow, serial);
        self.make_appointments();
        match owner {
            Some(Owner::Push(number)) => self.slice_sent(number),
            Some(Owner::Fetch(number)) => {
                self.fetch_flowed(number);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// A push that still flows at its deadline will certainly not arrive.
    pub(crate) fn push_late(&mut self, number: usize, serial: u32) -> Result<(), SimError> {
        let transfer = &self.transfers[number];
        if transfer.serial != serial || transfer.flow.is_none() {
            return Ok(());
        }
        self.stop_flow(number);
        self.push_ends(number)
    }

    fn stop_flow(&mut self, number: usize) {
        if let Some(flow) = self.transfers[number].flow.take() {
            self.net.end_flow(self.now, flow);
            self.make_appointments();
        }
    }

    /// Ends a push. Mass that is still in flight is lost.
    fn free_transfer(&mut self, number: usize) {
        let transfer = &mut self.transfers[number];
        self.checks
            .mass_vanishes(std::mem::take(&mut transfer.flying));
        transfer.bytes = Bytes::new();
        self.free_transfers.push(number);
    }

    /// The last byte has left the slowest link.
    fn slice_sent(&mut self, number: usize) -> Result<(), SimError> {
        let transfer = &mut self.transfers[number];
        transfer.flow = None;
        let (from, to) = (transfer.from, transfer.to);
        let (deadline, extra) = (transfer.deadline.max(self.now), transfer.extra);
        if transfer.fate == Fate::Lost {
            self.counters.pushes_lost += 1;
            let at = (self.now + self.retry()).min(deadline);
            self.queue.push(at, Due::PushEnds { transfer: number });
            return Ok(());
        }
        let arrival = self.now + extra + self.net.latency(from, to);
        if arrival > deadline {
            self.queue
                .push(deadline, Due::PushEnds { transfer: number })
        } else {
            self.queue
                .push(arrival, Due::SliceArrives { transfer: number })
        }
        Ok(())
    }

    /// The slice is complete at its receiver, if the receiver is still up.
    pub(crate) fn slice_arrives(&mut self, number: usize) -> Result<(), SimError> {
        let transfer = &self.transfers[number];
        let (from, to, connection) = (transfer.from, transfer.to, transfer.connection);
        if !self.net.delivers(from, to, connection) || self.slots[to].host.is_none() {
            // The transport repeats it until the partition ends, the link dies or the deadline
            // passes.
            let again = self.now + self.retry();
            let link_lives = self.net.connection(from, to) == Some(connection);
            let waits = transfer.open && link_lives && again < transfer.deadline;
            if waits && !self.net.reachable(from, to) {
                self.queue
                    .push(again, Due::SliceArrives { transfer: number });
                return Ok(());
            }
            let at = transfer.deadline.max(self.now);
            self.transfers[number].outcome = PushOutcome::Unknown;
            self.queue.push(at, Due::PushEnds { transfer: number });
            return Ok(());
        }
        let transfer = &mut self.transfers[number];
        transfer.outcome = PushOutcome::Delivered;
        let (slice, meta, bytes) = (transfer.slice, transfer.meta, transfer.bytes.clone());
        let unheard = match transfer.fate {
            Fate::Unheard(times) => times,
            Fate::Arrives | Fate::Lost => 0,
        };
        self.checks.mass_lands(std::mem::take(&mut transfer.flying));
        let heard = self.now + self.net.latency(to, from) + self.retry() * unheard;
        self.queue.push(heard, Due::PushEnds { transfer: number });
        let aggregate = slice.part.is_decided();
        let digest = aggregate.then(|| self.recipe.digest_of(&slice, &bytes));
        let host = self.slots[to].host.as_mut();
        let stored = host.is_none_or(|host| host.arrived(slice, meta, bytes));
        if !stored {
            return Ok(());
        }
        self.feed(
            to,
            Input::Arrived {
                from: self.slots[from].id,
                slice,
                meta,
                digest,
            },
        )
    }

    /// Tells the sender how a push ended, unless it cancelled the push.
    pub(crate) fn push_ends(&mut self, number: usize) -> Result<(), SimError> {
        let transfer = &mut self.transfers[number];
        let (from, to) = (transfer.from, transfer.to);
        let (slice, outcome) = (transfer.slice, transfer.outcome);
        if !transfer.open || self.slots[from].life != transfer.from_life {
            self.free_transfer(number);
            return Ok(());
        }
        if !self.net.reachable(from, to) && outcome == PushOutcome::Delivered {
            let at = self.now + self.retry();
            self.queue.push(at, Due::PushEnds { transfer: number });
            return Ok(());
        }
        if outcome == PushOutcome::Lost {
            let flying = std::mem::take(&mut self.transfers[number].flying);
            self.checks.mass_lands(flying);
        }
        self.free_transfer(number);
        if let Some(host) = self.slots[from].host.as_mut() {
            let at = host.open_pushes.iter().position(|open| *open == number);
            at.map(|at| host.open_pushes.remove(at));
        }
        self.feed(
            from,
            Input::Pushed {
                to: self.slots[to].id,
                slice,
                outcome,
            },
        )
    }

    /// Performs a peer's request: cancels all pushes of a slice. Complete transfers still arrive.
    pub(crate) fn cancel(&mut self, index: usize, slice: SliceId) {
        self.close_pushes(index, |transfer| transfer.slice == slice);
    }

    /// Handles the loss of a machine: pushes that still flow are lost, complete ones arrive.
    pub(crate) fn transfers_of_dead(&mut self, index: usize, open: &[usize]) {
        for number in open {
            let transfer = &mut self.transfers[*number];
            if transfer.from == index && transfer.flow.is_some() {
                transfer.open = false;
                self.stop_flow(*number);
                self.free_transfer(*number);
            }
        }
    }

    /// Ends a sender's pushes over a link that is gone. It cannot know their fate, and hears that.
    pub(crate) fn pushes_over(&mut self, index: usize, other: usize) -> Vec<Input> {
        let to = self.slots[other].id;
        let closed = self.close_pushes(index, |transfer| transfer.to == other);
        let outcome = PushOutcome::Unknown;
        let closed = closed.into_iter();
        closed
            .map(|slice| Input::Pushed { to, slice, outcome })
            .collect()
    }

    /// Ends open pushes, including their flows.
    fn close_pushes(&mut self, index: usize, which: impl Fn(&Transfer) -> bool) -> Vec<SliceId> {
        let Some(host) = self.slots[index].host.as_mut() else {
            return Vec::new();
        };
        let transfers = &mut self.transfers;
        let mut closed = Vec::new();
        host.open_pushes.retain(|number| {
            let transfer = &mut transfers[*number];
            let closes = which(transfer);
            transfer.open &= !closes;
            if closes {
                closed.push(*number);
            }
            !closes
        });
        let slices = closed.iter().map(|n| self.transfers[*n].slice);
        let slices = slices.collect();
        for number in closed {
            if self.transfers[number].flow.is_some() {
                self.stop_flow(number);
                self.free_transfer(number);
            }
        }
        slices
    }

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
    pub(crate) fn fetch_asked(&mut self, fetch: usize, serial: u32) -> Result<(), SimError> {
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
    fn fetch_flowed(&mut self, fetch: usize) {
        let open = self.fetches.open.get_mut(fetch);
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
    pub(crate) fn fetch_late(&mut self, fetch: usize, serial: u32) -> Result<(), SimError> {
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
    pub(crate) fn fetch_ends(&mut self, fetch: usize, serial: u32) -> Result<(), SimError> {
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
