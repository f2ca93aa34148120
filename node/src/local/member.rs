//! One daemon of the swarm, as the process that started it sees it.

use super::args::FaultEntry;
use super::child::ChildHandle;
use super::display::LivingDaemon;
use super::{ChildPlan, LocalError};
use crate::api::{EvaluationStatus, peak_rss_bytes_of};
use crate::faults::Fault;
use crate::progress::Progress;
use crate::report::NodeReport;
use rustix::process::Signal;
use std::collections::VecDeque;
use std::process::ExitStatus;
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Waiting,
    Running,
    /// Stopped itself by a requested fault.
    Stopped,
    /// Killed itself by a requested fault.
    Killed,
    /// Killed by `--kill-every`; restarts at this time.
    Away(Instant),
    /// Sent its report and ended with exit status zero.
    Finished,
    /// The same, before the run was over: the user ended it.
    Interrupted,
    /// A liar that ended by itself, because the others cut it off.
    Gone,
}

/// One daemon as the parent process sees it.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) plan: ChildPlan,
    pub(super) state: State,
    pub(super) progress: Progress,
    /// Its last evaluation, in this life or an earlier one.
    pub(super) evaluation: Option<EvaluationStatus>,
    pub(super) report: Option<NodeReport>,
    pub(super) fault: Option<(Fault, u64)>,
    pub(super) life: u32,
    pub(super) handle: Option<ChildHandle>,
    /// Its peer's id, hexadecimal, once it has said so.
    pub(super) peer: Option<String>,
    pub(super) addresses: Vec<String>,
    pub(super) http: Option<String>,
    pub(super) words: VecDeque<String>,
    pub(super) ended: Option<ExitStatus>,
}

impl Member {
    /// A daemon that has not been started.
    pub(super) fn new(plan: &ChildPlan) -> Self {
        Self {
            plan: plan.clone(),
            state: State::Waiting,
            progress: Progress::default(),
            evaluation: None,
            report: None,
            fault: None,
            life: 0,
            handle: None,
            peer: None,
            addresses: Vec::new(),
            http: None,
            words: VecDeque::new(),
            ended: None,
        }
    }

    pub(super) fn accuracy(&self) -> Option<f64> {
        let at_last = self.report.as_ref().and_then(|r| r.test_accuracy);
        at_last.or(self.evaluation.as_ref().and_then(|e| e.accuracy))
    }

    /// The loss of its last evaluation. The report comes first, because a run may end before its
    /// progress shows it.
    pub(super) fn loss(&self) -> Option<f64> {
        let at_last = self.report.as_ref().and_then(|r| r.test_loss);
        at_last.or(self.evaluation.as_ref().map(|e| e.loss))
    }

    /// How a view finds it, while it lives.
    pub(super) fn living(&self) -> Option<LivingDaemon> {
        let lives = self.state == State::Running && self.ended.is_none();
        let (peer, http) = self.peer.clone().zip(self.http.clone())?;
        let index = self.plan.index;
        lives.then_some(LivingDaemon { index, peer, http })
    }

    pub(super) fn lies(&self) -> bool {
        !self.plan.lies.is_empty()
    }

    pub(super) fn died(&self, status: ExitStatus) -> LocalError {
        let words: Vec<&str> = self.words.iter().map(|w| w.trim()).collect();
        // A daemon's own line about its end says it all.
        let words = match words.last() {
            Some(line) if line.starts_with("error: ") => (*line).to_owned(),
            _ => words.join(" | "),
        };
        LocalError::Died {
            index: self.plan.index,
            status: status.to_string(),
            words: if words.is_empty() {
                "none".to_owned()
            } else {
                words
            },
        }
    }

    /// Returns `true` once it has finished all rounds, or has left without an interruption.
    pub(super) fn is_done(&self) -> bool {
        self.state == State::Finished || self.progress.phase == "finished"
    }

    /// The state after its last report. `interrupted` where the user ended the run.
    pub(super) fn left(&self, interrupted: bool) -> State {
        let ended = self.report.as_ref().map_or(0, |report| report.rounds);
        if interrupted && (self.progress.rounds == 0 || ended < self.progress.rounds) {
            State::Interrupted
        } else {
            State::Finished
        }
    }

    /// Returns `true` if it takes part in rounds since its last start.
    pub(super) fn has_begun(&self) -> bool {
        self.progress.inner_steps > 0 && self.progress.phase != "join"
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    pub(super) fn peak_rss_bytes(&self) -> Option<u64> {
        peak_rss_bytes_of(self.handle.as_ref()?.process()?)
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let Some(handle) = &self.handle {
            handle.signal(signal);
        }
    }

    /// Resets the output of the ended process, its progress included, before the next start.
    pub(super) fn begin_another_life(&mut self) {
        self.life += 1;
        self.ended = None;
        self.progress = Progress::default();
        self.addresses.clear();
        self.http = None;
        self.words.clear();
        // Each life writes a record of its own, because a record cannot be continued.
        if let Some(record) = &mut self.plan.record {
            record.set_extension(format!("{}.rec", self.life));
        }
    }

    pub(super) fn faults(&self) -> impl Iterator<Item = FaultEntry> {
        let entry = |kind: &str, round, phase| FaultEntry {
            node: self.plan.index,
            kind: kind.to_owned(),
            round,
            phase,
            at_s: None,
            peak_rss_bytes: None,
        };
        let late = self.plan.late.filter(|_| self.state != State::Waiting);
        let late = late.map(|round| entry("late", round, None));
        let stopped = self.state == State::Stopped;
        let hit = self.fault.map(|(fault, round)| {
            let kind = if stopped { "stop" } else { "kill" };
            entry(kind, round, Some(fault.phase.to_string()))
        });
        late.into_iter().chain(hit)
    }
}
