//! The swarm: machines, network and calendar, and the loop that handles one event after the other.
//!
//! `link.rs` and `transfer.rs` handle events between machines, `work.rs` the work of one machine,
//! and `fault/` the faults.

use crate::drift::Drift;
use crate::due::Due;
use crate::error::SimError;
use crate::fault::{Fault, Forger, RandomCrashes, When};
use crate::fetches::Fetches;
use crate::invariants::Checks;
use crate::net::Network;
use crate::push::Transfer;
use crate::queue::Queue;
use crate::random::{Purpose, Random};
use crate::recipe::Recipe;
use crate::report::{Counters, FaultNote, consensus_distance};
use crate::samples::Samples;
use crate::scenario::Scenario;
use crate::slot::Slot;
use crate::snapshots::Snapshots;
use crate::speed;
use crate::trace::Trace;
use core::time::Duration;
use murmurate_protocol::{Directives, Input, SealMemory, Time};
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
    pub(crate) free_transfers: Vec<u32>,
    pub(crate) fetches: Fetches,
    pub(crate) snapshots: Snapshots,
    pub(crate) setup: Random,
    pub(crate) lies: Random,
    pub(crate) drifts: Random,
    pub(crate) random_crashes: Vec<RandomCrashes>,
    /// Joins that wait for a round of any machine.
    pub(crate) waiting_joins: Vec<u32>,
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
            let change_due = Due::Capacity {
                change: number as u32,
            };
            swarm.queue.push(change.at, change_due);
        }
        swarm
    }

    fn plan_faults(&mut self) {
        let mut late = vec![false; self.scenario.peers];
        for (number, fault) in self.scenario.faults.iter().enumerate() {
            let number = number as u32;
            if let Fault::Join { peer, .. } = fault {
                late[*peer] = true;
            }
            match (fault, fault.trigger()) {
                (
                    Fault::RandomCrashes {
                        mean,
                        restart_after,
                        until,
                        down_max,
                    },
                    _,
                ) => {
                    self.random_crashes.push(RandomCrashes::new(
                        self.scenario.seed,
                        self.random_crashes.len(),
                        (*mean, *restart_after),
                        (*until, *down_max),
                    ));
                }
                (_, Some((When::At(at), _))) => {
                    self.starts_due += usize::from(matches!(fault, Fault::Join { .. }));
                    self.queue.push(at, Due::Fault { fault: number });
                }
                (Fault::Join { .. }, Some(_)) => {
                    self.starts_due += 1;
                    self.waiting_joins.push(number);
                }
                (_, Some((_, peer))) => self.slots[peer].waiting_faults.push(number),
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

    /// Whether the run may end: after an all-reduce all live peers hold the same bits.
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
            Due::Start { host } => self.start(host as usize),
            Due::Timeout { host, life } => self.timeout(host as usize, life),
            Due::Message {
                from,
                to,
                connection,
                letter,
            } => self.message(from as usize, to as usize, connection, letter),
            Due::Up {
                host,
                life,
                other,
                other_life,
                answer,
            } => self.link_up((host as usize, life), (other as usize, other_life), answer),
            Due::Down {
                host,
                other,
                connection,
            } => self.link_down(host as usize, other as usize, connection),
            Due::Work {
                host,
                life,
                lane,
                serial,
            } => self.work_ends(host as usize, life, lane, serial),
            Due::Directives { host, directives } => self.hear_directives(host as usize, directives),
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
            Due::RandomCrash { process } => self.random_crash(process as usize),
            Due::SpeedUp { host, factor } => {
                self.speed_up(host as usize, factor);
                Ok(())
            }
            Due::Heal { peers, side } => {
                self.heal(&peers, side);
                Ok(())
            }
        }
    }

    fn change_capacity(&mut self, number: u32) {
        let change = &self.scenario.network.changes[number as usize];
        let rates = (change.uplink, change.downlink);
        self.net.set_capacity(self.now, change.peer, rates);
        self.make_appointments();
    }

    fn strike(&mut self, number: u32) -> Result<(), SimError> {
        match &self.scenario.faults[number as usize] {
            Fault::Crash {
                peer,
                restart_after,
                ..
            } => self.crash(*peer, *restart_after),
            Fault::Straggler {
                peer,
                factor,
                lasts,
                ..
            } => {
                self.slow_down(*peer, *factor, *lasts);
                Ok(())
            }
            Fault::Pause { peer, lasts, .. } => {
                self.pause(*peer, *lasts);
                Ok(())
            }
            Fault::MissingLinks { pairs, share, .. } => {
                self.lose_links(pairs, *share);
                Ok(())
            }
            Fault::Partition { peers, lasts, .. } => {
                self.cut_off(peers, *lasts);
                Ok(())
            }
            Fault::Join { peer, .. } => self.start(*peer),
            Fault::Leave { peer, .. } => {
                self.note_fault("leave", *peer);
                self.feed(*peer, Input::Leave)
            }
            Fault::Byzantine {
                peer, lie, lasts, ..
            } => {
                self.corrupt(*peer, *lie, *lasts);
                Ok(())
            }
            Fault::Directive {
                peer, directive, ..
            } => self.hear_directives(*peer, vec![*directive]),
            Fault::RandomCrashes { .. } | Fault::ClockSkew { .. } => Ok(()),
        }
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

    /// The time of a machine's clock.
    pub(crate) fn clock(&self, index: usize) -> Time {
        self.now + self.slots[index].ahead
    }

    /// Notes a fault for the report.
    pub(crate) fn note_fault(&mut self, what: &'static str, peer: usize) {
        self.counters.faults.push(FaultNote {
            at_s: self.now.as_secs_f64(),
            what,
            peer,
        });
    }

    /// Adds everything that is needed to reproduce a broken invariant.
    pub(crate) fn violation(&self, index: usize, what: String) -> SimError {
        SimError::Violation(Box::new(crate::invariants::Violation {
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
