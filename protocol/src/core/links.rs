//! The rates of links, where the topology chooses partners by them. Both ends of a link must choose
//! each other, so all peers need the same rates. They agree on them epoch by epoch:
//!
//! 1. A peer measures its links by its own pushes. On entering epoch e it tells all others its measured
//!    rates, and the hash of all rates told on entering epoch e - 2, as far as it has heard them.
//! 2. Rounds of epoch e use the rates told on entering epoch e - 4, if all live peers have heard the
//!    same ones, by the hashes that they told on entering epoch e - 2. Otherwise the epoch's rounds use
//!    no rates, and the topology chooses without them.
//!
//! So peers may be up to two epochs apart. A lost message, a newcomer, a liar or a peer that is further
//! behind costs the advantage of the rates for some epochs. Only where the hashes themselves are lost or
//! late do two peers choose differently. Then they wait for each other in vain, as where views differ;
//! the exchange remains correct.

use crate::limits::{RATES_KEPT, VIEW_PEERS_MAX};
use crate::sorted::SortedMap;
use crate::wire::{Rates, canonical};
use crate::{Digest, LinkRates, PeerId, PushOutcome, Round, SliceId, Time};
use std::collections::VecDeque;

/// Epochs that a message may take: from rates to their hash, and from the hash to their use.
const LAG: u64 = 2;

/// What a peer told of its links, by `PeerId`.
type Row = Vec<(PeerId, u8)>;

/// What one peer knows of all links.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// Rounds of an epoch; zero where the topology needs no rates.
    every: u64,
    epoch: Option<u64>,
    entered: Time,
    /// Pushes under way, with when they began and their bytes.
    pushes: SortedMap<(PeerId, SliceId), (Time, u64)>,
    /// Classes of the last pushes.
    measured: SortedMap<PeerId, VecDeque<u8>>,
    /// By epoch: of the last ones, and of as many that peers ahead have entered.
    said: SortedMap<u64, SortedMap<PeerId, Rates>>,
    /// By the epoch in which this peer told the hash: the rates that it had heard, and the hash.
    heard: SortedMap<u64, (Vec<(PeerId, Row)>, Digest)>,
    /// What this epoch's rounds use.
    agreed: Option<Vec<(PeerId, Row)>>,
}

impl Links {
    /// Sets the rounds of an epoch; zero measures and tells nothing.
    pub(crate) const fn set_every(&mut self, every: u64) {
        self.every = every;
    }

    /// Peers tell each other rates.
    pub(crate) const fn is_used(&self) -> bool {
        self.every > 0
    }

    pub(crate) fn push(&mut self, now: Time, to: PeerId, slice: SliceId, bytes: u64) {
        if self.is_used() {
            self.pushes.insert((to, slice), (now, bytes));
        }
    }

    pub(crate) fn pushed(&mut self, now: Time, to: PeerId, slice: SliceId, outcome: PushOutcome) {
        let Some((began, bytes)) = self.pushes.remove(&(to, slice)) else {
            return;
        };
        let room = self.measured.contains_key(&to) || self.measured.len() < VIEW_PEERS_MAX;
        // A push that failed says nothing of how fast the link is.
        if outcome != PushOutcome::Delivered || !room {
            return;
        }
        let last = self.measured.entry(to).or_default();
        if last.len() == RATES_KEPT {
            last.pop_front();
        }
        last.push_back(class(bytes, now.since(began).as_nanos()));
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
        self.said.retain(|e, _| e + LAG >= epoch);
        self.heard.retain(|e, _| e + LAG >= epoch);
        let empty = SortedMap::new();
        let before = epoch.checked_sub(LAG);
        let said = before.and_then(|e| self.said.get(&e)).unwrap_or(&empty);
        let mine = before.and_then(|e| self.heard.remove(&e));
        self.agreed = mine.and_then(|(rows, hash)| {
            let mut all = live.iter().chain([&me]);
            let same = |peer: &PeerId| said.get(peer).is_some_and(|told| told.heard == hash);
            all.all(same).then_some(rows)
        });
        let rows = said.iter().map(|(peer, told)| (*peer, told.rates.clone()));
        let rows: Vec<(PeerId, Row)> = rows.collect();
        let heard = Digest::of(&canonical(&rows));
        self.heard.insert(epoch, (rows, heard));
        // A push that was cancelled is never answered.
        let since = std::mem::replace(&mut self.entered, now);
        self.pushes.retain(|_, (began, _)| *began >= since);
        self.measured.retain(|peer, _| live.contains(peer));
        let usual = |(peer, last): (&PeerId, &VecDeque<u8>)| (*peer, median(last));
        let told = Rates {
            epoch,
            rates: self.measured.iter().map(usual).collect(),
            heard,
        };
        self.hear(me, &told);
        Some(told)
    }

    /// A peer tells the rates of its links. Rates of epochs further away than [`LAG`] are dropped.
    pub(crate) fn hear(&mut self, from: PeerId, told: &Rates) {
        let mine = self.epoch.unwrap_or(0);
        let kept = mine.saturating_sub(LAG)..=mine.saturating_add(LAG);
        if kept.contains(&told.epoch) {
            let said = self.said.entry(told.epoch).or_default();
            if said.len() < VIEW_PEERS_MAX {
                // Only its first words count, or a liar could tell everyone something else.
                said.entry(from).or_insert_with(|| told.clone());
            }
        }
    }

    /// The classes of the links among these peers, if all agree on them in this round.
    pub(crate) fn among(&self, round: Round, peers: &[PeerId]) -> Option<LinkRates> {
        let rows = self.agreed.as_ref()?;
        if round.0.checked_div(self.every) != self.epoch {
            return None;
        }
        let row = |peer: &PeerId| {
            let at = rows.binary_search_by(|(id, _)| id.cmp(peer)).ok()?;
            rows.get(at).map(|(_, row)| row)
        };
        let rows: Vec<Option<&Row>> = peers.iter().map(row).collect();
        let told = |from: usize, to: usize| {
            let row = rows[from]?;
            let at = row.binary_search_by(|(id, _)| id.cmp(&peers[to])).ok()?;
            row.get(at).map(|(_, class)| *class)
        };
        // The slower direction of a link counts: both ends wait for it.
        let class = |a: usize, b: usize| {
            let both = [told(a, b), told(b, a)].into_iter().flatten();
            both.min().unwrap_or(0)
        };
        Some(LinkRates::new(peers.len(), class))
    }
}

/// The class of a rate: one more than the logarithm of the bytes per second.
fn class(bytes: u64, nanos: u128) -> u8 {
    let rate = u128::from(bytes) * 1_000_000_000 / nanos.max(1);
    let rate = u64::try_from(rate).unwrap_or(u64::MAX).max(1);
    rate.ilog2() as u8 + 1
}

/// The class of most pushes; zero for none.
fn median(last: &VecDeque<u8>) -> u8 {
    let mut sorted: Vec<u8> = last.iter().copied().collect();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attempt, FragmentId, Part};
    use core::time::Duration;

    const EVERY: u64 = 4;

    fn peer(index: usize) -> PeerId {
        PeerId::from_bytes([index as u8; 32])
    }

    fn slice(round: u64) -> SliceId {
        SliceId {
            round: Round(round),
            fragment: FragmentId(0),
            part: Part::Contribution,
            shard: 0,
            origin: peer(0),
            attempt: Attempt::default(),
        }
    }

    /// Peers that hear each other but for `(epoch, from, to)`, and their links.
    fn epochs(count: usize, epochs: u64, lost: &[(u64, usize, usize)]) -> Vec<Links> {
        let mut all: Vec<Links> = (0..count).map(|_| Links::default()).collect();
        for epoch in 0..epochs {
            for me in 0..count {
                let live: Vec<PeerId> = (0..count).filter(|i| *i != me).map(peer).collect();
                let links = &mut all[me];
                links.set_every(EVERY);
                let (now, round) = (Time::from_nanos(epoch), Round(epoch * EVERY));
                let told = links
                    .enter(now, round, peer(me), &live)
                    .expect("a new epoch");
                assert_eq!(links.enter(now, Round(round.0 + 1), peer(me), &live), None);
                for to in (0..count).filter(|to| *to != me) {
                    if !lost.contains(&(epoch, me, to)) {
                        all[to].hear(peer(me), &told);
                    }
                }
                // The link between a and b takes 2^(a + b) bytes per second.
                for to in (0..count).filter(|to| *to != me) {
                    let (bytes, end) = (1 << (me + to), Duration::from_secs(1));
                    all[me].push(now, peer(to), slice(epoch), bytes);
                    all[me].pushed(now + end, peer(to), slice(epoch), PushOutcome::Delivered);
                }
            }
        }
        all
    }

    fn among(links: &Links, epoch: u64) -> Option<LinkRates> {
        let peers: Vec<PeerId> = (0..4).map(peer).collect();
        links.among(Round(epoch * EVERY), &peers)
    }

    #[test]
    fn all_choose_by_the_same_rates_four_epochs_after_they_were_told() {
        for epoch in 0..4 {
            let all = epochs(4, epoch + 1, &[]);
            let used = epoch >= LAG;
            assert!(
                all.iter()
                    .all(|links| among(links, epoch).is_some() == used)
            );
        }
        // Measured in epoch 0, told on entering 1, used in 5. Before that all agree that no link is
        // measured.
        for epoch in LAG..8 {
            let class = |a: usize, b: usize| if epoch < 5 { 0 } else { (a + b) as u8 + 1 };
            for links in &epochs(4, epoch + 1, &[]) {
                assert_eq!(among(links, epoch), Some(LinkRates::new(4, class)));
                assert_eq!(among(links, epoch + 1), None, "another epoch");
            }
        }
    }

    #[test]
    fn where_one_has_heard_less_none_uses_rates_and_later_all_do() {
        let lost = [(3, 1, 2)];
        for epoch in 4..10 {
            let all = epochs(4, epoch + 1, &lost);
            let uses = all.iter().map(|links| among(links, epoch).is_some());
            let uses: Vec<bool> = uses.collect();
            let expected = match epoch {
                // Peer 2 lacks the hash of peer 1.
                5 => vec![true, true, false, true],
                // All see that peer 2 has heard less of what was told on entering epoch 3.
                7 => vec![false; 4],
                _ => vec![true; 4],
            };
            assert_eq!(uses, expected, "epoch {epoch}");
        }
    }

    #[test]
    fn a_peer_that_skips_epochs_uses_no_rates_at_first() {
        let mut all = epochs(4, 5, &[]);
        let live: Vec<PeerId> = (1..4).map(peer).collect();
        let links = &mut all[0];
        assert!(among(links, 4).is_some());
        let later = links.enter(Time::from_nanos(9), Round(9 * EVERY), peer(0), &live);
        assert!(later.is_some());
        assert_eq!(among(links, 9), None);
    }

    #[test]
    fn classes_are_logarithms_of_bytes_per_second() {
        let second = 1_000_000_000;
        assert_eq!(class(0, second), 1);
        assert_eq!(class(1, second), 1);
        assert_eq!(class(1 << 20, second), 21);
        assert_eq!(class((1 << 21) - 1, second), 21);
        assert_eq!(class(u64::MAX, 0), 64);
        assert_eq!(median(&[3, 9, 4].into()), 4);
    }

    #[test]
    fn what_was_not_delivered_measures_nothing_and_nothing_is_kept_for_ever() {
        let mut links = Links::default();
        links.push(Time::ZERO, peer(1), slice(0), 8);
        assert!(links.pushes.is_empty(), "no topology asks for rates");
        links.set_every(EVERY);
        links.push(Time::ZERO, peer(1), slice(0), 8);
        links.pushed(Time::from_nanos(5), peer(1), slice(0), PushOutcome::Lost);
        assert!(links.measured.is_empty() && links.pushes.is_empty());
        links.push(Time::from_nanos(6), peer(1), slice(1), 8);
        for epoch in 0..3 {
            links.enter(Time::from_nanos(10), Round(epoch * EVERY), peer(0), &[]);
        }
        assert!(links.pushes.is_empty(), "a push that was cancelled");
        for epoch in 0..99 {
            let (rates, heard) = (Vec::new(), Digest::from_bytes([0; 32]));
            let told = Rates {
                epoch,
                rates,
                heard,
            };
            links.hear(peer(1), &told);
        }
        assert!(links.said.len() as u64 <= 2 * LAG + 1);
        let mut fresh = Links::default();
        for epoch in 0..99 {
            let (rates, heard) = (Vec::new(), Digest::from_bytes([0; 32]));
            fresh.hear(
                peer(1),
                &Rates {
                    epoch,
                    rates,
                    heard,
                },
            );
        }
        assert!(fresh.said.len() as u64 <= 2 * LAG + 1);
    }
}
