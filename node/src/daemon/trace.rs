//! Logs the peer's inputs and outputs. At level `debug` the log explains a round from beginning to
//! end: the orders, the peers it waited for, and the decisions.

use crate::api::Status;
use crate::api::words::short;
use crate::events::{Kind, told};
use crate::spans;
use murmurate_protocol::wire::{AgreedMessage, ExchangeMessage, Message};
use murmurate_protocol::{
    Done, Event, FetchId, FragmentId, Input, Order, OrderId, Output, PeerId, Round, SortedMap,
};
use std::time::{Duration, Instant};
use tracing::span::EnteredSpan;
use tracing::{Level, Span, debug, info, trace};

/// Orders whose answers the log waits for. Some orders are never answered, so the oldest are
/// dropped.
const ORDERS_MAX: usize = 1024;

/// An order without an answer yet.
struct Given {
    name: &'static str,
    fragment: Option<FragmentId>,
    at: Instant,
}

pub(super) struct Trace {
    /// The summary at level `info`.
    pub(super) story: Story,
    round: Round,
    span: Span,
    orders: SortedMap<OrderId, Given>,
}

impl Trace {
    pub(super) fn new(round: Round) -> Self {
        Self {
            story: Story::new(),
            round,
            span: spans::round(round),
            orders: SortedMap::new(),
        }
    }

    pub(super) fn enter(&mut self, round: Round) -> EnteredSpan {
        if round != self.round {
            self.round = round;
            self.span = spans::round(round);
        }
        self.span.clone().entered()
    }

    /// Logs an input before the peer handles it.
    pub(super) fn input(&mut self, input: &Input) {
        if !tracing::enabled!(Level::DEBUG) {
            return;
        }
        match input {
            Input::Received { from, message } => {
                let _in = spans::enter(fragment_of_message(message), Some(*from));
                debug!(
                    message = message.name(),
                    of_round = message.round().map(|r| r.0),
                    "received"
                );
                trace!(?message, "content");
            }
            Input::Malformed { from, error } => {
                let _in = spans::enter(None, Some(*from));
                debug!(%error, "bytes that are not a message");
            }
            Input::LinkUp(peer) => about(*peer, "link up"),
            Input::LinkDown(peer) => about(*peer, "link down"),
            Input::Observes(peer) => about(*peer, "only observes"),
            Input::Directives(all) => debug!(count = all.len(), "directives of the owner"),
            Input::Done { order, done } => self.done(*order, done),
            Input::Cut {
                order,
                fragment,
                samples,
            } => {
                let _in = spans::enter(Some(*fragment), None);
                debug!(order = %order, samples, "fragment ready in the backward pass");
            }
            Input::Arrived {
                from, slice, meta, ..
            } => {
                let _in = spans::enter(Some(slice.fragment), Some(*from));
                let (part, shard, bytes) = (slice.part, slice.shard, meta.bytes);
                debug!(of_round = %slice.round, ?part, shard, bytes, "slice arrived");
            }
            Input::Pushed { to, slice, outcome } => {
                let _in = spans::enter(Some(slice.fragment), Some(*to));
                let (part, shard) = (slice.part, slice.shard);
                debug!(of_round = %slice.round, ?part, shard, ?outcome, "push ended");
            }
            Input::Fetched { what, .. } => fetch(what, "fetched"),
            Input::FetchFailed { what } => fetch(what, "fetch failed"),
            Input::Start { snapshot, .. } => {
                debug!(from_checkpoint = snapshot.is_some(), "peer started");
            }
            Input::Leave => debug!("told to leave"),
            other => trace!(input = spans::variant(other), "input"),
        }
    }

    fn done(&mut self, order: OrderId, done: &Done) {
        let given = self.orders.remove(&order);
        let _in = spans::enter(given.as_ref().and_then(|given| given.fragment), None);
        let work = given.as_ref().map(|given| given.name);
        let took_ms = given.as_ref().map(|given| given.at.elapsed().as_millis());
        match done {
            Done::Failed(error) => debug!(%order, work, took_ms, %error, "order failed"),
            done => debug!(%order, work, took_ms, done = spans::variant(done), "order done"),
        }
    }

    pub(super) fn output(&mut self, output: &Output) {
        if let Output::Emit(event) = output {
            self.story.observe(event);
            return tell(event);
        }
        if !tracing::enabled!(Level::DEBUG) {
            return;
        }
        match output {
            Output::Send { to, message } => {
                let _in = spans::enter(fragment_of_message(message), Some(*to));
                debug!(
                    message = message.name(),
                    of_round = message.round().map(|r| r.0),
                    "send"
                );
                trace!(?message, "content");
            }
            Output::Push {
                to, slice, meta, ..
            } => {
                let _in = spans::enter(Some(slice.fragment), Some(*to));
                let (part, shard, bytes) = (slice.part, slice.shard, meta.bytes);
                debug!(of_round = %slice.round, ?part, shard, bytes, "push");
            }
            Output::Fetch { what, from, .. } => {
                for donor in from {
                    let _in = spans::enter(fragment_of_fetch(what), Some(*donor));
                    debug!("fetch from this peer");
                }
            }
            Output::Cancel { slice } => {
                let _in = spans::enter(Some(slice.fragment), None);
                debug!(of_round = %slice.round, part = ?slice.part, shard = slice.shard, "cancel");
            }
            Output::Order { id, order } => self.ordered(*id, order),
            Output::Disconnect { peer, reason } => {
                let _in = spans::enter(None, Some(*peer));
                debug!(%reason, "disconnect");
            }
            other => debug!(output = spans::variant(other), "output"),
        }
    }

    fn ordered(&mut self, id: OrderId, order: &Order) {
        let given = Given {
            name: order.name(),
            fragment: fragment_of(order),
            at: Instant::now(),
        };
        let _in = spans::enter(given.fragment, None);
        debug!(order = %id, work = given.name, "order");
        if self.orders.len() >= ORDERS_MAX {
            self.orders.pop_first();
        }
        self.orders.insert(id, given);
    }
}

fn about(peer: PeerId, what: &'static str) {
    let _in = spans::enter(None, Some(peer));
    debug!("{what}");
}

fn fetch(what: &FetchId, ended: &'static str) {
    let _in = spans::enter(fragment_of_fetch(what), None);
    match what {
        FetchId::Slice(slice) => {
            debug!(of_round = %slice.round, part = ?slice.part, shard = slice.shard, "{ended}");
        }
        FetchId::State(state) => debug!(of_round = %state.round, bytes = state.bytes, "{ended}"),
    }
}

fn fragment_of_fetch(what: &FetchId) -> Option<FragmentId> {
    match what {
        FetchId::Slice(slice) => Some(slice.fragment),
        FetchId::State(_) => None,
    }
}

fn fragment_of_message(message: &Message) -> Option<FragmentId> {
    match message {
        Message::Exchange(ExchangeMessage::Agreed(AgreedMessage::Fragment(scoped))) => {
            Some(scoped.fragment)
        }
        _ => None,
    }
}

fn fragment_of(order: &Order) -> Option<FragmentId> {
    match order {
        Order::Encode { slice, .. } | Order::Settle { slice, .. } | Order::Release { slice } => {
            Some(slice.fragment)
        }
        Order::Combine { piece, .. } => Some(piece.fragment),
        Order::Apply { fragment, .. } => Some(*fragment),
        _ => None,
    }
}

fn names(peers: impl IntoIterator<Item = PeerId>) -> String {
    let all: Vec<String> = peers.into_iter().map(|peer| peer.to_string()).collect();
    all.join(" ")
}

/// Logs an event in the words of the event log: rare ones at `info`, those of every round at `debug`.
fn tell(event: &Event) {
    if !tracing::enabled!(Level::INFO) {
        return;
    }
    match (event, told(event)) {
        (
            Event::Decided {
                fragment,
                ballot,
                contributors,
                ..
            },
            _,
        ) => {
            let _in = spans::enter(Some(*fragment), None);
            for (shard, of_shard) in contributors.iter().enumerate() {
                let from = names(of_shard.iter().map(|(peer, _)| *peer));
                debug!(shard, ballot, contributors = from, "shard decided");
            }
        }
        // Not in the event log, and rare.
        (Event::Rescheduled { .. } | Event::Unconfirmed { .. }, _) => info!(?event),
        (_, None) => debug!(?event),
        (_, Some((round, kind))) => {
            let of_round = round.map(|round| round.0);
            let frequent = kind.is_step()
                || matches!(
                    kind,
                    Kind::Suspected { .. }
                        | Kind::Misbehaved { .. }
                        | Kind::Voided { .. }
                        | Kind::Alone { .. }
                );
            if frequent {
                debug!(of_round, "{}", kind.words(&short));
            } else {
                info!(of_round, "{}", kind.words(&short));
            }
        }
    }
}

/// Time between two lines. Rounds may take milliseconds, so a line for each would hide everything
/// else.
const EVERY: Duration = Duration::from_secs(10);

/// The summary of a run in the log at level `info`: one line every ten seconds, however short rounds are. Here are
/// the counts since the last one.
#[derive(Debug)]
pub(super) struct Story {
    since: Instant,
    rounds: u64,
    voids: u64,
    alone: u64,
    expired_waits: u64,
    suspected: u64,
}

impl Story {
    pub(super) fn new() -> Self {
        Self {
            since: Instant::now(),
            rounds: 0,
            voids: 0,
            alone: 0,
            expired_waits: 0,
            suspected: 0,
        }
    }

    /// Counts an event.
    pub(super) fn observe(&mut self, event: &Event) {
        let count = match event {
            Event::RoundEnded { .. } => &mut self.rounds,
            Event::Voided { .. } => &mut self.voids,
            Event::Alone { .. } => &mut self.alone,
            Event::Waited { expired: true, .. } => &mut self.expired_waits,
            Event::Suspected { .. } => &mut self.suspected,
            _ => return,
        };
        *count += 1;
    }

    /// Logs one line if enough time has passed. Calls `status` only then.
    pub(super) fn tell(&mut self, status: impl FnOnce() -> Status) {
        if self.since.elapsed() < EVERY || !tracing::enabled!(tracing::Level::INFO) {
            return;
        }
        let status = status();
        let evaluation = status.evaluation.as_ref();
        tracing::info!(
            rounds_ended = self.rounds,
            inner_steps = status.inner_steps,
            loss = status.loss,
            accuracy = evaluation.and_then(|evaluation| evaluation.accuracy),
            peers = status.linked(),
            wire_bytes_sent = status.bytes_sent.wire,
            wire_bytes_received = status.bytes_received.wire,
            voids = self.voids,
            alone = self.alone,
            expired_waits = self.expired_waits,
            suspected = self.suspected,
            "training"
        );
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::{Part, PushOutcome, SliceId};
    use std::io::Write;
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::fmt::MakeWriter;

    /// The lines of a log, in memory.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Lines {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    /// The lines logged at `level` or above while `f` runs.
    fn logged(level: Level, f: impl FnOnce()) -> String {
        let lines = Lines::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_ansi(false)
            .with_writer(lines.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, f);
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    const PEER: PeerId = PeerId::from_bytes([0xab; 32]);

    /// Logs a push in round 7 as the driver does.
    fn push() {
        let _run = spans::run("mnist", PeerId::from_bytes([0xcd; 32])).entered();
        let mut trace = Trace::new(Round(0));
        let _round = trace.enter(Round(7));
        trace.input(&Input::Pushed {
            to: PEER,
            slice: SliceId {
                round: Round(7),
                fragment: FragmentId(3),
                shard: 1,
                part: Part::Contribution,
                origin: PEER,
                attempt: murmurate_protocol::Attempt(0),
            },
            outcome: PushOutcome::Delivered,
        });
        trace.output(&Output::Emit(Event::PeerUp(PEER)));
    }

    #[test]
    fn a_line_of_a_round_names_run_round_fragment_and_peer() {
        let text = logged(Level::DEBUG, push);
        let spans = r#"run{run="mnist" me=cdcdcdcd}:round{round=7}:fragment{fragment=3}:peer{peer=abababab}"#;
        let line = text
            .lines()
            .find(|line| line.contains("push ended"))
            .unwrap();
        assert!(line.contains(spans), "{line}");
    }

    #[test]
    fn info_is_spared_what_every_round_has() {
        let text = logged(Level::INFO, push);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("peer_up peer=abababab"), "{text}");
    }
}
