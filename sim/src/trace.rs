//! The trace: a running hash over everything that went into peers and came out of them, and, on
//! request, the same as JSON lines.
//!
//! Two runs with the same hash had the same inputs and outputs to the bit; without tensors, the same
//! messages and at the same times everything of the same name. Events that peers only
//! tell people about are left out: they never drive logic.

use crate::lines::Lines;
use crate::names;
use murmurate_protocol::{Digest, Input, Output, PeerId, Time, wire};
use std::collections::VecDeque;
use std::io::Write;

/// Bytes gathered before they are hashed: long runs of them hash several times faster.
const BATCH_BYTES: usize = 32 * 1024;

/// Lines kept for the report of a violation.
const LAST_LINES: usize = 40;

/// What went in or came out, without its content.
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
    /// Whether what goes in and comes out is hashed whole, or by its name, time and peers only.
    whole: bool,
    lines: Lines<'a>,
}

impl<'a> Trace<'a> {
    /// An empty trace; `json` takes a line for every input and output.
    pub(crate) fn new(json: Option<Box<dyn Write + 'a>>, whole: bool) -> Self {
        Self {
            whole,
            hasher: blake3::Hasher::new(),
            batch: Vec::with_capacity(2 * BATCH_BYTES),
            last: VecDeque::with_capacity(LAST_LINES),
            lines: Lines::new(json),
        }
    }

    /// Something goes into a peer. `frame` is the encoding of a received message.
    pub(crate) fn input(&mut self, at: Time, peer: usize, input: &Input, frame: Option<&[u8]>) {
        let (what, other) = names::of_input(input);
        self.line(b'<', at, peer, what, other);
        match frame {
            Some(frame) => self.batch.extend_from_slice(frame),
            None if self.whole => self.batch.extend_from_slice(&wire::encode_value(input)),
            None => {}
        }
        self.flush_full();
        self.lines.input(at, peer, input);
    }

    /// Something comes out of a peer. `frame` is the encoding of a message that it sends.
    pub(crate) fn output(&mut self, at: Time, peer: usize, output: &Output, frame: Option<&[u8]>) {
        self.lines.output(at, peer, output);
        if matches!(output, Output::Emit(_)) {
            return;
        }
        let (what, other) = names::of_output(output);
        self.line(b'>', at, peer, what, other);
        match frame {
            Some(frame) => self.batch.extend_from_slice(frame),
            None if self.whole => self.batch.extend_from_slice(&wire::encode_value(output)),
            None => {}
        }
        self.flush_full();
    }

    /// The hash over everything so far.
    pub(crate) fn digest(&mut self) -> Digest {
        self.hasher.update(&self.batch);
        self.batch.clear();
        Digest::from_bytes(*self.hasher.finalize().as_bytes())
    }

    /// The last lines, oldest first, for people.
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

    /// The first failure to write JSON lines, if there was one.
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
