//! The means that this peer makes for its groups, one for each round and fragment.

use crate::core::context::Context;
use crate::exchange::PushEnd;
use crate::exchange::neighbours::pull::{PullMessage, answer};
use crate::exchange::neighbours::slices::{SliceLedger, release};
use crate::limits::GROUP_MEANS_MAX;
use crate::sorted::{SortedMap, SortedSet};
use crate::{
    Attempt, Combination, Done, FragmentId, Order, OrderId, Part, PeerId, Piece, PullPlan,
    PushOutcome, Round, SliceId, SliceMeta, Source, StoreId, Tag, WorkError,
};

/// How often a mean, or a part, is pushed again at most to a member that asks for it.
const AGAIN_MAX: u8 = 1;

/// Which mean: all members of a group get the same one.
pub(super) type Key = (FragmentId, Round);

/// How far a mean is.
///
/// ```text
/// Gathering --(no part is awaited)--> Summing --> Made
///     ^                                 |   |
///     +------(a part was bad)-----------+   +---> Failed <-- no part came
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stage {
    /// Parts are awaited.
    Gathering,
    /// The two orders are given: to sum the parts, and to encode the sum.
    Summing {
        reduce: OrderId,
        encode: OrderId,
        /// Set once the sum has failed: then the encoding is of nothing.
        failed: bool,
    },
    /// It is encoded.
    Made { slice: SliceId, bytes: u64 },
    /// There is none.
    Failed,
}

/// The mean of one fragment over the group of one round.
#[derive(Debug)]
struct Mean {
    stage: Stage,
    /// Members that were asked for their part.
    asked: SortedSet<PeerId>,
    /// Members whose part is not here, perhaps this peer itself.
    awaited: SortedSet<PeerId>,
    parts: SortedMap<PeerId, SliceId>,
    /// Once it is made, whose parameters of which round are in it.
    rounds: SortedMap<PeerId, Round>,
    askers: SortedSet<PeerId>,
}

/// A mean for this peer itself, or for a member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Made {
    pub(super) slice: SliceId,
    pub(super) bytes: u64,
    /// How many members' parameters it is the mean of.
    pub(super) parts: u32,
    pub(super) own: Option<Round>,
}

impl Made {
    fn meta(&self, round: Round) -> SliceMeta {
        let (parts, own) = (self.parts, self.own);
        SliceMeta {
            of: 1,
            bytes: self.bytes,
            tag: Tag::GroupMean { round, parts, own },
        }
    }
}

/// All means that this peer makes or keeps.
#[derive(Debug, Default)]
pub(super) struct Means {
    means: SortedMap<Key, Mean>,
    /// Means under way.
    ledger: SliceLedger<()>,
}

impl Means {
    /// How far a mean is; `None` where it was never begun, or is forgotten.
    pub(super) fn stage(&self, key: Key) -> Option<Stage> {
        self.means.get(&key).map(|mean| mean.stage)
    }

    /// A mean as it is told to a member.
    pub(super) fn made(&self, key: Key, to: PeerId) -> Option<Made> {
        let mean = self.means.get(&key)?;
        let Stage::Made { slice, bytes } = mean.stage else {
            return None;
        };
        Some(Made {
            slice,
            bytes,
            parts: mean.rounds.len() as u32,
            own: mean.rounds.get(&to).copied(),
        })
    }

    pub(super) fn reads(&self, slice: &SliceId) -> bool {
        let mut means = self.means.values();
        means.any(|mean| mean.parts.values().any(|part| part == slice))
    }

    pub(super) fn waiting(&self) -> usize {
        self.means.values().map(|mean| mean.parts.len()).sum()
    }

    /// How many means are kept.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.means.len()
    }

    /// The first member of a group arrived, and the mean of its round begins: all others give what
    /// they published last. False where it is too old to begin.
    pub(super) fn open(
        &mut self,
        cx: &mut Context,
        key: Key,
        others: Vec<PeerId>,
        parts: &Parts,
    ) -> bool {
        let of_fragment = (key.0, Round(0))..=(key.0, Round(u64::MAX));
        let kept = self.means.range(of_fragment);
        if kept.clone().count() >= GROUP_MEANS_MAX {
            // What is being summed ends soon, and its orders must find it.
            let mut idle = kept.filter(|(_, mean)| !matches!(mean.stage, Stage::Summing { .. }));
            match idle.next().map(|(oldest, _)| *oldest) {
                Some(oldest) if oldest.1 < key.1 => self.forget(cx, oldest),
                _ => return false,
            }
        }
        let waited = others.iter().copied();
        // A suspected member is asked all the same: its part counts if it comes in time.
        let waited = waited.filter(|peer| !is_suspected(cx, *peer));
        let mean = Mean {
            stage: Stage::Gathering,
            asked: others.iter().copied().collect(),
            awaited: waited.chain([cx.me()]).collect(),
            parts: SortedMap::new(),
            rounds: SortedMap::new(),
            askers: SortedSet::new(),
        };
        self.means.insert(key, mean);
        for peer in others {
            ask(cx, peer, key);
        }
        self.advance(cx, key, parts);
        true
    }

    /// Forgets a mean; those that wait for it are told that there is none.
    fn forget(&mut self, cx: &mut Context, key: Key) {
        let Some(mut mean) = self.means.remove(&key) else {
            return;
        };
        let parts = std::mem::take(&mut mean.parts);
        self.release_parts(cx, parts);
        match mean.stage {
            Stage::Made { slice, .. } => self.ledger.spare(slice),
            _ => tell_none(cx, key, &mut mean.askers),
        }
        self.ledger.release(cx, |_| false);
    }

    fn release_parts(&self, cx: &mut Context, parts: SortedMap<PeerId, SliceId>) {
        let me = cx.me();
        let others = parts.into_iter().filter(|(peer, _)| *peer != me);
        let free = others.map(|(_, slice)| slice);
        release(cx, free.filter(|slice| !self.reads(slice)));
    }

    /// A member asks for a mean that is begun. One that asks again has waited for a while, so parts
    /// that are not here are asked for again; one that cannot wait closes the mean.
    pub(super) fn asked(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        key: Key,
        closes: bool,
        parts: &Parts,
    ) {
        let Some(mean) = self.means.get_mut(&key) else {
            tell_none(cx, key, &mut SortedSet::from([from]));
            return;
        };
        // A second question means that a quarter of its wait is over and a part may be lost.
        let again = !mean.askers.insert(from);
        match mean.stage {
            Stage::Failed => tell_none(cx, key, &mut mean.askers),
            Stage::Made { .. } => self.serve(cx, key),
            _ if again || closes => self.again(cx, key, closes, parts),
            _ => {}
        }
    }

    /// Asks again for the parts that are not here, or waits for them no longer.
    pub(super) fn again(&mut self, cx: &mut Context, key: Key, closes: bool, parts: &Parts) {
        let Some(mean) = self.means.get_mut(&key) else {
            return;
        };
        if mean.stage != Stage::Gathering {
            return;
        }
        let me = cx.me();
        let late: Vec<PeerId> = mean.awaited.iter().copied().filter(|p| *p != me).collect();
        for peer in late {
            if closes {
                cx.suspect(peer);
            } else {
                ask(cx, peer, key);
            }
        }
        if closes {
            mean.awaited.clear();
        }
        self.advance(cx, key, parts);
    }

    /// A part arrived. False where no mean takes it.
    pub(super) fn part(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        slice: SliceId,
        round: Round,
        parts: &Parts,
    ) -> bool {
        let key = (slice.fragment, round);
        let Some(mean) = self.means.get_mut(&key) else {
            return self.reads(&slice);
        };
        // A part that comes after its member was given up still counts if the sum is not under way.
        let asked = mean.asked.contains(&from) && !mean.parts.contains_key(&from);
        if mean.stage == Stage::Gathering && asked {
            mean.parts.insert(from, slice);
            mean.awaited.remove(&from);
            self.advance(cx, key, parts);
        }
        self.reads(&slice)
    }

    /// This peer has published: its own part may be what a mean waits for.
    pub(super) fn published(&mut self, cx: &mut Context, fragment: FragmentId, parts: &Parts) {
        let gathering = self.means.iter();
        let gathering = gathering
            .filter(|((of, _), mean)| *of == fragment && mean.stage == Stage::Gathering)
            .map(|(key, _)| *key);
        for key in gathering.collect::<Vec<_>>() {
            self.advance(cx, key, parts);
        }
    }

    /// Sums the parts once none is awaited.
    fn advance(&mut self, cx: &mut Context, key: Key, parts: &Parts) {
        let me = cx.me();
        let Some(mean) = self.means.get_mut(&key) else {
            return;
        };
        if mean.stage != Stage::Gathering {
            return;
        }
        let (fragment, round) = key;
        if !mean.parts.contains_key(&me)
            && let Some((slice, _)) = parts.ready(fragment, round)
        {
            mean.parts.insert(me, slice);
            mean.awaited.remove(&me);
        }
        if !mean.awaited.is_empty() {
            return;
        }
        // It was closed before any part came, this peer's own included.
        if mean.parts.is_empty() {
            mean.stage = Stage::Failed;
            tell_none(cx, key, &mut mean.askers);
            return;
        }
        let inputs = mean.parts.values().map(|slice| (*slice, 1.0));
        // One right after the other, so nothing else takes the place of the sum in between.
        let reduce = cx.order(Order::Combine {
            piece: Piece::whole(fragment),
            how: Combination::Reduce(inputs.collect()),
        });
        let slice = mean_slice(cx, key);
        let encode = cx.encode(slice, 1, Source::Store(StoreId::Shard(0)));
        mean.stage = Stage::Summing {
            reduce,
            encode,
            failed: false,
        };
    }

    /// A peer is gone: no mean waits for it.
    pub(super) fn gone(&mut self, cx: &mut Context, peer: PeerId, parts: &Parts) {
        let keys: Vec<Key> = self.means.keys().copied().collect();
        for key in keys {
            if let Some(mean) = self.means.get_mut(&key) {
                // Its part stays if it is here: parameters outlive their peer.
                mean.awaited.remove(&peer);
                mean.askers.remove(&peer);
            }
            self.advance(cx, key, parts);
        }
    }

    pub(super) fn done(&mut self, cx: &mut Context, order: OrderId, done: &Done, parts: &Parts) {
        let of_it = |mean: &Mean| match mean.stage {
            Stage::Summing { reduce, encode, .. } => [reduce, encode].contains(&order),
            _ => false,
        };
        let found = self.means.iter().find(|(_, mean)| of_it(mean));
        let Some(key) = found.map(|(key, _)| *key) else {
            return;
        };
        let Some(mut mean) = self.means.remove(&key) else {
            return;
        };
        match &mut mean.stage {
            Stage::Summing { reduce, failed, .. } if *reduce == order => {
                if let Done::Failed(error) = done {
                    *failed = true;
                    self.leave_out(cx, &mut mean.parts, error);
                }
            }
            Stage::Summing { failed, .. } => {
                let failed = *failed;
                self.encoded(cx, key, &mut mean, done, failed);
            }
            _ => {}
        }
        self.means.insert(key, mean);
        self.serve(cx, key);
        self.advance(cx, key, parts);
    }

    fn encoded(&self, cx: &mut Context, key: Key, mean: &mut Mean, done: &Done, failed: bool) {
        let slice = mean_slice(cx, key);
        mean.stage = match done {
            Done::Encoded { bytes, .. } if !failed => {
                let parts = mean.parts.iter();
                mean.rounds = parts.map(|(peer, part)| (*peer, part.round)).collect();
                let bytes = *bytes;
                Stage::Made { slice, bytes }
            }
            // It is the encoding of a sum that failed, so of whatever the store had before.
            Done::Encoded { .. } => {
                cx.release(slice);
                Stage::Gathering
            }
            _ if failed => Stage::Gathering,
            _ => Stage::Failed,
        };
        if mean.stage == Stage::Gathering && !mean.parts.is_empty() {
            return; // the sum without the bad part is next
        }
        let parts = std::mem::take(&mut mean.parts);
        self.release_parts(cx, parts);
        if !matches!(mean.stage, Stage::Made { .. }) {
            mean.stage = Stage::Failed;
            tell_none(cx, key, &mut mean.askers);
        }
    }

    /// A sum failed: without a part that is bad it may not; otherwise nothing is left of it.
    fn leave_out(
        &self,
        cx: &mut Context,
        parts: &mut SortedMap<PeerId, SliceId>,
        error: &WorkError,
    ) {
        let out = match error {
            WorkError::BadSlice { slice, reason, .. } if parts.values().any(|s| s == slice) => {
                cx.accuse(slice.origin, format!("a slice that is bad: {reason}"));
                parts.extract_if(.., |_, part| part == slice).collect()
            }
            // The fault is not in one part, so summing them again would fail again.
            _ => std::mem::take(parts),
        };
        self.release_parts(cx, out);
    }

    /// Pushes a mean to all that asked for it.
    fn serve(&mut self, cx: &mut Context, key: Key) {
        let Some(mean) = self.means.get_mut(&key) else {
            return;
        };
        if !matches!(mean.stage, Stage::Made { .. }) {
            return;
        }
        for to in std::mem::take(&mut mean.askers) {
            self.push(cx, key, to);
        }
    }

    /// Pushes a mean to a member, unless it is on its way.
    fn push(&mut self, cx: &mut Context, key: Key, to: PeerId) {
        let Some(made) = self.made(key, to) else {
            return;
        };
        // A member asks each quarter, sooner than a large mean arrives.
        if self.ledger.to(to).any(|(slice, _)| slice == made.slice) {
            return;
        }
        self.ledger.push(cx, to, made.slice, made.meta(key.1), ());
    }

    /// A push of a mean ended. A lost one is repeated once; then its member asks again.
    pub(super) fn pushed(&mut self, cx: &mut Context, end: PushEnd) {
        let PushEnd { to, slice, outcome } = end;
        let Some(mut push) = self.ledger.ended(&end) else {
            return;
        };
        let made = self.made((slice.fragment, slice.round), to);
        let again = outcome == PushOutcome::Lost && push.again < AGAIN_MAX;
        if let Some(made) = made.filter(|_| again) {
            // It may have been forgotten and made of other parts meanwhile.
            push.meta = made.meta(slice.round);
            self.ledger.push_again(cx, &end, push);
        }
        self.ledger.release(cx, |_| false);
    }

    /// Forgets the means of rounds before this one, which no member may ask for any more.
    pub(super) fn expire(&mut self, cx: &mut Context, oldest: Round) {
        let old = self.means.iter().filter(|((_, round), mean)| {
            *round < oldest && !matches!(mean.stage, Stage::Summing { .. })
        });
        for key in old.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.forget(cx, key);
        }
    }
}

fn mean_slice(cx: &Context, (fragment, round): Key) -> SliceId {
    SliceId {
        round,
        fragment,
        shard: 0,
        part: Part::Aggregate,
        origin: cx.me(),
        attempt: Attempt(cx.life()),
    }
}

fn ask(cx: &mut Context, peer: PeerId, (fragment, round): Key) {
    cx.send(peer, PullMessage::AskPart { round, fragment });
}

/// Tells those that asked that there is no mean.
fn tell_none(cx: &mut Context, (fragment, round): Key, askers: &mut SortedSet<PeerId>) {
    for peer in std::mem::take(askers) {
        cx.send(peer, PullMessage::NoMean { round, fragment });
    }
}

pub(super) fn is_suspected(cx: &Context, peer: PeerId) -> bool {
    cx.view.get(peer).is_some_and(|remote| remote.suspected)
}

/// What this peer published last of each fragment, and the members that asked for it: the send
/// buffer of the paper.
///
/// Published parameters, fragment by fragment. At most one push of a fragment is under way to each
/// peer.
#[derive(Debug)]
pub(super) struct Parts {
    bounds: PullPlan,
    newest: SortedMap<FragmentId, (SliceId, u64)>,
    encoding: SortedMap<FragmentId, Round>,
    /// Parts under way, each with the round of the mean that it is for.
    ledger: SliceLedger<Round>,
    waiting: SortedMap<(PeerId, FragmentId), Vec<Round>>,
}

impl Parts {
    pub(super) fn new(bounds: PullPlan) -> Self {
        Self {
            bounds,
            newest: SortedMap::new(),
            encoding: SortedMap::new(),
            ledger: SliceLedger::default(),
            waiting: SortedMap::new(),
        }
    }

    /// A fragment is being encoded: questions wait for it.
    pub(super) fn begins(&mut self, slice: SliceId) {
        self.encoding.insert(slice.fragment, slice.round);
    }

    /// A fragment is encoded; `None` if it cannot be. `reads` says which slices are still summed.
    pub(super) fn publish(
        &mut self,
        cx: &mut Context,
        slice: SliceId,
        bytes: Option<u64>,
        reads: impl Fn(&SliceId) -> bool,
    ) {
        let fragment = slice.fragment;
        if self.encoding.get(&fragment) == Some(&slice.round) {
            self.encoding.remove(&fragment);
        }
        if let Some(bytes) = bytes {
            // A mean sums what was published last, so older parameters have no use but pushes under
            // way.
            let last = self.newest.insert(fragment, (slice, bytes));
            if let Some((old, _)) = last.filter(|(old, _)| *old != slice) {
                self.ledger.spare(old);
            }
        }
        self.release(cx, reads);
        let askers = self.waiting.extract_if(.., |(_, of), _| *of == fragment);
        let askers: Vec<_> = askers.collect();
        for ((peer, fragment), rounds) in askers {
            for round in rounds {
                self.asked(cx, peer, fragment, round);
            }
        }
    }

    /// Releases what nothing needs any more.
    pub(super) fn release(&mut self, cx: &mut Context, reads: impl Fn(&SliceId) -> bool) {
        self.ledger.release(cx, reads);
    }

    /// This peer's part in the mean of a round: the parameters published last. `None` if there are
    /// none, if they are too old, or if they are older than the round and newer ones are being encoded.
    pub(super) fn ready(&self, fragment: FragmentId, round: Round) -> Option<(SliceId, u64)> {
        let (slice, bytes) = self.newest.get(&fragment).copied()?;
        let encoding = self.encoding.contains_key(&fragment);
        let fresh = slice.round >= self.bounds.oldest(round);
        // Newer ones are a moment away: the mean is worth that wait.
        (fresh && (slice.round >= round || !encoding)).then_some((slice, bytes))
    }

    /// A member makes the mean of a round and asks for a part.
    pub(super) fn asked(
        &mut self,
        cx: &mut Context,
        peer: PeerId,
        fragment: FragmentId,
        round: Round,
    ) {
        let of_it = self.ledger.to(peer);
        let of_it = of_it.filter(|(slice, _)| slice.fragment == fragment);
        let under_way = of_it.last().map(|(_, round)| *round);
        if under_way == Some(round) {
            return; // it asks once more, and its answer is on the way
        }
        let ready = self.ready(fragment, round);
        match ready.filter(|_| under_way.is_none()) {
            Some((slice, bytes)) => {
                self.ledger
                    .push(cx, peer, slice, answer(round, bytes), round);
            }
            None => {
                let rounds = self.waiting.entry((peer, fragment)).or_default();
                rounds.retain(|waits| *waits != round);
                // No maker keeps more means, so the oldest question is of one that it has
                // forgotten.
                if rounds.len() >= GROUP_MEANS_MAX {
                    rounds.remove(0);
                }
                rounds.push(round);
            }
        }
    }

    /// The push of a part ended. False where it was none.
    pub(super) fn pushed(
        &mut self,
        cx: &mut Context,
        end: PushEnd,
        reads: impl Fn(&SliceId) -> bool,
    ) -> bool {
        let PushEnd { to, slice, outcome } = end;
        let Some(push) = self.ledger.ended(&end) else {
            return false;
        };
        let newest = self.newest.get(&slice.fragment);
        let newest = newest.is_some_and(|(newest, _)| *newest == slice);
        // Newer parameters answer better than a second push of older ones.
        if outcome == PushOutcome::Lost && newest && push.again < AGAIN_MAX {
            self.ledger.push_again(cx, &end, push);
            return true;
        }
        self.release(cx, reads);
        let waiting = self.waiting.remove(&(to, slice.fragment));
        for round in waiting.unwrap_or_default() {
            self.asked(cx, to, slice.fragment, round);
        }
        true
    }

    pub(super) fn gone(&mut self, peer: PeerId) {
        self.waiting.retain(|(waits, _), _| *waits != peer);
    }
}
