//! What trees cost when every member sends one shard at a time: a model of the network in whole numbers, which
//! tells each send when it begins and ends.
//!
//! A shard of s bytes climbs its tree and descends it again. A send can begin once its content is there:
//! partial sums of all children for the way up, the sum for the way down. A member sends one shard at a time.
//! The send from i to j runs at r = min(rate of the link, rate of j's line / sends into j), arrives a latency
//! after its last byte has left, and makes room for the next one when its answer is back, one more latency
//! later. While a line's latency is longer than a shard takes, members do not wait for answers: then several
//! short sends are under way, and a send makes room when its last byte has left.
//!
//! A member whose line is free begins the first send of its list that can begin; it never waits for one
//! that cannot. So a list for each member determines all times.
//!
//! **Source:** the discrete-time model of links of TACCL (Shah et al., NSDI 2023, section 5.2), with the cost
//! alpha + beta s of a send of SCCL (Cai et al., PPoPP 2021). There a link that is in use is not used again
//! before it is free; here what members send to one receiver shares its line, as transports do.

use super::rates::LinkCodes;

/// Microseconds of a second.
const MICROS: u64 = 1_000_000;

/// One send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Send {
    pub(crate) shard: u16,
    /// Set if it carries the result.
    pub(crate) down: bool,
    /// The sender.
    pub(crate) from: u8,
    /// The receiver.
    pub(crate) to: u8,
}

/// The network, and the sends over it.
#[derive(Debug)]
pub(super) struct Network<'a> {
    codes: &'a LinkCodes,
    /// One way, in microseconds.
    latency: u64,
    /// Bytes of a shard, times the microseconds of a second: what a rate in bytes per second carries away.
    work: u64,
    pub(super) sends: Vec<Send>,
    /// The sends that wait for each.
    after: Vec<Vec<usize>>,
    waits_for: Vec<u32>,
    /// The shortest time from the beginning of each to the end of the last one that waits for it.
    pub(super) tails: Vec<u64>,
    /// What each member's sends take at least, alone.
    times: Vec<u64>,
    /// Set for a member that waits for the answer to a send.
    answers: Vec<bool>,
}

impl<'a> Network<'a> {
    /// `bytes` of a fragment along these trees. All links have codes.
    pub(super) fn new(
        codes: &'a LinkCodes,
        trees: &[Vec<usize>],
        bytes: u64,
        latency: u64,
    ) -> Self {
        let shard_bytes = bytes.div_ceil(trees.len().max(1) as u64).max(1);
        let work = shard_bytes.saturating_mul(MICROS);
        let mut sends = Vec::new();
        for (shard, parents) in (0u16..).zip(trees) {
            for (rank, parent) in parents.iter().enumerate().filter(|(r, p)| r != *p) {
                let (rank, parent) = (rank as u8, *parent as u8);
                sends.push(Send {
                    shard,
                    down: false,
                    from: rank,
                    to: parent,
                });
                sends.push(Send {
                    shard,
                    down: true,
                    from: parent,
                    to: rank,
                });
            }
        }
        let mut after = vec![Vec::new(); sends.len()];
        let mut waits_for = vec![0; sends.len()];
        for (at, send) in sends.iter().enumerate() {
            let root =
                |rank: u8| trees[usize::from(send.shard)][usize::from(rank)] == usize::from(rank);
            let waits = |other: &Send| {
                other.shard == send.shard
                    && other.from == send.to
                    && match (send.down, other.down) {
                        (false, false) => true,
                        (false, true) => root(send.to),
                        (true, other_down) => other_down,
                    }
            };
            let of = sends.iter().enumerate().filter(|(_, other)| waits(other));
            after[at] = of.map(|(other, _)| other).collect();
            after[at]
                .iter()
                .for_each(|other: &usize| waits_for[*other] += 1);
        }
        let times: Vec<u64> = sends
            .iter()
            .map(|send| work.div_ceil(codes.rate(send.from.into(), send.to.into())))
            .collect();
        let n = codes.members();
        let answers = (0..n).map(|rank| work.div_ceil(codes.line_out(rank)) >= 2 * latency);
        let mut this = Self {
            codes,
            latency,
            work,
            sends,
            after,
            waits_for,
            tails: vec![0; times.len()],
            times,
            answers: answers.collect(),
        };
        (0..this.sends.len()).for_each(|at| {
            this.tail(at);
        });
        this
    }

    fn tail(&mut self, at: usize) -> u64 {
        if self.tails[at] == 0 {
            let after = self.after[at].clone();
            let longest = after.into_iter().map(|other| self.tail(other)).max();
            self.tails[at] = self.times[at] + self.latency + longest.unwrap_or(0);
        }
        self.tails[at]
    }

    pub(super) fn members(&self) -> usize {
        self.codes.members()
    }

    /// The time that the lists of all members take, given the place of each send in its sender's list.
    pub(super) fn time(&self, place: &[u64]) -> u64 {
        let mut moment = Moment::new(self);
        while let Some(rank) = moment.next(self) {
            let first = moment.ready[rank]
                .iter()
                .min_by_key(|at| (place[**at], **at));
            if let Some(first) = first.copied() {
                moment.begin(self, first);
            }
        }
        moment.last
    }
}

/// A send that is under way.
#[derive(Clone, Copy, Debug)]
struct Flow {
    send: usize,
    left: u64,
    rate: u64,
}

/// What will happen at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// A send arrives.
    Arrives(usize),
    /// A member's answer is back.
    Free(usize),
}

/// The network at one moment.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    now: u64,
    flows: Vec<Flow>,
    due: Vec<(u64, Due)>,
    busy: Vec<bool>,
    waits_for: Vec<u32>,
    /// What each member can send.
    pub(super) ready: Vec<Vec<usize>>,
    pub(super) begun: Vec<usize>,
    /// When the last send arrived.
    pub(super) last: u64,
    /// Work of the sends of each member that have not begun: out of it and into it.
    unsent: Vec<u64>,
    uncome: Vec<u64>,
}

impl Moment {
    pub(super) fn new(network: &Network<'_>) -> Self {
        let n = network.members();
        let mut this = Self {
            now: 0,
            flows: Vec::new(),
            due: Vec::new(),
            busy: vec![false; n],
            waits_for: network.waits_for.clone(),
            ready: vec![Vec::new(); n],
            begun: Vec::new(),
            last: 0,
            unsent: vec![0; n],
            uncome: vec![0; n],
        };
        for (at, send) in network.sends.iter().enumerate() {
            this.unsent[usize::from(send.from)] += network.times[at];
            this.uncome[usize::from(send.to)] += network.work;
            if network.waits_for[at] == 0 {
                this.ready[usize::from(send.from)].push(at);
            }
        }
        this
    }

    /// Lets time pass until a member can send; none once all is sent and has arrived.
    pub(super) fn next(&mut self, network: &Network<'_>) -> Option<usize> {
        loop {
            let free = |rank: &usize| !self.busy[*rank] && !self.ready[*rank].is_empty();
            if let Some(rank) = (0..self.busy.len()).find(free) {
                return Some(rank);
            }
            let ends = self.flows.iter().map(|flow| flow.left.div_ceil(flow.rate));
            let flowed = ends.min().map(|after| self.now + after);
            let due = self.due.iter().map(|(at, _)| *at).min();
            let at = flowed.into_iter().chain(due).min()?;
            self.pass(network, at);
        }
    }

    fn pass(&mut self, network: &Network<'_>, at: u64) {
        let passed = at - self.now;
        self.now = at;
        for flow in &mut self.flows {
            flow.left = flow.left.saturating_sub(flow.rate * passed);
        }
        let ended: Vec<usize> = self
            .flows
            .iter()
            .filter(|flow| flow.left == 0)
            .map(|flow| flow.send)
            .collect();
        self.flows.retain(|flow| flow.left > 0);
        for send in &ended {
            let from = usize::from(network.sends[*send].from);
            self.due.push((at + network.latency, Due::Arrives(*send)));
            if network.answers[from] {
                self.due.push((at + 2 * network.latency, Due::Free(from)))
            } else {
                self.busy[from] = false
            }
        }
        if !ended.is_empty() {
            self.share(network);
        }
        self.due.sort_unstable();
        let later = self.due.partition_point(|(due, _)| *due <= at);
        for (_, due) in self.due.drain(..later).collect::<Vec<_>>() {
            match due {
                Due::Free(rank) => self.busy[rank] = false,
                Due::Arrives(send) => {
                    self.last = self.last.max(at);
                    for other in &network.after[send] {
                        self.waits_for[*other] -= 1;
                        if self.waits_for[*other] == 0 {
                            let from = usize::from(network.sends[*other].from);
                            self.ready[from].push(*other);
                        }
                    }
                }
            }
        }
    }

    /// A member begins a send that is ready.
    pub(super) fn begin(&mut self, network: &Network<'_>, at: usize) {
        let send = network.sends[at];
        let (from, to) = (usize::from(send.from), usize::from(send.to));
        self.ready[from].retain(|other| *other != at);
        self.busy[from] = true;
        self.unsent[from] -= network.times[at];
        self.uncome[to] -= network.work;
        self.begun.push(at);
        self.flows.push(Flow {
            send: at,
            left: network.work,
            rate: 1,
        });
        self.share(network);
    }

    fn share(&mut self, network: &Network<'_>) {
        let mut into = vec![0u64; network.members()];
        for flow in &self.flows {
            into[usize::from(network.sends[flow.send].to)] += 1;
        }
        for flow in &mut self.flows {
            let send = network.sends[flow.send];
            let (from, to) = (usize::from(send.from), usize::from(send.to));
            let line = network.codes.line_in(to) / into[to];
            flow.rate = network.codes.rate(from, to).min(line).max(1);
        }
    }

    /// No end of what has begun so far is sooner.
    pub(super) fn least(&self, network: &Network<'_>) -> u64 {
        let out = (0..self.busy.len()).map(|rank| {
            let under_way = self
                .flows
                .iter()
                .find(|f| usize::from(network.sends[f.send].from) == rank);
            let rest = under_way.map_or(0, |flow| flow.left / network.codes.line_out(rank));
            match self.unsent[rank] {
                0 => 0,
                unsent => self.now + rest + unsent + network.latency,
            }
        });
        let into = (0..self.busy.len()).map(|rank| {
            let coming = self
                .flows
                .iter()
                .filter(|f| usize::from(network.sends[f.send].to) == rank);
            let left = self.uncome[rank] + coming.map(|flow| flow.left).sum::<u64>();
            match left {
                0 => 0,
                left => self.now + left / network.codes.line_in(rank) + network.latency,
            }
        });
        let ready = self.ready.iter().flatten();
        let tails = ready.map(|at| self.now + network.tails[*at]);
        out.chain(into)
            .chain(tails)
            .max()
            .unwrap_or(0)
            .max(self.last)
    }
}
