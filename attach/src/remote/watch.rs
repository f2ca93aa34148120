//! Waiting for the trainer's answers, each with its deadline.

use super::{Cut, RemoteTrainer, Session};
use crate::group::Group;
use crate::limits::{COPY_WAIT, EVALUATE_WAIT, FRAME_BYTES_MAX, LEAVE_WAIT};
use crate::message::FromTrainer;
use crate::terms::Notes;
use rustix::process::Signal;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How far a wait for an inner step has come.
struct StepWatch<'a> {
    since: Instant,
    hung_after: Option<Duration>,
    grace: Duration,
    stage: Stage,
    group: Option<&'a Group>,
    notes: &'a Notes,
}

/// Measures against a trainer that takes no step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waiting,
    /// It was asked to print its stacks.
    Asked,
    /// It was killed, or the operator was told to do so.
    GivenUp,
}

impl StepWatch<'_> {
    /// Looks at the clock; returns a signal for the trainer's process.
    fn look(&mut self) -> Option<Signal> {
        let hung_after = self.hung_after?;
        let waited = self.since.elapsed();
        let seconds = waited.as_secs();
        match self.stage {
            Stage::Waiting if waited >= hung_after => {
                self.stage = Stage::Asked;
                (self.notes)(&format!(
                    "the trainer has not called step() for {seconds} s: it is asked for its stacks"
                ));
                Some(Signal::USR1)
            }
            Stage::Asked if waited >= hung_after + self.grace => {
                self.stage = Stage::GivenUp;
                match self.group {
                    Some(group) => {
                        (self.notes)(&format!("the trainer hangs for {seconds} s: it is killed"));
                        group.signal(Signal::KILL);
                    }
                    None => (self.notes)(&format!(
                        "the trainer hangs for {seconds} s: end it and start it again"
                    )),
                }
                None
            }
            _ => None,
        }
    }
}

impl RemoteTrainer {
    /// Waits for an inner step, however long it takes, and watches whether the trainer hangs.
    pub(super) fn watch_step(&mut self) -> Result<FromTrainer, Cut> {
        let Some(session) = &mut self.session else {
            return Err(Cut::Lost);
        };
        let Session {
            link, pace, hello, ..
        } = session;
        let mut watch = StepWatch {
            since: Instant::now(),
            hung_after: pace.hung_after(),
            grace: pace.grace(),
            stage: Stage::Waiting,
            group: self.group.as_deref(),
            notes: &self.terms.notes,
        };
        let mut left: Option<Instant> = None;
        let mut signal = None;
        let heard = loop {
            let mut ended = || {
                if self.leaving.load(Ordering::Relaxed) {
                    left.get_or_insert_with(Instant::now);
                }
                signal = watch.look();
                signal.is_some() || left.is_some_and(|left| left.elapsed() >= LEAVE_WAIT)
            };
            match link.receive(FRAME_BYTES_MAX, &mut ended) {
                // Without the handler the signal would end the process.
                Ok(None) if signal.is_some() => {
                    if hello.faulthandler {
                        link.signal(Signal::USR1);
                    }
                }
                heard => break heard,
            }
        };
        match heard {
            Ok(Some(message)) => {
                pace.took(watch.since.elapsed());
                Ok(message)
            }
            Ok(None) => {
                // It is in the middle of a step, so there is nothing to take from it.
                self.session = None;
                Err(Cut::Leaving)
            }
            Err(lost) => {
                self.lost(lost);
                Err(Cut::Lost)
            }
        }
    }

    /// Waits until the trainer has copied its parameters or its state.
    pub(super) fn await_copy(&mut self) -> Result<FromTrainer, Cut> {
        let text = "the trainer does not copy its parameters";
        self.await_for(COPY_WAIT, text)
    }

    /// Waits for the result of an evaluation.
    pub(super) fn await_score(&mut self) -> Result<FromTrainer, Cut> {
        self.await_for(EVALUATE_WAIT, "the trainer does not end its evaluation")
    }

    fn await_for(&mut self, wait: Duration, late: &str) -> Result<FromTrainer, Cut> {
        let Some(session) = &mut self.session else {
            return Err(Cut::Lost);
        };
        let leaving = &self.leaving;
        let (mut left, until) = (None, Instant::now() + wait);
        let mut ended = || {
            if leaving.load(Ordering::Relaxed) {
                left.get_or_insert_with(Instant::now);
            }
            let has_left = left.is_some_and(|left: Instant| left.elapsed() >= LEAVE_WAIT);
            has_left || Instant::now() >= until
        };
        match session.link.receive(FRAME_BYTES_MAX, &mut ended) {
            Ok(Some(message)) => Ok(message),
            Ok(None) if self.is_leaving() => {
                self.session = None;
                Err(Cut::Leaving)
            }
            Ok(None) => {
                if let Some(group) = &self.group {
                    group.signal(Signal::KILL);
                }
                Err(self.broken(late))
            }
            Err(lost) => {
                self.lost(lost);
                Err(Cut::Lost)
            }
        }
    }
}
