//! The coordinator's side of a ballot above zero: questions, promises, the plan.

use super::ballot::{Ballot, Held, ShardPlan};
use super::ballots::{Coordination, Promised};
use super::fragment::FragmentRound;
use super::message::{FragmentMessage, Promise};
use crate::core::context::Context;
use crate::{Members, PeerError, PeerId};
use std::collections::BTreeMap;

impl FragmentRound {
    /// Coordinates a ballot: asks the members that are still waited for to promise.
    pub(super) fn coordinate(&mut self, cx: &mut Context, ballot: Ballot) {
        if self.ballots.coordinates(ballot) {
            return;
        }
        self.ballots.coordination = Some(Coordination {
            ballot,
            promises: BTreeMap::new(),
            planned: false,
        });
        for (index, peer) in self.scope.group.others() {
            if self.is_told(cx, index) {
                cx.send(peer, self.scope.scoped(FragmentMessage::Prepare { ballot }));
            }
        }
        self.enter(cx, ballot);
        self.wait_for_repair(cx, cx.deadlines.answer() + self.patience());
        let own = self.own_promise();
        self.note_promise(cx, ballot, self.scope.group.me, own);
    }

    /// What this peer promises when it is the coordinator itself.
    pub(super) fn own_promise(&self) -> Promised {
        Promised {
            voted: self.agreement.voted.clone(),
            held: self.all_held(),
            hopeful: self.hopeful,
        }
    }

    /// The newest version of each shard that this peer holds.
    pub(super) fn all_held(&self) -> Vec<Held> {
        let all = self.held.iter();
        let newest =
            all.filter_map(|(s, versions)| Some((s, versions.iter().max_by_key(|v| v.attempt)?)));
        newest
            .map(|(shard, version)| Held {
                shard: *shard,
                version: *version,
            })
            .collect()
    }

    /// A member promises. It may do so unasked: a member whose wait ended first picks the
    /// coordinator.
    pub(super) fn on_promise(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        promise: &Promise,
    ) -> Result<(), PeerError> {
        let Promise {
            ballot,
            voted,
            held,
            hopeful,
        } = promise;
        let Some(index) = self.scope.group.index(from) else {
            return Ok(());
        };
        if ballot.coordinator != self.scope.group.peer(self.scope.group.me) || ballot.number == 0 {
            return Err(PeerError::Unexpected {
                what: "a promise to another coordinator".to_owned(),
            });
        }
        let voted_too_high = voted.as_ref().is_some_and(|(b, _)| b >= ballot);
        let versions = voted.iter().flat_map(|(_, versions)| versions);
        let mut versions = versions.chain(held.iter().map(|h| &h.version));
        if voted_too_high || versions.any(|v| self.scope.group.index(v.owner).is_none()) {
            return Err(PeerError::Unexpected {
                what: "a promise with a vote of a later ballot, or of a peer outside the group"
                    .to_owned(),
            });
        }
        if let Some(message) = self.decision() {
            cx.send(from, message);
            return Ok(());
        }
        if *ballot < self.agreement.promised {
            return Ok(());
        }
        self.coordinate(cx, *ballot);
        let (voted, held, hopeful) = (voted.clone(), held.clone(), *hopeful);
        self.note_promise(
            cx,
            *ballot,
            index,
            Promised {
                voted,
                held,
                hopeful,
            },
        );
        Ok(())
    }

    pub(super) fn note_promise(
        &mut self,
        cx: &mut Context,
        ballot: Ballot,
        index: usize,
        promised: Promised,
    ) {
        let Some(coordination) = &mut self.ballots.coordination else {
            return;
        };
        if coordination.ballot != ballot || coordination.planned {
            return;
        }
        let doubted = !promised.hopeful;
        coordination.promises.insert(index, promised);
        let promised = coordination.promises.keys().copied().collect::<Members>();
        // The promising member has waited a whole deadline for these in vain. Waiting for them here
        // as well would only delay the plan.
        self.give_up(doubted.without(promised));
        // Too few are waited for: others that are there may promise until the deadline.
        let may_be_more =
            self.scope.within.is_some() && !self.scope.group.decides(promised.count());
        if self.hopeful.is_within(promised) && !may_be_more {
            self.plan(cx);
        }
    }

    /// Makes the plan, or finds that there is no majority.
    pub(super) fn plan(&mut self, cx: &mut Context) {
        let Some(coordination) = &mut self.ballots.coordination else {
            return;
        };
        // One plan for each ballot: two plans could each collect a majority of votes.
        coordination.planned = true;
        let ballot = coordination.ballot;
        let promises = coordination.promises.clone();
        let alive = promises.keys().copied().collect::<Members>();
        // Without a strict majority of promises the others may have decided something that none of
        // these members knows of, so no value is safe. They learn that now, and not at a deadline.
        if !self.scope.group.decides(promises.len()) {
            if self.may_decide_later(cx) {
                self.start_repair(cx);
                return;
            }
            for (_, peer) in self.scope.group.others().filter(|(i, _)| alive.has(*i)) {
                cx.send(peer, self.scope.scoped(FragmentMessage::Void { ballot }));
            }
            self.void(cx);
            return;
        }
        let shards = self.shard_plans(cx, ballot, &promises);
        for (_, peer) in self.scope.group.others().filter(|(i, _)| alive.has(*i)) {
            let shards = shards.clone();
            let repair = FragmentMessage::Repair {
                ballot,
                alive,
                shards,
            };
            cx.send(peer, self.scope.scoped(repair));
        }
        self.follow(cx, ballot, alive, &shards);
    }

    /// Whether a majority of a column is there, although too few of it promised in time: their own rows
    /// may hold them up. A group of whole fragments formed a moment ago, so what is missing there is gone.
    fn may_decide_later(&self, cx: &Context) -> bool {
        let others = self.scope.group.others();
        let there = 1 + others.filter(|(_, peer)| cx.view.takes_part(*peer)).count();
        self.scope.within.is_some() && self.scope.group.decides(there)
    }

    pub(super) fn shard_plans(
        &self,
        cx: &Context,
        ballot: Ballot,
        promises: &BTreeMap<usize, Promised>,
    ) -> Vec<ShardPlan> {
        // Lamport's rule: what was voted for in a lower ballot may be decided already, so the vote
        // of the highest of them stays as it is. The plan is free only if no member has voted.
        let voted = promises
            .iter()
            .filter_map(|(i, p)| p.voted.as_ref().map(|(b, versions)| (*b, *i, versions)))
            .filter(|(_, _, versions)| versions.len() == usize::from(self.scope.of))
            .max_by_key(|(ballot, _, _)| *ballot);
        if let Some((_, voter, versions)) = voted {
            let holder = self.scope.group.peer(voter);
            return versions
                .iter()
                .map(|v| ShardPlan::Keep {
                    version: *v,
                    holder,
                })
                .collect();
        }
        let doubted = promises
            .values()
            .fold(Members::NONE, |set, p| set | !p.hopeful);
        let trusted = |i: usize| !doubted.has(i);
        let alive: Vec<usize> = promises.keys().copied().collect();
        let best = |shard: u16| {
            let all = promises.iter();
            let held = all.flat_map(|(i, p)| p.held.iter().map(move |h| (*i, h)));
            // The first repair trusts every holder. Once it has failed, a shard that only a doubted
            // member holds is reduced again.
            let held = held.filter(|(i, h)| h.shard == shard && (ballot.number < 2 || trusted(*i)));
            held.max_by_key(|(i, h)| (trusted(*i), h.version.attempt, std::cmp::Reverse(*i)))
        };
        // Successors in the order in which owners are chosen, so that a death moves few shards.
        let mut heirs: Vec<usize> = alive.iter().copied().filter(|i| trusted(*i)).collect();
        if heirs.is_empty() {
            heirs = alive;
        }
        let heirs = super::server::ranked(cx, &self.scope.group, heirs);
        let plan = |shard| match best(shard) {
            Some((holder, held)) => ShardPlan::Keep {
                version: held.version,
                holder: self.scope.group.peer(holder),
            },
            None => ShardPlan::Redo {
                owner: self
                    .scope
                    .group
                    .peer(heirs[usize::from(shard) % heirs.len()]),
            },
        };
        (0..self.scope.of).map(plan).collect()
    }
}
