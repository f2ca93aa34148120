//! Attaching a trainer, bringing it up to date, and losing it.

use super::{Cut, RemoteTrainer, Session, Shared};
use crate::claim::{check, same};
use crate::door::Arrival;
use crate::error::ClaimError;
use crate::gathering::Gathering;
use crate::limits::{COPY_WAIT, FRAME_BYTES_MAX, STATE_AT_CUT_BYTES_MAX, WORDS_MAX};
use crate::link::Lost;
use crate::message::{FromTrainer, ToTrainer, Welcome};
use crate::pace::Pace;
use crate::terms::Terms;
use murmurate_strategies::TrainError;
use std::time::Instant;

impl Shared {
    /// Answers a trainer that fits. With `write` it brings its parameters, else it will be told to take
    /// the daemon's.
    pub(super) fn welcome(
        &self,
        terms: &Terms,
        arrival: Arrival,
        write: Option<u8>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Session, Lost> {
        let Arrival {
            mut link,
            mut hello,
        } = arrival;
        hello.tensors.clear();
        let welcome = ToTrainer::Welcome(Welcome {
            run: terms.run.clone(),
            seed: terms.seed,
            shard: terms.part(),
            mode: terms.mode,
            values: self.layout.len() as u64,
            current: self.memory.current(),
            write,
            state_at_cut_bytes_max: STATE_AT_CUT_BYTES_MAX,
        });
        let [first, second] = self.state.fds();
        link.send_with(&welcome, &[self.memory.fd(), first, second])?;
        let until = Instant::now() + COPY_WAIT;
        let mut ended = || cancelled() || Instant::now() >= until;
        match link.receive(FRAME_BYTES_MAX, &mut ended)? {
            Some(FromTrainer::Ready) => Ok(Session {
                link,
                hello,
                shard: terms.part(),
                pace: Pace::new(terms.patience),
                _here: Gathering::arrive(&self.gathering),
            }),
            Some(other) => Err(Lost::Broken(format!(
                "`{}` instead of `ready`",
                other.name()
            ))),
            None => Err(Lost::Gone),
        }
    }
}

impl RemoteTrainer {
    /// Waits for a trainer if there is none, and brings it up to date.
    pub(super) fn settle(&mut self) -> Result<(), Cut> {
        self.settle_if(!self.refused)
    }

    /// The same for what any rank of the island can do: one that is not there is not waited for.
    pub(super) fn settle_if_here(&mut self) -> Result<(), Cut> {
        self.settle_if(false)
    }

    fn settle_if(&mut self, may_come: bool) -> Result<(), Cut> {
        while self.session.is_none() {
            if self.is_leaving() {
                return Err(Cut::Leaving);
            }
            if let Some(reason) = self.group.as_ref().and_then(|group| group.given_up()) {
                return Err(Cut::Failed(TrainError::Gone(reason.to_owned())));
            }
            match self.door.next() {
                Some(arrival) => self.attach_again(arrival),
                None if self.shared.gathering.waits(may_come && !self.refused) => {}
                None => return Err(Cut::Away),
            }
        }
        if !self.shared.memory.news().is_empty() {
            let ranges = self.shared.memory.news().iter();
            let ranges = ranges.map(|r| (r.start as u64, r.end as u64)).collect();
            let (slot, steps) = (self.shared.memory.current(), self.shared.steps);
            self.send(&ToTrainer::Install {
                slot,
                ranges,
                steps,
            })?;
            self.await_done()?;
            self.shared.memory.taken_over();
        }
        let has_state = self.session.as_ref().is_some_and(|s| s.hello.state);
        if let (true, true, Some((file, bytes))) = (
            self.shared.state.is_news,
            has_state,
            self.shared.state.held(),
        ) {
            self.send(&ToTrainer::Load { file, bytes })?;
            self.await_done()?;
        }
        self.shared.state.is_news = false;
        Ok(())
    }

    /// Attaches a trainer instead of one that is gone.
    fn attach_again(&mut self, mut arrival: Arrival) {
        let fits = check(&arrival.hello, self.terms.mode);
        if let Err(error) = fits.and_then(|layout| same(&layout, &self.shared.layout)) {
            arrival.link.refuse(&error.to_string());
            if self.terms.rank.is_alone() {
                (self.terms.notes)(&format!("a trainer was refused: {error}"))
            } else {
                self.leave_out(&error)
            }
            return;
        }
        let leaving = || self.is_leaving();
        match self.shared.welcome(&self.terms, arrival, None, &leaving) {
            Ok(session) => {
                let process = session.link.process();
                let text = if self.terms.rank.is_alone() {
                    format!("a trainer is attached again ({process})")
                } else {
                    format!("{} is attached ({process})", self.terms.name())
                };
                (self.terms.notes)(&text);
                self.session = Some(session);
                self.refused = false;
                self.group.iter().for_each(|group| group.attach());
                self.shared.memory.all_is_new();
                self.shared.state.is_news = true;
            }
            Err(lost) => self.lost(lost),
        }
    }

    /// A rank that trains something else: the island goes on without it.
    fn leave_out(&mut self, error: &ClaimError) {
        let name = self.terms.name();
        (self.terms.notes)(&format!(
            "{name} was refused, and the island goes on without it: {error}"
        ));
        self.refused = true;
        if let Some(group) = &self.group {
            group.leave_out();
        }
    }

    /// Sends the trainer a message.
    pub(super) fn send(&mut self, message: &ToTrainer) -> Result<(), Cut> {
        let Some(session) = &mut self.session else {
            return Err(Cut::Lost);
        };
        let sent = session.link.send(message);
        sent.map_err(|lost| {
            self.lost(lost);
            Cut::Lost
        })
    }

    fn await_done(&mut self) -> Result<(), Cut> {
        match self.await_copy()? {
            FromTrainer::Done => Ok(()),
            other => Err(self.unexpected("done", &other)),
        }
    }

    /// The trainer said something else than it was asked for.
    pub(super) fn unexpected(&mut self, wanted: &str, message: &FromTrainer) -> Cut {
        if let FromTrainer::Error { message, traceback } = message {
            let text = |words: &str| words.chars().take(WORDS_MAX).collect::<String>();
            let (message, traceback) = (text(message), text(traceback));
            // A supervised trainer prints its traceback itself.
            if self.group.is_some() || traceback.is_empty() {
                (self.terms.notes)(&format!("the trainer failed: {message}"))
            } else {
                (self.terms.notes)(&format!("the trainer failed: {message}\n{traceback}"))
            }
            self.session = None;
            return Cut::Lost;
        }
        self.broken(&format!("`{}` where `{wanted}` is due", message.name()))
    }

    /// The trainer broke a rule: it is told so and sent away.
    pub(super) fn broken(&mut self, reason: &str) -> Cut {
        self.refuse(reason);
        (self.terms.notes)(&format!("the trainer was sent away: {reason}"));
        Cut::Lost
    }

    /// Sends the trainer away.
    pub(super) fn refuse(&mut self, reason: &str) {
        if let Some(mut session) = self.session.take() {
            session.link.refuse(reason);
        }
    }

    /// The connection is of no use any more.
    pub(super) fn lost(&mut self, lost: Lost) {
        match lost {
            Lost::Gone => {
                if self.session.take().is_some() {
                    let text = match self.terms.rank.is_alone() {
                        true => {
                            "the trainer is gone; the round begins again when it is back".into()
                        }
                        false => format!(
                            "{} is gone; it begins again with the round of its return",
                            self.terms.name()
                        ),
                    };
                    (self.terms.notes)(&text);
                }
            }
            Lost::Broken(reason) => {
                self.broken(&reason);
            }
        }
    }
}
