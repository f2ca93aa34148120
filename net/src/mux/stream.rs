//! The two directions of one stream.

use crate::mux::{FRAME_BYTES_MAX, MuxError, QUEUE_BYTES_MAX, WINDOW_BYTES};
use bytes::Bytes;
use std::collections::VecDeque;
use std::task::Waker;

#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) out: Outgoing,
    pub(super) inc: Incoming,
}

impl Stream {
    /// Both ends have left it.
    pub(super) fn is_done(&self) -> bool {
        self.out.over && self.inc.over && self.inc.dropped
    }
}

/// The sending half of a stream.
#[derive(Debug)]
pub(super) struct Outgoing {
    queue: VecDeque<Bytes>,
    queued: usize,
    /// Higher goes first.
    pub(super) urgency: i32,
    /// Bytes that the remote still takes.
    credit: u64,
    /// Nothing more will be queued.
    pub(super) finished: bool,
    /// The end was sent, or the stream was given up.
    pub(super) over: bool,
    /// The remote wants no more.
    pub(super) stopped: bool,
    pub(super) waker: Option<Waker>,
}

impl Default for Outgoing {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            queued: 0,
            urgency: 0,
            credit: WINDOW_BYTES,
            finished: false,
            over: false,
            stopped: false,
            waker: None,
        }
    }
}

impl Outgoing {
    /// Queues bytes; false if the queue is full.
    pub(super) fn queue(&mut self, bytes: &Bytes) -> bool {
        if self.queued >= QUEUE_BYTES_MAX {
            return false;
        }
        if !bytes.is_empty() {
            self.queued += bytes.len();
            self.queue.push_back(bytes.clone());
        }
        true
    }

    /// Something waits to be sent.
    pub(super) fn is_ready(&self) -> bool {
        let data = self.queued > 0 && self.credit > 0;
        !self.over && (data || (self.finished && self.queued == 0))
    }

    /// Gives up the queued bytes. Returns whether the remote must be told.
    pub(super) fn reset(&mut self) -> bool {
        let tell = !self.over;
        (self.over, self.finished, self.queued) = (true, true, 0);
        self.queue.clear();
        tell
    }

    /// Takes the data of a frame, without copying it. Empty at the end of the stream.
    pub(super) fn take(&mut self) -> (Vec<Bytes>, usize) {
        let credit = usize::try_from(self.credit).unwrap_or(usize::MAX);
        let most = credit.min(FRAME_BYTES_MAX);
        let (mut data, mut bytes) = (Vec::new(), 0);
        while bytes < most
            && let Some(first) = self.queue.front_mut()
        {
            let part = first.split_to(first.len().min(most - bytes));
            if first.is_empty() {
                self.queue.pop_front();
            }
            bytes += part.len();
            data.push(part);
        }
        self.queued -= bytes;
        self.credit -= bytes as u64;
        if self.queued < QUEUE_BYTES_MAX {
            wake(&mut self.waker);
        }
        (data, bytes)
    }

    /// The remote takes more.
    pub(super) fn allow(&mut self, bytes: u32) -> Result<(), MuxError> {
        let credit = self.credit.saturating_add(bytes.into());
        if credit > WINDOW_BYTES {
            return Err(MuxError::Violation("more credit than a window"));
        }
        self.credit = credit;
        Ok(())
    }
}

/// The receiving half of a stream.
#[derive(Debug)]
pub(super) struct Incoming {
    chunks: VecDeque<Bytes>,
    /// Bytes in the chunks.
    pub(super) unread: u64,
    /// Bytes that the remote may still send.
    allowed: u64,
    /// Bytes that were read and not yet allowed again.
    read: u64,
    /// The remote sent everything or gave up.
    pub(super) over: bool,
    pub(super) given_up: bool,
    /// Nothing is read any more.
    pub(super) dropped: bool,
    pub(super) waker: Option<Waker>,
}

impl Default for Incoming {
    fn default() -> Self {
        Self {
            chunks: VecDeque::new(),
            unread: 0,
            allowed: WINDOW_BYTES,
            read: 0,
            over: false,
            given_up: false,
            dropped: false,
            waker: None,
        }
    }
}

impl Incoming {
    pub(super) fn announced(&mut self, bytes: u32) -> Result<(), MuxError> {
        let left = self.allowed.checked_sub(bytes.into());
        match left.filter(|_| !self.over) {
            Some(left) => self.allowed = left,
            None => return Err(MuxError::Violation("more bytes than it may")),
        }
        Ok(())
    }

    pub(super) fn store(&mut self, bytes: Bytes) {
        self.unread += bytes.len() as u64;
        self.chunks.push_back(bytes);
        wake(&mut self.waker);
    }

    /// Takes unread bytes, at most `max`; `None` if there are none.
    pub(super) fn take(&mut self, max: usize) -> Option<Bytes> {
        let first = self.chunks.front_mut()?;
        let bytes = first.split_to(max.min(first.len()));
        if first.is_empty() {
            self.chunks.pop_front();
        }
        let count = bytes.len() as u64;
        self.unread -= count;
        self.read += count;
        Some(bytes)
    }

    /// Bytes to allow again, if they are worth a frame.
    pub(super) fn grant(&mut self) -> Option<u32> {
        if self.over || self.read < WINDOW_BYTES / 4 {
            return None;
        }
        let more = u32::try_from(self.read).ok()?;
        self.allowed += self.read;
        self.read = 0;
        Some(more)
    }

    /// Drops the unread bytes and returns their number.
    pub(super) fn discard(&mut self) -> u64 {
        self.dropped = true;
        self.chunks.clear();
        std::mem::take(&mut self.unread)
    }
}

pub(super) fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}
