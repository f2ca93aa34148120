//! What this peer sends: its differences by number, the last of which it keeps, and how far each
//! neighbour is with them.

use crate::core::context::Context;
use crate::exchange::PushEnd;
use crate::exchange::neighbours::slices::SliceLedger;
use crate::limits::{DIFFERENCES_KEPT, PUSHES_AT_ONCE_MAX};
use crate::sorted::{SortedMap, SortedSet};
use crate::{FragmentId, PeerId, PushOutcome, SliceId, SliceMeta, Tag};

/// An encoding under way.
#[derive(Clone, Debug)]
pub(in crate::exchange::neighbours) enum Made {
    /// The difference of this number.
    Difference(u32),
    /// The copy as it is before the difference of this number, for these peers.
    Whole(u32, SortedSet<PeerId>),
}

fn meta(cx: &Context, bytes: u64, number: u32, share: f64) -> SliceMeta {
    let tag = Tag::Half {
        session: u32::from(cx.life()) + 1,
        exchange: number,
        share,
    };
    SliceMeta { of: 1, bytes, tag }
}

/// What this peer sends to all of its neighbours.
#[derive(Debug, Default)]
pub(super) struct Sending {
    next: SortedMap<FragmentId, u32>,
    /// The last differences of each fragment by number, with their sizes.
    kept: SortedMap<(FragmentId, u32), (SliceId, u64)>,
    /// For each neighbour that was told the whole copy: the differences since that are not under
    /// way to it and have not arrived.
    told: SortedMap<PeerId, SortedMap<FragmentId, SortedSet<u32>>>,
    /// Pushes under way, each with its number.
    ledger: SliceLedger<u32>,
    /// Set in the round in which a new copy begins.
    new: bool,
}

impl Sending {
    /// A round begins. True where none of its partners holds the copy, so that a new one begins.
    pub(super) fn begin(&mut self, cx: &mut Context, partners: &[PeerId]) -> bool {
        self.new = !partners.iter().any(|peer| self.told.contains_key(peer));
        if self.new {
            self.told.clear();
            for fragment in cx.plan.fragment_ids() {
                // Numbers skip one, so that a peer that still holds the old copy sees a gap.
                let next = self.next(fragment).saturating_add(1);
                self.drop_before(cx, fragment, next);
            }
        }
        self.new
    }

    /// A new copy begins in this round, with a whole one.
    pub(super) const fn is_new(&self) -> bool {
        self.new
    }

    /// The number of the difference that is made now.
    pub(super) fn next(&mut self, fragment: FragmentId) -> u32 {
        let next = self.next.entry(fragment).or_default();
        let number = *next;
        *next = number.saturating_add(1);
        number
    }

    /// The number of the difference after those that were made.
    pub(super) fn peek(&self, fragment: FragmentId) -> u32 {
        self.next.get(&fragment).copied().unwrap_or(0)
    }

    /// A neighbour holds the copy, or will once it has the differences that are kept.
    pub(super) fn knows(&self, fragment: FragmentId, peer: PeerId) -> bool {
        let due = self.told.get(&peer).and_then(|told| told.get(&fragment));
        due.is_some_and(|due| self.keeps(fragment, due))
    }

    fn keeps(&self, fragment: FragmentId, numbers: &SortedSet<u32>) -> bool {
        let mut numbers = numbers.iter();
        numbers.all(|number| self.kept.contains_key(&(fragment, *number)))
    }

    /// A slice is encoded, or cannot be.
    pub(super) fn made(
        &mut self,
        cx: &mut Context,
        slice: SliceId,
        bytes: Option<u64>,
        made: Made,
        partners: &[(PeerId, f64)],
    ) {
        let fragment = slice.fragment;
        match (made, bytes) {
            (Made::Difference(number), Some(bytes)) => {
                self.kept.insert((fragment, number), (slice, bytes));
                for told in self.told.values_mut() {
                    if let Some(due) = told.get_mut(&fragment) {
                        due.insert(number);
                    }
                }
                // Before the oldest go: a partner that lacks one gets it now or not at all.
                self.push_due(cx, fragment, partners);
                let oldest = number.saturating_sub(DIFFERENCES_KEPT - 1);
                self.drop_before(cx, fragment, oldest);
            }
            (Made::Whole(number, to), Some(bytes)) => {
                for (peer, share) in partners.iter().filter(|(peer, _)| to.contains(peer)) {
                    let told = self.told.entry(*peer).or_default();
                    told.insert(fragment, SortedSet::new());
                    let meta = meta(cx, bytes, number, *share);
                    self.ledger.push(cx, *peer, slice, meta, number);
                }
                self.ledger.spare(slice);
            }
            // The number is used up: all that hold the copy need a whole one.
            (Made::Difference(_), None) => {
                for told in self.told.values_mut() {
                    told.remove(&fragment);
                }
            }
            (Made::Whole(..), None) => {}
        }
        self.ledger.release(cx, |_| false);
    }

    /// Pushes to each partner the differences that it lacks.
    fn push_due(&mut self, cx: &mut Context, fragment: FragmentId, partners: &[(PeerId, f64)]) {
        for (peer, share) in partners {
            let told = self.told.get_mut(peer);
            let Some(due) = told.and_then(|told| told.get_mut(&fragment)) else {
                continue;
            };
            let kept = &self.kept;
            let held = |number: &u32| kept.contains_key(&(fragment, *number));
            for number in due.extract_if(.., held) {
                let (slice, bytes) = kept[&(fragment, number)];
                let meta = meta(cx, bytes, number, *share);
                self.ledger.push(cx, *peer, slice, meta, number);
            }
        }
    }

    /// A push ended. A lost one is repeated, at once a few times, then with the next.
    pub(super) fn pushed(&mut self, cx: &mut Context, end: PushEnd) {
        let PushEnd { to, slice, outcome } = end;
        let Some(push) = self.ledger.ended(&end) else {
            return;
        };
        let told = self.told.get_mut(&to);
        if outcome != PushOutcome::Delivered
            && let Some(told) = told
            && let Some(due) = told.get_mut(&slice.fragment)
        {
            let at_once = outcome != PushOutcome::Refused && push.again < PUSHES_AT_ONCE_MAX;
            let kept = self.kept.get(&(slice.fragment, push.note));
            if at_once {
                self.ledger.push_again(cx, &end, push);
            } else if kept.is_some_and(|(kept, _)| *kept == slice) {
                due.insert(push.note);
            } else {
                told.remove(&slice.fragment);
            }
        }
        self.ledger.release(cx, |_| false);
    }

    /// A neighbour asks for the whole copy, or is gone, and its copy with it.
    pub(super) fn untell(&mut self, peer: PeerId) {
        self.told.remove(&peer);
    }

    /// A round is over: forgets the neighbours that lack more than is kept.
    pub(super) fn forget(&mut self) {
        let mut told = std::mem::take(&mut self.told);
        told.retain(|_, told| {
            told.retain(|fragment, due| self.keeps(*fragment, due));
            !told.is_empty()
        });
        self.told = told;
    }

    /// Differences before this one are kept no longer. Their pushes end first.
    fn drop_before(&mut self, cx: &mut Context, fragment: FragmentId, number: u32) {
        let old = (fragment, 0)..(fragment, number);
        for (_, (slice, _)) in self.kept.extract_if(old, |_, _| true) {
            self.ledger.spare(slice);
        }
        self.ledger.release(cx, |_| false);
    }
}
