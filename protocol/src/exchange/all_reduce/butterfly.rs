//! One fragment's butterfly all-reduce in one group: what is where, and what happens next.
//!
//! The work is split over three more files: `reduce` (contributions in, aggregates out), `agree`
//! (votes) and `repair` (what a ballot above zero does about missing shards).

use super::agree::Agreement;
use super::coordinate::Coordination;
use super::group::Group;
use super::reduce::Duty;
use super::relay::Relay;
use super::schedule::Program;
use crate::core::context::Context;
use crate::exchange::Ending;
use crate::wire::{Ballot, ShardVersion};
use crate::{
    Event, ExchangeKind, FragmentId, Members, Order, OrderId, PeerId, Round, Settlement, SliceId,
    SliceMeta, StoreId, Time, Wait,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An order whose answer is awaited.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    /// Encode this peer's contribution to a shard.
    Contribution(u16),
    /// Reduce a shard, in this attempt.
    Combine(u16, u8),
    /// Encode the aggregate of a shard, in this attempt.
    Aggregate(u16, u8),
    /// Add what a stage of the schedule brought.
    Fold(u16),
    /// Encode the value that this made.
    Value(u16),
}

/// What this peer does to end the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Waits for contributions to its shards.
    Collecting,
    /// Waits for aggregates and votes.
    Gathering,
    /// Takes part in a ballot above zero.
    Repairing,
}

/// Which version of a shard the current ballot is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) owner: usize,
    pub(super) attempt: u8,
    /// Known when the ballot keeps a version that some member holds.
    pub(super) exact: Option<ShardVersion>,
}

/// One fragment in one group.
#[derive(Debug)]
pub(super) struct Butterfly {
    pub(super) round: Round,
    pub(super) fragment: FragmentId,
    pub(super) group: Group,
    /// Parts that are voted on: shards, one a member, fewer when the fragment is shorter than the
    /// group or few own any; or the members' contributions, where they are gathered.
    pub(super) of: u16,
    /// Whether a part is a member's whole contribution, as it was encoded.
    pub(super) gathered: bool,
    pub(super) stage: Stage,
    /// Members that are still waited for.
    pub(super) hopeful: Members,
    pub(super) since: Time,
    pub(super) deadline: Time,
    pub(super) tasks: BTreeMap<OrderId, Task>,
    /// Encoded bytes of this peer's contribution to each shard.
    pub(super) encoded: BTreeMap<u16, u64>,
    /// Whose contributions are here, shard by shard.
    pub(super) here: BTreeMap<u16, Members>,
    /// Shards this peer reduces.
    pub(super) duties: BTreeMap<u16, Duty>,
    /// Versions this peer holds, shard by shard.
    pub(super) held: BTreeMap<u16, Vec<ShardVersion>>,
    pub(super) targets: Vec<Target>,
    /// How ballot zero reduces, where that is not directly.
    pub(super) relay: Option<Relay>,
    pub(super) agreement: Agreement,
    pub(super) coordination: Option<Coordination>,
    /// A coordinator's question that waits for this peer's duties to be done.
    pub(super) asked: Option<(PeerId, Ballot)>,
    /// Fetches under way.
    pub(super) fetching: BTreeSet<SliceId>,
    /// Slices whose bytes the Executor holds for this exchange.
    pub(super) slices: BTreeSet<SliceId>,
    /// What was pushed, and how often to whom once more.
    pub(super) metas: BTreeMap<SliceId, SliceMeta>,
    pub(super) retries: BTreeMap<(PeerId, SliceId), u8>,
    pub(super) ending: Option<Ending>,
    /// How often it was looked for what is decided and not here.
    pub(super) searches: u8,
    /// Who knows more: what is decided cannot be had any more.
    pub(super) missed: Option<PeerId>,
    /// Whether the peer has been told how it ended.
    pub(super) told: bool,
}

impl Butterfly {
    /// Starts. Members in `lost` were given up in another fragment of the round: no member waits
    /// for them once more.
    pub(super) fn new(
        cx: &mut Context,
        fragment: FragmentId,
        group: Group,
        program: Option<Arc<Program>>,
        lost: Members,
    ) -> Self {
        let len = cx.plan.fragment(fragment).map_or(1, |f| f.len);
        // A fragment shorter than the schedule's shards goes directly.
        let program = program.filter(|program| program.shards() as u64 <= len);
        let of = cx.plan.parts(len, group.len()) as u16;
        let owners = super::server::owners(cx, &group, of);
        let first = Ballot {
            number: 0,
            coordinator: group.peer(0),
        };
        let senders = program.as_ref().map_or(!Members::NONE, |p| p.neighbours());
        let peers = group
            .others()
            .filter(|(i, _)| senders.without(lost).has(*i));
        let peers = peers.map(|(_, p)| p);
        let allowed = match &program {
            Some(p) => cx.deadlines.allow_chain(Wait::Contributions, peers, p.hops),
            None => cx.deadlines.allow(Wait::Contributions, peers),
        };
        let direct = |s: u16| owners.get(usize::from(s)).copied().unwrap_or(0);
        let owner = |s: u16| {
            let scheduled = program.as_ref().map(|p| p.owner(s));
            scheduled.unwrap_or_else(|| direct(s))
        };
        let targets = (0..of)
            .map(|s| Target {
                owner: owner(s),
                attempt: 0,
                exact: None,
            })
            .collect();
        let relay = program.map(|program| Relay::new(program, !(lost & group.all()).is_empty()));
        let mut this = Self {
            round: cx.round,
            fragment,
            of,
            gathered: cx.plan.exchange == ExchangeKind::Gathered,
            stage: Stage::Collecting,
            hopeful: group.all().without(lost),
            since: cx.now,
            deadline: cx.wait_in(fragment, Wait::Contributions, allowed),
            tasks: BTreeMap::new(),
            encoded: BTreeMap::new(),
            here: BTreeMap::new(),
            duties: BTreeMap::new(),
            held: BTreeMap::new(),
            targets,
            relay,
            agreement: Agreement::new(first),
            coordination: None,
            asked: None,
            fetching: BTreeSet::new(),
            slices: BTreeSet::new(),
            metas: BTreeMap::new(),
            retries: BTreeMap::new(),
            ending: None,
            searches: 0,
            missed: None,
            told: false,
            group,
        };
        if this.gathered {
            this.offer(cx);
            return this;
        }
        if this.relay.is_none() {
            this.take_duties(owners);
        }
        this.encode_all(cx);
        this
    }

    /// This peer's shards are reduced here, of what those who trained bring.
    fn take_duties(&mut self, owners: Vec<usize>) {
        let (me, bringing) = (self.group.me, self.group.bringing());
        let own = (0u16..).zip(owners).filter(|(_, owner)| *owner == me);
        self.duties
            .extend(own.map(|(shard, _)| (shard, Duty::new(0, bringing))));
    }

    /// Encodes every shard of this peer's contribution: first what the schedule sends first; of the
    /// butterfly the next member's, so that members push to different members at first.
    fn encode_all(&mut self, cx: &mut Context) {
        let bringing = self.group.bringing();
        if bringing.is_empty() {
            // No member trained, so there is no mean.
            self.void(cx);
        }
        if bringing.is_empty() || (self.relay.is_none() && !bringing.has(self.group.me)) {
            return;
        }
        let (me, of) = (self.group.me as u16, self.of);
        let order = match &self.relay {
            Some(relay) => relay.program.order(),
            None => (1..=of).map(|step| (me + step) % of).collect(),
        };
        for shard in order {
            let order = Order::Encode {
                store: StoreId::Local,
                slice: self.contribution(shard, self.group.me),
                of,
            };
            let order = cx.order(order);
            self.tasks.insert(order, Task::Contribution(shard));
        }
    }

    /// Ends what is still being waited for: another round's waits bear the same names.
    pub(super) fn stop_waiting(&self, cx: &mut Context) {
        for wait in [Wait::Contributions, Wait::Agreement, Wait::Repair] {
            cx.waited_in(self.fragment, wait, false);
        }
    }

    /// The version of a shard that fits the current ballot, if it is here.
    pub(super) fn fitting(&self, shard: u16) -> Option<ShardVersion> {
        let target = self.targets.get(usize::from(shard))?;
        let owner = self.group.peer(target.owner);
        let versions = self.held.get(&shard)?;
        let fits = |v: &&ShardVersion| match target.exact {
            Some(exact) => **v == exact,
            None => v.owner == owner && v.attempt == target.attempt,
        };
        versions.iter().find(fits).copied()
    }

    /// Whether nothing is left to do.
    pub(super) fn over(&self) -> bool {
        self.ending.is_some() || self.missed.is_some()
    }

    /// Whether this peer's reductions are done.
    pub(super) fn dutiful(&self) -> bool {
        self.duties.values().all(Duty::done)
    }

    /// Nothing more is expected of these members; gives back who they are.
    pub(super) fn give_up(&mut self, set: Members) -> Vec<PeerId> {
        let set = (set & self.hopeful).without(Members::one(self.group.me));
        self.hopeful = self.hopeful.without(set);
        set.iter().map(|i| self.group.peer(i)).collect()
    }

    /// Takes every next step that is possible.
    pub(super) fn advance(&mut self, cx: &mut Context) {
        if self.over() {
            return;
        }
        self.reduce(cx);
        self.relay(cx);
        if self.stage == Stage::Collecting && self.dutiful() && self.relayed() {
            self.gather(cx);
        }
        if self.dutiful()
            && let Some((coordinator, ballot)) = self.asked.take()
        {
            self.promise(cx, coordinator, ballot);
        }
        self.vote(cx);
        self.conclude(cx);
        let orphaned = match self.relaying() {
            true => self.broken(),
            false => self.stage == Stage::Gathering && self.orphaned(),
        };
        if self.ending.is_none() && self.agreement.decided.is_none() && orphaned {
            self.start_repair(cx);
        }
    }

    /// From here on aggregates and votes are awaited.
    fn gather(&mut self, cx: &mut Context) {
        cx.waited_in(self.fragment, Wait::Contributions, false);
        self.stage = Stage::Gathering;
        self.since = cx.now;
        let peers: Vec<PeerId> = self.group.others().map(|(_, p)| p).collect();
        let deadlines = &cx.deadlines;
        let allowed = match &self.relay {
            Some(relay) => deadlines.allow_chain(Wait::Agreement, peers, relay.program.hops),
            None => deadlines.allow(Wait::Agreement, peers),
        };
        self.deadline = cx.wait_in(self.fragment, Wait::Agreement, allowed);
    }

    /// Whether a shard is missing whose owner is given up: waiting would be in vain.
    fn orphaned(&self) -> bool {
        (0..self.of).any(|shard| {
            let gone = self.targets.get(usize::from(shard));
            let gone = gone.is_some_and(|t| !self.hopeful.has(t.owner));
            gone && self.fitting(shard).is_none()
        })
    }

    /// The deadline has passed.
    pub(super) fn timeout(&mut self, cx: &mut Context) {
        if self.over() || cx.now < self.deadline {
            return;
        }
        if self.agreement.decided.is_some() {
            self.search(cx);
            return;
        }
        if self.relaying() {
            // Who waits downstream of a silent member cannot tell which one that is.
            self.start_repair(cx);
            return;
        }
        let missing = match self.stage {
            Stage::Collecting => self.missing_contributors(),
            // Who has not voted may lack the same shard as others: that is for the ballot to find
            // out.
            Stage::Gathering => self.missing_owners(),
            Stage::Repairing => Members::NONE,
        };
        for peer in self.give_up(missing) {
            cx.suspect(peer);
        }
        match self.stage {
            Stage::Collecting => {
                cx.waited_in(self.fragment, Wait::Contributions, true);
                self.deadline =
                    cx.wait_in(self.fragment, Wait::Contributions, cx.deadlines.answer());
                self.advance(cx);
            }
            Stage::Gathering => {
                self.advance(cx);
                if self.ending.is_none() && self.stage == Stage::Gathering {
                    self.start_repair(cx);
                }
            }
            Stage::Repairing => self.repair_timeout(cx),
        }
    }

    fn missing_owners(&self) -> Members {
        let missing = (0..self.of).filter(|s| self.fitting(*s).is_none());
        missing
            .filter_map(|s| self.targets.get(usize::from(s)))
            .map(|target| target.owner)
            .collect()
    }

    /// Nothing was agreed.
    pub(super) fn void(&mut self, cx: &mut Context) {
        self.ending = Some(Ending::Void);
        for wait in [Wait::Contributions, Wait::Agreement, Wait::Repair] {
            cx.waited_in(self.fragment, wait, true);
        }
        cx.emit(Event::Voided {
            round: self.round,
            fragment: self.fragment,
        });
    }

    /// All decided versions are here: tell the codec which of this peer's contributions counted.
    pub(super) fn apply(&mut self, cx: &mut Context, ballot: u8, versions: &[ShardVersion]) {
        if self.gathered {
            self.gather_in(cx, ballot, versions);
            return;
        }
        let mut aggregates = Vec::with_capacity(versions.len());
        for (shard, version) in (0u16..).zip(versions) {
            let mine = version.contributors.has(self.group.me);
            let outcome = if mine {
                Settlement::Delivered
            } else {
                Settlement::Lost
            };
            if self.encoded.contains_key(&shard) {
                let slice = self.contribution(shard, self.group.me);
                cx.order(Order::Settle { slice, outcome });
            }
            aggregates.push(self.aggregate(shard, version));
        }
        let names = |set: Members| {
            let known = set.iter().filter_map(|i| self.group.members.get(i));
            known.map(|m| (m.peer, m.weight)).collect()
        };
        let contributors = versions.iter().map(|v| names(v.contributors)).collect();
        let (round, fragment) = (self.round, self.fragment);
        cx.emit(Event::Decided {
            round,
            fragment,
            ballot,
            contributors,
        });
        self.ending = Some(Ending::Apply(aggregates));
    }
}
