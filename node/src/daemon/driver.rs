//! The loop that feeds the peer: finished work first, then deadlines, then the network. It waits only in its
//! select.
//!
//! The rest of the driver is in `news` (events of the network), `perform` (outputs of the peer), and `shown` (what
//! the operator and the others see).

use super::console::Console;
use super::contacts::Contacts;
use super::ending::Ending;
use super::judge::Judge;
use super::payload::Payload;
use super::recording::Recording;
use super::trace::Trace;
use super::{DaemonError, SteadyClock};
use crate::api::{Clock, Observer};
use crate::depot::Depot;
use crate::events::Kind;
use crate::faults::{self, Fault, Faults};
use crate::lanes::{Answer, Lanes};
use crate::lies::Liar;
use crate::metrics::Metrics;
use crate::net::{Net, NetEvent};
use crate::splits::Splits;
use murmurate_protocol::{Done, Input, Peer, Time, WorkError};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Faults, splits and lies that a daemon was started with.
#[derive(Debug)]
pub(super) struct OnRequest {
    pub(super) faults: Faults,
    pub(super) splits: Splits,
    /// Lies to the others.
    pub(super) liar: Option<Liar>,
}

/// Time between two reads of the counters and two lines of progress.
const TICK: Duration = Duration::from_millis(100);

/// The parts that the loop connects.
pub(super) struct Driver {
    /// Decides what to do.
    pub(super) peer: Peer,
    /// Inputs that arose while outputs were performed.
    pub(super) pending: VecDeque<Input>,
    /// The record of the peer's inputs, if one was requested.
    pub(super) recording: Option<Recording>,
    /// Provides the peer's time.
    pub(super) clock: SteadyClock,
    /// Carries messages, slices and states.
    pub(super) net: Net,
    /// Holds encoded slices and states until they are sent or used.
    pub(super) depot: Arc<Depot>,
    /// Perform the peer's orders on their threads.
    pub(super) lanes: Lanes,
    /// Knowledge about other daemons.
    pub(super) contacts: Contacts,
    pub(super) console: Console,
    /// Counts bytes before the codec.
    pub(super) payload: Payload,
    pub(super) on_request: OnRequest,
    /// Logs the peer's inputs and outputs.
    pub(super) trace: Trace,
    /// Judges evaluations.
    pub(super) judge: Judge,
    pub(super) metrics: Option<Metrics>,
    pub(super) ending: Ending,
}

pub(super) struct Sources {
    pub(super) answers: mpsc::Receiver<Answer>,
    pub(super) events: mpsc::Receiver<NetEvent>,
    pub(super) interrupts: mpsc::Receiver<()>,
}

impl Driver {
    pub(super) async fn run(&mut self, mut sources: Sources) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        self.drain();
        while !self.ending.left {
            let deadline = self.peer.poll_timeout().unwrap_or(Time::NEVER);
            let room = self.lanes.keep_up();
            let sleep = tokio::time::sleep_until(self.clock.instant(deadline).into());
            tokio::select! {
                biased;
                Some(()) = sources.interrupts.recv() => self.interrupted(),
                answer = sources.answers.recv() => match answer {
                    Some(Answer::Done(order, done)) => {
                        self.note_saving(&done);
                        self.feed(Input::Done { order, done });
                    }
                    Some(Answer::Cut(order, fragment, samples)) => {
                        self.feed(Input::Cut { order, fragment, samples });
                    }
                    Some(Answer::Note(text)) => self.note(&text),
                    Some(Answer::Signed(to, message)) => self.send(to, &message),
                    Some(Answer::Checked(from, message)) => self.on_checked(from, message),
                    None => self.ending.fail(DaemonError::LaneEnded),
                },
                () = sleep => self.feed(Input::Timeout),
                event = sources.events.recv(), if room => match event {
                    Some(event) => self.on_net(event),
                    None => self.ending.fail(DaemonError::NetworkEnded),
                },
                _ = tick.tick() => {
                    self.tick();
                    self.make_noise();
                }
            }
        }
        self.tick();
    }

    /// Passes an input to the peer and performs all outputs that follow.
    pub(super) fn feed(&mut self, input: Input) {
        self.handle(input);
        self.drain();
        while let Some(input) = self.pending.pop_front() {
            self.handle(input);
            self.drain();
        }
    }

    fn handle(&mut self, input: Input) {
        let input = match &mut self.on_request.liar {
            Some(liar) => liar.input(input, &self.peer),
            None => Some(input),
        };
        // The peer does not see the answer to a lie.
        let Some(input) = input else {
            return;
        };
        let now = self.clock.now();
        let _round = self.trace.enter(self.peer.round());
        self.trace.input(&input);
        if let Some(recording) = &mut self.recording {
            recording.input(now, &input);
        }
        if let Err(error) = self.peer.handle(now, input) {
            tracing::debug!(%error, "input rejected");
        }
        self.depot.set_round(self.peer.round(), self.peer.group());
    }

    fn drain(&mut self) {
        let mut strike = None;
        while let Some(output) = self.peer.poll_output() {
            if let Some(recording) = &mut self.recording {
                recording.output(&output);
            }
            let _round = self.trace.enter(self.peer.round());
            self.trace.output(&output);
            let Some(liar) = &mut self.on_request.liar else {
                strike = strike.or(self.perform(output));
                continue;
            };
            let acts = liar.outputs(output, &self.peer);
            self.pending.extend(acts.inputs);
            for output in acts.outputs {
                strike = strike.or(self.perform(output));
            }
        }
        if let Some(fault) = strike {
            self.strike(fault);
        }
    }

    /// Sends what a daemon that lies on request sends without a reason.
    fn make_noise(&mut self) {
        let now = self.clock.now();
        let liar = self.on_request.liar.as_mut();
        let noise = liar.map(|liar| liar.tick(now, &self.peer));
        for output in noise.into_iter().flatten() {
            self.perform(output);
        }
    }

    pub(super) fn note(&self, text: &str) {
        self.console.printer.note(text);
    }

    pub(super) fn log(&mut self, what: Kind) {
        let (now, round) = (self.clock.now(), self.peer.round().0);
        self.console.log.add(now, round, what);
    }

    pub(super) fn strike(&mut self, fault: Fault) {
        self.console.printer.fault(fault, self.peer.round().0);
        faults::trigger(fault);
    }

    /// Handles Ctrl+C or SIGTERM: the first writes a checkpoint and leaves, the second ends at
    /// once.
    fn interrupted(&mut self) {
        self.ending.interrupts += 1;
        if self.ending.interrupts > 1 {
            self.note("leaving at once");
            self.ending.fail(DaemonError::Interrupted);
            return;
        }
        self.note("leaving: what is not saved yet is being written (Ctrl+C again: at once)");
        self.feed(Input::Leave);
    }

    /// Counts a failed save, and remembers it so that a full disk at the end shows in the exit code.
    fn note_saving(&mut self, done: &Done) {
        match done {
            Done::Saved => self.ending.unsaved = None,
            Done::Failed(error @ WorkError::Storage { .. }) => {
                self.ending.unsaved = Some(error.to_string());
                self.console.status.with(Observer::save_failed);
            }
            _ => {}
        }
    }
}
