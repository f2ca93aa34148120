//! The center's shards at their owner: versions, replies, and how a successor gets the newest copy. Contributions are
//! applied one by one or several together, weighted by the age of the center that they were computed from.

use super::state::{Arrival, COPY, Center, LEAP_MAX, Reply, Shard, ShardKey, Task};
use crate::core::context::Context;
use crate::exchange::{CenterMessage, PushEnd, broke, forbid};
use crate::limits::INBOX_SLICES_MAX;
use crate::{
    Attempt, Checked, Combination, Done, Order, OrderId, Part, PeerId, Piece, PushOutcome, Round,
    SliceId, SliceMeta, Source, StoreId, Tag, WorkError,
};

/// Repetitions of a reply whose push certainly failed.
const REPLY_RETRIES: u8 = 2;

impl Center {
    /// Owns a shard, from this peer's anchor; again once it has pulled a newer version elsewhere.
    pub(super) fn own(&mut self, cx: &mut Context, place: ShardKey) {
        let base = self.base(place);
        let held = self.shards.get(&place).map(|shard| shard.version);
        // It owns a newer version, or this one, and keeps what it has taken in.
        if held.is_some_and(|version| version >= base) {
            return;
        }
        self.shards.entry(place).or_default().version = base;
        let id = Self::set(cx, place, None);
        self.tasks.insert(id, Task::Seed);
    }

    fn piece(cx: &Context, (fragment, shard): ShardKey) -> Piece {
        Piece {
            fragment,
            shard,
            of: Self::of(cx, fragment),
        }
    }

    /// Orders that a shard becomes a copy, or what this peer's anchor holds.
    fn set(cx: &mut Context, place: ShardKey, copy: Option<SliceId>) -> OrderId {
        let piece = Self::piece(cx, place);
        let how = Combination::ResetCenter(copy);
        cx.order(Order::Combine { piece, how })
    }

    /// Sends the present version of a shard to a worker.
    pub(super) fn reply(&mut self, cx: &mut Context, place: ShardKey, to: PeerId, round: Round) {
        let Some(shard) = self.shards.get(&place) else {
            return;
        };
        let slice = SliceId {
            round: Round(shard.version),
            fragment: place.0,
            shard: place.1,
            part: Part::Aggregate,
            origin: cx.me(),
            attempt: Attempt(cx.life() & !COPY),
        };
        // All workers that wait for one version get the same encoded bytes.
        let known = self.replies.contains_key(&slice);
        let reply = self.replies.entry(slice).or_default();
        reply.to.insert(to, (round, 0));
        if reply.bytes > 0 {
            self.push_reply(cx, slice, to);
        } else if !known {
            let of = Self::of(cx, place.0);
            let id = cx.encode(slice, of, Source::Store(StoreId::Center));
            self.tasks.insert(id, Task::Reply(slice));
        }
    }

    pub(super) fn reply_encoded(&mut self, cx: &mut Context, slice: SliceId, bytes: Option<u64>) {
        let Some(bytes) = bytes else {
            // This peer's Executor failed: the workers' deadlines deal with it, and this peer's
            // pull gets no reply.
            let reply = self.replies.remove(&slice);
            if reply.is_some_and(|reply| reply.to.contains_key(&cx.me())) {
                self.give_up(cx, (slice.fragment, slice.shard));
            }
            return;
        };
        let Some(reply) = self.replies.get_mut(&slice) else {
            return;
        };
        reply.bytes = bytes;
        let to: Vec<PeerId> = reply.to.keys().copied().collect();
        for peer in to {
            self.push_reply(cx, slice, peer);
        }
    }

    fn push_reply(&mut self, cx: &mut Context, slice: SliceId, to: PeerId) {
        let Some(reply) = self.replies.get_mut(&slice) else {
            return;
        };
        let Some((round, _)) = reply.to.get(&to).copied() else {
            return;
        };
        let version = slice.round.0;
        let meta = SliceMeta {
            of: Self::of(cx, slice.fragment),
            bytes: reply.bytes,
            tag: Tag::Version { version, round },
        };
        if to == cx.me() {
            reply.to.remove(&to);
            reply.mine = true;
            let place = (slice.fragment, slice.shard);
            if !self.shard_arrived(cx, place, to, slice, (version, round))
                && let Some(reply) = self.replies.get_mut(&slice)
            {
                reply.mine = false;
            }
            return;
        }
        reply.open += 1;
        cx.push(to, slice, meta, 0);
    }

    pub(super) fn reply_pushed(&mut self, cx: &mut Context, end: PushEnd) {
        let PushEnd { to, slice, outcome } = end;
        let Some(reply) = self.replies.get_mut(&slice) else {
            return;
        };
        // The bytes must stay while any push of them is under way.
        reply.open = reply.open.saturating_sub(1);
        let tries = match reply.to.get_mut(&to) {
            Some((_, tries)) if outcome == PushOutcome::Lost => {
                *tries += 1;
                *tries
            }
            _ => u8::MAX,
        };
        if tries <= REPLY_RETRIES {
            self.push_reply(cx, slice, to);
        } else {
            reply.to.remove(&to);
        }
    }

    /// Releases versions that are no longer needed.
    pub(super) fn sweep(&mut self, cx: &mut Context) {
        let shards = &self.shards;
        let old = |slice: &SliceId| {
            let shard = shards.get(&(slice.fragment, slice.shard));
            shard.is_none_or(|s| s.version != slice.round.0)
        };
        let free = |slice: &SliceId, reply: &mut Reply| {
            reply.bytes > 0 && reply.open == 0 && !reply.mine && old(slice)
        };
        for (slice, _) in self.replies.extract_if(.., free) {
            cx.release(slice);
        }
    }

    pub(super) fn own_reply_read(&mut self, slice: SliceId) {
        if let Some(reply) = self.replies.get_mut(&slice) {
            reply.mine = false;
        }
    }

    /// Asks a worker for the newer version that it has pulled.
    pub(super) fn ask(&mut self, cx: &mut Context, place: ShardKey, from: PeerId) {
        let until = cx.now + cx.deadlines.answer() * 2;
        let Some(shard) = self.shards.get_mut(&place) else {
            return;
        };
        if shard.asked.is_none() {
            shard.asked = Some((from, until));
            let (fragment, shard) = place;
            cx.send(from, CenterMessage::Ask { fragment, shard });
        }
    }

    /// An owner lacks the version that this peer has pulled. Only an owner that this peer
    /// contributed to and waits for can know that.
    pub(super) fn asked_for_copy(&mut self, cx: &mut Context, asker: PeerId, place: ShardKey) {
        if !self.open_at(asker).contains(&place) {
            return;
        }
        let base = self.base(place);
        let slice = SliceId {
            round: Round(base),
            fragment: place.0,
            shard: place.1,
            part: Part::Aggregate,
            origin: cx.me(),
            attempt: Attempt(cx.life() | COPY),
        };
        // Version zero is the anchor that all began with; elastic workers hold no center.
        if base == 0 || self.elastic || self.copies.contains_key(&slice) {
            return;
        }
        self.copies.insert(slice, asker);
        let of = Self::of(cx, place.0);
        let id = cx.encode(slice, of, Source::Store(StoreId::Anchor));
        self.tasks.insert(id, Task::Copy(slice, asker));
    }

    pub(super) fn copy_encoded(
        &mut self,
        cx: &mut Context,
        slice: SliceId,
        to: PeerId,
        bytes: Option<u64>,
    ) {
        let Some(bytes) = bytes else {
            self.copies.remove(&slice);
            return;
        };
        let version = slice.round.0;
        let meta = SliceMeta {
            of: Self::of(cx, slice.fragment),
            bytes,
            tag: Tag::Copy { version },
        };
        cx.push(to, slice, meta, 0);
    }

    /// A worker's copy of a shard arrived: it is the center now, if it was asked for and is newer.
    pub(super) fn copy_arrived(
        &mut self,
        cx: &mut Context,
        place: ShardKey,
        from: PeerId,
        slice: SliceId,
        version: u64,
    ) {
        let wanted = self.shards.get_mut(&place).filter(|shard| {
            // A worker cannot have pulled a version that far ahead of any owner.
            let near = shard.version == 0 || version <= shard.version.saturating_add(LEAP_MAX);
            let asked = shard.asked.is_some_and(|(asked, _)| asked == from);
            asked && near && version > shard.version
        });
        let Some(shard) = wanted else {
            cx.release(slice);
            return;
        };
        shard.asked = None;
        let before = std::mem::replace(&mut shard.version, version);
        let id = Self::set(cx, place, Some(slice));
        self.tasks.insert(id, Task::Adopt(slice, place, before));
        self.take_waiting(cx, place);
    }
}

/// Contributions of one sender to one shard that may wait beyond a full buffer.
const WAITING_PER_SENDER_MAX: usize = 4;

impl Center {
    /// A contribution to a shard, perhaps this peer's.
    pub(super) fn arrival(
        &mut self,
        cx: &mut Context,
        place: ShardKey,
        arrival: Arrival,
    ) -> Checked {
        let (me, from) = (cx.me(), arrival.from);
        if from != me && Self::owner(cx, place.1, &[]) != Some(me) {
            cx.release(arrival.slice);
            let moved = CenterMessage::Moved {
                round: arrival.round,
                fragment: place.0,
                shard: place.1,
            };
            cx.send(from, moved);
            return Ok(());
        }
        self.own(cx, place);
        let (elastic, at_once) = (self.elastic, usize::from(self.plan.buffer));
        let Some(shard) = self.shards.get_mut(&place) else {
            return Ok(());
        };
        // It is pushed again because the answer was lost: to count it twice would move the center
        // twice.
        if shard.is_old(&arrival) {
            self.answer_again(cx, place, arrival);
            return Ok(());
        }
        if shard.ahead.iter().any(|a| a.slice == arrival.slice) {
            return Ok(()); // it waits already
        }
        let most = at_once.clamp(WAITING_PER_SENDER_MAX, INBOX_SLICES_MAX);
        // A bound for each sender, so that one cannot fill the buffer of all.
        forbid(
            shard.waiting_of(from) >= most,
            "too many contributions to one shard at once",
        )?;
        if shard.version > 0 && arrival.base > shard.version.saturating_add(LEAP_MAX) {
            return broke("a version far beyond the center's");
        }
        if elastic {
            // With elastic averaging no copy of the center can be fetched, so an owner that is
            // behind takes over the number.
            shard.version = shard.version.max(arrival.base);
        } else if arrival.base > shard.version {
            shard.ahead.push(arrival);
            self.ask(cx, place, from);
            return Ok(());
        }
        self.take(cx, place, arrival);
        Ok(())
    }

    /// A contribution that was taken in before is not counted twice: its sender missed the answer.
    fn answer_again(&mut self, cx: &mut Context, place: ShardKey, arrival: Arrival) {
        let under_way = |task: &Task| match task {
            Task::Arrive(_, arrivals) => arrivals.iter().any(|a| a.slice == arrival.slice),
            _ => false,
        };
        let waits = self.shards.get(&place).is_some_and(|shard| {
            let mut buffer = shard.buffer.iter();
            buffer.any(|a| a.slice == arrival.slice)
        });
        if !waits && !self.tasks.values().any(under_way) {
            cx.release(arrival.slice);
        }
        self.reply(cx, place, arrival.from, arrival.round);
    }

    pub(super) fn take(&mut self, cx: &mut Context, place: ShardKey, arrival: Arrival) {
        // With elastic averaging the worker moves by the center before its contribution; otherwise
        // it gets the center after it.
        if self.elastic {
            self.reply(cx, place, arrival.from, arrival.round);
        }
        let Some(shard) = self.shards.get_mut(&place) else {
            return;
        };
        // Noted when it is buffered: a repetition must not come in beside it.
        shard.note_taken(&arrival, |peer| cx.view.get(*peer).is_some());
        shard.buffer.push(arrival);
        if shard.buffer.len() >= usize::from(self.plan.buffer.max(1)) {
            let arrivals = std::mem::take(&mut shard.buffer);
            self.arrive(cx, place, arrivals);
        }
        if !self.elastic {
            self.reply(cx, place, arrival.from, arrival.round);
        }
    }

    /// Orders the move of a shard by these contributions.
    fn arrive(&mut self, cx: &mut Context, place: ShardKey, arrivals: Vec<Arrival>) {
        let Some(shard) = self.shards.get_mut(&place) else {
            return;
        };
        // The version counts the orders given, not those done: the Executor does them in order, so
        // a reply that is encoded after this order holds this move.
        let version = shard.version;
        shard.version = version.saturating_add(1);
        let stale = |a: &Arrival| (a.slice, version.saturating_sub(a.base));
        let piece = Self::piece(cx, place);
        let how = Combination::MoveCenter(arrivals.iter().map(stale).collect());
        let id = cx.order(Order::Combine { piece, how });
        self.tasks.insert(id, Task::Arrive(place, arrivals));
    }

    /// Contributions are taken in, or one of them is bad: the others are taken in without it.
    pub(super) fn arrived_done(
        &mut self,
        cx: &mut Context,
        place: ShardKey,
        mut arrivals: Vec<Arrival>,
        done: &Done,
    ) {
        if let Done::Failed(WorkError::BadSlice { slice, reason, .. }) = done {
            let bad = *slice;
            cx.accuse(bad.origin, format!("a contribution that is bad: {reason}"));
            let all = arrivals.len();
            arrivals.retain(|a| a.slice != bad);
            if arrivals.len() < all {
                cx.release(bad);
                if !arrivals.is_empty() {
                    self.arrive(cx, place, arrivals);
                }
                return;
            }
        }
        for arrival in arrivals {
            cx.release(arrival.slice);
        }
    }

    /// A newer copy is here: contributions that waited for it are taken in, in order of arrival.
    fn take_waiting(&mut self, cx: &mut Context, place: ShardKey) {
        let Some(shard) = self.shards.get_mut(&place) else {
            return;
        };
        let version = shard.version;
        let due: Vec<Arrival> = shard.ahead.extract_if(.., |a| a.base <= version).collect();
        // One is still further than this copy, so its sender has a newer one.
        let next = shard.ahead.first().map(|a| a.from);
        for arrival in due {
            self.take(cx, place, arrival);
        }
        if let Some(next) = next {
            self.ask(cx, place, next);
        }
    }

    /// The peer that promised a newer copy did not send it: what waited for it goes unanswered.
    pub(super) fn ask_timeout(&mut self, cx: &mut Context) {
        let now = cx.now;
        let late = |shard: &&mut Shard| shard.asked_until().is_some_and(|until| until <= now);
        let late: Vec<&mut Shard> = self.shards.values_mut().filter(late).collect();
        for shard in late {
            shard.asked = None;
            for arrival in std::mem::take(&mut shard.ahead) {
                cx.release(arrival.slice);
            }
        }
    }
}
