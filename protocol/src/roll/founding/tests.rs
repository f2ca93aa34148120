//! Founders that die, wait, or give way.

use super::*;
use crate::roll::tests::record;

/// A swarm in which every message arrives at once, unless its sender or receiver is dead.
pub(super) struct Swarm {
    pub(super) peers: SortedMap<PeerId, Founding>,
}

impl Swarm {
    pub(super) fn new(ids: std::ops::Range<u16>, start_with: usize) -> Self {
        let peers = ids.map(|id| (record(id).peer, founding(id, start_with)));
        let mut this = Self {
            peers: peers.collect(),
        };
        let all: Vec<PeerRecord> = this.peers.values().map(|peer| peer.me.clone()).collect();
        for peer in this.peers.values_mut() {
            all.iter().for_each(|other| peer.greet(other));
        }
        this.deliver(|_| true);
        this
    }

    /// Delivers what passes, and what follows from it.
    fn deliver(&mut self, passes: impl Fn(&FoundingMessage) -> bool) {
        loop {
            let said = self.peers.values_mut();
            let said = said.map(|peer| (peer.me.clone(), peer.says()));
            let said: Vec<(PeerRecord, Vec<Say>)> = said.filter(|(_, s)| !s.is_empty()).collect();
            if said.is_empty() {
                return;
            }
            for (from, says) in said {
                for (to, message) in says.into_iter().filter(|(_, message)| passes(message)) {
                    if let Some(to) = self.peers.get_mut(&to.peer) {
                        to.said(&from, &message);
                    }
                }
            }
        }
    }

    pub(super) fn ticks(&mut self, ticks: u32, passes: impl Fn(&FoundingMessage) -> bool) {
        for _ in 0..ticks {
            let linked: Vec<PeerRecord> = self.peers.values().map(|p| p.me.clone()).collect();
            let without = self.peers.values_mut().filter(|peer| peer.roll().is_none());
            without.for_each(|peer| peer.tick(&linked));
            self.deliver(&passes);
        }
    }

    pub(super) fn founder(&self) -> PeerId {
        let mut all = self.peers.values();
        let first = all.find(|peer| peer.register.is_first());
        first.expect("all know each other").me.peer
    }

    /// The rolls that are known, and how many peers have none.
    fn rolls(&self) -> (SortedSet<Digest>, usize) {
        let rolls = self.peers.values().filter_map(Founding::roll);
        let rolls: Vec<Digest> = rolls.map(|roll| roll.digest()).collect();
        let without = self.peers.len() - rolls.len();
        (rolls.into_iter().collect(), without)
    }
}

pub(super) fn founding(id: u16, start_with: usize) -> Founding {
    let me = record(id);
    let run = me.run;
    Founding::new(me, run, 0, start_with)
}

#[test]
fn nothing_is_founded_until_enough_are_here() {
    let mut swarm = Swarm::new(0..5, 6);
    swarm.ticks(200, |_| true);
    assert_eq!(swarm.rolls(), (SortedSet::new(), 5));
    let late = founding(5, 6);
    let at = late.me.clone();
    swarm.peers.insert(at.peer, late);
    for peer in swarm.peers.values_mut() {
        peer.greet(&at);
    }
    swarm.ticks(2 * FOUNDING_QUIET_TICKS, |_| true);
    let (rolls, without) = swarm.rolls();
    assert_eq!((rolls.len(), without), (1, 0), "no wait for a retry");
}

#[test]
fn a_roll_that_was_accepted_outlives_its_founder() {
    // All five must be here for a new roll, so the four that are left can only choose the old one.
    let mut swarm = Swarm::new(0..5, 5);
    let accepted = |message: &FoundingMessage| matches!(message, FoundingMessage::Accepted { .. });
    swarm.ticks(FOUNDING_QUIET_TICKS + 2, |message| !accepted(message));
    let founder = swarm.founder();
    let chosen = swarm.peers[&founder].acceptor.accepted;
    assert!(chosen.is_some() && swarm.rolls().1 == 5);
    swarm.peers.remove(&founder);
    for peer in swarm.peers.values_mut() {
        peer.lost(founder);
    }
    swarm.ticks(4 * FOUNDING_RETRY_TICKS, |_| true);
    let roll = chosen.map(|(_, roll)| roll.digest);
    assert_eq!(swarm.rolls(), (roll.into_iter().collect(), 0));
}

#[test]
fn a_founder_whose_death_no_one_reports_is_left_out() {
    let mut swarm = Swarm::new(0..5, 4);
    let founder = swarm.founder();
    swarm.peers.remove(&founder);
    swarm.ticks(5 * FOUNDING_RETRY_TICKS, |_| true);
    let (rolls, without) = swarm.rolls();
    assert_eq!((rolls.len(), without), (1, 0));
}

#[test]
fn a_founder_of_a_lower_rank_gives_way() {
    let swarm = Swarm::new(0..5, 1);
    let first = swarm.founder();
    let mut others = swarm.peers.values();
    let other = others.find(|peer| peer.me.peer != first).expect("five");
    let mut alone = Founding::new(other.me.clone(), other.me.run, 0, 2);
    assert!(alone.register.is_first());
    let at = swarm.peers[&first].me.clone();
    alone.said(&at, &FoundingMessage::Registrars(vec![at.clone()]));
    assert!(!alone.register.is_first());
    (0..100).for_each(|_| alone.tick(std::slice::from_ref(&at)));
    assert!(alone.proposal.is_none());
}

#[test]
fn a_registrar_that_knows_no_other_peer_is_found() {
    let mut founder = founding(0, 2);
    let lonely = (1..).find(|id| {
        let mut both = founding(0, 2);
        both.register.meet(&record(*id));
        both.register.is_first()
    });
    let lonely = record(lonely.expect("one of a lower rank"));
    founder.said(
        &record(0),
        &FoundingMessage::Registrars(vec![lonely.clone()]),
    );
    (0..8).for_each(|_| founder.tick(&[]));
    assert!(founder.says().iter().any(|(to, _)| *to == lonely));
}

#[test]
fn newcomers_without_end_do_not_put_the_founding_off() {
    let mut founder = founding(0, 2);
    let mut prepared = false;
    for id in 1..400 {
        founder.said(&record(id), &FoundingMessage::Here(vec![record(id)]));
        // All newcomers rank below it.
        (1..=id).for_each(|id| founder.register.lose(record(id).peer));
        founder.said(&record(id), &FoundingMessage::Here(vec![record(id)]));
        founder.tick(&[]);
        prepared |= founder.proposal.is_some();
    }
    assert!(prepared);
}
