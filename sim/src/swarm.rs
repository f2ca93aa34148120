//! The swarm: machines, network and calendar, and the loop that handles one event after the other. It passes inputs
//! to peers and performs their outputs; no other file calls a peer.
//!
//! `link.rs` and `transfer.rs` handle events between machines, `work.rs` the work of one machine,
//! and `fault/` the faults.

use crate::due::Due;
use crate::error::SimError;
use crate::fault::{Forger, RandomCrashes, Speaker, When};
use crate::flight::{Fetches, Transfer};
use crate::host::{Slot, Snapshots};
use crate::invariants::Checks;
use crate::net::Network;
use crate::queue::Queue;
use crate::random::{Purpose, Random};
use crate::recipe::Recipe;
use crate::report::{Counters, FaultNote, consensus_distance};
use crate::samples::Samples;
use crate::scenario::Scenario;
use crate::speed;
use crate::speed::Drift;
use crate::trace::Trace;
use core::time::Duration;
use murmurate_protocol::wire::Message;
use murmurate_protocol::{
    Directives, Event, Input, Output, PeerId, Phase, Round, SealMemory, SortedSet, Time,
};
use std::collections::VecDeque;

/// Virtual time for finished peers to settle what a lost message of the last round left open.
const EPILOGUE: Duration = Duration::from_secs(30);

/// The state of a simulation.
pub(crate) struct Swarm<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) recipe: Recipe<'a>,
    pub(crate) now: Time,
    pub(crate) queue: Queue<Due>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) net: Network,
    pub(crate) transfers: Vec<Transfer>,
    pub(crate) free_transfers: Vec<usize>,
    pub(crate) fetches: Fetches,
    pub(crate) snapshots: Snapshots,
    pub(crate) setup: Random,
    pub(crate) lies: Random,
    pub(crate) drifts: Random,
    pub(crate) random_crashes: Vec<RandomCrashes>,
    /// Joins that wait for a round of any machine.
    pub(crate) waiting_joins: Vec<usize>,
    pub(crate) sides: u32,
    pub(crate) live: usize,
    pub(crate) finished: usize,
    pub(crate) starts_due: usize,
    pub(crate) checks: Checks,
    pub(crate) trace: Trace<'a>,
    pub(crate) counters: Counters,
    pub(crate) samples: Samples,
    pub(crate) inputs: VecDeque<Input>,
}

impl<'a> Swarm<'a> {
    /// A swarm whose machines are about to start, except those that join later.
    pub(crate) fn new(scenario: &'a Scenario, recipe: Recipe<'a>, trace: Trace<'a>) -> Self {
        let mut setup = Random::new(scenario.seed, Purpose::Setup);
        let slots: Vec<Slot> = (0..scenario.peers)
            .map(|index| Slot {
                id: recipe.id(index),
                host: None,
                life: 0,
                checkpoint: None,
                slowness: speed::slowness(scenario, index, &mut setup),
                drift: Drift::default(),
                ahead: speed::ahead(scenario, index),
                lying: None,
                signed: None,
                forgotten: None,
                opened: Vec::new(),
                directives: Directives::default(),
                memory: SealMemory::default(),
                forger: Forger::default(),
                records: 0,
                wake_at: None,
                paused_until: Time::ZERO,
                finished: false,
                waiting_faults: Vec::new(),
            })
            .collect();
        let draws = Random::new(scenario.seed, Purpose::Network);
        let net = Network::new(&scenario.network, scenario.peers, draws);
        let checks = Checks::new(scenario, &recipe);
        let mut swarm = Self {
            scenario,
            recipe,
            now: Time::ZERO,
            queue: Queue::new(),
            slots,
            net,
            transfers: Vec::new(),
            free_transfers: Vec::new(),
            fetches: Fetches::default(),
            snapshots: Snapshots::default(),
            setup,
            lies: Random::new(scenario.seed, Purpose::Lies),
            drifts: Random::new(scenario.seed, Purpose::Drift),
            random_crashes: Vec::new(),
            waiting_joins: Vec::new(),
            sides: 0,
            live: 0,
            finished: 0,
            starts_due: 0,
            checks,
            trace,
            counters: Counters::default(),
            samples: Samples::new(scenario.evaluate_every),
            inputs: VecDeque::new(),
        };
        swarm.plan_faults();
        for (number, change) in scenario.network.changes.iter().enumerate() {
            swarm
                .queue
                .push(change.at, Due::Capacity { change: number });
        }
        swarm
    }

    /// A machine that is about to say something.
    pub(crate) fn speaker(&mut self, index: usize) -> Speaker<'_> {
        Speaker {
            run: self.recipe.plan().run,
            now: self.now,
            slot: &mut self.slots[index],
            lies: &mut self.lies,
            counters: &mut self.counters,
        }
    }

    /// Handles events until every live machine has finished.
    pub(crate) fn run(&mut self) -> Result<(), SimError> {
        let end = Time::ZERO + self.scenario.limits.time;
        let mut over: Option<Time> = None;
        loop {
            // Finished peers with different bits get some time to settle the difference.
            over = self.is_over().then(|| over.unwrap_or(self.now));
            if over.is_some_and(|at| self.agreed() || self.now.since(at) > EPILOGUE) {
                return Ok(());
            }
            if !self.net.is_settled() && self.queue.next_at() != Some(self.now) {
                self.net.settle(self.now);
                self.make_appointments();
            }
            let next = self.queue.pop();
            let spent = self.counters.events >= self.scenario.limits.events;
            let Some((at, due)) = next.filter(|(at, _)| *at <= end && !spent) else {
                return Err(self.unfinished());
            };
            self.now = at;
            self.counters.events += 1;
            match self.held_until(&due) {
                Some(later) => self.queue.push(later, due),
                None => self.take(due)?,
            }
        }
    }

    /// The condition for an end: after an all-reduce all live peers hold the same bits.
    fn agreed(&self) -> bool {
        if !self.recipe.plan().exchange.agrees() {
            return true;
        }
        let mut digests = self
            .slots
            .iter()
            .filter_map(|s| Some(s.host.as_ref()?.peer.digest()));
        let first = digests.next();
        digests.all(|digest| Some(digest) == first)
    }

    /// Mean ||theta_i - mean theta|| over the peers that are up.
    pub(crate) fn consensus_distance(&self) -> f64 {
        let hosts = self.slots.iter().filter_map(|slot| slot.host.as_ref());
        let parameters: Vec<Vec<f32>> = hosts.map(|host| host.parameters()).collect();
        let slices: Vec<&[f32]> = parameters.iter().map(Vec::as_slice).collect();
        consensus_distance(&slices)
    }

    fn is_over(&self) -> bool {
        self.live == self.finished && self.starts_due == 0 && self.counters.events > 0
    }

    fn unfinished(&self) -> SimError {
        let open = |slot: &Slot| slot.host.is_some() && !slot.finished;
        let indices = self.slots.iter().enumerate().filter(|(_, slot)| open(slot));
        SimError::Unfinished {
            seed: self.scenario.seed,
            unfinished: indices.map(|(index, _)| index).take(8).collect(),
            virtual_s: self.now.as_secs_f64(),
            events: self.counters.events,
        }
    }

    fn take(&mut self, due: Due) -> Result<(), SimError> {
        match due {
            Due::Start { host } => self.start(host),
            Due::Timeout { host, life } => self.timeout(host, life),
            Due::Message {
                from,
                to,
                connection,
                letter,
            } => self.message(from, to, connection, letter),
            Due::Up {
                host,
                life,
                other,
                other_life,
                answer,
            } => self.link_up((host, life), (other, other_life), answer),
            Due::Down {
                host,
                other,
                connection,
            } => self.link_down(host, other, connection),
            Due::Work {
                host,
                life,
                lane,
                serial,
            } => self.work_ends(host, life, lane, serial),
            Due::Directives { host, directives } => self.hear_directives(host, directives),
            Due::Flow { flow, serial } => self.flow_due(flow, serial),
            Due::PushLate { transfer, serial } => self.push_late(transfer, serial),
            Due::SliceArrives { transfer } => self.slice_arrives(transfer),
            Due::PushEnds { transfer } => self.push_ends(transfer),
            Due::FetchAsked { fetch, serial } => self.fetch_asked(fetch, serial),
            Due::FetchLate { fetch, serial } => self.fetch_late(fetch, serial),
            Due::FetchEnds { fetch, serial } => self.fetch_ends(fetch, serial),
            Due::Capacity { change } => {
                self.change_capacity(change);
                Ok(())
            }
            Due::Fault { fault } => self.strike(fault),
            Due::RandomCrash { process } => self.random_crash(process),
            Due::SpeedUp { host, factor } => {
                self.speed_up(host, factor);
                Ok(())
            }
            Due::Heal { peers, side } => {
                self.heal(&peers, side);
                Ok(())
            }
        }
    }

    fn change_capacity(&mut self, number: usize) {
        let change = &self.scenario.network.changes[number];
        let rates = (change.uplink, change.downlink);
        self.net.set_capacity(self.now, change.peer, rates);
        self.make_appointments();
    }

    /// Builds a machine and starts its peer.
    pub(crate) fn boot(&mut self, index: usize, join: bool) -> Result<(), SimError> {
        let checkpoint = self.slots[index].checkpoint.as_ref();
        let opened = self.slots[index].opened.clone();
        let (host, start) = self.recipe.boot(index, join, checkpoint, opened)?;
        self.slots[index].host = Some(Box::new(host));
        self.live += 1;
        self.checks.joined(index);
        self.tell_directives(index)?;
        self.feed(index, start)?;
        self.tell_record(index)?;
        self.dial_some(index);
        Ok(())
    }

    pub(crate) fn clock(&self, index: usize) -> Time {
        self.now + self.slots[index].ahead
    }

    pub(crate) fn note_fault(&mut self, what: &'static str, peer: usize) {
        self.counters.faults.push(FaultNote {
            at_s: self.now.as_secs_f64(),
            what,
            peer,
        });
    }

    /// Adds everything that is needed to reproduce a broken invariant.
    pub(crate) fn violation(&self, index: usize, what: String) -> SimError {
        SimError::Violation(Box::new(crate::error::Violation {
            seed: self.scenario.seed,
            at: self.now,
            peer: index,
            what,
            trace: self.trace.last_lines(),
        }))
    }

    /// The smallest latency of a message, for events that need no random latency.
    pub(crate) fn retry(&self) -> Duration {
        self.scenario.network.retry
    }
}

impl Swarm<'_> {
    /// A machine's wake-up time has come.
    pub(crate) fn timeout(&mut self, index: usize, life: u32) -> Result<(), SimError> {
        let slot = &mut self.slots[index];
        let Some(host) = slot.host.as_ref().filter(|_| slot.life == life) else {
            return Ok(());
        };
        slot.wake_at = None;
        let clock = self.now + slot.ahead;
        // Deadlines change: a wake-up that is too early is moved, one without a deadline is
        // dropped.
        match host.peer.poll_timeout() {
            Some(at) if at <= clock => self.feed(index, Input::Timeout),
            _ => {
                self.arm(index);
                Ok(())
            }
        }
    }

    /// Schedules the machine's next wake-up unless an earlier one is scheduled.
    fn arm(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let Some(at) = slot.host.as_ref().and_then(|host| host.peer.poll_timeout()) else {
            return;
        };
        let at = (at - slot.ahead).max(self.now);
        if slot.wake_at.is_none_or(|wake| at < wake) {
            slot.wake_at = Some(at);
            let (host, life) = (index, slot.life);
            self.queue.push(at, Due::Timeout { host, life });
        }
    }

    /// Passes an input to a machine's peer and performs its outputs. Orders that take no time are
    /// performed at once, and their answers are passed in as well.
    pub(crate) fn feed(&mut self, index: usize, input: Input) -> Result<(), SimError> {
        debug_assert!(
            self.inputs.is_empty(),
            "feed is not entered from within itself"
        );
        self.feed_one(index, input, None)?;
        self.feed_answers(index)
    }

    /// Passes in the answers that are ready, until there are none.
    pub(crate) fn feed_answers(&mut self, index: usize) -> Result<(), SimError> {
        while let Some(input) = self.inputs.pop_front() {
            self.feed_one(index, input, None)?;
        }
        self.arm(index);
        Ok(())
    }

    /// As [`Swarm::feed`] for a received message, whose frame is what the trace hashes.
    pub(crate) fn feed_message(
        &mut self,
        index: usize,
        input: Input,
        frame: &[u8],
    ) -> Result<(), SimError> {
        self.feed_one(index, input, Some(frame))?;
        self.feed_answers(index)
    }

    fn feed_one(
        &mut self,
        index: usize,
        input: Input,
        frame: Option<&[u8]>,
    ) -> Result<(), SimError> {
        let clock = self.clock(index);
        let Some(host) = self.slots[index].host.as_mut() else {
            return Ok(());
        };
        self.trace.input(self.now, index, &input, frame);
        let rebases = Checks::rebases(&input);
        let timeout = matches!(input, Input::Timeout);
        let refused = host.handle(clock, input).is_err();
        self.counters.rule_breaks += u64::from(refused);
        self.checks.handled(index, host, refused || rebases);
        let mut left = false;
        while let Some(output) = self.slots[index]
            .host
            .as_mut()
            .and_then(|h| h.peer.poll_output())
        {
            left |= matches!(output, Output::Left);
            self.perform(index, output)?;
        }
        self.after(index, timeout)?;
        if left {
            self.stop(index, "left");
        }
        Ok(())
    }

    fn tell(&mut self, index: usize, to: PeerId, message: Message) {
        let name = message.name();
        let (letter, bytes) = self.trace.sent(self.now, index, to, message);
        self.send(index, to, (name, bytes), letter);
    }

    fn perform(&mut self, index: usize, output: Output) -> Result<(), SimError> {
        if let Output::Send { to, message } = output {
            // Most machines sign nothing and do not lie.
            if self.slots[index].lying.is_none() && !message.is_signed() {
                self.tell(index, to, message);
                return Ok(());
            }
            for (to, message) in self.speaker(index).says(to, message) {
                self.tell(index, to, message);
            }
            return Ok(());
        }
        self.trace.output(self.now, index, &output);
        match output {
            Output::Push {
                to,
                slice,
                meta,
                priority,
                deadline,
            } => {
                let deadline = deadline - self.slots[index].ahead;
                self.push(index, to, slice, meta, (deadline, priority));
            }
            Output::Fetch {
                what,
                from,
                deadline,
            } => {
                let deadline = deadline - self.slots[index].ahead;
                self.fetch(index, what, &from, deadline);
            }
            Output::Cancel { slice } => self.cancel(index, slice),
            Output::Order { id, order } => self.order(index, id, order)?,
            Output::Interrupt => self.interrupt(index),
            Output::Dial(record) => self.dial(index, &record),
            Output::Disconnect { peer, .. } => self.disconnect(index, peer),
            Output::Emit(event) => self.hear(index, &event)?,
            Output::Prove(proof) => self.prove(index, &proof)?,
            Output::Opened(base) => self.slots[index].opened.push(base),
            Output::Send { .. } | Output::Left => {}
        }
        Ok(())
    }

    /// Queues an answer that is ready at once. It is passed in after the current outputs.
    pub(crate) fn answer_now(&mut self, input: Input) {
        self.inputs.push_back(input);
    }

    fn hear(&mut self, index: usize, event: &Event) -> Result<(), SimError> {
        self.counters.hear(self.recipe.id(index), event);
        if let Event::Decided { contributors, .. } = event {
            let all = contributors.iter().flatten();
            let machines = all.filter_map(|(peer, _)| self.recipe.index_of(peer));
            for machine in machines.collect::<SortedSet<_>>() {
                *self.counters.merged.entry(machine).or_default() += 1;
            }
        }
        let Some(host) = self.slots[index].host.as_deref() else {
            return Ok(());
        };
        let now = (self.now, self.counters.bytes());
        self.samples.hear(now, index, host, event);
        // What a liar believes binds no other peer.
        if self.slots[index].forger.has_lied() {
            return Ok(());
        }
        if let Event::Refused { peer, .. } = event
            && let Some(other) = self.recipe.index_of(peer)
            && !self.counters.cut_off.contains(&other)
        {
            self.counters.cut_off.push(other);
        }
        let checked = match self.checks.hear(index, event) {
            Ok(()) => self.checks.merged(index, host, event),
            broken => broken,
        };
        checked.map_err(|what| self.violation(index, what))
    }

    fn after(&mut self, index: usize, timeout: bool) -> Result<(), SimError> {
        let slot = &mut self.slots[index];
        let Some(host) = slot.host.as_deref() else {
            return Ok(());
        };
        let (round, phase) = (host.peer.round(), host.peer.phase());
        let finished = matches!(phase, Phase::Finished | Phase::Leaving | Phase::Left);
        if finished != slot.finished {
            slot.finished = finished;
            if finished {
                self.finished += 1;
            } else {
                self.finished -= 1;
            }
        }
        if !slot.waiting_faults.is_empty() || !self.waiting_joins.is_empty() {
            self.trigger_faults(index, round, phase);
        }
        let clock = self.clock(index);
        let me = self.slots[index].id;
        let Some(host) = self.slots[index].host.as_deref() else {
            return Ok(());
        };
        self.checks
            .after((index, me), host, timeout.then_some(clock))
            .map_err(|what| self.violation(index, what))
    }

    fn trigger_faults(&mut self, index: usize, round: Round, phase: Phase) {
        let faults = &self.scenario.faults;
        let (queue, now) = (&mut self.queue, self.now);
        let mut strikes = |number: &usize| {
            let Some(When::In {
                round: due,
                phase: from,
                delay,
            }) = faults[*number].when
            else {
                return false;
            };
            let reached = round > due || (round == due && phase >= from && phase != Phase::Left);
            if reached {
                queue.push(now + delay, Due::Fault { fault: *number });
            }
            !reached
        };
        self.slots[index].waiting_faults.retain(&mut strikes);
        self.waiting_joins.retain(&mut strikes);
    }
}
