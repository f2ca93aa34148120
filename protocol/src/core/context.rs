//! What all parts of a peer share: its settings and life, the clock, the view, the anchor, its roll and data,
//! what the owner has changed, and the queue of outputs.

use crate::core::deadlines::{Deadlines, Timer, Timers};
use crate::core::view::View;
use crate::core::{Event, Output, Wait};
use crate::data::Mine;
use crate::limits::{ACCUSED_MAX, OUTPUTS_KEPT, OUTPUTS_MAX, REST_ROUNDS};
use crate::roll::{RoundNote, SharedRolls};
use crate::schedule::{AgreedLinks, SENDS_WAITING_MAX};
use crate::sorted::{SortedMap, SortedSet};
use crate::wire::Message;
use crate::{
    Base, Chosen, Dealing, Digest, Directive, Directives, FragmentId, InForce, Ledger, Loss,
    Losses, Order, OrderId, Pace, Participants, PeerId, Plan, PlanHash, Pool, Proof, PushOutcome,
    Ratings, Roll, Round, Score, SliceId, SliceMeta, Source, StepBudget, Taken, Time, WorkError,
};
use core::time::Duration;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Shared by the parts of one peer. An exchange sees nothing else of the peer: it reads and acts
/// through this alone. The parts of the peer itself are methods of `Peer` and call each other.
pub(crate) struct Context {
    pub(crate) config: PeerConfig,
    pub(crate) plan: Plan,
    pub(crate) directed: Directed,
    pub(crate) now: Time,
    pub(crate) round: Round,
    pub(crate) this_life: ThisLife,
    pub(crate) rolls: Rolls,
    pub(crate) data: Data,
    pub(crate) anchor: Anchor,
    pub(crate) view: View,
    pub(crate) timers: Timers,
    pub(crate) deadlines: Deadlines,
    pub(crate) rng: ChaCha8Rng,
    pub(super) outbox: Outbox,
    /// Waits under way, with when each began and how long it may take.
    pub(crate) waits: SortedMap<(Wait, FragmentId), (Time, Duration)>,
}

/// Peers to be judged once the input that is being handled has been.
#[derive(Default)]
struct Blamed {
    /// They broke a rule.
    accused: Vec<(PeerId, String)>,
    /// They lie; with the proof, where others can check it.
    convicted: Vec<(PeerId, String, Option<Box<Proof>>)>,
}

/// Outputs that the driver has not taken yet, the number of the next order among them, and whom to judge.
#[derive(Default)]
pub(super) struct Outbox {
    outputs: VecDeque<Output>,
    next_order: OrderId,
    blamed: Blamed,
    pub(super) sends: Sends,
}

impl Context {
    /// The peers that take part as far as this one knows, itself among them.
    pub(crate) fn participants(&self) -> Participants {
        let others = self.view.live().map(|(peer, _)| peer);
        Participants::new(self.me(), others)
    }

    pub(crate) fn new(config: PeerConfig, plan: Plan) -> Self {
        let mut seed = [0u8; 32];
        let (run, me) = (plan.run.as_bytes(), config.me);
        let bytes = [&config.seed.to_le_bytes()[..], run, me.as_bytes()].concat();
        seed.copy_from_slice(Digest::of(&bytes).as_bytes());
        let view = View::new(&plan);
        Self {
            directed: Directed::new(&plan),
            deadlines: Deadlines::new(plan.deadlines),
            rolls: Rolls::default(),
            data: Data::default(),
            anchor: Anchor::default(),
            config,
            plan,
            now: Time::ZERO,
            round: Round(0),
            this_life: ThisLife::default(),
            view,
            timers: Timers::default(),
            rng: ChaCha8Rng::from_seed(seed),
            outbox: Outbox::default(),
            waits: SortedMap::new(),
        }
    }

    /// Tells this life of the peer from earlier ones, in eight bits.
    pub(crate) fn life(&self) -> u8 {
        self.this_life.session as u8
    }

    pub(crate) fn me(&self) -> PeerId {
        self.config.me
    }

    /// How rounds deal a roll of this many places into cells, if the plan has cells.
    pub(crate) fn dealing(&self, places: usize) -> Option<Dealing> {
        Dealing::new(self.plan.agreement.grouping, self.plan.run, places)
    }

    /// From now on this roll is in force; none is known without one.
    pub(crate) fn hold(&mut self, roll: Option<Arc<Roll>>) {
        let place = roll
            .as_ref()
            .and_then(|roll| Some((roll, roll.place_of(self.me())?)));
        let linked = place.map(|(roll, place)| roll.linked(place, self.dealing(roll.len())));
        // A new counterpart is dialled at once, whenever its last link ended.
        for counterpart in self.rolls.hold(roll, linked.unwrap_or_default()) {
            if let Some(remote) = self.view.get_mut(counterpart) {
                remote.contact.dial_at = None;
            }
        }
    }

    /// A decided fragment is applied: its anchor has this hash. A part of the round's note may come with it.
    pub(crate) fn fragment_applied(&mut self, fragment: FragmentId, digest: Digest, note: &[u8]) {
        self.rolls.note.extend_from_slice(note);
        self.anchor.apply(self.round, fragment, digest);
    }

    /// One hash over all fragments' anchors.
    pub(crate) fn anchor(&self) -> Digest {
        self.anchor.digest()
    }

    /// The round that this peer is in, and the anchor that opens it.
    pub(crate) fn base(&self) -> Base {
        Base {
            round: self.round,
            anchor: self.anchor(),
        }
    }

    /// One hash over what members have in common beside the roll: anchor, rules, ledger.
    pub(crate) fn shared(&self) -> Digest {
        let ledger = &self.data.ledger;
        joint(self.start(), (!ledger.is_empty()).then(|| ledger.digest()))
    }

    /// What a peer says of its branch, or what this peer knows of its own, has changed.
    pub(crate) fn sort_sides(&mut self) {
        self.view.sort_sides(self.anchor());
    }

    pub(crate) fn put(&mut self, output: Output) {
        assert!(
            self.outbox.outputs.len() < OUTPUTS_MAX,
            "the driver does not drain outputs"
        );
        self.outbox.outputs.push_back(output);
    }

    /// Queues a push with the longest deadline that the plan allows.
    pub(crate) fn push(&mut self, to: PeerId, slice: SliceId, meta: SliceMeta, priority: u8) {
        let deadline = self.now + self.deadlines.ceiling();
        self.view.links.push(self.now, to, slice, meta.bytes);
        self.view.measured.push(self.now, to, slice, meta.bytes);
        self.put(Output::Push {
            to,
            slice,
            meta,
            priority,
            deadline,
        });
    }

    /// Begins to wait for these partners of a round, if there are any.
    pub(crate) fn await_partners(&mut self, partners: impl Iterator<Item = PeerId>) {
        let partners: Vec<PeerId> = partners.collect();
        if !partners.is_empty() {
            let allowed = self.deadlines.allow(Wait::Partners, partners);
            let deadline = self.wait(Wait::Partners, allowed);
            self.timers.set(Timer::Exchange, deadline);
        }
    }

    /// Waits for these peers ended in vain. Those that are still there may have slower links
    /// than the first deadline allows: they get more time.
    pub(crate) fn overdue(&mut self, wait: Wait, peers: impl IntoIterator<Item = PeerId>) {
        for peer in peers {
            // One that has left was not slow, and more time would not bring it back.
            if self.view.takes_part(peer) {
                self.deadlines.too_short(wait, peer);
            }
        }
    }

    /// For exchanges without common rounds: a peer that is further behind than this skips the rounds
    /// that it missed and continues with the round of the others.
    pub(crate) fn follow_the_others(&mut self, behind: u64) {
        let others = self.view.median_round();
        if others.since(self.round) > behind {
            // One before theirs: the round that now ends is counted after this.
            self.round = Round(others.0 - 1);
        }
    }

    pub(crate) fn take(&mut self) -> Option<Output> {
        let outputs = &mut self.outbox.outputs;
        if outputs.is_empty() {
            // A peer of a large swarm speaks to hundreds now and then.
            outputs.shrink_to(OUTPUTS_KEPT);
        }
        outputs.pop_front()
    }

    pub(crate) fn send(&mut self, to: PeerId, message: impl Into<Message>) {
        debug_assert!(to != self.config.me, "a message to oneself");
        let message = message.into();
        self.put(Output::Send { to, message });
    }

    pub(crate) fn emit(&mut self, event: Event) {
        self.put(Output::Emit(event));
    }

    /// Gives the Executor something to do.
    pub(crate) fn order(&mut self, order: Order) -> OrderId {
        let id = self.outbox.next_order;
        self.outbox.next_order = id.next();
        self.put(Output::Order { id, order });
        id
    }

    /// Orders the bytes of a slice of a fragment that is cut into `of` shards.
    pub(crate) fn encode(&mut self, slice: SliceId, of: u16, from: Source) -> OrderId {
        self.order(Order::Encode { slice, of, from })
    }

    /// A slice's bytes are not needed any more.
    pub(crate) fn release(&mut self, slice: SliceId) {
        self.order(Order::Release { slice });
    }

    /// A peer broke a rule, but not with the present input: it is judged after that.
    pub(crate) fn accuse(&mut self, peer: PeerId, what: String) {
        if peer != self.config.me && self.outbox.blamed.accused.len() < ACCUSED_MAX {
            self.outbox.blamed.accused.push((peer, what));
        }
    }

    /// A peer lies, as this one can tell and others cannot: it is cut off after the present input.
    pub(crate) fn convict(&mut self, peer: PeerId, what: String) {
        if peer != self.config.me && self.outbox.blamed.convicted.len() < ACCUSED_MAX {
            self.outbox.blamed.convicted.push((peer, what, None));
        }
    }

    /// Signed statements prove that their peer lies: as [`Context::convict`], with the proof.
    pub(crate) fn prove(&mut self, proof: Proof) {
        let (peer, what) = (proof.by(), proof.what());
        if peer != self.config.me && self.outbox.blamed.convicted.len() < ACCUSED_MAX {
            let proof = Some(Box::new(proof));
            self.outbox.blamed.convicted.push((peer, what, proof));
        }
    }

    /// The next proven liar.
    pub(crate) fn convicted(&mut self) -> Option<(PeerId, String, Option<Box<Proof>>)> {
        self.outbox.blamed.convicted.pop()
    }

    /// This peer's contribution to a round could not be made. Said in the first of such rounds in a row, and in
    /// every hundredth: it would be the same each time.
    pub(crate) fn contribution_failed(&mut self, round: Round, error: &WorkError) {
        let before = self.this_life.failed_in.replace(round);
        self.this_life.rests_until = Some(Round(round.0.saturating_add(REST_ROUNDS)));
        let again = before.is_some_and(|before| round.since(before) <= 1);
        if before != Some(round) && (!again || round.0.is_multiple_of(100)) {
            let then = match self.plan.agreement.whole {
                true => format!(
                    "has no result, and to the next {REST_ROUNDS} this daemon brings nothing, so that they have one"
                ),
                false => "goes on without this daemon's contribution".to_owned(),
            };
            let what = format!("{error}: round {round} {then}");
            self.emit(Event::WorkFailed { what });
        }
    }

    /// This peer brings nothing to the present round: it would leave all members without a result.
    pub(crate) fn rests(&self) -> bool {
        let until = self.this_life.rests_until.max(self.config.masked);
        self.plan.agreement.whole && until >= Some(self.round)
    }

    /// The next accusation to judge.
    pub(crate) fn accused(&mut self) -> Option<(PeerId, String)> {
        self.outbox.blamed.accused.pop()
    }

    /// A peer did not do its part: it is not waited for until it speaks again.
    pub(crate) fn suspect(&mut self, peer: PeerId) {
        if self.view.suspect(peer) {
            let round = self.round;
            self.emit(Event::Suspected { peer, round });
        }
    }

    /// Starts the clock of a wait, once; its deadline is never in the past, and grows if it was.
    pub(crate) fn wait(&mut self, wait: Wait, allowed: Duration) -> Time {
        self.wait_in(FragmentId(0), wait, allowed)
    }

    /// [`Context::wait`] for what every fragment waits for by itself.
    pub(crate) fn wait_in(&mut self, part: FragmentId, wait: Wait, allowed: Duration) -> Time {
        let now = self.now;
        let clock = self.waits.entry((wait, part)).or_insert((now, allowed));
        let (since, granted) = clock;
        if *since + *granted <= now {
            *granted = now.since(*since) + allowed;
        }
        *since + *granted
    }

    /// Ends a wait, if it was under way, and reports how long it took.
    pub(crate) fn waited(&mut self, wait: Wait) {
        self.waited_in(FragmentId(0), wait);
    }

    /// [`Context::waited`] for what every fragment waits for by itself.
    pub(crate) fn waited_in(&mut self, part: FragmentId, wait: Wait) {
        if let Some((since, allowed)) = self.waits.remove(&(wait, part)) {
            let waited = self.now.since(since);
            self.emit(Event::Waited {
                wait,
                waited,
                allowed,
                // A wait can end without an answer and before its time: the peer that is waited for has left.
                expired: waited >= allowed,
            });
        }
    }
}

/// How the owner's directives change what a peer goes by.
impl Context {
    /// The owner's directives, as the host has checked them. Returns those that are new.
    pub(crate) fn direct(&mut self, directives: Vec<Directive>) -> Vec<Directive> {
        let new = self.directed.all.merge(directives);
        // The number of rounds is no rule of a round: it counts at once.
        let rounds = self.directed.all.in_force(self.round).rounds;
        self.plan.rounds = rounds.unwrap_or(self.directed.first.0);
        new
    }

    /// A round begins: the plan takes on the changes that are in force in it. All peers leave out a change
    /// that this plan cannot carry out, because all have the same plan.
    pub(crate) fn take_directives(&mut self) {
        let mut first = self.plan.clone();
        (first.rounds, first.budget, first.synchronization.pace) = self.directed.first;
        let mut in_force = self.directed.all.in_force(self.round);
        let plan = in_force.applied_to(&first).unwrap_or_else(|_| {
            in_force.training.inner_steps = None;
            first.rounds = in_force.rounds.unwrap_or(first.rounds);
            first
        });
        self.plan = plan;
        self.directed.in_force = in_force;
    }

    /// Members claim their losses or waits, because the pace of the run follows them.
    fn follows_losses(&self) -> bool {
        self.directed.configured().1.is_agreed()
    }

    /// Members claim a number with their contributions, for the pace or for the codec.
    pub(crate) fn says_losses(&self) -> bool {
        self.follows_losses() || self.plan.chooses_codecs()
    }

    /// How this peer begins its round, in one hash: its anchor and the owner's rules for the round, where there
    /// are any. Peers form a group with those that begin alike.
    pub(crate) fn start(&self) -> Digest {
        joint(self.anchor(), self.directed.in_force.rules())
    }

    /// A peer that begins a round like this has this anchor, as far as this peer can tell: it may know
    /// fewer directives than this one, or this one may have heard of them since the round began.
    pub(crate) fn starts_from(&self, anchor: Digest, round: Round, start: Digest) -> bool {
        let rules = self.directed.all.in_force(round).rules();
        let known = [None, rules, self.directed.in_force.rules()];
        known.iter().any(|rules| joint(anchor, *rules) == start)
    }
}

/// Pushes that begin in their turn, and what a peer learns of links when pushes end.
impl Context {
    pub(crate) fn push_in_turn(
        &mut self,
        turn: SendTurn,
        to: PeerId,
        slice: SliceId,
        send: Waiting,
    ) {
        if !self.view.get(to).is_some_and(|remote| remote.linked) {
            // Nothing waits for what cannot arrive.
            self.push(to, slice, send.meta, send.priority);
            return;
        }
        self.outbox.sends.add(turn, to, slice, send);
        self.send_next();
    }

    /// A push ended: the next ones may begin.
    pub(crate) fn push_ended(&mut self, to: PeerId, slice: SliceId, outcome: PushOutcome) {
        self.view.links.pushed(self.now, to, slice, outcome);
        self.view.measured.pushed(self.now, to, slice, outcome);
        self.outbox.sends.ended(to, slice);
        self.send_next();
    }

    /// A peer's link is gone: no deadline goes by it, and others do not wait for sends to it.
    pub(crate) fn forget_link(&mut self, peer: PeerId) {
        self.deadlines.forget(peer);
        self.outbox.sends.link_gone(peer);
        self.send_next();
    }

    fn send_next(&mut self) {
        let longest = self.deadlines.ceiling();
        while let Some((to, slice, send)) = self.outbox.sends.next(self.now, longest) {
            self.push(to, slice, send.meta, send.priority);
        }
    }

    /// These sends wait for no turn any more: they begin now.
    pub(crate) fn send_now(&mut self, of: impl Fn(&SliceId) -> bool) {
        for (to, slice, send) in self.outbox.sends.take(of) {
            self.push(to, slice, send.meta, send.priority);
        }
    }

    /// These sends are of no use any more.
    pub(crate) fn forget_sends(&mut self, of: impl Fn(&SliceId) -> bool) {
        self.outbox.sends.take(of);
    }

    pub(crate) fn propose_links(&mut self, members: &[PeerId]) -> Option<AgreedLinks> {
        let links = self.plan.schedule.link_plan();
        let links = links.filter(|_| self.plan.names_links())?;
        let of = (links, self.plan.largest_aggregate());
        Some(self.view.measured.propose(of, self.round, members))
    }
}

/// The value of [`PeerConfig::evaluate_every`] of a peer that has nothing to evaluate with.
pub const EVALUATE_NEVER: u64 = u64::MAX;

/// Settings of one peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerConfig {
    /// Who this peer is.
    pub me: PeerId,
    /// Seed of its only source of randomness.
    pub seed: u64,
    /// How many peers, itself included, a fresh run waits for before its first round.
    pub start_with: usize,
    /// How many others it trained with at the end of its earlier life: a peer with a checkpoint waits
    /// for them where no run is under way.
    pub companions: usize,
    /// How long it waits for them, or, when it joins, for a peer that has a state.
    pub start_wait: Duration,
    /// Set to join a run that others began: it trains nothing before it has their state.
    pub join: bool,
    /// How often it writes a checkpoint; `None` for only at the end.
    pub save_every: Option<Duration>,
    /// Rounds between evaluations on held-out data; zero for only at the end, [`EVALUATE_NEVER`] for none.
    pub evaluate_every: u64,
    /// The most of the time, in percent, that these evaluations may take: then some of them are left out. Zero for
    /// no bound.
    pub evaluate_percent: u8,
    /// Set to leave without being told once the plan's rounds are done.
    pub leave_when_finished: bool,
    /// The data set that it shares with others, if it does.
    pub pool: Option<Pool>,
    /// The last round for which an earlier life masked deltas: up to it, this peer contributes nothing.
    pub masked: Option<Round>,
}

/// What tells this life of a peer from others.
#[derive(Debug, Default)]
pub(crate) struct ThisLife {
    /// Tells it from earlier ones. Statements of an earlier life count in no group of this one.
    pub(crate) session: u64,
    /// Set until this peer is in a group: it may not know all peers yet.
    pub(crate) newcomer: bool,
    /// The last round that this peer's contribution could not be made for.
    pub(crate) failed_in: Option<Round>,
    /// The last round to which this peer brings nothing, where one that fails would leave all without a result.
    pub(crate) rests_until: Option<Round>,
}

/// The roll of a swarm that has one.
#[derive(Debug, Default)]
pub(crate) struct Rolls {
    /// Who takes part in the round.
    pub(crate) roll: Option<Arc<Roll>>,
    /// What the round has decided about the next one.
    pub(crate) note: Vec<u8>,
    /// Those that other peers of this process hold.
    pub(crate) shared: SharedRolls,
    /// The peers of this one's row and column, or of its cells.
    counterparts: Arc<SortedSet<PeerId>>,
}

impl Rolls {
    /// This roll is in force, in which this peer has these counterparts; returns those that are new.
    pub(crate) fn hold(
        &mut self,
        roll: Option<Arc<Roll>>,
        counterparts: SortedSet<PeerId>,
    ) -> Vec<PeerId> {
        let fresh = counterparts
            .difference(&self.counterparts)
            .copied()
            .collect();
        (self.roll, self.counterparts) = (roll, Arc::new(counterparts));
        fresh
    }

    /// A peer of this one's row, column or cells.
    pub(crate) fn is_counterpart(&self, peer: PeerId) -> bool {
        self.counterparts.contains(&peer)
    }

    pub(crate) fn counterparts(&self) -> impl Iterator<Item = PeerId> {
        self.counterparts.iter().copied()
    }

    /// All of them, to go through while the rest of the context changes.
    pub(crate) fn all_counterparts(&self) -> Arc<SortedSet<PeerId>> {
        self.counterparts.clone()
    }

    /// What the round's note says, if the round has one. All peers have the same bytes, so a note that cannot
    /// be read changes nothing at any of them.
    pub(crate) fn take_note(&mut self) -> Option<RoundNote> {
        // Taken, so that no later round reads it again.
        let note = std::mem::take(&mut self.note);
        (!note.is_empty()).then(|| RoundNote::from_bytes(&note).unwrap_or_default())
    }
}

/// Who trains which data, and with which loss, where the peers agree on it.
#[derive(Debug, Default)]
pub(crate) struct Data {
    pub(crate) ledger: Ledger,
    /// What this peer trains.
    pub(crate) mine: Mine,
    /// The statement about that data in its contribution to the round.
    pub(crate) taken: Option<Taken>,
    /// The loss that it says with its contribution, where the pace follows losses.
    pub(crate) loss: Option<Loss>,
    pub(crate) losses: Losses,
    /// The codec of the round, where members choose it by waits.
    pub(crate) chosen: Chosen,
    pub(crate) ratings: Ratings,
    /// The scores that the members of a round agreed on, until the round is over.
    pub(crate) judged: Option<(Round, Vec<(PeerId, Score)>)>,
}

/// What the owner has changed of the plan. `Context::plan` is the plan with these changes.
#[derive(Debug)]
pub(crate) struct Directed {
    /// Hash of the plan without changes, which peers compare.
    pub(crate) plan_hash: PlanHash,
    pub(super) first: (u64, StepBudget, Pace),
    pub(crate) all: Directives,
    /// The changes in force in the peer's round: they stay the same within a round.
    pub(crate) in_force: InForce,
}

impl Directed {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            plan_hash: plan.hash(),
            first: (plan.rounds, plan.budget, plan.synchronization.pace),
            all: Directives::default(),
            in_force: InForce::default(),
        }
    }

    pub(crate) const fn configured(&self) -> (StepBudget, Pace) {
        let (_, budget, pace) = self.first;
        (budget, pace)
    }

    /// A round must not begin.
    pub(crate) fn pauses(&self, round: Round) -> bool {
        self.all.in_force(round).paused.is_some()
    }
}

/// One hash over both; the first one where there is no second.
pub(super) fn joint(one: Digest, two: Option<Digest>) -> Digest {
    two.map_or(one, |two| {
        Digest::of(&[*one.as_bytes(), *two.as_bytes()].concat())
    })
}

/// Hashes of the parameters, fragment by fragment.
#[derive(Debug, Default)]
pub(crate) struct Anchor {
    digests: Vec<Digest>,
    /// The fragments that this round has changed, with their hashes before that.
    changed: (Round, SortedMap<FragmentId, Digest>),
}

impl Anchor {
    /// Parameters that no round has changed yet.
    pub(crate) fn new(digests: Vec<Digest>) -> Self {
        Self {
            digests,
            ..Self::default()
        }
    }

    pub(crate) fn apply(&mut self, round: Round, fragment: FragmentId, digest: Digest) {
        let Some(slot) = self.digests.get_mut(usize::from(fragment.0)) else {
            return;
        };
        let before = std::mem::replace(slot, digest);
        if self.changed.0 != round {
            self.changed = (round, SortedMap::new());
        }
        if before != digest {
            self.changed.1.insert(fragment, before);
        }
    }

    pub(crate) fn has_changed(&self, round: Round, fragment: FragmentId) -> bool {
        self.changed.0 == round && self.changed.1.contains_key(&fragment)
    }

    /// One hash over all fragments.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of_all(&self.digests)
    }

    /// The same with what this round has changed as it was. Where the round has changed a fragment twice, no
    /// peer has had such parameters, or those between the two changes.
    pub(crate) fn before(&self, round: Round) -> Digest {
        let mut digests = self.digests.clone();
        for (fragment, before) in self.changed.1.iter().filter(|_| self.changed.0 == round) {
            digests[usize::from(fragment.0)] = *before;
        }
        Digest::of_all(&digests)
    }
}

/// When a send's turn is: earlier rounds first, then what its fragment's place says, then its place in the
/// schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SendTurn {
    pub(crate) round: Round,
    pub(crate) needed: u8,
    pub(crate) fragment: FragmentId,
    /// Its place among its sender's sends of the fragment.
    pub(crate) place: u16,
}

/// A send that waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Waiting {
    pub(crate) meta: SliceMeta,
    pub(crate) priority: u8,
    /// Bytes that may be under way together with it.
    pub(crate) window: u64,
}

/// A send with its receiver.
pub(crate) type Due = (PeerId, SliceId, Waiting);

/// Sends that go one after another, in the order that a schedule found for them.
///
/// A send begins when no other is under way, or while those under way and itself are within a window of bytes;
/// the first in the order begins first. Other pushes do not wait and are not waited for.
#[derive(Debug, Default)]
pub(crate) struct Sends {
    waiting: BTreeMap<(SendTurn, PeerId, SliceId), Waiting>,
    under_way: BTreeMap<(PeerId, SliceId), (Time, u64)>,
}

impl Sends {
    pub(crate) fn add(&mut self, turn: SendTurn, to: PeerId, slice: SliceId, send: Waiting) {
        self.waiting.insert((turn, to, slice), send);
    }

    pub(crate) fn ended(&mut self, to: PeerId, slice: SliceId) {
        self.under_way.remove(&(to, slice));
    }

    /// The next send that may begin. One that has not been answered for `longest` is not waited for.
    pub(crate) fn next(&mut self, now: Time, longest: Duration) -> Option<Due> {
        self.under_way
            .retain(|_, (began, _)| *began + longest > now);
        let first = self.waiting.first_entry()?;
        let bytes: u64 = self.under_way.values().map(|(_, bytes)| bytes).sum();
        let send = *first.get();
        let fits = bytes.saturating_add(send.meta.bytes) <= send.window;
        if !self.under_way.is_empty() && !fits && self.waiting.len() <= SENDS_WAITING_MAX {
            return None;
        }
        let ((_, to, slice), send) = self.waiting.pop_first()?;
        self.under_way.insert((to, slice), (now, send.meta.bytes));
        Some((to, slice, send))
    }

    /// A peer's link is gone: sends to it that are under way are not waited for, and the others are dropped.
    pub(crate) fn link_gone(&mut self, peer: PeerId) {
        self.under_way.retain(|(to, _), _| *to != peer);
        self.waiting.retain(|(_, to, _), _| *to != peer);
    }

    /// Takes the sends that wait and are not to wait any more.
    pub(crate) fn take(&mut self, of: impl Fn(&SliceId) -> bool) -> Vec<Due> {
        let taken = self.waiting.extract_if(.., |(_, _, slice), _| of(slice));
        taken
            .map(|((_, to, slice), send)| (to, slice, send))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_that_is_applied_in_part_still_tells_how_it_began() {
        let [a, b, c] = [b"a", b"b", b"c"].map(|bytes| Digest::of(bytes));
        let mut anchor = Anchor::new(vec![a, b]);
        let (first, round) = (anchor.digest(), Round(3));
        assert_eq!(anchor.before(round), first);
        anchor.apply(round, FragmentId(1), c);
        let second = anchor.digest();
        assert!(second != first && anchor.before(round) == first);
        assert!(anchor.has_changed(round, FragmentId(1)));
        // Void in that round.
        anchor.apply(round, FragmentId(0), a);
        anchor.apply(round, FragmentId(1), c);
        assert!(!anchor.has_changed(round, FragmentId(0)));
        assert_eq!(anchor.before(round), first);
        // The same fragment again, as in a second group of the round, which began with what the first had made.
        anchor.apply(round, FragmentId(1), a);
        assert_eq!(anchor.before(round), second);
        // The next round begins with what is here.
        assert_eq!(anchor.before(round.next()), anchor.digest());
        anchor.apply(round.next(), FragmentId(0), c);
        assert!(!anchor.has_changed(round, FragmentId(1)));
    }
}

#[cfg(test)]
mod sends_tests {
    use super::*;
    use crate::id::tests::peer;
    use crate::{Attempt, GroupTag, Part, Tag};

    fn slice(fragment: u16, shard: u16) -> SliceId {
        SliceId {
            round: Round(1),
            fragment: FragmentId(fragment),
            part: Part::Contribution,
            shard,
            origin: peer(0),
            attempt: Attempt::default(),
        }
    }

    fn add(sends: &mut Sends, place: u16, bytes: u64, window: u64) {
        let turn = SendTurn {
            round: Round(1),
            needed: 0,
            fragment: FragmentId(0),
            place,
        };
        let tag = Tag::Contribution {
            group: GroupTag::from_bits(1),
        };
        let send = Waiting {
            meta: SliceMeta { of: 9, bytes, tag },
            priority: 1,
            window,
        };
        sends.add(turn, peer(place as u8), slice(0, place), send);
    }

    const LONG: Duration = Duration::from_secs(60);

    fn begin(sends: &mut Sends, now: u64) -> Vec<u16> {
        let next = || sends.next(Time::from_nanos(now), LONG);
        std::iter::from_fn(next)
            .map(|(_, slice, _)| slice.shard)
            .collect()
    }

    #[test]
    fn what_is_on_its_way_to_a_peer_that_is_gone_is_not_waited_for() {
        let mut sends = Sends::default();
        for place in [1, 2, 3] {
            add(&mut sends, place, 100, 0);
        }
        assert_eq!(begin(&mut sends, 1), [1]);
        sends.link_gone(peer(2));
        assert_eq!(begin(&mut sends, 1), [] as [u16; 0], "another one waits");
        sends.link_gone(peer(1));
        assert_eq!(begin(&mut sends, 1), [3]);
    }

    #[test]
    fn one_begins_after_another_in_the_order_of_places() {
        let mut sends = Sends::default();
        for place in [3, 1, 2] {
            add(&mut sends, place, 100, 0);
        }
        assert_eq!(begin(&mut sends, 1), [1]);
        assert_eq!(begin(&mut sends, 1), [] as [u16; 0]);
        add(&mut sends, 0, 100, 0);
        sends.ended(peer(1), slice(0, 1));
        assert_eq!(begin(&mut sends, 1), [0], "it came later and is first");
        sends.ended(peer(7), slice(0, 7));
        assert_eq!(begin(&mut sends, 1), [] as [u16; 0], "another push ended");
    }

    #[test]
    fn short_ones_share_a_window() {
        let mut sends = Sends::default();
        for place in 0..5 {
            add(&mut sends, place, 100, 250);
        }
        assert_eq!(begin(&mut sends, 1), [0, 1]);
        sends.ended(peer(0), slice(0, 0));
        assert_eq!(begin(&mut sends, 1), [2]);
    }

    #[test]
    fn one_that_is_never_answered_does_not_stop_the_others() {
        let mut sends = Sends::default();
        add(&mut sends, 0, 100, 0);
        add(&mut sends, 1, 100, 0);
        assert_eq!(begin(&mut sends, 1), [0]);
        assert_eq!(begin(&mut sends, LONG.as_nanos() as u64 + 1), [1]);
    }

    #[test]
    fn those_of_a_fragment_can_be_taken_and_too_many_do_not_wait() {
        let mut sends = Sends::default();
        for place in 0..4 {
            add(&mut sends, place, 100, 0);
        }
        let taken = sends.take(|slice| slice.shard % 2 == 1);
        let taken: Vec<u16> = taken.into_iter().map(|(_, slice, _)| slice.shard).collect();
        assert_eq!(taken, [1, 3]);
        assert_eq!(begin(&mut sends, 1), [0]);
        for place in 10..12 + SENDS_WAITING_MAX as u16 {
            add(&mut sends, place, 100, 0);
        }
        assert_eq!(begin(&mut sends, 1), [2, 10, 11]);
    }
}
