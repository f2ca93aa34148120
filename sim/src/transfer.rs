//! Bulk transfers: pushed slices with their acknowledgements, and fetches.
//!
//! A push has exactly one event on the calendar at any time, until it is over.

use crate::due::Due;
use crate::error::SimError;
use crate::net::Fate;
use crate::swarm::Swarm;
use bytes::Bytes;
use murmurate_protocol::{
    Digest, FetchId, Input, Part, PeerId, PushOutcome, SliceId, SliceMeta, Time,
};

/// A pushed slice on its way.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    from: u32,
    from_life: u32,
    to: u32,
    connection: u32,
    slice: SliceId,
    meta: SliceMeta,
    bytes: Bytes,
    deadline: Time,
    sent_at: Time,
    fate: Fate,
    outcome: PushOutcome,
    /// The sender still waits for the outcome.
    open: bool,
    /// Push-sum mass that neither end holds.
    flying: f64,
}

/// A fetch on its way.
#[derive(Debug)]
pub(crate) struct Fetching {
    host: usize,
    life: u32,
    what: FetchId,
    deadline: Time,
    /// The donor at work and its life.
    donor: Option<(usize, u32)>,
    /// Donors to try after it.
    next: Vec<usize>,
}

impl Swarm<'_> {
    /// Does what a peer asks: pushes a slice.
    pub(crate) fn push(
        &mut self,
        index: usize,
        to: PeerId,
        slice: SliceId,
        meta: SliceMeta,
        deadline: Time,
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
        self.counters
            .pushed(bytes.len() as u64, self.recipe.payload_bytes(slice, &meta));
        let flying = self.checks.mass_leaves(&meta);
        let sent_at = self.net.uplink(index).pass(self.now, bytes.len() as u64);
        let transfer = Transfer {
            from: index as u32,
            from_life: self.slots[index].life,
            to: other as u32,
            connection,
            slice,
            meta,
            bytes,
            deadline,
            sent_at,
            fate: self.net.fate(),
            outcome: PushOutcome::Lost,
            open: true,
            flying,
        };
        let number = self.keep_transfer(transfer);
        if let Some(host) = self.slots[index].host.as_mut() {
            host.open_pushes.push(number);
        }
        match sent_at > deadline {
            true => self
                .queue
                .push(deadline.max(self.now), Due::PushEnds { transfer: number }),
            false => self
                .queue
                .push(sent_at, Due::SliceSent { transfer: number }),
        }
    }

    fn keep_transfer(&mut self, transfer: Transfer) -> u32 {
        match self.free_transfers.pop() {
            Some(number) => {
                self.transfers[number as usize] = transfer;
                number
            }
            None => {
                self.transfers.push(transfer);
                (self.transfers.len() - 1) as u32
            }
        }
    }

    /// A push is over: whatever mass is still nobody's is gone for good.
    fn free_transfer(&mut self, number: u32) {
        let transfer = &mut self.transfers[number as usize];
        self.checks
            .mass_vanishes(std::mem::take(&mut transfer.flying));
        transfer.bytes = Bytes::new();
        self.free_transfers.push(number);
    }

    /// The last byte has left the sender.
    pub(crate) fn slice_sent(&mut self, number: u32) -> Result<(), SimError> {
        let transfer = &self.transfers[number as usize];
        let to = transfer.to as usize;
        let (deadline, size) = (transfer.deadline, transfer.bytes.len() as u64);
        if !transfer.open {
            self.free_transfer(number);
            return Ok(());
        }
        if transfer.fate == Fate::Lost {
            self.counters.pushes_lost += 1;
            let at = (self.now + self.retry()).min(deadline.max(self.now));
            self.queue.push(at, Due::PushEnds { transfer: number });
            return Ok(());
        }
        let ready = self.now + self.net.latency();
        let arrival = self.net.downlink(to).pass(ready, size);
        match arrival > deadline {
            true => self
                .queue
                .push(deadline.max(self.now), Due::PushEnds { transfer: number }),
            false => self
                .queue
                .push(arrival, Due::SliceArrives { transfer: number }),
        }
        Ok(())
    }

    /// The slice is complete at its receiver, if that is still there.
    pub(crate) fn slice_arrives(&mut self, number: u32) -> Result<(), SimError> {
        let transfer = &self.transfers[number as usize];
        let (from, to, connection) = (
            transfer.from as usize,
            transfer.to as usize,
            transfer.connection,
        );
        if !self.net.delivers(from, to, connection) || self.slots[to].host.is_none() {
            // The transport repeats it until the partition heals, the link dies or time is up.
            let again = self.now + self.retry();
            let link_lives = self.net.connection(from, to) == Some(connection);
            let waits = transfer.open && link_lives && again < transfer.deadline;
            if waits && !self.net.reachable(from, to) {
                self.queue
                    .push(again, Due::SliceArrives { transfer: number });
                return Ok(());
            }
            let at = transfer.deadline.max(self.now);
            self.transfers[number as usize].outcome = PushOutcome::Unknown;
            self.queue.push(at, Due::PushEnds { transfer: number });
            return Ok(());
        }
        let transfer = &mut self.transfers[number as usize];
        transfer.outcome = PushOutcome::Delivered;
        let (slice, meta, bytes) = (transfer.slice, transfer.meta, transfer.bytes.clone());
        let unheard = match transfer.fate {
            Fate::Unheard(times) => times,
            Fate::Arrives | Fate::Lost => 0,
        };
        self.checks.mass_lands(std::mem::take(&mut transfer.flying));
        let heard = self.now + self.net.latency() + self.retry() * unheard;
        self.queue.push(heard, Due::PushEnds { transfer: number });
        let digest = (slice.part == Part::Aggregate).then(|| Digest::of(&bytes));
        if let Some(host) = self.slots[to].host.as_mut() {
            host.arrived(slice, meta, bytes);
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

    /// The sender learns how a push ended, unless it gave up on it before.
    pub(crate) fn push_ends(&mut self, number: u32) -> Result<(), SimError> {
        let transfer = &mut self.transfers[number as usize];
        let (from, to) = (transfer.from as usize, transfer.to as usize);
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
            let flying = std::mem::take(&mut self.transfers[number as usize].flying);
            self.checks.mass_lands(flying);
        }
        self.free_transfer(number);
        if let Some(host) = self.slots[from].host.as_mut() {
            host.open_pushes.retain(|open| *open != number);
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

    /// Does what a peer asks: stops all pushes of a slice. What has left arrives all the same.
    pub(crate) fn cancel(&mut self, index: usize, slice: SliceId) {
        let Some(host) = self.slots[index].host.as_mut() else {
            return;
        };
        let transfers = &mut self.transfers;
        host.open_pushes.retain(|number| {
            let transfer = &mut transfers[*number as usize];
            let keep = transfer.slice != slice;
            transfer.open &= keep;
            keep
        });
    }

    /// A machine is gone: what has not left it never will. The rest goes on, and nobody is told.
    pub(crate) fn transfers_of_dead(&mut self, index: usize) {
        for transfer in &mut self.transfers {
            if transfer.from as usize == index && transfer.sent_at > self.now {
                transfer.open = false;
            }
        }
    }

    /// The sender's link is dead: it cannot know what became of pushes over it.
    pub(crate) fn pushes_of_dead_link(
        &mut self,
        index: usize,
        other: usize,
    ) -> Result<(), SimError> {
        for slice in self.close_pushes(index, other) {
            let outcome = PushOutcome::Unknown;
            self.feed(
                index,
                Input::Pushed {
                    to: self.slots[other].id,
                    slice,
                    outcome,
                },
            )?;
        }
        Ok(())
    }

    /// The sender closed the link itself.
    pub(crate) fn pushes_of_closed_link(&mut self, index: usize, other: usize) {
        for slice in self.close_pushes(index, other) {
            let outcome = PushOutcome::Unknown;
            self.answer_now(Input::Pushed {
                to: self.slots[other].id,
                slice,
                outcome,
            });
        }
    }

    fn close_pushes(&mut self, index: usize, other: usize) -> Vec<SliceId> {
        let Some(host) = self.slots[index].host.as_mut() else {
            return Vec::new();
        };
        let transfers = &mut self.transfers;
        let mut closed = Vec::new();
        host.open_pushes.retain(|number| {
            let transfer = &mut transfers[*number as usize];
            if transfer.to as usize != other {
                return true;
            }
            transfer.open = false;
            closed.push(transfer.slice);
            false
        });
        closed
    }

    /// Does what a peer asks: fetches a slice or a state from the first donor that has it.
    pub(crate) fn fetch(&mut self, index: usize, what: FetchId, from: &[PeerId], deadline: Time) {
        let mut next: Vec<usize> = from
            .iter()
            .filter_map(|peer| self.recipe.index_of(peer))
            .filter(|other| self.net.is_up(index, *other))
            .collect();
        next.reverse();
        let life = self.slots[index].life;
        self.try_donor(Fetching {
            host: index,
            life,
            what,
            deadline,
            donor: None,
            next,
        });
    }

    fn try_donor(&mut self, mut fetching: Fetching) {
        let donor = fetching.next.pop();
        fetching.donor = donor.map(|donor| (donor, self.slots[donor].life));
        let mut at = self.now + self.net.latency();
        if let Some(donor) = donor {
            let size = self
                .donated(donor, &fetching.what)
                .map_or(0, |(_, bytes)| bytes.len());
            let sent = self.net.uplink(donor).pass(at, size as u64);
            let ready = sent + self.net.latency();
            at = self.net.downlink(fetching.host).pass(ready, size as u64);
            let mut tries = self.net.fate();
            while tries == Fate::Lost {
                at = at + self.retry();
                tries = self.net.fate();
            }
        }
        if at > fetching.deadline {
            fetching.donor = None;
            fetching.next.clear();
            at = fetching.deadline.max(self.now);
        }
        self.queue.push(
            at,
            Due::FetchEnds {
                fetching: Box::new(fetching),
            },
        );
    }

    fn donated(&self, donor: usize, what: &FetchId) -> Option<(Option<SliceMeta>, Bytes)> {
        self.slots[donor].host.as_deref()?.donate(what)
    }

    /// A donor's answer is complete, or it never comes.
    pub(crate) fn fetch_ends(&mut self, fetching: Fetching) -> Result<(), SimError> {
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
        self.counters.bytes_fetched += bytes.len() as u64;
        let slice = matches!(what, FetchId::Slice(_));
        let digest = slice.then(|| Digest::of(&bytes));
        if let Some(host) = self.slots[host].host.as_mut() {
            host.fetched(&what, meta, bytes);
        }
        self.feed(host, Input::Fetched { what, meta, digest })
    }
}
