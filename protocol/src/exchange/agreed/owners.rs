//! A parameter server among the members, all in the same round: k of them own the shards of every
//! fragment. A rendezvous hash chooses them, so owners stay the same while they live, and any peer
//! can be one. Workers push each shard to its owner; the owner sends the reduction back to all.
//!
//! A worker would pull the old anchor moved by the reduction. Every member holds the old anchor, so
//! only the reduction travels, and every member holds the center. A successor of a dead owner has
//! it at once: in the next ballot it reduces the contributions that the workers still hold.
//! Everything else is as in the butterfly with other owners; with k = n it is the butterfly.
//!
//! Cost per round with n members, k owners, f fragments of m encoded bytes in all: f k (n - 1)
//! pushes of contributions and as many of reductions, about m / (f k) bytes each. A worker that
//! owns nothing sends m bytes and gets m; an owner gets m (n - 1) / k and sends as much. Control
//! messages as in all-reduce. Between k = 1, where one link carries all, and k = n, where all carry
//! the same, lies BytePS's choice of k by what the links can carry. Where the plan says so, a fragment is
//! cut into more parts than owners, and each owns as many as its line carries ([`dealt`]).
//!
//! **Source:** Li et al. 2014, "Scaling Distributed Machine Learning with the Parameter Server";
//! Jiang et al. 2020, "BytePS", section 4.1.
//!
//! # How owners share the parts of a fragment
//!
//! So that the busiest line is as little busy as can be.
//!
//! A fragment of M bytes is cut into P equal parts. Of n members k own parts. One that owns x bytes and whose
//! line carries r in each direction needs
//!
//! V(x) / r, with V(x) = max((n - 1) x, M - x),
//!
//! to send its results to all and to receive those of the others. For the contributions before them it needs
//! no longer: each of them is at most as much the other way. A result exists only once its sum does, so for one
//! fragment the two ways add up, and a round moves bytes for at most T = 2 max_i V(x_i) / r_i, and for exactly
//! that if all members contribute. This file makes T the least that k owners can have in whole parts.
//!
//! For a time t each member may own from P - t r to t r / (n - 1) parts. One for which that begins above zero
//! must own some, and of the others those with the fastest lines can own most. So t is long enough if no more
//! than k must own parts, these need no more than P, and with the fastest others they can own P. The least
//! such t is one of the times of a whole number of parts. Within it parts are dealt in proportion to rates, and
//! parts of one owner do not follow one another, so that all owners are busy from the beginning.
//!
//! Rates are those of the members' records, in octaves. A line may be up to twice as fast as its class says, so
//! T is at most twice what exact rates give. A member whose rate is not known is as fast as the fastest that
//! is. A successor's parts are not dealt by rate: the lines are idle when it reduces them.
//!
//! **Source:** Jiang et al., OSDI 2020 (BytePS), section 4.1. Its theorem 1 is about n machines that train and k
//! that only sum up, all at one rate, and both directions at the same time: 2 (n - 1) M / (n^2 + k n - 2 k) at
//! those that sum up, and (n - k) M / (n^2 + k n - 2 k) at the others, because the former get no results.
//! Here all members vote and hold the parameters, so all get the results, and rates differ.
//!
//! **Special cases:** between equal lines owners have equally many parts, up to one. With k = n equal parts are
//! among the best whatever the rates are: the slowest must receive the parts that it does not own and send those
//! that it owns to all, which takes least at M / n. So rates matter where few members own parts, and each of
//! these sends the most.

use super::group::Group;
use crate::core::context::Context;
use crate::id::rendezvous;
use crate::{ExchangeKind, Round};
use core::cmp::{Ordering, Reverse};
use core::ops::RangeInclusive;

/// The owner of every part in the first ballot.
pub(super) fn owners(cx: &Context, group: &Group, of: u16) -> Vec<usize> {
    match (cx.plan.agreement.parts, cx.plan.exchange.owners()) {
        (1.., Some(most)) => {
            let ranked = ranked(cx, group, (0..group.len()).collect());
            dealt(&rates(group), &ranked, usize::from(most), of)
        }
        _ => equal(cx, group, of),
    }
}

/// The owners of parts where each has one, whatever its line carries.
pub(super) fn equal(cx: &Context, group: &Group, of: u16) -> Vec<usize> {
    let mut owners = ranked(cx, group, (0..group.len()).collect());
    owners.truncate(usize::from(of));
    owners
}

/// Members in the order in which they own parts: those of a parameter server by rendezvous hash
/// over the run, so that a death moves only the dead member's shards; others as they are.
pub(super) fn ranked(cx: &Context, group: &Group, mut members: Vec<usize>) -> Vec<usize> {
    if let ExchangeKind::Server(_) = cx.plan.exchange {
        let rank = |i: &usize| rendezvous(&cx.plan.run, Round(0), 0, group.peer(*i));
        members.sort_by_key(|i| (std::cmp::Reverse(rank(i)), *i));
    }
    members
}

/// Octaves below the fastest line beyond which slower lines are not told apart.
const OCTAVES_MAX: u8 = 20;

/// Rates of the lines of a group's members, relative to one another.
pub(super) fn rates(group: &Group) -> Vec<u64> {
    let class = |index: usize| {
        group
            .around
            .places
            .get(index)?
            .rate
            .map(|rate| rate.number())
    };
    let classes: Vec<Option<u8>> = (0..group.len()).map(class).collect();
    let fastest = classes.iter().flatten().max().copied().unwrap_or(0);
    // A line of unknown rate counts as the fastest, so that without rates all are equal.
    let below = |class: &Option<u8>| class.map_or(0, |class| fastest - class).min(OCTAVES_MAX);
    classes
        .iter()
        .map(|class| 1 << (OCTAVES_MAX - below(class)))
        .collect()
}

/// A time: a number of parts over a line of this rate.
#[derive(Clone, Copy, Debug)]
struct Span {
    parts: u64,
    rate: u64,
}

impl Span {
    fn cmp(&self, other: &Self) -> Ordering {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        product(self.parts, other.rate).cmp(&product(other.parts, self.rate))
    }

    const fn carries(&self, rate: u64) -> u64 {
        (self.parts as u128 * rate as u128 / self.rate as u128) as u64
    }
}

/// The lines of a group, and the parts that are dealt among its members.
struct Deal<'a> {
    rates: &'a [u64],
    /// The order in which members of equal lines own parts.
    ranked: &'a [usize],
    /// Members that own parts, at most.
    most: usize,
    parts: u64,
}

impl Deal<'_> {
    /// Members to which an owner sends each of its parts.
    fn others(&self) -> u64 {
        (self.rates.len() as u64).saturating_sub(1).max(1)
    }

    /// The numbers of parts with which a member's line is done in time.
    fn range(&self, member: usize, time: &Span) -> RangeInclusive<u64> {
        let carries = time.carries(self.rates[member]);
        let most = (carries / self.others()).min(self.parts);
        self.parts.saturating_sub(carries)..=most
    }

    /// The owners and how many parts each may have, if they are enough in this time.
    fn owners(&self, time: &Span) -> Option<Vec<(usize, RangeInclusive<u64>)>> {
        let ranges = self.ranked.iter().map(|i| (*i, self.range(*i, time)));
        let mut all: Vec<(usize, RangeInclusive<u64>)> = ranges.collect();
        if all.iter().any(|(_, range)| range.is_empty()) {
            return None;
        }
        // Those that must own parts are the slowest. The sort keeps the ranks of equal ones.
        all.sort_by_key(|(_, range)| (*range.start() == 0, Reverse(*range.end())));
        let must = all.iter().filter(|(_, range)| *range.start() > 0).count();
        all.truncate(self.most);
        let least: u64 = all.iter().map(|(_, range)| range.start()).sum();
        let can: u64 = all.iter().map(|(_, range)| range.end()).sum();
        (must <= self.most && (least..=can).contains(&self.parts)).then_some(all)
    }

    /// The owners with the numbers of their parts.
    fn counts(&self) -> Vec<(usize, u64)> {
        let mut rates = self.rates.to_vec();
        rates.sort_unstable();
        rates.dedup();
        let loads = || (0..=self.parts).chain((1..=self.parts).map(|own| own * self.others()));
        let spans = rates
            .iter()
            .flat_map(|rate| loads().map(|parts| (parts, *rate)));
        let mut spans: Vec<Span> = spans.map(|(parts, rate)| Span { parts, rate }).collect();
        spans.sort_by(Span::cmp);
        // More time is never too little.
        let first = spans.partition_point(|time| self.owners(time).is_none());
        let owners = spans.get(first).and_then(|time| self.owners(time));
        let owners = owners.unwrap_or_default();
        let mut counts: Vec<(usize, u64)> = owners.iter().map(|(i, r)| (*i, *r.start())).collect();
        let mut left = self.parts
            - counts
                .iter()
                .map(|(_, own)| own)
                .sum::<u64>()
                .min(self.parts);
        while left > 0 {
            let room = (0..counts.len()).filter(|at| counts[*at].1 < *owners[*at].1.end());
            let span = |at: usize| Span {
                parts: counts[at].1 + 1,
                rate: self.rates[counts[at].0],
            };
            let next = room.min_by(|a, b| span(*a).cmp(&span(*b)));
            let Some(next) = next else { break };
            counts[next].1 += 1;
            left -= 1;
        }
        counts
    }
}

/// The owner of each of `parts` parts: at most `most` members. `ranked` are all members in the order in which
/// they own parts where their lines are equal.
pub(super) fn dealt(rates: &[u64], ranked: &[usize], most: usize, parts: u16) -> Vec<usize> {
    let deal = Deal {
        rates,
        ranked,
        most,
        parts: u64::from(parts),
    };
    let counts = deal.counts();
    let mut given = vec![0; counts.len()];
    let mut all = Vec::with_capacity(usize::from(parts));
    for _ in 0..parts {
        // Each owner's parts are spread over the whole: the next is of the one that has least of its own.
        let share = |at: usize| Span {
            parts: 2 * given[at] + 1,
            rate: counts[at].1,
        };
        let open = (0..counts.len()).filter(|at| given[*at] < counts[*at].1);
        let Some(next) = open.min_by(|a, b| share(*a).cmp(&share(*b))) else {
            break;
        };
        given[next] += 1;
        all.push(counts[next].0);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The busiest line's time with these numbers of parts.
    fn time(rates: &[u64], owned: &[u64], parts: u64) -> f64 {
        let others = rates.len() as u64 - 1;
        let each = rates.iter().zip(owned);
        let each = each.map(|(rate, own)| (others * own).max(parts - own) as f64 / *rate as f64);
        each.fold(0.0, f64::max)
    }

    fn counts(members: usize, owners: &[usize]) -> Vec<u64> {
        let count = |i| owners.iter().filter(|owner| **owner == i).count() as u64;
        (0..members).map(count).collect()
    }

    fn deal(rates: &[u64], most: usize, parts: u16) -> Vec<u64> {
        let ranked: Vec<usize> = (0..rates.len()).collect();
        let owners = dealt(rates, &ranked, most, parts);
        assert_eq!(owners.len(), usize::from(parts), "every part has an owner");
        counts(rates.len(), &owners)
    }

    /// The least time over all ways to deal the parts to at most `most` members.
    fn least(rates: &[u64], most: usize, parts: u64, owned: &mut Vec<u64>, left: u64) -> f64 {
        if owned.len() == rates.len() {
            let own = owned.iter().filter(|own| **own > 0).count();
            return if left == 0 && own <= most {
                time(rates, owned, parts)
            } else {
                f64::INFINITY
            };
        }
        let mut best = f64::INFINITY;
        for own in 0..=left {
            owned.push(own);
            best = best.min(least(rates, most, parts, owned, left - own));
            owned.pop();
        }
        best
    }

    fn any_rates(members: core::ops::Range<usize>) -> impl Strategy<Value = Vec<u64>> {
        proptest::collection::vec((0u32..5).prop_map(|octave| 1 << octave), members)
    }

    proptest! {
        #[test]
        fn no_way_to_deal_the_parts_is_faster(
            rates in any_rates(2..6), parts in 1u16..9, most in 1usize..6
        ) {
            let own = deal(&rates, most, parts);
            prop_assert!(own.iter().filter(|own| **own > 0).count() <= most);
            let parts = u64::from(parts);
            let (found, best) = (
                time(&rates, &own, parts),
                least(&rates, most, parts, &mut Vec::new(), parts),
            );
            prop_assert!(found <= best * (1.0 + 1e-12), "{} instead of {}", found, best);
        }

        #[test]
        fn equal_parts_are_never_faster_where_every_member_owns_some(rates in any_rates(2..17)) {
            let parts = 3 * rates.len() as u64;
            let found = time(&rates, &deal(&rates, 64, parts as u16), parts);
            let equal = time(&rates, &vec![3; rates.len()], parts);
            prop_assert!(found <= equal, "{} instead of {}", found, equal);
        }

        #[test]
        fn classes_cost_no_more_than_a_factor_of_two(
            rates in any_rates(2..9), within in proptest::collection::vec(1.0..2.0f64, 9),
            parts in 1u16..65, most in 1usize..9
        ) {
            let own = deal(&rates, most, parts);
            let fine = |(rate, by): (&u64, &f64)| (1024.0 * by * *rate as f64) as u64;
            let exact: Vec<u64> = rates.iter().zip(&within).map(fine).collect();
            let best = deal(&exact, most, parts);
            let (dealt, best) = (time(&exact, &own, parts.into()), time(&exact, &best, parts.into()));
            // Rates are rounded down to whole ones.
            prop_assert!(dealt <= 2.0 * best * 1.001, "{} instead of {}", dealt, best);
        }
    }

    #[test]
    fn owners_with_faster_lines_own_more() {
        // Sixteen members, three owners: 15 x / 4 = 15 y / 2, x + 2 y = M.
        let mut rates = [1; 16];
        (rates[5], rates[9], rates[12]) = (4, 2, 2);
        let own = deal(&rates, 3, 64);
        assert_eq!((own[5], own[9], own[12]), (32, 16, 16));
        assert_eq!(time(&rates, &own, 64), 15.0 * 32.0 / 4.0);
        // Two owners among eight are done before the slow have received all: these set the pace.
        let own = deal(&[1, 4, 1, 1, 1, 8, 1, 1], 2, 60);
        assert_eq!(own, [0, 20, 0, 0, 0, 40, 0, 0]);
    }

    #[test]
    fn the_slowest_owns_parts_where_that_shortens_what_it_must_receive() {
        assert_eq!(
            deal(&[4, 1, 4], 2, 9)
                .iter()
                .filter(|own| **own > 0)
                .count(),
            2
        );
        let own = deal(&[4, 1, 4], 2, 9);
        assert_eq!((own[1], time(&[4, 1, 4], &own, 9)), (3, 6.0));
    }

    #[test]
    fn equal_lines_own_equally_much_in_the_order_of_ranks() {
        let (rates, ranked) = ([8; 5], [3, 1, 4, 0, 2]);
        assert_eq!(dealt(&rates, &ranked, 3, 3), [3, 1, 4]);
        assert_eq!(counts(5, &dealt(&rates, &ranked, 2, 5)), [0, 2, 0, 3, 0]);
        assert_eq!(dealt(&rates, &ranked, 64, 10), [ranked, ranked].concat());
        assert_eq!(dealt(&[8], &[0], 1, 2), [0, 0]);
        assert_eq!(deal(&[1, 4], 2, 8), [4, 4]);
    }
}
