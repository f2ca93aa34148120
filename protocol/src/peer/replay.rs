//! Replaying: a straggler that missed a round or two fetches their decisions (the encoded
//! aggregates, a fraction of a state) and applies them in order. It keeps what it trained on top.

use super::lag::{CatchUp, Replay};
use crate::core::{Event, FetchId, Output, PeerError, Wait};
use crate::exchange::{inputs_of, slices_of};
use crate::peer::Peer;
use crate::wire::{AgreedMessage, ExchangeMessage, FragmentMessage, Scoped, TransferMessage};
use crate::{Done, FragmentId, Order, PeerId, Round, SliceId};
use core::cmp::Reverse;
use std::collections::BTreeMap;

/// Replayed rounds over which a straggler's own delta is kept.
pub(super) const STALENESS_MAX: u32 = 2;

/// What each donor named.
type Donors = BTreeMap<PeerId, BTreeMap<FragmentId, Scoped>>;

/// Whether two members name the same decision. They may have learnt it in different ballots.
fn same(one: &Scoped, other: &Scoped) -> bool {
    let verdict = |scoped: &Scoped| match &scoped.body {
        FragmentMessage::Decided {
            members, versions, ..
        } => Some((scoped.group, members.clone(), versions.clone())),
        _ => None,
    };
    verdict(one) == verdict(other)
}

impl Replay {
    /// The donors to blame if it fails now: the one that serves the bytes, or those that have not
    /// named all decisions; all of them if one is enough.
    fn blamed(&self) -> Vec<PeerId> {
        if self.started {
            return self.holders.front().copied().into_iter().collect();
        }
        let named = self.donors.values().map(BTreeMap::len).max().unwrap_or(0);
        let silent = |of: &BTreeMap<FragmentId, Scoped>| self.need <= 1 || of.len() < named.max(1);
        let donors = self.donors.iter().filter(|(_, of)| silent(of));
        donors.map(|(id, _)| *id).collect()
    }
}

impl Peer {
    /// Asks for the decisions of the round this peer is in. Where members may lie, it asks all that
    /// are ahead, as many as are needed.
    pub(super) fn replay(&mut self, donor: PeerId, replayed: u32) {
        let round = self.cx.round;
        let liars = self.liars();
        let mut donors = vec![donor];
        if liars > 0 {
            let live = self.cx.view.live().filter(|(id, _)| *id != donor);
            let mut live: Vec<_> = live
                .map(|(id, r)| (self.in_vain(id), Reverse(r.round), id))
                .collect();
            live.sort_unstable();
            donors.extend(live.into_iter().map(|(.., id)| id).take(2 * liars + 1));
        }
        for donor in &donors {
            self.cx.send(*donor, TransferMessage::HistoryAsk { round });
        }
        self.wait_for_state(
            self.cx
                .deadlines
                .allow(Wait::Agreement, donors.iter().copied()),
        );
        self.catch_up = CatchUp::Replaying(Replay {
            donors: donors.into_iter().map(|id| (id, BTreeMap::new())).collect(),
            need: liars + 1,
            replayed,
            ..Replay::default()
        });
    }

    /// The decision in a message, if the replay waits for it.
    pub(super) fn replays<'a>(
        &self,
        from: PeerId,
        message: &'a ExchangeMessage,
    ) -> Option<&'a Scoped> {
        let CatchUp::Replaying(replay) = &self.catch_up else {
            return None;
        };
        let ExchangeMessage::Agreed(AgreedMessage::Fragment(scoped)) = message else {
            return None;
        };
        let waits = replay.donors.contains_key(&from) && !replay.started;
        (waits && scoped.body.ends() && scoped.round == self.cx.round).then_some(scoped)
    }

    /// One fragment's decision; with all of them, their slices are fetched.
    pub(super) fn replay_decision(
        &mut self,
        from: PeerId,
        message: &Scoped,
    ) -> Result<(), PeerError> {
        let CatchUp::Replaying(replay) = &mut self.catch_up else {
            return Ok(());
        };
        let fragment = message.fragment;
        let shards = match &message.body {
            FragmentMessage::Decided {
                members, versions, ..
            } => Some((members.len(), versions.len() as u64)),
            _ => None,
        };
        let plan = &self.cx.plan;
        let due = plan.overlap.exchanges(self.cx.round, fragment);
        let fits = plan.fragment(fragment).filter(|_| due).is_some_and(|f| {
            shards.is_none_or(|(members, shards)| shards == plan.parts(f.len, members))
        });
        if !fits {
            return Err(PeerError::Unexpected {
                what: "a decision that does not fit the plan".to_owned(),
            });
        }
        if let Some(named) = replay.donors.get_mut(&from) {
            named.insert(fragment, message.clone());
        }
        let backed = |donors: &Donors| {
            let named = donors.values().filter_map(|named| named.get(&fragment));
            named.filter(|other| same(other, message)).count()
        };
        if backed(&replay.donors) >= replay.need {
            replay.decisions.insert(fragment, message.clone());
        }
        if replay.decisions.len() == self.cx.plan.fragments_of(self.cx.round).count() {
            let agrees = |named: &BTreeMap<FragmentId, Scoped>| {
                let mut all = replay.decisions.iter();
                all.all(|(id, decision)| named.get(id).is_some_and(|other| same(other, decision)))
            };
            let holders = replay.donors.iter().filter(|(_, named)| agrees(named));
            let mut holders: Vec<PeerId> = holders.map(|(id, _)| *id).collect();
            holders.sort_by_key(|id| self.witnesses.vain.get(id).copied());
            replay.holders = holders.into();
            self.fetch_replay();
        }
        Ok(())
    }

    /// All decisions of the round are known: fetches their slices.
    pub(super) fn fetch_replay(&mut self) {
        let CatchUp::Replaying(replay) = &mut self.catch_up else {
            return;
        };
        // From now on decisions of donors are no part of the replay: it has all that it needs.
        replay.started = true;
        let donor = replay.holders.front().copied();
        for decision in replay.decisions.values() {
            let FragmentMessage::Decided { versions, .. } = &decision.body else {
                continue;
            };
            let present = versions.iter().filter(|v| !v.contributors.is_empty());
            let digests = present.map(|v| v.digest);
            let slices = slices_of(self.cx.plan.exchange, decision);
            replay.fetching.extend(slices.into_iter().zip(digests));
        }
        let allowed = self.cx.deadlines.ceiling();
        let deadline = self.cx.now + allowed;
        let wanted: Vec<SliceId> = replay.fetching.keys().copied().collect();
        for slice in wanted {
            let from = donor.into_iter().collect();
            self.cx.put(Output::Fetch {
                what: FetchId::Slice(slice),
                from,
                deadline,
            });
        }
        self.wait_for_state(allowed);
        self.apply_replay();
    }

    /// All slices are here: applies the round, with this peer's delta on top while it is recent.
    pub(super) fn apply_replay(&mut self) {
        let CatchUp::Replaying(replay) = &mut self.catch_up else {
            return;
        };
        // The fragments of a round are applied together: a round that is applied in part can be
        // neither replayed nor trained on.
        if !replay.fetching.is_empty() || !replay.applies.is_empty() {
            return;
        }
        let (round, keep_local) = (self.cx.round, replay.replayed < STALENESS_MAX);
        for (fragment, decision) in &replay.decisions {
            if matches!(decision.body, FragmentMessage::Decided { .. }) {
                let (fragment, kind) = (*fragment, self.cx.plan.exchange);
                let order = match kind.facts().shows_contributions {
                    true => Order::Gather {
                        round,
                        fragment,
                        inputs: inputs_of(decision),
                        keep_local,
                    },
                    false => Order::Apply {
                        round,
                        fragment,
                        aggregates: slices_of(kind, decision),
                        keep_local,
                    },
                };
                replay.applies.insert(self.cx.order(order), fragment);
            }
        }
        if replay.applies.is_empty() {
            self.round_replayed();
        }
    }

    pub(super) fn replayed(&mut self, fragment: FragmentId, done: &Done) {
        match done {
            Done::Applied { digest } => {
                if let Some(slot) = self.cx.digests.get_mut(usize::from(fragment.0)) {
                    *slot = *digest;
                }
            }
            other => {
                let what = format!("cannot apply a fetched round: {other:?}");
                self.cx.emit(Event::WorkFailed { what });
                self.ask_others();
                return;
            }
        }
        let CatchUp::Replaying(replay) = &self.catch_up else {
            return;
        };
        if replay.applies.is_empty() {
            self.round_replayed();
        }
    }

    pub(super) fn round_replayed(&mut self) {
        let CatchUp::Replaying(replay) = &mut self.catch_up else {
            return;
        };
        let decisions = std::mem::take(&mut replay.decisions)
            .into_values()
            .collect();
        // The round becomes part of this peer's history: other stragglers may ask for it next.
        let replayed = replay.replayed + 1;
        let round = self.cx.round;
        if let Some(history) = self.exchange.history_mut() {
            history.remember(&mut self.cx, round, decisions);
        }
        self.cx.emit(Event::CatchUp {
            from: round,
            to: round.next(),
            donors: 1,
        });
        self.cx.round = round.next();
        self.caught_up(replayed);
    }

    /// Releases what an abandoned replay has fetched.
    pub(super) fn drop_replay(&mut self) {
        if let CatchUp::Replaying(replay) = &mut self.catch_up {
            for slice in std::mem::take(&mut replay.here) {
                self.cx.order(Order::Release { slice });
            }
            let blamed = replay.blamed();
            // Once only: the catch-up ends, or begins again with others.
            self.catch_up = CatchUp::Idle;
            self.blame_donors(blamed);
        }
    }

    /// The first holder does not deliver a slice: the next one is asked.
    pub(super) fn fetch_elsewhere(&mut self, slice: SliceId) {
        let CatchUp::Replaying(replay) = &mut self.catch_up else {
            return;
        };
        if replay.holders.len() < 2 {
            self.ask_state();
            return;
        }
        let failed = replay.holders.pop_front();
        let from = replay.holders.front().copied().into_iter().collect();
        let deadline = self.cx.now + self.cx.deadlines.ceiling();
        let what = FetchId::Slice(slice);
        self.cx.put(Output::Fetch {
            what,
            from,
            deadline,
        });
        self.blame_donors(failed);
    }

    /// A donor does not name its decisions: too few of the others may be left.
    pub(super) fn history_withheld(&mut self, from: PeerId) {
        let CatchUp::Replaying(replay) = &mut self.catch_up else {
            return;
        };
        if replay.donors.len() > replay.need {
            replay.donors.remove(&from);
            self.blame_donors([from]);
        } else {
            self.ask_state();
        }
    }

    pub(super) fn history_refused(&mut self, from: PeerId, round: Round) {
        let mine = matches!(&self.catch_up, CatchUp::Replaying(r) if r.donors.contains_key(&from));
        if mine && round == self.cx.round {
            self.history_withheld(from);
        }
    }
}
