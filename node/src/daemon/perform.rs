//! Performs one output of the peer without waiting, and says what an event means: refusals, the branches of a
//! swarm that was split, and the owner's directives.

use super::RefusedBy;
use super::driver::Driver;
use super::ending::Held;
use super::privacy::Payment;
use crate::api::Clock;
use crate::directive::directive_words;
use crate::events::Kind;
use crate::faults::Fault;
use crate::membership::Roll;
use crate::progress::duration;
use crate::splits::SplitChange;
use crate::store::StoreError;
use murmurate_protocol::wire::{MembershipMessage, Message, PeerRecord, Setting};
use murmurate_protocol::{
    Directive, Done, Evaluation, Event, Input, Order, OrderId, Output, PeerId, Phase, PushOutcome,
    Remote, Round, SortedSet, Source, TrainSummary, Wait, WorkError,
};
use std::time::Instant;

const MISSING_NAMED_MAX: usize = 4;

/// Keys of another configuration that the event log names.
const KEYS_LOGGED_MAX: usize = 16;

impl Driver {
    /// Performs an output. Returns a fault that must be triggered after all outputs are performed.
    pub(super) fn perform(&mut self, output: Output) -> Option<Fault> {
        match output {
            Output::Send { to, message } => {
                if let Some(message) = self.lanes.sign(to, message) {
                    self.send(to, &message);
                }
            }
            Output::Push {
                to,
                slice,
                meta,
                priority,
                deadline,
            } => {
                let deadline = self.clock.instant(deadline);
                let pushed = self
                    .depot
                    .describe(&slice, meta)
                    .is_some_and(|meta| self.net.push(to, slice, meta, priority, deadline).is_ok());
                if pushed {
                    let bytes = self.payload_of(slice, meta.of);
                    self.payload.pushing(to, slice, bytes);
                } else {
                    let outcome = PushOutcome::Lost;
                    self.pending.push_back(Input::Pushed { to, slice, outcome });
                }
            }
            Output::Fetch {
                what,
                from,
                deadline,
            } => {
                if self
                    .net
                    .fetch(what, from, self.clock.instant(deadline))
                    .is_err()
                {
                    self.pending.push_back(Input::FetchFailed { what });
                }
            }
            Output::Cancel { slice } => {
                let _ = self.net.cancel(slice);
            }
            Output::Order { id, order } => self.order(id, order),
            Output::Interrupt => self.lanes.signals().interrupt(),
            Output::Dial(record) => {
                let _ = self.net.dial_in_turn(record);
            }
            Output::Disconnect { peer, .. } => {
                // A peer that does not fit may still say which of its settings are others.
                if !self.ending.told.ends_later(peer) {
                    let _ = self.net.disconnect(peer);
                }
            }
            Output::Emit(event) => return self.emitted(&event),
            Output::Left => self.ending.left = true,
            Output::Opened(base) => self.lanes.opened(base),
            Output::Prove(proof) => Roll::ban(&self.net, *proof),
        }
        None
    }

    /// Passes an order to the lanes, once its cost for the data's privacy is counted and its masks are noted.
    fn order(&mut self, id: OrderId, order: Order) {
        if let (Order::Encode { slice, from, .. }, Some(mark)) = (&order, &mut self.judge.mark)
            && matches!(from, Source::Masked(_))
            && let Err(error) = mark.reach(slice.round)
        {
            return self.unnoted(id, &error);
        }
        let contributes = matches!(order, Order::Train { .. });
        let Some(account) = self.judge.account.as_mut().filter(|_| contributes) else {
            return self.lanes.submit(id, order);
        };
        let paid = account.pay();
        let status = account.status();
        self.console.status.with(|it| it.privacy(status));
        match paid {
            Ok(Payment::Made) => self.lanes.submit(id, order),
            Ok(Payment::Refused) => {
                self.note(&format!("leaving: {}", status.sentence()));
                self.pending.push_back(Input::Leave);
                let done = Done::Trained(TrainSummary::default());
                self.pending.push_back(Input::Done { order: id, done });
            }
            Err(error) => self.unnoted(id, &error),
        }
    }

    /// What must be noted first cannot be written: the order is not carried out.
    fn unnoted(&mut self, id: OrderId, error: &StoreError) {
        let done = Done::Failed(WorkError::Training {
            reason: error.to_string(),
        });
        self.pending.push_back(Input::Done { order: id, done });
    }

    /// Sends a message. The queue is bounded and delivery is not guaranteed; the peer's deadlines cover a lost frame.
    pub(super) fn send(&mut self, to: PeerId, message: &Message) {
        if self.on_request.splits.hides(&to) {
            return;
        }
        if let Err(busy) = self.net.say(to, message) {
            tracing::debug!(peer = %to, %busy, "message dropped");
        }
    }

    /// Shows an event to the operator. Returns a fault that waited for this event.
    fn emitted(&mut self, event: &Event) -> Option<Fault> {
        let now = self.clock.now();
        if matches!(event, Event::RoundEnded { .. }) {
            // The status shows a round's time beside its bytes, so both must be read at the same moment.
            self.read_traffic();
        }
        if matches!(event, Event::Finished { .. }) {
            // Links come down from here on, and a short run ends before they are read for the first time.
            self.read_links();
        }
        self.console
            .status
            .with(|observer| observer.observe(now, event));
        if let Some(metrics) = &mut self.metrics {
            let status = &self.console.status;
            metrics.observe(event, || status.with(|observer| observer.figures()));
        }
        if let Some(telemetry) = &mut self.console.telemetry {
            let status = &self.console.status;
            telemetry.observe(event, || status.with(|observer| observer.figures()));
        }
        self.console.log.observe(now, self.peer.round().0, event);
        if let Some(text) = note(event) {
            self.note(&text);
        }
        self.tell(event);
        if let Some(text) = self.console.void_rounds.observe(event) {
            self.note(&text);
        }
        if matches!(event, Event::Finished { .. })
            && let Some(reason) = self.console.void_rounds.failure()
        {
            self.ending.stopped.get_or_insert(reason);
        }
        let Event::Phase { round, phase } = event else {
            return None;
        };
        if *phase == Phase::Train && self.peer.round() == *round {
            let digest = self.peer.digest();
            self.console.status.with(|o| o.opens(*round, digest));
        }
        self.split_on_request(*round, *phase);
        self.on_request.faults.due(*round, *phase)
    }

    /// Prints events that the operator should see at once.
    fn tell(&mut self, event: &Event) {
        match event {
            Event::PeerUp(peer) => {
                self.ending.met_anyone = true;
                self.depot.set_greeted(*peer, true);
            }
            Event::PeerDown(peer) | Event::PeerLeft(peer) => {
                self.depot.set_greeted(*peer, false);
                let missed = self.peer.view().get(*peer).is_some_and(Remote::is_missed);
                if !missed {
                    self.console.status.with(|o| o.not_missed(*peer));
                }
                self.contacts.records.forget(*peer);
                self.contacts.rolls.forget(*peer);
            }
            Event::JoinFailed { .. } => self.ending.join_failed(),
            Event::Evaluated { round, evaluation } => self.evaluated(round.0, evaluation),
            Event::TrainerFailed { what } => {
                self.ending.stopped.get_or_insert_with(|| what.clone());
            }
            Event::Waited {
                wait: Wait::Peers,
                waited,
                expired: true,
                ..
            } if !matches!(self.peer.phase(), Phase::Leaving | Phase::Left) => self.note(&format!(
                "waited {:.0} s for other daemons; training goes on with those that are there, and others \
                 can still join",
                waited.as_secs_f64()
            )),
            Event::Missing {
                here,
                wanted,
                waited,
            } => {
                let text = self.missing(*here, *wanted, waited.as_secs_f64());
                self.note(&text);
            }
            // Of a proven lie the network tells when the member is banned, but an open run bans no one.
            Event::Lied {
                peer, proven, what, ..
            } if !proven || self.contacts.roll.in_open_run() => {
                let text = format!("daemon {peer} lies: {what}; this daemon cuts it off");
                self.note(&text);
            }
            Event::BranchesMet { .. }
            | Event::Merged { .. }
            | Event::NotMerged { .. }
            | Event::BranchSaved { .. } => self.tell_of_branches(event),
            Event::Directed { directive, .. } => self.directed(directive),
            Event::Refused { peer, reason } | Event::RefusedBy { peer, reason } => {
                self.refused(RefusedBy::new(*peer, *reason));
            }
            _ => {}
        }
    }

    /// The line about missing daemons, with those that this one knows.
    fn missing(&self, here: usize, wanted: usize, seconds: f64) -> String {
        let view = self.peer.view();
        let there = |peer: &PeerId| view.greeted().any(|(id, _)| id == *peer);
        let companions = self.contacts.acquaintances.companions().iter();
        let away: Vec<String> = companions
            .filter(|peer| !there(peer))
            .map(ToString::to_string)
            .take(MISSING_NAMED_MAX)
            .collect();
        let names = if away.is_empty() {
            String::new()
        } else {
            format!("; no link to {}", away.join(", "))
        };
        format!(
            "waited {seconds:.0} s for other daemons: {here} of {wanted} are here, {} missing{names}; \
             training begins when they come (start them, or lower `run.start_with`)",
            wanted.saturating_sub(here).max(1)
        )
    }

    /// Keeps the best parameters, and leaves where the goal is reached or patience is over.
    fn evaluated(&mut self, round: u64, found: &Evaluation) {
        let verdict = self.judge.look(round, found);
        if let Some(best) = verdict.keep {
            // Queued before the next round's orders, so the anchor is still the evaluated one.
            self.lanes.keep_best(best);
        }
        if let Some(reason) = verdict.leave {
            self.note(&reason);
            self.pending.push_back(Input::Leave);
        }
    }

    /// Notes a refusal. If the two ends can find out which of their settings differ, it tells the other
    /// end its own, and the operator once it knows.
    fn refused(&mut self, refused: RefusedBy) {
        let peer = refused.peer;
        let settings = self.ending.told.settings();
        let version = self.net.wire_with(&peer);
        let message = Message::from(MembershipMessage::Settings(settings.to_vec()));
        let can_say = version.is_some_and(|version| message.since() <= version.number());
        if !refused.is_for_settings() || settings.is_empty() || !can_say {
            return self.told_of(refused);
        }
        if self.ending.told.waits_for(refused, Instant::now()) {
            self.send(peer, &message);
        }
    }

    pub(super) fn settings_of(&mut self, peer: PeerId, theirs: &[Setting]) {
        if let Some(held) = self.ending.told.compared(peer, theirs) {
            self.release(held);
        }
    }

    /// Goes on with refusals whose other end has gone, or has said nothing in time.
    pub(super) fn release_refusals(&mut self, gone: Option<PeerId>) {
        for held in self.ending.told.overdue(gone, Instant::now()) {
            self.release(held);
        }
    }

    fn release(&mut self, held: Held) {
        if held.ends {
            let _ = self.net.disconnect(held.refused.peer);
        }
        let RefusedBy { peer, keys, .. } = &held.refused;
        let keys: Vec<String> = keys.iter().take(KEYS_LOGGED_MAX).cloned().collect();
        if !keys.is_empty() {
            self.console.status.with(|o| o.differs(peer, &keys));
            let peer = peer.to_hex();
            self.log(Kind::Differs { peer, keys });
        }
        self.told_of(held.refused);
    }

    fn told_of(&mut self, refused: RefusedBy) {
        if self.ending.told.tell(refused.peer, Instant::now()) {
            self.note(&refused.to_string());
        }
        self.ending
            .refused(refused, self.peer.phase() == Phase::Join);
    }

    fn split_on_request(&mut self, round: Round, phase: Phase) {
        match self.on_request.splits.due(round, phase) {
            None => {}
            Some(SplitChange::Cut(peers)) => {
                self.console.printer.split(round.0, peers.len());
                let _ = self.net.block(peers);
            }
            Some(SplitChange::Healed(peers)) => {
                self.console.printer.split(round.0, 0);
                let _ = self.net.block(SortedSet::new());
                // The other end may have dialled in vain, and pauses. Whichever end comes last dials.
                let known = peers.iter().filter_map(|peer| self.peer.view().get(*peer));
                let records: Vec<PeerRecord> = known.filter_map(Remote::record).cloned().collect();
                for record in records {
                    let _ = self.net.dial(record);
                }
            }
        }
    }

    /// Says that the branches of a swarm that was split meet, and whether they are merged.
    fn tell_of_branches(&mut self, event: &Event) {
        let printer = &mut self.console.printer;
        match event {
            Event::BranchesMet { base, weight, .. } => printer.note(&format!(
                "the swarm was split in round {base}, and daemons of another side are here: both \
                 sides are merged (weight of this side: {weight})"
            )),
            Event::Merged {
                round,
                digest,
                sides,
            } => printer.merged(round.0, digest, sides),
            Event::NotMerged {
                round,
                given_up: false,
            } => printer.note(&format!(
                "round {round}: the sides could not be merged; trying again"
            )),
            Event::NotMerged {
                round,
                given_up: true,
            } => printer.note(&format!(
                "round {round}: the sides are not merged, and one takes over the other's state"
            )),
            _ => {}
        }
    }

    /// Tells the peer the directives that the register knows, if one of them is new to it. Their signatures
    /// were checked when they entered the register.
    pub(super) fn tell_directives(&mut self) {
        let known = self.contacts.roll.directives();
        let told = self.peer.directives();
        if known.iter().any(|directive| !told.contains(directive)) {
            let known = known.iter().copied().collect();
            self.feed(Input::Directives(known));
        }
    }

    /// Says what the owner changes.
    fn directed(&self, directive: &Directive) {
        let words = directive_words(directive);
        let line = format!("directive {} of the owner: {words}", directive.number);
        self.note(&line);
    }
}

/// The line about an event that needs nothing but the event.
fn note(event: &Event) -> Option<String> {
    Some(match event {
        Event::WorkFailed { what } => what.clone(),
        Event::CatchUp {
            from: Round(0), to, ..
        } => format!(
            "this daemon takes over the run's model, of round {to}: the parameters that it started with are not used"
        ),
        Event::Unconfirmed { round } => format!(
            "too few daemons confirm the checkpoint of round {round}, or any other that is here; training goes on \
             when more of them are started (if the others are lost, give this daemon's checkpoint to more daemons)"
        ),
        Event::Absent { peer, until } => format!(
            "daemon {peer} takes part but contributes nothing: rounds go on without it until round {until}"
        ),
        Event::ClockOff { peer, ahead } => clock_off(*peer, *ahead),
        Event::Finished { rounds, .. } => format!("all {rounds} rounds are complete"),
        _ => return None,
    })
}

/// What to say about a clock. `ahead` is by how many seconds the others' clocks are ahead.
fn clock_off(peer: Option<PeerId>, ahead: i64) -> String {
    let by = duration(ahead.unsigned_abs() as f64);
    let word = |ahead: bool| if ahead { "ahead of" } else { "behind" };
    match peer {
        Some(peer) => format!(
            "the clock of daemon {peer} is {by} {} this machine's: set the wrong one, or the two cannot \
             find each other again",
            word(ahead > 0)
        ),
        None => format!(
            "this machine's clock is {by} {} those of the other daemons: set it right (NTP) and start \
             again, or they cannot find this daemon",
            word(ahead < 0)
        ),
    }
}
