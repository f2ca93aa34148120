//! One connection to a trainer.

use crate::frame::{Inbox, encode};
use crate::limits::TICK;
use crate::message::{FromTrainer, ToTrainer};
use rustix::cmsg_space;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long a trainer may leave its socket unread while the daemon writes. Messages are small: this
/// passes only where the trainer has stopped.
const WRITE_WAIT: Duration = Duration::from_secs(60);

/// Bytes that are read at a time; most messages have fewer than 100.
const READ_BYTES: usize = 8 << 10;

/// Why a connection is of no use any more.
#[derive(Debug)]
pub(crate) enum Lost {
    /// The trainer is gone.
    Gone,
    /// It broke a rule; one line.
    Broken(String),
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Link {
    stream: UnixStream,
    inbox: Inbox,
    /// The trainer's process, where the system tells.
    process: Option<Pid>,
}

impl Drop for Link {
    fn drop(&mut self) {
        // The thread at the door holds the same socket, so closing this end alone would not be seen.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Link {
    /// Of a stream that was accepted.
    pub(crate) fn new(stream: UnixStream, process: Option<Pid>) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(TICK))?;
        stream.set_write_timeout(Some(WRITE_WAIT))?;
        Ok(Self {
            stream,
            inbox: Inbox::default(),
            process,
        })
    }

    /// The trainer's process, for people.
    pub(crate) fn process(&self) -> String {
        match self.process {
            Some(pid) => format!("process {}", pid.as_raw_nonzero()),
            None => "its process".to_owned(),
        }
    }

    /// Sends the trainer's process a signal, where it is known.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(pid) = self.process
            && let Err(error) = kill_process(pid, signal)
        {
            tracing::debug!(%error, "the trainer could not be signalled");
        }
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, message: &ToTrainer) -> Result<(), Lost> {
        let bytes = encode(message).map_err(|e| Lost::Broken(e.to_string()))?;
        self.stream.write_all(&bytes).map_err(|_| Lost::Gone)
    }

    /// Sends a message with file descriptors, which arrive with its first byte.
    pub(crate) fn send_with(
        &mut self,
        message: &ToTrainer,
        fds: &[BorrowedFd<'_>; 3],
    ) -> Result<(), Lost> {
        let bytes = encode(message).map_err(|e| Lost::Broken(e.to_string()))?;
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(Lost::Broken("no room for three descriptors".to_owned()));
        }
        let slices = [IoSlice::new(&bytes)];
        let sent = sendmsg(&self.stream, &slices, &mut control, SendFlags::empty());
        let sent = sent.map_err(|_| Lost::Gone)?;
        self.stream
            .write_all(&bytes[sent..])
            .map_err(|_| Lost::Gone)
    }

    /// Says why the trainer is refused; the connection is closed with the link.
    pub(crate) fn refuse(&mut self, reason: &str) {
        let reason = reason.to_owned();
        // One that is gone does not hear it.
        let _ = self.send(&ToTrainer::Refuse { reason });
    }

    /// Waits for a message of at most `max` bytes. `ended` is asked several times a second; `None` where
    /// it says so.
    pub(crate) fn receive(
        &mut self,
        max: usize,
        ended: &mut dyn FnMut() -> bool,
    ) -> Result<Option<FromTrainer>, Lost> {
        loop {
            match self.inbox.next(max) {
                Ok(Some(message)) => return Ok(Some(message)),
                Ok(None) => {}
                Err(error) => return Err(Lost::Broken(format!("it sent {error}"))),
            }
            let mut piece = [0; READ_BYTES];
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(Lost::Gone),
                Ok(n) => self.inbox.push(&piece[..n]),
                Err(e) if is_no_news(&e) => {
                    if ended() {
                        return Ok(None);
                    }
                }
                Err(_) => return Err(Lost::Gone),
            }
        }
    }
}

fn is_no_news(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}
