//! The order in which members send the shards of a packing.
//!
//! First some lists are tried: each member begins with its next one, so that no two send to one; the send with
//! the longest way still before it first, as list scheduling by critical paths does; shard by shard, so that the
//! first result descends while other shards climb; and results first. A depth-first search begins with the best
//! of them. At every moment at which a member's line is free and it could send more than one shard, the search
//! tries each, the one with the longest way first. It leaves a branch when no end of it can be sooner than the
//! best, by the work left on each line alone and by the longest way that has yet to begin. It ends after a fixed
//! number of decisions, or with the proof that no order is better.
//!
//! **Source:** TACCL (Shah et al., NSDI 2023, section 5.2) orders sends by such lists, and then solves for
//! exact times; SCCL and TE-CCL search for the whole schedule by a solver.

use super::rates::LinkCodes;
use super::shape::SENDS_SEARCHED_MAX;
use super::timeline::Send;
use super::timeline::{Moment, Network};
use std::cmp::Reverse;

/// An order of sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ordered {
    pub(super) sends: Vec<Send>,
    /// When the last one arrives, in microseconds.
    pub(super) micros: u64,
    /// Set if no order is better.
    pub(super) proven: bool,
}

/// The best of some lists: when its last send arrives, and the places of sends in it.
fn listed(network: &Network<'_>) -> (u64, Vec<u64>) {
    let all = || 0..network.sends.len();
    let of = |key: &dyn Fn(usize) -> (u64, u64, u64)| {
        let mut order: Vec<usize> = all().collect();
        order.sort_by_key(|at| (key(*at), network.sends[*at]));
        let mut place = vec![0; order.len()];
        for (number, at) in (0u64..).zip(order) {
            place[at] = number;
        }
        (network.time(&place), place)
    };
    let shard = |at: usize| u64::from(network.sends[at].shard);
    let tail = |at: usize| u64::MAX - network.tails[at];
    let up = |at: usize| u64::from(!network.sends[at].down);
    let n = network.members() as u64;
    let turn = |at: usize| {
        let send = network.sends[at];
        (u64::from(send.to) + n - u64::from(send.from)) % n
    };
    let lists: [&dyn Fn(usize) -> (u64, u64, u64); 6] = [
        &|at| (1 - up(at), turn(at), shard(at)),
        &|at| (up(at), turn(at), shard(at)),
        &|at| (tail(at), shard(at), 0),
        &|at| (shard(at), up(at), tail(at)),
        &|at| (up(at), shard(at), tail(at)),
        &|at| (up(at), tail(at), shard(at)),
    ];
    let tried = lists.into_iter().map(of);
    tried.min_by_key(|(time, _)| *time).unwrap_or_default()
}

/// When the last send of trees arrives along the best of some lists.
pub(super) fn estimate(
    codes: &LinkCodes,
    trees: &[Vec<usize>],
    (bytes, latency): (u64, u64),
) -> u64 {
    listed(&Network::new(codes, trees, bytes, latency)).0
}

/// When the last send arrives if members keep to the order of some sends.
pub(super) fn kept(
    codes: &LinkCodes,
    trees: &[Vec<usize>],
    sends: &[Send],
    (bytes, latency): (u64, u64),
) -> u64 {
    let network = Network::new(codes, trees, bytes, latency);
    let place = |send: &Send| sends.iter().position(|other| other == send);
    let places = network
        .sends
        .iter()
        .map(|send| place(send).unwrap_or(sends.len()) as u64);
    network.time(&places.collect::<Vec<u64>>())
}

struct Search<'a> {
    network: &'a Network<'a>,
    best: (u64, Vec<usize>),
    left: usize,
}

impl Search<'_> {
    fn go(&mut self, mut moment: Moment) {
        loop {
            let Some(rank) = moment.next(self.network) else {
                if moment.last < self.best.0 {
                    self.best = (moment.last, moment.begun);
                }
                return;
            };
            if moment.least(self.network) >= self.best.0 {
                return;
            }
            let mut choices = moment.ready[rank].clone();
            choices.sort_by_key(|at| (Reverse(self.network.tails[*at]), self.network.sends[*at]));
            let Some((last, others)) = choices.split_last() else {
                return;
            };
            for choice in others {
                if self.left == 0 {
                    return;
                }
                self.left -= 1;
                let mut branch = moment.clone();
                branch.begin(self.network, *choice);
                self.go(branch);
            }
            if self.left == 0 && !others.is_empty() {
                return;
            }
            moment.begin(self.network, *last);
        }
    }
}

/// The order in which to send the shards of these trees.
pub(super) fn order(
    codes: &LinkCodes,
    trees: &[Vec<usize>],
    (bytes, latency): (u64, u64),
) -> Ordered {
    let network = Network::new(codes, trees, bytes, latency);
    let (micros, place) = listed(&network);
    let mut moment = Moment::new(&network);
    while let Some(rank) = moment.next(&network) {
        let first = moment.ready[rank]
            .iter()
            .min_by_key(|at| place[**at])
            .copied();
        let Some(first) = first else { break };
        moment.begin(&network, first);
    }
    let mut search = Search {
        network: &network,
        best: (micros, moment.begun),
        left: SENDS_SEARCHED_MAX,
    };
    search.go(Moment::new(&network));
    let (micros, begun) = search.best;
    Ordered {
        sends: begun.into_iter().map(|at| network.sends[at]).collect(),
        micros,
        proven: search.left > 0,
    }
}
