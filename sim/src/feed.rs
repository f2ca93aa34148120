//! Passes inputs to a peer and handles its outputs. No other file calls a peer.

use crate::due::{Due, Letter};
use crate::error::SimError;
use crate::fault::When;
use crate::invariants::Checks;
use crate::names;
use crate::swarm::Swarm;
use murmurate_protocol::wire::{self, Message};
use murmurate_protocol::{Event, Input, Output, PeerId, Phase, Round};
use std::collections::BTreeSet;

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
            self.queue.push(
                at,
                Due::Timeout {
                    host: index as u32,
                    life: slot.life,
                },
            );
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

    /// Sends one control message.
    fn tell(&mut self, index: usize, to: PeerId, message: Message) {
        let timing = self.scenario.is_timing_only();
        // Without tensors the trace holds the lengths of messages: a large swarm would spend most of
        // its time on bytes that are read by none.
        let (bytes, traced) = match timing {
            true => {
                let bytes = wire::frame_bytes(&message);
                (bytes, (bytes as u64).to_le_bytes().to_vec())
            }
            false => {
                let frame = wire::encode(&message);
                (frame.len(), frame)
            }
        };
        let output = Output::Send { to, message };
        self.trace.output(self.now, index, &output, Some(&traced));
        let name = names::of_output(&output).0;
        let letter = match output {
            Output::Send { message, .. } if timing => {
                Letter::Message(Box::new(message), bytes as u32)
            }
            _ => Letter::Frame(traced.into_boxed_slice()),
        };
        self.send(index, to, (name, bytes), letter);
    }

    fn perform(&mut self, index: usize, output: Output) -> Result<(), SimError> {
        if let Output::Send { to, message } = output {
            for (to, message) in self.says(index, to, message) {
                self.tell(index, to, message);
            }
            return Ok(());
        }
        self.trace.output(self.now, index, &output, None);
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
            for machine in machines.collect::<BTreeSet<_>>() {
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

    /// Checks a machine after each of its inputs.
    fn after(&mut self, index: usize, timeout: bool) -> Result<(), SimError> {
        let slot = &mut self.slots[index];
        let Some(host) = slot.host.as_deref() else {
            return Ok(());
        };
        let (round, phase) = (host.peer.round(), host.peer.phase());
        let finished = matches!(phase, Phase::Finished | Phase::Leaving | Phase::Left);
        if finished != slot.finished {
            slot.finished = finished;
            match finished {
                true => self.finished += 1,
                false => self.finished -= 1,
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
        let mut strikes = |number: &u32| match faults[*number as usize].trigger() {
            Some((
                When::In {
                    round: r,
                    phase: p,
                    delay,
                },
                _,
            )) => {
                let reached = round > r || (round == r && phase >= p && phase != Phase::Left);
                if reached {
                    queue.push(now + delay, Due::Fault { fault: *number });
                }
                !reached
            }
            _ => false,
        };
        self.slots[index].waiting_faults.retain(&mut strikes);
        self.waiting_joins.retain(&mut strikes);
    }
}
