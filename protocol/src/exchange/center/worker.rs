//! A worker's round: push each shard's contribution to its owner and pull the shard back, from
//! another owner when one does not answer.

use super::state::{Arrival, Center, ShardKey, Task, WantedShard, WorkerFragment};
use crate::core::context::Context;
use crate::exchange::settlement;
use crate::{
    Attempt, Ending, Event, FragmentId, Order, Part, PeerId, Round, Settlement, SliceId, SliceMeta,
    Source, StoreId, Tag, Wait,
};

/// Pushes of a contribution before its shard is given up for the round.
const TRIES_MAX: u8 = 4;

impl Center {
    /// The owners that have not sent their shards of a fragment back.
    pub(super) fn owners_awaited(&self, fragment: FragmentId) -> Vec<PeerId> {
        let mut pulls = self.fragments.iter();
        let pull = pulls.find(|pull| pull.fragment == fragment);
        let shards = pull.into_iter().flat_map(|pull| &pull.shards);
        let open = shards.filter(|shard| shard.got.is_none() && !shard.given_up);
        open.filter_map(|shard| shard.owner).collect()
    }

    fn contribution(cx: &Context, (fragment, shard): ShardKey) -> SliceId {
        SliceId {
            round: cx.round,
            fragment,
            shard,
            part: Part::Contribution,
            origin: cx.me(),
            attempt: Attempt(cx.life()),
        }
    }

    fn wanted(&mut self, place: ShardKey) -> Option<&mut WantedShard> {
        let pull = self.fragments.get_mut(usize::from(place.0.0))?;
        pull.shards.get_mut(usize::from(place.1))
    }

    /// Encodes the contribution to every shard.
    pub(super) fn start_round(&mut self, cx: &mut Context) {
        let fragments: Vec<FragmentId> = cx.plan.fragment_ids().collect();
        self.fragments.clear();
        for fragment in fragments {
            let of = Self::of(cx, fragment);
            let mut shards = Vec::with_capacity(usize::from(of));
            for shard in 0..of {
                let slice = Self::contribution(cx, (fragment, shard));
                let id = cx.encode(slice, of, Source::Store(StoreId::Local));
                self.tasks.insert(id, Task::Contribution(slice));
                shards.push(WantedShard {
                    owner: Self::owner(cx, shard, &[]),
                    refused: Vec::new(),
                    bytes: 0,
                    tries: 0,
                    got: None,
                    given_up: false,
                });
            }
            let owners = shards.iter().filter_map(|w| w.owner);
            let allowed = cx.deadlines.allow(Wait::Center, owners);
            self.fragments.push(WorkerFragment {
                fragment,
                shards,
                since: cx.now,
                deadline: cx.wait_in(fragment, Wait::Center, allowed),
                ending: None,
                told: false,
                closed: false,
            });
        }
    }

    pub(super) fn encoded(&mut self, cx: &mut Context, slice: SliceId, bytes: Option<u64>) {
        let place = (slice.fragment, slice.shard);
        // Orders are answered in any round, and a past round's contribution is not this one's.
        let current = slice.round == cx.round;
        let Some(wanted) = self.wanted(place).filter(|_| current) else {
            // Its round was given up meanwhile: it is not pushed, and its content stays here.
            if bytes.is_some() {
                let outcome = Settlement::Lost;
                cx.order(Order::Settle { slice, outcome });
                cx.release(slice);
            }
            return;
        };
        match bytes {
            Some(bytes) => {
                wanted.bytes = bytes;
                self.push_contribution(cx, place);
            }
            None => {
                // Training left values that are not finite: they are not pushed.
                self.give_up(cx, place);
            }
        }
    }

    /// No owner will answer for a shard in this round.
    pub(super) fn give_up(&mut self, cx: &mut Context, place: ShardKey) {
        if let Some(wanted) = self.wanted(place).filter(|w| w.got.is_none()) {
            wanted.given_up = true;
            self.conclude(cx, place.0);
        }
    }

    fn push_contribution(&mut self, cx: &mut Context, place: ShardKey) {
        let (slice, base) = (Self::contribution(cx, place), self.base(place));
        let of = Self::of(cx, place.0);
        let Some(wanted) = self.wanted(place) else {
            return;
        };
        // Views differ for a moment: an owner may refuse, and the next may not own it yet.
        wanted.tries += 1;
        wanted.owner = if wanted.tries <= TRIES_MAX {
            Self::owner(cx, place.1, &wanted.refused)
        } else {
            None
        };
        let (bytes, round) = (wanted.bytes, cx.round);
        let Some(owner) = wanted.owner else {
            wanted.given_up = true;
            self.conclude(cx, place.0);
            return;
        };
        if owner == cx.me() {
            let arrival = Arrival {
                from: owner,
                slice,
                base,
                round,
            };
            let taken = self.arrival(cx, place, arrival);
            debug_assert!(taken.is_ok(), "this peer's contribution waits once");
            return;
        }
        let meta = SliceMeta {
            of,
            bytes,
            tag: Tag::Update { base, round },
        };
        cx.push(owner, slice, meta, 1);
    }

    /// A shard came back; false when no member waits for it.
    pub(super) fn shard_arrived(
        &mut self,
        cx: &mut Context,
        place: ShardKey,
        from: PeerId,
        slice: SliceId,
        (version, round): (u64, Round),
    ) -> bool {
        let current = round == cx.round;
        let Some(wanted) = self.wanted(place) else {
            return false;
        };
        if wanted.got.is_some_and(|(got, _)| got == slice) {
            return true; // a retry of what is here already
        }
        // The reply of an earlier owner would bring a version that the present one does not count.
        let fits = wanted.owner == Some(from) && current;
        if !fits || wanted.got.is_some() || wanted.given_up {
            return false;
        }
        wanted.got = Some((slice, version));
        if let Some(pull) = self.fragments.get(usize::from(place.0.0)) {
            let waited = cx.now.since(pull.since);
            cx.deadlines.record(Wait::Center, from, waited);
        }
        self.conclude(cx, place.0);
        true
    }

    /// Ends a fragment once none of its shards is awaited.
    fn conclude(&mut self, cx: &mut Context, fragment: FragmentId) {
        let Some(pull) = self.fragments.get_mut(usize::from(fragment.0)) else {
            return;
        };
        if pull.ending.is_some() || pull.open().next().is_some() {
            return;
        }
        let got: Vec<SliceId> = pull.shards.iter().filter_map(|w| Some(w.got?.0)).collect();
        cx.waited_in(fragment, Wait::Center);
        // Not one owner answered: what was trained stays for the next round.
        if got.is_empty() {
            pull.ending = Some(Ending::Void);
            let round = cx.round;
            cx.emit(Event::Voided { round, fragment });
            return;
        }
        for (shard, wanted) in (0u16..).zip(&pull.shards) {
            let outcome = settlement(wanted.got.is_some());
            if wanted.bytes > 0 {
                let slice = Self::contribution(cx, (fragment, shard));
                cx.order(Order::Settle { slice, outcome });
            }
        }
        pull.ending = Some(Ending::Apply(got));
    }

    /// A fragment's result is applied, or the round is given up: releases its slices.
    pub(super) fn release_fragment(&mut self, cx: &mut Context, fragment: FragmentId) {
        let me = cx.me();
        let Some(pull) = self.fragments.get_mut(usize::from(fragment.0)) else {
            return;
        };
        if std::mem::replace(&mut pull.closed, true) {
            return;
        }
        let applied = matches!(pull.ending, Some(Ending::Apply(_)));
        let mut own = Vec::new();
        for (shard, wanted) in (0u16..).zip(&pull.shards) {
            let place = (fragment, shard);
            if let Some((slice, version)) = wanted.got {
                if applied {
                    // Only what was applied: a void round continues from the version before.
                    self.bases.insert(place, version);
                }
                if slice.origin == me {
                    own.push(slice)
                } else {
                    cx.release(slice);
                }
            }
            // A contribution to this peer itself is released after it was applied.
            if wanted.bytes > 0 && wanted.owner != Some(me) {
                let slice = Self::contribution(cx, place);
                cx.release(slice);
            }
        }
        own.into_iter().for_each(|slice| self.own_reply_read(slice));
    }

    /// Pushes an unanswered contribution once more, to the peer that owns the shard now.
    fn retry(&mut self, cx: &mut Context, place: ShardKey) {
        let busy = |w: &WantedShard, me: PeerId| w.bytes == 0 || w.owner == Some(me);
        let me = cx.me();
        if let Some(wanted) = self.wanted(place)
            && !busy(wanted, me)
            && wanted.got.is_none()
            && !wanted.given_up
        {
            self.push_contribution(cx, place);
        }
    }

    pub(super) fn owners_timeout(&mut self, cx: &mut Context) {
        let (now, me) = (cx.now, cx.me());
        let late = |p: &&mut WorkerFragment| p.ending.is_none() && p.deadline <= now;
        let mut again = Vec::new();
        for pull in self.fragments.iter_mut().filter(late) {
            let fragment = pull.fragment;
            let open: Vec<u16> = pull.open().collect();
            let silent = open
                .iter()
                .filter_map(|s| pull.shards[usize::from(*s)].owner);
            // This peer's own reply waits for its Executor, which no suspicion makes faster.
            for owner in silent.filter(|owner| *owner != me) {
                cx.overdue(Wait::Center, [owner]);
                cx.suspect(owner);
            }
            again.extend(open.into_iter().map(|shard| (fragment, shard)));
        }
        for place in again {
            self.retry(cx, place);
            self.renew(cx, place.0);
        }
    }

    /// Begins a new wait for the present owners.
    fn renew(&mut self, cx: &mut Context, fragment: FragmentId) {
        let Some(pull) = self.fragments.get_mut(usize::from(fragment.0)) else {
            return;
        };
        if pull.ending.is_some() {
            return;
        }
        let owners = pull.shards.iter().filter(|w| w.got.is_none());
        let allowed = cx
            .deadlines
            .allow(Wait::Center, owners.filter_map(|w| w.owner));
        cx.waited_in(fragment, Wait::Center);
        pull.deadline = cx.wait_in(fragment, Wait::Center, allowed);
    }

    pub(super) fn open_at(&self, peer: PeerId) -> Vec<ShardKey> {
        let mut places = Vec::new();
        for pull in self.fragments.iter().filter(|p| p.ending.is_none()) {
            let open = pull.open();
            let at = open.filter(|s| pull.shards[usize::from(*s)].owner == Some(peer));
            places.extend(at.map(|shard| (pull.fragment, shard)));
        }
        places
    }

    pub(super) fn owner_gone(&mut self, cx: &mut Context, peer: PeerId) {
        for place in self.open_at(peer) {
            self.retry(cx, place);
            self.renew(cx, place.0);
        }
    }

    /// A peer says that it is not the owner in its own view.
    pub(super) fn moved(&mut self, cx: &mut Context, from: PeerId, place: ShardKey) {
        if !self.open_at(from).contains(&place) {
            return;
        }
        if let Some(wanted) = self.wanted(place)
            && !wanted.refused.contains(&from)
        {
            wanted.refused.push(from);
        }
        self.retry(cx, place);
    }

    pub(super) fn push_failed(&mut self, cx: &mut Context, to: PeerId, slice: SliceId) {
        let place = (slice.fragment, slice.shard);
        if slice.round == cx.round && self.open_at(to).contains(&place) {
            self.retry(cx, place);
        }
    }
}
