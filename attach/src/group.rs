//! The processes of one training loop.

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, waitid, waitpgid,
};
use std::io;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// How often killed workers are looked at, and how many times.
const REAP_EVERY: Duration = Duration::from_millis(5);
const REAPS_MAX: u32 = 20;

/// The process group of the training loop: it and its workers.
#[derive(Debug, Default)]
pub struct Group {
    /// Held while it is signalled and while it is reaped, so that a number that was given to another
    /// process is never hit.
    leader: Mutex<Option<Pid>>,
    /// Training is over: nothing is started again.
    over: AtomicBool,
    /// The island goes on without this rank when it ends.
    left_out: AtomicBool,
    /// Its trainer has attached in this life.
    attached: AtomicBool,
    /// Inner steps of this life since its last round.
    steps: AtomicU64,
    /// It has trained a round in this life.
    trained: AtomicBool,
    /// Why the training loop is not started again.
    given_up: OnceLock<String>,
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

    /// Its trainer has attached.
    pub(crate) fn attach(&self) {
        self.attached.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_attached(&self) -> bool {
        self.attached.load(Ordering::Relaxed)
    }

    /// Its trainer has taken an inner step.
    pub(crate) fn stepped(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// The daemon has what its trainer made of a round.
    pub(crate) fn trained(&self) {
        self.steps.store(0, Ordering::Relaxed);
        self.trained.store(true, Ordering::Relaxed);
    }

    /// Inner steps of the life that has ended since its last round, and whether it has trained one.
    pub(crate) fn take_work(&self) -> (u64, bool) {
        let steps = self.steps.swap(0, Ordering::Relaxed);
        (steps, self.trained.swap(false, Ordering::Relaxed))
    }

    /// The training loop is not started again, for this reason.
    pub(crate) fn give_up(&self, reason: String) {
        // The first reason is the one.
        let _ = self.given_up.set(reason);
    }

    pub(crate) fn given_up(&self) -> Option<&str> {
        self.given_up.get().map(String::as_str)
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
        self.attached.store(false, Ordering::Relaxed);
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
        if status.is_some()
            && let Some(group) = leader.take()
        {
            reap_workers(group);
        }
        Ok(status)
    }
}

/// The first process of a container inherits the workers that a training loop leaves behind, and no one else
/// would reap them. Any other process has no children in the group.
fn reap_workers(group: Pid) {
    for _ in 0..REAPS_MAX {
        match waitpgid(group, WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => std::thread::sleep(REAP_EVERY),
            Err(_) => return,
        }
    }
}
