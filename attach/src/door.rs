//! The socket that trainers connect to, and the thread that watches it. One trainer is let in at a
//! time; others are told so at once, even while the daemon is busy.

use crate::error::AttachError;
use crate::frame::encode;
use crate::limits::{HELLO_BYTES_MAX, HELLO_WAIT, TICK};
use crate::link::{Link, Lost};
use crate::message::{FromTrainer, Hello, ToTrainer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest path that fits a socket's address everywhere.
const SOCKET_PATH_MAX: usize = 100;

/// Name of the socket in its directory.
const SOCKET: &str = "socket";

/// A trainer that has described itself.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) link: Link,
    pub(crate) hello: Hello,
}

/// The socket. Dropped, it is removed.
#[derive(Debug)]
pub(crate) struct Door {
    path: PathBuf,
    arrivals: Receiver<Arrival>,
    closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Door {
    /// Opens a socket below `dir`. A socket that a daemon left behind is replaced: the caller holds the
    /// lock of the daemon's directory.
    pub(crate) fn open(dir: &Path) -> Result<Self, AttachError> {
        let path = dir.join(SOCKET);
        let failed = |e: io::Error| AttachError::Socket {
            path: path.clone(),
            reason: e.to_string(),
        };
        let listener = listen(dir, &path).map_err(failed)?;
        let closed = Arc::new(AtomicBool::new(false));
        let (sender, arrivals) = sync_channel(1);
        let watcher = Watcher {
            listener,
            closed: Arc::clone(&closed),
            arrivals: sender,
            inside: Mutex::new(None),
        };
        let thread = std::thread::Builder::new()
            .name("attach".to_owned())
            .spawn(move || watcher.run())
            .map_err(AttachError::Thread)?;
        Ok(Self {
            path,
            arrivals,
            closed,
            thread: Some(thread),
        })
    }

    /// The socket's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits a moment for a trainer.
    pub(crate) fn next(&self) -> Option<Arrival> {
        match self.arrivals.recv_timeout(TICK) {
            Ok(arrival) => Some(arrival),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                // The thread is gone, which only a bug can cause. The caller asks again and again.
                std::thread::sleep(TICK);
                None
            }
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing to say.
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Makes the directory and the socket. The directory keeps others out before the socket's own
/// permissions are set.
fn listen(dir: &Path, path: &Path) -> io::Result<UnixListener> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let about = std::fs::metadata(dir)?;
    if about.uid() != rustix::process::getuid().as_raw() {
        let text = "its directory belongs to another user";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    std::fs::set_permissions(dir, Permissions::from_mode(0o700))?;
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let listener = match path.as_os_str().len() > SOCKET_PATH_MAX {
        false => UnixListener::bind(path)?,
        true if cfg!(target_os = "linux") => {
            // The address of a socket has room for about 100 bytes; the descriptor's path is short.
            let dir = File::open(dir)?;
            UnixListener::bind(format!("/proc/self/fd/{}/{SOCKET}", dir.as_raw_fd()))?
        }
        true => {
            let text =
                format!("the path is longer than {SOCKET_PATH_MAX} bytes; give a shorter --dir");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
    };
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

struct Watcher {
    listener: UnixListener,
    closed: Arc<AtomicBool>,
    arrivals: SyncSender<Arrival>,
    /// The connection that was let in last, to see whether it still exists.
    inside: Mutex<Option<UnixStream>>,
}

impl Watcher {
    fn run(&self) {
        while !self.closed.load(Ordering::Relaxed) {
            let mut fds = [PollFd::new(&self.listener, PollFlags::IN)];
            let tick = Timespec {
                tv_sec: 0,
                tv_nsec: i64::from(TICK.subsec_nanos()),
            };
            // Whatever ends the wait, the listener is asked.
            let _ = poll(&mut fds, Some(&tick));
            match self.listener.accept() {
                Ok((stream, _)) => self.let_in(stream),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    tracing::warn!(%error, "a trainer could not connect");
                    std::thread::sleep(TICK);
                }
            }
        }
    }

    fn let_in(&self, stream: UnixStream) {
        let Some(process) = same_user(&stream) else {
            tracing::warn!("a process of another user tried to attach a trainer");
            return;
        };
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        if inside.as_ref().is_some_and(is_open) {
            let reason = "another trainer is attached to this daemon already; end it first, or give \
                          this one a daemon of its own";
            refuse(stream, reason);
            return;
        }
        match hello(stream, process) {
            Ok((arrival, kept)) => {
                // A trainer that came and went unseen makes room for this one when it is taken.
                if self.arrivals.try_send(arrival).is_ok() {
                    *inside = Some(kept);
                }
            }
            Err(reason) => tracing::warn!(reason, "a trainer was refused"),
        }
    }
}

/// The number of a process of this user; `None` for others.
#[cfg(target_os = "linux")]
fn same_user(stream: &UnixStream) -> Option<Option<rustix::process::Pid>> {
    let peer = rustix::net::sockopt::socket_peercred(stream).ok()?;
    (peer.uid == rustix::process::getuid()).then_some(Some(peer.pid))
}

/// Here the socket's directory alone keeps others out.
#[cfg(not(target_os = "linux"))]
fn same_user(_: &UnixStream) -> Option<Option<rustix::process::Pid>> {
    Some(None)
}

/// The other end still exists, even if there is more to read.
fn is_open(stream: &UnixStream) -> bool {
    let mut fds = [PollFd::new(stream, PollFlags::empty())];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let polled = poll(&mut fds, Some(&now));
    polled.is_ok() && !fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

/// Reads the first message.
fn hello(
    stream: UnixStream,
    process: Option<rustix::process::Pid>,
) -> Result<(Arrival, UnixStream), String> {
    let kept = stream.try_clone().map_err(|e| e.to_string())?;
    let mut link = Link::new(stream, process).map_err(|e| e.to_string())?;
    let until = Instant::now() + HELLO_WAIT;
    let mut late = || Instant::now() >= until;
    match link.receive(HELLO_BYTES_MAX, &mut late) {
        Ok(Some(FromTrainer::Hello(hello))) => Ok((Arrival { link, hello }, kept)),
        Ok(Some(other)) => {
            let reason = format!("the first message must be `hello`, not `{}`", other.name());
            link.refuse(&reason);
            Err(reason)
        }
        Ok(None) => Err("a process connected and said nothing".to_owned()),
        Err(Lost::Gone) => Err("a process connected and went".to_owned()),
        Err(Lost::Broken(reason)) => {
            link.refuse(&reason);
            Err(reason)
        }
    }
}

/// Says why and closes.
fn refuse(mut stream: UnixStream, reason: &str) {
    let reason = reason.to_owned();
    if let Ok(bytes) = encode(&ToTrainer::Refuse { reason }) {
        // A small message fits the socket's buffer; one that does not read it is not waited for.
        let _ = stream.set_write_timeout(Some(Duration::from_secs(1)));
        let _ = stream.write_all(&bytes);
    }
}
