//! Watches the daemons of a local swarm from start to end. Every wait has a deadline.

mod telling;

use super::LocalError;
use super::args::{FaultEntry, Killer};
use super::child::{ChildEvent, ChildHandle, EVENTS_CAPACITY, Events};
use super::demo::Narrator;
use super::display::Display;
use super::member::{Member, State};
use super::page::{self, SwarmPage};
use super::plan::LocalPlan;
use super::split_story::SplitStory;
use super::stranger::{Stranger, StrangerEntry};
use crate::events::unix_s;
use crate::goal::Target;
use crate::progress::Line;
use rustix::process::Signal;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::signal::unix;
use tokio::sync::mpsc;

/// How many others a daemon joins through.
const JOINED_MAX: usize = 8;

/// How long a daemon may take until others can join it. A busy machine reads its data slowly.
const START_WAIT: Duration = Duration::from_secs(60);

/// As [`START_WAIT`], with training loops that load frameworks and data of their own first.
const ATTACH_WAIT: Duration = Duration::from_secs(600);

/// How long all daemons together may be silent before the run is given up.
const SILENCE_WAIT: Duration = Duration::from_secs(180);

/// How long daemons may take to leave, which includes one inner step and writing to disk.
const LEAVE_WAIT: Duration = Duration::from_secs(30);

/// Time between two checks of the deadlines.
const TICK: Duration = Duration::from_millis(100);

/// Number of last lines of a daemon's stderr that are kept.
const WORDS_MAX: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Every live daemon reached the goal.
    Reached,
    RoundsDone,
    /// The time limit has passed.
    TimeUp,
    /// The user pressed Ctrl+C, or the system told this process to end.
    Interrupted,
}

#[derive(Debug)]
pub(super) struct Swarm {
    pub(super) members: Vec<Member>,
    /// Unix time in seconds at which the first daemon was started. Daemons report Unix times, too.
    pub(super) started_unix_s: f64,
    program: PathBuf,
    alone: bool,
    start_wait: Duration,
    pub(super) display: Display,
    /// The name of the run that a stranger attacks, until it begins.
    target_of_stranger: Option<String>,
    stranger: Option<Stranger>,
    pub(super) split: SplitStory,
    pub(super) killer: Option<Killer>,
    events: Events,
    inbox: mpsc::Receiver<(usize, ChildEvent)>,
    interrupts: unix::Signal,
    terminations: unix::Signal,
    heard: Instant,
    leaving: bool,
    /// Set if the user, or the system, ended the run.
    interrupted: bool,
    /// Set until a browser was told to show the page, if it is to show that.
    pub(super) open_browser: bool,
    pub(super) page: Option<SwarmPage>,
    shown: Instant,
    /// Tells the story of the run in place of messages.
    pub(super) narrator: Option<Narrator>,
}

impl Swarm {
    /// Prepares a swarm whose daemons are not started yet.
    ///
    /// # Errors
    /// If the handler for Ctrl+C cannot be installed.
    pub(super) fn new(plan: &LocalPlan, display: Display) -> Result<Self, LocalError> {
        // One listener for the whole life of the swarm, so that no Ctrl+C between two waits is
        // lost.
        let listen = |kind| unix::signal(kind).map_err(|e| LocalError::Signals(e.to_string()));
        let interrupts = listen(unix::SignalKind::interrupt())?;
        // A view must not leave the terminal as it is when this process is told to end.
        let terminations = listen(unix::SignalKind::terminate())?;
        let (events, inbox) = mpsc::channel(EVENTS_CAPACITY);
        Ok(Self {
            members: plan.children.iter().map(Member::new).collect(),
            started_unix_s: 0.0,
            program: plan.program.clone(),
            alone: plan.alone,
            start_wait: if plan.children.iter().all(|c| c.command.is_empty()) {
                START_WAIT
            } else {
                ATTACH_WAIT
            },
            display,
            target_of_stranger: plan.stranger.clone(),
            stranger: None,
            split: SplitStory::new(plan.sides.clone()),
            killer: plan.kill_every.map(|every| Killer::new(every, plan.seed)),
            events,
            inbox,
            interrupts,
            terminations,
            heard: Instant::now(),
            leaving: false,
            interrupted: false,
            open_browser: false,
            page: None,
            shown: Instant::now(),
            narrator: None,
        })
    }

    /// Starts all daemons, watches them until the run ends, and ends them.
    pub(super) async fn run(
        &mut self,
        target: Target,
        time: Option<f64>,
    ) -> Result<End, LocalError> {
        let end = self.train(target, time).await;
        self.interrupted = matches!(end, Ok(End::Interrupted));
        if !matches!(end, Err(LocalError::Died { .. })) {
            self.leave().await;
        }
        self.members
            .iter()
            .filter_map(|m| m.handle.as_ref())
            .for_each(|h| h.signal(Signal::KILL));
        self.display.finish();
        end
    }

    async fn train(&mut self, target: Target, time: Option<f64>) -> Result<End, LocalError> {
        if self.start_all().await? == Some(End::Interrupted) {
            return Ok(End::Interrupted);
        }
        self.begin_stranger();
        let mut since: Option<Instant> = None;
        loop {
            if self.members.iter().any(|m| m.progress.inner_steps > 0) {
                since.get_or_insert_with(Instant::now);
            }
            if let Some(end) = self.end(target) {
                return Ok(end);
            }
            if let (Some(since), Some(time)) = (since, time)
                && since.elapsed().as_secs_f64() >= time
            {
                return Ok(End::TimeUp);
            }
            if self.heard.elapsed() > SILENCE_WAIT {
                let what = "no daemon printed anything".to_owned();
                return Err(LocalError::Stuck {
                    what,
                    seconds: SILENCE_WAIT.as_secs(),
                });
            }
            self.start_late()?;
            self.kill_and_start_again()?;
            if self.next().await? == Some(End::Interrupted) {
                return Ok(End::Interrupted);
            }
        }
    }

    /// Lets a stranger attack all daemons, if there is to be one.
    fn begin_stranger(&mut self) {
        let Some(name) = self.target_of_stranger.take() else {
            return;
        };
        let addresses = self.members.iter().flat_map(|m| m.addresses.clone());
        let http = self.members.iter().filter_map(|m| m.http.clone());
        let (addresses, http): (Vec<_>, Vec<_>) = (addresses.collect(), http.collect());
        self.stranger = Some(Stranger::begin(&name, &addresses, &http));
        self.display.say("a stranger attacks all daemons");
    }

    /// Ends the stranger and returns the counts of its attempts.
    pub(super) fn end_stranger(&mut self) -> Option<StrangerEntry> {
        let stranger = self.stranger.take()?;
        Some(stranger.entry())
    }

    pub(super) fn start(&mut self, place: usize) -> Result<(), LocalError> {
        let join: Vec<String> = if self.alone {
            Vec::new()
        } else {
            let live = |m: &&Member| m.state == State::Running && !m.addresses.is_empty();
            let live: Vec<&Member> = self.members.iter().filter(live).collect();
            // Each begins with another, so that not all depend on one.
            let some = live
                .iter()
                .cycle()
                .skip(place)
                .take(live.len().min(JOINED_MAX));
            some.flat_map(|m| m.addresses.iter().cloned()).collect()
        };
        let member = &mut self.members[place];
        member.handle = Some(ChildHandle::spawn(
            &self.program,
            &member.plan,
            place,
            &join,
            &self.events,
        )?);
        member.state = State::Running;
        Ok(())
    }

    /// Starts a late daemon when all running ones have reached its round.
    fn start_late(&mut self) -> Result<(), LocalError> {
        let honest = self.members.iter().filter(|m| !m.lies());
        let running = honest.filter(|m| m.state == State::Running);
        let Some(slowest) = running.map(|m| m.progress.round).min() else {
            return Ok(());
        };
        for place in 0..self.members.len() {
            let member = &self.members[place];
            let due = member.plan.late.is_some_and(|round| slowest >= round);
            if member.state == State::Waiting && due {
                self.starts_late(place, slowest);
                self.start(place)?;
            }
        }
        Ok(())
    }

    /// Shows on the page how the daemons are.
    fn show(&mut self) {
        if let Some(page) = &self.page
            && self.shown.elapsed() >= TICK
        {
            self.shown = Instant::now();
            page.show(&self.members);
        }
    }

    /// Waits for one event, a tick, Ctrl+C or the order to end.
    async fn next(&mut self) -> Result<Option<End>, LocalError> {
        self.show();
        tokio::select! {
            event = self.inbox.recv() => {
                if let Some((place, event)) = event {
                    self.heard = Instant::now();
                    self.take(place, event)?;
                    let living = self.members.iter().filter_map(Member::living);
                    self.display.living(living);
                }
                Ok(None)
            }
            Some(()) = self.interrupts.recv() => Ok(Some(End::Interrupted)),
            Some(()) = self.terminations.recv() => Ok(Some(End::Interrupted)),
            () = tokio::time::sleep(TICK) => {
                self.narrate();
                Ok(None)
            }
        }
    }

    fn take(&mut self, place: usize, event: ChildEvent) -> Result<(), LocalError> {
        let (leaving, interrupted) = (self.leaving, self.interrupted);
        let member = &mut self.members[place];
        match event {
            ChildEvent::Line(line) => match *line {
                Line::Listening {
                    peer,
                    addresses,
                    http,
                } => {
                    if let Some(narrator) = &mut self.narrator {
                        narrator.is_called(member.plan.index, &peer);
                    }
                    member.peer = Some(peer);
                    (member.addresses, member.http) = (addresses, http);
                }
                Line::Progress(progress) => {
                    self.display.progress(place, &progress);
                    let before = member.evaluation.take();
                    member.evaluation = progress.evaluation.clone().or(before);
                    member.progress = progress;
                }
                Line::Fault { fault, round } => self.fault_hits(place, fault, round),
                Line::Split { round, away } => self.is_split(round, away),
                Line::Merged { round, sides, .. } => self.is_merged(round, sides),
                Line::Note { text } => self.notes(place, &text),
                Line::Report(report) => {
                    self.display.left(place, &report);
                    member.report = Some(*report);
                }
            },
            ChildEvent::Words(text) => {
                if !member.plan.command.is_empty() {
                    let index = member.plan.index;
                    self.display.say(&format!("daemon {index} | {text}"));
                }
                if member.words.len() == WORDS_MAX {
                    member.words.pop_front();
                }
                member.words.push_back(text);
            }
            ChildEvent::Ended(status) => {
                member.ended = Some(status);
                let polite = status.success() && member.report.is_some();
                match member.state {
                    State::Running if polite => member.state = member.left(interrupted),
                    // The others may have cut it off, which is no failure of the run.
                    State::Running if member.lies() => {
                        self.display.ended(place, "ended: the others cut it off");
                        member.state = State::Gone;
                    }
                    State::Running if !leaving => return Err(member.died(status)),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Why the run ends now; `None` while it continues. Only the honest daemons count.
    fn end(&self, target: Target) -> Option<End> {
        let live = || {
            self.members
                .iter()
                .filter(|m| matches!(m.state, State::Running | State::Finished) && !m.lies())
        };
        let away = |m: &&Member| matches!(m.state, State::Away(_));
        // The run does not end before daemons that are still to start. One that is killed every now and then
        // counts with what it had reached.
        let waiting = self.members.iter().any(|m| m.state == State::Waiting);
        let reached = |m: &Member| target.reached(m.accuracy(), m.loss());
        if live().chain(self.members.iter().filter(away)).all(reached) && !waiting {
            return Some(End::Reached);
        }
        let away = self.members.iter().any(|m| away(&m));
        (!away && live().all(Member::is_done)).then_some(End::RoundsDone)
    }

    /// Tells all daemons to leave and reads their reports. A second Ctrl+C ends them at once.
    async fn leave(&mut self) {
        self.leaving = true;
        for member in &self.members {
            if let (State::Running, Some(handle)) = (member.state, &member.handle) {
                handle.signal(Signal::INT);
            }
        }
        let since = Instant::now();
        while self
            .members
            .iter()
            .any(|m| m.state == State::Running && m.ended.is_none())
        {
            if since.elapsed() > LEAVE_WAIT {
                self.display
                    .say("not every daemon left in time; the rest are killed");
                return;
            }
            // Errors are ignored here: the report contains what has arrived.
            if matches!(self.next().await, Ok(Some(End::Interrupted))) {
                return;
            }
        }
    }
}

/// Daemons that start at the same time.
const STARTED_AT_ONCE: usize = 16;

/// How long the next daemons wait for those before them to meet another one.
const MEETING_WAIT: Duration = Duration::from_secs(20);

impl Swarm {
    /// Starts the daemons that are not late: first one of them, then the others, which join it.
    async fn start_all(&mut self) -> Result<Option<End>, LocalError> {
        let first: Vec<usize> = (0..self.members.len())
            .filter(|p| self.members[*p].plan.late.is_none())
            .collect();
        self.started_unix_s = unix_s();
        if let Some(narrator) = &mut self.narrator {
            let indexes = first.iter().map(|place| self.members[*place].plan.index);
            narrator.begins(self.started_unix_s, &indexes.collect::<Vec<_>>());
        }
        self.narrate();
        for (started, &place) in first.iter().enumerate() {
            // The others join the first. Of many, some wait for those before them: a machine that starts a
            // hundred daemons at once is too busy to answer any of them.
            let batch = started == 1 || started.is_multiple_of(STARTED_AT_ONCE);
            if !self.alone
                && batch
                && (self.until_listening(&first[..started]).await? == Some(End::Interrupted)
                    || self.until_met(&first[..started]).await? == Some(End::Interrupted))
            {
                return Ok(Some(End::Interrupted));
            }
            self.start(place)?;
        }
        let end = self.until_listening(&first).await?;
        self.show_page();
        Ok(end)
    }

    fn show_page(&mut self) {
        let Some(url) = self.page.as_ref().map(SwarmPage::url) else {
            return;
        };
        self.display.say(&format!("the swarm in a browser: {url}"));
        if std::mem::take(&mut self.open_browser)
            && let Err(error) = page::open(&url)
        {
            self.display.say(&format!(
                "no browser can be opened ({error}): open {url} yourself"
            ));
        }
    }

    async fn until_listening(&mut self, places: &[usize]) -> Result<Option<End>, LocalError> {
        let since = Instant::now();
        while places.iter().any(|p| {
            let member = &self.members[*p];
            member.plan.joinable && member.state == State::Running && member.addresses.is_empty()
        }) {
            if since.elapsed() > self.start_wait {
                let what = "not every daemon could be joined".to_owned();
                return Err(LocalError::Stuck {
                    what,
                    seconds: self.start_wait.as_secs(),
                });
            }
            if self.next().await? == Some(End::Interrupted) {
                return Ok(Some(End::Interrupted));
            }
        }
        Ok(None)
    }

    /// Gives the daemons of the batches before time to meet another one. One that meets none ends the
    /// others' wait, and its own deadline says why.
    async fn until_met(&mut self, places: &[usize]) -> Result<Option<End>, LocalError> {
        let since = Instant::now();
        while places.len() > 1 && since.elapsed() < MEETING_WAIT {
            let alone = |place: &usize| {
                let member = &self.members[*place];
                member.state == State::Running && member.progress.peers == 0
            };
            if !places.iter().any(alone) {
                break;
            }
            if self.next().await? == Some(End::Interrupted) {
                return Ok(Some(End::Interrupted));
            }
        }
        Ok(None)
    }
}

/// Time between a kill and the restart.
const AWAY: Duration = Duration::from_secs(2);

impl Swarm {
    /// Kills a daemon if a kill is due, and restarts the killed one after [`AWAY`]. Only one daemon
    /// is away at a time: the next kill waits until the last victim takes part in rounds again.
    /// Otherwise a machine that starts daemons slowly could lose the state of all of them. After a
    /// daemon has finished all rounds there are no more kills, so that the others finish too.
    fn kill_and_start_again(&mut self) -> Result<(), LocalError> {
        let Some(killer) = &mut self.killer else {
            return Ok(());
        };
        let now = Instant::now();
        let done = self.members.iter().any(Member::is_done);
        // A liar is no victim: the others may have cut it off, and no one would wait for its return.
        let honest = || self.members.iter().enumerate().filter(|(_, m)| !m.lies());
        let up = |(_, m): &(usize, &Member)| m.state == State::Running && m.has_begun();
        let up: Vec<usize> = honest().filter(up).map(|(place, _)| place).collect();
        let all = up.len() == honest().count();
        if !done
            && all
            && let Some(place) = killer.strike(now, &up)
        {
            let member = &mut self.members[place];
            let entry = FaultEntry {
                node: member.plan.index,
                kind: "kill".to_owned(),
                round: member.progress.round,
                phase: Some(member.progress.phase.clone()),
                at_s: Some((unix_s() - self.started_unix_s).max(0.0)),
                peak_rss_bytes: member.peak_rss_bytes(),
            };
            self.display.say(&format!(
                "daemon {}: killed in round {}",
                entry.node, entry.round
            ));
            let how = format!("killed in round {}, starts again", entry.round);
            self.display.ended(place, &how);
            killer.kills.push(entry);
            member.signal(Signal::KILL);
            member.state = State::Away(now + AWAY);
        }
        for place in 0..self.members.len() {
            let member = &mut self.members[place];
            if matches!(member.state, State::Away(until) if now >= until) && member.has_ended() {
                member.begin_another_life();
                self.start(place)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
