//! Random schedules of 4 to 12 peers that found a run. Messages are lost, doubled and overtake each
//! other; links are few; peers die at any step, between two messages of one step too. Some deaths
//! are never reported. After a while nothing is lost any more and no one dies.
//!
//! `start_with` is above three quarters of the peers, so the lists of any two founders overlap enough
//! for one roll, however little they know.

use super::{Founding, Say};
use crate::sorted::SortedSet;
use crate::wire::{PeerRecord, RecordFields};
use crate::{Digest, FoundingMessage, PeerId, RunId, Time};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;

/// Units of time between two steps of a peer.
const TICK: u64 = 10;

/// Steps within which all must have the roll, once losses stop.
const SOON: u64 = 400;

enum Event {
    Tick(usize),
    Said(usize, usize, FoundingMessage),
    /// The first peer notices that its link with the second is gone.
    Lost(usize, usize),
    /// A link between the two comes up.
    Linked(usize, usize),
}

struct World {
    draw: ChaCha8Rng,
    records: Vec<PeerRecord>,
    peers: Vec<Founding>,
    alive: Vec<bool>,
    /// How many messages a peer says before it dies.
    dies_after: Vec<Option<u64>>,
    links: SortedSet<(usize, usize)>,
    events: BTreeMap<(u64, u64), Event>,
    now: u64,
    next: u64,
    /// The first unit of time without faults.
    calm: u64,
    /// Of 16 messages, how many are lost, doubled, or late before that.
    faults: u64,
    /// All rolls that a peer took for founded, whether it lives or not.
    founded: SortedSet<Digest>,
}

impl World {
    /// A number of peers in a range.
    fn new(seed: u64, (fewest, most): (usize, usize)) -> (Self, usize) {
        let mut draw = ChaCha8Rng::seed_from_u64(seed);
        let count = fewest + draw.next_u64() as usize % (most - fewest + 1);
        let run = RunId::from_bytes([1; 32]);
        let record = |draw: &mut ChaCha8Rng| {
            let mut peer = [0; 32];
            draw.fill_bytes(&mut peer);
            PeerRecord::from(RecordFields {
                peer: PeerId::from_bytes(peer),
                run,
                sequence: 1,
                expires: Time::NEVER,
                addresses: vec![vec![7; 20]],
                locality: crate::Locality::default(),
                signature: Vec::new(),
            })
        };
        let records: Vec<PeerRecord> = (0..count).map(|_| record(&mut draw)).collect();
        // Above three quarters, at most all.
        let least = 3 * count / 4 + 1;
        let start_with = least + (draw.next_u64() as usize) % (count - least + 1);
        let found = |record: &PeerRecord| {
            let mut founding = Founding::new(record.clone(), run, 0, start_with);
            // Two or three records a page.
            founding.terms.page_bytes = 250;
            founding
        };
        let peers = records.iter().map(found).collect();
        let calm = TICK * (draw.next_u64() % 150);
        let deaths = draw.next_u64() as usize % (count / 2 + 1);
        let mut dies_after = vec![None; count];
        for _ in 0..deaths {
            let peer = draw.next_u64() as usize % count;
            dies_after[peer] = Some(draw.next_u64() % (12 * count as u64 * (1 + calm / TICK / 8)));
        }
        let faults = draw.next_u64() % 9;
        let mut world = Self {
            draw,
            records,
            peers,
            alive: vec![true; count],
            dies_after,
            links: SortedSet::new(),
            events: BTreeMap::new(),
            now: 0,
            next: 0,
            calm,
            faults,
            founded: SortedSet::new(),
        };
        let dense = 1 + world.below(8);
        for peer in 0..count {
            let start = world.below(4 * TICK);
            world.at(start, Event::Tick(peer));
            for other in 0..peer {
                // A chain at least.
                if other + 1 == peer || world.below(8) < dense {
                    let delay = world.below(6 * TICK);
                    world.at(delay, Event::Linked(other, peer));
                }
            }
        }
        (world, start_with)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.draw.next_u64() % end
    }

    fn at(&mut self, delay: u64, event: Event) {
        self.next += 1;
        self.events.insert((self.now + delay, self.next), event);
    }

    fn index(&self, peer: PeerId) -> usize {
        let mut all = self.records.iter();
        all.position(|r| r.peer == peer).expect("one of the peers")
    }

    fn is_linked(&self, a: usize, b: usize) -> bool {
        self.links.contains(&(a.min(b), a.max(b)))
    }

    fn neighbours(&self, peer: usize) -> Vec<usize> {
        let all = 0..self.peers.len();
        all.filter(|other| self.is_linked(peer, *other)).collect()
    }

    /// Sends what a peer has to say, as far as it lives to do so.
    fn flush(&mut self, from: usize) {
        let says: Vec<Say> = self.peers[from].says();
        for (to, message) in says {
            if !self.alive[from] {
                return;
            }
            let to = self.index(to.peer);
            if let Some(left) = &mut self.dies_after[from] {
                if *left == 0 && self.now < self.calm {
                    self.die(from);
                    return;
                }
                *left = left.saturating_sub(1);
            }
            if !self.is_linked(from, to) {
                // The peer is dialled; what was said is lost.
                if self.alive[to] {
                    let delay = 1 + self.below(2 * TICK);
                    self.at(delay, Event::Linked(from, to));
                }
                continue;
            }
            let faulty = self.now < self.calm;
            let copies = match self.below(16) < self.faults {
                true if faulty => self.below(3),
                _ => 1,
            };
            for _ in 0..copies {
                let late = faulty && self.below(16) < self.faults;
                let delay = 1 + self.below(if late { 20 * TICK } else { 4 });
                self.at(delay, Event::Said(from, to, message.clone()));
            }
        }
    }

    fn die(&mut self, peer: usize) {
        self.alive[peer] = false;
        for other in self.neighbours(peer) {
            if self.below(4) > 0 {
                let delay = 1 + self.below(10 * TICK);
                self.at(delay, Event::Lost(other, peer));
            }
        }
    }

    fn step(&mut self) {
        let Some(((now, _), event)) = self.events.pop_first() else {
            return;
        };
        self.now = now;
        let touched = match event {
            Event::Tick(peer) if self.alive[peer] => {
                let linked = self.neighbours(peer).into_iter();
                let linked: Vec<_> = linked.map(|other| self.records[other].clone()).collect();
                // A peer with its roll only serves others.
                if self.peers[peer].roll().is_none() {
                    self.peers[peer].tick(&linked);
                }
                self.at(TICK, Event::Tick(peer));
                peer
            }
            Event::Said(from, to, message) if self.alive[to] => {
                let from = self.records[from].clone();
                self.peers[to].said(&from, &message);
                to
            }
            Event::Lost(peer, gone) => {
                self.links.remove(&(peer.min(gone), peer.max(gone)));
                let gone = self.records[gone].peer;
                self.peers[peer].lost(gone);
                peer
            }
            Event::Linked(a, b) if self.alive[a] && self.alive[b] => {
                if self.links.insert((a.min(b), a.max(b))) {
                    let (of_a, of_b) = (self.records[a].clone(), self.records[b].clone());
                    self.peers[a].greet(&of_b);
                    self.peers[b].greet(&of_a);
                    self.flush(a);
                }
                b
            }
            _ => return,
        };
        if let Some(name) = self.peers[touched].founded {
            self.founded.insert(name.digest);
        }
        self.flush(touched);
    }

    fn living(&self) -> impl Iterator<Item = &Founding> {
        let all = self.peers.iter().zip(&self.alive);
        all.filter(|(_, alive)| **alive).map(|(peer, _)| peer)
    }

    /// True if the living could find each other: by links, or by records of registrars. The founding
    /// cannot help a peer that lost its only neighbour before it knew another.
    fn is_connected(&self) -> bool {
        let knows = |a: usize, b: usize| {
            let mut known = self.peers[a].register.registrars();
            self.is_linked(a, b) || known.any(|r| r.peer == self.records[b].peer)
        };
        let living: Vec<usize> = (0..self.peers.len()).filter(|p| self.alive[*p]).collect();
        let mut found: SortedSet<usize> = living.iter().take(1).copied().collect();
        let mut open: Vec<usize> = found.iter().copied().collect();
        while let Some(a) = open.pop() {
            for b in &living {
                if (knows(a, *b) || knows(*b, a)) && found.insert(*b) {
                    open.push(*b);
                }
            }
        }
        found.len() == living.len()
    }

    fn all_have_it(&self) -> bool {
        self.living().all(|peer| peer.roll().is_some())
    }
}

/// What went wrong, or how many steps after the last fault all had the roll.
fn check(seed: u64, sizes: (usize, usize)) -> Result<Option<u64>, String> {
    let (mut world, start_with) = World::new(seed, sizes);
    let end = world.calm + SOON * TICK;
    while world.now < end && !(world.now >= world.calm && world.all_have_it()) {
        world.step();
        if world.founded.len() > 1 {
            let at = world.now / TICK;
            return Err(format!("seed {seed}: two rolls at step {at}"));
        }
    }
    let enough = world.living().count() >= start_with;
    let known = world.living().any(|peer| peer.founded.is_some());
    if world.all_have_it() {
        return Ok(Some(world.now.saturating_sub(world.calm) / TICK));
    }
    if (enough || known) && world.is_connected() {
        let (all, living) = (world.peers.len(), world.living().count());
        let have = world.living().filter(|p| p.roll().is_some()).count();
        Err(format!(
            "seed {seed}: {have} of {living} have the roll, of {all}, start_with {start_with}"
        ))
    } else {
        Ok(None)
    }
}

fn check_all(seeds: core::ops::Range<u64>, sizes: (usize, usize)) {
    let results: Vec<_> = seeds.clone().map(|seed| check(seed, sizes)).collect();
    let seeds = seeds.end;
    let wrong: Vec<&String> = results.iter().filter_map(|r| r.as_ref().err()).collect();
    assert!(wrong.is_empty(), "{} of {seeds}: {wrong:#?}", wrong.len());
    let founded = results.iter().filter_map(|r| *r.as_ref().ok()?);
    let (count, slowest) = founded.fold((0, 0), |(n, most), steps| (n + 1, steps.max(most)));
    println!("{count} of {seeds} found a roll, the slowest {slowest} steps after the last fault");
    assert!(2 * count > seeds, "too few found a roll: {count}");
}

#[test]
fn random_schedules_found_one_roll_that_all_get() {
    check_all(crate::seeds::seeds(300), (4, 12));
}

#[test]
fn more_peers_than_registrars_found_one_roll_that_all_get() {
    check_all(0..20, (64, 90));
}
