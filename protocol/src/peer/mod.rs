//! The peer. Its inputs are time, messages and finished work; its outputs are messages, deadlines
//! and work orders.
//!
//! This file dispatches inputs, shows the peer to its host, and holds no other logic.

mod catch_up;
mod donor;
mod join;
mod life;
mod membership;
mod pace;
mod replay;
mod round;
mod snapshot;

pub use snapshot::{SNAPSHOT_VERSION, Snapshot};

use crate::core::context::Context;
use crate::core::deadlines::Timer;
use crate::core::{FetchId, Output, PeerConfig, Phase, View, Wait, Waiting};
use crate::exchange::{self, Arrived, Exchange, PushEnd, Signal, Standing};
use crate::roll::{Founding, SharedRolls};
use crate::wire::{
    ExchangeMessage, MembershipMessage, Message, PeerRecord, Reason, TransferMessage, WireError,
};
use crate::{
    Base, Checked, Chosen, Digest, Directive, Done, Evaluation, FragmentId, GroupTag, Ledger,
    Losses, OrderId, Pace, Part, PeerError, PeerId, Plan, PushOutcome, Ratings, Round, Rung,
    SliceId, SliceMeta, StepBudget, Time, Topology,
};
use core::time::Duration;
use donor::Donor;
use life::{CatchUp, Life, Rest};
use pace::Pacer;
use replay::Helpers;
use serde::{Deserialize, Serialize};

/// One peer of a run.
///
/// # How to drive it
/// 1. [`Peer::new`], then `handle(now, Input::Start { .. })`.
/// 2. After every `handle`, drain [`Peer::poll_output`] and perform each output in order.
/// 3. Call `handle(now, Input::Timeout)` no earlier than [`Peer::poll_timeout`] says; a call too
///    early or too late is harmless.
/// 4. Answer every order except `Settle`, `Release`, `Unpin` and `Forget` with `Input::Done`; every
///    push with `Pushed`; every fetch with `Fetched` or `FetchFailed`.
/// 5. `now` never goes back. Stop when [`Output::Left`] comes out.
///
/// It repeats to the bit: the same inputs give the same outputs.
pub struct Peer {
    cx: Context,
    exchange: Box<dyn Exchange>,
    phase: Phase,
    life: Life,
    catch_up: CatchUp,
    helpers: Helpers,
    donor: Donor,
    rest: Rest,
    /// How the run gets its first roll, until it has one.
    founding: Option<Box<Founding>>,
    pacer: Pacer,
}

impl Peer {
    /// A peer that has not started.
    ///
    /// # Panics
    /// When the plan does not validate, or needs a topology and has none: the caller
    /// checks both.
    pub fn new(config: PeerConfig, plan: Plan, topology: Option<Box<dyn Topology>>) -> Self {
        plan.validate()
            .expect("a plan is validated when it is made");
        let mut cx = Context::new(config, plan);
        let every = topology.as_ref().map_or(0, |t| t.rates_every());
        cx.view.links.set_every(every);
        let links = cx.plan.schedule.link_plan();
        let every = links.map_or(0, |links| u64::from(links.every));
        cx.view.measured.set_every(every);
        Self {
            exchange: exchange::build(&cx, topology),
            cx,
            phase: Phase::New,
            life: Life::default(),
            catch_up: CatchUp::Idle,
            helpers: Helpers::default(),
            donor: Donor::default(),
            rest: Rest::default(),
            founding: None,
            pacer: Pacer::default(),
        }
    }

    /// Shares rolls with other peers of this process. They are equal in all peers of a swarm.
    #[must_use]
    pub fn sharing(mut self, rolls: SharedRolls) -> Self {
        self.cx.rolls.shared = rolls;
        self
    }

    /// Handles one input. Runs to completion; work and memory are bounded.
    ///
    /// # Errors
    /// When a remote broke a rule: the state is unchanged but for its score. Nothing need be done.
    ///
    /// # Panics
    /// On broken invariants of its own, and when `now` goes back.
    pub fn handle(&mut self, now: Time, input: Input) -> Result<(), PeerError> {
        assert!(
            now >= self.cx.now,
            "time went back from {} to {now}",
            self.cx.now
        );
        self.cx.now = now;
        if self.phase == Phase::Left {
            return Ok(());
        }
        let result = self.dispatch(input);
        while let Some((peer, what)) = self.cx.accused() {
            // The peer is scored. There is no caller to return the error to.
            let _ = self.judge(peer, Err(PeerError::unexpected(what)));
        }
        while let Some((peer, what, proof)) = self.cx.convicted() {
            self.convict(peer, what, proof);
        }
        result
    }

    fn dispatch(&mut self, input: Input) -> Checked {
        match input {
            // Another process runs with this peer's identity. A peer does not talk to itself.
            Input::LinkUp(peer) if peer == self.cx.me() => {
                let reason = Reason::Misbehaved;
                self.cx.put(Output::Disconnect { peer, reason });
            }
            Input::Received { from, .. } | Input::Malformed { from, .. }
                if from == self.cx.me() => {}
            Input::Start {
                snapshot,
                digests,
                opened,
            } => self.start(snapshot, digests, opened),
            Input::Received { from, message } => return self.received(from, &message),
            Input::Malformed { from, error } => return self.malformed(from, error),
            Input::Record(record) => self.own_record(record),
            Input::LinkUp(peer) => self.link_up(peer),
            Input::LinkDown(peer) => self.link_down(peer),
            Input::Observes(peer) => self.observes(peer),
            Input::Measured { peer, rtt, rate } => {
                if let Some(remote) = self.cx.view.get_mut(peer) {
                    remote.rtt = Some(rtt);
                    remote.rate = Some(rate);
                }
            }
            Input::Done { order, done } => self.done(order, &done),
            Input::Arrived {
                from,
                slice,
                meta,
                digest,
            } => return self.arrived(from, slice, meta, digest),
            Input::Pushed { to, slice, outcome } => {
                self.cx.push_ended(to, slice, outcome);
                self.signal(Signal::Pushed(PushEnd { to, slice, outcome }));
            }
            Input::Fetched { what, digest, .. } => match what {
                FetchId::State(state) => self.state_fetched(state),
                FetchId::Slice(slice) => self.slice_fetched(slice, digest),
            },
            Input::FetchFailed { what } => match what {
                FetchId::State(state) => self.state_fetch_failed(state),
                FetchId::Slice(slice) => self.slice_fetch_failed(slice),
            },
            Input::Timeout => self.timeout(),
            Input::Leave => self.leave(),
            Input::Directives(directives) => self.directed(directives),
            Input::Cut {
                order,
                fragment,
                samples,
            } => self.cut(order, fragment, samples),
        }
        Ok(())
    }

    /// The next thing for the driver to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.cx.take()
    }

    /// When `Input::Timeout` is due: the minimum of all deadlines.
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.phase == Phase::Left {
            None
        } else {
            self.cx.timers.next()
        }
    }

    /// A slice arrived, of a known peer. It need not have said hello yet and may have said goodbye:
    /// messages and slices overtake each other, and an acknowledged slice exists here only.
    fn arrived(
        &mut self,
        from: PeerId,
        slice: SliceId,
        meta: SliceMeta,
        digest: Option<Digest>,
    ) -> Checked {
        let remote = self.cx.view.get(from);
        let known = remote.is_some_and(|r| !r.banned && !r.contact.refused && !r.contact.observes);
        // Along a schedule members forward aggregates of others. The exchange checks who may.
        let handed_on = slice.part == Part::Aggregate && self.cx.plan.schedule.relays();
        // All members of a column make the same bundle, in the name of one of them.
        let bundle = slice.part == Part::Bundle && self.has_rolls();
        let own = slice.origin == from || handed_on || bundle;
        let result = if known && own {
            let signal = Signal::Arrived(Arrived {
                from,
                slice,
                meta,
                digest,
            });
            self.exchange.signal(&mut self.cx, signal)
        } else {
            self.cx.release(slice);
            let what = "a slice that its sender did not make, or from an unknown peer";
            Err(PeerError::unexpected(what))
        };
        self.check_outcome();
        self.judge(from, result)
    }

    fn signal(&mut self, signal: Signal<'_>) {
        let result = self.exchange.signal(&mut self.cx, signal);
        debug_assert!(result.is_ok(), "only messages and slices can break rules");
        self.check_outcome();
    }

    fn received(&mut self, from: PeerId, message: &Message) -> Checked {
        let result = match message {
            Message::Exchange(_) if self.only_observes(from) => Err(PeerError::unexpected(
                "a message about a round from a peer that only observes",
            )),
            Message::Membership(MembershipMessage::Hello(hello)) => {
                self.hello(from, hello);
                self.ask_more_donors();
                Ok(())
            }
            Message::Membership(MembershipMessage::Goodbye(reason)) => {
                self.goodbye(from, *reason);
                Ok(())
            }
            _ if !self.heard(from, message) => Ok(()),
            Message::Membership(message) => self.membership(from, message),
            Message::Founding(message) => {
                self.founding_said(from, message);
                Ok(())
            }
            Message::Transfer(message) => self.transfer(from, message),
            Message::Exchange(message) => match self.replay_decision(from, message) {
                Some(result) => result,
                None => {
                    self.pacer.heard(&self.cx, from, message);
                    self.exchange_said(from, message)
                }
            },
        };
        self.check_outcome();
        self.look_for_branches();
        self.judge(from, result)
    }

    fn exchange_said(&mut self, from: PeerId, message: &ExchangeMessage) -> Checked {
        let signal = Signal::Message { from, message };
        let result = self.exchange.signal(&mut self.cx, signal);
        self.note_placed(from, message);
        result
    }

    fn membership(&mut self, from: PeerId, message: &MembershipMessage) -> Checked {
        match message {
            MembershipMessage::Records(records) => return self.records(from, records),
            MembershipMessage::Rates(told) => return self.rates(from, told),
            MembershipMessage::Alive(alive) => self.alive(from, alive),
            // Handled before the sender has to have greeted.
            MembershipMessage::Hello(_)
            | MembershipMessage::Goodbye(_)
            | MembershipMessage::Settings(_) => {}
        }
        Ok(())
    }

    fn transfer(&mut self, from: PeerId, message: &TransferMessage) -> Checked {
        match message {
            TransferMessage::StateAsk { at_least } => self.state_asked(from, *at_least),
            TransferMessage::StateOffer(offer) => self.state_offered(from, *offer)?,
            TransferMessage::AnchorAsk { round } => self.anchor_asked(from, *round),
            TransferMessage::Anchor { round, anchor } => self.anchor_said(from, *round, *anchor),
            TransferMessage::StateRefuse => self.state_refused(from),
            TransferMessage::HistoryAsk { began } => {
                let (exchange, phase) = (self.exchange.as_ref(), self.phase);
                let cx = &mut self.cx;
                self.donor.history_asked(cx, exchange, phase, from, *began);
            }
            TransferMessage::HistoryRefuse { round } => self.history_refused(from, *round),
        }
        Ok(())
    }

    fn state_asked(&mut self, from: PeerId, at_least: Round) {
        // While it takes over a state itself, what it holds is of two rounds.
        let holds = (self.ready() || self.at_rest()) && self.catch_up.idle();
        let (cx, exchange) = (&mut self.cx, self.exchange.as_mut());
        if holds && cx.round >= at_least {
            self.donor
                .state_asked(cx, exchange, self.phase, from, at_least);
        } else {
            cx.send(from, TransferMessage::StateRefuse);
        }
    }

    fn done(&mut self, order: OrderId, done: &Done) {
        if self.round_done(order, done) || self.catch_up_done(order, done) {
            return;
        }
        let exchange = self.exchange.as_mut();
        if self.donor.done(&mut self.cx, exchange, order, done) {
            return;
        }
        self.signal(Signal::Done { order, done });
    }

    fn timeout(&mut self) {
        let now = self.cx.now;
        if self.cx.timers.expired(Timer::Alive, now) {
            self.alive_tick();
        }
        if self.cx.timers.expired(Timer::Exchange, now) {
            self.signal(Signal::Timeout);
        }
        if self.cx.timers.expired(Timer::Founding, now) {
            self.founding_tick();
        }
        if self.cx.timers.expired(Timer::Join, now) {
            self.join_expired();
        }
        if self.cx.timers.expired(Timer::CatchUp, now) {
            self.catch_up_expired();
        }
        if self.cx.timers.expired(Timer::Linger, now) {
            self.leave();
        }
    }
}

/// What a peer shows to its host.
impl Peer {
    /// Where this peer is in its round.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The round this peer is in.
    pub fn round(&self) -> Round {
        self.cx.round
    }

    /// It has begun its first round in this life.
    pub fn has_begun(&self) -> bool {
        self.life.once.begun
    }

    /// The group of the round, where the exchange has one and it has formed.
    pub fn group(&self) -> Option<GroupTag> {
        self.exchange.group()
    }

    /// The peers this peer knows.
    pub fn view(&self) -> &View {
        &self.cx.view
    }

    /// It has a place in a roll.
    pub fn has_place(&self) -> bool {
        self.sits()
    }

    /// The plan it follows.
    pub fn plan(&self) -> &Plan {
        &self.cx.plan
    }

    /// One hash over all fragments of the parameters that open this round.
    pub fn digest(&self) -> Digest {
        self.cx.anchor()
    }

    /// It takes part in rounds.
    pub fn ready(&self) -> bool {
        match self.phase {
            _ if self.life.once.observes => false,
            Phase::New | Phase::Leaving | Phase::Left => false,
            Phase::Join => self.cx.round == Round(0) && self.catch_up.idle(),
            _ => true,
        }
    }

    /// Push-sum weights, fragment by fragment; empty except in gossip.
    pub fn weights(&self) -> Vec<f64> {
        self.exchange.push_sum().weights
    }

    /// Push-sum weight that is this peer's, over all fragments: in its parameters, its inbox, or
    /// on its way back into them. Pushed weight does not count, unless it is known to be lost.
    pub fn weight_held(&self) -> f64 {
        self.exchange.push_sum().held
    }

    /// How far it is with each neighbour and fragment; empty except in exchanges between two.
    pub fn standings(&self) -> Vec<Standing> {
        self.exchange.standings()
    }

    /// Slices and messages that wait for their round: bounded by `limits`.
    pub fn inbox_len(&self) -> usize {
        self.exchange.waiting()
    }
}

/// What the peer waits for, as its host shows it.
impl Peer {
    /// Every wait that is under way, with the peers that it is for. At most one of a kind for each open
    /// fragment. It changes nothing, and the same inputs give the same answer.
    pub fn waiting(&self) -> Vec<Waiting> {
        let waits = self.cx.waits.iter();
        let waits = waits.map(|((wait, fragment), (since, allowed))| {
            let mut peers = self.awaited(*wait, *fragment);
            peers.retain(|peer| *peer != self.cx.me());
            peers.sort_unstable();
            peers.dedup();
            Waiting {
                wait: *wait,
                fragment: *fragment,
                peers,
                since: *since,
                deadline: *since + *allowed,
            }
        });
        waits.collect()
    }

    fn awaited(&self, wait: Wait, fragment: FragmentId) -> Vec<PeerId> {
        match wait {
            Wait::Peers => self.missing_counterparts(),
            Wait::State => self.donors_awaited(),
            _ => self.exchange.awaited(&self.cx, wait, fragment),
        }
    }

    /// Peers that a state or a past round is expected from.
    fn donors_awaited(&self) -> Vec<PeerId> {
        match &self.catch_up {
            CatchUp::Asking { asked, .. } => asked.iter().copied().collect(),
            CatchUp::Vouching(vouching) => vouching.donors.clone(),
            CatchUp::Fetching(_, donors)
            | CatchUp::Keeping(_, _, donors)
            | CatchUp::Loading(_, _, donors) => donors.clone(),
            CatchUp::Replaying(replay) => replay.donor.into_iter().collect(),
            CatchUp::Idle => Vec::new(),
        }
    }
}

/// What the peers of the run agree on.
impl Peer {
    /// Which blocks of data are to be trained, where the peers agree on that.
    pub fn ledger(&self) -> &Ledger {
        &self.cx.data.ledger
    }

    /// The peers that have other data than this one, where the peers agree on the data.
    pub fn with_other_data(&self) -> Vec<PeerId> {
        let pool = self.cx.pool();
        pool.map_or(Vec::new(), |pool| self.cx.data.ledger.outside(pool))
    }

    /// What the peers agree on about their training loss or their waits, where the pace follows them.
    pub fn losses(&self) -> Option<&Losses> {
        self.cx.kept(&self.cx.data.losses)
    }

    /// What the peers agree on about the codec, where they choose it.
    pub fn chosen(&self) -> Option<&Chosen> {
        self.cx.kept(&self.cx.data.chosen)
    }

    /// The codec that the members have chosen for this round, where they choose it.
    pub fn chosen_codec(&self) -> Option<Rung> {
        let ladder = self.cx.plan.agreement.ladder.as_ref()?;
        Some(*self.chosen()?.codec(ladder))
    }

    /// What the peers agree on about each other's contributions, where they score them.
    pub fn ratings(&self) -> Option<&Ratings> {
        self.cx.kept(&self.cx.data.ratings)
    }

    /// The pace of the run. While the owner has given a number of inner steps, the plan has another one.
    pub fn configured_pace(&self) -> Pace {
        self.cx.directed.configured().1
    }

    /// How much a peer trains in this round; in a balanced round, at most.
    pub fn budget(&self) -> StepBudget {
        self.cx.budget()
    }
}

/// Something that happened, as the driver tells it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Input {
    /// The first input.
    Start {
        /// What an earlier life of this peer saved, if anything.
        snapshot: Option<Snapshot>,
        /// Hashes of the Executor's anchor, one per fragment.
        digests: Vec<Digest>,
        /// What earlier lives of this peer put out as [`Output::Opened`],
        /// oldest first.
        opened: Vec<Base>,
    },
    /// A control message from a linked peer.
    Received {
        /// From whom (authenticated by the link).
        from: PeerId,
        /// What.
        message: Message,
    },
    /// Bytes from a linked peer that are not a message.
    Malformed {
        /// From whom.
        from: PeerId,
        /// The error of their decoding.
        error: WireError,
    },
    /// This peer's own record changed (new address, new signature).
    Record(PeerRecord),
    /// A link is up.
    LinkUp(PeerId),
    /// A link is down.
    LinkDown(PeerId),
    /// A link was measured.
    Measured {
        /// To whom.
        peer: PeerId,
        /// Round-trip time.
        rtt: Duration,
        /// Bytes per second that the link carried.
        rate: u64,
    },
    /// The Executor's answer to an order.
    Done {
        /// The order.
        order: OrderId,
        /// The answer.
        done: Done,
    },
    /// A slice arrived and its bytes are at the Executor's disposal.
    Arrived {
        /// From whom.
        from: PeerId,
        /// Its name.
        slice: SliceId,
        /// What its header said.
        meta: SliceMeta,
        /// Hash of its bytes; only for aggregates.
        digest: Option<Digest>,
    },
    /// A push ended.
    Pushed {
        /// To whom.
        to: PeerId,
        /// What.
        slice: SliceId,
        /// How.
        outcome: PushOutcome,
    },
    /// A fetched slice or state is at the Executor's disposal.
    Fetched {
        /// What.
        what: FetchId,
        /// Header of a fetched slice.
        meta: Option<SliceMeta>,
        /// Hash of a fetched slice's bytes.
        digest: Option<Digest>,
    },
    /// A fetch failed.
    FetchFailed {
        /// What.
        what: FetchId,
    },
    /// The deadline that `poll_timeout` gave has passed. Too early or too late is harmless.
    Timeout,
    /// Leave politely: tell peers, write a checkpoint.
    Leave,
    /// The backward pass of a training order has completed a fragment. Its gradient is in the
    /// Executor; the answer to the order follows later.
    Cut {
        /// The training order.
        order: OrderId,
        /// Which fragment.
        fragment: FragmentId,
        /// Samples of the batch.
        samples: u64,
    },
    /// By its certificate, this peer only observes: it takes part in no round. Follows the `LinkUp`
    /// of another peer; comes before `Start` where it is this peer itself.
    Observes(PeerId),
    /// The owner's directives that the host knows, whose signatures it has checked. They come before `Start`
    /// where it knows any by then, and again with each new one.
    Directives(Vec<Directive>),
}

/// A finished evaluation with the round it belongs to, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluated {
    /// The parameters at the start of this round.
    pub round: crate::Round,
    /// Its result.
    pub evaluation: Evaluation,
}
