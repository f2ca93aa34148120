//! Links between machines (dialled, up, down), the control messages over them, and what machines tell each other
//! when a link comes up.
//!
//! - A machine that looks for its site measures the round trip to others.
//! - The owner directs something at one machine. As in the daemon, machines tell new directives to those that
//!   they are linked with, compare all that they know when a link comes up, and keep them over crashes.

use crate::due::{Due, Letter};
use crate::error::SimError;
use crate::scenario::Labels;
use crate::sign;
use crate::swarm::Swarm;
use murmurate_protocol::wire::{self, Message, PeerRecord, WireError};
use murmurate_protocol::{Directive, Input, PeerId};
use std::rc::Rc;

impl Swarm<'_> {
    /// Dials a few machines that are up, as a daemon dials the addresses in `join`.
    pub(crate) fn dial_some(&mut self, index: usize) {
        let mut up: Vec<usize> = (0..self.slots.len())
            .filter(|other| *other != index && self.slots[*other].host.is_some())
            .collect();
        let wanted = self.scenario.network.bootstrap.min(up.len());
        // Partial Fisher-Yates: draws `wanted` machines without repetition.
        for chosen in 0..wanted {
            let other = chosen + self.setup.below(up.len() - chosen);
            up.swap(chosen, other);
            self.dial_index(index, up[chosen]);
        }
    }

    /// Performs a peer's request: dials the machine whose index is the record's address.
    pub(crate) fn dial(&mut self, index: usize, record: &PeerRecord) {
        if let Some(other) = self.recipe.index_of(&record.peer) {
            self.dial_index(index, other);
        }
    }

    fn dial_index(&mut self, index: usize, other: usize) {
        if index == other || self.slots[other].host.is_none() || !self.net.can_dial(index, other) {
            return; // no answer; the peer decides whether to dial again
        }
        self.queue.push(
            self.now + self.net.dialling(index, other),
            Due::Up {
                host: other,
                life: self.slots[other].life,
                other: index,
                other_life: self.slots[index].life,
                answer: false,
            },
        );
    }

    /// One end of a dialled link comes up. The dialled end is first; its answer brings up the
    /// dialling end before any message that it sends.
    pub(crate) fn link_up(
        &mut self,
        (host, life): (usize, u32),
        (other, other_life): (usize, u32),
        answer: bool,
    ) -> Result<(), SimError> {
        let current = |index: usize, life: u32| {
            self.slots[index].host.is_some() && self.slots[index].life == life
        };
        if !current(host, life) || !current(other, other_life) {
            return Ok(());
        }
        if !self.net.reachable(host, other) {
            return Ok(());
        }
        // An end that already has a link with the current life of the other keeps it, so two
        // machines that dial each other share one link.
        let theirs = self.net.connection_with(other, host, life);
        let mine = self.net.connection_with(host, other, other_life);
        if answer {
            return match theirs {
                Some(connection) if mine.is_none() => self.connect(host, other, connection),
                _ => Ok(()),
            };
        }
        if theirs.is_none() {
            let back = self.now + self.net.latency(host, other);
            self.net.hold_back(host, other, back);
            let due = Due::Up {
                host: other,
                life: other_life,
                other: host,
                other_life: life,
                answer: true,
            };
            self.queue.push(back, due);
        }
        if mine.is_some() {
            return Ok(());
        }
        let connection = theirs.unwrap_or_else(|| self.net.next_connection(host, other));
        self.connect(host, other, connection)
    }

    /// Brings up a link at one end, after it dropped the link that it replaces.
    fn connect(&mut self, host: usize, other: usize, connection: u32) -> Result<(), SimError> {
        if let Some(old) = self.net.connection(host, other) {
            self.link_down(host, other, old)?;
        }
        if self.slots[host].host.is_none() {
            return Ok(());
        }
        let life = self.slots[other].life;
        self.net.bring_up(host, (other, life), connection);
        self.counters.links += 1;
        self.feed(host, Input::LinkUp(self.slots[other].id))?;
        self.compare_directives(host, other);
        self.measure_site(host, other)
    }

    pub(crate) fn link_down(
        &mut self,
        host: usize,
        other: usize,
        connection: u32,
    ) -> Result<(), SimError> {
        if self.net.connection(host, other) != Some(connection) {
            return Ok(()); // replaced in the meantime
        }
        if self.slots[host].host.is_none() {
            return Ok(());
        }
        // If the partition ended before the detection, the link stays up.
        let alive = self.slots[other].host.is_some() && self.net.reachable(host, other);
        if alive && self.net.connection(other, host) == Some(connection) {
            return Ok(());
        }
        self.net.bring_down(host, other);
        self.break_links_through(host);
        self.break_links_through(other);
        for input in self.pushes_over(host, other) {
            self.feed(host, input)?;
        }
        self.forget_site(host, other);
        self.feed(host, Input::LinkDown(self.slots[other].id))
    }

    /// A machine has lost a link, so those that go through it may be dead: their ends notice after the
    /// detection time.
    pub(crate) fn break_links_through(&mut self, index: usize) {
        for (a, b) in self.net.through(index) {
            self.notice_dead_link(a, b);
        }
    }

    /// Performs a peer's request: closes a link. The other end notices after the latency.
    pub(crate) fn disconnect(&mut self, index: usize, peer: PeerId) {
        let Some(other) = self.recipe.index_of(&peer) else {
            return;
        };
        let Some(connection) = self.net.connection(index, other) else {
            return;
        };
        self.net.bring_down(index, other);
        let at = self.now + self.net.latency(index, other);
        self.net.hold_back(index, other, at);
        let due = Due::Down {
            host: other,
            other: index,
            connection,
        };
        self.queue.push(at, due);
        // The peer's pushes over the link end with it.
        let ends = self.pushes_over(index, other);
        self.inputs.extend(ends);
    }

    /// Sends a control message, if the link is up and the network does not lose it.
    pub(crate) fn send(
        &mut self,
        index: usize,
        to: PeerId,
        (name, bytes): (&'static str, usize),
        letter: Letter,
    ) {
        let Some(other) = self.recipe.index_of(&to) else {
            return;
        };
        let Some(connection) = self.net.connection(index, other) else {
            return;
        };
        self.counters.messages += 1;
        self.counters.bytes_control += bytes as u64;
        self.note_wan(index, other, bytes as u64);
        let of_name = self.counters.bytes_by_message.entry(name).or_default();
        *of_name += bytes as u64;
        match self.net.message(self.now, index, other, bytes) {
            Some(at) => {
                let due = Due::Message {
                    from: index,
                    to: other,
                    connection,
                    letter,
                };
                self.queue.push(at, due);
            }
            None => self.counters.messages_lost += 1,
        }
    }

    pub(crate) fn message(
        &mut self,
        from: usize,
        to: usize,
        connection: u32,
        letter: Letter,
    ) -> Result<(), SimError> {
        if self.slots[to].host.is_none() || !self.net.delivers(from, to, connection) {
            return Ok(());
        }
        self.receive(self.slots[from].id, to, letter)?;
        self.measure_site(to, from)
    }

    fn receive(&mut self, from: PeerId, to: usize, letter: Letter) -> Result<(), SimError> {
        let frame = match letter {
            Letter::Frame(frame) => frame,
            Letter::Message(message, bytes) => {
                // The trace hashed its contents when it was sent.
                let input = Input::Received {
                    from,
                    message: Rc::unwrap_or_clone(message),
                };
                return self.feed_message(to, input, &bytes.to_le_bytes());
            }
        };
        let input = match wire::decode(&frame) {
            Ok(mut message) => {
                if self.verify(to, from, &mut message) {
                    self.speaker(to).overhears(&message);
                    Input::Received { from, message }
                } else {
                    Input::Malformed {
                        from,
                        error: WireError::Signature,
                    }
                }
            }
            Err(error) => Input::Malformed { from, error },
        };
        self.feed_message(to, input, &frame)
    }

    /// Checks the signatures in a message that a machine has received.
    fn verify(&mut self, to: usize, from: PeerId, message: &mut Message) -> bool {
        let memory = &mut self.slots[to].memory;
        let (right, count) = sign::verify(&self.recipe.plan().run, from, message, memory);
        self.counters.signatures_checked += count;
        right
    }
}

/// Records that a machine makes in one life.
const RECORDS_OF_A_LIFE: u64 = 1 << 20;

impl Swarm<'_> {
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
    fn measure_site(&mut self, index: usize, other: usize) -> Result<(), SimError> {
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
        if finder.look(|peer| view.get(peer)?.record()?.locality.site.clone()) {
            self.tell_record(index)
        } else {
            Ok(())
        }
    }

    /// A machine lost its link to another.
    fn forget_site(&mut self, index: usize, other: usize) {
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

    /// A machine hears of directives. It tells the new ones to the machines that it is linked with.
    pub(crate) fn hear_directives(
        &mut self,
        index: usize,
        directives: Vec<Directive>,
    ) -> Result<(), SimError> {
        let new = self.slots[index].directives.merge(directives);
        if new.is_empty() || self.slots[index].host.is_none() {
            return Ok(());
        }
        let linked: Vec<usize> = self.net.linked(index).collect();
        for other in linked {
            self.send_directives(index, other, new.clone());
        }
        self.tell_directives(index)
    }

    /// Two machines compare what they know when their link comes up.
    fn compare_directives(&mut self, index: usize, other: usize) {
        let known: Vec<Directive> = self.slots[index].directives.iter().copied().collect();
        self.send_directives(index, other, known);
    }

    /// Tells the machine's own peer all directives that the machine knows.
    pub(crate) fn tell_directives(&mut self, index: usize) -> Result<(), SimError> {
        let known: Vec<Directive> = self.slots[index].directives.iter().copied().collect();
        if known.is_empty() {
            Ok(())
        } else {
            self.feed(index, Input::Directives(known))
        }
    }

    fn send_directives(&mut self, index: usize, other: usize, directives: Vec<Directive>) {
        if directives.is_empty() || !self.net.reachable(index, other) {
            return;
        }
        let due = Due::Directives {
            host: other,
            directives,
        };
        self.queue
            .push(self.now + self.net.latency(index, other), due);
    }
}
