//! The fragments of one group's round: a window of them is open at a time.

use super::fragment::FragmentRound;
use super::history::History;
use super::message::Scoped;
use crate::core::context::Context;
use crate::exchange::{Arrived, PushEnd, broke, tell};
use crate::limits::{
    EARLY_MESSAGES_MAX, EARLY_MESSAGES_PER_PEER_MAX, WINDOW_BYTES, WINDOW_FRAGMENTS_MAX,
};
use crate::{
    Digest, Done, Ending, FragmentId, Members, OrderId, PeerError, PeerId, Plan, Round, SliceId,
    Time,
};

/// Fragments that may be open at a time: as many as make [`WINDOW_BYTES`]; all of them by priority. So memory
/// and traffic in flight follow the window's size and not the model's.
pub(super) fn window(plan: &Plan) -> usize {
    // By priority any of them may be next, so none may wait for a place in the window.
    if plan.overlap.layers.overtake() {
        return plan.fragments.len();
    }
    let sizes = plan.fragments.iter().map(|f| f.contribution.of(f.len));
    let many = WINDOW_BYTES / sizes.max().unwrap_or(0).max(1);
    usize::try_from(many).map_or(WINDOW_FRAGMENTS_MAX, |many| {
        many.clamp(2, WINDOW_FRAGMENTS_MAX)
    })
}

/// The fragments that are open or have ended, by their number.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    pub(super) all: Vec<FragmentRound>,
    /// Members that were given up in some fragment.
    pub(super) lost: Members,
}

impl Fragments {
    /// Index of a fragment among those that are open, or the one at which it belongs.
    fn place(&self, fragment: FragmentId) -> Result<usize, usize> {
        self.all
            .binary_search_by_key(&fragment, |f| f.scope.fragment)
    }

    pub(super) fn insert(&mut self, fragment: FragmentRound) {
        let place = self.place(fragment.scope.fragment);
        self.all
            .insert(place.unwrap_or_else(|place| place), fragment);
    }

    pub(super) fn get(&mut self, fragment: FragmentId) -> Option<&mut FragmentRound> {
        let place = self.place(fragment).ok()?;
        self.all.get_mut(place)
    }

    /// The fragment of a slice, if the slice is of the same round.
    pub(super) fn of(&mut self, slice: &SliceId) -> Option<&mut FragmentRound> {
        let fragment = self.get(slice.fragment);
        fragment.filter(|fragment| fragment.scope.round == slice.round)
    }

    /// Fragments that have not ended.
    pub(super) fn open(&self) -> impl Iterator<Item = &FragmentRound> {
        self.all.iter().filter(|fragment| fragment.ending.is_none())
    }

    /// The earliest deadline of an open fragment.
    pub(crate) fn due(&self) -> Option<Time> {
        self.open().map(FragmentRound::due).min()
    }

    pub(crate) fn ended(&mut self) -> Vec<(FragmentId, Ending)> {
        let all = self.all.iter_mut();
        tell(all.map(|f| (f.scope.fragment, f.ending.as_ref(), &mut f.told)))
    }

    /// A fragment's result is applied: its bytes are kept for members that lack them.
    pub(crate) fn applied(
        &mut self,
        cx: &mut Context,
        fragment: FragmentId,
        history: &mut History,
    ) {
        // An ending that was not told yet is still to be applied.
        if let Some(fragment) = self.get(fragment).filter(|fragment| fragment.told) {
            history.close(cx, fragment);
        }
    }

    /// A fragment's result cannot be applied because of one slice.
    pub(crate) fn without(
        &mut self,
        cx: &mut Context,
        bad: SliceId,
        reason: &str,
    ) -> Option<Ending> {
        self.get(bad.fragment)?.leave_out(cx, bad, reason)
    }

    /// A member that was given up in one fragment is given up in all. Giving up may end the wait
    /// for more members, so this repeats until nothing changes.
    pub(super) fn share_losses(&mut self, cx: &mut Context) {
        loop {
            for fragment in &self.all {
                self.lost |= fragment.scope.group.all().without(fragment.hopeful);
            }
            let lost = self.lost;
            // No fragment gives up this peer itself: to wait for that would be without end.
            let others = |f: &FragmentRound| lost.without(Members::one(f.scope.group.me));
            let hopes = |f: &&mut FragmentRound| !f.over() && !(f.hopeful & others(f)).is_empty();
            let mut hopeful = self.all.iter_mut().filter(hopes).peekable();
            if hopeful.peek().is_none() {
                return;
            }
            for fragment in hopeful {
                fragment.give_up(lost);
                fragment.advance(cx);
            }
        }
    }

    /// A member's link is gone, or it is in another group: no fragment waits for it.
    pub(super) fn gone(&mut self, cx: &mut Context, peer: PeerId) {
        self.all.iter_mut().for_each(|f| f.gone(cx, peer));
    }

    pub(crate) fn timeout(&mut self, cx: &mut Context) {
        self.all.iter_mut().for_each(|f| f.timeout(cx));
    }

    pub(crate) fn pushed(&mut self, cx: &mut Context, end: PushEnd) {
        if let Some(fragment) = self.of(&end.slice) {
            fragment.pushed(cx, end);
        }
    }

    /// A fetch ended; false when it was not for an open fragment.
    pub(crate) fn fetched(
        &mut self,
        cx: &mut Context,
        slice: SliceId,
        digest: Option<Digest>,
    ) -> bool {
        self.of(&slice).is_some_and(|fragment| {
            fragment.fetched(cx, slice, digest);
            true
        })
    }

    pub(crate) fn fetch_failed(&mut self, cx: &mut Context, slice: SliceId) {
        if let Some(fragment) = self.of(&slice) {
            fragment.fetch_failed(cx, slice);
        }
    }

    pub(crate) fn done(&mut self, cx: &mut Context, order: OrderId, done: &Done) {
        self.all.iter_mut().any(|f| f.done(cx, order, done));
    }

    /// The round is over, or given up half-way and learned from others later: releases the bytes of fragments
    /// that are still under way. A closed fragment holds none.
    pub(crate) fn release(&mut self, cx: &mut Context) {
        let all = std::mem::take(&mut self.all);
        all.into_iter().for_each(|mut f| f.give_back(cx));
    }

    pub(crate) fn awaited(&self, fragment: FragmentId) -> Vec<PeerId> {
        let place = self.place(fragment).ok();
        let found = place.and_then(|place| self.all.get(place));
        found.map(FragmentRound::awaited).unwrap_or_default()
    }
}

/// Slices and messages that came early.
#[derive(Debug, Default)]
pub(crate) struct Early {
    slices: Vec<Arrived>,
    messages: Vec<(PeerId, Scoped)>,
}

impl Early {
    /// Number of them.
    pub(crate) fn len(&self) -> usize {
        self.slices.len() + self.messages.len()
    }

    pub(crate) fn keep_message(&mut self, from: PeerId, message: &Scoped) {
        let of_sender = self.messages.iter().filter(|(f, _)| *f == from);
        // A bound for each sender, so that one of them cannot take the room of the others.
        let room = of_sender.count() < EARLY_MESSAGES_PER_PEER_MAX;
        if room && self.messages.len() < EARLY_MESSAGES_MAX {
            self.messages.push((from, message.clone()));
        }
    }

    /// Keeps a slice: in place of the same of an earlier attempt, whose bytes it has replaced, or as a
    /// further one of at most `most` of its sender. Says whether it is a further one.
    ///
    /// # Errors
    /// When its sender has sent as many; then its bytes are released.
    pub(crate) fn keep_slice(
        &mut self,
        cx: &mut Context,
        early: Arrived,
        most: usize,
    ) -> Result<bool, PeerError> {
        let Arrived { from, slice, .. } = early;
        if let Some(again) = self.slices.iter_mut().find(|early| early.slice == slice) {
            *again = early;
            return Ok(false);
        }
        let of_sender = self.slices.iter().filter(|early| early.from == from);
        if of_sender.count() < most {
            self.slices.push(early);
            return Ok(true);
        }
        cx.release(slice);
        broke("too many early slices").map(|()| false)
    }

    pub(crate) fn take_slices(&mut self, due: impl Fn(Round, FragmentId) -> bool) -> Vec<Arrived> {
        let due = |early: &mut Arrived| due(early.slice.round, early.slice.fragment);
        self.slices.extract_if(.., due).collect()
    }

    pub(crate) fn take_messages(
        &mut self,
        due: impl Fn(Round, FragmentId) -> bool,
    ) -> Vec<(PeerId, Scoped)> {
        let due = |(_, m): &mut (PeerId, Scoped)| due(m.round, m.fragment);
        self.messages.extract_if(.., due).collect()
    }

    /// A peer is gone, and its slices are for a group in which it would be.
    pub(crate) fn drop_of(&mut self, cx: &mut Context, peer: PeerId) {
        self.retain_slices(cx, |early| early.from != peer, |_| false);
    }

    /// The round is over. Bytes that are `held` under the same name for something else stay.
    pub(crate) fn forget_the_round(&mut self, cx: &mut Context, held: impl Fn(&SliceId) -> bool) {
        let round = cx.round;
        self.retain_slices(cx, |early| early.slice.round > round, held);
        self.messages.retain(|(_, message)| message.round > round);
    }

    pub(crate) fn retain_messages(&mut self, wanted: impl Fn(&Scoped) -> bool) {
        self.messages.retain(|(_, message)| wanted(message));
    }

    /// Keeps the wanted slices, and releases the others unless their names are `held` otherwise.
    pub(crate) fn retain_slices(
        &mut self,
        cx: &mut Context,
        wanted: impl Fn(&Arrived) -> bool,
        held: impl Fn(&SliceId) -> bool,
    ) {
        self.slices.retain(|early| {
            let keep = wanted(early);
            if !keep && !held(&early.slice) {
                cx.release(early.slice);
            }
            keep
        });
    }
}
