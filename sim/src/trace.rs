//! The trace: a running hash over all inputs and outputs of peers, and the same as JSON lines on
//! request.
//!
//! Two runs with the same hash had bit-identical inputs and outputs. Without tensors they had
//! messages of the same lengths, and inputs and outputs with the same names at the same times. Events for people
//! are not part of the trace, because they never affect a decision.

use crate::due::Letter;
use murmurate_protocol::wire::Message;
use murmurate_protocol::{Digest, Input, Output, PeerId, Time, wire};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::io::{Error, Write};
use std::rc::Rc;

/// Bytes to collect before hashing. Long inputs hash several times faster.
const BATCH_BYTES: usize = 32 * 1024;

/// Lines to keep for the report of a broken invariant.
const LAST_LINES: usize = 40;

/// An input or output without its content.
#[derive(Clone, Copy, Debug)]
struct Line {
    mark: u8,
    at: Time,
    peer: u32,
    what: &'static str,
    other: Option<PeerId>,
}

/// The running hash and the last lines.
pub(crate) struct Trace<'a> {
    hasher: blake3::Hasher,
    batch: Vec<u8>,
    last: VecDeque<Line>,
    /// Set to hash inputs and outputs completely, and not only their names, times and peers.
    whole: bool,
    lines: Lines<'a>,
    /// What a machine said last, with the length of its frame: it says most things to many.
    said: Option<(Rc<Message>, u32)>,
}

impl<'a> Trace<'a> {
    /// An empty trace. `json` receives a line for every input and output.
    pub(crate) fn new(json: Option<Box<dyn Write + 'a>>, whole: bool) -> Self {
        Self {
            whole,
            hasher: blake3::Hasher::new(),
            batch: Vec::with_capacity(2 * BATCH_BYTES),
            last: VecDeque::with_capacity(LAST_LINES),
            lines: Lines::new(json),
            said: None,
        }
    }

    /// Notes an input of a peer. `frame` is the encoding of a received message.
    pub(crate) fn input(&mut self, at: Time, peer: usize, input: &Input, frame: Option<&[u8]>) {
        let (what, other) = of_input(input);
        self.line(b'<', at, peer, what, other);
        match frame {
            Some(frame) => self.batch.extend_from_slice(frame),
            None if self.whole => self.batch.extend_from_slice(&wire::encode_value(input)),
            None => {}
        }
        self.flush_full();
        self.lines.input(at, peer, input);
    }

    /// Notes an output of a peer other than a message.
    pub(crate) fn output(&mut self, at: Time, peer: usize, output: &Output) {
        self.lines.output(at, peer, output);
        if matches!(output, Output::Emit(_)) {
            return;
        }
        let (what, other) = of_output(output);
        self.line(b'>', at, peer, what, other);
        if self.whole {
            self.batch.extend_from_slice(&wire::encode_value(output));
        }
        self.flush_full();
    }

    /// Notes a message that a peer sends. Returns it as it travels, with the length of its frame. Without tensors the
    /// trace holds the lengths of messages: a large swarm would spend most of its time on bytes that are read by none.
    pub(crate) fn sent(
        &mut self,
        at: Time,
        peer: usize,
        to: PeerId,
        message: Message,
    ) -> (Letter, usize) {
        let sent = format_args!("Send {{ to: {to:?}, message: {message:?} }}");
        self.lines.line(at, peer, "out", &sent);
        self.line(b'>', at, peer, message.name(), Some(to));
        let (letter, bytes) = if self.whole {
            let frame = wire::encode(&message);
            self.batch.extend_from_slice(&frame);
            let bytes = frame.len();
            (Letter::Frame(frame.into_boxed_slice()), bytes)
        } else {
            let (message, bytes) = self.shared(message);
            self.batch
                .extend_from_slice(&u64::from(bytes).to_le_bytes());
            (Letter::Message(message, bytes), bytes as usize)
        };
        self.flush_full();
        (letter, bytes)
    }

    /// A message with the length of its frame. One that equals the last one is the same.
    fn shared(&mut self, message: Message) -> (Rc<Message>, u32) {
        // Lists of records are long, and each receiver would copy them.
        let short = !matches!(message, Message::Founding(_));
        if let Some((said, bytes)) = self.said.as_ref().filter(|(m, _)| short && **m == message) {
            return (said.clone(), *bytes);
        }
        let bytes = wire::frame_bytes(&message) as u32;
        let message = Rc::new(message);
        self.said = short.then(|| (message.clone(), bytes));
        (message, bytes)
    }

    /// The current hash.
    pub(crate) fn digest(&mut self) -> Digest {
        self.hasher.update(&self.batch);
        self.batch.clear();
        Digest::from_bytes(*self.hasher.finalize().as_bytes())
    }

    pub(crate) fn last_lines(&self) -> Vec<String> {
        let line = |line: &Line| {
            let other = line
                .other
                .map_or_else(String::new, |other| format!(" {other}"));
            let Line { at, peer, what, .. } = line;
            format!("{at} peer {peer} {} {what}{other}", char::from(line.mark))
        };
        self.last.iter().map(line).collect()
    }

    /// The first error of writing JSON lines, if there was one.
    pub(crate) fn failure(&mut self) -> Option<std::io::Error> {
        self.lines.end()
    }

    fn line(&mut self, mark: u8, at: Time, peer: usize, what: &'static str, other: Option<PeerId>) {
        let peer = peer as u32;
        self.batch.push(mark);
        self.batch.extend_from_slice(&at.as_nanos().to_le_bytes());
        self.batch.extend_from_slice(&peer.to_le_bytes());
        if let Some(other) = other {
            self.batch.extend_from_slice(other.as_bytes());
        }
        if self.last.len() == LAST_LINES {
            self.last.pop_front();
        }
        self.last.push_back(Line {
            mark,
            at,
            peer,
            what,
            other,
        });
    }

    fn flush_full(&mut self) {
        if self.batch.len() >= BATCH_BYTES {
            self.hasher.update(&self.batch);
            self.batch.clear();
        }
    }
}

/// A line for every input and output.
pub(crate) struct Lines<'a> {
    to: Option<Box<dyn Write + 'a>>,
    failed: Option<Error>,
}

impl<'a> Lines<'a> {
    /// Writes lines to `out`; writes nothing without it.
    pub(crate) fn new(to: Option<Box<dyn Write + 'a>>) -> Self {
        Self { to, failed: None }
    }

    pub(crate) fn input(&mut self, at: Time, peer: usize, input: &Input) {
        self.line(at, peer, "in", input);
    }

    pub(crate) fn output(&mut self, at: Time, peer: usize, output: &Output) {
        self.line(at, peer, "out", output);
    }

    fn line(&mut self, at: Time, peer: usize, way: &str, what: &dyn Debug) {
        let Some(to) = self.to.as_mut() else {
            return;
        };
        let at = at.as_nanos();
        let what = serde_json::Value::from(format!("{what:?}"));
        let written = writeln!(to, "{{\"at_ns\":{at},\"peer\":{peer},\"{way}\":{what}}}");
        self.failed = self.failed.take().or(written.err());
    }

    /// Flushes the output and returns the first error of writing.
    pub(crate) fn end(&mut self) -> Option<Error> {
        let flushed = self.to.as_mut().map(|to| to.flush());
        let failed = self.failed.take();
        failed.or(flushed.and_then(Result::err))
    }
}

/// The name of an input and the other peer in it.
pub(crate) fn of_input(input: &Input) -> (&'static str, Option<PeerId>) {
    match input {
        Input::Start { .. } => ("start", None),
        Input::Received { from, message } => (message.name(), Some(*from)),
        Input::Malformed { from, .. } => ("malformed", Some(*from)),
        Input::Record(_) => ("record", None),
        Input::LinkUp(peer) => ("link up", Some(*peer)),
        Input::LinkDown(peer) => ("link down", Some(*peer)),
        Input::Observes(peer) => ("observes", Some(*peer)),
        Input::Directives(_) => ("directives", None),
        Input::Measured { peer, .. } => ("measured", Some(*peer)),
        Input::Done { .. } => ("done", None),
        Input::Arrived { from, .. } => ("arrived", Some(*from)),
        Input::Pushed { to, .. } => ("pushed", Some(*to)),
        Input::Fetched { .. } => ("fetched", None),
        Input::FetchFailed { .. } => ("fetch failed", None),
        Input::Timeout => ("timeout", None),
        Input::Leave => ("leave", None),
        Input::Cut { .. } => ("cut", None),
    }
}

/// The name of an output and the other peer in it.
pub(crate) fn of_output(output: &Output) -> (&'static str, Option<PeerId>) {
    match output {
        Output::Send { to, message } => (message.name(), Some(*to)),
        Output::Push { to, .. } => ("push", Some(*to)),
        Output::Fetch { .. } => ("fetch", None),
        Output::Cancel { .. } => ("cancel", None),
        Output::Order { order, .. } => (order.name(), None),
        Output::Interrupt => ("interrupt", None),
        Output::Dial(record) => ("dial", Some(record.peer)),
        Output::Disconnect { peer, .. } => ("disconnect", Some(*peer)),
        Output::Emit(_) => ("event", None),
        Output::Left => ("left", None),
        Output::Opened(_) => ("opened", None),
        Output::Prove(proof) => ("prove", Some(proof.by())),
    }
}
