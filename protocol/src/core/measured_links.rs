//! The rates of links, where the schedule of an all-reduce is found again while the run is under way.
//!
//! A peer measures its links by its own pushes. Of two that are under way at the same time each has half of
//! the sender's line, so a push counts with its bytes, times the mean number of pushes that were under way
//! beside it and with it, over its time. Of the last pushes to a peer in the last epoch in which there were any,
//! the fastest counts: others may have shared the receiver's line. An epoch is the rounds between two that go
//! along the butterfly, where every member sends to every other.
//!
//! On entering an epoch a peer tells the others its measured rates. The proposer of a group names the rates that
//! its members go by: those that they went by before, unless these have been in force for an epoch, and trees
//! for what members told since would take a fifth less time than the present ones over the same links. So
//! noise changes nothing, and what a liar changes stays for an epoch at most, unless it gains.
//!
//! **Source:** PLink (Luo et al., MLSys 2020) probes the network again during the run and adapts its trees.

use crate::limits::VIEW_PEERS_MAX;
use crate::schedule::{
    AgreedLinks, LinkCodes, LinkPlan, MEASURED_BYTES_MIN, PUSHES_MEASURED, RESYNTHESIS_PERCENT,
    code_of,
};
use crate::sorted::SortedMap;
use crate::wire::Rates;
use crate::{Digest, PeerId, PushOutcome, Round, SliceId, Time};
use std::collections::VecDeque;

/// What a peer told of its links: codes by peer.
type Row = SortedMap<PeerId, u8>;

/// What one peer knows of the links that schedules go by.
#[derive(Debug, Default)]
pub(crate) struct MeasuredLinks {
    /// Rounds of an epoch; zero where nothing is measured.
    every: u64,
    epoch: Option<u64>,
    entered: Time,
    under_way: UnderWay,
    /// Codes of the last pushes to a peer, of one epoch.
    last: SortedMap<PeerId, (u64, VecDeque<u8>)>,
    /// What each peer told last, this one among them.
    told: SortedMap<PeerId, Row>,
    /// What the last group went by.
    in_force: Option<InForce>,
    /// Codes that would gain too little, beside those in force.
    considered: Option<(LinkCodes, LinkCodes)>,
}

/// Rates that a group went by.
#[derive(Debug)]
struct InForce {
    since: Round,
    codes: SortedMap<(PeerId, PeerId), u8>,
}

/// Pushes under way.
#[derive(Debug, Default)]
struct UnderWay {
    /// With when each began, its bytes, and the sum then.
    pushes: SortedMap<(PeerId, SliceId), (Time, u64, u128)>,
    /// When a push last began or ended.
    changed: Time,
    /// Over time, of the number of pushes under way, in nanoseconds.
    sum: u128,
}

impl UnderWay {
    fn pass(&mut self, now: Time) {
        let nanos = now.since(self.changed).as_nanos();
        self.sum += nanos * self.pushes.len() as u128;
        self.changed = now;
    }

    fn begin(&mut self, now: Time, push: (PeerId, SliceId), bytes: u64) {
        self.pass(now);
        self.pushes.insert(push, (now, bytes, self.sum));
    }

    /// The bytes per second that a push would have had alone.
    fn end(&mut self, now: Time, push: &(PeerId, SliceId)) -> Option<u64> {
        self.pass(now);
        let (began, bytes, sum) = self.pushes.remove(push)?;
        let nanos = now.since(began).as_nanos().max(1);
        let shared = self.sum - sum;
        // bytes (shared / nanos) / (nanos / 10^9), in whole numbers.
        let rate = u128::from(bytes) * shared / nanos * 1_000_000_000 / nanos;
        (bytes >= MEASURED_BYTES_MIN).then(|| u64::try_from(rate).unwrap_or(u64::MAX))
    }
}

impl MeasuredLinks {
    /// Sets the rounds of an epoch; zero measures and tells nothing.
    pub(crate) const fn set_every(&mut self, every: u64) {
        self.every = every;
    }

    /// Peers measure links.
    pub(crate) const fn is_used(&self) -> bool {
        self.every > 0
    }

    pub(crate) fn push(&mut self, now: Time, to: PeerId, slice: SliceId, bytes: u64) {
        if self.is_used() {
            self.under_way.begin(now, (to, slice), bytes);
        }
    }

    pub(crate) fn pushed(&mut self, now: Time, to: PeerId, slice: SliceId, outcome: PushOutcome) {
        if !self.is_used() {
            return;
        }
        let rate = self.under_way.end(now, &(to, slice));
        let room = self.last.contains_key(&to) || self.last.len() < VIEW_PEERS_MAX;
        let (Some(rate), true) = (rate, outcome == PushOutcome::Delivered && room) else {
            return;
        };
        let epoch = self.epoch.unwrap_or(0);
        let (of, last) = self.last.entry(to).or_default();
        // Rates of an earlier epoch may be those of another line.
        if *of != epoch {
            (*of, *last) = (epoch, VecDeque::new());
        }
        if last.len() == PUSHES_MEASURED {
            last.pop_front();
        }
        last.push_back(code_of(rate));
    }

    /// A round begins: what to tell the others, if it opens an epoch for this peer.
    pub(crate) fn enter(
        &mut self,
        now: Time,
        round: Round,
        me: PeerId,
        live: &[PeerId],
    ) -> Option<Rates> {
        let epoch = round.0.checked_div(self.every)?;
        if self.epoch == Some(epoch) {
            return None;
        }
        self.epoch = Some(epoch);
        // A push that was cancelled is never answered.
        let since = std::mem::replace(&mut self.entered, now);
        self.under_way.pass(now);
        self.under_way
            .pushes
            .retain(|_, (began, ..)| *began >= since);
        self.last.retain(|peer, _| live.contains(peer));
        self.told.retain(|peer, _| live.contains(peer));
        let fastest = |(_, last): &(u64, VecDeque<u8>)| last.iter().max().copied();
        let row = self.last.iter();
        let row: Row = row
            .filter_map(|(peer, last)| Some((*peer, fastest(last)?)))
            .collect();
        let rates = row.iter().map(|(peer, code)| (*peer, *code)).collect();
        self.told.insert(me, row);
        Some(Rates {
            epoch,
            rates,
            heard: Digest::of(&[]),
        })
    }

    pub(crate) fn hear(&mut self, from: PeerId, told: &Rates) {
        if self.told.contains_key(&from) || self.told.len() < VIEW_PEERS_MAX {
            self.told.insert(from, told.rates.iter().copied().collect());
        }
    }

    /// The rates that a group of these members goes by, in the words of this peer, which proposes it.
    pub(crate) fn propose(
        &mut self,
        (plan, bytes): (&LinkPlan, u64),
        round: Round,
        members: &[PeerId],
    ) -> AgreedLinks {
        let n = members.len();
        let (since, base) = match &self.in_force {
            None if plan.start.members() == n => (Round(0), plan.start),
            None => (Round(0), LinkCodes::new(n, |_, _| 0)),
            Some(before) => {
                let code = |from: usize, to: usize| {
                    let link = (members[from], members[to]);
                    before.codes.get(&link).copied().unwrap_or(0)
                };
                (before.since, LinkCodes::new(n, code))
            }
        };
        let fresh = LinkCodes::new(n, |from, to| {
            let told = self.told.get(&members[from]);
            let told = told.and_then(|row| row.get(&members[to])).copied();
            told.unwrap_or_else(|| base.code(from, to))
        });
        // The first rates need not wait.
        let due = since == Round(0) || round.since(since) >= self.every;
        let same = fresh == base || self.considered == Some((base, fresh));
        if !self.is_used() || !due || same {
            return AgreedLinks::new(since, &base);
        }
        let (old, new) = (plan.solve(&base, bytes), plan.solve(&fresh, bytes));
        let stale = old.over(&fresh, bytes, u64::from(plan.latency_micros));
        if new.certificate.micros.saturating_mul(100) <= stale.saturating_mul(RESYNTHESIS_PERCENT) {
            return AgreedLinks::new(round, &fresh);
        }
        self.considered = Some((base, fresh));
        AgreedLinks::new(since, &base)
    }

    /// A group of these members goes by these rates.
    pub(crate) fn hold(&mut self, members: &[PeerId], links: &AgreedLinks) {
        let n = members.len();
        let Some(codes) = links.read(n) else { return };
        let pairs = (0..n).flat_map(|from| (0..n).map(move |to| (from, to)));
        let known = pairs.filter(|(from, to)| codes.code(*from, *to) > 0);
        let known = known.map(|(from, to)| ((members[from], members[to]), codes.code(from, to)));
        self.in_force = Some(InForce {
            since: links.since,
            codes: known.collect(),
        });
    }
}

#[cfg(test)]
mod tests;
