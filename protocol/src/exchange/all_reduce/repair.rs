//! Ballots above zero: what to do when an owner died, perhaps after serving half the group.
//!
//! A member that waits in vain picks the coordinator of the next ballot (rendezvous hash over the
//! members it has hope for) and sends it a promise. The coordinator asks everybody, and from a
//! strict majority of promises makes a plan: what was voted for in the highest ballot stays; a
//! shard that somebody holds stays; a shard that nobody holds is reduced again by a successor.

use super::butterfly::{Butterfly, Stage, Target};
use super::group::{bit, members_of};
use super::reduce::Duty;
use crate::limits::BALLOTS_MAX;
use crate::peer::context::{Context, rendezvous};
use crate::wire::{Ballot, Held, Message, ShardPlan, ShardVersion};
use crate::{Digest, PeerError, PeerId, SliceId, Wait};
use core::time::Duration;
use std::collections::BTreeMap;

/// What a member promised.
#[derive(Clone, Debug)]
struct Promised {
    voted: Option<(Ballot, Vec<ShardVersion>)>,
    held: Vec<Held>,
    hopeful: u64,
}

/// A ballot that this peer coordinates.
#[derive(Debug)]
pub(super) struct Coordination {
    ballot: Ballot,
    promises: BTreeMap<usize, Promised>,
    planned: bool,
}

impl Butterfly {
    /// Asks for the next ballot.
    pub(super) fn start_repair(&mut self, cx: &mut Context) {
        let number = self.agreement.promised.number + 1;
        if number >= BALLOTS_MAX {
            self.void(cx);
            return;
        }
        let hopeful = members_of(self.hopeful & self.group.all());
        let winner =
            hopeful.max_by_key(|i| rendezvous(&cx.plan, self.round, number, self.group.peer(*i)));
        let coordinator = self.group.peer(winner.unwrap_or(self.group.me));
        let ballot = Ballot {
            number,
            coordinator,
        };
        self.enter(cx, ballot);
        if coordinator == self.group.peer(self.group.me) {
            self.coordinate(cx, ballot);
        } else {
            self.promise(cx, coordinator, ballot);
        }
    }

    /// Promises not to vote below `ballot` and starts the clock of its answer.
    fn enter(&mut self, cx: &mut Context, ballot: Ballot) {
        self.stage = Stage::Repairing;
        self.agreement.promised = self.agreement.promised.max(ballot);
        self.wait_for_repair(cx, cx.deadlines.answer() * 2);
    }

    /// Starts the clock of the next step of a ballot.
    pub(super) fn wait_for_repair(&mut self, cx: &mut Context, allowed: Duration) {
        for wait in [Wait::Contributions, Wait::Agreement, Wait::Repair] {
            cx.waited(wait, true);
        }
        self.deadline = cx.wait(Wait::Repair, allowed);
    }

    fn coordinate(&mut self, cx: &mut Context, ballot: Ballot) {
        let running = self
            .coordination
            .as_ref()
            .is_some_and(|c| c.ballot >= ballot);
        if running {
            return;
        }
        self.coordination = Some(Coordination {
            ballot,
            promises: BTreeMap::new(),
            planned: false,
        });
        let (round, fragment, group) = (self.round, self.fragment, self.group.tag);
        for (index, peer) in self.group.others() {
            if self.hopeful & bit(index) != 0 {
                cx.send(
                    peer,
                    Message::Prepare {
                        round,
                        fragment,
                        group,
                        ballot,
                    },
                );
            }
        }
        self.enter(cx, ballot);
        self.wait_for_repair(cx, cx.deadlines.answer());
        let own = self.own_promise();
        self.note_promise(cx, ballot, self.group.me, own);
    }

    fn own_promise(&self) -> Promised {
        Promised {
            voted: self.agreement.voted.clone(),
            held: self.all_held(),
            hopeful: self.hopeful,
        }
    }

    fn all_held(&self) -> Vec<Held> {
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

    /// Sends the promise; if the exchange is decided here already, says so instead.
    pub(super) fn promise(&mut self, cx: &mut Context, to: PeerId, ballot: Ballot) {
        if let Some(message) = self.decision() {
            cx.send(to, message);
            return;
        }
        self.enter(cx, ballot);
        let (round, fragment, group) = (self.round, self.fragment, self.group.tag);
        let Promised {
            voted,
            held,
            hopeful,
        } = self.own_promise();
        cx.send(
            to,
            Message::Promise {
                round,
                fragment,
                group,
                ballot,
                voted,
                held,
                hopeful,
            },
        );
    }

    /// The decision as a message, once there is one and all of it is here.
    pub(super) fn decision(&self) -> Option<Message> {
        let (ballot, versions) = self.agreement.decided.clone()?;
        Some(Message::Decided {
            round: self.round,
            fragment: self.fragment,
            group: self.group.tag,
            ballot,
            members: self.group.members.clone(),
            versions,
        })
    }

    /// A coordinator asks for a promise.
    pub(super) fn on_prepare(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        ballot: Ballot,
    ) -> Result<(), PeerError> {
        if ballot.coordinator != from || ballot.number == 0 {
            return Err(PeerError::Unexpected {
                what: "a ballot of somebody else".to_owned(),
            });
        }
        if ballot >= self.agreement.promised {
            if self.dutiful() {
                self.promise(cx, from, ballot);
            } else {
                self.asked = Some((from, ballot));
            }
        }
        Ok(())
    }

    /// A member promises, perhaps unasked.
    pub(super) fn on_promise(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        message: &Message,
    ) -> Result<(), PeerError> {
        let Message::Promise {
            ballot,
            voted,
            held,
            hopeful,
            ..
        } = message
        else {
            return Ok(());
        };
        let Some(index) = self.group.index(from) else {
            return Ok(());
        };
        if ballot.coordinator != self.group.peer(self.group.me) || ballot.number == 0 {
            return Err(PeerError::Unexpected {
                what: "a promise to somebody else".to_owned(),
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

    fn note_promise(&mut self, cx: &mut Context, ballot: Ballot, index: usize, promised: Promised) {
        let Some(coordination) = &mut self.coordination else {
            return;
        };
        if coordination.ballot != ballot || coordination.planned {
            return;
        }
        let doubted = !promised.hopeful;
        coordination.promises.insert(index, promised);
        let promised = coordination.promises.keys().fold(0, |set, i| set | bit(*i));
        // Somebody has waited a whole deadline for these already.
        self.give_up(doubted & !promised);
        if self.hopeful & !promised == 0 {
            self.plan(cx);
        }
    }

    /// Makes the plan, or finds that there is no majority.
    fn plan(&mut self, cx: &mut Context) {
        let Some(coordination) = &mut self.coordination else {
            return;
        };
        coordination.planned = true;
        let ballot = coordination.ballot;
        let promises = coordination.promises.clone();
        let alive = promises.keys().fold(0, |set, i| set | bit(*i));
        let (round, fragment, group) = (self.round, self.fragment, self.group.tag);
        if !self.group.majority(promises.len()) {
            for (_, peer) in self.group.others().filter(|(i, _)| alive & bit(*i) != 0) {
                cx.send(
                    peer,
                    Message::Void {
                        round,
                        fragment,
                        group,
                        ballot,
                    },
                );
            }
            self.void(cx);
            return;
        }
        let shards = self.shard_plans(&promises);
        for (_, peer) in self.group.others().filter(|(i, _)| alive & bit(*i) != 0) {
            let shards = shards.clone();
            cx.send(
                peer,
                Message::Repair {
                    round,
                    fragment,
                    group,
                    ballot,
                    alive,
                    shards,
                },
            );
        }
        self.follow(cx, ballot, alive, &shards);
    }

    fn shard_plans(&self, promises: &BTreeMap<usize, Promised>) -> Vec<ShardPlan> {
        let voted = promises
            .iter()
            .filter_map(|(i, p)| p.voted.as_ref().map(|(b, versions)| (*b, *i, versions)))
            .filter(|(_, _, versions)| versions.len() == usize::from(self.of))
            .max_by_key(|(ballot, _, _)| *ballot);
        if let Some((_, voter, versions)) = voted {
            let holder = self.group.peer(voter);
            return versions
                .iter()
                .map(|v| ShardPlan::Keep {
                    version: *v,
                    holder,
                })
                .collect();
        }
        let alive: Vec<usize> = promises.keys().copied().collect();
        (0..self.of)
            .map(|shard| {
                let held = promises
                    .iter()
                    .flat_map(|(i, p)| p.held.iter().map(move |h| (*i, h)));
                let best = held
                    .filter(|(_, h)| h.shard == shard)
                    .max_by_key(|(i, h)| (h.version.attempt, std::cmp::Reverse(*i)));
                match best {
                    Some((holder, held)) => ShardPlan::Keep {
                        version: held.version,
                        holder: self.group.peer(holder),
                    },
                    None => {
                        let successor = alive[usize::from(shard) % alive.len()];
                        ShardPlan::Redo {
                            owner: self.group.peer(successor),
                        }
                    }
                }
            })
            .collect()
    }

    /// The coordinator's plan arrived.
    pub(super) fn on_repair(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        ballot: Ballot,
        alive: u64,
        shards: &[ShardPlan],
    ) -> Result<(), PeerError> {
        let fits = shards.len() == usize::from(self.of) && alive & !self.group.all() == 0;
        if ballot.coordinator != from || !fits {
            return Err(PeerError::Unexpected {
                what: "a repair that does not fit".to_owned(),
            });
        }
        if ballot >= self.agreement.promised && self.agreement.decided.is_none() {
            self.follow(cx, ballot, alive, shards);
        }
        Ok(())
    }

    /// Works towards a vote on the plan.
    fn follow(&mut self, cx: &mut Context, ballot: Ballot, alive: u64, shards: &[ShardPlan]) {
        self.enter(cx, ballot);
        self.agreement.ballot = ballot;
        let gone = self.give_up(!alive);
        gone.into_iter().for_each(|peer| cx.suspect(peer));
        let peers: Vec<PeerId> = self.group.others().map(|(_, p)| p).collect();
        self.wait_for_repair(cx, cx.deadlines.allow(Wait::Contributions, peers));
        for (shard, plan) in (0u16..).zip(shards) {
            let Some(target) = self.target(ballot, plan) else {
                continue;
            };
            if let Some(slot) = self.targets.get_mut(usize::from(shard)) {
                *slot = target;
            }
            match plan {
                ShardPlan::Keep { version, holder } => {
                    let here = self.fitting(shard).is_some();
                    if !here && *holder != self.group.peer(self.group.me) {
                        self.fetch(cx, shard, version, *holder);
                    }
                }
                ShardPlan::Redo { .. } => {
                    if target.owner == self.group.me {
                        self.duties.insert(shard, Duty::new(ballot.number, alive));
                    }
                    self.contribute(cx, shard);
                }
            }
        }
        self.advance(cx);
    }

    fn target(&self, ballot: Ballot, plan: &ShardPlan) -> Option<Target> {
        Some(match plan {
            ShardPlan::Keep { version, .. } => Target {
                owner: self.group.index(version.owner)?,
                attempt: version.attempt,
                exact: Some(*version),
            },
            ShardPlan::Redo { owner } => Target {
                owner: self.group.index(*owner)?,
                attempt: ballot.number,
                exact: None,
            },
        })
    }

    /// The coordinator found no majority.
    pub(super) fn on_void(&mut self, cx: &mut Context, from: PeerId, ballot: Ballot) {
        let current = ballot.coordinator == from && ballot >= self.agreement.promised;
        if current && self.agreement.decided.is_none() && self.ending.is_none() {
            self.void(cx);
        }
    }

    /// The ballot's own deadline has passed.
    pub(super) fn repair_timeout(&mut self, cx: &mut Context) {
        let open = self.coordination.as_ref().is_some_and(|c| !c.planned);
        if open {
            let promised = self.coordination.iter().flat_map(|c| c.promises.keys());
            let promised = promised.fold(0, |set, i| set | bit(*i));
            for peer in self.give_up(!promised) {
                cx.suspect(peer);
            }
            self.plan(cx);
            return;
        }
        let coordinator = self.agreement.promised.coordinator;
        let silent = self.agreement.ballot < self.agreement.promised;
        if silent && let Some(index) = self.group.index(coordinator) {
            for peer in self.give_up(bit(index)) {
                cx.suspect(peer);
            }
        }
        self.start_repair(cx);
    }

    /// A fetch ended.
    pub(super) fn fetched(&mut self, cx: &mut Context, slice: SliceId, digest: Option<Digest>) {
        if !self.fetching.remove(&slice) {
            return;
        }
        self.slices.insert(slice);
        let decided = self
            .agreement
            .decided
            .iter()
            .flat_map(|(_, v)| v.get(usize::from(slice.shard)));
        let wanted = self
            .targets
            .get(usize::from(slice.shard))
            .and_then(|t| t.exact);
        let version = decided
            .copied()
            .chain(wanted)
            .find(|v| Some(v.digest) == digest && self.aggregate(slice.shard, v) == slice);
        if let Some(version) = version {
            self.hold(slice.shard, version);
        }
        self.advance(cx);
    }

    /// A fetch came to nothing: somebody else may hold it, or the next ballot mends it.
    pub(super) fn fetch_failed(&mut self, cx: &mut Context, slice: SliceId) {
        if self.fetching.remove(&slice) && self.ending.is_none() {
            self.deadline = self.deadline.min(cx.now + cx.deadlines.answer());
        }
    }
}
