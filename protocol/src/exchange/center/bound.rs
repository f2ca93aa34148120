//! Dynamic staleness: which lead within the plan's bounds a peer that has ended its round allows
//! itself, from how long rounds took, its own and the others'. Pure: it counts in times that it is
//! given.
//!
//! With own rounds of length p, and of each other peer j the round r_j that it began at a_j and the
//! length q_j of its rounds, the next R = most - least rounds from `next` on would have to wait
//!
//! ```text
//! W(s) = max_j max_{0 <= r <= R, k > r_j} (a_j + (k - r_j) max(q_j, now - a_j)) - (now + r p),
//! k = next + r - s
//! ```
//!
//! under the lead s, or not at all where that is negative. W falls with s; the lead is the smallest
//! s whose W is that of the largest: no staleness is taken that saves no time. A round that takes
//! longer than usual is taken to be half over, so a burst raises the lead while it lasts and no
//! longer.
//!
//! **Source:** Zhao et al. 2019, "Dynamic stale synchronous parallel distributed training for deep
//! learning", section IV, whose server asks when the slowest is expected next from its last two
//! pushes, and grants the number of further rounds that makes the wait for that push the shortest.
//! There a peer is granted more rounds whenever it has used up its grant, and the upper bound is
//! not kept; here it is, and every peer decides for itself.

use crate::sorted::SortedMap;
use crate::{LeadPlan, PeerId, Round, Time};
use core::time::Duration;

/// Progress of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) round: Round,
    /// Time of the first word of it in that round.
    pub(super) at: Time,
    /// Length of its rounds.
    pub(super) each: Duration,
}

/// Progress of all others, as this peer heard it.
#[derive(Debug, Default)]
pub(super) struct Paces(SortedMap<PeerId, Progress>);

impl Paces {
    pub(super) fn heard(&mut self, peer: PeerId, round: Round, now: Time) {
        let new = |each| Progress {
            round,
            at: now,
            each,
        };
        let last = self.0.get(&peer).copied();
        match last {
            Some(last) if last.round == round => {}
            Some(last) if last.round < round => {
                let rounds = u32::try_from(round.since(last.round)).unwrap_or(u32::MAX);
                self.0.insert(peer, new(now.since(last.at) / rounds));
            }
            // The first word of it, or of a new life.
            _ => {
                self.0.insert(peer, new(Duration::ZERO));
            }
        }
    }

    /// The progress of a peer that is in this round. One that was not heard of in it counts as having
    /// just begun it, and one whose pace is not known takes as long as this peer.
    pub(super) fn of(&self, peer: PeerId, round: Round, now: Time, own: Duration) -> Progress {
        let known = self.0.get(&peer).filter(|p| p.round == round).copied();
        let fresh = Progress {
            round,
            at: now,
            each: own,
        };
        match known {
            Some(known) if known.each.is_zero() => Progress { each: own, ..known },
            known => known.unwrap_or(fresh),
        }
    }

    /// Forgets those that are no longer known.
    pub(super) fn keep(&mut self, known: impl Fn(PeerId) -> bool) {
        self.0.retain(|peer, _| known(*peer));
    }
}

/// What the rounds from `next` on would have to wait under a lead, in nanoseconds.
fn wait(
    lead: u32,
    plan: LeadPlan,
    (next, now): (Round, Time),
    own: Duration,
    of: Progress,
) -> i128 {
    let nanos = |time: Duration| time.as_nanos() as i128;
    let each = nanos(of.each.max(now.since(of.at)));
    let begun = i128::from(of.at.as_nanos()) - i128::from(now.as_nanos());
    // Rounds that the other peer must have completed when this one begins its r-th from now.
    let by = |r: i128| i128::from(next.0) + r - i128::from(lead) - i128::from(of.round.0);
    let last = i128::from(plan.most - plan.least);
    let first = (1 - by(0)).max(0);
    if first > last {
        return 0;
    }
    // Between them it is linear.
    let at = |r: i128| begun + by(r) * each - r * nanos(own);
    at(first).max(at(last)).max(0)
}

/// The lead that a peer allows itself that would begin `next` now, and whose rounds take `own`.
pub(super) fn choose(
    plan: LeadPlan,
    next: (Round, Time),
    own: Duration,
    others: &[Progress],
) -> u32 {
    let of = |lead: u32| {
        let waits = others.iter().map(|of| wait(lead, plan, next, own, *of));
        waits.max().unwrap_or(0)
    };
    let least = of(plan.most);
    let (mut low, mut high) = (plan.least, plan.most);
    while low < high {
        let middle = low + (high - low) / 2;
        if of(middle) > least {
            low = middle + 1
        } else {
            high = middle
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_core::{Rng, SeedableRng};

    const PLAN: LeadPlan = LeadPlan { least: 3, most: 15 };

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn progress(round: u64, begun: u64, each: u64) -> Progress {
        Progress {
            round: Round(round),
            at: at(begun),
            each: ms(each),
        }
    }

    /// By going through the rounds one by one.
    fn waits(
        lead: u32,
        plan: LeadPlan,
        next: u64,
        now: u64,
        own: u64,
        others: &[Progress],
    ) -> i128 {
        let mut most = 0;
        for of in others {
            let each = i128::from(of.each.as_nanos() as u64)
                .max(i128::from(now * 1_000_000 - of.at.as_nanos()));
            for r in 0..=u64::from(plan.most - plan.least) {
                let needed = i128::from(next + r) - i128::from(lead);
                let rounds = needed - i128::from(of.round.0);
                if rounds > 0 {
                    let then = i128::from(of.at.as_nanos()) + rounds * each;
                    most = most.max(then - i128::from((now + r * own) * 1_000_000));
                }
            }
        }
        most
    }

    #[test]
    fn the_lead_is_the_smallest_with_the_shortest_wait() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut draw = |below: u64| rng.next_u64() % below;
        let mut chosen = [0; 16];
        for _ in 0..5_000 {
            let (next, now, own) = (20 + draw(4), 10_000, 50 + draw(200));
            let others: Vec<Progress> = (0..1 + draw(4))
                .map(|_| progress(4 + draw(22), 9_000 + draw(1_000), 20 + draw(400)))
                .collect();
            let of = |lead| waits(lead, PLAN, next, now, own, &others);
            let expected = (PLAN.least..=PLAN.most).find(|lead| of(*lead) <= of(PLAN.most));
            let lead = choose(PLAN, (Round(next), at(now)), ms(own), &others);
            assert_eq!(Some(lead), expected, "{next} {own} {others:?}");
            chosen[lead as usize] += 1;
        }
        // The draws reach all of it.
        assert!(chosen[3..].iter().all(|times| *times > 0), "{chosen:?}");
    }

    #[test]
    fn equals_keep_the_least_and_a_burst_raises_it_while_it_lasts() {
        let lead = |next: u64, now: u64, of: Progress| {
            choose(PLAN, (Round(next), at(now)), ms(100), &[of])
        };
        // As fast as this peer, and where it is.
        assert_eq!(lead(10, 1_000, progress(9, 950, 100)), 3);
        // Three rounds behind, as fast as ever again: nothing is saved by a larger lead.
        assert_eq!(lead(13, 1_310, progress(10, 1_300, 100)), 3);
        // Still in a round that it began four of this peer's rounds ago.
        let burst = lead(14, 1_400, progress(10, 1_000, 100));
        assert!(burst > 6, "{burst}");
        // Always slower: whatever there is is used.
        assert_eq!(lead(14, 1_400, progress(10, 1_350, 900)), 15);
        // Far ahead, or no other peer.
        assert_eq!(lead(14, 1_400, progress(90, 1_350, 300)), 3);
        assert_eq!(choose(PLAN, (Round(9), at(1)), ms(1), &[]), 3);
    }

    #[test]
    fn rounds_are_timed_by_what_was_heard() {
        let (a, now) = (PeerId::from_bytes([1; 32]), at(1_000));
        let mut paces = Paces::default();
        assert_eq!(paces.of(a, Round(4), now, ms(7)), progress(4, 1_000, 7));
        paces.heard(a, Round(4), at(400));
        assert_eq!(paces.of(a, Round(4), now, ms(7)), progress(4, 400, 7));
        paces.heard(a, Round(4), at(500));
        // One word was lost.
        paces.heard(a, Round(6), at(800));
        assert_eq!(paces.of(a, Round(6), now, ms(7)), progress(6, 800, 200));
        assert_eq!(paces.of(a, Round(7), now, ms(7)), progress(7, 1_000, 7));
        // It started again.
        paces.heard(a, Round(2), at(900));
        assert_eq!(paces.of(a, Round(2), now, ms(7)), progress(2, 900, 7));
        paces.keep(|_| false);
        assert_eq!(paces.of(a, Round(2), now, ms(7)), progress(2, 1_000, 7));
    }
}
