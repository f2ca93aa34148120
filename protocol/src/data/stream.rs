//! One pool's stream of blocks: those to be trained, and how many of them each peer is dealt.

use super::Taken;
use super::runs::{Run, Runs, count, split};
use crate::limits::{DATA_AHEAD_MAX, DATA_QUOTA_MAX, DATA_RUNS_MAX};
use crate::{PeerId, Plan, Round};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The blocks of each peer in a round.
pub(super) type Deal = BTreeMap<PeerId, Vec<Run>>;

/// Rounds without a result whose blocks stay with their peers.
const HELD_ROUNDS: u64 = 3;

/// What the settling of a round must know of the plan.
#[derive(Clone, Copy)]
pub(crate) struct Turn<'a> {
    pub(crate) round: Round,
    /// Set where rounds overlap: its blocks were dealt a round before.
    pub(crate) ahead: bool,
    pub(crate) draws: &'a dyn Fn(Round, PeerId) -> bool,
}

impl Turn<'_> {
    pub(crate) fn with<R>(plan: &Plan, round: Round, act: impl FnOnce(Turn<'_>) -> R) -> R {
        let draws = |round, peer| plan.draws(round, peer);
        act(Turn {
            round,
            ahead: plan.overlap.late_steps > 0,
            draws: &draws,
        })
    }

    fn deals_to(&self, round: Round, peer: PeerId) -> bool {
        (self.draws)(round, peer)
    }

    /// The round whose blocks are dealt from the ledger that opens this one.
    fn dealt(&self) -> Round {
        if self.ahead {
            self.round.next()
        } else {
            self.round
        }
    }
}

/// A peer that was counted in one of the last two rounds in which it trained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// How many blocks it is dealt in a round.
    pub(super) quota: u16,
    /// What stays with it: the block that it was in the middle of; all blocks of a round that had no
    /// result, or in which it was not counted.
    pub(super) held: Vec<Run>,
    /// Set if it was not counted in the last round.
    pub(super) missed: bool,
}

impl Entry {
    fn after(took: u64, held: Vec<Run>) -> Self {
        let quota = u16::try_from(took + 1 + took / 4).unwrap_or(u16::MAX);
        Self {
            quota: quota.min(DATA_QUOTA_MAX),
            held,
            missed: false,
        }
    }
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

impl Stream {
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
    fn hold(&mut self, block: u64) -> Vec<Run> {
        if block <= self.next {
            self.reserve(Run::new(block, 1))
        } else {
            Vec::new()
        }
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
        let dealt = if turn.ahead {
            self.ahead
                .as_ref()
                .and_then(|deal| deal.get(&peer).cloned())
        } else {
            self.share_of(peer, turn)
        };
        Some(self.with_held(peer, dealt?))
    }

    /// Where rounds overlap: the blocks of the next round, but for one that may be half trained.
    pub(super) fn next_list(&self, peer: PeerId, turn: Turn<'_>) -> Option<Vec<Run>> {
        self.share_of(peer, turn).filter(|_| turn.ahead)
    }

    /// Where a peer begins that is dealt nothing: behind the others, at its place among them.
    pub(super) fn own_start(&self, (place, of): (u32, u32), blocks: u32) -> u64 {
        let dealt: u64 = self
            .members
            .values()
            .map(|entry| u64::from(entry.quota))
            .sum();
        let strip = u64::from(place) * u64::from(blocks) / u64::from(of.max(1));
        let found = self.at(dealt + strip, 1);
        found.first().map_or(self.next, |run| run.first)
    }

    fn with_held(&self, peer: PeerId, dealt: Vec<Run>) -> Vec<Run> {
        let held = self.members.get(&peer).map(|entry| entry.held.clone());
        held.into_iter().flatten().chain(dealt).collect()
    }

    /// A round is over, in which these contributions counted. `void` where it has no result.
    pub(super) fn settle(&mut self, counted: &BTreeMap<PeerId, Taken>, void: bool, turn: Turn<'_>) {
        let (dealt, mut fresh) = if turn.ahead {
            (self.ahead.take().unwrap_or_default(), Some(self.cut(turn)))
        } else {
            (self.cut(turn), None)
        };
        let all: BTreeSet<PeerId> = self.members.keys().chain(dealt.keys()).copied().collect();
        for peer in all {
            let dealt = dealt.get(&peer).cloned();
            match counted.get(&peer) {
                Some(taken) => self.settle_dealt(peer, taken, dealt),
                None => self.settle_absent(peer, dealt.unwrap_or_default(), void, turn),
            }
        }
        for (peer, taken) in counted {
            if let Some(from) = taken.from {
                let run = Run::new(from, u64::from(taken.blocks));
                self.settle_own(*peer, run, fresh.as_mut());
            } else if !self.members.contains_key(peer) {
                self.members.insert(*peer, Entry::after(0, Vec::new()));
            }
        }
        if turn.ahead {
            self.ahead = fresh;
        }
        self.redo.fill(DATA_RUNS_MAX);
    }

    /// A peer was counted, to which blocks were dealt or which held some.
    fn settle_dealt(&mut self, peer: PeerId, taken: &Taken, dealt: Option<Vec<Run>>) {
        let was_dealt = dealt.is_some();
        let list = self.with_held(peer, dealt.unwrap_or_default());
        if taken.from.is_some() {
            self.give_back(&list);
            self.members.remove(&peer);
            return;
        }
        let most = if was_dealt { count(&list) } else { 0 };
        let took = u64::from(taken.blocks).min(most);
        let (middle, back) = split(&split(&list, took).1, 1);
        self.give_back(&back);
        self.members.insert(peer, Entry::after(took, middle));
    }

    /// A peer was not counted: its blocks stay with it for one round, and may come with the next.
    fn settle_absent(&mut self, peer: PeerId, dealt: Vec<Run>, void: bool, turn: Turn<'_>) {
        let drawn = turn.deals_to(turn.round, peer);
        let Some(entry) = self.members.get_mut(&peer) else {
            self.give_back(&dealt);
            return;
        };
        if drawn && !void && entry.missed {
            let list = self.with_held(peer, dealt);
            self.members.remove(&peer);
            self.give_back(&list);
            return;
        }
        entry.missed |= drawn && !void;
        if count(&entry.held) < HELD_ROUNDS * u64::from(entry.quota) {
            entry.held.extend(dealt)
        } else {
            self.give_back(&dealt)
        }
    }

    fn give_back(&mut self, list: &[Run]) {
        list.iter().for_each(|run| self.redo.insert(*run));
    }

    /// A peer that was dealt nothing took these blocks and was counted.
    fn settle_own(&mut self, peer: PeerId, run: Run, fresh: Option<&mut Deal>) {
        let fits =
            self.redo.len() < DATA_RUNS_MAX / 2 && run.first.checked_add(run.count).is_some();
        if !fits {
            self.members
                .insert(peer, Entry::after(run.count, Vec::new()));
            return;
        }
        self.reserve(run);
        let entry = Entry::after(run.count, self.hold(run.end()));
        if let Some(fresh) = fresh.filter(|fresh| !fresh.contains_key(&peer)) {
            // It is training on already, behind what it took.
            let goes_on = Run::new(run.end().saturating_add(1), u64::from(entry.quota));
            let blocks = self.reserve(goes_on);
            fresh.insert(peer, blocks);
        }
        self.members.insert(peer, entry);
    }

    /// The lowest block that is not done.
    pub(super) fn reached(&self) -> u64 {
        let held = self.members.values().flat_map(|entry| &entry.held);
        let ahead = self.ahead.iter().flatten().flat_map(|(_, runs)| runs);
        let all = held.chain(ahead).map(|run| run.first);
        let all = all.chain(self.redo.first());
        all.min().unwrap_or(self.next).min(self.next)
    }
}
