//! The means that this peer makes for its groups, one for each round and fragment.

use super::group::Group;
use super::parts::Parts;
use crate::core::context::Context;
use crate::exchange::neighbours::ledger::SliceLedger;
use crate::exchange::neighbours::pull::PullMessage;
use crate::limits::GROUP_MEANS_MAX;
use crate::{Attempt, FragmentId, Order, OrderId, Part, PeerId, Round, SliceId, StoreId};
use std::collections::{BTreeMap, BTreeSet};

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
        /// Whether the sum failed, so that what is encoded is nothing.
        failed: bool,
    },
    /// It is encoded.
    Made { slice: SliceId, bytes: u64 },
    /// There is none.
    Failed,
}

/// The mean of one fragment over the group of one round.
#[derive(Debug)]
pub(super) struct Mean {
    pub(super) stage: Stage,
    /// Members that were asked for their part.
    asked: BTreeSet<PeerId>,
    /// Members whose part is not here, perhaps this peer itself.
    awaited: BTreeSet<PeerId>,
    /// What is summed.
    pub(super) parts: BTreeMap<PeerId, SliceId>,
    /// Once it is made, whose parameters of which round are in it.
    pub(super) rounds: BTreeMap<PeerId, Round>,
    /// Who asked for it.
    pub(super) askers: BTreeSet<PeerId>,
}

/// A mean for this peer itself, or for a member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Made {
    pub(super) slice: SliceId,
    pub(super) bytes: u64,
    /// How many members' parameters it is the mean of.
    pub(super) parts: u32,
    /// The round of the receiver's parameters in it.
    pub(super) own: Option<Round>,
}

/// All means that this peer makes or keeps.
#[derive(Debug, Default)]
pub(super) struct Means {
    pub(super) means: BTreeMap<Key, Mean>,
    /// Means under way, each with how often it was pushed.
    pub(super) ledger: SliceLedger<u8>,
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

    /// Whether a slice is still to be summed.
    pub(super) fn reads(&self, slice: &SliceId) -> bool {
        let mut means = self.means.values();
        means.any(|mean| mean.parts.values().any(|part| part == slice))
    }

    /// Slices of others that wait here.
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
    pub(super) fn open(&mut self, cx: &mut Context, key: Key, group: Group, parts: &Parts) -> bool {
        if self.means.contains_key(&key) {
            return true;
        }
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
        let mean = Mean {
            stage: Stage::Gathering,
            asked: group.others.iter().copied().collect(),
            awaited: group.waited,
            parts: BTreeMap::new(),
            rounds: BTreeMap::new(),
            askers: BTreeSet::new(),
        };
        self.means.insert(key, mean);
        for peer in group.others {
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

    /// Releases parts of others that no mean needs.
    pub(super) fn release_parts(&self, cx: &mut Context, parts: BTreeMap<PeerId, SliceId>) {
        let me = cx.me();
        let others = parts.into_iter().filter(|(peer, _)| *peer != me);
        for (_, slice) in others.filter(|(_, slice)| !self.reads(slice)) {
            cx.order(Order::Release { slice });
        }
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
            tell_none(cx, key, &mut BTreeSet::from([from]));
            return;
        };
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
            match closes {
                true => cx.suspect(peer),
                false => ask(cx, peer, key),
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
        (from, slice): (PeerId, SliceId),
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
    pub(super) fn advance(&mut self, cx: &mut Context, key: Key, parts: &Parts) {
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
        if mean.parts.is_empty() {
            mean.stage = Stage::Failed;
            tell_none(cx, key, &mut mean.askers);
            return;
        }
        let inputs = mean.parts.values().map(|slice| (*slice, 1.0));
        // One right after the other, so nothing else takes the place of the sum in between.
        let reduce = cx.order(Order::Reduce {
            fragment,
            shard: 0,
            of: 1,
            inputs: inputs.collect(),
        });
        let slice = mean_slice(cx, key);
        let (store, of) = (StoreId::Shard(0), 1);
        let encode = cx.order(Order::Encode { store, slice, of });
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
                mean.awaited.remove(&peer);
                mean.askers.remove(&peer);
            }
            self.advance(cx, key, parts);
        }
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

/// The name of a mean that this peer makes.
pub(super) fn mean_slice(cx: &Context, (fragment, round): Key) -> SliceId {
    SliceId {
        round,
        fragment,
        shard: 0,
        part: Part::Aggregate,
        origin: cx.me(),
        attempt: Attempt(cx.life()),
    }
}

/// Asks a member for its part.
fn ask(cx: &mut Context, peer: PeerId, (fragment, round): Key) {
    cx.send(peer, PullMessage::AskPart { round, fragment });
}

/// Tells those that asked that there is no mean.
pub(super) fn tell_none(cx: &mut Context, (fragment, round): Key, askers: &mut BTreeSet<PeerId>) {
    for peer in std::mem::take(askers) {
        cx.send(peer, PullMessage::NoMean { round, fragment });
    }
}
