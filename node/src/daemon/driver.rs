//! The loop that feeds the peer: finished work, then deadlines, then the network. Its select is the
//! only place where it waits.

use crate::api::{Clock, StatusHandle};
use crate::bulk::BulkFault;
use crate::daemon::acquaintances::Acquaintances;
use crate::daemon::recording::Recording;
use crate::daemon::{DaemonError, RefusedBy, SteadyClock};
use crate::depot::Depot;
use crate::faults::{self, Fault, Faults};
use crate::lanes::{Answer, Lanes};
use crate::net::{self, Net, NetEvent};
use crate::progress::Printer;
use murmurate_protocol::wire::{self, Message};
use murmurate_protocol::{
    Done, Event, FetchId, Input, Part, Peer, PeerId, Phase, PushOutcome, SliceId, Time, WorkError,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How often counters are read and progress is shown.
const TICK: Duration = Duration::from_millis(100);

/// Everything that the loop holds.
pub(super) struct Driver {
    pub(super) peer: Peer,
    /// Who is worth looking for after a restart.
    pub(super) acquaintances: Acquaintances,
    pub(super) clock: SteadyClock,
    pub(super) net: Net,
    pub(super) depot: Arc<Depot>,
    pub(super) lanes: Lanes,
    pub(super) status: StatusHandle,
    pub(super) printer: Printer,
    pub(super) faults: Faults,
    pub(super) addresses: Vec<String>,
    pub(super) http: Option<String>,
    pub(super) ending: Ending,
    /// Whether it was told whom to join.
    pub(super) joining: bool,
    /// The record of what goes into the peer, if one was asked for.
    pub(super) recording: Option<Recording>,
    /// A fault that strikes at the next push that arrives.
    pub(super) armed: Option<Fault>,
    /// Bytes before the codec of every push under way.
    pub(super) payload_pushed: BTreeMap<(SliceId, PeerId), u64>,
    /// Bytes before the codec.
    pub(super) payload_sent: u64,
    /// Bytes before the codec.
    pub(super) payload_received: u64,
    /// Bytes of slices before the codec that each peer was sent, and sent.
    pub(super) payload_peers: BTreeMap<PeerId, (u64, u64)>,
    /// When the links were last looked at.
    pub(super) links_read: Instant,
    /// Inputs that performing outputs gave rise to.
    pub(super) pending: VecDeque<Input>,
}

/// What the loop ends with.
#[derive(Debug, Default)]
pub(super) struct Ending {
    pub(super) left: bool,
    pub(super) error: Option<DaemonError>,
    pub(super) refused: Vec<RefusedBy>,
    pub(super) met_anyone: bool,
    pub(super) bootstrap: Option<String>,
    /// Why the last checkpoint was not written.
    pub(super) unsaved: Option<String>,
    pub(super) interrupts: u32,
}

/// Where the loop's news come from.
pub(super) struct Sources {
    pub(super) answers: mpsc::Receiver<Answer>,
    pub(super) events: mpsc::Receiver<NetEvent>,
    pub(super) interrupts: mpsc::Receiver<()>,
}

impl Driver {
    /// Runs until the peer has left.
    pub(super) async fn run(&mut self, mut sources: Sources) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        self.drain();
        while !self.ending.left {
            let deadline = self.peer.poll_timeout().unwrap_or(Time::NEVER);
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
                    None => self.lanes_ended(),
                },
                () = sleep => self.feed(Input::Timeout),
                event = sources.events.recv() => match event {
                    Some(event) => self.on_net(event),
                    None => self.network_ended(),
                },
                _ = tick.tick() => self.tick(),
            }
        }
        self.tick();
    }

    /// Hands an input to the peer and performs all that follows.
    pub(super) fn feed(&mut self, input: Input) {
        self.handle(input);
        self.drain();
        while let Some(input) = self.pending.pop_front() {
            self.handle(input);
            self.drain();
        }
    }

    fn handle(&mut self, input: Input) {
        let now = self.clock.now();
        if let Some(recording) = &mut self.recording {
            recording.input(now, &input);
        }
        if let Err(error) = self.peer.handle(now, input) {
            tracing::debug!(%error, "a peer broke a rule");
        }
        self.depot.set_round(self.peer.round());
    }

    fn drain(&mut self) {
        let mut strike = None;
        while let Some(output) = self.peer.poll_output() {
            if let Some(recording) = &mut self.recording {
                recording.output(&output);
            }
            strike = strike.or(self.perform(output));
        }
        if let Some(fault) = strike {
            self.strike(fault);
        }
    }

    /// Does itself the harm it was told to do.
    pub(super) fn strike(&mut self, fault: Fault) {
        self.printer.fault(fault, self.peer.round().0);
        faults::trigger(fault);
    }

    fn on_net(&mut self, event: NetEvent) {
        match event {
            NetEvent::Listening(address) => {
                self.addresses.push(address.to_string());
                let addresses = self.addresses.clone();
                self.status.with(|o| o.set_addresses(addresses));
                let peer = self.status.with(|o| o.peer_hex());
                self.printer
                    .listening(&peer, &self.addresses, self.http.clone());
            }
            NetEvent::ListenFailed(failure) => {
                let text = format!("cannot listen on {failure}; the other addresses work");
                self.printer.note(&text);
            }
            NetEvent::NotListening(address) => self.not_listening(&address.to_string()),
            NetEvent::Path { peer, path, reason } => {
                self.status.with(|o| o.set_path(peer, path, reason));
            }
            NetEvent::Nat(report) => self.status.with(|o| o.set_nat(&report)),
            NetEvent::Notice(text) => self.printer.note(&text),
            NetEvent::LinkUp(peer) => self.feed(Input::LinkUp(peer)),
            NetEvent::LinkDown(peer) => self.feed(Input::LinkDown(peer)),
            NetEvent::Frame { from, bytes } => self.on_frame(from, &bytes),
            NetEvent::Malformed { from, error } => self.feed(Input::Malformed { from, error }),
            NetEvent::Measured { peer, rtt, rate } => {
                self.status.with(|o| o.measured(peer, rtt));
                self.feed(Input::Measured { peer, rtt, rate });
            }
            NetEvent::Arrived {
                from,
                slice,
                meta,
                digest,
            } => {
                self.count_arrived(from, slice, meta.of);
                self.feed(Input::Arrived {
                    from,
                    slice,
                    meta,
                    digest,
                });
            }
            NetEvent::Pushed { to, slice, outcome } => self.on_pushed(to, slice, outcome),
            NetEvent::Fetched { what, meta, digest } => {
                self.payload_received += match (what, meta) {
                    (FetchId::Slice(slice), Some(meta)) => self.payload(slice, meta.of),
                    (FetchId::State(state), _) => state.bytes,
                    (FetchId::Slice(_), None) => 0,
                };
                self.feed(Input::Fetched { what, meta, digest });
            }
            NetEvent::FetchFailed { what } => self.feed(Input::FetchFailed { what }),
            NetEvent::Record(record) => self.feed(Input::Record(record)),
            NetEvent::BootstrapFailed {
                address,
                reason,
                retry_in,
            } => {
                self.bootstrap_failed(&address.to_string(), &reason, retry_in);
            }
            NetEvent::MalformedBulk { from, what } => self.on_fault(from, &what),
        }
    }

    fn on_fault(&mut self, from: PeerId, what: &BulkFault) {
        tracing::debug!(peer = %from, %what, "a bulk stream did not keep its word");
        if what.is_misbehaviour() {
            let error = wire::WireError::Undecodable(what.to_string());
            self.feed(Input::Malformed { from, error });
        }
    }

    fn on_pushed(&mut self, to: PeerId, slice: SliceId, outcome: PushOutcome) {
        self.count_pushed(to, slice, outcome);
        self.feed(Input::Pushed { to, slice, outcome });
        self.pushed(slice.part, outcome);
    }

    fn not_listening(&mut self, gone: &str) {
        self.addresses.retain(|address| address != gone);
        let addresses = self.addresses.clone();
        self.status.with(|o| o.set_addresses(addresses));
    }

    fn on_frame(&mut self, from: PeerId, bytes: &[u8]) {
        match wire::decode(bytes) {
            Ok(Message::Records(mut records)) => {
                let before = records.len();
                records.retain(net::verify);
                if records.len() < before {
                    let error = wire::WireError::Signature;
                    self.feed(Input::Malformed { from, error });
                }
                self.feed(Input::Received {
                    from,
                    message: Message::Records(records),
                });
            }
            Ok(message) => self.feed(Input::Received { from, message }),
            Err(error) => self.feed(Input::Malformed { from, error }),
        }
    }

    fn bootstrap_failed(&mut self, address: &str, reason: &str, retry_in: Option<Duration>) {
        let text = match retry_in {
            Some(wait) => {
                format!("no answer from {address} ({reason}); trying again in {wait:.0?}")
            }
            None => format!("no answer from {address} ({reason}); given up"),
        };
        self.printer.note(&text);
        self.ending.bootstrap = Some(format!("{address} ({reason})"));
    }

    /// A fault in the middle of an exchange strikes once somebody has been served.
    fn pushed(&mut self, part: Part, outcome: PushOutcome) {
        let served = outcome == PushOutcome::Delivered;
        let exchanging = self.peer.phase() == Phase::Exchange;
        let serves = part == Part::Aggregate || !exchanging || self.serves_by_pushing();
        if served
            && serves
            && let Some(fault) = self.armed.take()
        {
            self.strike(fault);
        }
    }

    fn serves_by_pushing(&self) -> bool {
        let exchange = self.peer.plan().exchange;
        exchange.facts().exchanges && !exchange.agrees()
    }

    /// Ctrl+C: politely the first time, at once the second.
    fn interrupted(&mut self) {
        self.ending.interrupts += 1;
        if self.ending.interrupts > 1 {
            self.printer.note("leaving at once");
            self.ending.error = Some(DaemonError::Interrupted);
            self.ending.left = true;
            return;
        }
        self.printer
            .note("leaving: the checkpoint is being written (Ctrl+C again: at once)");
        self.feed(Input::Leave);
    }

    /// A disk that is full when the daemon leaves must show in its exit code.
    fn note_saving(&mut self, done: &Done) {
        match done {
            Done::Saved => self.ending.unsaved = None,
            Done::Failed(error @ WorkError::Storage { .. }) => {
                self.ending.unsaved = Some(error.to_string());
            }
            _ => {}
        }
    }

    fn lanes_ended(&mut self) {
        self.ending.error = Some(DaemonError::LaneEnded);
        self.ending.left = true;
    }

    fn network_ended(&mut self) {
        self.ending.error = Some(DaemonError::NetworkEnded);
        self.ending.left = true;
    }
}

/// Whether an event says that the swarm will not have this peer.
pub(super) fn refusal(event: &Event) -> Option<RefusedBy> {
    match event {
        Event::Refused { peer, reason } | Event::RefusedBy { peer, reason } => Some(RefusedBy {
            peer: *peer,
            reason: *reason,
        }),
        _ => None,
    }
}

/// Whether a fetch of this kind may be given up when the network's queue is full.
pub(super) const fn fetch_failed(what: FetchId) -> Input {
    Input::FetchFailed { what }
}
