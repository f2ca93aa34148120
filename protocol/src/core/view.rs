//! The view: the peers that one peer knows, what they last said, and their records. Bounded.
//!
//! Where members sign, those count whose contributions are in the last rounds that had a result ([`Seats`]). All
//! members that apply a round see the same contributors, so they count the same seats, whichever links they miss
//! and whichever peers they have cut off.

use crate::core::links::Links;
use crate::core::measured_links::MeasuredLinks;
use crate::core::split::Split;
use crate::limits::{
    ABSENCE_MAX, ABSENCE_ROUNDS_MAX, AWAY_ROUNDS_MAX, CHANCE_ROUNDS, DIAL_ATTEMPTS_MAX,
    GRID_STRANGERS_MAX, GRID_VIEW_PEERS_MAX, GROUP_MEMBERS_MAX, LOST_MEMBER_WAIT, RETURN_ROUNDS,
    VIEW_PEERS_MAX,
};
use crate::sorted::{SortedMap, SortedSet};
use crate::wire::{Muster, PeerRecord};
use crate::{Base, Branch, Digest, PeerId, Plan, Round, Time};
use core::time::Duration;
use std::collections::VecDeque;

/// How often the pause between two dials of a peer that a split cut off doubles: up to 16 seconds. While it is
/// away the branches of both sides grow, and the link may be back at any time.
const MISSING_DOUBLINGS_MAX: u32 = 4;

/// The lower median of some rounds; the first round of all if there are none.
fn median(rounds: impl Iterator<Item = Round>) -> Round {
    let mut rounds: Vec<Round> = rounds.collect();
    rounds.sort_unstable();
    let middle = rounds.len().saturating_sub(1) / 2;
    rounds.get(middle).copied().unwrap_or_default()
}

/// All peers that one peer knows.
#[derive(Debug, Default)]
pub struct View {
    /// Boxed: a search reads ids that lie side by side, and a newcomer moves few bytes.
    remotes: SortedMap<PeerId, Box<Remote>>,
    /// Set if the run has a roll: peers need links with the counterparts that it gives them.
    rolls: bool,
    mine: Option<PeerRecord>,
    /// Which peers were lost to another side of a split.
    pub(crate) split: Split,
    /// Who counts, where members sign.
    pub(crate) seats: Seats,
    /// The rates of links, where the topology chooses by them.
    pub(crate) links: Links,
    /// The rates of links, where the schedule of an all-reduce goes by them.
    pub(crate) measured: MeasuredLinks,
}

impl View {
    /// No peer is known yet.
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            rolls: plan.agreement.grouping.has_roll(),
            split: Split::new(plan),
            ..Self::default()
        }
    }

    /// Every known peer.
    pub fn iter(&self) -> impl Iterator<Item = (PeerId, &Remote)> {
        self.remotes.iter().map(|(id, remote)| (*id, &**remote))
    }

    /// One peer.
    pub fn get(&self, peer: PeerId) -> Option<&Remote> {
        self.remotes.get(&peer).map(Box::as_ref)
    }

    /// Peers with a link and a compatible hello that may take part in rounds.
    pub fn greeted(&self) -> impl Iterator<Item = (PeerId, &Remote)> {
        self.audience().filter(|(_, r)| !r.contact.observes)
    }

    /// As [`View::greeted`], with those that only observe: all peers that hear signs of life.
    pub fn audience(&self) -> impl Iterator<Item = (PeerId, &Remote)> {
        self.iter().filter(|(_, r)| r.is_here() && !r.banned)
    }

    /// Peers that take part in this peer's rounds and are not suspected.
    pub fn live(&self) -> impl Iterator<Item = (PeerId, &Remote)> {
        self.of_this_branch()
            .filter(|(_, r)| r.ready && !r.suspected)
    }

    /// Peers with a link and a compatible hello, without those of a branch that is to be merged.
    pub(crate) fn of_this_branch(&self) -> impl Iterator<Item = (PeerId, &Remote)> {
        self.greeted().filter(|(_, r)| !r.contact.apart)
    }

    /// Peers of a branch that is to be merged with this one.
    pub(crate) fn apart(&self) -> impl Iterator<Item = (PeerId, &Remote)> {
        self.greeted().filter(|(_, r)| r.contact.apart)
    }

    /// Peers of this peer's branch that know of it.
    pub(crate) fn own_side(&self) -> impl Iterator<Item = (PeerId, &Remote)> {
        let meets = |r: &Remote| {
            let theirs = r.contact.branch.as_deref();
            theirs.is_some_and(|theirs| self.split.meets(theirs))
        };
        self.of_this_branch()
            .filter(move |(id, r)| meets(r) && !self.split.misses(*id))
    }

    /// A peer is linked and has greeted.
    pub(crate) fn is_here(&self, peer: PeerId) -> bool {
        self.get(peer).is_some_and(Remote::is_here)
    }

    pub(crate) fn takes_part(&self, peer: PeerId) -> bool {
        let remote = self.get(peer);
        remote.is_some_and(|remote| remote.is_here() && remote.ready)
    }

    /// Others may count on a peer in this round: it takes part, did not fail a moment ago, and
    /// did not come back a moment ago either. One that did begins its first round later than the others.
    pub(crate) fn serves(&self, peer: PeerId) -> bool {
        let late = |remote: &Remote| remote.suspected || remote.probation;
        self.takes_part(peer) && !self.get(peer).is_some_and(late)
    }

    /// A peer did its part in a round: it is waited for from now on.
    pub(crate) fn did_its_part(&mut self, peer: PeerId, round: Round) {
        if let Some(remote) = self.get_mut(peer) {
            remote.round = remote.round.max(round);
            remote.ready = true;
            remote.suspected = false;
            remote.settle();
        }
    }

    /// A peer is of a branch that is to be merged with this one.
    pub(crate) fn is_apart(&self, peer: PeerId) -> bool {
        self.get(peer).is_some_and(|r| r.contact.apart)
    }

    /// Finds out again which peers are of another branch. One that holds what this peer holds, or began the
    /// round that it is in as this peer did, is not: links were missing, but there is nothing to merge.
    pub(crate) fn sort_sides(&mut self, anchor: Digest) {
        let split = &self.split;
        if split.unmerged {
            return;
        }
        for (id, remote) in &mut self.remotes {
            let theirs = remote.contact.branch.as_deref();
            remote.contact.apart = theirs.is_some_and(|theirs| {
                let same = [Some(anchor), split.began_with(remote.round)];
                let missing = split.misses(*id) && !same.contains(&remote.anchor);
                missing && split.meets(theirs) && split.credible(theirs, remote.round)
            });
        }
    }

    /// A group formed at this base: notes who is in it and who cannot be reached.
    pub(crate) fn grouped(&mut self, base: Base, members: impl Iterator<Item = (PeerId, f64)>) {
        let mut heaviest: f64 = 0.0;
        let ids = members.map(|(id, weight)| {
            heaviest = heaviest.max(weight);
            id
        });
        let ids = ids.collect();
        let remotes = &self.remotes;
        let lost = |id: PeerId| {
            remotes
                .get(&id)
                .is_none_or(|r| !(r.is_here() || r.contact.left))
        };
        self.split.grouped(base, &ids, heaviest, lost);
    }

    /// The round that half of the live peers have reached: a single peer's
    /// claim has no effect.
    pub fn median_round(&self) -> Round {
        median(self.live().map(|(_, remote)| remote.round))
    }

    /// As [`View::median_round`], over all linked peers that take part, suspected ones among them.
    pub(crate) fn usual_round(&self) -> Round {
        let there = self.greeted().filter(|(_, remote)| remote.ready);
        median(there.map(|(_, remote)| remote.round))
    }

    /// This view can hold the whole swarm, so that all peers may be expected to know the
    /// same others.
    pub fn is_complete(&self) -> bool {
        self.remotes.len() < VIEW_PEERS_MAX / 2
    }

    /// How many peers it has room for.
    const fn most(&self) -> usize {
        if self.rolls {
            GRID_VIEW_PEERS_MAX
        } else {
            VIEW_PEERS_MAX
        }
    }

    /// How many peers are known.
    pub fn len(&self) -> usize {
        self.remotes.len()
    }

    /// No peer is known.
    pub fn is_empty(&self) -> bool {
        self.remotes.is_empty()
    }

    pub(crate) fn get_mut(&mut self, peer: PeerId) -> Option<&mut Remote> {
        self.remotes.get_mut(&peer).map(Box::as_mut)
    }

    /// The entry of a peer. A full view first forgets a peer without a link.
    pub(crate) fn entry(&mut self, peer: PeerId) -> Option<&mut Remote> {
        if !self.remotes.contains_key(&peer) && self.remotes.len() >= self.most() {
            let unlinked = self.remotes.iter().filter(|(_, r)| !r.linked);
            // A banned peer is forgotten last, because it would come back as a stranger.
            let idle = unlinked.min_by_key(|(id, r)| (r.banned, **id));
            let idle = idle.map(|(id, _)| *id)?;
            self.remotes.remove(&idle);
        }
        Some(self.remotes.entry(peer).or_default())
    }

    /// A peer has done something: it is suspected no longer.
    pub(crate) fn forgive(&mut self, peer: PeerId) {
        if let Some(remote) = self.remotes.get_mut(&peer) {
            remote.suspected = false;
        }
    }

    /// Marks a peer suspected; true when it was not.
    pub(crate) fn suspect(&mut self, peer: PeerId) -> bool {
        let remote = self.get_mut(peer);
        remote.is_some_and(|remote| !std::mem::replace(&mut remote.suspected, true))
    }

    /// This peer's own record.
    pub const fn mine(&self) -> Option<&PeerRecord> {
        self.mine.as_ref()
    }

    pub(crate) fn set_mine(&mut self, record: PeerRecord) {
        self.mine = Some(record);
    }

    /// Adds a verified record; true if it is new. A full view adds a new peer only from a link.
    pub(crate) fn learn(&mut self, record: &PeerRecord, now: Time) -> bool {
        let room = if self.rolls {
            // The rest is for counterparts.
            GRID_STRANGERS_MAX
        } else {
            VIEW_PEERS_MAX
        };
        if self.remotes.len() >= room && !self.remotes.contains_key(&record.peer) {
            return false;
        }
        let Some(remote) = self.entry(record.peer) else {
            return false;
        };
        let old = remote.record();
        let news = old.is_none_or(|old| record.sequence > old.sequence);
        if news {
            // A newer record may have other addresses, so earlier failures say nothing.
            remote.contact.dials = 0;
            remote.contact.dial_at = Some(now);
            remote.contact.record = Some(record.clone());
        }
        news
    }

    /// Records that are still believed, own first.
    pub(crate) fn records(&self, now: Time) -> impl Iterator<Item = &PeerRecord> {
        let others = self.remotes.values().filter_map(|r| r.record());
        let all = self.mine.iter().chain(others);
        all.filter(move |r| r.expires > now)
    }

    /// Forgets records that have expired and peers of whom nothing is left.
    pub(crate) fn expire(&mut self, now: Time) {
        self.remotes.retain(|_, remote| {
            if remote.record().is_some_and(|r| r.expires <= now) {
                remote.contact.record = None;
            }
            remote.linked || remote.banned || remote.contact.record.is_some()
        });
    }

    pub(crate) fn dialling(&self, now: Time) -> usize {
        let waits = |r: &Remote| {
            let contact = &r.contact;
            !r.linked && contact.dials > 0 && contact.dial_at.is_some_and(|at| at > now)
        };
        self.iter().filter(|(_, r)| waits(r)).count()
    }

    /// Peers that should be dialled now, with their records; each dial waits twice as long.
    pub(crate) fn due_dials(&mut self, now: Time, room: usize) -> Vec<PeerRecord> {
        let due = self.due(now).into_iter().take(room);
        due.filter_map(|peer| self.dial(peer, now)).collect()
    }

    pub(crate) fn due(&self, now: Time) -> Vec<PeerId> {
        let known = self.iter().filter(|(_, r)| r.record().is_some());
        let unlinked = known.filter(|(_, r)| !r.linked && !r.banned);
        // One that a split cut off may come back at any time.
        let open = unlinked.filter(|(id, r)| {
            let missing = self.split.misses(*id) && r.contact.dials != DIALS_REFUSED;
            missing || r.contact.dials < DIAL_ATTEMPTS_MAX
        });
        let due = open.filter(|(_, r)| r.contact.dial_at.is_some_and(|at| at <= now));
        due.map(|(peer, _)| peer).collect()
    }

    /// Notes that a peer is dialled now; the next dial waits twice as long. Gives back its record.
    pub(crate) fn dial(&mut self, peer: PeerId, now: Time) -> Option<PeerRecord> {
        let doublings = if self.split.misses(peer) {
            MISSING_DOUBLINGS_MAX
        } else {
            DIAL_ATTEMPTS_MAX
        };
        let contact = &mut self.remotes.get_mut(&peer)?.contact;
        contact.dials = (contact.dials + 1).min(DIAL_ATTEMPTS_MAX);
        let pause = Duration::from_secs(1 << contact.dials.min(doublings));
        contact.dial_at = Some(now + pause);
        contact.record.clone()
    }
}

/// This peer's knowledge of one other peer.
#[derive(Clone, Debug, Default)]
pub struct Remote {
    /// Set while a link is up.
    pub linked: bool,
    /// Set once it said a compatible hello on this link.
    pub greeted: bool,
    /// Set while it takes part in rounds, as it says.
    pub ready: bool,
    /// How far it is on its way to its first round, as it says.
    pub muster: Muster,
    /// Set while it takes part for the first time and is not waited for.
    pub probation: bool,
    /// The last round in which it was in a group with this peer, on this link.
    pub grouped: Option<Round>,
    /// Set from a failure to do its part until it speaks.
    pub suspected: bool,
    /// The round it is in, in its own words.
    pub round: Round,
    /// Its anchor when it said hello.
    pub anchor: Option<Digest>,
    /// Round-trip time, once measured.
    pub rtt: Option<Duration>,
    /// Bytes per second, once measured.
    pub rate: Option<u64>,
    /// Misbehaviour so far.
    pub score: u32,
    /// Cut off for good.
    pub banned: bool,
    pub(crate) conduct: Conduct,
    pub(crate) contact: Contact,
}

/// How well a remote has done its part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conduct {
    /// The round in which it is waited for next, and the rounds until the time after.
    pub(crate) trial: Option<(Round, u64)>,
    /// Rounds without a contribution of it.
    pub(crate) absence: Absence,
}

/// How a remote is reached, and the attempts so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contact {
    /// Set if its certificate gives it no part in rounds.
    pub(crate) observes: bool,
    /// Set once this peer cut it off on this link: its slices are rejected.
    pub(crate) refused: bool,
    pub(crate) record: Option<PeerRecord>,
    /// When this peer last greeted it.
    pub(crate) hello_at: Option<Time>,
    pub(crate) dials: u32,
    /// When it is dialled next.
    pub(crate) dial_at: Option<Time>,
    /// Set if it has the state with which this peer began, and begins when it hears of that.
    pub(crate) together: bool,
    /// By how many seconds its clock is ahead of this peer's, in its own record; zero if about right.
    pub(crate) clock: Option<i64>,
    /// Set once its wrong clock was reported.
    pub(crate) clock_told: bool,
    /// Set if their last link was one too many: it is not dialled for the sake of a link.
    pub(crate) spared: bool,
    /// Set once it said goodbye because it leaves.
    pub(crate) left: bool,
    /// The branch that it is in, in its own words. Few have one, and it is large.
    pub(crate) branch: Option<Box<Branch>>,
    /// Since when its link is gone, if it was in groups with this peer until then, or this peer knows no result, and it
    /// said no goodbye.
    pub(crate) lost: Option<Time>,
    /// Set while its branch is to be merged with this one: until then their rounds differ.
    pub(crate) apart: bool,
}

/// Rounds after which a peer that always comes late is waited for again.
const TRIAL_GAP_MAX: u64 = 64;

/// Dials of a peer that refused this one: left alone until its record changes.
pub(crate) const DIALS_REFUSED: u32 = u32::MAX;

impl Remote {
    /// Where it can be reached, in its own words, once it said so.
    pub const fn record(&self) -> Option<&PeerRecord> {
        self.contact.record.as_ref()
    }

    /// A link is up, and it said a compatible hello on it.
    pub(crate) const fn is_here(&self) -> bool {
        self.linked && self.greeted
    }

    /// Away though it takes part: it neither said goodbye nor was sent away.
    pub const fn is_missed(&self) -> bool {
        let contact = &self.contact;
        let expected = !contact.left && !contact.spared && !contact.refused && !contact.observes;
        expected && !self.greeted && !self.banned && contact.dials != DIALS_REFUSED
    }

    /// It takes part again, from `round` on. At first it is on probation and no peer waits for it.
    /// Then it is waited for in one round, and, if it is late again, less and less often. A
    /// newcomer begins its first rounds a little after the others and would always be late if no
    /// peer waited.
    pub(crate) fn on_trial(&mut self, round: Round) {
        let (from, gap) = self.conduct.trial.unwrap_or((round.next(), 1));
        self.probation = round < from;
        self.conduct.trial = Some(if self.probation {
            (from, gap)
        } else {
            (
                Round(round.0.saturating_add(gap)),
                (2 * gap).min(TRIAL_GAP_MAX),
            )
        });
    }

    /// It did its part with others: from now on others wait for it as for any peer.
    pub(crate) fn settle(&mut self) {
        self.probation = false;
        self.conduct.trial = None;
    }

    /// Lets it be dialled again from the shortest wait on, unless one of the two refused the other.
    pub(crate) fn forgive_dials(&mut self) {
        if self.contact.dials != DIALS_REFUSED {
            self.contact.dials = 0;
        }
    }
}

/// Rounds with a result for which a contribution gives its peer a seat, where members sign.
pub(crate) const SEAT_ROUNDS: usize = 8;

/// Seats that results may give.
pub(crate) const SEATS_MAX: usize = SEAT_ROUNDS * GROUP_MEMBERS_MAX;

/// Rounds after which a result says nothing of seats any more, because too many had none since.
const SEAT_AGE_MAX: u64 = 64;

/// The contributors of the last rounds that had a result.
#[derive(Debug, Default)]
pub(crate) struct Seats {
    /// Oldest first; at most [`SEAT_ROUNDS`].
    rounds: VecDeque<(Round, SortedSet<PeerId>)>,
    noted: Time,
}

impl Seats {
    pub(crate) fn note(&mut self, now: Time, round: Round, contributors: SortedSet<PeerId>) {
        if self.rounds.back().is_some_and(|(last, _)| *last >= round) {
            return;
        }
        if self.rounds.len() == SEAT_ROUNDS {
            self.rounds.pop_front();
        }
        self.rounds.push_back((round, contributors));
        self.noted = now;
    }

    /// The contributors of the last rounds; none where the last result is too long ago to know.
    pub(crate) fn of(&self, round: Round) -> SortedSet<PeerId> {
        let recent = self
            .rounds
            .iter()
            .filter(|(noted, _)| round.since(*noted) <= SEAT_AGE_MAX);
        recent
            .flat_map(|(_, peers)| peers.iter().copied())
            .collect()
    }

    /// True once no round has had a result for [`LOST_MEMBER_WAIT`]: members without a link may be gone for good.
    pub(crate) fn stand_still(&self, now: Time) -> bool {
        now.since(self.noted) >= LOST_MEMBER_WAIT
    }
}

/// Decided rounds of the last 16 that it may miss, in a row or not, before they go on without it.
const ABSENCE_MISSED_MAX: u32 = 9;

/// Members that say that they take part and contribute nothing: after some rounds the others go on
/// without them, and give them another chance less and less often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Absence {
    /// The last 16 decided rounds in which the peer should have taken part, the newest in the lowest bit:
    /// one where it contributed nothing.
    missed: u16,
    /// How often it has lost its seat.
    losses: u32,
    /// Without a seat: the round from which it is given another chance, and its contributions since.
    away: Option<(Round, u32)>,
}

impl Absence {
    pub(crate) fn is_away(&self, round: Round) -> bool {
        self.away.is_some_and(|(back, _)| round < back)
    }

    pub(crate) fn has_a_chance(&self, round: Round) -> bool {
        self.away.is_some_and(|(back, _)| round >= back)
    }

    fn is_over(&self, round: Round) -> bool {
        let last = |back: Round| round.since(back) + 1 >= CHANCE_ROUNDS;
        self.away
            .is_some_and(|(back, _)| round >= back && last(back))
    }

    /// A round was decided without the peer. Gives the round of the next chance, if this one ends.
    pub(crate) fn pass(&mut self, round: Round) -> Option<Round> {
        self.is_over(round).then(|| self.lose(round))
    }

    /// A round was decided in which the peer should have come. Gives the round of its next chance,
    /// if it missed too many: in a row, or, where a `share` is asked for, of the last ones.
    pub(crate) fn note(&mut self, round: Round, came: bool, share: bool) -> Option<Round> {
        match (&mut self.away, came) {
            (None, true) => self.missed <<= 1,
            (Some((_, contributions)), true) => {
                *contributions += 1;
                if *contributions >= RETURN_ROUNDS {
                    // It has contributed often enough to be one of those that are waited for.
                    (self.away, self.missed) = (None, 0);
                }
            }
            // It is not waited for, so not coming is no absence.
            (Some((back, _)), false) if round < *back => {}
            (_, false) => {
                self.missed = self.missed << 1 | 1;
                let too_many = self.missed.trailing_ones() >= ABSENCE_ROUNDS_MAX
                    || (share && self.missed.count_ones() >= ABSENCE_MISSED_MAX);
                // Another chance ends with the first absence.
                if self.away.is_some() || too_many {
                    return Some(self.lose(round));
                }
            }
        }
        None
    }

    fn lose(&mut self, round: Round) -> Round {
        let rounds = (AWAY_ROUNDS_MAX >> ABSENCE_MAX) << self.losses.min(ABSENCE_MAX);
        // Peers that have seen another number of absences agree on every second chance.
        let after = round.0.saturating_add(rounds / 2 + 1);
        let back = Round(after.checked_next_multiple_of(rounds).unwrap_or(u64::MAX));
        self.losses += 1;
        (self.away, self.missed) = (Some((back, 0)), 0);
        back
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunId;
    use crate::limits::{GRID_COLUMNS_MAX, GROUP_MEMBERS_MAX};
    use crate::wire::RecordFields;

    fn peer(id: u16) -> PeerId {
        let mut bytes = [0; 32];
        bytes[..2].copy_from_slice(&id.to_be_bytes());
        PeerId::from_bytes(bytes)
    }

    fn record(id: u16, sequence: u64, expires: u64) -> PeerRecord {
        PeerRecord::from(RecordFields {
            peer: peer(id),
            run: RunId::from_bytes([1; 32]),
            sequence,
            expires: Time::ZERO + Duration::from_secs(expires),
            addresses: Vec::new(),
            locality: crate::Locality::default(),
            signature: Vec::new(),
        })
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn in_a_grid_there_is_room_for_the_counterparts_of_the_largest_roll() {
        let mut view = View {
            rolls: true,
            ..View::default()
        };
        let heard =
            (0..2 * GRID_STRANGERS_MAX as u16).filter(|id| view.learn(&record(*id, 1, 60), at(0)));
        assert_eq!(heard.count(), GRID_STRANGERS_MAX);
        let counterparts = (GRID_COLUMNS_MAX + GROUP_MEMBERS_MAX) as u16;
        for id in 1000..1000 + counterparts {
            view.entry(peer(id)).expect("room for a counterpart").linked = true;
        }
        assert_eq!(view.len(), GRID_STRANGERS_MAX + usize::from(counterparts));
        for id in 2000..3000 {
            if let Some(remote) = view.entry(peer(id)) {
                remote.linked = true;
            }
        }
        assert_eq!(view.len(), GRID_VIEW_PEERS_MAX);
        assert!(
            view.get(peer(1000)).is_some(),
            "a counterpart is not forgotten"
        );
    }

    #[test]
    fn a_full_view_adds_no_peer_until_a_link_makes_room() {
        let mut view = View::default();
        for id in 0..VIEW_PEERS_MAX as u16 {
            assert!(view.learn(&record(id, 1, 60), at(0)));
        }
        assert!(!view.learn(&record(5000, 1, 60), at(0)));
        view.get_mut(peer(0)).expect("known").linked = true;
        assert!(view.entry(peer(5000)).is_some());
        assert_eq!(view.len(), VIEW_PEERS_MAX);
        assert!(view.get(peer(0)).is_some(), "who is linked stays");
        assert!(view.get(peer(1)).is_none(), "the first that is not goes");
    }

    #[test]
    fn a_view_full_of_banned_peers_still_takes_a_link() {
        let mut view = View::default();
        for id in 0..VIEW_PEERS_MAX as u16 {
            view.entry(peer(id)).expect("room").banned = true;
        }
        assert!(view.entry(peer(5000)).is_some());
        for remote in view.remotes.values_mut() {
            remote.linked = true;
        }
        assert!(view.entry(peer(5001)).is_none(), "links are never dropped");
    }

    #[test]
    fn records_expire_and_the_newest_counts() {
        let mut view = View::default();
        assert!(view.learn(&record(1, 2, 10), at(0)));
        assert!(!view.learn(&record(1, 2, 99), at(0)), "not news");
        assert!(!view.learn(&record(1, 1, 99), at(0)), "older");
        assert!(view.learn(&record(1, 3, 20), at(0)));
        assert_eq!(view.records(at(19)).count(), 1);
        assert_eq!(view.records(at(20)).count(), 0);
        view.expire(at(20));
        assert!(view.is_empty());
    }

    #[test]
    fn every_dial_waits_twice_as_long_and_the_last_is_the_last() {
        let mut view = View::default();
        view.learn(&record(1, 1, 10_000), at(0));
        let mut dialled = Vec::new();
        for second in 0..1000 {
            if !view.due_dials(at(second), 4).is_empty() {
                dialled.push(second);
            }
        }
        assert_eq!(dialled, [0, 2, 6, 14, 30, 62]);
        assert_eq!(dialled.len(), DIAL_ATTEMPTS_MAX as usize);
        assert!(view.learn(&record(1, 2, 10_000), at(1000)));
        assert_eq!(
            view.due_dials(at(1000), 4).len(),
            1,
            "a new record is tried"
        );
    }

    #[test]
    fn who_was_cut_off_by_a_split_is_dialled_every_16_seconds_for_as_long_as_it_takes() {
        let mut view = View::default();
        view.learn(&record(1, 1, 10_000), at(0));
        let all = [0, 1].map(peer);
        let together = Base {
            round: Round(4),
            anchor: Digest::of(b"together"),
        };
        view.grouped(together, all.map(|id| (id, 8.0)).into_iter());
        let alone = Base {
            round: Round(5),
            ..together
        };
        view.grouped(alone, [(peer(0), 8.0)].into_iter());
        assert!(view.split.misses(peer(1)));
        let dialled: Vec<u64> = (0..300)
            .filter(|second| !view.due_dials(at(*second), 4).is_empty())
            .collect();
        assert_eq!(dialled[..6], [0, 2, 6, 14, 30, 46]);
        assert!(dialled.windows(2).all(|pair| pair[1] - pair[0] <= 16));
        assert_eq!(dialled.last(), Some(&286));
    }

    #[test]
    fn one_with_missing_links_is_of_another_branch_only_if_it_holds_something_else() {
        let mut view = View::default();
        let base = |round, held: &[u8]| Base {
            round: Round(round),
            anchor: Digest::of(held),
        };
        view.grouped(
            base(4, b"all"),
            [0, 1].map(|id| (peer(id), 8.0)).into_iter(),
        );
        // Its link is gone, and rounds without it have no result until the sixth.
        for at in [base(5, b"all"), base(6, b"all"), base(7, b"new")] {
            view.grouped(at, [(peer(0), 8.0)].into_iter());
        }
        let branch = view.split.mergeable().expect("a peer is missing");
        let remote = view.entry(peer(1)).expect("room");
        (remote.linked, remote.greeted) = (true, true);
        remote.contact.branch = Some(Box::new(branch));
        let mut is_apart = |said: Base| {
            let remote = view.get_mut(peer(1)).expect("known");
            (remote.round, remote.anchor) = (said.round, Some(said.anchor));
            view.sort_sides(Digest::of(b"new"));
            view.is_apart(peer(1))
        };
        assert!(!is_apart(base(9, b"new")), "it holds the same");
        assert!(!is_apart(base(6, b"all")), "it is late, or its word is old");
        assert!(is_apart(base(7, b"all")) && is_apart(base(6, b"other")));
    }

    #[test]
    fn who_refused_is_dialled_again_only_with_a_new_record() {
        let mut view = View::default();
        view.learn(&record(1, 1, 10_000), at(0));
        let remote = view.get_mut(peer(1)).expect("known");
        remote.contact.dials = DIALS_REFUSED;
        remote.forgive_dials();
        remote.contact.dial_at = Some(at(1));
        assert!(view.due_dials(at(500), 4).is_empty());
        view.learn(&record(1, 2, 10_000), at(500));
        assert_eq!(view.due_dials(at(500), 4).len(), 1);
    }

    #[test]
    fn a_peer_that_is_always_late_is_waited_for_less_and_less_often() {
        let mut remote = Remote::default();
        let waited: Vec<u64> = (10..60)
            .filter(|round| {
                remote.on_trial(Round(*round));
                !remote.probation
            })
            .collect();
        assert_eq!(waited, [11, 12, 14, 18, 26, 42]);
    }
}

#[cfg(test)]
mod seats_tests {
    use super::*;
    use core::time::Duration;

    fn peers(of: &[u8]) -> SortedSet<PeerId> {
        of.iter()
            .map(|byte| PeerId::from_bytes([*byte; 32]))
            .collect()
    }

    #[test]
    fn a_seat_lasts_for_some_results_and_not_longer() {
        let mut seats = Seats::default();
        assert!(seats.of(Round(0)).is_empty());
        seats.note(Time::ZERO, Round(0), peers(&[1, 2, 3]));
        for round in 1..SEAT_ROUNDS as u64 {
            seats.note(Time::ZERO, Round(round), peers(&[1, 2]));
            // A round that is noted twice counts once.
            seats.note(Time::ZERO, Round(round), peers(&[4]));
            assert_eq!(seats.of(Round(round + 1)), peers(&[1, 2, 3]));
        }
        let next = SEAT_ROUNDS as u64;
        seats.note(Time::ZERO, Round(next), peers(&[1, 2]));
        assert_eq!(seats.of(Round(next + 1)), peers(&[1, 2]));
        assert!(seats.of(Round(next + 1 + SEAT_AGE_MAX)).is_empty());
    }

    #[test]
    fn only_a_swarm_without_results_for_long_stands_still() {
        let mut seats = Seats::default();
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        assert!(!seats.stand_still(at(59)) && seats.stand_still(at(60)));
        seats.note(at(60), Round(3), peers(&[1]));
        assert!(!seats.stand_still(at(119)) && seats.stand_still(at(120)));
    }
}

#[cfg(test)]
mod absence_tests {
    use super::*;

    /// The rounds in which a peer is waited for that contributes in some rounds.
    fn waited(rounds: u64, comes: impl Fn(u64) -> bool) -> Vec<u64> {
        let mut absence = Absence::default();
        let mut waited = Vec::new();
        for round in 0..rounds {
            if !absence.is_away(Round(round)) {
                waited.push(round);
                absence.note(Round(round), comes(round), true);
            }
        }
        waited
    }

    #[test]
    fn a_silent_peer_is_waited_for_less_and_less_often() {
        let waited = waited(4000, |_| false);
        assert_eq!(waited[..8], [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(waited[8..14], [16, 32, 64, 128, 256, 512]);
        // At most every 512 rounds in the end.
        assert_eq!(waited[14..17], [1024, 1536, 2048]);
    }

    #[test]
    fn a_seat_costs_about_half_of_the_rounds() {
        assert_eq!(waited(200, |_| true).len(), 200);
        assert_eq!(waited(200, |round| round % 2 == 0).len(), 200);
        assert_eq!(waited(200, |round| round % 5 < 3).len(), 200);
        // In one round of seven: it is away after ten rounds, and less and less often waited for.
        let rare = waited(2000, |round| round % 7 == 6);
        assert_eq!(rare[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert!(rare.len() < 200, "{}", rare.len());
    }

    #[test]
    fn a_peer_returns_after_two_contributions() {
        // It is absent in rounds 0 to 7 and away until 16. From then on it comes.
        let mut absence = Absence::default();
        let lost: Vec<_> = (0..8)
            .filter_map(|r| absence.note(Round(r), false, true))
            .collect();
        assert_eq!(lost, [Round(16)]);
        assert!(absence.is_away(Round(15)) && !absence.is_away(Round(16)));
        assert_eq!(absence.note(Round(16), true, true), None);
        assert!(absence.away.is_some());
        assert_eq!(absence.note(Round(17), true, true), None);
        assert_eq!(absence.away, None);
        // As a member it may be absent again, but the next loss lasts for longer.
        let lost: Vec<_> = (18..26)
            .filter_map(|r| absence.note(Round(r), false, true))
            .collect();
        assert_eq!(lost, [Round(48)]);
        // One contribution and an absence are no return.
        assert_eq!(absence.note(Round(48), true, true), None);
        assert_eq!(absence.note(Round(49), false, true), Some(Round(96)));
    }

    #[test]
    fn a_chance_ends_after_some_rounds_though_the_peer_was_not_ready() {
        let mut absence = Absence::default();
        assert_eq!(absence.pass(Round(3)), None);
        let lost = (0..8).filter_map(|r| absence.note(Round(r), false, true));
        assert_eq!(lost.count(), 1);
        assert!(!absence.has_a_chance(Round(15)) && absence.has_a_chance(Round(16)));
        let over: Vec<_> = (8..20).filter_map(|r| absence.pass(Round(r))).collect();
        assert_eq!(over, [Round(32)]);
        assert!(absence.is_away(Round(20)));
    }

    #[test]
    fn a_contribution_while_away_counts_and_an_absence_does_not() {
        let mut absence = Absence::default();
        let lost = (0..8).filter_map(|r| absence.note(Round(r), false, true));
        assert_eq!(lost.count(), 1);
        assert_eq!(absence.note(Round(9), false, true), None);
        absence.note(Round(10), true, true);
        absence.note(Round(11), true, true);
        assert!(!absence.is_away(Round(12)));
    }
}
