//! One pool's stream of blocks: what is to be trained, and who is dealt how much of it.

use super::Taken;
use super::runs::{Run, Runs, count, split};
use crate::limits::{DATA_AHEAD_MAX, DATA_QUOTA_MAX, DATA_RUNS_MAX};
use crate::{PeerId, Round};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The blocks of each peer in a round.
pub(super) type Deal = BTreeMap<PeerId, Vec<Run>>;

/// What the settling of a round must know of the plan.
#[derive(Clone, Copy)]
pub(crate) struct Turn<'a> {
    /// The round.
    pub(crate) round: Round,
    /// Whether its blocks were dealt a round before, because rounds overlap.
    pub(crate) ahead: bool,
    /// Whether a peer trains in a round.
    pub(crate) draws: &'a dyn Fn(Round, PeerId) -> bool,
}

impl Turn<'_> {
    fn deals_to(&self, round: Round, peer: PeerId) -> bool {
        (self.draws)(round, peer)
    }

    /// The round whose blocks are dealt from the ledger that opens this one.
    fn dealt(&self) -> Round {
        match self.ahead {
            true => self.round.next(),
            false => self.round,
        }
    }
}

/// A peer that was counted in the last round in which it trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// How many blocks it is dealt in a round.
    pub(super) quota: u16,
    /// The block that it was in the middle of, which stays with it.
    pub(super) held: Option<u64>,
}

/// The stream of one pool. Blocks below `next` that are neither in `redo`, nor held, nor dealt ahead are
/// done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stream {
    /// The first block that no peer has ever been dealt.
    pub(super) next: u64,
    /// Blocks below it that came back.
    pub(super) redo: Runs,
    pub(super) members: BTreeMap<PeerId, Entry>,
    /// The blocks of the round that this state opens, where they were dealt a round before.
    pub(super) ahead: Option<Deal>,
}

fn quota_after(took: u64) -> u16 {
    let quota = took + 1 + took / 4;
    u16::try_from(quota).map_or(DATA_QUOTA_MAX, |quota| quota.min(DATA_QUOTA_MAX))
}

impl Stream {
    /// Takes the lowest blocks that are to be trained.
    fn take(&mut self, blocks: u64) -> Vec<Run> {
        let mut taken = self.redo.take_first(blocks);
        let rest = blocks - count(&taken);
        if rest > 0 {
            taken.push(Run::new(self.next, rest));
            self.next += rest;
        }
        taken
    }

    /// Takes these blocks out, as far as they are to be trained.
    fn reserve(&mut self, run: Run) -> Vec<Run> {
        if run.first > self.next.saturating_add(DATA_AHEAD_MAX) {
            return Vec::new();
        }
        let mut taken = self.redo.remove(run);
        if run.count > 0 && run.end() > self.next {
            let first = run.first.max(self.next);
            self.redo.insert(Run::new(self.next, first - self.next));
            taken.push(Run::new(first, run.end() - first));
            self.next = run.end();
        }
        taken
    }

    /// Takes one block out, if it is to be trained and this jumps over no other.
    fn hold(&mut self, block: u64) -> Option<u64> {
        let there = block <= self.next && !self.reserve(Run::new(block, 1)).is_empty();
        there.then_some(block)
    }

    /// The blocks at a place among those that are to be trained, in their order.
    fn at(&self, mut skip: u64, mut blocks: u64) -> Vec<Run> {
        let mut found = Vec::new();
        let open = Run::new(self.next, u64::MAX - self.next);
        for run in self.redo.iter().chain([open]) {
            let passed = run.count.min(skip);
            skip -= passed;
            let some = (run.count - passed).min(blocks);
            if some > 0 {
                found.push(Run::new(run.first + passed, some));
            }
            blocks -= some;
            if blocks == 0 {
                break;
            }
        }
        found
    }

    /// Deals a round.
    fn cut(&mut self, turn: Turn<'_>) -> Deal {
        let drawn = self.members.iter();
        let drawn = drawn.filter(|(peer, _)| turn.deals_to(turn.dealt(), **peer));
        let quotas: Vec<(PeerId, u16)> = drawn.map(|(peer, entry)| (*peer, entry.quota)).collect();
        let each = quotas.into_iter();
        each.map(|(peer, quota)| (peer, self.take(u64::from(quota))))
            .collect()
    }

    /// What a peer would be dealt now.
    fn share_of(&self, peer: PeerId, turn: Turn<'_>) -> Option<Vec<Run>> {
        let mine = self.members.get(&peer)?;
        let before = self.members.range(..peer);
        let before = before.filter(|(other, _)| turn.deals_to(turn.dealt(), **other));
        let skip = before.map(|(_, entry)| u64::from(entry.quota)).sum();
        Some(self.at(skip, u64::from(mine.quota)))
    }

    /// The blocks of a peer in the round that this state opens; none if it must take some by itself.
    pub(super) fn list(&self, peer: PeerId, turn: Turn<'_>) -> Option<Vec<Run>> {
        let dealt = match turn.ahead {
            true => self.ahead.as_ref().and_then(|deal| deal.get(&peer).cloned()),
            false => self.share_of(peer, turn),
        };
        Some(self.with_held(peer, dealt?))
    }

    /// Where rounds overlap: the blocks of a peer in the next round, but for the one that it may be in the
    /// middle of.
    pub(super) fn next_list(&self, peer: PeerId, turn: Turn<'_>) -> Option<Vec<Run>> {
        self.share_of(peer, turn).filter(|_| turn.ahead)
    }

    /// Where a peer to which nothing is dealt begins: behind what the others will be dealt, at its place
    /// among the participants.
    pub(super) fn own_start(&self, (place, of): (u32, u32), blocks: u32) -> u64 {
        let dealt: u64 = self.members.values().map(|entry| u64::from(entry.quota)).sum();
        let strip = u64::from(place) * u64::from(blocks) / u64::from(of.max(1));
        let found = self.at(dealt + strip, 1);
        found.first().map_or(self.next, |run| run.first)
    }

    fn with_held(&self, peer: PeerId, dealt: Vec<Run>) -> Vec<Run> {
        let held = self.members.get(&peer).and_then(|entry| entry.held);
        let held = held.map(|block| Run::new(block, 1));
        held.into_iter().chain(dealt).collect()
    }

    /// A round is over, in which these contributions counted. `void` where none of any pool did.
    pub(super) fn settle(
        &mut self,
        counted: &BTreeMap<PeerId, Taken>,
        void: bool,
        turn: Turn<'_>,
    ) {
        let (dealt, mut fresh) = match turn.ahead {
            true => (self.ahead.take().unwrap_or_default(), Some(self.cut(turn))),
            false => (self.cut(turn), None),
        };
        let all: BTreeSet<PeerId> = self.members.keys().chain(dealt.keys()).copied().collect();
        for peer in all {
            let was_dealt = dealt.contains_key(&peer);
            let dealt = dealt.get(&peer).cloned().unwrap_or_default();
            let stays = void || !turn.deals_to(turn.round, peer);
            match counted.get(&peer).filter(|taken| taken.from.is_none()) {
                Some(taken) => {
                    let list = self.with_held(peer, dealt);
                    let most = if was_dealt { count(&list) } else { 0 };
                    let took = u64::from(taken.blocks).min(most);
                    let (_, rest) = split(&list, took);
                    let (middle, back) = split(&rest, 1);
                    self.give_back(&back);
                    let held = middle.first().map(|run| run.first);
                    let quota = quota_after(took);
                    self.members.insert(peer, Entry { quota, held });
                }
                None if stays => self.give_back(&dealt),
                None => {
                    self.give_back(&self.with_held(peer, dealt));
                    self.members.remove(&peer);
                }
            }
        }
        for (peer, taken) in counted {
            if let Some(from) = taken.from {
                let run = Run::new(from, u64::from(taken.blocks));
                self.settle_own(*peer, run, fresh.as_mut());
            } else if !self.members.contains_key(peer) {
                let (quota, held) = (quota_after(0), None);
                self.members.insert(*peer, Entry { quota, held });
            }
        }
        if turn.ahead {
            self.ahead = fresh;
        }
        self.redo.fill(DATA_RUNS_MAX);
    }

    fn give_back(&mut self, list: &[Run]) {
        list.iter().for_each(|run| self.redo.insert(*run));
    }

    /// A peer that was dealt nothing took these blocks and was counted.
    fn settle_own(&mut self, peer: PeerId, run: Run, fresh: Option<&mut Deal>) {
        let fits = self.redo.len() < DATA_RUNS_MAX / 2 && run.first.checked_add(run.count).is_some();
        let mut held = None;
        if fits {
            self.reserve(run);
            held = self.hold(run.end());
        }
        let quota = quota_after(run.count);
        self.members.insert(peer, Entry { quota, held });
        if let Some(fresh) = fresh.filter(|fresh| fits && !fresh.contains_key(&peer)) {
            // It is training on already, behind what it took.
            let goes_on = Run::new(run.end().saturating_add(1), u64::from(quota));
            let blocks = self.reserve(goes_on);
            fresh.insert(peer, blocks);
        }
    }

    /// The lowest block that is not done.
    pub(super) fn reached(&self) -> u64 {
        let held = self.members.values().filter_map(|entry| entry.held);
        let ahead = self.ahead.iter().flatten().flat_map(|(_, runs)| runs);
        let ahead = ahead.map(|run| run.first);
        let all = held.chain(ahead).chain(self.redo.first());
        all.min().unwrap_or(self.next).min(self.next)
    }
}
