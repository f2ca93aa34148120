//! What faults do to machines.
//!
//! - A machine starts for the first time, or restarts from its last checkpoint as the same peer.
//! - A crash stops it at once, and it loses everything but its last checkpoint.
//! - In a partition, machines cannot reach the others for a while. Links across it fail after the detection
//!   time, unless the partition ends before.
//! - A missing link: two machines cannot reach each other for the rest of the run, though both reach others. Their
//!   link fails after the detection time. Where the network has relays, they get another one through a third.
//! - A straggler gets slower for a while. A training order in progress keeps its speed.
//! - A pause stops a process for a while (SIGSTOP, a machine that sleeps): it neither sees nor does anything, and
//!   then finds all that came meanwhile at once. Its clock goes on.

use super::{Effect, Fault, Lie, Lying, RandomCrashes, When};
use crate::due::Due;
use crate::error::SimError;
use crate::random::{Purpose, Random};
use crate::sign;
use crate::swarm::Swarm;
use core::time::Duration;
use murmurate_protocol::{Input, Proof, Time};

impl Swarm<'_> {
    /// Puts the faults of the scenario on the calendar, and the starts of machines.
    pub(crate) fn plan_faults(&mut self) {
        let mut late = vec![false; self.scenario.peers];
        for (number, fault) in self.scenario.faults.iter().enumerate() {
            let peer = fault.peer;
            let joins = fault.effect == Effect::Join;
            late[peer] |= joins;
            self.starts_due += usize::from(joins);
            match (&fault.effect, fault.when) {
                (Effect::RandomCrashes { .. }, _) => {
                    let (seed, process) = (self.scenario.seed, self.random_crashes.len());
                    self.random_crashes
                        .extend(RandomCrashes::new(seed, process, &fault.effect));
                }
                (_, Some(When::At(at))) => self.queue.push(at, Due::Fault { fault: number }),
                (Effect::Join, Some(_)) => self.waiting_joins.push(number),
                (_, Some(_)) => self.slots[peer].waiting_faults.push(number),
                (_, None) => {}
            }
        }
        for index in (0..self.scenario.peers).filter(|index| !late[*index]) {
            self.schedule_start(Time::ZERO, index);
        }
        for process in 0..self.random_crashes.len() {
            self.schedule_random_crash(process);
        }
    }

    /// The scenario's faults whose time or round has not come.
    pub(crate) fn faults_left(&self) -> usize {
        let later = |fault: &&Fault| matches!(fault.when, Some(When::At(at)) if at > self.now);
        let later = self.scenario.faults.iter().filter(later).count();
        let waiting = self.slots.iter().map(|slot| slot.waiting_faults.len());
        later + waiting.sum::<usize>() + self.waiting_joins.len()
    }

    pub(crate) fn strike(&mut self, number: usize) -> Result<(), SimError> {
        let Fault { peer, effect, .. } = &self.scenario.faults[number];
        match effect {
            Effect::Crash { restart_after } => return self.crash(*peer, *restart_after),
            Effect::Straggler { factor, lasts } => self.slow_down(*peer, *factor, *lasts),
            Effect::Pause { lasts } => self.pause(*peer, *lasts),
            Effect::MissingLinks { pairs, share } => self.lose_links(pairs, *share),
            Effect::Partition { peers, lasts } => self.cut_off(peers, *lasts),
            Effect::Join => return self.start(*peer),
            Effect::Leave => {
                self.note_fault("leave", *peer);
                return self.feed(*peer, Input::Leave);
            }
            Effect::Byzantine { lie, lasts } => self.corrupt(*peer, *lie, *lasts),
            Effect::Directive(directive) => return self.hear_directives(*peer, vec![*directive]),
            Effect::RandomCrashes { .. } | Effect::ClockSkew { .. } => {}
        }
        Ok(())
    }

    fn corrupt(&mut self, index: usize, lie: Lie, lasts: Duration) {
        let until = self.now + lasts;
        self.slots[index].lying = Some(Lying { lie, until });
        self.note_fault("byzantine", index);
    }

    /// A machine proves that another one lies: only of machines that do.
    pub(crate) fn prove(&mut self, index: usize, proof: &Proof) -> Result<(), SimError> {
        let holds = sign::holds(&self.recipe.plan().run, proof);
        let of = self.recipe.index_of(&proof.by());
        match of.filter(|of| holds && self.slots[*of].forger.has_lied()) {
            Some(liar) => {
                if self.counters.proven.insert(liar) {
                    self.ban(liar);
                }
                Ok(())
            }
            None => {
                let what = format!("{} is proven to lie, but does not: {proof:?}", proof.by());
                Err(self.violation(index, what))
            }
        }
    }

    /// Every machine learns that a machine is banned, and closes its link to it: daemons pass proofs on at once.
    fn ban(&mut self, liar: usize) {
        self.sides += 1;
        self.net.set_side(liar, self.sides);
        let others: Vec<usize> = self.net.linked(liar).collect();
        for other in others {
            for (host, other) in [(liar, other), (other, liar)] {
                let at = self.now + self.net.latency(host, other);
                self.notice_at(at, host, other);
            }
        }
    }

    /// Schedules a start. The run does not end before it.
    fn schedule_start(&mut self, at: Time, index: usize) {
        self.starts_due += 1;
        self.queue.push(at, Due::Start { host: index });
    }

    /// Starts a machine. Does nothing if it is up.
    pub(crate) fn start(&mut self, index: usize) -> Result<(), SimError> {
        self.starts_due -= 1;
        if self.slots[index].host.is_some() {
            return Ok(());
        }
        let again = self.slots[index].life > 0;
        if again || self.now > Time::ZERO {
            self.note_fault(if again { "restart" } else { "join" }, index);
        }
        if again {
            let slot = &mut self.slots[index];
            slot.forgotten = slot.signed;
        }
        let join = again || self.now > Time::ZERO;
        self.boot(index, join)
    }

    /// Crashes a machine. Does nothing if it is down.
    pub(crate) fn crash(
        &mut self,
        index: usize,
        restart_after: Option<Duration>,
    ) -> Result<(), SimError> {
        if self.stop(index, "crash").is_none() {
            return Ok(());
        }
        if let Some(after) = restart_after {
            self.schedule_start(self.now + after, index);
        }
        Ok(())
    }

    /// Removes a machine with its host and links. The others notice after the detection time.
    /// Returns the fault's name if the machine was up.
    pub(crate) fn stop(&mut self, index: usize, what: &'static str) -> Option<&'static str> {
        let slot = &mut self.slots[index];
        let open = slot.host.take()?.open_pushes;
        slot.life += 1;
        slot.wake_at = None;
        self.live -= 1;
        self.finished -= usize::from(slot.finished);
        slot.finished = false;
        self.checks.gone(index, self.slots[index].id);
        self.note_fault(what, index);
        let linked: Vec<usize> = self.net.linked(index).collect();
        self.net.forget(index);
        let detection = self.scenario.network.detection;
        for other in linked {
            self.notice_at(self.now + detection, other, index);
        }
        self.break_links_through(index);
        self.transfers_of_dead(index, &open);
        Some(what)
    }

    fn schedule_random_crash(&mut self, process: usize) {
        if let Some(at) = self.random_crashes[process].next(self.now) {
            self.queue.push(at, Due::RandomCrash { process });
        }
    }

    /// Crashes a random live machine, unless `down_max` machines are down.
    pub(crate) fn random_crash(&mut self, process: usize) -> Result<(), SimError> {
        let crashes = &mut self.random_crashes[process];
        let (index, after) = (
            crashes.random.below(self.slots.len()),
            crashes.restart_after,
        );
        if self.scenario.peers - self.live < crashes.down_max {
            self.crash(index, after)?;
        }
        self.schedule_random_crash(process);
        Ok(())
    }

    /// Starts a partition.
    pub(crate) fn cut_off(&mut self, peers: &[usize], lasts: Duration) {
        self.sides += 1;
        for peer in peers {
            self.net.set_side(*peer, self.sides);
            self.note_fault("partition", *peer);
        }
        for peer in peers {
            let linked = self.net.linked(*peer);
            let across = linked.filter(|other| !self.net.reachable(*peer, *other));
            for other in across.collect::<Vec<usize>>() {
                self.notice_dead_link(*peer, other);
            }
        }
        let (peers, side) = (peers.to_vec(), self.sides);
        self.queue.push(self.now + lasts, Due::Heal { peers, side });
    }

    /// Ends a partition. Each machine dials one of the other side, as a user would make it do.
    pub(crate) fn heal(&mut self, peers: &[usize], side: u32) {
        for peer in peers {
            if self.net.side(*peer) == side {
                self.net.set_side(*peer, 0);
                self.note_fault("heal", *peer);
            }
        }
        for peer in peers {
            self.dial_some(*peer);
        }
    }

    /// Takes the links between these machines, and a share of all others that is drawn from the seed.
    fn lose_links(&mut self, pairs: &[(usize, usize)], share: f64) {
        let machines = self.slots.len();
        let mut random = Random::new(self.scenario.seed, Purpose::Missing);
        let all = (0..machines).flat_map(|a| (a + 1..machines).map(move |b| (a, b)));
        let drawn = all.filter(|_| share > 0.0 && random.chance(share));
        let lost: Vec<(usize, usize)> = drawn.chain(pairs.iter().copied()).collect();
        for (a, b) in lost {
            self.net.lose(a, b);
            self.note_fault("missing-link", a);
            self.notice_dead_link(a, b);
        }
    }

    /// Both ends of a link that may be dead find out after the detection time.
    pub(crate) fn notice_dead_link(&mut self, a: usize, b: usize) {
        let at = self.now + self.scenario.network.detection;
        self.notice_at(at, a, b);
        self.notice_at(at, b, a);
    }

    /// A machine finds out at a time that its link to another may be dead, if it has one.
    fn notice_at(&mut self, at: Time, host: usize, other: usize) {
        if let Some(connection) = self.net.connection(host, other) {
            let due = Due::Down {
                host,
                other,
                connection,
            };
            self.queue.push(at, due);
        }
    }

    /// Makes a machine's inner steps `factor` times slower.
    fn slow_down(&mut self, index: usize, factor: f64, lasts: Duration) {
        self.slots[index].slowness *= factor;
        self.note_fault("straggler", index);
        let due = Due::SpeedUp {
            host: index,
            factor,
        };
        self.queue.push(self.now + lasts, due);
    }

    pub(crate) fn speed_up(&mut self, index: usize, factor: f64) {
        self.slots[index].slowness /= factor;
    }

    /// Stops a machine for this long. Its links break if it is silent for longer than the others take to notice.
    pub(crate) fn pause(&mut self, index: usize, lasts: Duration) {
        let slot = &mut self.slots[index];
        slot.paused_until = slot.paused_until.max(self.now + lasts);
        self.note_fault("pause", index);
        if lasts > self.scenario.network.detection {
            self.cut_off(&[index], lasts);
        }
    }

    /// When the machine that handles an event can do so, if it is stopped now. Bytes that are on the network
    /// go on: the kernel takes them.
    pub(crate) fn held_until(&self, due: &Due) -> Option<Time> {
        let transfer = |number: &usize| &self.transfers[*number];
        let fetch = |number: &usize| self.fetches.open.get(*number)?.as_ref();
        let host = match due {
            Due::Timeout { host, .. }
            | Due::Directives { host, .. }
            | Due::Up { host, .. }
            | Due::Down { host, .. }
            | Due::Work { host, .. } => *host,
            Due::Message { to, .. } => *to,
            Due::SliceArrives { transfer: number } => transfer(number).to,
            Due::PushLate {
                transfer: number, ..
            }
            | Due::PushEnds { transfer: number } => transfer(number).from,
            Due::FetchAsked { fetch: number, .. } => fetch(number)?.donor?.0,
            Due::FetchLate { fetch: number, .. } | Due::FetchEnds { fetch: number, .. } => {
                fetch(number)?.host
            }
            Due::Start { .. }
            | Due::Flow { .. }
            | Due::Capacity { .. }
            | Due::Fault { .. }
            | Due::RandomCrash { .. }
            | Due::SpeedUp { .. }
            | Due::Heal { .. } => return None,
        };
        let until = self.slots.get(host)?.paused_until;
        (until > self.now).then_some(until)
    }
}
