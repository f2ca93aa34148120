//! The streams of a session, as a value: what waits to be sent and to be read.

use crate::mux::frame::{Header, Kind};
use crate::mux::stream::{Stream, wake};
use crate::mux::{MuxError, STREAMS_MAX, UNREAD_BYTES_MAX};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

/// All streams of a session.
#[derive(Debug)]
pub(super) struct State {
    streams: BTreeMap<u32, Stream>,
    /// The next stream of this end.
    next: u32,
    /// The next stream that the remote may open.
    expected: u32,
    /// Streams that the remote opened and this end has not accepted.
    arrived: VecDeque<u32>,
    /// Headers without data, which go first.
    headers: VecDeque<Header>,
    unread: u64,
    ended: Option<MuxError>,
    accept_wakers: Vec<Waker>,
}

/// The next thing to send.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) header: Header,
    pub(super) data: Vec<Bytes>,
}

impl From<Header> for Frame {
    fn from(header: Header) -> Self {
        let data = Vec::new();
        Self { header, data }
    }
}

impl State {
    /// `first` is 0 for the end that dialled, otherwise 1.
    pub(super) fn new(first: u32) -> Self {
        Self {
            streams: BTreeMap::new(),
            next: first,
            expected: 1 - first,
            arrived: VecDeque::new(),
            headers: VecDeque::new(),
            unread: 0,
            ended: None,
            accept_wakers: Vec::new(),
        }
    }

    pub(super) fn ended(&self) -> Option<&MuxError> {
        self.ended.as_ref()
    }

    /// Ends the session for the first reason given, and wakes all that wait.
    pub(super) fn end(&mut self, why: MuxError) {
        self.ended.get_or_insert(why);
        for stream in self.streams.values_mut() {
            wake(&mut stream.out.waker);
            wake(&mut stream.inc.waker);
        }
        self.accept_wakers.drain(..).for_each(Waker::wake);
    }

    fn open_check(&self) -> Result<(), MuxError> {
        self.ended.clone().map_or(Ok(()), Err)
    }

    /// How many streams the end that opened `like` has open.
    fn open_like(&self, like: u32) -> usize {
        let same = |id: &&u32| **id % 2 == like % 2;
        self.streams.keys().filter(same).count()
    }

    pub(super) fn open(&mut self) -> Result<u32, MuxError> {
        self.open_check()?;
        let id = self.next;
        if self.open_like(id) >= STREAMS_MAX {
            return Err(MuxError::TooMany);
        }
        self.next = id.checked_add(2).ok_or(MuxError::TooMany)?;
        self.streams.insert(id, Stream::default());
        Ok(id)
    }

    /// The next stream that the remote opened; `None` if there is none yet.
    pub(super) fn accept(&mut self, waker: &Waker) -> Result<Option<u32>, MuxError> {
        if let Some(id) = self.arrived.pop_front() {
            return Ok(Some(id));
        }
        self.open_check()?;
        if !self.accept_wakers.iter().any(|w| w.will_wake(waker)) {
            self.accept_wakers.push(waker.clone());
        }
        Ok(None)
    }

    /// Queues bytes. Returns false if the queue is full, and `waker` is woken when it is not.
    pub(super) fn queue(
        &mut self,
        id: u32,
        bytes: &Bytes,
        waker: &Waker,
    ) -> Result<bool, MuxError> {
        self.open_check()?;
        let out = &mut self.streams.get_mut(&id).ok_or(MuxError::GivenUp)?.out;
        if out.stopped || out.finished {
            return Err(MuxError::GivenUp);
        }
        let queued = out.queue(bytes);
        if !queued {
            out.waker = Some(waker.clone());
        }
        Ok(queued)
    }

    /// Ends a stream after its queued bytes.
    pub(super) fn finish(&mut self, id: u32) -> Result<(), MuxError> {
        self.open_check()?;
        let out = &mut self.streams.get_mut(&id).ok_or(MuxError::GivenUp)?.out;
        if out.stopped {
            return Err(MuxError::GivenUp);
        }
        out.finished = true;
        Ok(())
    }

    /// Gives a stream up: its queued bytes are not sent.
    pub(super) fn reset(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(&id)
            && stream.out.reset()
        {
            self.headers.push_back(Header::new(Kind::Reset, id, 0));
        }
        self.forget(id);
    }

    pub(super) fn set_urgency(&mut self, id: u32, urgency: i32) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.out.urgency = urgency;
        }
    }

    /// Takes unread bytes, at most `max`. `None` if there are none yet, empty at the end.
    pub(super) fn read(
        &mut self,
        id: u32,
        max: usize,
        waker: &Waker,
    ) -> Result<Option<Bytes>, MuxError> {
        let ended = self.ended.clone();
        let Some(inc) = self.streams.get_mut(&id).map(|stream| &mut stream.inc) else {
            return Ok(Some(Bytes::new()));
        };
        let Some(bytes) = inc.take(max) else {
            return match (inc.given_up, inc.over, ended) {
                (true, ..) => Err(MuxError::GivenUp),
                (false, true, _) => Ok(Some(Bytes::new())),
                (false, false, Some(why)) => Err(why),
                (false, false, None) => {
                    inc.waker = Some(waker.clone());
                    Ok(None)
                }
            };
        };
        self.unread -= bytes.len() as u64;
        if let Some(more) = inc.grant() {
            self.headers.push_back(Header::new(Kind::Credit, id, more));
        }
        Ok(Some(bytes))
    }

    /// Stops reading a stream: its unread bytes are dropped, and the remote is told.
    pub(super) fn stop(&mut self, id: u32) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        self.unread -= stream.inc.discard();
        if !stream.inc.over {
            self.headers.push_back(Header::new(Kind::Stop, id, 0));
        }
        self.forget(id);
    }

    fn forget(&mut self, id: u32) {
        if self.streams.get(&id).is_some_and(Stream::is_done) {
            self.streams.remove(&id);
        }
    }

    /// The next frame to send: a header alone, or data of the most urgent stream that may send. Of
    /// equal ones the oldest goes first.
    pub(super) fn next_frame(&mut self) -> Option<Frame> {
        if let Some(header) = self.headers.pop_front() {
            return Some(header.into());
        }
        let ready = self.streams.iter().filter(|(_, s)| s.out.is_ready());
        let first = ready.max_by_key(|(id, s)| (s.out.urgency, std::cmp::Reverse(**id)));
        let id = *first?.0;
        let out = &mut self.streams.get_mut(&id)?.out;
        let (data, bytes) = out.take();
        if bytes == 0 {
            out.over = true;
            self.forget(id);
            return Some(Header::new(Kind::End, id, 0).into());
        }
        let header = Header::new(Kind::Data, id, bytes as u32);
        Some(Frame { header, data })
    }

    /// Handles a header of the remote. Opens the stream if it is a new one.
    pub(super) fn on_header(&mut self, header: Header) -> Result<(), MuxError> {
        let Header {
            kind,
            stream,
            number,
        } = header;
        let theirs = stream % 2 == self.expected % 2;
        if theirs && stream >= self.expected {
            self.opened(stream)?;
        } else if !theirs && stream >= self.next {
            return Err(MuxError::Violation("a frame of a stream that is not open"));
        }
        // Both ends have left a stream that is forgotten. What crossed on the way may still come.
        let Some(found) = self.streams.get_mut(&stream) else {
            return match kind {
                Kind::Stop | Kind::Credit => Ok(()),
                _ => Err(MuxError::Violation("a frame of a stream after its end")),
            };
        };
        match kind {
            Kind::Data => found.inc.announced(number)?,
            Kind::Credit => found.out.allow(number)?,
            Kind::End | Kind::Reset => {
                let inc = &mut found.inc;
                if inc.over {
                    return Err(MuxError::Violation("a second end of a stream"));
                }
                (inc.over, inc.given_up) = (true, kind == Kind::Reset);
                wake(&mut inc.waker);
                self.forget(stream);
            }
            Kind::Stop => {
                found.out.stopped = true;
                wake(&mut found.out.waker);
                self.reset(stream);
            }
        }
        Ok(())
    }

    /// Opens the remote's streams up to this one: urgent data of a later stream may come first.
    fn opened(&mut self, stream: u32) -> Result<(), MuxError> {
        let fresh = (stream - self.expected) as usize / 2 + 1;
        if self.open_like(stream) + fresh > STREAMS_MAX {
            return Err(MuxError::Violation("more streams than it may open"));
        }
        let after = stream.checked_add(2);
        let after = after.ok_or(MuxError::Violation("more streams than there are numbers"))?;
        for id in (self.expected..after).step_by(2) {
            self.streams.insert(id, Stream::default());
            self.arrived.push_back(id);
        }
        self.expected = after;
        self.accept_wakers.drain(..).for_each(Waker::wake);
        Ok(())
    }

    /// Stores bytes of a frame of data that [`State::on_header`] allowed.
    pub(super) fn on_data(&mut self, id: u32, bytes: Bytes) {
        let inc = self.streams.get_mut(&id).map(|stream| &mut stream.inc);
        if let Some(inc) = inc.filter(|inc| !inc.dropped) {
            self.unread += bytes.len() as u64;
            inc.store(bytes);
        }
    }

    pub(super) fn has_headers(&self) -> bool {
        !self.headers.is_empty()
    }

    /// The bytes that wait to be read are at their bound, so no more should come.
    pub(super) fn is_full(&self) -> bool {
        self.unread >= UNREAD_BYTES_MAX
    }
}
