//! The processes of one training loop.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::io;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The process group of the training loop: it and its workers.
#[derive(Debug, Default)]
pub struct Group {
    /// Held while it is signalled and while it is reaped, so that a number that was given to another
    /// process is never hit.
    leader: Mutex<Option<Pid>>,
    /// Whether training is over, so that nothing is started again.
    over: AtomicBool,
    /// Whether the island goes on without this rank when it ends.
    left_out: AtomicBool,
}

impl Group {
    /// Training is over: a training loop that ends is not started again.
    pub(crate) fn training_is_over(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// The daemon has refused this rank: its end is no reason to start the others again.
    pub(crate) fn leave_out(&self) {
        self.left_out.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_left_out(&self) -> bool {
        self.left_out.load(Ordering::Relaxed)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Sends all its processes a signal; nothing happens when there are none.
    pub fn signal(&self, signal: Signal) {
        let leader = self.leader.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pid) = *leader
            && let Err(error) = kill_process_group(pid, signal)
        {
            tracing::debug!(%error, "the trainer's group could not be signalled");
        }
    }

    /// A life begins, or has ended.
    pub(crate) fn set(&self, leader: Option<Pid>) {
        self.left_out.store(false, Ordering::Relaxed);
        *self.leader.lock().unwrap_or_else(PoisonError::into_inner) = leader;
    }

    /// The leader's exit status once it has ended. Its workers are ended with it.
    pub(crate) fn reap(&self, child: &mut Child) -> io::Result<Option<ExitStatus>> {
        let mut leader = self.leader.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pid) = *leader {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            if waitid(WaitId::Pid(pid), options)?.is_none() {
                return Ok(None);
            }
            // The leader is not reaped yet, so its number is still the group's.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let status = child.try_wait()?;
        if status.is_some() {
            *leader = None;
        }
        Ok(status)
    }
}
