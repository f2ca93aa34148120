//! The peer. Its inputs are time, messages and finished work; its outputs are messages, deadlines
//! and work orders.
//!
//! This file dispatches inputs and holds no other logic: `membership` knows which peers are there,
//! `round` leads through a round, `catch_up` takes over a state (`branch` keeps what that replaces),
//! `donor` gives one, and the exchanges are in `exchange`. The state of these parts is in `life`, `lag` and `asked`.

mod ahead;
mod apply;
mod asked;
mod balance;
mod balancing;
mod blame;
mod branch;
mod catch_up;
mod chosen;
mod clocks;
mod cut;
mod directed;
mod donor;
mod donors;
mod found;
mod input;
mod lag;
mod leave;
mod life;
mod membership;
mod muster;
mod observe;
mod paced;
mod rated;
mod rates;
mod replay;
mod rest;
mod resting;
mod rolled;
mod round;
mod shared;
mod shown;
mod snapshot;
mod spare;
mod waiting;
mod waits;
mod witnesses;

pub use input::{Evaluated, Input};
pub use snapshot::{SNAPSHOT_VERSION, Snapshot};

use crate::core::context::Context;
use crate::core::timers::Timer;
use crate::core::{FetchId, Output, PeerConfig, PeerError, Phase};
use crate::exchange::{self, Arrived, Exchange, GridMessage, Signal};
use crate::roll::{Founding, SharedRolls};
use crate::wire::{ExchangeMessage, MembershipMessage, Message, Reason, TransferMessage};
use crate::{Digest, Done, Order, OrderId, Part, PeerId, Plan, SliceId, SliceMeta, Time, Topology};
use asked::Donor;
use balance::Balance;
use lag::{CatchUp, Helpers, Offer};
use life::Life;
use resting::Rest;
use waits::Waits;

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
    balance: Balance,
    waits: Waits,
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
            balance: Balance::default(),
            waits: Waits::default(),
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
            let _ = self.judge(peer, Err(PeerError::Unexpected { what }));
        }
        while let Some((peer, what, proof)) = self.cx.convicted() {
            self.convict(peer, what, proof);
        }
        result
    }

    fn dispatch(&mut self, input: Input) -> Result<(), PeerError> {
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
                self.signal(Signal::Pushed { to, slice, outcome });
            }
            Input::Fetched { what, digest, .. } => self.fetched(what, digest),
            Input::FetchFailed { what } => self.fetch_failed(what),
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

    /// A slice arrived. Slices from unknown or refused peers are rejected. The sender need not have
    /// said hello yet and may have said goodbye since: messages and slices overtake each other, and
    /// an acknowledged slice exists here only.
    fn arrived(
        &mut self,
        from: PeerId,
        slice: SliceId,
        meta: SliceMeta,
        digest: Option<Digest>,
    ) -> Result<(), PeerError> {
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
            self.cx.order(Order::Release { slice });
            Err(PeerError::Unexpected {
                what: "a slice that its sender did not make, or from an unknown peer".to_owned(),
            })
        };
        self.check_outcome();
        self.judge(from, result)
    }

    fn signal(&mut self, signal: Signal<'_>) {
        let result = self.exchange.signal(&mut self.cx, signal);
        debug_assert!(result.is_ok(), "only messages and slices can break rules");
        self.check_outcome();
    }

    fn received(&mut self, from: PeerId, message: &Message) -> Result<(), PeerError> {
        let result = match message {
            Message::Exchange(_) if self.only_observes(from) => Err(PeerError::Unexpected {
                what: "a message about a round from a peer that only observes".to_owned(),
            }),
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
            Message::Exchange(message) => match self.replays(from, message) {
                Some(decision) => self.replay_decision(decision),
                None => {
                    self.balance_other(from, message);
                    self.time_other(from, message);
                    self.exchange_said(from, message)
                }
            },
        };
        self.check_outcome();
        if self.cx.branch().is_some() {
            self.look_for_branches();
        }
        self.judge(from, result)
    }

    fn exchange_said(&mut self, from: PeerId, message: &ExchangeMessage) -> Result<(), PeerError> {
        let signal = Signal::Message { from, message };
        let result = self.exchange.signal(&mut self.cx, signal);
        if let ExchangeMessage::Grid(GridMessage::Placed { round }) = message {
            self.placed(from, *round);
        }
        result
    }

    fn membership(&mut self, from: PeerId, message: &MembershipMessage) -> Result<(), PeerError> {
        match message {
            MembershipMessage::Records(records) => return self.records(from, records),
            MembershipMessage::Rates(told) => return self.rates(from, told),
            MembershipMessage::Alive {
                round,
                ready,
                anchor,
                muster,
                branch,
            } => self.alive(
                from,
                *round,
                *ready,
                *anchor,
                (*muster, branch.as_deref().copied()),
            ),
            // Handled before the sender has to have greeted.
            MembershipMessage::Hello(_)
            | MembershipMessage::Goodbye(_)
            | MembershipMessage::Settings(_) => {}
        }
        Ok(())
    }

    fn transfer(&mut self, from: PeerId, message: &TransferMessage) -> Result<(), PeerError> {
        match message {
            TransferMessage::StateAsk { at_least } => self.state_asked(from, *at_least),
            TransferMessage::StateOffer { state, anchor } => {
                let (state, anchor) = (*state, *anchor);
                self.state_offered(from, Offer { state, anchor })?;
            }
            TransferMessage::AnchorAsk { round } => self.anchor_asked(from, *round),
            TransferMessage::Anchor { round, anchor } => self.anchor_said(from, *round, *anchor),
            TransferMessage::StateRefuse => self.state_refused(from),
            TransferMessage::HistoryAsk { began } => self.history_asked(from, *began),
            TransferMessage::HistoryRefuse { round } => self.history_refused(from, *round),
        }
        Ok(())
    }

    fn done(&mut self, order: OrderId, done: &Done) {
        if self.round_done(order, done) || self.catch_up_done(order, done) {
            return;
        }
        if self.donor_done(order, done) {
            return;
        }
        self.signal(Signal::Done { order, done });
    }

    fn fetched(&mut self, what: FetchId, digest: Option<Digest>) {
        if !self.catch_up_fetched(what, digest) {
            self.signal(Signal::Fetched { what, digest });
        }
    }

    fn fetch_failed(&mut self, what: FetchId) {
        if !self.catch_up_fetch_failed(what) {
            self.signal(Signal::FetchFailed { what });
        }
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
